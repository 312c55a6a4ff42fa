//! References inside a plan: which names are known, and which steps have certainly ended when another one starts.

use alloc::{format, string::String, vec::Vec};

use super::{
    nearest::nearest,
    outline::{Entry, Outline},
    report::{Report, joined, named},
};
use crate::{
    diagnostic,
    document::Path,
    plan::Order,
    reference::{self, Part, RESERVED_NAMES, Reference, Root},
    template::{BadReference, Piece, Template, Why},
    value::{Map, Value},
};

/// Unknown references for which a plan's own names are searched for what was meant; each search reads all of them.
const SEARCHES_MAX: usize = 50;

/// A step of the outline that is being read.
#[derive(Debug)]
pub(super) struct Reader<'r, 'a> {
    pub outline: &'r Outline<'a>,
    pub number: u32,
    pub report: &'r mut Report<'a>,
    /// Searches made so far for what was meant.
    pub searches: &'r mut usize,
}

/// Whether a step may refer to another.
enum Reach {
    Ended,
    Itself,
    Around,
    Inside,
    Later,
    AtTheSameTime,
}

impl<'a> Reader<'_, 'a> {
    pub(super) fn entry(&self) -> &Entry<'a> {
        &self.outline.entries[self.number as usize]
    }

    /// What a name in a reference means here.
    pub(super) fn root_of(&self, name: &str) -> Option<Root> {
        match name {
            "input" => Some(Root::Input),
            "vars" => Some(Root::Variables),
            "ctx" => Some(Root::Context),
            "item" | "index" if !self.entry().in_loop => None,
            "item" => Some(Root::Item),
            "index" => Some(Root::Index),
            id => self.outline.names.get(id).map(|number| Root::Step(*number)),
        }
    }

    /// Reads data that may refer.
    pub(super) fn template(&mut self, value: &Value, path: &Path) -> Template {
        let mut bad = Vec::new();
        let template = Template::read(value, &|name| self.root_of(name), &mut bad);
        for bad in &bad {
            self.refuse(bad, path);
        }
        self.check_template(&template, path);
        settled(template)
    }

    /// Reads a text that is one whole reference.
    pub(super) fn whole_reference(&mut self, text: &str, path: &Path) -> Option<Reference> {
        match self.template(&Value::text(text), path) {
            Template::Whole(reference) => Some(reference),
            _ => None,
        }
    }

    /// Refuses a reference of which the name or the property is not known.
    pub(super) fn refuse(&mut self, bad: &BadReference, base: &Path) {
        let (message, mut mend) = bad.why.explain(&bad.reference);
        if bad.why == Why::UnknownName {
            let (name_length, _) = reference::length(&bad.reference).unwrap_or_default();
            let (name, rest) = bad.reference.split_at(name_length);
            if let Some(meant) = self.nearest_name(name) {
                mend = format!("write `@{meant}{rest}`, or `@@{}` if it is meant as text", bad.reference);
            }
        }
        self.report.error(diagnostic::UNKNOWN_REFERENCE, &joined(base, &bad.path), message, mend);
    }

    fn nearest_name(&mut self, name: &str) -> Option<String> {
        *self.searches += 1;
        let reserved = RESERVED_NAMES.into_iter().filter(|name| self.root_of(name).is_some());
        let steps = self.outline.names.keys().filter(|id| reference::is_name(id)).map(String::as_str);
        let steps = if *self.searches > SEARCHES_MAX { None } else { Some(steps) };
        nearest(name, reserved.chain(steps.into_iter().flatten())).map(String::from)
    }

    /// Checks every reference of a template, each at its own place.
    fn check_template(&mut self, template: &Template, path: &Path) {
        match template {
            Template::Literal(_) => {}
            Template::Whole(reference) => self.check_reference(reference, path),
            Template::Text(pieces) => {
                for piece in pieces {
                    if let Piece::Reference(reference) = piece {
                        self.check_reference(reference, path);
                    }
                }
            }
            Template::List(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.check_template(item, &path.index(at)));
            }
            Template::Map(fields) => fields.iter().for_each(|(key, field)| self.check_template(field, &path.key(key))),
        }
    }

    /// Refuses a reference to what has not certainly ended by then.
    pub(super) fn check_reference(&mut self, reference: &Reference, path: &Path) {
        match reference.root {
            Root::Step(target) => self.check_reach(reference, target, path),
            Root::Variables => self.check_variable(reference, path),
            Root::Input | Root::Context | Root::Item | Root::Index => {}
        }
    }

    fn check_reach(&mut self, reference: &Reference, target: u32, path: &Path) {
        let (this, that) = (named(&self.entry().id), named(&self.outline.entries[target as usize].id));
        let says = format!("`{reference}` in {this}");
        let (code, message, mend) = match self.reach(target) {
            Reach::Ended => return,
            Reach::Itself => {
                let message = format!("{says}: a step cannot refer to itself");
                (diagnostic::REFERENCE_TO_ITSELF, message, "refer to an earlier step")
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
                let message = format!("{says}: {that} comes later and has not run by then");
                (diagnostic::REFERENCE_TO_LATER, message, "move one of them, so that what is referred to comes first")
            }
            Reach::AtTheSameTime => {
                let message = format!("{says}: {that} runs at the same time, in another branch");
                (diagnostic::REFERENCE_INTO_PARALLEL, message, "move what refers behind the `parallel` step")
            }
        };
        self.report.error(code, path, message, mend);
    }

    /// A step has certainly ended if it, or what it stands in, comes earlier in the innermost block around both, and
    /// that block goes one after another. In a branch that is not taken it counts as ended: it reads as null.
    fn reach(&self, target: u32) -> Reach {
        let this = self.number;
        if target == this {
            return Reach::Itself;
        }
        // Both ways end in block 0, and no way is longer than plans are deep.
        let targets: Vec<_> = self.outline.way_up(target).collect();
        let common = self.outline.way_up(this).find_map(|(block, ours)| {
            targets.iter().find(|(theirs, _)| *theirs == block).map(|(_, theirs)| (block, ours, *theirs))
        });
        match common {
            Some((_, ours, theirs)) if ours == theirs && theirs == target => Reach::Around,
            Some((_, ours, theirs)) if ours == theirs && ours == this => Reach::Inside,
            Some((_, ours, theirs)) if ours == theirs => Reach::Ended,
            Some((block, ..)) if self.outline.blocks[block as usize].order == Order::Parallel => Reach::AtTheSameTime,
            Some((_, ours, theirs)) if theirs < ours => Reach::Ended,
            _ => Reach::Later,
        }
    }

    /// Output variables are the execution's output and no variables; a name that is only one of them reads as missing.
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
        let mend = match reference::is_name(writer) {
            true => format!("write `@{writer}{rest}` if that output is meant"),
            false => "give that step an id and refer to it, if that output is meant".into(),
        };
        self.report.warning(diagnostic::REFERENCE_TO_OUTPUT_VARIABLE, path, message, mend);
    }
}

/// The same template in its one form: what refers to nothing is literal. `@@` leaves a text without references.
pub(crate) fn settled(template: Template) -> Template {
    match template {
        Template::Text(pieces) => match pieces.as_slice() {
            [] => Template::Literal(Value::text("")),
            [Piece::Plain(plain)] => Template::Literal(Value::text(plain.as_str())),
            _ => Template::Text(pieces),
        },
        Template::List(items) => {
            let items: Vec<_> = items.into_iter().map(settled).collect();
            if items.iter().all(is_literal) {
                return Template::Literal(items.into_iter().filter_map(literal).collect::<Vec<_>>().into());
            }
            Template::List(items)
        }
        Template::Map(fields) => {
            let fields: Vec<_> = fields.into_iter().map(|(key, field)| (key, settled(field))).collect();
            if fields.iter().all(|(_, field)| is_literal(field)) {
                let values = fields.into_iter().filter_map(|(key, field)| Some((key, literal(field)?)));
                return Template::Literal(values.collect::<Map>().into());
            }
            Template::Map(fields)
        }
        other => other,
    }
}

fn is_literal(template: &Template) -> bool {
    matches!(template, Template::Literal(_))
}

fn literal(template: Template) -> Option<Value> {
    match template {
        Template::Literal(value) => Some(value),
        _ => None,
    }
}
