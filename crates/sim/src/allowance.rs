//! Bounds of a run, for a server that runs cases of its members. A command has none: its user owns the machine.

use std::{fmt, sync::Arc};

/// The bounds of a run.
#[derive(Clone)]
pub struct Allowance {
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Bytes of the journals of one run.
    journal_bytes_max: usize,
}

impl Allowance {
    /// Bounds by time, as a function that returns true once it is over, and by bytes of the journals of one run.
    pub fn new(is_over: impl Fn() -> bool + Send + Sync + 'static, journal_bytes_max: usize) -> Self {
        Self { is_over: Arc::new(is_over), journal_bytes_max }
    }

    pub(crate) fn is_over(&self) -> bool {
        (self.is_over)()
    }

    /// The violation of a case after the end of the time.
    pub(crate) fn time_is_over(&self) -> String {
        "the time for these cases is over: run fewer at a time, or fewer modes".into()
    }

    /// Checks a run with journals of this size.
    pub(crate) fn check(&self, journal_bytes: usize) -> Result<(), String> {
        if self.is_over() {
            return Err(self.time_is_over());
        }
        if journal_bytes > self.journal_bytes_max {
            let most = self.journal_bytes_max;
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
        Self::new(|| false, usize::MAX)
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Allowance").field("journal_bytes_max", &self.journal_bytes_max).finish_non_exhaustive()
    }
}
