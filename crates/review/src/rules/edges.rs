//! Edges: conditions, order, handled failures, and steps that clean up.

use super::{Sides, finding, quoted};
use crate::{
    change::translated,
    finding::{CLEANUP_REMOVED, CONDITION_CHANGED, FAILURE_TOLERATED, Finding, ORDER_CHANGED},
    outline::{EdgeIn, FINALLY, Node},
};

pub(super) fn find(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let Sides { old, new, pairs } = sides;
    for (index, node) in new.nodes.iter().enumerate() {
        let Some(before) = pairs.to_old[index].map(|before| &old.nodes[before]) else {
            handled(sides, &[], node, found);
            continue;
        };
        let known = translated(&before.edges, pairs);
        handled(sides, &known, node, found);
        if cleans_up(before) && !cleans_up(node) {
            let reason = format!("The step {} no longer runs after a failure.", quoted(&node.id));
            found.push(finding(&CLEANUP_REMOVED, node.path.clone(), reason));
        }
        let mut is_reordered = false;
        for edge in &node.edges {
            match known.iter().find(|known| same(known, edge)) {
                Some(known) if known != edge => {
                    let reason = format!("The condition of an edge to the step {} differs.", quoted(&node.id));
                    found.push(finding(&CONDITION_CHANGED, node.path.clone(), reason));
                }
                Some(_) => {}
                None => is_reordered = is_reordered || edge.kind != "ended",
            }
        }
        // An edge from a removed step is part of its removal.
        is_reordered = is_reordered
            || known.iter().any(|known| known.kind != "ended" && !node.edges.iter().any(|edge| same(known, edge)));
        if is_reordered || needs(sides.old, before) != needs(sides.new, node) {
            let reason = format!("The step {} waits for other steps.", quoted(&node.id));
            found.push(finding(&ORDER_CHANGED, sides.new.path_of(node, &["needs"]), reason));
        }
    }
    for (index, node) in old.nodes.iter().enumerate() {
        if pairs.to_new[index].is_none() && cleans_up(node) {
            let reason = format!("The step {}, which ran after a failure too, is gone.", quoted(&node.id));
            found.push(finding(&CLEANUP_REMOVED, node.path.clone(), reason));
        }
    }
}

fn same(one: &EdgeIn, other: &EdgeIn) -> bool {
    one.from == other.from && one.kind == other.kind
}

fn cleans_up(node: &Node) -> bool {
    node.branch == FINALLY || node.edges.iter().any(|edge| matches!(edge.kind.as_str(), "always" | "on_failure"))
}

fn needs<'c>(outline: &crate::outline::Outline<'c>, node: &Node) -> Option<&'c mainspring_kernel::value::Value> {
    outline.at(&node.path)?.get("needs")
}

/// Reports steps whose failure a new `on_failure` edge handles.
fn handled(sides: Sides<'_, '_>, known: &[EdgeIn], node: &Node, found: &mut Vec<Finding>) {
    let new =
        node.edges.iter().filter(|edge| edge.kind == "on_failure" && !known.iter().any(|known| same(known, edge)));
    for edge in new {
        let Some(source) = sides.pairs.to_old[edge.from] else { continue };
        let was_handled = sides.old.nodes.iter().flat_map(|node| &node.edges);
        if was_handled.filter(|edge| edge.kind == "on_failure").any(|edge| edge.from == source) {
            continue;
        }
        let source = quoted(&sides.new.nodes[edge.from].id);
        let reason = format!("A failure of the step {source} is handled and no longer fails the execution.");
        found.push(finding(&FAILURE_TOLERATED, node.path.clone(), reason));
    }
}
