//! References to a node of a graph or dataflow that may have failed when they are read.
//!
//! An edge that needs the success of its source keeps the target from running, so only the other edges from the node to the
//! reader count: `needs`, a reference in a dataflow, `always` and `on_failure`.

use alloc::vec::Vec;

use super::presence::{Null, tolerates};
use crate::{
    definition::{
        edges::{Edges, place_around},
        outline::Role,
        references::Reader,
    },
    plan::EdgeKind,
    value::Value,
};

/// Step types whose failure ends the execution in any case, or that have no output below which a path could lead.
const WITHOUT_FAILURE: [&str; 4] = ["approval", "sleep", "return", "signal"];

impl Reader<'_, '_> {
    /// Returns the reason for which a node may have failed when the current step, or `output`, reads it.
    pub(super) fn failed_before(&self, target: u32) -> Option<Null> {
        let (edges, entry) = (self.edges?, &self.outline.entries[target as usize]);
        let kind = entry.kind.filter(|kind| !WITHOUT_FAILURE.contains(&kind.name))?;
        if entry.block != 0 || !matches!(entry.role, Role::Whole | Role::Each) || kind.is_container() {
            return None;
        }
        let from = place_around(target, self.outline)?;
        if self.at_end_of_all {
            return self.failed_before_output(edges, from, target);
        }
        let to = place_around(self.number, self.outline).filter(|_| self.at_edge.is_none())?;
        let direct: Vec<_> = edges.incoming[to as usize].iter().filter(|edge| edge.from == from).collect();
        if direct.iter().any(|edge| edge.kind == EdgeKind::OnSuccess || edge.condition.is_some()) {
            return None;
        }
        let has = |kind: EdgeKind| direct.iter().any(|edge| edge.kind == kind);
        if has(EdgeKind::OnFailure) || has(EdgeKind::Always) {
            return Some(Null::Outlived(target));
        }
        let waits = edges.by_reference || has(EdgeKind::Ended);
        if waits && tolerates(entry) {
            return Some(Null::Tolerated(target));
        }
        (waits && self.is_handled(edges, from)).then_some(Null::Handled(target))
    }

    fn failed_before_output(&self, edges: &Edges<'_>, from: u32, target: u32) -> Option<Null> {
        let policy = self.report.document().value.get("policy");
        let is_open = policy.and_then(|policy| policy.get("failOpen")).and_then(Value::as_bool) == Some(true);
        match (tolerates(&self.outline.entries[target as usize]), is_open) {
            (true, _) => Some(Null::Tolerated(target)),
            (_, true) => Some(Null::Open(target)),
            _ => self.is_handled(edges, from).then_some(Null::Handled(target)),
        }
    }

    /// True if an `on_failure` edge handles a failure of a node, and no step that then runs may end the execution itself.
    fn is_handled(&self, edges: &Edges<'_>, from: u32) -> bool {
        let outer = &self.outline.blocks[0].steps;
        let handlers =
            edges.incoming.iter().enumerate().filter(|(_, incoming)| {
                incoming.iter().any(|edge| edge.from == from && edge.kind == EdgeKind::OnFailure)
            });
        let handlers: Vec<u32> = handlers.map(|(place, _)| place as u32).collect();
        let follows = |place: u32| {
            handlers.contains(&place) || handlers.iter().any(|handler| edges.ways.lead(*handler, place, &mut 0))
        };
        let may_end = |step: u32| {
            let inside = self.outline.entries.iter().enumerate().skip(step as usize);
            let mut inside =
                inside.take_while(|(inner, _)| self.outline.way_up(*inner as u32).any(|(_, around)| around == step));
            inside.any(|(_, entry)| {
                let ends = entry.kind.is_none_or(|kind| kind.name == "return") || entry.fields.has("bail");
                // A script that ends with `exit 1` fails the execution on purpose.
                let script = entry.fields.get("command").and_then(Value::as_text).unwrap_or_default();
                ends || script.contains("exit ")
            })
        };
        !handlers.is_empty() && !outer.iter().enumerate().any(|(place, step)| follows(place as u32) && may_end(*step))
    }
}
