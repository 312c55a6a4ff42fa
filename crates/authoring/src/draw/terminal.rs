//! Draws a plan for a terminal: one rail from top to bottom, with a mark for every step.
//!
//! Lanes of a fork are side by side if they fit, and stacked otherwise. Double lines surround parallel lanes;
//! single and dashed lines surround alternatives. Steps that are nested too deep for the width are drawn in a
//! section below, so that no line exceeds the width.

use mainspring_kernel::plan::{Loop, Order, Over, Plan, Work};

use super::{
    caption::{Caption, SPACE, joined, short_hash},
    edges::Leads,
    for_each::worker,
    glyphs::{Glyphs, Ways},
    header::{gives, preamble},
    styled_line::{StyledLine, Tone},
    widths::{self, GAP_COLUMNS, INDENT_COLUMNS, RAIL_COLUMNS, StepWidths},
};

/// The style of a drawing for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// True for colors, as ANSI escape sequences.
    pub color: bool,
    /// Columns of the terminal; at least 40 are used.
    pub width: usize,
    /// True for ASCII characters only; all others are escaped.
    pub ascii: bool,
}

/// The narrowest drawing. Two lanes of short names fit side by side; a narrower terminal wraps lines.
const WIDTH_MIN: usize = 40;

/// Steps move to a section of their own if fewer columns than this are left for them, unless they need no more.
const REGION_COLUMNS_MIN: usize = 20;

const _: () = assert!(REGION_COLUMNS_MIN + INDENT_COLUMNS <= WIDTH_MIN, "a section must get one level further");

/// Explains a drawing in levels.
const LEGEND: [&str; 2] = ["a step starts after the steps named at it", "those of one level may run at the same time"];

/// Draws a plan. Every line ends with a line break and has at most `style.width` columns.
pub fn terminal(plan: &Plan, style: &Style) -> String {
    let width = style.width.max(WIDTH_MIN);
    let glyphs = Glyphs::of(style.ascii);
    let captions: Vec<Caption> = (0..plan.steps.len()).map(|number| Caption::of(plan, number as u32, glyphs)).collect();
    let extents = widths::measure(plan, &captions, glyphs);
    let mut drawer = Drawer { plan, glyphs, captions, extents, sections: Vec::new() };
    let mut lines = drawer.title(width);
    let outer = plan.block(0);
    lines.extend(match &outer.order {
        Order::Edges(graph) => drawer.levels(graph, &outer.steps, width),
        Order::Sequence | Order::Parallel => drawer.section(&outer.steps, width),
    });
    lines.extend(gives(plan).into_iter().flat_map(|text| {
        let line = StyledLine::of(Tone::End, glyphs.marks.end).with(Tone::Plain, format!(" {}", glyphs.shown(&text)));
        [StyledLine::default(), drawer.cut(line, width)]
    }));
    if let Some(finally) = plan.finally {
        let title = StyledLine::of(Tone::Strong, "finally");
        lines.extend([StyledLine::default(), drawer.cut(title, width)]);
        lines.extend(drawer.section(&plan.block(finally.block).steps, width));
    }
    let mut drawn = 0;
    while let Some((title, steps)) = drawer.sections.get(drawn).cloned() {
        drawn += 1;
        lines.extend([
            StyledLine::default(),
            drawer.cut(StyledLine::of(Tone::Dim, format!("[{drawn}] ")).with(Tone::Strong, title), width),
        ]);
        lines.extend(drawer.section(steps, width));
    }
    let mut out = String::new();
    lines.iter().for_each(|line| line.write(style.color, &mut out));
    out
}

pub(super) struct Drawer<'p> {
    pub plan: &'p Plan,
    pub glyphs: &'static Glyphs,
    /// Indexed by the number of the step.
    captions: Vec<Caption>,
    /// Indexed by the number of the step.
    pub extents: Vec<StepWidths>,
    /// Steps that are drawn in sections of their own, with a title.
    sections: Vec<(String, &'p [u32])>,
}

/// A part of a drawing. `flows` is true if the rail continues below it.
pub(super) struct Drawing {
    pub lines: Vec<StyledLine>,
    pub flows: bool,
}

/// A lane of a container.
struct Lane<'p> {
    label: &'static str,
    steps: &'p [u32],
}

impl<'p> Drawer<'p> {
    fn title(&self, width: usize) -> Vec<StyledLine> {
        let shown = |text: &Option<String>| text.as_ref().map(|text| self.glyphs.shown(text));
        let mut line = StyledLine::of(Tone::Strong, shown(&self.plan.name).unwrap_or_else(|| "workflow".into()));
        if let Some(version) = shown(&self.plan.version) {
            line.push(Tone::Plain, format!(" {version}"));
        }
        let hash = format!("{}{}", self.glyphs.dot, short_hash(self.plan));
        let mut line = self.cut(line, width.saturating_sub(crate::text::columns(&hash)));
        line.push(Tone::Dim, hash);
        let mut thoughts = preamble(self.plan);
        let is_by_edges = matches!(self.plan.block(0).order, Order::Edges(_));
        thoughts.extend(is_by_edges.then(|| LEGEND.map(String::from).to_vec()));
        let pieces = |thought: &Vec<String>| thought.iter().map(|piece| self.glyphs.shown(piece)).collect::<Vec<_>>();
        let thoughts = thoughts.iter().flat_map(|thought| joined(pieces(thought).iter(), width, self.glyphs));
        let thoughts = thoughts.map(|text| self.cut(StyledLine::of(Tone::Dim, text), width));
        [line].into_iter().chain(thoughts).chain([StyledLine::default()]).collect()
    }

    /// Draws steps with a start and an end.
    fn section(&mut self, steps: &'p [u32], width: usize) -> Vec<StyledLine> {
        let mut lines = vec![StyledLine::of(Tone::Dim, self.glyphs.first)];
        let Drawing { lines: inside, flows } = self.steps(steps, width);
        lines.extend(inside);
        lines.extend(flows.then(|| StyledLine::of(Tone::Dim, self.glyphs.last)));
        lines
    }

    fn steps(&mut self, steps: &'p [u32], width: usize) -> Drawing {
        let mut drawing = Drawing { lines: Vec::new(), flows: true };
        let mut was_large = false;
        for number in steps {
            let work = &self.plan.step(worker(self.plan, *number)).work;
            let is_large = !widths::lanes(self.plan, *number).is_empty() || matches!(work, Work::Approval(_));
            if !drawing.lines.is_empty() && (is_large || was_large || !drawing.flows) {
                drawing.lines.push(self.rail(drawing.flows));
            }
            let Drawing { lines, flows } = self.step(*number, width);
            drawing.lines.extend(lines);
            (drawing.flows, was_large) = (flows, is_large);
        }
        drawing
    }

    fn rail(&self, flows: bool) -> StyledLine {
        if flows { StyledLine::of(Tone::Dim, self.glyphs.rail) } else { StyledLine::default() }
    }

    pub(super) fn step(&mut self, number: u32, width: usize) -> Drawing {
        let step = self.plan.step(number);
        let work = &self.plan.step(worker(self.plan, number)).work;
        // A return with a condition may be skipped, so the rail continues.
        let flows = !matches!(step.work, Work::Return { .. }) || step.when.is_some();
        let mut drawing = Drawing { lines: self.caption(number, flows, width), flows };
        let lanes = self.lanes(number, work);
        if lanes.is_empty() {
            return drawing;
        }
        let is_parallel = matches!(work, Work::Parallel { .. });
        let ways = if is_parallel { &self.glyphs.both } else { &self.glyphs.either };
        let wanted: Vec<StepWidths> = lanes.iter().map(|lane| widths::of_lane(lane.steps, &self.extents)).collect();
        let inside = match widths::share(&wanted, width) {
            Some(columns) if lanes.len() > 1 => self.beside(&lanes, &columns, ways, is_parallel),
            _ => self.below(number, lanes, width, ways, is_parallel),
        };
        drawing.lines.extend(inside.lines);
        drawing.flows = inside.flows || step.when.is_some();
        drawing
    }

    fn lanes(&self, number: u32, work: &Work) -> Vec<Lane<'p>> {
        let labels: &[&'static str] = match work {
            Work::Conditional { .. } => &["then", "else"],
            Work::Loop(Loop { over: Over::Items(_), .. }) => &["for each item"],
            Work::Loop(_) => &["each round"],
            _ => &[],
        };
        let label = |at: usize| labels.get(at).copied().unwrap_or_default();
        let lanes = widths::lanes(self.plan, number).into_iter().enumerate();
        lanes.map(|(at, steps)| Lane { label: label(at), steps }).collect()
    }

    /// Draws the mark and the text of a step.
    fn caption(&self, number: u32, flows: bool, width: usize) -> Vec<StyledLine> {
        let is_each = worker(self.plan, number) != number;
        let (mark, tone) = mark(&self.plan.step(worker(self.plan, number)).work, self.glyphs);
        let mark = if is_each { self.glyphs.marks.again } else { mark };
        let caption = &self.captions[number as usize];
        let kind_tone = if matches!(tone, Tone::Way) { tone } else { Tone::Dim };
        let text_width = width.saturating_sub(RAIL_COLUMNS);
        let mut heading = StyledLine::of(tone, mark).with(Tone::Plain, " ").with(Tone::Strong, caption.id.clone());
        heading.append(StyledLine::of(Tone::Plain, SPACE).with(kind_tone, caption.kind.clone()));
        if caption.reads_in_heading(text_width) {
            heading.append(StyledLine::of(Tone::Plain, SPACE).with(Tone::Dim, caption.reads.clone()));
        }
        let remarks = caption.remark_lines(text_width, self.glyphs);
        let lead = |leads: &Leads| {
            let tone = if leads.is_failure { Tone::Failure } else { Tone::Dim };
            leads.lines(text_width).into_iter().map(|text| (tone, text)).collect::<Vec<_>>()
        };
        let (incoming, outgoing) = (caption.incoming.iter().flat_map(lead), caption.outgoing.iter().flat_map(lead));
        let body = caption.body.iter().map(|text| (Tone::Plain, text.clone()));
        let remarks = remarks.into_iter().map(|text| (Tone::Dim, text));
        let below = incoming.chain(body).chain(remarks).chain(outgoing).map(|(tone, text)| {
            let mut line = self.rail(flows);
            line.pad(RAIL_COLUMNS);
            line.append(self.cut(StyledLine::of(tone, text), text_width));
            line
        });
        [self.cut(heading, width)].into_iter().chain(below).collect()
    }

    fn cut(&self, line: StyledLine, width: usize) -> StyledLine {
        line.cut(width, self.glyphs.ellipsis)
    }

    /// Draws lanes side by side.
    fn beside(&mut self, lanes: &[Lane<'p>], columns: &[usize], ways: &Ways, is_parallel: bool) -> Drawing {
        let drawings: Vec<Drawing> =
            lanes.iter().zip(columns).map(|(lane, columns)| self.steps(lane.steps, *columns)).collect();
        let starts: Vec<usize> = columns
            .iter()
            .scan(0, |next, columns| Some(std::mem::replace(next, *next + columns + GAP_COLUMNS)))
            .collect();
        let flowing: Vec<bool> = drawings.iter().map(|drawing| drawing.flows).collect();
        let flows = flowing.contains(&true);
        let mut lines = vec![fork(lanes, &starts, ways)];
        lines.extend(self.side_by_side(starts.iter().copied().zip(drawings).collect()));
        lines.extend(join(&flowing, &starts, ways, is_parallel));
        Drawing { lines, flows }
    }

    /// Places drawings at their start columns. The rail of a shorter one is extended if it flows.
    pub(super) fn side_by_side(&self, drawings: Vec<(usize, Drawing)>) -> Vec<StyledLine> {
        let height = drawings.iter().map(|(_, drawing)| drawing.lines.len()).max().unwrap_or(0);
        let mut lanes: Vec<_> =
            drawings.into_iter().map(|(start, Drawing { lines, flows })| (start, lines.into_iter(), flows)).collect();
        let line = |_| {
            let mut line = StyledLine::default();
            for (start, lane, flows) in &mut lanes {
                line.pad(*start);
                line.append(lane.next().unwrap_or_else(|| self.rail(*flows)));
            }
            line
        };
        (0..height).map(line).collect()
    }

    /// Draws stacked lanes, or references to their sections.
    fn below(&mut self, owner: u32, lanes: Vec<Lane<'p>>, width: usize, ways: &Ways, is_parallel: bool) -> Drawing {
        let mut drawing = Drawing { lines: Vec::new(), flows: false };
        for Lane { label, steps } in lanes {
            let inside_width = width.saturating_sub(INDENT_COLUMNS);
            let is_readable = widths::of_lane(steps, &self.extents).least <= inside_width;
            let inside = match inside_width >= REGION_COLUMNS_MIN || is_readable {
                true => self.steps(steps, inside_width),
                false => self.elsewhere(owner, label, steps),
            };
            drawing.flows |= inside.flows;
            let flows = inside.flows;
            if is_parallel {
                drawing.lines.extend(inside.lines.into_iter().enumerate().map(|(at, line)| {
                    let branch = [ways.side, ways.branch][usize::from(at == 0)];
                    indented(branch, if at == 0 { ways.across } else { " " }, line)
                }));
                continue;
            }
            let corner =
                |end: &str| StyledLine::of(Tone::Way, format!("{}{}{end}", ways.branch, ways.across.repeat(2)));
            drawing.lines.push(corner(ways.fork[2]).with(Tone::Way, format!(" {label}")));
            drawing.lines.extend(inside.lines.into_iter().map(|line| indented(ways.side, " ", line)));
            drawing.lines.extend(flows.then(|| corner(ways.joined)));
        }
        if is_parallel {
            drawing.lines.push(StyledLine::of(Tone::Way, ways.joined).with(Tone::Dim, " joined"));
        }
        drawing
    }

    fn elsewhere(&mut self, owner: u32, label: &str, steps: &'p [u32]) -> Drawing {
        let id = &self.captions[owner as usize].id;
        self.sections.push((if label.is_empty() { id.clone() } else { format!("{id} {label}") }, steps));
        let text = format!("{} see [{}]", self.glyphs.ellipsis, self.sections.len());
        Drawing { lines: vec![StyledLine::of(Tone::Dim, text)], flows: true }
    }
}

fn mark(work: &Work, glyphs: &Glyphs) -> (&'static str, Tone) {
    match work {
        Work::Effect { .. } | Work::Code { .. } | Work::Subworkflow { .. } => (glyphs.marks.work, Tone::Work),
        Work::Conditional { .. } => (glyphs.marks.choice, Tone::Way),
        work if work.is_agent() => (glyphs.marks.work, Tone::Work),
        Work::Loop(_) => (glyphs.marks.again, Tone::Way),
        Work::Parallel { .. } => (glyphs.marks.parallel, Tone::Way),
        Work::Approval(_) => (glyphs.marks.gate, Tone::Gate),
        Work::Sleep { .. } | Work::SleepUntil { .. } | Work::Signal { .. } => (glyphs.marks.wait, Tone::Wait),
        Work::Return { .. } => (glyphs.marks.end, Tone::End),
    }
}

fn indented(side: &str, across: &str, mut line: StyledLine) -> StyledLine {
    line.push_front(Tone::Way, format!("{side}{across} "));
    line
}

/// `├ then ────┐ else`
fn fork(lanes: &[Lane<'_>], starts: &[usize], ways: &Ways) -> StyledLine {
    let mut line = StyledLine::default();
    for (at, (lane, start)) in lanes.iter().zip(starts).enumerate() {
        line.push(Tone::Way, ways.across.repeat(start - line.columns()));
        line.push(Tone::Way, ways.fork[place(at, lanes.len())]);
        if !lane.label.is_empty() {
            line.push(Tone::Way, format!(" {} ", lane.label));
        }
    }
    line
}

/// `├──────────┘`, or `None` if no lane returns to the rail.
fn join(flowing: &[bool], starts: &[usize], ways: &Ways, is_parallel: bool) -> Option<StyledLine> {
    let last = flowing.len() - 1;
    if !is_parallel && !flowing[1..].contains(&true) {
        return None;
    }
    let mut line = StyledLine::default();
    for (at, (flows, start)) in flowing.iter().zip(starts).enumerate() {
        line.push(Tone::Way, ways.across.repeat(start - line.columns()));
        let place = place(at, flowing.len());
        line.push(Tone::Way, if *flows || at == last { ways.join[place] } else { ways.join_ended[place] });
    }
    Some(line)
}

/// The index for a first, middle or last lane.
fn place(at: usize, count: usize) -> usize {
    match at {
        0 => 0,
        _ if at + 1 == count => 2,
        _ => 1,
    }
}
