//! Bounds of cases, for a server that reads and runs those of its members. A command has none: its user owns the machine.

use std::{fmt, sync::Arc};

/// The bounds of cases.
#[derive(Clone)]
pub struct Allowance {
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(crate) bounds: Bounds,
}

/// The bounds of cases that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Cases of one text. They are counted before any of them is read.
    pub cases_max: usize,
    /// Mistakes of one text that are kept and shown. The others are counted.
    pub problems_max: usize,
    /// Bytes of the journals of one run.
    pub journal_bytes_max: usize,
}

impl Default for Bounds {
    /// No bounds.
    fn default() -> Self {
        Self { cases_max: usize::MAX, problems_max: usize::MAX, journal_bytes_max: usize::MAX }
    }
}

impl Allowance {
    /// Bounds by time, as a function that returns true once it is over, and by numbers.
    pub fn new(is_over: impl Fn() -> bool + Send + Sync + 'static, bounds: Bounds) -> Self {
        Self { is_over: Arc::new(is_over), bounds }
    }

    pub(crate) fn is_over(&self) -> bool {
        (self.is_over)()
    }

    /// The violation of a case after the end of the time.
    pub(crate) fn time_is_over(&self) -> String {
        "the time for these cases is over: run fewer at a time, or fewer modes".into()
    }

    /// Checks the number of the cases of a text.
    pub(crate) fn check_cases(&self, count: usize) -> Result<(), String> {
        let most = self.bounds.cases_max;
        if count > most {
            return Err(format!("there are {count} cases, and at most {most} can run at a time"));
        }
        Ok(())
    }

    /// Checks a run with journals of this size.
    pub(crate) fn check(&self, journal_bytes: usize) -> Result<(), String> {
        if self.is_over() {
            return Err(self.time_is_over());
        }
        let most = self.bounds.journal_bytes_max;
        if journal_bytes > most {
            return Err(format!(
                "the journals of the run have more than {most} bytes: use smaller values or fewer steps"
            ));
        }
        Ok(())
    }
}

impl Default for Allowance {
    /// No bounds.
    fn default() -> Self {
        Self::new(|| false, Bounds::default())
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Allowance").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}
