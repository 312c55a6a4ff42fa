//! Patterns for names of calls.

use alloc::{borrow::ToOwned, string::String};
use core::fmt;

use crate::limits::EFFECT_PATTERN_BYTES_MAX;

/// A name in which `*` stands for any characters, also for none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern(String);

impl Pattern {
    /// Reads a pattern: printable characters without spaces. The error is a clause.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > EFFECT_PATTERN_BYTES_MAX {
            return Err("a pattern has 1 to 256 bytes");
        }
        if text.contains(|character: char| character.is_control() || character.is_whitespace()) {
            return Err("a pattern has no spaces and no control characters");
        }
        Ok(Self(text.to_owned()))
    }

    /// True if the whole name matches. The time is linear in the length of the pattern times that of the name.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut read) = (0, 0);
        // The last `*`, with the end of the part of the name that it stands for.
        let mut star: Option<(usize, usize)> = None;
        while read < name.len() {
            match (pattern.get(at), star) {
                (Some(b'*'), _) => {
                    star = Some((at, read));
                    at += 1;
                }
                (Some(byte), _) if Some(byte) == name.get(read) => (at, read) = (at + 1, read + 1),
                (_, Some((place, taken))) => {
                    star = Some((place, taken + 1));
                    (at, read) = (place + 1, taken + 1);
                }
                (_, None) => return false,
            }
        }
        pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
    }

    /// True if a name that begins with the prefix can match.
    pub(crate) fn can_match_prefix(&self, prefix: &str) -> bool {
        match self.0.split_once('*') {
            None => self.0.starts_with(prefix),
            Some((before, _)) => before.starts_with(prefix) || prefix.starts_with(before),
        }
    }

    /// Returns the number of bytes other than `*`. The pattern with more of them is more specific.
    pub(crate) fn literal_length(&self) -> usize {
        self.0.bytes().filter(|byte| *byte != b'*').count()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        };
        check("a.b", "a.b", true);
        check("a.b", "a.bc", false);
        check("a.b", "aXb", false);
        check("a.*", "a.", true);
        check("a.*", "a.b.c", true);
        check("a.*", "ab.c", false);
        check("*", "", true);
        check("*.delete_*", "s.delete_all", true);
        check("*.delete_*", "s.undelete_all", false);
        check("*a*b*", "xxaxxaxb", true);
        check("*a*b", "ab.a", false);
        check("a**", "a", true);
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        let pattern = "a*".repeat(100) + "b";
        assert!(!Pattern::parse(&pattern).unwrap().matches(&"a".repeat(10_000)));
    }
}
