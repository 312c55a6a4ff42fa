//! Checks of a whole plan that need no input: it cannot finish within its own `maxSteps`, or it starts itself forever.

use alloc::format;

use super::report::{Report, named};
use crate::{
    diagnostic,
    document::Path,
    plan::{Plan, Work},
};

pub(super) fn check(plan: &Plan, paths: &[Path], report: &mut Report<'_>) {
    let visits = plan.visits_min();
    let default = plan.max_steps_default();
    let help = format!("raise maxSteps to {visits} or more, or split the workflow");
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
