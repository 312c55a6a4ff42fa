//! Mistakes in a scenario that a passing case would hide, most often a misspelled name: scripted effects that were never
//! called, and calls of tools that an agent does not list.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{
    definition::nearest,
    instance::Instance,
    plan::{Loop, Over, Plan, Work},
    record::Record,
    state::{ExecutionStatus, Status},
    template::Template,
    value::Value,
};

use crate::{
    fixture::Fixture,
    run::Finished,
    scenario::{Case, Expect},
};

/// Returns a line about unused scripts, if there are any. A script whose name does not occur in the plans is always
/// unused. One that was only not called counts only in a run that completed: a run that is denied, fails or waits
/// leaves out later steps, and so may steps that the case itself expects to be absent. `finished` is `None` if the run
/// violated a rule.
pub(crate) fn unused_effects(fixture: &Fixture, finished: Option<&Finished>, case: &Case) -> Option<String> {
    let (plans, expect) = (|| fixture.plans(), &case.expect);
    let known = callable(plans());
    // A name of one round or of one call is known, even if it was not reached.
    let is_known = |name: &str| known.contains(name) || plans().any(|plan| is_call(plan, name));
    let is_used = |name: &str| finished.is_some_and(|finished| finished.scripts_used.contains(name));
    let left: Vec<&str> = fixture.effects.own_names().filter(|name| !is_used(name)).collect();
    let (uncalled, unknown): (Vec<&str>, Vec<&str>) = left.into_iter().partition(|name| is_known(name));
    let has_completed = finished.is_some_and(|finished| finished.state.status() == ExecutionStatus::Completed);
    let uncalled: Vec<&str> =
        uncalled.into_iter().filter(|name| has_completed && !is_expected_unused(name, expect)).collect();
    let list = |names: Vec<&str>| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let groups = [
        (unknown.clone(), "no step that does work, no tool and no kind of effect has the name of"),
        (uncalled, "nothing called"),
    ];
    let said = groups.into_iter().filter(|(names, _)| !names.is_empty());
    let near: Vec<String> = unknown
        .iter()
        .filter_map(|name| Some(format!("{name:?} may mean {:?}", nearest(name, known.iter().copied())?)))
        .collect();
    let remarks: Vec<String> = said.map(|(names, words)| format!("{words} {}", list(names))).chain(near).collect();
    (!remarks.is_empty()).then(|| format!("effects of no use: {}", remarks.join("; ")))
}

/// Returns a line about scripted calls of tools that the agent does not list, unless the case expects their failure. The
/// agent continues after such a call, so a misspelled name would leave the case green.
pub(crate) fn unlisted_tools(finished: Option<&Finished>, expect: &Expect) -> Option<String> {
    let finished = finished?;
    let is_expected = |name: &str| expect.steps.get(name).is_some_and(|step| step.status == Some(Status::Failed));
    let mut found: BTreeSet<String> = BTreeSet::new();
    for record in finished.frames.iter().flat_map(|frame| &frame.records) {
        let Record::StepFailed { instance, fault, .. } = record else { continue };
        if fault.code == "tool_not_listed" && !is_expected(&instance.name(&finished.plan)) {
            found.extend(fault.text.value().get("message").and_then(Value::as_text).map(str::to_owned));
        }
    }
    (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join("; "))
}

/// True for the name of a step instance that makes a call, as `poll[0].state` or `agent#1.1`.
fn is_call(plan: &Plan, name: &str) -> bool {
    let is_it = |step: u32| matches!(plan.step(step).work, Work::Effect { .. }) || plan.agent_part(step).is_some();
    Instance::parse(name, plan).is_some_and(|instance| is_it(instance.step))
}

/// Lists all names that a script can have in some plans.
fn callable<'p>(plans: impl Iterator<Item = &'p Arc<Plan>>) -> BTreeSet<&'p str> {
    let mut names = BTreeSet::new();
    for step in plans.flat_map(|plan| &plan.steps) {
        if let Work::Effect { effect, params } = &step.work {
            names.extend([step.id.as_str(), step.work.kind()]);
            names.extend(tool(params).filter(|_| effect == "tool"));
        }
        if let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &step.work {
            names.extend([step.id.as_str(), "agent"]);
            names.extend(agent.tools.iter().map(String::as_str));
        }
    }
    names
}

/// Returns the tool of an effect: a literal name.
fn tool(params: &Template) -> Option<&str> {
    match params {
        Template::Literal(value) => value.get("tool").and_then(Value::as_text),
        Template::Map(fields) => fields.iter().find(|(key, _)| key == "tool").and_then(|(_, tool)| match tool {
            Template::Literal(tool) => tool.as_text(),
            _ => None,
        }),
        _ => None,
    }
}

fn is_expected_unused(name: &str, expect: &Expect) -> bool {
    let is_left_out =
        |status: Option<Status>| matches!(status, Some(Status::Skipped | Status::Pending | Status::Cancelled));
    let is_absent = expect.absent_steps.iter().any(|absent| absent == name);
    is_absent || expect.steps.get(name).is_some_and(|step| is_left_out(step.status))
}
