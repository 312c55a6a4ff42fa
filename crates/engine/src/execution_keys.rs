//! Creates execution keys, in ascending order within this process even during one millisecond.
//!
//! After the milliseconds, a key has a counter of twelve bits (RFC 9562, section 6.2, method 1). The keys of a queue
//! are therefore in the order of arrival, and new rows are appended to the database.

use std::sync::{Mutex, PoisonError};

use mainspring_kernel::key::ExecutionKey;

use crate::{clock::now_ms, error::EngineError};

const COUNT_MAX: u16 = 0xfff;

/// The largest initial value of the counter in a millisecond, which leaves room for at least as many keys again.
const FIRST_COUNT_MAX: u16 = 0x7ff;

/// The position of a key among all keys of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    ms: u64,
    count: u16,
}

impl Place {
    /// The position after this one. A clock that stops or goes back does not repeat keys.
    fn next(self, now_ms: u64, first_count: u16) -> Self {
        if now_ms > self.ms {
            Self { ms: now_ms, count: first_count & FIRST_COUNT_MAX }
        } else if self.count < COUNT_MAX {
            Self { count: self.count + 1, ..self }
        } else {
            Self { ms: self.ms + 1, count: 0 }
        }
    }
}

/// Creates a key that satisfies the predicate. Candidates differ in their random part.
pub(crate) fn new_key_where(is_wanted: impl Fn(ExecutionKey) -> bool) -> Result<ExecutionKey, EngineError> {
    static LAST: Mutex<Place> = Mutex::new(Place { ms: 0, count: 0 });
    let mut entropy = random()?;
    let place = {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.next(now_ms(), u16::from_be_bytes([entropy[0], entropy[1]]));
        *last
    };
    loop {
        entropy[..2].copy_from_slice(&place.count.to_be_bytes());
        let key = ExecutionKey::new(place.ms, entropy);
        if is_wanted(key) {
            return Ok(key);
        }
        entropy = random()?;
    }
}

/// Creates a key that follows all earlier keys of this process.
pub fn new_key() -> Result<ExecutionKey, EngineError> {
    new_key_where(|_| true)
}

fn random() -> Result<[u8; 10], EngineError> {
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(|error| EngineError::Stopped(error.to_string()))?;
    Ok(entropy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_key_positions_increase() {
        let at = |ms, count| Place { ms, count };
        let cases = [
            (at(7, 9), 8, 0xffff, at(8, FIRST_COUNT_MAX)),
            (at(7, 9), 8, 3, at(8, 3)),
            (at(7, 9), 7, 3, at(7, 10)),
            (at(7, 9), 2, 3, at(7, 10)),
            (at(7, COUNT_MAX), 7, 3, at(8, 0)),
            (at(7, COUNT_MAX), 6, 3, at(8, 0)),
        ];
        for (last, now, first, next) in cases {
            assert_eq!(last.next(now, first), next);
            assert!(next > last);
        }
    }

    #[test]
    fn keys_are_ordered_under_any_constraint() {
        let is_even = |key: ExecutionKey| key.0[15].is_multiple_of(2);
        let keys: Vec<_> = (0..10_000).map(|_| new_key_where(is_even).unwrap()).collect();
        assert!(keys.is_sorted_by(|one, next| one < next) && keys.iter().all(|key| is_even(*key)));
        let tails: std::collections::BTreeSet<_> = keys.iter().map(|key| key.0[8..].to_vec()).collect();
        assert_eq!(tails.len(), keys.len(), "the rest is random");
    }
}
