//! The usage of a call, and the first limit that it reached.
//!
//! Code can catch some errors that the interpreter raises at a limit, so the state is kept here. Once a limit is
//! reached, the interpreter is interrupted at its next poll, and the call fails even if the code
//! returns a result.

use crate::fault::{Fault, FaultKind};
use crate::limits::Limits;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The limits of one call, on the host's side.
pub(crate) struct LimitGuard {
    limits: Limits,
    ends_at: Instant,
    ticks: Cell<u64>,
    met: Cell<Option<FaultKind>>,
}

impl LimitGuard {
    pub(crate) fn new(limits: &Limits) -> LimitGuard {
        let ends_at = Instant::now() + Duration::from_millis(limits.wall_ms_max);
        LimitGuard { limits: *limits, ends_at, ticks: Cell::new(0), met: Cell::new(None) }
    }

    /// Handles the interpreter's regular poll. Returns true to interrupt it.
    pub(crate) fn tick(&self) -> bool {
        self.ticks.set(self.ticks.get() + 1);
        if self.ticks.get() > self.limits.ticks_max {
            self.meet(FaultKind::TicksExceeded);
        } else if Instant::now() >= self.ends_at {
            self.meet(FaultKind::TimeExceeded);
        }
        self.met.get().is_some()
    }

    /// Records a limit. The first one is reported.
    pub(crate) fn meet(&self, limit: FaultKind) {
        self.met.set(self.met.get().or(Some(limit)));
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.get()
    }

    /// Returns the fault of the limit that was reached.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let kind = self.met.get()?;
        let message = match kind {
            FaultKind::TicksExceeded => {
                format!("The code was ended after {} ticks. Do less in one call.", self.limits.ticks_max)
            }
            FaultKind::TimeExceeded => time_exceeded(&self.limits),
            FaultKind::MemoryExceeded => format!(
                "The code needs more than its {} bytes of memory. Work on smaller pieces.",
                self.limits.memory_bytes_max
            ),
            _ => "Calls are nested too deeply. Look for a recursion that does not end, or write it as a loop.".into(),
        };
        Some(Fault::new(kind, message))
    }
}

/// Returns the message for a call that took too long, here and where its worker is killed.
pub(crate) fn time_exceeded(limits: &Limits) -> String {
    format!("The code was ended after {} ms. Do less in one call.", limits.wall_ms_max)
}
