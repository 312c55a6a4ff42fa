//! Steps that are ordered by edges: their levels, and their edges as text.

use mainspring_kernel::{
    limits::PARALLEL_DEFAULT,
    plan::{EdgeKind, Graph, Order, Plan},
};

use crate::text::columns;

use super::{glyphs::Glyphs, phrases::condition_text};

/// Edges of a step as text: a phrase and the steps at the other ends.
#[derive(Debug)]
pub(super) struct Leads {
    /// True for edges that are taken after a failure.
    pub is_failure: bool,
    /// The phrase, such as `on success of`.
    lead: String,
    /// The steps, escaped.
    items: Vec<String>,
}

/// The hanging indent of a wrapped list, in columns.
const HANG_COLUMNS: usize = 2;

/// Columns of a list on a line of its own; a longer one is wrapped.
const LIST_COLUMNS: usize = 56;

impl Leads {
    /// Wraps the text to lines of at most `width` columns. A longer word is not broken.
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

    /// The preferred width in columns.
    pub(super) fn columns(&self) -> usize {
        self.lines(LIST_COLUMNS).iter().map(|line| columns(line)).max().unwrap_or(0)
    }
}

/// The graph that contains a step and the step's place in it; `None` if the step is not ordered by edges.
pub(super) fn place_of(plan: &Plan, number: u32) -> Option<(&Graph, u32)> {
    let block = plan.block(plan.step(number).block);
    match &block.order {
        Order::Edges(graph) => Some((graph, block.steps.binary_search(&number).ok()? as u32)),
        Order::Sequence | Order::Parallel => None,
    }
}

/// The incoming edges of a step. A plain dependency on a step that it reads is omitted, since its sources show it.
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

/// The steps that handle a step's failure.
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
    let lead = format!("{} if it fails {}", glyphs.marks.failure, glyphs.writes);
    (!items.is_empty()).then_some(Leads { is_failure: true, lead, items })
}

/// The levels of a graph: each step is on the first level below all its predecessors.
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

/// The concurrency of the plan.
pub(super) fn at_a_time(plan: &Plan) -> usize {
    plan.constraints.max_parallel.unwrap_or(PARALLEL_DEFAULT) as usize
}
