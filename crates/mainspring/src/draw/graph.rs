//! A plan as nodes, edges and clusters: what the notations for graphs have in common. The texts are not yet quoted.

use mainspring_kernel::plan::{Plan, Work};

use crate::text::cut;

use super::{
    caption::{Caption, short_hash},
    glyphs::Glyphs,
    remark::constraints,
};

/// Columns of one line of a label. A longer one makes a node that pushes all others off the page.
const LABEL_COLUMNS_MAX: usize = 60;

/// A plan laid out for a notation.
#[derive(Debug)]
pub(super) struct Graph {
    /// The nodes and clusters, in the order of the plan.
    pub items: Vec<Item>,
    /// The ways between nodes.
    pub edges: Vec<Edge>,
}

/// A node, or a container with what is in it.
#[derive(Debug)]
pub(super) enum Item {
    /// A node.
    Node(Node),
    /// A container.
    Cluster {
        /// The number of its step, unique among clusters.
        number: u32,
        /// Its label, line by line.
        lines: Vec<String>,
        /// What is in it.
        items: Vec<Item>,
    },
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    /// A letter and a number, unique in the graph.
    pub name: Name,
    /// What it is.
    pub shape: Shape,
    /// Its label, line by line; none for the places where ways fork and join.
    pub lines: Vec<String>,
}

/// The name of a node: never made of anybody's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// The beginning of the plan.
    Begin,
    /// Its end.
    Finish,
    /// A step, by its number.
    Step(u32),
    /// Where the branches of a step join, by its number.
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

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The beginning or an end.
    Terminal,
    /// Work in the world.
    Work,
    /// Waiting for time or a message.
    Wait,
    /// Waiting for people.
    Gate,
    /// One way or the other.
    Choice,
    /// Where ways fork or join that run at the same time.
    Bar,
}

/// A way from one node to another.
#[derive(Debug)]
pub(super) struct Edge {
    /// From here.
    pub from: Name,
    /// To there.
    pub to: Name,
    /// What it is taken for; empty for a way without a condition.
    pub label: &'static str,
}

/// A way that leads out of what was laid out so far.
type Exit = (Name, &'static str);

impl Graph {
    /// Lays a plan out.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut layout = Layout { plan, edges: Vec::new() };
        let begin = Node { name: Name::Begin, shape: Shape::Terminal, lines: title(plan) };
        let (inside, exits) = layout.steps(&plan.block(0).steps, vec![(Name::Begin, "")]);
        let mut items = vec![Item::Node(begin)];
        items.extend(inside);
        if !exits.is_empty() {
            layout.enter(&exits, Name::Finish);
            items.push(Item::Node(Node { name: Name::Finish, shape: Shape::Terminal, lines: vec!["end".into()] }));
        }
        Self { items, edges: layout.edges }
    }
}

fn title(plan: &Plan) -> Vec<String> {
    let shown = |text: &Option<String>| text.as_ref().map(|text| Glyphs::of(false).shown(text));
    let name = shown(&plan.name).unwrap_or_else(|| "workflow".into());
    let version = shown(&plan.version).map_or_else(String::new, |version| format!(" {version}"));
    short([format!("{name}{version}"), short_hash(plan), constraints(&plan.constraints).join(", ")])
}

/// Lines of a label: none of them empty, none too long.
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
        self.edges.extend(exits.iter().map(|(from, label)| Edge { from: *from, to, label }));
    }

    /// Steps one after another: what stands there, and the ways out of the last of them.
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

    fn step(&mut self, number: u32) -> (Item, Vec<Exit>) {
        let step = self.plan.step(number);
        let name = Name::Step(number);
        let Caption { id, kind, reads, body, remarks } = Caption::of(self.plan, step, Glyphs::of(false));
        let (item, mut exits) = match &step.work {
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

    fn parallel(&mut self, number: u32, block: u32, lines: Vec<String>) -> (Item, Vec<Exit>) {
        let (fork, join) = (Name::Step(number), Name::Join(number));
        let bar = |name| Item::Node(Node { name, shape: Shape::Bar, lines: Vec::new() });
        let (mut items, mut ends) = (vec![bar(fork)], Vec::new());
        for branch in &self.plan.block(block).steps {
            let (inside, exits) = self.steps(&[*branch], vec![(fork, "")]);
            items.extend(inside);
            ends.extend(exits);
        }
        // Branches that all end the execution have nothing to join.
        let exits = if ends.is_empty() { Vec::new() } else { vec![(join, "")] };
        items.extend((!ends.is_empty()).then(|| bar(join)));
        self.enter(&ends, join);
        (Item::Cluster { number, lines, items }, exits)
    }
}

fn shape(work: &Work) -> Shape {
    match work {
        Work::Effect { .. } | Work::Code { .. } | Work::Subworkflow { .. } => Shape::Work,
        Work::Conditional { .. } | Work::Loop(_) => Shape::Choice,
        Work::Parallel { .. } => Shape::Bar,
        Work::Approval(_) => Shape::Gate,
        Work::Sleep { .. } | Work::SleepUntil { .. } | Work::Signal { .. } => Shape::Wait,
        Work::Return { .. } => Shape::Terminal,
    }
}
