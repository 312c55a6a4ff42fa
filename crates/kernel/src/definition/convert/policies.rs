//! Writes the retry policies of plans in a notation.

use alloc::{format, string::String, vec::Vec};

use crate::{
    definition::{notation::Notation, retry},
    plan::{Backoff, Delay, Matcher, Retry},
    value::{Map, Number, Value},
};

/// Returns the `retry` value for a policy, or `None` if it is the default of the notation. The error lists the delays
/// that the notation cannot express.
pub(super) fn written(policy: &Retry, to: Notation) -> Result<Option<Value>, String> {
    if normal(policy) == normal(&retry::default(to)) {
        return Ok(None);
    }
    let mut map = Map::new();
    map.insert("maxAttempts".into(), policy.max_attempts.into());
    let is_by_itself = normal(&Retry { delay: retry::default(to).delay, ..policy.clone() }) == normal(policy);
    match ruled(policy) {
        _ if policy.max_attempts == 1 => {}
        _ if to == Notation::Sequence && is_by_itself => {}
        Delay::Formula { backoff, initial_ms, max_ms } => {
            map.insert("backoff".into(), backoff.name().into());
            map.insert("initialDelayMs".into(), initial_ms.into());
            map.insert("maxDelayMs".into(), max_ms.into());
        }
        Delay::Listed(delays_ms) => {
            let delays: Vec<String> = delays_ms.iter().map(|ms| format!("{ms} ms")).collect();
            return Err(delays.join(", then "));
        }
    }
    if policy.jitter_permille > 0 {
        let jitter = Number::double(f64::from(policy.jitter_permille) / 1000.0);
        map.extend(jitter.map(|jitter| ("jitter".into(), Value::Number(jitter))));
    }
    let words = |matchers: &[Matcher]| matchers.iter().map(|matcher| Value::from(matcher.word())).collect::<Vec<_>>();
    map.extend(policy.retry_on.as_deref().map(|matchers| ("retryOn".into(), words(matchers).into())));
    if !policy.never_on.is_empty() {
        map.insert("neverOn".into(), words(&policy.never_on).into());
    }
    Ok(Some(Value::Map(map)))
}

/// Returns the normal form of a policy: policies with the same delays have the same form.
pub(super) fn normal(policy: &Retry) -> Retry {
    let delay = match (policy.max_attempts, ruled(policy)) {
        (1, _) => Delay::Listed(Vec::new()),
        // With two attempts there is one delay, and it is the initial delay for every backoff.
        (2, Delay::Formula { initial_ms, max_ms, .. }) => fixed(initial_ms.min(max_ms)),
        (_, Delay::Formula { backoff: Backoff::Fixed, initial_ms, max_ms }) => fixed(initial_ms.min(max_ms)),
        (_, delay) => delay,
    };
    Retry { delay, ..policy.clone() }
}

/// Returns the delays as a formula if one gives the listed delays.
fn ruled(policy: &Retry) -> Delay {
    let Delay::Listed(delays_ms) = &policy.delay else { return policy.delay.clone() };
    let waited_for = policy.max_attempts.saturating_sub(1) as usize;
    let first_ms = delays_ms.first().copied().unwrap_or_default();
    if delays_ms.iter().take(waited_for).all(|ms| *ms == first_ms) { fixed(first_ms) } else { policy.delay.clone() }
}

fn fixed(ms: u64) -> Delay {
    Delay::Formula { backoff: Backoff::Fixed, initial_ms: ms, max_ms: ms }
}
