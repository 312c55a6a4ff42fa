//! Settings, branches and steps for the case that a gate is denied. A denial ends the execution as `cancelled`, so none of
//! them has an effect.

use alloc::format;

use crate::{
    condition::{Condition, Operator, Test},
    definition::{
        outline::Outline,
        report::{Report, named},
    },
    diagnostic,
    document::Path,
    plan::{EdgeKind, Order, Plan, Work},
    reference::{Part, Reference, Root},
    template::Template,
    value::Value,
};

/// The remedy, as it is in a definition.
const IN_FINALLY: &str = "in `finally`, with `when: {ref: \"@ctx.outcome\", eq: denied}`";

/// The word in the output of a gate that was approved.
pub(in crate::definition) const APPROVED: &str = "approve";

pub(super) fn check(plan: &Plan, outline: &Outline<'_>, report: &mut Report<'_>) {
    for (number, entry) in outline.entries.iter().enumerate() {
        let (step, path) = (&plan.steps[number], &entry.fields.path);
        if is_gate(plan, number as u32) && entry.fields.get("onError").and_then(Value::as_text) == Some("continue") {
            let message = format!(
                "`onError: continue` of {} does not apply to a denial: a denied gate ends the execution as `cancelled`",
                named(&entry.id)
            );
            let help = format!("put the steps for a denial {IN_FINALLY}");
            report.warning(diagnostic::DENIAL_NOT_CAUGHT, &path.key("onError"), message, help);
        }
        let Work::Conditional { condition, .. } = &step.work else { continue };
        let is_written = entry.fields.get("else").and_then(Value::as_list).is_some_and(|steps| !steps.is_empty());
        let gate = asks_for_approval(condition).filter(|gate| is_written && runs_before(plan, *gate, number as u32));
        if let Some(gate) = gate {
            warn(&format!("`else` of {}", named(&entry.id)), plan.id(gate), &path.key("else"), report);
        }
    }
    check_edges(plan, outline, report);
}

/// Reports steps after an `on_failure` edge from a gate.
fn check_edges(plan: &Plan, outline: &Outline<'_>, report: &mut Report<'_>) {
    let outer = plan.block(0);
    let Order::Edges(graph) = &outer.order else { return };
    for (place, step) in outer.steps.iter().enumerate() {
        let failures = graph.incoming(place as u32).iter().filter(|edge| edge.kind == EdgeKind::OnFailure);
        let gates = failures.map(|edge| outer.steps[edge.from as usize]).filter(|from| is_gate(plan, *from));
        for gate in gates {
            let entry = &outline.entries[*step as usize];
            warn(&format!("the edge to {}", named(&entry.id)), plan.id(gate), &entry.fields.path, report);
        }
    }
}

fn warn(part: &str, gate: &str, path: &Path, report: &mut Report<'_>) {
    let message =
        format!("{part} is not taken when {} is denied: a denied gate ends the execution as `cancelled`", named(gate));
    let help = format!("put the steps for a denial {IN_FINALLY}");
    report.warning(diagnostic::DENIAL_NOT_CAUGHT, path, message, help);
}

fn is_gate(plan: &Plan, step: u32) -> bool {
    matches!(plan.step(step).work, Work::Approval(_))
}

/// Returns the step whose decision a condition asks for, if it asks for an approval alone.
fn asks_for_approval(condition: &Condition) -> Option<u32> {
    let Condition::About(reference, Test::Compares(compares)) = condition else { return None };
    let [(Operator::Equal, Template::Literal(operand))] = compares.as_slice() else { return None };
    decision_of(reference).filter(|_| operand.as_text() == Some(APPROVED))
}

/// Returns the step whose field `decision` a reference reads.
pub(in crate::definition) fn decision_of(reference: &Reference) -> Option<u32> {
    match (reference.root, reference.path.as_slice()) {
        (Root::Step(step), [Part::Name(name)]) if name == "decision" => Some(step),
        _ => None,
    }
}

/// True if a gate runs for certain before a step, so that the step reads a decision and no null.
fn runs_before(plan: &Plan, gate: u32, step: u32) -> bool {
    let planned = plan.step(gate);
    let block = plan.block(planned.block);
    let is_unconditional = match &block.order {
        Order::Edges(graph) => {
            let place = block.steps.iter().position(|step| *step == gate).unwrap_or_default();
            graph.incoming(place as u32).is_empty()
        }
        _ => true,
    };
    let mut blocks = core::iter::successors(Some(plan.step(step).block), |block| {
        plan.block(*block).owner.map(|owner| plan.step(owner).block)
    });
    let is_around = blocks.any(|block| block == planned.block);
    is_gate(plan, gate) && planned.when.is_none() && is_unconditional && is_around
}
