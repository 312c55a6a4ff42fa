//! Lower bounds on every execution of a plan in which nothing fails. The compiler uses them to reject plans that exceed
//! their own limits or start each other forever.

use alloc::{collections::BTreeSet, vec, vec::Vec};

use crate::{
    condition::Condition,
    plan::{EdgeKind, Graph, OnError, Order, Over, Plan, Work},
};

/// Facts that hold for every execution of a part of a plan.
#[derive(Debug, Clone, Default)]
struct Part {
    /// The minimum number of step visits.
    visits: u64,
    /// Steps that start another execution and require its success.
    needed: BTreeSet<u32>,
    /// True if a `return` or a `bail` may end the execution before later steps run.
    may_end: bool,
}

impl Plan {
    /// Returns the minimum number of step visits of an execution in which nothing fails.
    pub fn visits_min(&self) -> u64 {
        certain(self).visits
    }

    /// Returns the steps that always start another execution and require its success.
    pub fn needed_starts(&self) -> BTreeSet<u32> {
        certain(self).needed
    }
}

/// Finds a cycle of workflows that always start each other and wait for the result, so that none of them can succeed.
/// Returns the names on the cycle; the first one is repeated at the end. `starts` returns the names that a workflow
/// always starts.
pub fn endless<'a>(
    names: impl IntoIterator<Item = &'a str>,
    starts: impl Fn(&str) -> Vec<&'a str>,
) -> Option<Vec<&'a str>> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        // The current path of the depth-first search: each name with its unvisited successors.
        let mut way: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut next = Some(name);
        loop {
            if let Some(name) = next.take().filter(|name| !done.contains(name)) {
                if let Some(begin) = way.iter().position(|(on_it, _)| *on_it == name) {
                    return Some(way[begin..].iter().map(|(name, _)| *name).chain([name]).collect());
                }
                way.push((name, starts(name)));
            }
            let Some((name, left)) = way.last_mut() else { break };
            next = left.pop();
            if next.is_none() {
                done.insert(name);
                way.pop();
            }
        }
    }
    None
}

/// Computes the facts from the inner blocks to the outer ones: inner blocks have higher numbers.
fn certain(plan: &Plan) -> Part {
    let mut parts = vec![Part::default(); plan.blocks.len()];
    for number in (0..plan.blocks.len()).rev() {
        let steps = &plan.blocks[number].steps;
        let of_steps = steps.iter().map(|step| of_step(plan, *step, &parts)).collect();
        parts[number] = match &plan.blocks[number].order {
            Order::Sequence => in_sequence(of_steps),
            Order::Parallel => beside_each_other(of_steps, |_| true),
            Order::Edges(graph) => {
                let begins = certainly_begin(graph, plan, steps);
                let mut part = beside_each_other(of_steps, |place| begins[place]);
                part.needed.retain(|step| !is_handled(graph, plan, steps, *step));
                part
            }
        };
    }
    parts.into_iter().next().unwrap_or_default()
}

fn in_sequence(steps: Vec<Part>) -> Part {
    let mut all = Part::default();
    for step in steps {
        if all.may_end {
            break;
        }
        all.visits = all.visits.saturating_add(step.visits);
        all.needed.extend(step.needed);
        all.may_end = step.may_end;
    }
    all
}

fn beside_each_other(steps: Vec<Part>, begins: impl Fn(usize) -> bool) -> Part {
    if steps.iter().any(|step| step.may_end) {
        return Part { may_end: true, ..Part::default() };
    }
    let begun = steps.into_iter().enumerate().filter(|(place, _)| begins(*place)).map(|(_, step)| step).collect();
    in_sequence(begun)
}

fn of_step(plan: &Plan, number: u32, parts: &[Part]) -> Part {
    let step = plan.step(number);
    let inside = |block: u32| parts[block as usize].clone();
    let branches = step.work.branches();
    let may_end = |part: &Part| part.may_end;
    let ends_inside = branches.iter().any(|(_, block)| parts[*block as usize].may_end);
    let inner = match &step.work {
        Work::Conditional { condition: Condition::Constant(true), then, .. } => inside(*then),
        Work::Conditional { condition: Condition::Constant(false), otherwise, .. } => {
            otherwise.map(inside).unwrap_or_default()
        }
        Work::Conditional { then, otherwise, .. } => {
            let (then, otherwise) = (inside(*then), otherwise.map(inside).unwrap_or_default());
            let may_end = may_end(&then) || may_end(&otherwise);
            Part { visits: then.visits.min(otherwise.visits), may_end, ..Part::default() }
        }
        Work::Parallel { block } => inside(*block),
        Work::Loop(of) if matches!(of.over, Over::Until { .. }) => inside(of.block),
        Work::Subworkflow { waits: true, .. } => Part { needed: BTreeSet::from([number]), ..Part::default() },
        _ => Part::default(),
    };
    let may_end = ends_inside || step.bail.is_some() || matches!(step.work, Work::Return { .. });
    if step.when.is_some() {
        return Part { may_end, ..Part::default() };
    }
    let is_needed = step.on_error == OnError::Fail && !plan.policy.fail_open;
    // A tolerated failure inside the step skips the steps after it, so they are not certain to run.
    let inner = if is_needed { inner } else { Part::default() };
    Part { visits: inner.visits.saturating_add(1), needed: inner.needed, may_end }
}

/// Returns, for each place of a block with edges, whether its step starts in every execution without failures.
fn certainly_begin(graph: &Graph, plan: &Plan, steps: &[u32]) -> Vec<bool> {
    let mut begins = vec![false; steps.len()];
    let (sorted, _) = graph.sorted();
    for place in sorted {
        let is_certain = |from: u32| begins[from as usize] && plan.step(steps[from as usize]).when.is_none();
        let follows = graph.incoming(place).iter().all(|edge| {
            let is_taken = matches!(edge.kind, EdgeKind::Always | EdgeKind::Ended | EdgeKind::OnSuccess);
            edge.condition.is_none() && is_taken && is_certain(edge.from)
        });
        begins[place as usize] = follows;
    }
    begins
}

/// True if an `on_failure` edge may handle a failure of the step or of a step around it.
fn is_handled(graph: &Graph, plan: &Plan, steps: &[u32], step: u32) -> bool {
    let around = core::iter::successors(Some(step), |step| plan.parent(*step));
    let places = around.filter_map(|step| steps.binary_search(&step).ok());
    places.into_iter().any(|place| graph.outgoing(place as u32).any(|(_, edge)| edge.kind == EdgeKind::OnFailure))
}
