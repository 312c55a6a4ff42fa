//! Approvals: removed, moved behind a call that they guarded, or skippable.

use super::{Sides, finding, quoted};
use crate::{
    finding::{EFFECT_UNGATED, Finding, GATE_BYPASSED, GATE_MOVED, GATE_REMOVED, NOT_COMPARED},
    guards::gates_before,
};
use mainspring_kernel::document::Path;

pub(super) fn find(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let Sides { old, new, pairs } = sides;
    let removed = |gate: usize| pairs.to_new[gate].is_none_or(|after| !new.nodes[after].is_gate());
    for (gate, node) in old.nodes.iter().enumerate().filter(|(gate, node)| node.is_gate() && removed(*gate)) {
        debug_assert!(removed(gate));
        let reason = format!("The approval {} is gone.", quoted(&node.id));
        found.push(finding(&GATE_REMOVED, node.path.clone(), reason));
    }
    let (Some(before), Some(after)) = (gates_before(old), gates_before(new)) else {
        found.push(finding(
            &NOT_COMPARED,
            Path::root(),
            "The gates are too many to compare with the calls behind them.",
        ));
        return;
    };
    let calls = |(from, to): &(usize, usize)| old.nodes[*from].goes_out() && new.nodes[*to].goes_out();
    let calls: Vec<(usize, usize)> = pairs.matched().filter(calls).collect();
    for (gate, node) in old.nodes.iter().enumerate().filter(|(gate, node)| node.is_gate() && !removed(*gate)) {
        let Some(now) = pairs.to_new[gate] else { continue };
        let (mut lost, mut weakened) = (Vec::new(), Vec::new());
        for (from, to) in &calls {
            match (before[*from].get(&gate), after[*to].get(&now)) {
                (Some(_), None) => lost.push(*to),
                (Some(true), Some(false)) => weakened.push(*to),
                _ => {}
            }
        }
        let (path, id) = (&new.nodes[now].path, quoted(&node.id));
        if !lost.is_empty() {
            let reason = format!("{} no longer waits for the approval {id}.", names(sides, &lost));
            found.push(finding(&GATE_MOVED, path.clone(), reason));
        }
        if !weakened.is_empty() {
            let reason =
                format!("The approval {id} can be skipped, and {} runs without it then.", names(sides, &weakened));
            found.push(finding(&GATE_BYPASSED, path.clone(), reason));
        }
    }
    let is_guarded = |gates: &crate::guards::Gates| gates.values().any(|is_strong| *is_strong);
    let mut old_calls = (0..old.nodes.len()).filter(|step| old.nodes[*step].goes_out()).peekable();
    if old_calls.peek().is_none() || !old_calls.all(|step| is_guarded(&before[step])) {
        return;
    }
    for (step, node) in new.nodes.iter().enumerate().filter(|(step, _)| pairs.to_old[*step].is_none()) {
        if node.goes_out() && !is_guarded(&after[step]) {
            let reason =
                format!("The new call {} runs without an approval, and each other call has one.", quoted(&node.id));
            found.push(finding(&EFFECT_UNGATED, node.path.clone(), reason));
        }
    }
}

/// Names up to three calls.
fn names(sides: Sides<'_, '_>, steps: &[usize]) -> String {
    let shown: Vec<String> = steps.iter().take(3).map(|step| quoted(&sides.new.nodes[*step].id)).collect();
    let more = steps.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
