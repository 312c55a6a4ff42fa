//! Explains in words why a step instance started or was skipped.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::History;
use crate::{
    failure::{Class, Failure},
    instance::Instance,
    plan::{Edge, EdgeKind, Graph, Matcher, OnInterrupted, Order, Over, Plan, Pull, Retry, SourceEnd, Work},
    record::FailureDisposition,
    state::Status,
};

/// Explains why a step instance starts, given the history up to its start.
pub(super) fn why(history: &History, plan: &Plan, instance: &Instance) -> String {
    let block = plan.block(plan.step(instance.step).block);
    let place = block.steps.binary_search(&instance.step).unwrap_or_default();
    let when = if plan.step(instance.step).when.is_some() { ", and its condition holds" } else { "" };
    let reason = match &block.order {
        Order::Edges(graph) => along_edges(history, plan, instance, graph, place),
        Order::Parallel => format!("a branch of {}", owner(plan, instance)),
        Order::Sequence if place > 0 => format!("after {}", plan.id(block.steps[place - 1])),
        Order::Sequence => first(plan, instance),
    };
    reason + when
}

/// Explains the start of a block's first step by the start of the block.
fn first(plan: &Plan, instance: &Instance) -> String {
    let Some(outer) = plan.parent(instance.step) else {
        let is_cleanup = plan.is_in_finally(instance.step);
        return if is_cleanup { "the first step of `finally`" } else { "the first step" }.to_string();
    };
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

/// Lists the taken edges. Their conditions are not evaluated again, so an edge whose condition was false may be listed
/// beside one that was taken.
fn along_edges(history: &History, plan: &Plan, instance: &Instance, graph: &Graph, place: usize) -> String {
    let ends = ends(history, plan, instance, graph, place);
    let taken: Vec<String> = ends
        .filter(|(_, edge, end)| edge.kind.pull(*end) == Pull::Takes)
        .map(|(id, edge, _)| {
            let kind = if edge.kind == EdgeKind::Ended { "" } else { edge.kind.name() };
            format!("{id} {kind}").trim_end().to_string()
        })
        .collect();
    if taken.is_empty() { "nothing comes before it".to_string() } else { format!("after {}", taken.join(", ")) }
}

/// Explains why no edge leads to a step instance, as a suffix of that sentence: the blocking edges, or else the end of
/// each source.
pub(super) fn why_not(history: &History, plan: &Plan, instance: &Instance) -> String {
    let block = plan.block(plan.step(instance.step).block);
    let place = block.steps.binary_search(&instance.step).unwrap_or_default();
    let Order::Edges(graph) = &block.order else { return String::new() };
    let ends: Vec<_> = ends(history, plan, instance, graph, place).collect();
    let is_block = |end: &&(&str, &Edge, SourceEnd)| end.1.kind.pull(end.2) == Pull::Blocks;
    let is_blocked = ends.iter().any(|end| is_block(&end));
    let listed = ends.iter().filter(|end| !is_blocked || is_block(end));
    let mut words: Vec<String> = listed.map(|(id, edge, end)| what_became(id, edge, *end)).collect();
    words.dedup();
    let others = words.len().saturating_sub(EDGES_NAMED_MAX);
    words.truncate(EDGES_NAMED_MAX);
    match (words.is_empty(), others) {
        (true, _) => String::new(),
        (_, 0) => format!(": {}", words.join(", ")),
        _ => format!(": {}, and {others} more", words.join(", ")),
    }
}

/// Explains why a failed attempt of a step that does work was its last one; `None` for other steps. The plan and the
/// failure decide, except for bounds of the execution, which a start may narrow.
pub(super) fn why_not_retried(plan: &Plan, instance: &Instance, failure: &Failure, attempt: u32) -> Option<String> {
    let step = plan.step(instance.step);
    let is_work = matches!(step.work, Work::Effect { .. } | Work::Code { .. } | Work::Subworkflow { .. });
    if !is_work || attempt == 0 {
        return None;
    }
    let retry = &step.retry;
    let is_interruption = failure.code == INTERRUPTED;
    let listed = |matchers: &[Matcher]| matchers.iter().map(Matcher::word).collect::<Vec<_>>().join(", ");
    let why = match &retry.retry_on {
        _ if is_interruption && step.on_interrupted == OnInterrupted::Fail => "`onInterrupted` is fail".into(),
        _ if attempt >= retry.max_attempts => {
            format!(
                "{attempt} of {} {} used",
                retry.max_attempts,
                if retry.max_attempts == 1 { "attempt" } else { "attempts" }
            )
        }
        Some(retry_on) if !retry.wants(failure) && !refuses(retry, failure) => {
            format!("class {} is not among retryOn ({})", failure.class.name(), listed(retry_on))
        }
        None if !failure.class.is_retryable() => {
            let all = Class::ALL.iter().filter(|class| class.is_retryable()).map(|class| class.name());
            let all = all.collect::<Vec<_>>().join(", ");
            format!("class {} is not among retryOn, which is {all} by default", failure.class.name())
        }
        _ if refuses(retry, failure) => format!("neverOn has {}", listed(&retry.never_on)),
        _ => "the next attempt would begin after the execution's deadline, or beyond its calls, or the execution ends"
            .into(),
    };
    Some(format!("not retried: {why}"))
}

/// True if `neverOn` excludes a failure.
fn refuses(retry: &Retry, failure: &Failure) -> bool {
    let only = Retry { retry_on: Some(retry.never_on.clone()), never_on: Vec::new(), ..retry.clone() };
    only.wants(failure)
}

/// The code of an attempt whose process died.
const INTERRUPTED: &str = "interrupted";

/// Maximum number of edges in one explanation.
const EDGES_NAMED_MAX: usize = 4;

/// Explains why an edge was not taken, given the end of its source.
fn what_became(id: &str, edge: &Edge, end: SourceEnd) -> String {
    match (edge.kind.pull(end), end) {
        // The edge was not taken although its kind matches the end, so its condition was false.
        (Pull::Takes, _) => format!("the condition of the edge from `{id}` does not hold"),
        (_, SourceEnd::Completed) if edge.kind == EdgeKind::Skip => format!("`{id}` was not skipped"),
        (_, SourceEnd::Completed) => format!("`{id}` did not fail"),
        (_, SourceEnd::Failed | SourceEnd::Tolerated | SourceEnd::Handled) => format!("`{id}` failed"),
        (_, SourceEnd::Skipped) => format!("`{id}` was skipped"),
        (_, SourceEnd::Cancelled) => format!("`{id}` was cancelled"),
    }
}

/// Returns the edges into a step instance, each with its source step and the end of that step.
fn ends<'a>(
    history: &'a History,
    plan: &'a Plan,
    instance: &Instance,
    graph: &'a Graph,
    place: usize,
) -> impl Iterator<Item = (&'a str, &'a Edge, SourceEnd)> {
    let scope = instance.scope(plan);
    let steps = &plan.block(scope.block).steps;
    graph.incoming(place as u32).iter().filter_map(move |edge| {
        let source = scope.instance(steps[edge.from as usize]);
        let (_, status) = history.last.get(&source)?;
        let end = match status {
            Status::Completed => SourceEnd::Completed,
            Status::Skipped => SourceEnd::Skipped,
            Status::Failed => match history.dispositions.get(&source) {
                Some(FailureDisposition::Tolerated) => SourceEnd::Tolerated,
                Some(FailureDisposition::Handled) => SourceEnd::Handled,
                Some(FailureDisposition::Failed) | None => SourceEnd::Failed,
            },
            _ => SourceEnd::Cancelled,
        };
        Some((plan.id(source.step), edge, end))
    })
}
