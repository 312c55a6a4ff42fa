//! Edges between the outermost steps: explicit `edges`, `needs`, and references.
//!
//! Steps inside another step have no edges; the step around them takes theirs. A place is the index of a step in the
//! outermost block.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use super::{
    fields::Fields,
    help::Help,
    keys,
    notation::OrderWord,
    outline::Outline,
    reachability::Ways,
    references::Reader,
    report::{Report, named},
    suggest::{adapt::flow, nearest::known_here},
};
use crate::{
    diagnostic,
    document::Path,
    fix::Fix,
    plan::{Block, Edge, EdgeKind, Graph, Plan, Step},
    reference::{Reference, Root, is_name},
    value::Value,
};

/// The edges of the outermost block that are known before any step is read, as places.
#[derive(Debug, Default)]
pub(super) struct Edges<'a> {
    /// True in a dataflow: a reference to a step adds an edge from it.
    pub by_reference: bool,
    /// The edges into each place.
    pub incoming: Vec<Vec<Written<'a>>>,
    /// Reachability along the edges.
    pub ways: Ways,
}

/// An edge before its condition is read.
#[derive(Debug)]
pub(super) struct Written<'a> {
    pub from: u32,
    pub kind: EdgeKind,
    pub condition: Option<(&'a Value, Path)>,
}

impl<'a> Edges<'a> {
    /// Reads `edges` and `needs`. Returns `None` for a sequence, which has no edges.
    pub(super) fn read(
        order: OrderWord,
        root: &Fields<'a>,
        outline: &Outline<'a>,
        report: &mut Report<'a>,
    ) -> Option<Self> {
        let places = outline.blocks.first().map_or(0, |block| block.steps.len());
        if order == OrderWord::Sequence {
            refuse_edges(root, report);
            return None;
        }
        let by_reference = order == OrderWord::Dataflow;
        let mut edges = Self { by_reference, incoming: Vec::new(), ways: Ways::default() };
        edges.incoming.resize_with(places, Vec::new);
        for (at, edge) in report.list(root, "edges").unwrap_or_default().iter().enumerate() {
            edges.edge(edge, &root.path.key("edges").index(at), outline, report);
        }
        for (number, entry) in outline.entries.iter().enumerate().filter(|(_, entry)| entry.is_first()) {
            let Some(to) = place_around(number as u32, outline) else { continue };
            for (from, path) in needs(&entry.fields, outline, report) {
                // An inner step that needs the step around it would wait forever: that step ends after it.
                if from == to && entry.block != 0 {
                    refuse_own_need(&entry.id, &path, report);
                } else {
                    edges.incoming[to as usize].push(Written { from, kind: EdgeKind::Ended, condition: None });
                }
            }
        }
        let sources = edges.incoming.iter().map(|written| written.iter().map(|edge| edge.from).collect());
        edges.ways = Ways::along(sources.collect());
        Some(edges)
    }

    fn edge(&mut self, edge: &'a Value, path: &Path, outline: &Outline<'a>, report: &mut Report<'a>) {
        let Some(map) = edge.as_map() else {
            let message = format!("an edge must be an object, not {}", edge.kind());
            return report.error(diagnostic::WRONG_KIND, path, message, pair(edge, path));
        };
        let fields = Fields { map, path: path.clone() };
        report.known_keys(&fields, &keys::EDGE);
        let mut end = |key| {
            if !fields.has(key) {
                report.missing(&fields, key, "an edge leads from one step to another, as {from: a, to: b}");
            }
            let id = report.filled_text(&fields, key)?;
            place_of(id, &fields.path.key(key), outline, report)
        };
        let (from, to) = (end("from"), end("to"));
        let kinds: Vec<_> =
            EdgeKind::ALL.into_iter().filter(|kind| *kind != EdgeKind::Ended).map(|kind| (kind.name(), kind)).collect();
        let kind = match fields.get("when") {
            Some(Value::Map(_)) => {
                let message = "`when` of an edge is a word: on which outcome of its source it is taken";
                let at = fields.path.key("when");
                let fix = if fields.has("condition") { Fix::default() } else { Fix::rename(&at, "condition") };
                report.error(diagnostic::WRONG_KIND, &at, message, Help::new("put it into `condition`", fix));
                None
            }
            _ => report.word(&fields, "when", &kinds),
        };
        let kind = kind.unwrap_or(EdgeKind::OnSuccess);
        let condition = fields.get("condition").map(|condition| (condition, fields.path.key("condition")));
        if let (Some(from), Some(to)) = (from, to) {
            if from == to {
                let id = named(fields.get("to").and_then(Value::as_text).unwrap_or_default());
                let message = format!("a cycle: each of these waits for the one before it: {id} → {id}");
                let help = Help::new("take this edge out", Fix::remove(path));
                return report.error(diagnostic::CYCLE, path, message, help);
            }
            self.incoming[to as usize].push(Written { from, kind, condition });
        }
    }
}

/// Returns the help for an edge in another form: `[a, b]` or `a -> b`.
fn pair(edge: &Value, path: &Path) -> Help {
    let of_text = edge.as_text().and_then(|text| ["->", "→", ">>"].iter().find_map(|arrow| text.split_once(arrow)));
    let of_list = edge.as_list().and_then(|ends| match ends {
        [from, to] => from.as_text().zip(to.as_text()),
        _ => None,
    });
    match of_text.or(of_list) {
        Some((from, to)) => {
            let edge = Value::map([("from", from.trim().into()), ("to", to.trim().into())]);
            Help::new(format!("write {}", flow(&edge)), Fix::replace(path, edge))
        }
        None => "write {from: one, to: other}".into(),
    }
}

/// Returns the place of the outermost step that is, or contains, a step.
pub(super) fn place_around(step: u32, outline: &Outline<'_>) -> Option<u32> {
    let (_, top) = outline.way_up(step).last()?;
    outline.blocks[0].steps.binary_search(&top).ok().map(|place| place as u32)
}

fn refuse_own_need(id: &str, path: &Path, report: &mut Report<'_>) {
    let message = format!("{} cannot need itself, or what it stands in", named(id));
    report.error(diagnostic::REFERENCE_TO_ITSELF, path, message, Help::new("take it out", Fix::remove(path)));
}

fn refuse_edges(root: &Fields<'_>, report: &mut Report<'_>) {
    if root.has("edges") {
        let message = "`edges` are for steps that do not run one after another";
        let help = "write `order: edges`, and the edges decide alone, or `order: dataflow`";
        report.error_at_key(diagnostic::MISPLACED_KEY, &root.path.key("edges"), message, help);
    }
}

/// Reads `needs`: the place of each needed step, with the path of its name.
pub(super) fn needs<'a>(fields: &Fields<'a>, outline: &Outline<'a>, report: &mut Report<'a>) -> Vec<(u32, Path)> {
    let path = fields.path.key("needs");
    let items = report.list(fields, "needs").unwrap_or_default();
    let mut places = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let path = path.index(at);
        match item.as_text() {
            Some(id) => places.extend(place_of(id, &path, outline, report).map(|place| (place, path))),
            None => report.wrong_item(&path, "needs", "the name of a step", item),
        }
    }
    places
}

fn place_of(id: &str, path: &Path, outline: &Outline<'_>, report: &mut Report<'_>) -> Option<u32> {
    let outer = &outline.blocks[0].steps;
    let known = outline.names.get(id);
    if let Some(place) = known.and_then(|step| outer.binary_search(step).ok()) {
        return Some(place as u32);
    }
    if known.is_some() {
        let message = format!("{} stands inside another step", named(id));
        report.error(diagnostic::MISPLACED_REFERENCE, path, message, "name the step that contains it");
        return None;
    }
    let ids = outer.iter().map(|step| outline.entries[*step as usize].id.as_str()).filter(|id| is_name(id));
    let meant = report.nearest_name(id.strip_prefix('@').unwrap_or(id), ids.clone());
    let help = meant.map_or_else(|| known_here(ids).into(), |meant| Help::value(path, meant));
    report.error(diagnostic::UNKNOWN_REFERENCE, path, format!("there is no step {}", named(id)), help);
    None
}

/// Builds the graph of the outermost block after its steps are read. A cycle is reported with the steps on it.
pub(super) fn graph<'a>(
    edges: &Edges<'a>,
    outline: &Outline<'a>,
    steps: &[Step],
    report: &mut Report<'a>,
) -> Option<Graph> {
    let outer = &outline.blocks[0].steps;
    let mut incoming: Vec<Vec<Edge>> = Vec::new();
    for (place, written) in edges.incoming.iter().enumerate() {
        let mut reader = Reader::new(outline, Some(edges), outer[place], report);
        let read = written.iter().map(|edge| {
            // A failure edge is evaluated when its source fails, not when its target starts.
            reader.at_edge = Some(if edge.kind == EdgeKind::OnFailure { edge.from } else { place as u32 });
            let condition = edge.condition.as_ref().and_then(|(value, path)| reader.condition(value, path));
            Edge { from: edge.from, kind: edge.kind, condition }
        });
        incoming.push(read.collect());
    }
    if edges.by_reference {
        add_references(outline, steps, &mut incoming);
    }
    let graph = Graph::new(incoming);
    let (_, circle) = graph.sorted();
    if circle.is_empty() {
        return Some(graph);
    }
    refuse_circle(&graph, &circle, outline, report);
    None
}

/// Adds an edge from each step that another one refers to, in any of its fields.
fn add_references(outline: &Outline<'_>, steps: &[Step], incoming: &mut [Vec<Edge>]) {
    let is_needed = |edge: &&Edge| edge.kind == EdgeKind::Ended;
    let mut known: BTreeSet<(usize, u32)> = BTreeSet::new();
    for (to, edges) in incoming.iter().enumerate() {
        known.extend(edges.iter().filter(is_needed).map(|edge| (to, edge.from)));
    }
    for (number, step) in steps.iter().enumerate() {
        let Some(to) = place_around(number as u32, outline).map(|place| place as usize) else { continue };
        for reference in references_of(step) {
            let Root::Step(target) = reference.root else { continue };
            let Some(from) = place_around(target, outline).filter(|from| *from as usize != to) else { continue };
            if known.insert((to, from)) {
                incoming[to].push(Edge { from, kind: EdgeKind::Ended, condition: None });
            }
        }
    }
}

/// Returns all references of a step: in its condition, its work, and its `bail`.
pub fn references_of(step: &Step) -> Vec<&Reference> {
    let mut found = Vec::new();
    if let Some(when) = &step.when {
        when.references(&mut found);
    }
    step.work.references(&mut found);
    if let Some(bail) = &step.bail {
        bail.references(&mut found);
    }
    found
}

fn refuse_circle(graph: &Graph, circle: &[u32], outline: &Outline<'_>, report: &mut Report<'_>) {
    let on_it: BTreeSet<u32> = circle.iter().copied().collect();
    // Each remaining place has an edge from another remaining one, so walking backwards must reach some place twice.
    let (mut way, mut seen, mut place) = (Vec::new(), BTreeSet::new(), circle[0]);
    while seen.insert(place) {
        way.push(place);
        let back = graph.incoming(place).iter().map(|edge| edge.from).find(|from| on_it.contains(from));
        place = back.unwrap_or(place);
    }
    let begin = way.iter().position(|seen| *seen == place).unwrap_or_default();
    let mut way: Vec<u32> = way.split_off(begin);
    way.push(place);
    way.reverse();
    let entry = |place: u32| &outline.entries[outline.blocks[0].steps[place as usize] as usize];
    let ids: Vec<String> = way.iter().map(|place| named(&entry(*place).id)).collect();
    let message = format!("a cycle: each of these waits for the one before it: {}", ids.join(" → "));
    let back: Vec<(u32, u32)> = way.windows(2).map(|pair| (pair[0], pair[1])).filter(|(from, to)| from > to).collect();
    let written = match back.as_slice() {
        [(from, to)] => written_at(&entry(*from).id, &entry(*to).fields, report),
        _ => None,
    };
    let (path, help) = match written {
        Some(path) => (path, "take it out: it leads back to a step that is written before"),
        None => (entry(way[0]).fields.path.clone(), "take one of these references or edges out"),
    };
    report.error(diagnostic::CYCLE, &path, message, help);
}

/// Returns the place where the order between two steps is written: an item of `edges`, or of `needs`. `None` if it is written
/// in several places, or follows from a reference.
fn written_at(from: &str, to: &Fields<'_>, report: &Report<'_>) -> Option<Path> {
    let id = to.get("id").and_then(Value::as_text)?;
    let edges = report.document().value.get("edges").and_then(Value::as_list).unwrap_or_default();
    let is_text = |value: Option<&Value>, text: &str| value.and_then(Value::as_text) == Some(text);
    let of_edges =
        edges.iter().enumerate().filter(|(_, edge)| is_text(edge.get("from"), from) && is_text(edge.get("to"), id));
    let needs = to.get("needs").and_then(Value::as_list).unwrap_or_default();
    let of_needs = needs.iter().enumerate().filter(|(_, need)| is_text(Some(need), from));
    let of_edges = of_edges.map(|(at, _)| Path::root().key("edges").index(at));
    let mut all = of_edges.chain(of_needs.map(|(at, _)| to.path.key("needs").index(at)));
    all.next().filter(|_| all.next().is_none())
}

/// Checks `needs` in a sequence: a needed step must precede the step that needs it.
pub(super) fn check_needs<'a>(outline: &Outline<'a>, report: &mut Report<'a>) {
    for (number, entry) in outline.entries.iter().enumerate().filter(|(_, entry)| entry.is_first()) {
        // The steps of `finally` are in no order with the others, and have no `needs`.
        let own = place_around(number as u32, outline);
        if own.is_none() {
            continue;
        }
        for (place, path) in needs(&entry.fields, outline, report) {
            if own == Some(place) {
                refuse_own_need(&entry.id, &path, report);
            } else if own.is_none_or(|own| place > own) {
                let needed = outline.blocks[0].steps[place as usize];
                let needed = named(&outline.entries[needed as usize].id);
                let message = format!("{needed} has not ended when {} begins", named(&entry.id));
                let target = outline.entries[outline.blocks[0].steps[place as usize] as usize].fields.path.clone();
                let own =
                    own.map(|own| outline.entries[outline.blocks[0].steps[own as usize] as usize].fields.path.clone());
                let fix = own.map(|own| Fix::moved(&target, own)).unwrap_or_default();
                let help = Help::new("move it before this step, or write `order: dataflow`", fix);
                report.error(diagnostic::REFERENCE_TO_LATER, &path, message, help);
            }
        }
    }
}

/// Sets the graph as the order of the outermost block.
pub(super) fn with_graph(mut blocks: Vec<Block>, graph: Option<Graph>) -> Vec<Block> {
    if let (Some(root), Some(graph)) = (blocks.first_mut(), graph) {
        root.order = crate::plan::Order::Edges(graph);
    }
    blocks
}

/// Returns all references of a step, by its number. Used to draw plans and to show dependencies.
pub fn dependencies(plan: &Plan, step: u32) -> Vec<&Reference> {
    references_of(plan.step(step))
}
