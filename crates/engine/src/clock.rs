//! The clocks of a node compared with the clock of its shared store: their difference, and the time that counts.
//!
//! Timers, deadlines and gates expire by the clock of the owner, and the time of an execution never goes back. A
//! node that is an hour fast would therefore expire approvals an hour early, irrevocably. Each heartbeat reads the
//! store's clock. Between two heartbeats, the monotonic clock shows the store's present time. Only the three functions at
//! the end read clocks.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::limits::CLOCK_APART_MS_MAX;

/// A time on a node's monotonic clock, in milliseconds since an arbitrary start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonotonicMs(pub u64);

/// The clocks of a node at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The monotonic clock.
    pub monotonic: MonotonicMs,
    /// The wall clock, in milliseconds since 1970. It can be set at any time, to any value.
    pub wall_ms: u64,
}

/// The clocks of a process, as a node reads them.
pub trait Clock {
    /// Reads the clocks in milliseconds.
    fn reading(&self) -> ClockReading;

    /// The time since an arbitrary start, on a monotonic clock that is more precise than a reading.
    fn elapsed(&self) -> std::time::Duration;

    /// The processor time that the calling thread has used.
    fn processor_time(&self) -> std::time::Duration;
}

/// The store's clock, read between two readings of the node's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreClockSample {
    /// The store's clock, in milliseconds since 1970.
    pub store_ms: u64,
    /// The reading before the request.
    pub sent_at: ClockReading,
    /// The reading after the answer.
    pub answered_at: ClockReading,
}

/// The difference of a node's clock that certainly exceeds the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSkew {
    /// Milliseconds by which the node's clock is ahead. Negative if it is behind.
    pub ahead_ms: i64,
}

impl StoreClockSample {
    /// Returns the difference to the store's clock if it certainly exceeds the bound. The duration of the request
    /// counts in favor of the node.
    pub fn skew(&self) -> Option<ClockSkew> {
        let ahead = |wall_ms: u64| signed(wall_ms) - signed(self.store_ms);
        let (sent, answered) = (ahead(self.sent_at.wall_ms), ahead(self.answered_at.wall_ms));
        let (least, most) = (sent.min(answered), sent.max(answered));
        let bound = signed(CLOCK_APART_MS_MAX);
        let ahead_ms = if least > bound { least } else { most };
        (least > bound || most < -bound).then_some(ClockSkew { ahead_ms })
    }

    /// The node's wall clock, limited to the bound around the store's present time.
    pub fn bounded(&self, reading: ClockReading) -> u64 {
        let since = |then: ClockReading| reading.monotonic.0.saturating_sub(then.monotonic.0);
        let least = self.store_ms.saturating_add(since(self.answered_at)).saturating_sub(CLOCK_APART_MS_MAX);
        let most = self.store_ms.saturating_add(since(self.sent_at)).saturating_add(CLOCK_APART_MS_MAX);
        reading.wall_ms.clamp(least, most.max(least))
    }
}

impl std::fmt::Display for ClockSkew {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = if self.ahead_ms < 0 { "behind" } else { "ahead of" };
        write!(
            out,
            "this node's clock is {} ms {side} the shared store's, and {CLOCK_APART_MS_MAX} ms are allowed: it owns no \
             partitions until the clock is corrected; set the clock, and synchronize it with NTP",
            self.ahead_ms.unsigned_abs()
        )
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// The wall clock of this machine, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the clocks of this machine.
pub(crate) fn read_clocks() -> ClockReading {
    ClockReading { monotonic: monotonic_now(), wall_ms: now_ms() }
}

/// Reads the monotonic clock of this machine, which also runs while the machine is suspended.
pub(crate) fn monotonic_now() -> MonotonicMs {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    MonotonicMs(time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE_MS: u64 = 1_767_225_600_000;

    /// A request sent at the first and answered at the second reading: ticks, and the lead of the wall clock over the
    /// store's.
    fn sample(sent: (u64, i64), answered: (u64, i64)) -> StoreClockSample {
        let at = |(monotonic, ahead): (u64, i64)| ClockReading {
            monotonic: MonotonicMs(monotonic),
            wall_ms: STORE_MS.saturating_add_signed(ahead),
        };
        StoreClockSample { store_ms: STORE_MS, sent_at: at(sent), answered_at: at(answered) }
    }

    #[test]
    fn skew_is_reported_only_if_it_is_certain() {
        let check = |sent: i64, answered: i64, ahead_ms: Option<i64>| {
            let apart = sample((0, sent), (5, answered)).skew();
            assert_eq!(apart.map(|apart| apart.ahead_ms), ahead_ms, "{sent} {answered}");
        };
        check(0, 5, None);
        check(2_000, 2_005, None);
        check(2_001, 2_006, Some(2_001));
        check(-2_006, -2_001, Some(-2_001));
        check(-2_005, -2_000, None);
        check(3_600_000, 3_600_005, Some(3_600_000));
        // The answer took five seconds: the store's clock may have been read at any time of them.
        check(-4_000, 1_000, None);
        // The clock was set during the request. The next heartbeat detects it.
        check(3_600_000, 5, None);
    }

    #[test]
    fn a_clock_step_moves_the_time_by_at_most_the_bound() {
        let seen = sample((1_000, -20), (1_040, 20));
        let bounded = |monotonic: u64, ahead: i64| {
            let reading =
                ClockReading { monotonic: MonotonicMs(monotonic), wall_ms: STORE_MS.saturating_add_signed(ahead) };
            seen.bounded(reading) as i64 - STORE_MS as i64
        };
        assert_eq!(bounded(3_000, 1_980), 1_980, "a clock that agrees counts as it is");
        assert_eq!(bounded(3_000, 3_600_000), 2_000 + 2_000);
        assert_eq!(bounded(3_000, -3_600_000), 1_960 - 2_000);
        assert_eq!(bounded(0, 5), 5, "a reading from before the heartbeat");
    }

    #[test]
    fn the_skew_error_names_the_remedy() {
        let says = ClockSkew { ahead_ms: -3_600_000 }.to_string();
        assert!(says.contains("3600000 ms behind") && says.contains("NTP"), "{says}");
    }
}
