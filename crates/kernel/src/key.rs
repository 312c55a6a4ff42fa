//! Execution keys: unique ids that sort by creation time.

use alloc::{format, string::String};
use core::fmt;

use crate::hash::{hex, unhex};

/// Prefix of the ids of sessions.
const SESSION_PREFIX: &str = "sess_";

/// Key of an execution: a UUID of version 7 (RFC 9562, 5.7). It starts with 48 bits of milliseconds since 1970, so
/// recent executions are adjacent in the indexes of a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionKey(pub [u8; 16]);

impl ExecutionKey {
    /// Creates a key from milliseconds since 1970 and 10 random bytes.
    pub fn new(now_ms: u64, entropy: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&now_ms.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&entropy);
        bytes[6] = 0x70 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        Self(bytes)
    }

    /// Returns the time of creation in milliseconds since 1970.
    pub fn created_at_ms(self) -> u64 {
        self.0[..6].iter().fold(0, |ms, byte| ms << 8 | u64::from(*byte))
    }

    /// Parses the hyphenated form; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let hyphens = |at: usize| text.as_bytes().get(at) == Some(&b'-');
        if text.len() != 36 || ![8, 13, 18, 23].into_iter().all(hyphens) {
            return None;
        }
        let digits: String = text.chars().filter(|letter| *letter != '-').collect();
        let mut bytes = [0; 16];
        unhex(&digits, &mut bytes).then_some(Self(bytes))
    }

    /// Returns the id of the session of this execution. Each execution has one session of its own, so the id follows from
    /// the key.
    pub fn session_id(self) -> String {
        format!("{SESSION_PREFIX}{self}")
    }

    /// Returns the execution of a session; `None` if the text is not the id of a session.
    pub fn of_session_id(text: &str) -> Option<Self> {
        Self::parse(text.strip_prefix(SESSION_PREFIX)?).filter(|key| key.session_id() == text)
    }
}

impl fmt::Display for ExecutionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = hex(&self.0);
        write!(out, "{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
    }
}

impl fmt::Debug for ExecutionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_session_id_is_read_back_in_its_own_spelling_only() {
        let key = ExecutionKey([0xab; 16]);
        assert_eq!(key.session_id(), "sess_abababab-abab-abab-abab-abababababab");
        assert_eq!(ExecutionKey::of_session_id(&key.session_id()), Some(key));
        for wrong in
            [key.to_string(), key.session_id().to_uppercase(), "sess_".into(), format!("{} ", key.session_id())]
        {
            assert_eq!(ExecutionKey::of_session_id(&wrong), None, "{wrong}");
        }
        let shouted = format!("sess_{}", key.to_string().to_uppercase());
        assert_eq!(ExecutionKey::of_session_id(&shouted), None);
    }

    #[test]
    fn keys_sort_by_time_and_read_back() {
        let early = ExecutionKey::new(1_700_000_000_000, [0xff; 10]);
        let late = ExecutionKey::new(1_700_000_000_001, [0; 10]);
        assert!(early < late);
        assert_eq!(early.to_string(), "018bcfe5-6800-7fff-bfff-ffffffffffff");
        assert_eq!(ExecutionKey::parse(&early.to_string()), Some(early));
        for wrong in [
            "",
            "018bcfe5-6800-7fff-bfff-fffffffffff",
            "018bcfe5_6800-7fff-bfff-ffffffffffff",
            "018bcfe5-6800-7fff-bfff-fffffffffff-",
        ] {
            assert_eq!(ExecutionKey::parse(wrong), None, "{wrong}");
        }
    }
}
