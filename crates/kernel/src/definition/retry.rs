//! Retry policies as they are written. The defaults are those of the sequence notation.

use alloc::{format, vec::Vec};

use super::report::{Fields, Report};
use crate::{
    diagnostic,
    failure::Class,
    limits::{ATTEMPTS_MAX, WAIT_MAX_MS},
    plan::{Backoff, Delay, Retry},
    value::Value,
};

const KEYS: [&str; 7] = ["maxAttempts", "initialDelayMs", "maxDelayMs", "backoff", "jitter", "retryOn", "neverOn"];

/// Attempts in all, unless a policy says otherwise.
const ATTEMPTS_DEFAULT: u32 = 3;

/// The delays where a policy says nothing about delays (second specification, step retries).
const DELAYS_DEFAULT_MS: [u64; 2] = [10_000, 30_000];

/// The bound on growing delays, unless a policy says otherwise: a day.
const DELAY_BOUND_DEFAULT_MS: u64 = 24 * 3600 * 1000;

/// The policy of a step that says nothing about retries.
pub(super) fn default() -> Retry {
    Retry { max_attempts: ATTEMPTS_DEFAULT, delay: Delay::Listed(DELAYS_DEFAULT_MS.to_vec()), ..Retry::never() }
}

/// Reads `retry`; what is wrong with it is reported, and has its default in what is returned.
pub(super) fn read(step: &Fields<'_>, report: &mut Report<'_>) -> Retry {
    let Some(fields) = report.object(step, "retry") else { return default() };
    report.known_keys(&fields, &KEYS);
    let max_attempts = report.whole_32(&fields, "maxAttempts", 1..=ATTEMPTS_MAX).unwrap_or(ATTEMPTS_DEFAULT);
    let delay = delay(&fields, report).unwrap_or(Delay::Listed(DELAYS_DEFAULT_MS.to_vec()));
    let jitter_permille = jitter(&fields, report).unwrap_or_default();
    let retry_on = classes(&fields, "retryOn", report);
    let never_on = classes(&fields, "neverOn", report).unwrap_or_default();
    Retry { max_attempts, delay, jitter_permille, retry_on, never_on }
}

fn delay(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Delay> {
    if !["initialDelayMs", "maxDelayMs", "backoff"].into_iter().any(|key| fields.has(key)) {
        return None;
    }
    let backoff = report.word(fields, "backoff", &Backoff::ALL.map(|backoff| (backoff.name(), backoff)));
    let initial_ms = report.whole(fields, "initialDelayMs", 0..=WAIT_MAX_MS).unwrap_or(DELAYS_DEFAULT_MS[0]);
    let given_max_ms = report.whole(fields, "maxDelayMs", 0..=WAIT_MAX_MS);
    let max_ms = given_max_ms.unwrap_or(initial_ms.max(DELAY_BOUND_DEFAULT_MS));
    if max_ms < initial_ms {
        let message = format!("`maxDelayMs` is {max_ms}, below the first delay of {initial_ms} ms");
        report.error(
            diagnostic::WRONG_VALUE,
            &fields.path.key("maxDelayMs"),
            message,
            "write at least `initialDelayMs`",
        );
    }
    Some(Delay::Formula { backoff: backoff.unwrap_or(Backoff::Exponential), initial_ms, max_ms })
}

/// A fraction from 0 to 1, in thousandths.
fn jitter(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<u32> {
    let value = fields.get("jitter")?;
    let Some(number) = value.as_number() else {
        report.wrong_kind(&fields.path.key("jitter"), "jitter", "a number", value);
        return None;
    };
    let fraction = number.as_double();
    if !(0.0..=1.0).contains(&fraction) {
        let message = "`jitter` must be a number from 0 to 1";
        report.error(
            diagnostic::WRONG_VALUE,
            &fields.path.key("jitter"),
            message,
            "0.2 adds up to a fifth of the delay",
        );
        return None;
    }
    Some((fraction * 1000.0 + 0.5) as u32)
}

fn classes(fields: &Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<Vec<Class>> {
    let items = report.list(fields, key)?;
    let path = fields.path.key(key);
    let mut classes = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match (item, item.as_text().and_then(Class::parse)) {
            (_, Some(class)) if classes.contains(&class) => {
                let message = format!("`{}` stands in `{key}` twice", class.name());
                report.error(diagnostic::WRONG_VALUE, &path.index(at), message, "keep one of them");
            }
            (_, Some(class)) => classes.push(class),
            (Value::Text(text), None) => {
                report.unknown_word(&path.index(at), key, text, Class::ALL.iter().map(|class| class.name()))
            }
            (other, None) => report.wrong_kind(&path.index(at), key, "a list of class names", other),
        }
    }
    Some(classes)
}
