//! Tests of failures: the steps that they halt and cancel, and the edges that handle them.

use super::check;

/// When the limit of failures is reached, all waiting steps are canceled in the same turn; later failures have no
/// further effect.
#[test]
fn the_bound_on_failures_counts_the_whole_execution_once() {
    check(
        "
        - id: all
          type: parallel
          steps:
            - id: left
              type: parallel
              steps:
                - {id: bad, type: tool, tool: T, onError: continue}
                - {id: slow, type: tool, tool: T, onError: continue}
            - {id: right, type: parallel, steps: [{id: nap, type: sleep, durationMs: 1000}]}
\npolicy: {maxNodeFailures: 1}",
        "
        0 start: Started, StepStarted all, StepStarted left, StepStarted right, StepStarted nap, WaitStarted nap, StepStarted bad, AttemptStarted bad#1, StepStarted slow, AttemptStarted slow#1
        1 bad#1 failed: StepFailed bad no, FailureBoundReached, StepCancelled nap sibling_failed, StepCancelled right sibling_failed
        2 slow#1 failed: StepFailed slow no, StepCancelled left sibling_failed, StepCancelled all sibling_failed, EndingBegun failed max_node_failures:1, Ended
        ",
    );
}

/// A step has exhausted its retries if it had several attempts and the last failure was retryable.
#[test]
fn only_retryable_failures_exhaust_attempts() {
    let steps = |retry: &str| {
        format!("- {{id: a, type: tool, tool: T, onError: continue{retry}}}\npolicy: {{maxRetriesExhausted: 1}}")
    };
    let begun = "0 start: Started, StepStarted a, AttemptStarted a#1";
    let once = steps(", retry: {maxAttempts: 1}");
    check(&once, &format!("{begun}\n1 a#1 down: StepFailed a down, EndingBegun completed, Ended"));
    let twice = steps(", retry: {maxAttempts: 2, initialDelayMs: 1000}");
    let again = format!("{begun}\n1 a#1 down: AttemptFailed a#1\n9000 a#2 due: AttemptStarted a#2");
    check(&twice, &format!("{begun}\n1 a#1 failed: StepFailed a no, EndingBegun completed, Ended"));
    check(&twice, &format!("{again}\n9001 a#2 failed: StepFailed a no, EndingBegun completed, Ended"));
    let reached = "StepFailed a down, FailureBoundReached, EndingBegun failed max_retries_exhausted:1, Ended";
    check(&twice, &format!("{again}\n9001 a#2 down: {reached}"));
}

const NAPS: &str = "
        - id: l
          type: loop
          onError: continue
          forEach: {ref: '@input', concurrency: 3}
          steps:
";

/// A failure that is contained in a block cancels the waiting steps of that block in the same round only.
#[test]
fn a_failure_in_one_round_cancels_nothing_of_another() {
    let steps = format!(
        "{NAPS}
            - id: p
              type: parallel
              onError: continue
              steps:
                - {{id: bad, type: tool, tool: T}}
                - {{id: nap, type: sleep, durationMs: 1000, when: {{ref: '@item', eq: 1}}}}
        "
    );
    check(
        &steps,
        "
        0 start of 1 1 1: Started, StepStarted l, RoundStarted l, StepStarted l[0].p, StepStarted l[0].nap, WaitStarted l[0].nap, RoundStarted l, StepStarted l[1].p, StepStarted l[1].nap, WaitStarted l[1].nap, RoundStarted l, StepStarted l[2].p, StepStarted l[2].nap, WaitStarted l[2].nap, StepStarted l[0].bad, AttemptStarted l[0].bad#1, StepStarted l[1].bad, AttemptStarted l[1].bad#1, StepStarted l[2].bad, AttemptStarted l[2].bad#1
        1 l[1].bad#1 failed: StepFailed l[1].bad no, StepCancelled l[1].nap sibling_failed, StepFailed l[1].p no, RoundEnded l
        ",
    );
    check(
        &steps,
        "
        0 start of 0 1: Started, StepStarted l, RoundStarted l, StepStarted l[0].p, StepSkipped l[0].nap, RoundStarted l, StepStarted l[1].p, StepStarted l[1].nap, WaitStarted l[1].nap, StepStarted l[0].bad, AttemptStarted l[0].bad#1, StepStarted l[1].bad, AttemptStarted l[1].bad#1
        1 l[0].bad#1 failed: StepFailed l[0].bad no, StepFailed l[0].p no, RoundEnded l
        ",
    );
}

/// The first failure that halts a loop cancels the waiting steps of all its rounds in the same turn.
#[test]
fn a_failure_that_stops_a_loop_cancels_waiting_steps_in_every_round() {
    let steps = format!(
        "{NAPS}
            - {{id: bad, type: tool, tool: T, when: {{ref: '@item', eq: 1}}}}
            - {{id: nap, type: sleep, durationMs: 1000}}
        "
    );
    check(
        &steps,
        "
        0 start of 0 1: Started, StepStarted l, RoundStarted l, StepSkipped l[0].bad, StepStarted l[0].nap, WaitStarted l[0].nap, RoundStarted l, StepStarted l[1].bad, AttemptStarted l[1].bad#1
        1 l[1].bad#1 failed: StepFailed l[1].bad no, StepCancelled l[0].nap sibling_failed, RoundEnded l, RoundEnded l, StepFailed l no, EndingBegun completed, Ended
        ",
    );
}

/// `needs` requires that its source has ended without failing the execution, in combination with any edges.
#[test]
fn a_step_after_a_handled_failure_starts() {
    check(
        "
        - {id: a, type: tool, tool: T}
        - {id: fix, type: tool, tool: T}
        - {id: after, type: tool, tool: T, needs: [a]}
\norder: edges\nedges: [{from: a, to: fix, when: on_failure}]",
        "
        0 start: Started, StepStarted a, AttemptStarted a#1
        1 a#1 failed: StepFailed a no, StepStarted fix, AttemptStarted fix#1, StepStarted after, AttemptStarted after#1
        ",
    );
    check(
        "
        - {id: a, type: tool, tool: T}
        - {id: b, type: tool, tool: T}
        - {id: after, type: tool, tool: T, needs: [a]}
\norder: edges\nedges: [{from: b, to: after, when: always}]",
        "
        0 start: Started, StepStarted a, AttemptStarted a#1, StepStarted b, AttemptStarted b#1
        1 a#1 failed: StepFailed a no
        2 b#1 done: StepCompleted b, StepSkipped after, EndingBegun failed no, Ended
        ",
    );
}

/// An unreadable condition of a failure edge fails the target of the edge.
#[test]
fn a_failure_edge_that_cannot_be_read_fails_its_target() {
    check(
        "
        - {id: a, type: tool, tool: T}
        - {id: fix, type: tool, tool: T}
\norder: edges\nedges: [{from: a, to: fix, when: on_failure, condition: {ref: '@input.no', gt: 1}}]",
        "
        0 start: Started, StepStarted a, AttemptStarted a#1
        1 a#1 failed: StepFailed a no, StepFailed fix condition_unreadable, EndingBegun failed no, Ended
        ",
    );
}

/// Both steps may be retried while one call is left; the one that is due first gets it.
#[test]
fn a_retry_repeats_the_call_of_the_first_attempt() {
    let retry = "retry: {maxAttempts: 2, initialDelayMs: 1000}";
    check(
        &format!(
            "
        - id: all
          type: parallel
          steps:
            - {{id: a, type: tool, tool: T, {retry}}}
            - {{id: b, type: tool, tool: T, {retry}}}
\nconstraints: {{maxCalls: 3}}"
        ),
        "
        0 start: Started, StepStarted all, StepStarted a, AttemptStarted a#1, StepStarted b, AttemptStarted b#1
        1 a#1 down: AttemptFailed a#1
        2 b#1 down: AttemptFailed b#1
        9000 a#2 due: AttemptStarted a#2
        9001 b#2 due: EndingBegun failed max_calls_exceeded:3, StepCancelled b execution_ending
        ",
    );
}
