//! Tests of parent and child executions.

use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
    input::{Input, Parent, Start},
    instance::Instance,
    key::ExecutionKey,
    state::State,
    value::Value,
};

use super::{KEY, check, fresh, start_among, take_in};

/// The trigger of a child names the organization and the type of initiator of its parent, and no other key.
#[test]
fn a_child_has_the_organization_of_its_parent() {
    let said = |trigger: Value| {
        let mut state = fresh(KEY, "  - {id: sub, type: subworkflow, workflow: other}");
        let began = Start { trigger, ..*start_among(0, None) };
        let turn = take_in(&mut state, &Input::Start(Box::new(began)), 1);
        let [letter] = &turn.messages[..] else { panic!("{:?}", turn.messages) };
        let Input::Start(child) = &letter.input else { panic!("{letter:?}") };
        let Value::Map(trigger) = &child.trigger else { panic!("{child:?}") };
        let mut keys: Vec<String> = trigger.keys().cloned().collect();
        keys.retain(|key| !["parentExecutionId", "parentStepId", "rootExecutionKey", "type"].contains(&key.as_str()));
        keys.iter().map(|key| format!("{key} {}", trigger[key].as_text().unwrap_or("-"))).collect::<Vec<_>>()
    };
    assert!(said(Value::map([("type", "manual".into())])).is_empty());
    let words = ["organizationId", "initiatorType", "workflowId", "triggerId", "idempotencyKey"];
    let trigger = Value::map(words.map(|word| (word, word.to_uppercase().into())));
    assert_eq!(said(trigger), ["initiatorType INITIATORTYPE", "organizationId ORGANIZATIONID"]);
}

#[test]
fn a_child_has_the_depth_of_its_parent_plus_one() {
    for depth in [0, 1, 4] {
        let mut state = fresh(KEY, "- {id: sub, type: subworkflow, workflow: other}");
        let turn = take_in(&mut state, &Input::Start(start_among(depth, None)), 0);
        let [letter] = &turn.messages[..] else { panic!("{:?}", turn.messages) };
        let Input::Start(child) = &letter.input else { panic!("{letter:?}") };
        assert_eq!(child.lineage.as_ref().map(|lineage| lineage.depth), Some(depth + 1));
    }
}

/// The latest notice of a child about waiting for people counts, once, while its attempt is open and not stopping.
#[test]
fn a_childs_result_counts_while_its_attempt_is_open() {
    check(
        "
        - id: all
          type: parallel
          steps:
            - {id: sub, type: subworkflow, workflow: other}
            - {id: work, type: tool, tool: WORK}
        ",
        "
        0 start parent: Started, LineageSet, StepStarted all, StepStarted sub, AttemptStarted sub#1, ExecutionsGiven sub, StepStarted work, AttemptStarted work#1
        1 sub#1 waits 1: ChildWaits sub
        2 sub#1 waits 1: nothing
        3 sub#2 waits 2: nothing
        4 work#1 waits 1: nothing
        5 sub#1 waits 3: ChildWaits sub
        6 sub#1 waits 2: nothing
        7 cancel user: CancelRequested, EndingBegun cancelled user, AttemptStopping sub#1, AttemptStopping work#1
        8 sub#1 waits 4: nothing
        ",
    );
}

/// For a root execution the caller has applied the constraints of the definition; for a child `decide` applies them.
#[test]
fn the_bounds_of_a_child_are_those_of_its_definition() {
    for (depth, max_steps) in [(0, 50), (1, 7)] {
        let mut state = fresh(KEY, "- {id: a, type: tool, tool: T}\nconstraints: {maxSteps: 7}");
        take_in(&mut state, &Input::Start(start_among(depth, None)), 0);
        let policy = state.start.expect("it has begun").policy;
        assert_eq!((policy.max_steps, policy.max_parallel), (max_steps, 4), "{depth} above it");
    }
}

/// Version 1 reported the cancellation of a child to its parent as a failure.
#[test]
fn a_child_reports_its_cancel_by_its_own_decide_version() {
    let failed = "the workflow that was started was cancelled: user";
    for (version, expected) in [
        (1, Outcome::Failed(Failure::new(Class::Cancelled, "user", failed))),
        (2, Outcome::Cancelled("user".into())),
        (3, Outcome::Cancelled("user".into())),
    ] {
        let mut state = State { decide_version: version, ..fresh(KEY, "- {id: nap, type: sleep, durationMs: 1000}") };
        let parent = Parent { execution: ExecutionKey([8; 16]), instance: Instance::of_step(0), attempt: 1 };
        take_in(&mut state, &Input::Start(start_among(1, Some(parent))), 0);
        let turn = take_in(&mut state, &Input::Cancel { reason: "user".into(), by: "ann".into() }, 1);
        let [letter] = &turn.messages[..] else { panic!("{:?}", turn.messages) };
        let Input::Receipt { outcome, .. } = &letter.input else { panic!("{letter:?}") };
        assert_eq!(*outcome, expected, "version {version}");
    }
}

/// A denial in a child cancels its parent. Any other cancellation of a child fails the step of the parent, and the
/// parent may continue.
#[test]
fn a_cancel_of_a_child_is_a_failure_unless_it_was_denied() {
    let steps = "- {id: sub, type: subworkflow, workflow: other}";
    let begun = "0 start parent: Started, LineageSet, StepStarted sub, AttemptStarted sub#1, ExecutionsGiven sub";
    for (reason, decided) in [
        ("user", "StepFailed sub user, EndingBegun failed user, Ended"),
        ("approval_denied", "StepCancelled sub approval_denied, EndingBegun cancelled approval_denied, Ended"),
        ("approval_timeout", "StepCancelled sub approval_timeout, EndingBegun cancelled approval_timeout, Ended"),
    ] {
        check(steps, &format!("{begun}\n1 sub#1 cancelled {reason}: ExecutionsReturned sub, {decided}"));
    }
}
