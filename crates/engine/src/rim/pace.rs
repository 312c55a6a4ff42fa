//! The share of the driver's time for split turns. An execution with endless split turns leaves most of the time to
//! others.

use std::time::Duration;

use tokio::time::Instant;

/// While there is other work, the pause after a part of a split turn is this many times as long as the part took.
const PAUSES_PER_PART: u32 = 4;

/// Other work is assumed for this time after a command.
const BUSY: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Earliest time of the next part.
    next: Option<Instant>,
    /// Time of the last command.
    command_at: Option<Instant>,
}

impl Pace {
    /// Returns the earliest time of the next part.
    pub(super) fn next(&self, now: Instant) -> Instant {
        self.next.map_or(now, |next| next.max(now))
    }

    /// Records a part.
    pub(super) fn went_on(&mut self, began: Instant, ended: Instant) {
        let is_busy = self.command_at.is_some_and(|at| ended.duration_since(at) < BUSY);
        self.next = is_busy.then(|| ended + (ended - began) * PAUSES_PER_PART);
    }

    /// Records that commands were received.
    pub(super) fn command(&mut self, now: Instant) {
        self.command_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_turn_leaves_time_to_others_and_none_to_nobody() {
        let (start, part) = (Instant::now(), Duration::from_millis(10));
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut pace = Pace::default();
        assert_eq!(pace.next(at(1)), at(1));
        pace.went_on(at(1), at(1) + part);
        assert_eq!(pace.next(at(11)), at(11), "nobody else wants anything");
        pace.command(at(12));
        pace.went_on(at(12), at(12) + part);
        assert_eq!(pace.next(at(22)), at(62));
        assert_eq!(pace.next(at(70)), at(70));
        pace.went_on(at(200), at(210));
        assert_eq!(pace.next(at(210)), at(210), "the last command is long ago");
    }
}
