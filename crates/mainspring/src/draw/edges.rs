//! Steps that go by edges: in which levels they stand, and in words what leads to each.

use mainspring_kernel::{
    limits::PARALLEL_DEFAULT,
    plan::{EdgeKind, Graph, Order, Plan},
};

use crate::text::columns;

use super::{glyphs::Glyphs, words::condition_text};

/// What leads to a step or away from it: words, and the steps that they are about.
#[derive(Debug)]
pub(super) struct Leads {
    /// Whether it is for what has failed.
    pub is_failure: bool,
    /// `on success of`
    lead: String,
    /// Each of them safe to show.
    items: Vec<String>,
}

/// Columns by which the second line of a long list stands to the right.
const HANG_COLUMNS: usize = 2;

/// Columns of a list that has a line of its own; a longer one is broken.
const LIST_COLUMNS: usize = 56;

impl Leads {
    /// The text in lines of at most so many columns, as far as words allow.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let text = format!("{} {}", self.lead, self.items.join(", "));
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if columns(line) + 1 + columns(word) <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                Some(_) => lines.push(format!("{}{word}", " ".repeat(HANG_COLUMNS))),
                None => lines.push(word.into()),
            }
        }
        lines
    }

    /// Columns in which it is well read.
    pub(super) fn columns(&self) -> usize {
        self.lines(LIST_COLUMNS).iter().map(|line| columns(line)).max().unwrap_or(0)
    }
}

/// The graph that a step stands in and its place there, if it goes by edges.
pub(super) fn place_of(plan: &Plan, number: u32) -> Option<(&Graph, u32)> {
    let block = plan.block(plan.step(number).block);
    match &block.order {
        Order::Edges(graph) => Some((graph, block.steps.binary_search(&number).ok()? as u32)),
        Order::Sequence | Order::Parallel => None,
    }
}

/// What leads to a step. What it waits for because it reads it is left out: that is shown as what it reads.
pub(super) fn incoming(plan: &Plan, number: u32, reads: &[String], glyphs: &Glyphs) -> Vec<Leads> {
    let Some((graph, place)) = place_of(plan, number) else { return Vec::new() };
    let steps = &plan.block(plan.step(number).block).steps;
    let name = |from: u32| glyphs.shown(plan.id(steps[from as usize]));
    let mut found: Vec<Leads> = Vec::new();
    for kind in EdgeKind::ALL {
        let of_kind = || graph.incoming(place).iter().filter(move |edge| edge.kind == kind);
        let mut items: Vec<String> = Vec::new();
        for edge in of_kind().filter(|edge| edge.condition.is_none()) {
            let item = name(edge.from);
            let is_read = kind == EdgeKind::Ended && reads.contains(&item);
            if !is_read && !items.contains(&item) {
                items.push(item);
            }
        }
        let is_failure = kind == EdgeKind::OnFailure;
        let lead = glyphs.lead(kind);
        if !items.is_empty() {
            found.push(Leads { is_failure, lead: lead.clone(), items });
        }
        found.extend(of_kind().filter_map(|edge| {
            let condition = glyphs.shown(&condition_text(edge.condition.as_ref()?));
            Some(Leads { is_failure, lead: lead.clone(), items: vec![format!("{} if {condition}", name(edge.from))] })
        }));
    }
    found
}

/// The steps that take up a step's failure.
pub(super) fn handlers(plan: &Plan, number: u32, glyphs: &Glyphs) -> Option<Leads> {
    let (graph, place) = place_of(plan, number)?;
    let steps = &plan.block(plan.step(number).block).steps;
    let mut items: Vec<String> = Vec::new();
    for (to, edge) in graph.outgoing(place) {
        let item = glyphs.shown(plan.id(steps[to as usize]));
        if edge.kind == EdgeKind::OnFailure && !items.contains(&item) {
            items.push(item);
        }
    }
    let lead = format!("{} if it fails {}", glyphs.failure, glyphs.writes);
    (!items.is_empty()).then_some(Leads { is_failure: true, lead, items })
}

/// The steps of a graph in levels: each below everything that leads to it, and as high as that allows.
pub(super) fn levels(graph: &Graph, steps: &[u32]) -> Vec<Vec<u32>> {
    let mut level_of = vec![0; steps.len()];
    for place in graph.sorted().0 {
        let below = graph.incoming(place).iter().map(|edge| level_of[edge.from as usize] + 1).max();
        level_of[place as usize] = below.unwrap_or(0);
    }
    let count = level_of.iter().max().map_or(0, |deepest| deepest + 1);
    let mut levels = vec![Vec::new(); count];
    for (place, level) in level_of.into_iter().enumerate() {
        levels[level].push(steps[place]);
    }
    levels
}

/// How many steps run at a time.
pub(super) fn at_a_time(plan: &Plan) -> usize {
    plan.constraints.max_parallel.unwrap_or(PARALLEL_DEFAULT) as usize
}
