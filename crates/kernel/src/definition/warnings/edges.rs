//! Conditions of edges that decide nothing, because another edge into the node is always taken.

use alloc::{collections::BTreeSet, format};

use super::unreachable::constant;
use crate::{
    definition::{
        outline::Outline,
        report::{Report, named},
    },
    diagnostic,
    plan::{Block, Edge, EdgeKind, Graph, OnError, Order, Plan},
};

/// Reports each node with a conditional edge beside one that is always taken.
pub(super) fn check(plan: &Plan, outline: &Outline<'_>, report: &mut Report<'_>) {
    for block in &plan.blocks {
        let Order::Edges(graph) = &block.order else { continue };
        let edges = Edges { plan, block, graph };
        for (place, step) in block.steps.iter().enumerate() {
            let Some((asked, taken)) = edges.ignored(place as u32) else { continue };
            let id = |place: u32| named(&outline.entries[block.steps[place as usize] as usize].id);
            let entry = &outline.entries[*step as usize];
            let node = named(&entry.id);
            let message = format!(
                "the condition of the edge from {} never keeps {node} from running: {node} also has an edge from {} \
                 that is taken without a condition, and one taken edge suffices",
                id(asked.from),
                id(taken.from)
            );
            let help = format!("write the edge without `condition`, and the condition as `when` of {node}");
            report.warning(diagnostic::EDGE_CONDITION_IGNORED, &entry.fields.path, message, help);
        }
    }
}

struct Edges<'p> {
    plan: &'p Plan,
    block: &'p Block,
    graph: &'p Graph,
}

impl Edges<'_> {
    /// Returns an edge into a node whose condition decides nothing, and the edge that makes it so.
    fn ignored(&self, place: u32) -> Option<(&Edge, &Edge)> {
        let incoming = self.graph.incoming(place);
        let mut asked = incoming.iter().filter(|edge| edge.condition.as_ref().is_some_and(|it| constant(it).is_none()));
        asked.find_map(|asked| Some((asked, incoming.iter().find(|edge| self.is_enough(asked, edge))?)))
    }

    /// True if the second edge is taken, or prevents the node from running, in every execution in which the first one
    /// could be taken.
    fn is_enough(&self, asked: &Edge, other: &Edge) -> bool {
        if other.condition.is_some() {
            return false;
        }
        // After a failure, only edges that outlive it start a node, so a condition of such an edge decides about that.
        let decides_after_failure = asked.kind.outlives_failure() || self.follows_cleanup(asked.from);
        match other.kind {
            EdgeKind::Always => true,
            EdgeKind::Ended => !decides_after_failure,
            EdgeKind::OnSuccess => !decides_after_failure && !self.may_be_skipped(other.from, &mut BTreeSet::new()),
            EdgeKind::OnFailure | EdgeKind::Skip => false,
        }
    }

    /// True if a node can run while the execution is failing.
    fn follows_cleanup(&self, place: u32) -> bool {
        let (mut seen, mut next) = (BTreeSet::from([place]), alloc::vec![place]);
        while let Some(place) = next.pop() {
            for edge in self.graph.incoming(place) {
                if edge.kind.outlives_failure() {
                    return true;
                }
                if seen.insert(edge.from) {
                    next.push(edge.from);
                }
            }
        }
        false
    }

    /// True if a node can be skipped in an execution that does not fail. `sure` has the places that certainly are not.
    fn may_be_skipped(&self, place: u32, sure: &mut BTreeSet<u32>) -> bool {
        let (mut next, policy) = (alloc::vec![place], &self.plan.policy);
        while let Some(place) = next.pop() {
            if !sure.insert(place) {
                continue;
            }
            let step = self.plan.step(self.block.steps[place as usize]);
            if step.when.as_ref().is_some_and(|when| constant(when) != Some(true)) {
                return true;
            }
            for edge in self.graph.incoming(place) {
                let source = self.plan.step(self.block.steps[edge.from as usize]);
                let is_handled = || self.graph.outgoing(edge.from).any(|(_, edge)| edge.kind == EdgeKind::OnFailure);
                let is_certain = match edge.kind {
                    EdgeKind::Always => true,
                    _ if policy.fail_open || source.on_error != OnError::Fail || is_handled() => false,
                    EdgeKind::OnSuccess | EdgeKind::Ended => true,
                    EdgeKind::OnFailure | EdgeKind::Skip => false,
                };
                if edge.condition.is_some() || !is_certain {
                    return true;
                }
                next.push(edge.from);
            }
        }
        false
    }
}
