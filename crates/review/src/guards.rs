//! The gates before each step: approvals that have been given when the step begins.
//!
//! A denied gate cancels its execution. A step therefore runs behind a gate if it waits for it, whatever else happens in
//! between. A gate that can be skipped guards only conditionally.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use crate::{
    limits::GATE_COMPARISONS_MAX,
    outline::{Node, Outline},
};

/// Gates by index; true for a gate that cannot be skipped.
pub(crate) type Gates = BTreeMap<usize, bool>;

/// Returns the gates before each step, or `None` if there are too many to compare.
pub(crate) fn gates_before(outline: &Outline<'_>) -> Option<Vec<Rc<Gates>>> {
    let gates = outline.nodes.iter().filter(|node| node.is_gate()).count();
    let places: usize = outline.nodes.len() + outline.nodes.iter().map(|node| node.edges.len()).sum::<usize>();
    if gates.saturating_mul(places) > GATE_COMPARISONS_MAX {
        return None;
    }
    let mut reader = Reader { nodes: &outline.nodes, before: vec![Rc::default(); outline.nodes.len()] };
    if outline.is_sequence() {
        reader.sequence(&outline.outermost, Rc::default());
    } else {
        reader.graph(&outline.outermost);
    }
    Some(reader.before)
}

struct Reader<'a> {
    nodes: &'a [Node],
    before: Vec<Rc<Gates>>,
}

impl Reader<'_> {
    fn sequence(&mut self, steps: &[usize], mut before: Rc<Gates>) {
        for step in steps {
            self.step(*step, &before);
            let passed = self.passed(*step);
            if !passed.is_empty() {
                before = Rc::new(joined(&before, &passed));
            }
        }
    }

    fn step(&mut self, step: usize, before: &Rc<Gates>) {
        self.before[step] = Rc::clone(before);
        let nodes = self.nodes;
        let is_parallel = nodes[step].text("type") == "parallel";
        for (_, children) in &nodes[step].branches {
            if is_parallel {
                children.iter().for_each(|child| self.step(*child, before));
            } else {
                self.sequence(children, Rc::clone(before));
            }
        }
    }

    /// Returns the gates that have been passed when a step has ended.
    fn passed(&self, step: usize) -> Gates {
        let node = &self.nodes[step];
        let mut gates = Gates::new();
        if node.is_gate() {
            gates.insert(step, true);
        }
        for (_, children) in &node.branches {
            children.iter().for_each(|child| gates.extend(self.passed(*child)));
        }
        let is_certain = match node.text("type") {
            "conditional" => false,
            "loop" => node.fields.contains_key("until"),
            _ => !node.fields.contains_key("forEach"),
        };
        if !is_certain || node.fields.contains_key("when") {
            gates.values_mut().for_each(|is_strong| *is_strong = false);
        }
        gates
    }

    /// Steps in the order of edges. A step waits for all sources of its edges, and so for their sources.
    fn graph(&mut self, steps: &[usize]) {
        let nodes = self.nodes;
        let mut targets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut open: BTreeMap<usize, usize> = BTreeMap::new();
        for step in steps {
            open.insert(*step, nodes[*step].edges.len());
            nodes[*step].edges.iter().for_each(|edge| targets.entry(edge.from).or_default().push(*step));
        }
        let mut ready: VecDeque<usize> = steps.iter().copied().filter(|step| open[step] == 0).collect();
        let mut behind: BTreeMap<usize, Rc<Gates>> = BTreeMap::new();
        while let Some(step) = ready.pop_front() {
            let mut before = Rc::<Gates>::default();
            for edge in &nodes[step].edges {
                let source = behind.get(&edge.from).cloned().unwrap_or_default();
                before = if before.is_empty() { source } else { Rc::new(joined(&before, &source)) };
            }
            self.step(step, &before);
            let mut passed = self.passed(step);
            if nodes[step].edges.iter().any(|edge| edge.condition.is_some() || is_rare(&edge.kind)) {
                passed.values_mut().for_each(|is_strong| *is_strong = false);
            }
            behind.insert(step, if passed.is_empty() { before } else { Rc::new(joined(&before, &passed)) });
            for target in targets.get(&step).into_iter().flatten() {
                let left = open.entry(*target).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    ready.push_back(*target);
                }
            }
        }
    }
}

/// True for edges that are not taken when all goes well.
fn is_rare(kind: &str) -> bool {
    matches!(kind, "on_failure" | "skip")
}

/// A gate that guards on one way guards on all, since all sources are waited for.
fn joined(one: &Gates, other: &Gates) -> Gates {
    let mut all = one.clone();
    for (gate, is_strong) in other {
        all.entry(*gate).and_modify(|known| *known |= *is_strong).or_insert(*is_strong);
    }
    all
}
