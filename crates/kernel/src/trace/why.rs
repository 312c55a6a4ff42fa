//! Why a step instance had its turn, in words.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::Trace;
use crate::{
    instance::Instance,
    plan::{EdgeKind, Graph, Order, Over, Plan, Pull, SourceEnd, Work},
    state::Status,
};

/// What led to a step instance, when the trace so far is what was.
pub(super) fn why(trace: &Trace, plan: &Plan, instance: &Instance) -> String {
    let block = plan.block(plan.step(instance.step).block);
    let place = block.steps.binary_search(&instance.step).unwrap_or_default();
    let when = if plan.step(instance.step).when.is_some() { ", and its condition holds" } else { "" };
    let reason = match &block.order {
        Order::Edges(graph) => along_edges(trace, plan, instance, graph, place),
        Order::Parallel => format!("a branch of {}", owner(plan, instance)),
        Order::Sequence if place > 0 => format!("after {}", plan.id(block.steps[place - 1])),
        Order::Sequence => first(plan, instance),
    };
    reason + when
}

/// The first step of a block: because the block runs.
fn first(plan: &Plan, instance: &Instance) -> String {
    let Some(outer) = plan.parent(instance.step) else { return "the first step".to_string() };
    match (&plan.step(outer).work, instance.rounds.last()) {
        (Work::Loop(of), Some(round)) if matches!(of.over, Over::Items(_)) => {
            format!("item {round} of {}", owner(plan, instance))
        }
        (Work::Loop(_), Some(round)) => format!("round {round} of {}", owner(plan, instance)),
        (Work::Conditional { then, .. }, _) => {
            let answer = if plan.step(instance.step).block == *then { "holds" } else { "does not hold" };
            format!("the condition of {} {answer}", owner(plan, instance))
        }
        _ => format!("in {}", owner(plan, instance)),
    }
}

fn owner(plan: &Plan, instance: &Instance) -> String {
    instance.scope(plan).owner(plan).map_or_else(|| "the workflow".to_string(), |owner| owner.name(plan))
}

/// The edges that were taken. Whether the condition of one held is not asked again: one that led here did, or another.
fn along_edges(trace: &Trace, plan: &Plan, instance: &Instance, graph: &Graph, place: usize) -> String {
    let scope = instance.scope(plan);
    let block = plan.block(scope.block);
    let taken: Vec<String> = graph
        .incoming(place as u32)
        .iter()
        .filter_map(|edge| {
            let source = scope.instance(block.steps[edge.from as usize]);
            let row = &trace.attempts[*trace.last.get(&source)?];
            let end = match row.status {
                Status::Completed => SourceEnd::Completed,
                Status::Skipped => SourceEnd::Skipped,
                Status::Failed => SourceEnd::Handled,
                _ => SourceEnd::Cancelled,
            };
            let kind = if edge.kind == EdgeKind::Ended { "" } else { edge.kind.name() };
            let id = plan.id(source.step);
            (edge.kind.pull(end) == Pull::Takes).then(|| format!("{id} {kind}").trim_end().to_string())
        })
        .collect();
    if taken.is_empty() { "nothing comes before it".to_string() } else { format!("after {}", taken.join(", ")) }
}
