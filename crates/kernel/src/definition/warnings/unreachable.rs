//! Steps that never run, because a condition is constant or a `return` precedes them.

use alloc::format;

use crate::{
    condition::Condition,
    definition::{
        outline::{Entry, Outline, Role},
        report::{Report, named},
    },
    diagnostic,
    plan::{OnError, Order, Plan, Step, Work},
    value::Value,
};

/// Reports conditions of a step whose answer is written in the definition, if steps depend on the other answer.
pub(super) fn check_conditions(step: &Step, entry: &Entry<'_>, report: &mut Report<'_>) {
    if matches!(entry.role, Role::Agent(_)) {
        return;
    }
    let (path, id) = (&entry.fields.path, named(&entry.id));
    if step.when.as_ref().and_then(constant) == Some(false) {
        let message = format!("{id} never runs: its `when` is always false");
        report.warning(diagnostic::STEP_NEVER_RUNS, &path.key("when"), message, "take the step out, or `when`");
    }
    let Work::Conditional { condition, .. } = &step.work else { return };
    let Some(answer) = constant(condition) else { return };
    let (word, other) = if answer { ("true", "else") } else { ("false", "then") };
    let is_written = entry.fields.get(other).and_then(Value::as_list).is_some_and(|steps| !steps.is_empty());
    if is_written {
        let message = format!("`{other}` of {id} never runs: its `condition` is always {word}");
        let help = format!("take `{other}` out, or write a condition that refers");
        report.warning(diagnostic::STEP_NEVER_RUNS, &path.key("condition"), message, help);
    }
}

/// Reports the first step of a sequence behind a step that always ends the execution.
pub(super) fn check_blocks(plan: &Plan, outline: &Outline<'_>, report: &mut Report<'_>) {
    for block in plan.blocks.iter().filter(|block| matches!(block.order, Order::Sequence)) {
        let Some(at) = block.steps.iter().position(|step| ends_all(plan.step(*step))) else { continue };
        let Some(next) = block.steps.get(at + 1) else { continue };
        let (last, next) = (plan.step(block.steps[at]), &outline.entries[*next as usize]);
        let how = if matches!(last.work, Work::Return { .. }) { "returns" } else { "has `bail: true`" };
        let message = format!("{} never runs: {} {how} before it in every case", named(&next.id), named(&last.id));
        let help = format!("move it before {}, or give that step a `when`", named(&last.id));
        report.warning(diagnostic::STEP_NEVER_RUNS, &next.fields.path, message, help);
    }
}

fn ends_all(step: &Step) -> bool {
    let is_certain = step.when.as_ref().is_none_or(|when| constant(when) == Some(true));
    let ends = matches!(step.work, Work::Return { .. }) || step.bail == Some(Condition::Constant(true));
    is_certain && ends && step.on_error == OnError::Fail
}

/// Returns the answer of a condition that refers to nothing.
pub(super) fn constant(condition: &Condition) -> Option<bool> {
    match condition {
        Condition::Constant(answer) => Some(*answer),
        Condition::All(parts) => decided(parts, false),
        Condition::Any(parts) => decided(parts, true),
        Condition::Not(part) => constant(part).map(|answer| !answer),
        Condition::About(..) | Condition::Variable(..) => None,
    }
}

/// Returns the answer of `all` (`by` is false) or `any` (`by` is true): one part with the answer `by` decides.
fn decided(parts: &[Condition], by: bool) -> Option<bool> {
    if parts.iter().any(|part| constant(part) == Some(by)) {
        return Some(by);
    }
    parts.iter().all(|part| constant(part) == Some(!by)).then_some(!by)
}
