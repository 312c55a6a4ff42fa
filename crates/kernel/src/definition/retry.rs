//! Reads retry policies. The defaults are those of the specification of each notation.

use alloc::{format, vec::Vec};

use super::{fields::Fields, help::Help, keys, notation::Notation, report::Report, suggest::nearest::meant};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    failure::{Class, Failure},
    fix::Fix,
    limits::{ATTEMPTS_MAX, WAIT_MAX_MS},
    plan::{Backoff, Delay, Matcher, Retry, is_code},
    value::Value,
};

/// Default number of attempts of a step in a sequence, the first one included.
const ATTEMPTS_OF_SEQUENCE: u32 = 3;

/// Default delays of a sequence (second specification, step retries).
const DELAYS_OF_SEQUENCE_MS: [u64; 2] = [10_000, 30_000];

/// Default initial delay of the other notations, in milliseconds.
const DELAY_DEFAULT_MS: u64 = 1_000;

/// Default upper bound of growing delays: one day.
const DELAY_BOUND_DEFAULT_MS: u64 = 24 * 3600 * 1000;

/// Returns the policy of a step without `retry`, from the specification of the notation.
pub(super) fn default(notation: Notation) -> Retry {
    match notation {
        Notation::Sequence => Retry {
            max_attempts: ATTEMPTS_OF_SEQUENCE,
            delay: Delay::Listed(DELAYS_OF_SEQUENCE_MS.to_vec()),
            ..Retry::never()
        },
        Notation::Dataflow | Notation::Graph => Retry::never(),
    }
}

/// Warns about `onInterrupted: retry` if the retry policy does not cover interruptions.
pub(super) fn check_interruption(retry: &Retry, step: &Fields<'_>, report: &mut Report<'_>) {
    let interruption = Failure::new(Class::Unavailable, "interrupted", "");
    if retry.max_attempts > 1 && !retry.wants(&interruption) {
        let message = "`onInterrupted: retry` does nothing, as `retry` is not for interruptions";
        let help = "an interruption has class `unavailable` and code `interrupted`: list `code:interrupted` in \
                    `retryOn`, and not `unavailable` in `neverOn`";
        report.warning(diagnostic::RETRY_DOES_NOT_APPLY, &step.path.key("onInterrupted"), message, help);
    }
}

/// Reads `retry` or a synonym of it. Mistakes are reported and replaced by defaults.
pub(super) fn read(notation: Notation, step: &Fields<'_>, report: &mut Report<'_>) -> Retry {
    let default = default(notation);
    let key = report.one_of(step, "retry", "retryPolicy");
    if let Some(config) = config(step, key, report) {
        return config;
    }
    let Some(fields) = key.and_then(|key| report.object(step, key)) else { return default };
    report.known_keys(&fields, &keys::RETRY);
    let max_attempts = report.whole_32(&fields, "maxAttempts", 1..=ATTEMPTS_MAX).unwrap_or(default.max_attempts);
    let delay = delay(notation, &fields, report).unwrap_or_else(|| default_delay(notation, max_attempts));
    let jitter_permille = jitter(&fields, report).unwrap_or_default();
    let (allowed, denied) = listed_errors(&fields, report);
    let retry_on = matchers(&fields, "retryOn", report).or(allowed);
    let never_on = matchers(&fields, "neverOn", report).or(denied).unwrap_or_default();
    Retry { max_attempts, delay, jitter_permille, retry_on, never_on }
}

fn default_delay(notation: Notation, max_attempts: u32) -> Delay {
    match (notation, max_attempts) {
        (Notation::Sequence, _) => default(notation).delay,
        (_, 1) => Delay::Listed(Vec::new()),
        _ => exponential(DELAY_DEFAULT_MS),
    }
}

fn exponential(initial_ms: u64) -> Delay {
    let max_ms = initial_ms.max(DELAY_BOUND_DEFAULT_MS);
    Delay::Formula { backoff: Backoff::Exponential, initial_ms, max_ms }
}

/// Reads `config: {maxAttempts, backoffMs}` of the fifth specification.
fn config(step: &Fields<'_>, key: Option<&str>, report: &mut Report<'_>) -> Option<Retry> {
    let config = step.get("config").and_then(Value::as_map)?;
    let fields = Fields { map: config, path: step.path.key("config") };
    let own = ["maxAttempts", "backoffMs"].into_iter().find(|own| fields.has(own))?;
    if let Some(key) = key {
        let message = format!("`{key}` and `config.{own}` mean the same");
        report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &fields.path.key(own), message, "keep one of them");
    }
    let max_attempts = report.whole_32(&fields, "maxAttempts", 1..=ATTEMPTS_MAX).unwrap_or(1);
    let initial_ms = report.whole(&fields, "backoffMs", 0..=WAIT_MAX_MS);
    let delay = match (max_attempts, initial_ms) {
        (1, None) => Delay::Listed(Vec::new()),
        (_, initial_ms) => exponential(initial_ms.unwrap_or(DELAY_DEFAULT_MS)),
    };
    Some(Retry { max_attempts, delay, ..Retry::never() })
}

fn delay(notation: Notation, fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Delay> {
    if !["initialDelayMs", "maxDelayMs", "backoff"].into_iter().any(|key| fields.has(key)) {
        return None;
    }
    let first_ms = if notation == Notation::Sequence { DELAYS_OF_SEQUENCE_MS[0] } else { DELAY_DEFAULT_MS };
    let backoff = report.word(fields, "backoff", &Backoff::ALL.map(|backoff| (backoff.name(), backoff)));
    let given_max_ms = report.whole(fields, "maxDelayMs", 0..=WAIT_MAX_MS);
    let given_initial_ms = report.whole(fields, "initialDelayMs", 0..=WAIT_MAX_MS);
    // If only `maxDelayMs` is written, the default initial delay is lowered to it: that is not a mistake of the author.
    let initial_ms = given_initial_ms.unwrap_or_else(|| given_max_ms.map_or(first_ms, |max_ms| first_ms.min(max_ms)));
    let max_ms = given_max_ms.unwrap_or(initial_ms.max(DELAY_BOUND_DEFAULT_MS));
    if max_ms < initial_ms {
        let message = format!("`maxDelayMs` is {max_ms}, below the first delay of {initial_ms} ms");
        report.error(
            diagnostic::WRONG_VALUE,
            &fields.path.key("maxDelayMs"),
            message,
            format!("write at least `initialDelayMs`: write `{initial_ms}`"),
        );
    }
    Some(Delay::Formula { backoff: backoff.unwrap_or(Backoff::Exponential), initial_ms, max_ms })
}

/// Reads `retryableErrors` of the fourth specification: a list of errors to retry, or `{allow, deny}`.
fn listed_errors(fields: &Fields<'_>, report: &mut Report<'_>) -> (Option<Vec<Matcher>>, Option<Vec<Matcher>>) {
    let Some(listed) = fields.get("retryableErrors") else { return (None, None) };
    for own in ["retryOn", "neverOn"].into_iter().filter(|own| fields.has(own)) {
        let message = format!("`{own}` and `retryableErrors` mean the same");
        report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &fields.path.key(own), message, "keep one of them");
    }
    if listed.as_list().is_some() {
        return (matchers(fields, "retryableErrors", report), None);
    }
    let Some(lists) = report.object(fields, "retryableErrors") else { return (None, None) };
    report.known_keys(&lists, &keys::RETRYABLE_ERRORS);
    (matchers(&lists, "allow", report), matchers(&lists, "deny", report))
}

/// Reads `jitter`, a fraction from 0 to 1, as thousandths.
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

fn unknown(word: &str, path: &Path, key: &str, report: &mut Report<'_>) {
    let classes = Class::ALL.iter().map(|class| class.name());
    let message = format!(
        "`{key}` takes classes of errors ({}) and codes, not {}",
        classes.clone().collect::<Vec<_>>().join(", "),
        quoted(word)
    );
    if let Some(help) = of_other_tools(word, path, key, report) {
        return report.error(diagnostic::WRONG_VALUE, path, message, help);
    }
    let help = match (meant(word, classes), word.starts_with("code:")) {
        (_, true) => "write the code after the colon, as \"code:bash_exit_code:3\"".into(),
        (Some(class), _) => Help::value(path, class),
        (None, _) => format!("write {} if that is the code of an error", quoted(&format!("code:{word}"))).into(),
    };
    report.error(diagnostic::WRONG_VALUE, path, message, help);
}

/// Words of other tools for every error.
const EVERY_ERROR: [&str; 8] = ["States.ALL", "*", "all", "any", "every", "Error", "Exception", "States.TaskFailed"];

/// The classes of the failures that come from the work of a step.
const OF_WORK: [Class; 5] = [Class::Transient, Class::RateLimited, Class::Timeout, Class::Unavailable, Class::Failed];

/// The classes of HTTP statuses, by their first digit.
const OF_STATUSES: [(&str, &[Class]); 2] =
    [("5", &[Class::Transient, Class::Unavailable]), ("4", &[Class::Failed, Class::RateLimited, Class::Timeout])];

/// Returns the help for a word of other tools: for every error, or for statuses of HTTP.
fn of_other_tools(word: &str, path: &Path, key: &str, report: &Report<'_>) -> Option<Help> {
    if key == "retryOn" && EVERY_ERROR.iter().any(|every| every.eq_ignore_ascii_case(word)) {
        return Some(instead_of_item(&OF_WORK, path, "every failure of the work", report));
    }
    let status = word.trim_start_matches(|sign: char| !sign.is_ascii_digit());
    let prefix = word[..word.len() - status.len()].trim_end_matches([' ', '_', ':', '-']).to_ascii_lowercase();
    if status.len() != 3 || !["", "http", "status", "http_status", "code"].contains(&prefix.as_str()) {
        return None;
    }
    if status.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Help::value(path, format!("code:http_status:{status}").as_str()));
    }
    let (first, rest) = status.split_at(1);
    let (_, classes) = OF_STATUSES.into_iter().find(|(digit, _)| *digit == first)?;
    let is_range = rest.eq_ignore_ascii_case("xx") || rest == "**" || rest == "00";
    is_range.then(|| instead_of_item(classes, path, "these statuses of HTTP", report))
}

/// Writes classes in the place of an item of a list. Classes that are listed already are not repeated.
fn instead_of_item(classes: &[Class], path: &Path, purpose: &str, report: &Report<'_>) -> Help {
    let list = report.document().part(&path.parent()).and_then(Value::as_list).unwrap_or_default();
    let is_listed = |class: &&Class| list.iter().any(|item| item.as_text() == Some(class.name()));
    let others: Vec<&Class> = classes.iter().filter(|class| !is_listed(class)).collect();
    let names: Vec<&str> = classes.iter().map(|class| class.name()).collect();
    let fix = match others.as_slice() {
        [] => Fix::remove(path),
        [first, rest @ ..] => {
            let end = path.parent().index(list.len());
            rest.iter()
                .rev()
                .fold(Fix::replace(path, first.name()), |fix, class| fix.and(Fix::add(end.clone(), class.name())))
        }
    };
    Help::new(format!("write {} for {purpose}", names.join(", ")), fix)
}

/// Reads a list of error classes and codes.
fn matchers(fields: &Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<Vec<Matcher>> {
    let items = report.list(fields, key)?;
    let path = fields.path.key(key);
    let mut found: Vec<Matcher> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let status = item.as_u64().filter(|status| (100..600).contains(status)).map(|status| format!("{status}"));
        if let Some(status) = status {
            unknown(&status, &path.index(at), key, report);
            continue;
        }
        let Some(word) = item.as_text() else {
            report.wrong_item(&path.index(at), key, "an error class or code", item);
            continue;
        };
        // The fourth specification writes codes without the prefix `code:`.
        let bare = (key != "retryOn" && key != "neverOn" && is_code(word)).then(|| Matcher::Code(word.into()));
        match Matcher::parse(word).or(bare) {
            None => unknown(word, &path.index(at), key, report),
            Some(matcher) if found.contains(&matcher) => {
                let message = format!("`{word}` stands in `{key}` twice");
                report.error(diagnostic::WRONG_VALUE, &path.index(at), message, "keep one of them");
            }
            Some(matcher) => found.push(matcher),
        }
    }
    Some(found)
}
