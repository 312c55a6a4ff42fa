//! Ticks that are due: jitter, and ticks that were missed while no node ran.

use sha2::{Digest, Sha256};

use crate::{
    limits::{CATCH_UP_WINDOW_MS_MAX, JITTER_MS_MAX, ON_TIME_MS},
    schedule::Schedule,
};

/// The treatment of missed ticks. A tick is missed if it was found more than [`ON_TIME_MS`] after it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedTicks {
    /// Missed ticks do not run.
    Skip,
    /// Only the last of all ticks that are due runs.
    Once,
    /// All run, the oldest first.
    All,
}

/// The settings of a schedule about missed ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUp {
    /// The treatment of missed ticks.
    pub missed: MissedTicks,
    /// Milliseconds; older ticks never run. At most [`CATCH_UP_WINDOW_MS_MAX`].
    pub window_ms: u64,
}

/// The ticks that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTicks {
    /// The ticks to run, the oldest first, without jitter.
    pub ticks_ms: Vec<u64>,
    /// The cursor for the next call: all ticks up to it are decided.
    pub cursor_ms: u64,
    /// Ticks were due and do not run.
    pub has_dropped: bool,
}

/// Returns the jitter of a trigger: the same for each of its ticks, from 0 to `jitter_max_ms`.
pub fn jitter_ms(trigger: &str, jitter_max_ms: u64) -> u64 {
    let hash = Sha256::digest(trigger.as_bytes());
    let number = hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    number % (jitter_max_ms.min(JITTER_MS_MAX) + 1)
}

/// Returns the ticks after the cursor that are due `jitter_ms` after their time, at most `limit` of them.
pub fn due(
    schedule: &Schedule,
    catch_up: CatchUp,
    jitter_ms: u64,
    cursor_ms: u64,
    now_ms: u64,
    limit: usize,
) -> DueTicks {
    let until_ms = now_ms.saturating_sub(jitter_ms);
    if until_ms <= cursor_ms {
        return DueTicks { ticks_ms: Vec::new(), cursor_ms, has_dropped: false };
    }
    let window_ms = match catch_up.missed {
        MissedTicks::Skip => ON_TIME_MS - 1,
        MissedTicks::Once | MissedTicks::All => catch_up.window_ms.min(CATCH_UP_WINDOW_MS_MAX),
    };
    // A tick at the edge of the window belongs to it.
    let after_ms = cursor_ms.max(until_ms.saturating_sub(window_ms.saturating_add(1)));
    let limit = limit.max(1);
    let due = |after_ms| schedule.ticks_after(after_ms).take_while(|tick| *tick <= until_ms);
    let ticks_ms: Vec<u64> = match catch_up.missed {
        MissedTicks::Once => last_tick(schedule, after_ms, until_ms).into_iter().take(limit).collect(),
        MissedTicks::Skip | MissedTicks::All => due(after_ms).take(limit).collect(),
    };
    let first = due(cursor_ms).next();
    let has_dropped = first.is_some() && first != ticks_ms.first().copied();
    let cursor_ms = match ticks_ms.last() {
        Some(last) if ticks_ms.len() == limit => *last,
        _ => until_ms,
    };
    DueTicks { ticks_ms, cursor_ms, has_dropped }
}

/// Returns the last tick in a period. Searches back in periods of doubled length, since a schedule may have a tick each
/// minute of a month.
fn last_tick(schedule: &Schedule, after_ms: u64, until_ms: u64) -> Option<u64> {
    let mut length_ms = ON_TIME_MS;
    loop {
        let from_ms = after_ms.max(until_ms.saturating_sub(length_ms));
        let last = schedule.ticks_after(from_ms).take_while(|tick| *tick <= until_ms).last();
        if last.is_some() || from_ms == after_ms {
            return last;
        }
        length_ms = length_ms.saturating_mul(2);
    }
}
