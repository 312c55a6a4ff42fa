//! Checks of a whole plan that need no input: it cannot finish within its own `maxSteps`, it starts itself forever, or it
//! names too many tools.

use alloc::{collections::BTreeSet, format};

use super::report::{Report, named};
use crate::{
    diagnostic,
    document::Path,
    effect_policy::Call,
    limits::{PLAN_TOOLS_MAX, TOOL_NAME_BYTES_MAX},
    plan::{Loop, Over, Plan, Work},
};

pub(super) fn check(plan: &Plan, paths: &[Path], report: &mut Report<'_>) {
    check_tools(plan, paths, report);
    let visits = plan.visits_min();
    let default = plan.max_steps_default();
    let help = format!("raise `constraints.maxSteps` to {visits} or more, or split the workflow");
    match plan.constraints.max_steps {
        Some(max_steps) if visits > u64::from(max_steps) => {
            let message =
                format!("at least {visits} steps run in every execution that succeeds, and maxSteps is {max_steps}");
            report.error(diagnostic::WRONG_VALUE, &Path::root().key("constraints").key("maxSteps"), message, help);
        }
        None if visits > u64::from(default) => {
            let message = format!(
                "at least {visits} steps run in every execution that succeeds, and without `constraints: {{maxSteps}}` at most {default} do"
            );
            report.warning(diagnostic::TOO_LARGE, &Path::root(), message, help);
        }
        _ => {}
    }
    let Some(name) = &plan.name else { return };
    let starts_itself =
        |step: &u32| matches!(&plan.step(*step).work, Work::Subworkflow { workflow, .. } if workflow == name);
    if let Some((step, path)) =
        plan.needed_starts().into_iter().find(starts_itself).and_then(|step| Some((step, paths.get(step as usize)?)))
    {
        let message = format!(
            "{} starts {} again and waits for it, whatever its input is: no execution can ever end well",
            named(plan.id(step)),
            named(name)
        );
        report.error(diagnostic::CYCLE, path, message, "put the step behind a condition that is false at some time");
    }
}

/// Checks the names of tools. A policy compares each of them with all of its rules.
fn check_tools(plan: &Plan, paths: &[Path], report: &mut Report<'_>) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (step, path) in plan.steps.iter().zip(paths) {
        let of_agent = match &step.work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.tools.as_slice(),
            _ => &[],
        };
        let of_step = match Call::of(&step.work) {
            Some(Call::Tool(name)) => Some(name),
            _ => None,
        };
        for name in of_step.into_iter().chain(of_agent.iter().map(|tool| tool.as_str())) {
            if name.len() > TOOL_NAME_BYTES_MAX {
                let message = format!("the name of a tool has {} bytes, more than {TOOL_NAME_BYTES_MAX}", name.len());
                report.error(diagnostic::TOO_LARGE, path, message, "write the name as its server lists it");
            } else if name.contains(|character: char| character.is_control() || character.is_whitespace()) {
                // A server that trims names would perform a call that the rules for the trimmed name forbid.
                let message = format!("the name of a tool, {}, has a space or a control character", named(name));
                report.error(diagnostic::WRONG_VALUE, path, message, "write the name as its server lists it");
            }
            names.insert(name);
        }
        if names.len() > PLAN_TOOLS_MAX {
            let message = format!("the steps up to this one name more than {PLAN_TOOLS_MAX} different tools");
            return report.error(diagnostic::TOO_LARGE, path, message, "divide the workflow into several");
        }
    }
}
