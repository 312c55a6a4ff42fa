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
        if text.contains('=') {
            return Err("no tool has `=` in its name: write one rule as RULE=VERDICT");
        }
        Ok(Self(text.to_owned()))
    }

    /// True if the whole name matches. The time is linear in the length of the name for each part between two `*`.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == name };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(mut rest_of_name) = name.strip_prefix(first) else { return false };
        for part in middle.split('*') {
            let Some(at) = rest_of_name.find(part) else { return false };
            rest_of_name = &rest_of_name[at + part.len()..];
        }
        rest_of_name.ends_with(last)
    }

    /// Returns the name, if the pattern is one without `*`.
    pub(crate) fn as_name(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(self.0.as_str())
    }

    /// True if a name that ends with this text can match.
    pub(crate) fn matches_end(&self, text: &str) -> bool {
        self.0.rsplit_once('*').is_some_and(|(_, last)| text.ends_with(last) || last.ends_with(text))
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
    use alloc::format;

    use super::*;
    use crate::limits::EFFECT_RULES_MAX;

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
        check("a*a", "a", false);
        check("a*a", "aa", true);
        check("*ab*b", "ab", false);
        check("*ab*b", "xabb", true);
        check("*a*", "bcd", false);
        check("é*", "éa", true);
        check("*é", "aé", true);
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        let pattern = "a*".repeat(100) + "b";
        assert!(!Pattern::parse(&pattern).unwrap().matches(&"a".repeat(10_000)));
        // A comparison at each position would take minutes.
        let pattern = format!("*{}b", "a".repeat(EFFECT_PATTERN_BYTES_MAX - 2));
        let (pattern, name) = (Pattern::parse(&pattern).unwrap(), "a".repeat(4 * 1024 * 1024));
        let matches = (0..EFFECT_RULES_MAX).filter(|_| pattern.matches(&name)).count();
        assert_eq!(matches, 0);
    }
}
