//! Lays a plan out as nodes, edges and clusters, for the graph notations. Texts are not quoted yet.

use mainspring_kernel::plan::{self, EdgeKind, Order, Plan, Work};

use crate::text::cut;

use super::{
    caption::{Caption, joined, short_hash},
    for_each::worker,
    glyphs::Glyphs,
    header::{gives, preamble},
    phrases::condition_text,
};

/// Columns of a label line. A longer line makes a node that displaces all others.
const LABEL_COLUMNS_MAX: usize = 60;

/// The layout of a plan.
#[derive(Debug)]
pub(super) struct Graph {
    /// Nodes and clusters, in the order of the plan.
    pub items: Vec<Item>,
    pub edges: Vec<Edge>,
}

/// A node, or a container with its contents.
#[derive(Debug)]
pub(super) enum Item {
    Node(Node),
    Cluster {
        /// The number of its step, unique among clusters.
        number: u32,
        /// The lines of the label.
        lines: Vec<String>,
        items: Vec<Item>,
    },
}

#[derive(Debug)]
pub(super) struct Node {
    /// A unique name.
    pub name: Name,
    pub shape: Shape,
    /// The lines of the label; empty for bars.
    pub lines: Vec<String>,
}

/// The name of a node, which never contains untrusted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// The start of the plan.
    Begin,
    /// The end of the plan.
    Finish,
    /// A step, by its number.
    Step(u32),
    /// The join of a step's branches, by the number of the step.
    Join(u32),
}

impl std::fmt::Display for Name {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Begin => out.write_str("begin"),
            Self::Finish => out.write_str("finish"),
            Self::Step(number) => write!(out, "n{number}"),
            Self::Join(number) => write!(out, "j{number}"),
        }
    }
}

/// The shape of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The start or an end.
    Terminal,
    /// Steps that perform attempts or evaluations.
    Work,
    /// A wait for time or a signal.
    Wait,
    /// An approval.
    Gate,
    /// A branch.
    Choice,
    /// The fork or join of parallel branches.
    Bar,
}

/// An edge between two nodes.
#[derive(Debug)]
pub(super) struct Edge {
    pub from: Name,
    pub to: Name,
    pub stroke: Stroke,
    /// The lines of the label; empty for an edge without a condition.
    pub label: Vec<String>,
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroke {
    /// An ordinary edge.
    Plain,
    /// Taken after a failure of its source.
    Failure,
    /// Taken after any end of its source, or after a skip.
    Aside,
    /// Only waits for its source.
    Wait,
    /// Leads back for another round.
    Back,
}

/// An open edge that leaves the layout so far: its source and label.
type Exit = (Name, &'static str);

impl Graph {
    /// Lays out a plan.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut layout = Layout { plan, edges: Vec::new() };
        let begin = Node { name: Name::Begin, shape: Shape::Terminal, lines: title(plan) };
        let outer = plan.block(0);
        let (inside, exits) = match &outer.order {
            Order::Edges(graph) => layout.edges(graph, &outer.steps),
            Order::Sequence | Order::Parallel => layout.steps(&outer.steps, vec![(Name::Begin, "")]),
        };
        let mut items = vec![Item::Node(begin)];
        items.extend(inside);
        if !exits.is_empty() {
            layout.enter(&exits, Name::Finish);
            let lines = short(["end".into()].into_iter().chain(gives(plan)));
            items.push(Item::Node(Node { name: Name::Finish, shape: Shape::Terminal, lines }));
        }
        if let Some(finally) = plan.finally {
            let from = if exits.is_empty() { Name::Begin } else { Name::Finish };
            let (inside, _) = layout.steps(&plan.block(finally.block).steps, vec![(from, "finally")]);
            items.extend(inside);
        }
        Self { items, edges: layout.edges }
    }
}

fn title(plan: &Plan) -> Vec<String> {
    let glyphs = Glyphs::of(false);
    let shown = |text: &Option<String>| text.as_ref().map(|text| glyphs.shown(text));
    let name = shown(&plan.name).unwrap_or_else(|| "workflow".into());
    let version = shown(&plan.version).map_or_else(String::new, |version| format!(" {version}"));
    let thoughts = preamble(plan).into_iter().flat_map(|pieces| joined(pieces.iter(), LABEL_COLUMNS_MAX, glyphs));
    short([format!("{name}{version}"), short_hash(plan)].into_iter().chain(thoughts))
}

/// Drops empty lines of a label, and cuts long ones.
fn short(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| cut(&line, LABEL_COLUMNS_MAX, "…")).collect()
}

struct Layout<'p> {
    plan: &'p Plan,
    edges: Vec<Edge>,
}

impl Layout<'_> {
    fn enter(&mut self, exits: &[Exit], to: Name) {
        let label = |label: &str| Some(label.to_string()).filter(|label| !label.is_empty()).into_iter().collect();
        let edge = |(from, word): &Exit| Edge { from: *from, to, stroke: Stroke::Plain, label: label(word) };
        self.edges.extend(exits.iter().map(edge));
    }

    /// Lays out a sequence of steps. Returns the items and the open edges of the last step.
    fn steps(&mut self, steps: &[u32], mut exits: Vec<Exit>) -> (Vec<Item>, Vec<Exit>) {
        let mut items = Vec::with_capacity(steps.len());
        for number in steps {
            self.enter(&exits, Name::Step(*number));
            let (item, next) = self.step(*number);
            items.push(item);
            exits = next;
        }
        (items, exits)
    }

    /// Lays out steps that are ordered by edges. A container with several exits gets one join, so that each
    /// outgoing edge is drawn once.
    fn edges(&mut self, graph: &plan::Graph, steps: &[u32]) -> (Vec<Item>, Vec<Exit>) {
        let (mut items, mut ends, mut ways_out) = (Vec::new(), Vec::new(), Vec::new());
        for number in steps {
            let (mut item, exits) = self.step(*number);
            let (own, join) = (Name::Step(*number), Name::Join(*number));
            ways_out.push(match (&mut item, exits.as_slice()) {
                (Item::Node(_), _) | (_, []) => own,
                (_, [(only, "")]) => *only,
                (Item::Cluster { items, .. }, several) => {
                    self.enter(several, join);
                    items.push(Item::Node(Node { name: join, shape: Shape::Bar, lines: Vec::new() }));
                    join
                }
            });
            items.push(item);
        }
        for (place, number) in steps.iter().enumerate() {
            let incoming = graph.incoming(place as u32);
            if incoming.is_empty() {
                self.enter(&[(Name::Begin, "")], Name::Step(*number));
            }
            for edge in incoming {
                let (stroke, label) = drawn(edge);
                self.edges.push(Edge { from: ways_out[edge.from as usize], to: Name::Step(*number), stroke, label });
            }
            let is_return = matches!(self.plan.step(*number).work, Work::Return { .. });
            if graph.outgoing(place as u32).next().is_none() && !is_return {
                ends.push((ways_out[place], ""));
            }
        }
        (items, ends)
    }

    fn step(&mut self, number: u32) -> (Item, Vec<Exit>) {
        let (step, worker) = (self.plan.step(number), self.plan.step(worker(self.plan, number)));
        let name = Name::Step(number);
        let Caption { id, kind, reads, body, remarks, .. } = Caption::of(self.plan, number, Glyphs::of(false));
        let (item, mut exits) = match &worker.work {
            Work::Loop(of) if !worker.work.is_agent() => {
                let lines = short([id].into_iter().chain(body).chain([remarks.join(" · ")]));
                self.rounds(number, of.block, lines, short([kind]))
            }
            Work::Conditional { then, otherwise, .. } => {
                let lines = short([id].into_iter().chain(body).chain([remarks.join(" · ")]));
                self.conditional(number, *then, *otherwise, lines, short([kind]))
            }
            Work::Parallel { block } => {
                let lines = short([id, kind].into_iter().chain(body).chain([remarks.join(" · ")]));
                self.parallel(number, *block, lines)
            }
            work => {
                let lines = short([id, kind].into_iter().chain(body).chain([reads, remarks.join(" · ")]));
                let is_end = matches!(work, Work::Return { .. });
                let exits = if is_end { Vec::new() } else { vec![(name, "")] };
                (Item::Node(Node { name, shape: shape(work), lines }), exits)
            }
        };
        let is_skippable = step.when.is_some() && !matches!(exits.as_slice(), [(from, "")] if *from == name);
        exits.extend(is_skippable.then_some((name, "skipped")));
        (item, exits)
    }

    fn conditional(
        &mut self,
        number: u32,
        then: u32,
        otherwise: Option<u32>,
        lines: Vec<String>,
        question: Vec<String>,
    ) -> (Item, Vec<Exit>) {
        let name = Name::Step(number);
        let mut items = vec![Item::Node(Node { name, shape: Shape::Choice, lines: question })];
        let mut exits = Vec::new();
        for (label, block) in [("then", Some(then)), ("else", otherwise)] {
            let steps = block.map_or(&[][..], |block| self.plan.block(block).steps.as_slice());
            let (inside, out) = self.steps(steps, vec![(name, label)]);
            items.extend(inside);
            exits.extend(out);
        }
        (Item::Cluster { number, lines, items }, exits)
    }

    /// Lays out a loop: its condition, one round, and the edge back.
    fn rounds(&mut self, number: u32, block: u32, lines: Vec<String>, question: Vec<String>) -> (Item, Vec<Exit>) {
        let name = Name::Step(number);
        let mut items = vec![Item::Node(Node { name, shape: Shape::Choice, lines: question })];
        let (inside, exits) = self.steps(&self.plan.block(block).steps, vec![(name, "round")]);
        items.extend(inside);
        let back = |(from, _): &Exit| Edge { from: *from, to: name, stroke: Stroke::Back, label: vec!["again".into()] };
        self.edges.extend(exits.iter().map(back));
        (Item::Cluster { number, lines, items }, vec![(name, "done")])
    }

    fn parallel(&mut self, number: u32, block: u32, lines: Vec<String>) -> (Item, Vec<Exit>) {
        let (fork, join) = (Name::Step(number), Name::Join(number));
        let bar = |name| Item::Node(Node { name, shape: Shape::Bar, lines: Vec::new() });
        let (mut items, mut ends) = (vec![bar(fork)], Vec::new());
        for branch in &self.plan.block(block).steps {
            let (inside, exits) = self.steps(&[*branch], vec![(fork, "")]);
            items.extend(inside);
            ends.extend(exits);
        }
        // If all branches end the execution, there is no join.
        let exits = if ends.is_empty() { Vec::new() } else { vec![(join, "")] };
        items.extend((!ends.is_empty()).then(|| bar(join)));
        self.enter(&ends, join);
        (Item::Cluster { number, lines, items }, exits)
    }
}

/// The stroke and the label of a plan's edge.
fn drawn(edge: &plan::Edge) -> (Stroke, Vec<String>) {
    let (stroke, word) = match edge.kind {
        EdgeKind::OnSuccess => (Stroke::Plain, ""),
        EdgeKind::OnFailure => (Stroke::Failure, "on failure"),
        EdgeKind::Always => (Stroke::Aside, "always"),
        EdgeKind::Skip => (Stroke::Aside, "on skip"),
        EdgeKind::Ended => (Stroke::Wait, ""),
    };
    let condition =
        edge.condition.as_ref().map(|asked| format!("if {}", Glyphs::of(false).shown(&condition_text(asked))));
    (stroke, short([word.to_string()].into_iter().chain(condition)))
}

fn shape(work: &Work) -> Shape {
    match work {
        Work::Effect { .. } | Work::Code { .. } | Work::Subworkflow { .. } => Shape::Work,
        work if work.is_agent() => Shape::Work,
        Work::Conditional { .. } | Work::Loop(_) => Shape::Choice,
        Work::Parallel { .. } => Shape::Bar,
        Work::Approval(_) => Shape::Gate,
        Work::Sleep { .. } | Work::SleepUntil { .. } | Work::Signal { .. } => Shape::Wait,
        Work::Return { .. } => Shape::Terminal,
    }
}
