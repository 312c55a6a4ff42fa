//! What is logged of requests that were turned away, without letting those who are turned away fill the log.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::rate::Clock;

/// Lines in the log for one credential or one address in a minute: enough to see what somebody tries.
const LINES_PER_MINUTE: u32 = 10;

/// Credentials and addresses that are counted apart; those beyond share one count.
const KEYS_MAX: usize = 4_096;

const MINUTE_US: u64 = 60_000_000;

/// Lines of this minute, by credential or address.
pub(crate) struct Refusals {
    clock: Clock,
    minute: Mutex<Minute>,
}

#[derive(Default)]
struct Minute {
    began_us: u64,
    lines: HashMap<String, u32>,
}

impl Refusals {
    /// Nothing was logged yet.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, minute: Mutex::default() }
    }

    /// Whether one more refusal of this credential or address is logged; the last of a minute says `Some(true)`.
    pub(crate) fn line(&self, key: &str) -> Option<bool> {
        let now = (self.clock)();
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(minute.began_us) >= MINUTE_US {
            *minute = Minute { began_us: now, lines: HashMap::new() };
        }
        let has_room = minute.lines.len() < KEYS_MAX || minute.lines.contains_key(key);
        let count = minute.lines.entry(if has_room { key } else { "" }.to_string()).or_default();
        *count = count.saturating_add(1);
        (*count <= LINES_PER_MINUTE).then_some(*count == LINES_PER_MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    #[test]
    fn each_has_some_lines_in_a_minute_and_a_flood_has_no_more_than_a_table() {
        let now = Arc::new(AtomicU64::new(0));
        let hand = now.clone();
        let refusals = Refusals::new(Arc::new(move || hand.load(Ordering::Relaxed)));
        let lines = |key: &str, count: usize| (0..count).filter(|_| refusals.line(key).is_some()).count();
        assert_eq!((lines("a", 100), lines("b", 3)), (10, 3));
        now.store(MINUTE_US, Ordering::Relaxed);
        let told: Vec<_> = (0..11).map(|_| refusals.line("a")).collect();
        assert_eq!((told[0], told[9], told[10]), (Some(false), Some(true), None));
        let flood: usize = (0..3 * KEYS_MAX).map(|number| lines(&format!("x{number}"), 1)).sum();
        assert!(flood < KEYS_MAX + LINES_PER_MINUTE as usize, "{flood}");
        assert_eq!(refusals.minute.lock().unwrap().lines.len(), KEYS_MAX + 1);
    }
}
