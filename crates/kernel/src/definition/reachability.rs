//! Reachability between steps along edges.
//!
//! A plan has one such query for each reference, and a graph search for each would take quadratic time. Most queries
//! need no search: a direct edge, a spanning forest, or the depth of the steps answers them. The rest are searched,
//! only in the part of the graph that can contain the answer.

use alloc::{collections::BTreeSet, vec, vec::Vec};

/// The maximum number of steps visited by all searches of one definition.
pub(super) const VISITS_MAX: usize = 5_000_000;

/// The edges between the steps of the outermost block, by place.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// The sources of the edges into each place.
    incoming: Vec<Vec<u32>>,
    /// All edges.
    direct: BTreeSet<(u32, u32)>,
    /// The number of edges on the longest path to each place; [`ON_CIRCLE`] for places on a cycle and behind one.
    depth: Vec<u32>,
    /// Entry and exit times in a spanning forest with one incoming edge per place: a place is a descendant of another
    /// if its interval lies within the other's.
    span: Vec<(u32, u32)>,
}

/// The depth of places without a topological order. A cycle is reported as a cycle, not as missing edges.
const ON_CIRCLE: u32 = u32::MAX;

impl Ways {
    /// Builds the index from the sources of the edges into each place.
    pub(super) fn along(incoming: Vec<Vec<u32>>) -> Self {
        let mut outgoing = vec![Vec::new(); incoming.len()];
        let mut direct = BTreeSet::new();
        for (to, sources) in incoming.iter().enumerate() {
            for from in sources {
                outgoing[*from as usize].push(to as u32);
                direct.insert((*from, to as u32));
            }
        }
        let depth = depths(&incoming, &outgoing);
        let span = spans(&incoming, &depth);
        Self { incoming, direct, depth, span }
    }

    /// True if a path leads from one place to another. False also if the limit on visits is reached.
    pub(super) fn lead(&self, from: u32, to: u32, visits: &mut usize) -> bool {
        if self.direct.contains(&(from, to)) || self.is_below(to, from) {
            return true;
        }
        let (mut seen, mut next) = (BTreeSet::new(), vec![to]);
        while let Some(place) = next.pop() {
            for source in &self.incoming[place as usize] {
                *visits += 1;
                if *source == from || self.is_below(*source, from) {
                    return true;
                }
                // A place that is not deeper than the start of the path cannot come after it.
                let depth = self.depth[*source as usize];
                let may_hold_it = depth > self.depth[from as usize] || depth == ON_CIRCLE;
                if may_hold_it && *visits < VISITS_MAX && seen.insert(*source) {
                    next.push(*source);
                }
            }
        }
        false
    }

    /// True if the forest has a path from `from` down to `place`.
    fn is_below(&self, place: u32, from: u32) -> bool {
        let ((enter, leave), (first, last)) = (self.span[place as usize], self.span[from as usize]);
        place != from && first <= enter && leave <= last
    }
}

fn depths(incoming: &[Vec<u32>], outgoing: &[Vec<u32>]) -> Vec<u32> {
    let mut depth = vec![ON_CIRCLE; incoming.len()];
    let mut left: Vec<usize> = incoming.iter().map(Vec::len).collect();
    let mut sorted: Vec<u32> = (0..incoming.len() as u32).filter(|place| left[*place as usize] == 0).collect();
    let mut at = 0;
    while let Some(place) = sorted.get(at).copied() {
        at += 1;
        let before = incoming[place as usize].iter().map(|source| depth[*source as usize] + 1);
        depth[place as usize] = before.max().unwrap_or(0);
        for to in &outgoing[place as usize] {
            left[*to as usize] -= 1;
            if left[*to as usize] == 0 {
                sorted.push(*to);
            }
        }
    }
    depth
}

/// Computes the intervals of a forest in which the parent of each place is its deepest source. A place on a cycle is a
/// root.
fn spans(incoming: &[Vec<u32>], depth: &[u32]) -> Vec<(u32, u32)> {
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); incoming.len()];
    let mut roots = Vec::new();
    for (place, sources) in incoming.iter().enumerate() {
        let is_ordered = depth[place] != ON_CIRCLE;
        match sources.iter().max_by_key(|source| depth[**source as usize]).filter(|_| is_ordered) {
            Some(source) => below[*source as usize].push(place as u32),
            None => roots.push(place as u32),
        }
    }
    let (mut span, mut clock) = (vec![(0, 0); incoming.len()], 0);
    // Each place is popped twice: on entry and on exit.
    let mut next: Vec<(u32, bool)> = roots.into_iter().map(|root| (root, false)).collect();
    while let Some((place, is_left)) = next.pop() {
        clock += 1;
        if is_left {
            span[place as usize].1 = clock;
            continue;
        }
        span[place as usize].0 = clock;
        next.push((place, true));
        next.extend(below[place as usize].iter().map(|place| (*place, false)));
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plain search that every answer must agree with.
    fn walk(incoming: &[Vec<u32>], from: u32, to: u32) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![to]);
        while let Some(place) = next.pop() {
            for source in &incoming[place as usize] {
                if *source == from {
                    return true;
                }
                if seen.insert(*source) {
                    next.push(*source);
                }
            }
        }
        false
    }

    /// Checks all acyclic graphs of four places, and all graphs of three.
    #[test]
    fn reachability_equals_a_graph_walk() {
        let forwards: Vec<(u32, u32)> = (0..4).flat_map(|to| (0..to).map(move |from| (from, to))).collect();
        let all: Vec<(u32, u32)> = (0..3).flat_map(|to| (0..3).map(move |from| (from, to))).collect();
        for (places, edges) in [(4, forwards), (3, all)] {
            for chosen in 0..1u32 << edges.len() {
                let mut incoming = vec![Vec::new(); places];
                for (_, (from, to)) in edges.iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == 1) {
                    incoming[*to as usize].push(*from);
                }
                let ways = Ways::along(incoming.clone());
                for (from, to) in (0..places as u32).flat_map(|from| (0..places as u32).map(move |to| (from, to))) {
                    assert_eq!(
                        ways.lead(from, to, &mut 0),
                        walk(&incoming, from, to),
                        "{from} to {to} in {incoming:?}"
                    );
                }
            }
        }
    }
}
