//! Checks references: the name must be known, and the step must have ended for certain when the reference is read.

use alloc::{format, string::String, vec::Vec};

use super::{
    edges::Edges,
    help::Help,
    outline::{Entry, Outline, Role},
    reachability::VISITS_MAX,
    report::{Report, named},
    shapes::Asks,
    suggest::nearest::nearest,
};
use crate::{
    diagnostic,
    document::{Path, Segment},
    fix::Fix,
    plan::Order,
    reference::{self, Part, Reference, Root},
    template::{BadReference, Piece, Template, Why},
    value::Value,
};

/// The step that is being read, with the context of the value inside it.
#[derive(Debug)]
pub(super) struct Reader<'r, 'a> {
    pub outline: &'r Outline<'a>,
    pub edges: Option<&'r Edges<'a>>,
    pub number: u32,
    pub report: &'r mut Report<'a>,
    /// True if the value is evaluated after the step has ended, so that it may read the step's own output.
    pub at_end: bool,
    /// True if the value is evaluated between rounds, so that it may read the last round.
    pub between_rounds: bool,
    /// For a condition of an edge into the step: the place whose end triggers the evaluation.
    pub at_edge: Option<u32>,
    /// True if the value is evaluated at the end of the execution and belongs to no step.
    pub at_end_of_all: bool,
    /// For the reference of a condition: the test for which it is read.
    pub asks: Option<Asks>,
}

/// The result of checking a reference to a step; only `Ended` is accepted.
enum Reach {
    Ended,
    Itself,
    Around,
    Inside,
    Later,
    AtTheSameTime,
    InLoop,
    Unordered,
    Unchecked,
}

impl<'r, 'a> Reader<'r, 'a> {
    pub(super) fn new(
        outline: &'r Outline<'a>,
        edges: Option<&'r Edges<'a>>,
        number: u32,
        report: &'r mut Report<'a>,
    ) -> Self {
        let (at_end, between_rounds, at_edge, at_end_of_all) = (false, false, None, false);
        Self { outline, edges, number, report, at_end, between_rounds, at_edge, at_end_of_all, asks: None }
    }

    pub(super) fn entry(&self) -> &Entry<'a> {
        &self.outline.entries[self.number as usize]
    }

    /// Resolves the name at the start of a reference.
    pub(super) fn root_of(&self, name: &str) -> Option<Root> {
        match name {
            "item" | "index" if self.at_end_of_all => None,
            "index" if self.between_rounds => Some(Root::Index),
            name => self.outline.root_of(self.number, name),
        }
    }

    /// Reads data in which references are allowed.
    pub(super) fn template(&mut self, value: &Value, path: &Path) -> Template {
        let mut bad = Vec::new();
        let template = Template::read(value, &|name| self.root_of(name), &mut bad);
        for bad in &bad {
            self.refuse(bad, path);
        }
        self.check_template(&template, path);
        self.check_frames(value, path);
        self.check_texts(value, path);
        template.normalized()
    }

    pub(super) fn whole_reference(&mut self, text: &str, path: &Path) -> Option<Reference> {
        match self.template(&Value::text(text), path) {
            Template::Whole(reference) => Some(reference),
            _ => None,
        }
    }

    /// Reports a reference with an unknown name or property.
    pub(super) fn refuse(&mut self, bad: &BadReference, base: &Path) {
        let (message, help) = bad.why.explain(&bad.reference);
        let path = base.join(&bad.path);
        let of_context = bad.reference.strip_prefix("ctx.").filter(|_| bad.why != Why::UnknownName);
        if let Some(meant) = of_context.and_then(|name| nearest(name, ["executionId", "attempt", "now", "outcome"])) {
            let fix = self.report.reworded(&path, &bad.reference, &format!("ctx.{meant}"));
            let help = Help::new(format!("write `@ctx.{meant}`"), fix);
            return self.report.error(diagnostic::UNKNOWN_REFERENCE, &path, message, help);
        }
        let help = match bad.why {
            Why::UnknownName => self.meant_by(&bad.reference, &path),
            _ => help.into(),
        };
        self.report.error(diagnostic::UNKNOWN_REFERENCE, &path, message, help);
    }

    /// Checks every reference of a template at its own path.
    fn check_template(&mut self, template: &Template, path: &Path) {
        match template {
            Template::Literal(_) => {}
            Template::Whole(reference) => self.check_reference(reference, path),
            Template::Text(pieces) => {
                for piece in pieces {
                    if let Piece::Reference(reference) = piece {
                        self.check_reference(reference, path);
                        self.check_whole_in_text(reference, path);
                    }
                }
            }
            Template::List(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.check_template(item, &path.index(at)));
            }
            Template::Map(fields) => fields.iter().for_each(|(key, field)| self.check_template(field, &path.key(key))),
        }
    }

    /// Reports a reference to a step that may not have ended, or to a variable or path that cannot exist.
    pub(super) fn check_reference(&mut self, reference: &Reference, path: &Path) {
        match reference.root {
            Root::Step(target) => self.check_reach(reference, target, path),
            Root::Variables => {
                self.check_variable(reference, path);
                self.check_declared(reference, path);
                self.check_shape(reference, path);
            }
            Root::Context => self.check_context(reference, path),
            Root::Input | Root::Item | Root::Index => self.check_shape(reference, path),
        }
    }

    fn check_reach(&mut self, reference: &Reference, target: u32, path: &Path) {
        let (this, that) = (named(&self.entry().id), named(&self.outline.entries[target as usize].id));
        let says = match (self.at_end_of_all, self.at_edge) {
            (true, _) => format!("`{reference}` in `output`"),
            (_, Some(_)) => format!("`{reference}` at an edge into {this}"),
            _ => format!("`{reference}` in {this}"),
        };
        let (code, message, help) = match self.reach(target) {
            Reach::Ended => return self.check_shape(reference, path),
            Reach::Itself => {
                let message = format!("{says}: a step cannot refer to itself");
                let help = self.of_step_before(reference, path).unwrap_or_else(|| "refer to another step".into());
                return self.report.error(diagnostic::REFERENCE_TO_ITSELF, path, message, help);
            }
            Reach::Around => {
                let message = format!("{says}: {that} contains {this} and ends after it");
                (diagnostic::REFERENCE_TO_ITSELF, message, "refer to a step that ends before it")
            }
            Reach::Inside => {
                let message = format!("{says}: {that} is inside {this} and runs after this is read");
                (diagnostic::REFERENCE_TO_LATER, message, "refer to a step that ends before it")
            }
            Reach::Later => {
                let message = format!("{says}: {that} comes later and has not run before");
                let help = match self.edges {
                    Some(_) => "turn the edges between them around, or take the reference out".into(),
                    None => Help::new("move it before this step, so that it comes first", self.earlier(target)),
                };
                return self.report.error(diagnostic::REFERENCE_TO_LATER, path, message, help);
            }
            Reach::AtTheSameTime => {
                let message = format!("{says}: {that} runs at the same time, in another branch");
                let help = Help::new("move what refers behind the `parallel` step", self.behind_parallel());
                return self.report.error(diagnostic::REFERENCE_INTO_PARALLEL, path, message, help);
            }
            Reach::InLoop => {
                let message = format!("{says}: {that} runs again and again, and it is not said which round is meant");
                let around =
                    self.outline.way_up(target).filter_map(|(block, _)| self.outline.blocks[block as usize].owner);
                let around = around.map(|owner| &self.outline.entries[owner as usize]).find(|entry| entry.is_loop());
                let help = match around.filter(|entry| entry.has_own_id) {
                    Some(around) => {
                        format!("refer to the loop, whose output is that of its rounds: write `@{}`", around.id)
                    }
                    None => "refer to the loop: its output is that of its rounds".into(),
                };
                return self.report.error(diagnostic::REFERENCE_INTO_LOOP, path, message, help);
            }
            Reach::Unchecked => {
                let message = format!("{says}: there are too many edges to check that {that} has ended before");
                return self.report.error(diagnostic::TOO_LARGE, path, message, self.edge_between(target));
            }
            Reach::Unordered => {
                let message = format!("{says}: no edge ensures that {that} has ended before");
                let help = Help::new(self.edge_between(target), self.need_of(target));
                return self.report.error(diagnostic::REFERENCE_INTO_PARALLEL, path, message, help);
            }
        };
        self.report.error(code, path, message, help);
    }

    /// Checks whether `target` has ended for certain when the current step reads it. A step has ended if it, or a step
    /// around it, stands earlier in the innermost common block and that block is sequential. A step in a branch that is
    /// not taken counts as ended and reads as null.
    fn reach(&mut self, target: u32) -> Reach {
        let is_cleanup = self.outline.is_in_finally(target);
        if self.at_end_of_all && is_cleanup {
            return Reach::Later;
        }
        if self.at_end_of_all || !is_cleanup && self.outline.is_in_finally(self.number) {
            let mut around =
                self.outline.way_up(target).filter_map(|(block, _)| self.outline.blocks[block as usize].owner);
            let is_in_loop = around.any(|owner| self.outline.entries[owner as usize].is_loop());
            return if is_in_loop { Reach::InLoop } else { Reach::Ended };
        }
        let this = self.number;
        if target == this || self.is_own_whole(target) {
            return if self.at_end { Reach::Ended } else { Reach::Itself };
        }
        // Both chains end in block 0 and are at most as long as plans are deep.
        let targets: Vec<_> = self.outline.way_up(target).collect();
        let common = self.outline.way_up(this).find_map(|(block, ours)| {
            targets.iter().find(|(theirs, _)| *theirs == block).map(|(_, theirs)| (block, ours, *theirs))
        });
        match common {
            Some((_, ours, theirs)) if ours == theirs && theirs == target => Reach::Around,
            Some((_, ours, theirs)) if ours == theirs && ours == this && !self.between_rounds => Reach::Inside,
            Some((block, ours, _)) if self.is_in_loop(target, block, ours == this) => Reach::InLoop,
            Some((_, ours, theirs)) if ours == theirs => Reach::Ended,
            Some((0, ours, theirs)) if self.edges.is_some() => self.reach_by_edges(ours, theirs),
            Some((block, ..)) if matches!(self.outline.blocks[block as usize].order, Order::Parallel) => {
                Reach::AtTheSameTime
            }
            Some((_, ours, theirs)) if theirs < ours => Reach::Ended,
            _ => Reach::Later,
        }
    }

    /// True if `target` is the loop entry of the `forEach` step whose body is being read.
    fn is_own_whole(&self, target: u32) -> bool {
        self.entry().role == Role::Body && self.outline.blocks[self.entry().block as usize].owner == Some(target)
    }

    /// True if a loop encloses the step below the common block.
    fn is_in_loop(&self, target: u32, common: u32, is_own: bool) -> bool {
        let mut loops = 0;
        for (block, _) in self.outline.way_up(target).take_while(|(block, _)| *block != common) {
            let owner = self.outline.blocks[block as usize].owner.map(|owner| &self.outline.entries[owner as usize]);
            loops += usize::from(owner.is_some_and(Entry::is_loop));
        }
        loops > usize::from(is_own && self.between_rounds)
    }

    /// Checks by the edges of the outermost block whether one step has ended for certain when another starts.
    fn reach_by_edges(&mut self, ours: u32, theirs: u32) -> Reach {
        let Some(edges) = self.edges else { return Reach::Later };
        let outer = &self.outline.blocks[0].steps;
        let (Ok(to), Ok(from)) = (outer.binary_search(&ours), outer.binary_search(&theirs)) else {
            return Reach::Later;
        };
        let (from, to) = (from as u32, to as u32);
        let visits = &mut self.report.visits;
        let is_certain = match self.at_edge {
            None => edges.by_reference || edges.ways.lead(from, to, visits),
            // The condition of an edge is evaluated when the edge is settled, regardless of the references in the step.
            Some(asked) => from == asked && from != to || edges.ways.lead(from, asked, visits),
        };
        if is_certain {
            return Reach::Ended;
        }
        // If edges lead in the opposite direction, adding one here would create a cycle, so the help text must differ.
        if edges.ways.lead(to, from, visits) {
            Reach::Later
        } else if *visits >= VISITS_MAX {
            Reach::Unchecked
        } else {
            Reach::Unordered
        }
    }

    /// Returns the help for a reference of a step to itself: the same of the step before, where only one can be meant.
    fn of_step_before(&self, reference: &Reference, path: &Path) -> Option<Help> {
        let before = self.step_before().map(|step| &self.outline.entries[step as usize])?;
        let is_same_kind = before.kind.map(|kind| kind.name) == self.entry().kind.map(|kind| kind.name);
        let is_whole = self.report.document().part(path).is_some_and(reference::is_whole);
        if !is_same_kind || !is_whole || !reference::is_name(&before.id) {
            return None;
        }
        let rest = &reference.text[reference.begin(0).len().min(reference.text.len())..];
        Some(format!("write `@{}{rest}` if the step before is meant", before.id).into())
    }

    /// Returns the fix that moves this branch behind its `parallel` step. Empty for a step deeper inside of a branch, and
    /// where the order of steps is not that of a list.
    fn behind_parallel(&self) -> Fix {
        let path = &self.entry().fields.path;
        let parallel = path.parent().parent();
        let around =
            self.outline.blocks[self.entry().block as usize].owner.map(|step| &self.outline.entries[step as usize]);
        let branches = self.report.document().part(&path.parent()).and_then(Value::as_list).unwrap_or_default();
        let Some(Segment::Index(at)) = parallel.segments().last() else { return Fix::default() };
        let is_branch = around.is_some_and(|around| around.fields.path == parallel && !around.is_loop());
        match is_branch && branches.len() > 1 && self.edges.is_none() {
            true => Fix::moved(path, parallel.parent().index(at + 1)),
            false => Fix::default(),
        }
    }

    /// Returns the fix that moves a later step of the same list before this one.
    fn earlier(&self, target: u32) -> Fix {
        let (this, that) = (&self.entry().fields.path, &self.outline.entries[target as usize].fields.path);
        let is_same_list = this.parent() == that.parent() && !self.at_end_of_all;
        if is_same_list { Fix::moved(that, this.clone()) } else { Fix::default() }
    }

    /// Returns the fix that adds the missing order: an item of `needs`. Empty if the step has some already.
    fn need_of(&self, target: u32) -> Fix {
        let outermost = |step: u32| {
            let top = self.outline.way_up(step).last().map_or(step, |(_, top)| top);
            &self.outline.entries[top as usize]
        };
        let (from, to) = (outermost(target), outermost(self.number));
        match to.fields.has("needs") {
            true => Fix::default(),
            false => Fix::add(to.fields.path.key("needs"), Value::List([from.id.as_str().into()].into())),
        }
    }

    /// Suggests the edge that would order the outermost steps around both.
    fn edge_between(&self, target: u32) -> String {
        let outermost = |step: u32| {
            let top = self.outline.way_up(step).last().map_or(step, |(_, top)| top);
            &self.outline.entries[top as usize].id
        };
        let (from, to) = (outermost(target), outermost(self.number));
        format!("add the edge {{from: {from}, to: {to}}}, or write `needs: [{from}]` in {}", named(to))
    }

    /// Warns about `@vars.NAME` if NAME is an output variable. Output variables are part of the execution's output, and
    /// `@vars` reads only the variables that were given at the start.
    fn check_variable(&mut self, reference: &Reference, path: &Path) {
        let Some(Part::Name(name)) = reference.path.first() else { return };
        let Some(writer) = self.outline.outputs.get(name.as_str()).filter(|writer| **writer < self.number) else {
            return;
        };
        let writer = &self.outline.entries[*writer as usize].id;
        let rest = &reference.text[("vars.".len() + name.len()).min(reference.text.len())..];
        let message = format!(
            "`{reference}` reads a variable given at the start, and `{name}` is the output variable of {}",
            named(writer)
        );
        let help = match reference::is_name(writer) {
            true => {
                let fix = self.report.reworded(path, &reference.text, &format!("{writer}{rest}"));
                Help::new(format!("write `@{writer}{rest}` if that output is meant"), fix)
            }
            false => "give that step an id and refer to it, if that output is meant".into(),
        };
        self.report.warning(diagnostic::REFERENCE_TO_OUTPUT_VARIABLE, path, message, help);
    }
}
