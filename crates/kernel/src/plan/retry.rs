//! Retry policies: which failures are retried, how often, and after which delay.

use alloc::{format, string::String, vec::Vec};

use crate::{
    failure::{Class, Failure},
    hash::Hash,
};

/// The retry policy of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts, the first one included; at least 1.
    pub max_attempts: u32,
    /// Delay before each retry.
    pub delay: Delay,
    /// Maximum jitter in thousandths of the delay. Jitter is added to the delay and derived from a hash.
    pub jitter_permille: u32,
    /// Failures to retry; `None` for the classes that are retryable by default.
    pub retry_on: Option<Vec<Matcher>>,
    /// Failures that are never retried; takes precedence over `retry_on`.
    pub never_on: Vec<Matcher>,
}

/// A pattern for failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    /// Failures of a class.
    Class(Class),
    /// Failures with this code, or with this prefix before a colon: `http_status` matches `http_status:503`.
    Code(String),
}

impl Matcher {
    /// Parses a class, or a code after `code:`.
    pub fn parse(word: &str) -> Option<Self> {
        let code = || word.strip_prefix("code:").filter(|code| is_code(code));
        Class::parse(word).map(Self::Class).or_else(|| Some(Self::Code(code()?.into())))
    }

    /// Returns the text that [`Matcher::parse`] reads.
    pub fn word(&self) -> String {
        match self {
            Self::Class(class) => class.name().into(),
            Self::Code(code) => format!("code:{code}"),
        }
    }

    fn means(&self, failure: &Failure) -> bool {
        match self {
            Self::Class(class) => failure.class == *class,
            Self::Code(code) => {
                failure.code == *code || failure.code.split_once(':').is_some_and(|(tag, _)| tag == code)
            }
        }
    }
}

/// True if a text is a valid failure code: visible ASCII characters, at least one.
pub fn is_code(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic())
}

/// Delay before attempt n, where n is at least 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delay {
    /// The listed delays in milliseconds, one for each retry; the last one repeats.
    Listed(Vec<u64>),
    /// A formula over the initial delay, with an upper bound.
    Formula {
        /// The growth of the delay.
        backoff: Backoff,
        /// The initial delay in milliseconds.
        initial_ms: u64,
        /// The upper bound in milliseconds.
        max_ms: u64,
    },
}

/// The growth of delays. In the formulas, i is the initial delay and n the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// `i`
    Fixed,
    /// `i·(n-1)`
    Linear,
    /// `i·2^(n-2)`
    Exponential,
}

impl Backoff {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Linear, Self::Exponential];

    /// Returns the value as a definition writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        }
    }
}

impl Retry {
    /// Returns a policy with a single attempt.
    pub fn never() -> Self {
        let delay = Delay::Listed(Vec::new());
        Self { max_attempts: 1, delay, jitter_permille: 0, retry_on: None, never_on: Vec::new() }
    }

    /// True if attempt number `attempt` failed in a way that allows another one.
    pub fn allows(&self, failure: &Failure, attempt: u32) -> bool {
        attempt < self.max_attempts && self.wants(failure)
    }

    /// True if the policy retries failures of this kind, regardless of the number of attempts.
    pub fn wants(&self, failure: &Failure) -> bool {
        let means = |matchers: &Vec<Matcher>| matchers.iter().any(|matcher| matcher.means(failure));
        self.retry_on.as_ref().map_or(failure.class.is_retryable(), means) && !means(&self.never_on)
    }

    /// Returns the delay before an attempt in milliseconds; `attempt` is at least 2. `entropy` decides the jitter.
    pub fn delay_ms(&self, attempt: u32, entropy: Hash) -> u64 {
        let steps = u64::from(attempt.saturating_sub(2));
        let plain = match &self.delay {
            Delay::Listed(delays) => {
                let place = usize::try_from(steps).unwrap_or(usize::MAX).min(delays.len().saturating_sub(1));
                delays.get(place).copied().unwrap_or(0)
            }
            Delay::Formula { backoff, initial_ms, max_ms } => {
                let factor = match backoff {
                    Backoff::Fixed => 1,
                    Backoff::Linear => steps + 1,
                    Backoff::Exponential => {
                        1u64.checked_shl(u32::try_from(steps).unwrap_or(u32::MAX)).unwrap_or(u64::MAX)
                    }
                };
                initial_ms.saturating_mul(factor).min(*max_ms)
            }
        };
        let [a, b, c, d, ..] = entropy.0;
        let share = u128::from(u32::from_be_bytes([a, b, c, d]));
        let jitter = u128::from(plain) * u128::from(self.jitter_permille) * share / 1000 / u128::from(u32::MAX);
        plain.saturating_add(u64::try_from(jitter).unwrap_or(u64::MAX)).min(crate::limits::WAIT_MAX_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn check(delay: Delay, jitter_permille: u32, expected: &[u64]) {
        let retry = Retry { max_attempts: 9, delay, jitter_permille, retry_on: None, never_on: vec![] };
        let delays: Vec<_> = (2..2 + expected.len() as u32).map(|n| retry.delay_ms(n, Hash([0xff; 32]))).collect();
        assert_eq!(delays, expected);
    }

    #[test]
    fn delays() {
        let formula = |backoff, initial_ms, max_ms| Delay::Formula { backoff, initial_ms, max_ms };
        check(Delay::Listed(vec![10, 30]), 0, &[10, 30, 30, 30]);
        check(Delay::Listed(vec![]), 0, &[0, 0]);
        check(formula(Backoff::Fixed, 100, 1000), 0, &[100, 100, 100]);
        check(formula(Backoff::Linear, 100, 350), 0, &[100, 200, 300, 350, 350]);
        check(formula(Backoff::Exponential, 100, 1000), 0, &[100, 200, 400, 800, 1000]);
        check(formula(Backoff::Fixed, 100, 1000), 200, &[120]);
        let far = Retry { delay: formula(Backoff::Exponential, 1000, u64::MAX), ..Retry::never() };
        assert_eq!(far.delay_ms(5000, Hash::default()), crate::limits::WAIT_MAX_MS);
    }

    #[test]
    fn failures_are_retried_by_class_and_code() {
        let check = |retry_on: Option<&[&str]>, never_on: &[&str], class, code: &str, expected| {
            let matchers = |words: &[&str]| words.iter().map(|word| Matcher::parse(word).unwrap()).collect::<Vec<_>>();
            let (retry_on, never_on) = (retry_on.map(matchers), matchers(never_on));
            let retry = Retry { max_attempts: 2, retry_on, never_on, ..Retry::never() };
            let failure = Failure::new(class, code, "");
            assert_eq!(retry.allows(&failure, 1), expected, "{retry:?} {failure:?}");
            assert!(!retry.allows(&failure, 2));
        };
        check(None, &[], Class::Timeout, "late", true);
        check(None, &[], Class::Failed, "no", false);
        check(None, &["timeout"], Class::Timeout, "late", false);
        check(Some(&["failed"]), &[], Class::Failed, "no", true);
        check(Some(&["failed"]), &[], Class::Timeout, "late", false);
        check(Some(&["failed"]), &["failed"], Class::Failed, "no", false);
        check(Some(&["code:http_status"]), &[], Class::Failed, "http_status:409", true);
        check(Some(&["code:http_status:409"]), &[], Class::Failed, "http_status:409", true);
        check(Some(&["code:http_status:4"]), &[], Class::Failed, "http_status:409", false);
        check(None, &["code:http_status:503"], Class::Unavailable, "http_status:503", false);
    }
}
