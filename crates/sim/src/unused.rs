//! Scripted effects that nothing has called: most often a name with a slip in it, which a case that holds would hide.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{
    plan::{Plan, Work},
    state::{ExecutionStatus, Status},
    template::Template,
    value::Value,
};

use crate::{
    run::Finished,
    scenario::{Effects, Expect},
};

/// One line about the scripts that were of no use; nothing if all were. A script whose name nothing in the plan has is
/// always of no use. One that is only not called is of no use in a run to the good end: one that is denied, fails or waits
/// leaves out what would have followed, and so may steps that the case itself expects not to run. `came` is missing where
/// the run broke.
pub(crate) fn unused(
    plans: &[Arc<Plan>],
    effects: &Effects,
    came: Option<&Finished>,
    expect: &Expect,
) -> Option<String> {
    let known = callable(plans);
    let is_used = |name: &str| came.is_some_and(|came| came.scripts_used.contains(name));
    let left: Vec<&str> = effects.keys().map(String::as_str).filter(|name| !is_used(name)).collect();
    let (uncalled, unknown): (Vec<&str>, Vec<&str>) = left.into_iter().partition(|name| known.contains(name));
    let has_completed = came.is_some_and(|came| came.state.status() == ExecutionStatus::Completed);
    let uncalled: Vec<&str> =
        uncalled.into_iter().filter(|name| has_completed && !is_expected_unused(name, expect)).collect();
    let list = |names: Vec<&str>| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let groups = [
        (unknown, "no step that does work, no tool and no kind of effect has the name of"),
        (uncalled, "nothing called"),
    ];
    let said = groups.into_iter().filter(|(names, _)| !names.is_empty());
    let remarks: Vec<String> = said.map(|(names, words)| format!("{words} {}", list(names))).collect();
    (!remarks.is_empty()).then(|| format!("effects of no use: {}", remarks.join("; ")))
}

/// Every name that a script can have in some plans.
fn callable(plans: &[Arc<Plan>]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for step in plans.iter().flat_map(|plan| &plan.steps) {
        if let Work::Effect { effect, params } = &step.work {
            names.extend([step.id.as_str(), effect.as_str()]);
            names.extend(tool(params).filter(|_| effect == "tool"));
        }
    }
    names
}

/// The tool of an effect: a name, which never refers.
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
