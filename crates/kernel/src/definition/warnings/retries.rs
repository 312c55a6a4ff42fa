//! Retry policies that match no failure of their step.

use alloc::format;

use crate::{
    definition::{
        fields::Fields,
        outline::{Entry, Role},
        report::{Report, named},
    },
    diagnostic,
    failure::Class,
    plan::{Delay, Matcher, Plan, Retry, Step, Work},
};

/// The classes in which a script or a function fails by itself.
const OF_SCRIPTS: [Class; 3] = [Class::Failed, Class::Timeout, Class::Unavailable];

pub(super) fn check(plan: &Plan, step: &Step, entry: &Entry<'_>, report: &mut Report<'_>) {
    let Some((fields, key)) = written(&entry.fields).filter(|_| entry.role != Role::Each) else { return };
    if step.retry.max_attempts <= 1 || matches!(entry.role, Role::Agent(_)) {
        return;
    }
    let path = fields.path.key(key);
    if let Some(timeout_ms) = plan.constraints.timeout_ms
        && let Some(delay_ms) = first_delay_ms(&step.retry).filter(|delay_ms| *delay_ms >= timeout_ms)
    {
        let message = format!(
            "`{key}` of {} waits {delay_ms} ms, and the execution ends after {timeout_ms} ms (`constraints.timeoutMs`)",
            named(&entry.id)
        );
        let help = format!("write an `initialDelayMs` below {timeout_ms}, or raise `constraints.timeoutMs`");
        return report.warning(diagnostic::RETRY_DOES_NOT_APPLY, &path, message, help);
    }
    let is_script = match &step.work {
        Work::Effect { effect, .. } => effect == "bash",
        Work::Code { .. } => true,
        _ => false,
    };
    // A time limit is a reason to retry without a list: class `timeout` is among the defaults.
    let has_own_time = key == "config"
        && (fields.has("timeoutMs") || fields.get("config").is_some_and(|config| config.get("timeoutMs").is_some()));
    if !is_script || has_own_time || is_meant(&step.retry) {
        return;
    }
    let what = if matches!(step.work, Work::Code { .. }) { "function that throws" } else { "script that fails" };
    let message = format!(
        "`{key}` of {} does not apply to a {what}: that is class `failed`, which it does not list",
        named(&entry.id)
    );
    let help = match key {
        "config" => {
            "write `retry: {maxAttempts: …, initialDelayMs: …, retryOn: [failed]}` in place of `maxAttempts` and \
                     `backoffMs`"
                .into()
        }
        _ if step.retry.retry_on.as_ref().is_some_and(|listed| listed.is_empty()) => format!(
            "write `retryOn: [\"code:interrupted\"]` to repeat the step only after an interruption, `maxAttempts: 1` in \
             `{key}` to repeat it never, or `retryOn: [failed]`"
        ),
        _ if step.retry.retry_on.is_some() => format!("add `failed` to `retryOn` of `{key}`"),
        _ => {
            format!("add `retryOn: [failed]` to `{key}`, or `retryOn: [timeout, unavailable]` if only these are meant")
        }
    };
    report.warning(diagnostic::RETRY_DOES_NOT_APPLY, &path, message, help);
}

/// Returns the object and the key that give the policy, if it asks for more than one attempt.
fn written<'f>(fields: &'f Fields<'_>) -> Option<(&'f Fields<'f>, &'static str)> {
    let key = ["retry", "retryPolicy"].into_iter().find(|key| fields.has(key));
    let config = fields.get("config").filter(|config| config.get("maxAttempts").is_some());
    key.or(config.map(|_| "config")).map(|key| (fields, key))
}

/// True if the policy lists a class in which scripts fail, or the code of one of their failures.
fn is_meant(retry: &Retry) -> bool {
    let Some(listed) = &retry.retry_on else { return false };
    listed.iter().any(|matcher| match matcher {
        Matcher::Class(class) => OF_SCRIPTS.contains(class),
        Matcher::Code(_) => true,
    })
}

fn first_delay_ms(retry: &Retry) -> Option<u64> {
    match &retry.delay {
        Delay::Listed(delays) => delays.first().copied(),
        Delay::Formula { initial_ms, .. } => Some(*initial_ms),
    }
}
