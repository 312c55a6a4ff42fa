//! The remarks of a step: only deviations from the defaults, in short pieces.

use mainspring_kernel::{
    json::compact,
    limits::{
        AGENT_TIMEOUT_DEFAULT_MS, APPROVAL_TTL_DEFAULT_MS, CODE_TIMEOUT_DEFAULT_MS, HTTP_TIMEOUT_DEFAULT_MS,
        SHELL_TIMEOUT_DEFAULT_MS, TOOL_TIMEOUT_DEFAULT_MS,
    },
    plan::{
        Backoff, Constraints, Decision, Delay, Gate, Matcher, OnError, OnInterrupted, Order, Plan, Retry, Step,
        Verdict, Work,
    },
    reference::Reference,
};

use super::phrases::{duration, source};

/// Retries that the compiler gives to steps without a retry policy. A test compiles such a step and expects no
/// remark.
const ATTEMPTS_DEFAULT: u32 = 3;
const DELAYS_DEFAULT_MS: [u64; 2] = [10_000, 30_000];

/// The upper bound of growing delays that the compiler sets by default.
const DELAY_BOUND_DEFAULT_MS: u64 = 24 * 3_600_000;

/// The sources that a step reads, each once and in the order of the text: steps by their ids, and `@input` and the
/// like. Conditions are omitted, since their text names their sources.
pub(super) fn sources(step: &Step) -> Vec<String> {
    let mut found: Vec<&Reference> = Vec::new();
    if step.work.is_agent() || !matches!(step.work, Work::Conditional { .. } | Work::Loop(_)) {
        step.work.references(&mut found);
    }
    let mut seen = std::collections::BTreeSet::new();
    found.into_iter().map(source).filter(|source| seen.insert(source.clone())).collect()
}

/// The deviations of a step from the defaults. For a step with `forEach`, `worker` is the inner step; for others,
/// both are the same.
pub(super) fn deviations(plan: &Plan, step: &Step, worker: &Step) -> Vec<String> {
    let mut remarks = Vec::new();
    if worker.work.goes_out() || matches!(worker.work, Work::Code { .. }) {
        remarks.extend(worker.timeout_ms.filter(|ms| Some(*ms) != timeout_default_ms(&worker.work)).map(timeout));
        remarks.extend(retry(&worker.retry, matches!(plan.block(0).order, Order::Edges(_))));
    }
    if let Work::Signal { .. } = &worker.work {
        remarks.extend(worker.timeout_ms.map(timeout));
    }
    if let Work::Approval(gate) = &worker.work {
        remarks.extend(approvers(gate));
        remarks.extend(deadline(gate));
    }
    match step.on_error {
        OnError::Fail => {}
        OnError::Continue => remarks.push("on error: continue".into()),
    }
    match worker.on_interrupted {
        OnInterrupted::Retry => {}
        other => remarks.push(format!("if interrupted: {}", other.name())),
    }
    remarks.extend(worker.guard.map(|guard| match guard.verdict() {
        Verdict::Deny => format!("denied: {}", guard.class.name()),
        _ => format!("asks first: {}", guard.class.name()),
    }));
    remarks.extend(worker.transform.is_some().then(|| "transforms the result".into()));
    remarks.extend(worker.output_schema.is_some().then(|| "output is checked by a schema".into()));
    remarks.extend(worker.key_per_attempt.then(|| "a key for each attempt".into()));
    remarks.extend((step.priority != 0).then(|| format!("priority {}", step.priority)));
    remarks
}

/// The constraints that a plan sets for every execution.
pub(super) fn constraints(constraints: &Constraints) -> Vec<String> {
    let Constraints {
        max_steps,
        max_parallel,
        max_calls,
        max_executions,
        max_output_bytes,
        timeout_ms,
        budget,
        allow_self_modification,
    } = constraints;
    let mut remarks = Vec::new();
    remarks.extend(max_steps.map(|steps| format!("at most {}", counted(steps as usize, "step"))));
    remarks.extend(max_calls.map(|calls| format!("at most {}", counted(calls as usize, "call"))));
    remarks.extend(max_executions.map(|number| format!("starts at most {}", counted(number as usize, "execution"))));
    remarks.extend(max_output_bytes.map(|bytes| format!("outputs of at most {}", counted(bytes as usize, "byte"))));
    remarks.extend(max_parallel.map(|branches| format!("{branches} at a time")));
    remarks.extend(timeout_ms.map(|ms| format!("{} in all", duration(ms))));
    remarks.extend(budget.map(|budget| format!("budget {}", compact(&budget.limits.to_value()))));
    remarks.extend(allow_self_modification.then(|| "agents may propose changes".into()));
    remarks
}

/// `1 step`, `2 steps`.
pub(super) fn counted(count: usize, unit: &str) -> String {
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

fn timeout(ms: u64) -> String {
    format!("timeout {}", duration(ms))
}

fn timeout_default_ms(work: &Work) -> Option<u64> {
    match work {
        Work::Effect { effect, .. } => Some(match effect.as_str() {
            "bash" => SHELL_TIMEOUT_DEFAULT_MS,
            "tool" => TOOL_TIMEOUT_DEFAULT_MS,
            "http" => HTTP_TIMEOUT_DEFAULT_MS,
            _ => AGENT_TIMEOUT_DEFAULT_MS,
        }),
        Work::Code { .. } => Some(CODE_TIMEOUT_DEFAULT_MS),
        _ => None,
    }
}

/// The deviations of a retry policy: from the default of a sequence, or from one attempt where that is the default.
fn retry(retry: &Retry, is_one_usual: bool) -> Vec<String> {
    let Retry { max_attempts, delay, jitter_permille, retry_on, never_on } = retry;
    if *max_attempts <= 1 && is_one_usual {
        return Vec::new();
    }
    if *max_attempts <= 1 || retry_on.as_ref().is_some_and(Vec::is_empty) {
        return vec!["no retries".into()];
    }
    let attempts = counted(*max_attempts as usize, "attempt");
    let has_default_delay = *delay == Delay::Listed(DELAYS_DEFAULT_MS.to_vec());
    let mut remarks = Vec::new();
    if !has_default_delay || is_one_usual {
        remarks.push(format!("{attempts}, {}", delay_text(delay)));
    } else if *max_attempts != ATTEMPTS_DEFAULT {
        remarks.push(attempts);
    }
    if *jitter_permille > 0 {
        remarks.push(format!("up to {}% jitter", f64::from(*jitter_permille) / 10.0));
    }
    let listed = |matchers: &[Matcher]| matchers.iter().map(Matcher::word).collect::<Vec<_>>().join(", ");
    remarks.extend(retry_on.as_deref().map(|classes| format!("retries {}", listed(classes))));
    remarks.extend((!never_on.is_empty()).then(|| format!("never retries {}", listed(never_on))));
    remarks
}

fn delay_text(delay: &Delay) -> String {
    match delay {
        Delay::Listed(delays) if delays.is_empty() => "at once".into(),
        Delay::Listed(delays) => {
            format!("after {}", delays.iter().map(|ms| duration(*ms)).collect::<Vec<_>>().join(", "))
        }
        Delay::Formula { backoff, initial_ms, max_ms } => {
            let growth = match backoff {
                Backoff::Fixed => return format!("{} apart", duration(*initial_ms.min(max_ms))),
                Backoff::Linear => "growing",
                Backoff::Exponential => "doubling",
            };
            let has_bound = *max_ms != DELAY_BOUND_DEFAULT_MS;
            let bound = if has_bound { format!(" to {}", duration(*max_ms)) } else { String::new() };
            format!("{} {growth}{bound}", duration(*initial_ms))
        }
    }
}

fn approvers(gate: &Gate) -> Option<String> {
    match (gate.count, gate.approvers.as_slice()) {
        (0 | 1, []) => None,
        (0 | 1, people) => Some(format!("by {}", people.join(" or "))),
        (count, []) => Some(format!("by {count} people")),
        (count, people) => Some(format!("by {count} of {}", people.join(", "))),
    }
}

fn deadline(gate: &Gate) -> Option<String> {
    let end = match gate.on_timeout {
        Decision::Approve => "approved",
        Decision::Deny => "denied",
    };
    let is_default = gate.ttl_ms == APPROVAL_TTL_DEFAULT_MS && gate.on_timeout == Decision::Deny;
    (!is_default).then(|| format!("{end} after {}", duration(gate.ttl_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::failure::Class;

    #[test]
    fn retries() {
        let default = || Retry {
            max_attempts: ATTEMPTS_DEFAULT,
            delay: Delay::Listed(DELAYS_DEFAULT_MS.to_vec()),
            ..Retry::never()
        };
        let formula =
            |backoff, initial_ms, max_ms| Retry { delay: Delay::Formula { backoff, initial_ms, max_ms }, ..default() };
        let day_ms = DELAY_BOUND_DEFAULT_MS;
        for (policy, expected) in [
            (default(), &[][..]),
            (Retry::never(), &["no retries"]),
            (Retry { retry_on: Some(vec![]), ..default() }, &["no retries"]),
            (Retry { max_attempts: 5, ..default() }, &["5 attempts"]),
            (Retry { delay: Delay::Listed(vec![]), ..default() }, &["3 attempts, at once"]),
            (Retry { delay: Delay::Listed(vec![5, 1000]), ..default() }, &["3 attempts, after 5ms, 1s"]),
            (formula(Backoff::Fixed, 1000, day_ms), &["3 attempts, 1s apart"]),
            (formula(Backoff::Linear, 1000, day_ms), &["3 attempts, 1s growing"]),
            (formula(Backoff::Exponential, 1000, 60_000), &["3 attempts, 1s doubling to 1m"]),
            (Retry { jitter_permille: 125, ..default() }, &["up to 12.5% jitter"]),
            (
                Retry {
                    retry_on: Some(vec![Matcher::Class(Class::Timeout), Matcher::Class(Class::Failed)]),
                    never_on: vec![Matcher::Class(Class::Policy)],
                    ..default()
                },
                &["retries timeout, failed", "never retries policy"],
            ),
        ] {
            assert_eq!(retry(&policy, false), expected, "{policy:?}");
        }
    }
}
