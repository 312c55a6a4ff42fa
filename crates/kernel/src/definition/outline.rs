//! The first look at a definition: which steps there are, in which blocks, under which names.
//!
//! Everything that needs the whole plan before one step can be read is settled here: numbers, ids, the tree.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    kinds::{BRANCHES_OF_UNKNOWN, KINDS, Kind},
    nearest::write_instead,
    report::{Fields, Report, named},
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    limits::{NAME_CHARS_MAX, PLAN_DEPTH_MAX, PLAN_STEPS_MAX},
    plan::{Block, Order},
    reference::{RESERVED_NAMES, is_name},
    value::Value,
};

/// The tree of steps, laid flat.
#[derive(Debug, Default)]
pub(super) struct Outline<'a> {
    /// The steps by number: a container before what it contains, else as written.
    pub entries: Vec<Entry<'a>>,
    /// The blocks by number: in the order in which their first steps are numbered.
    pub blocks: Vec<Block>,
    /// The numbers of the ids.
    pub names: BTreeMap<String, u32>,
    /// The output variables and the first step that writes each.
    pub outputs: BTreeMap<&'a str, u32>,
    has_too_many: bool,
}

/// One step.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// What is written, and where.
    pub fields: Fields<'a>,
    /// Its type, if that is known.
    pub kind: Option<&'static Kind>,
    /// Its id: given, or its path.
    pub id: String,
    /// Whether the id was given.
    pub has_own_id: bool,
    /// The block it stands in.
    pub block: u32,
    /// The blocks inside, by their keys.
    pub branches: Vec<(&'static str, u32)>,
    /// Whether `@item` and `@index` mean something here.
    pub in_loop: bool,
}

/// Where a list of steps stands.
struct Surroundings<'p> {
    owner: Option<u32>,
    order: Order,
    path: Path,
    id_path: &'p str,
    depth: usize,
    in_loop: bool,
}

impl<'a> Outline<'a> {
    /// Numbers the steps of a list and of everything inside.
    pub(super) fn read(steps: &'a [Value], report: &mut Report<'_>) -> Self {
        let mut outline = Self::default();
        let (path, order) = (Path::root().key("steps"), Order::Sequence);
        outline.block(
            steps,
            &Surroundings { owner: None, order, path, id_path: "step", depth: 0, in_loop: false },
            report,
        );
        outline.check_output_variables(report);
        outline
    }

    fn block(&mut self, steps: &'a [Value], around: &Surroundings<'_>, report: &mut Report<'_>) -> u32 {
        let number = self.blocks.len() as u32;
        self.blocks.push(Block { owner: around.owner, order: around.order, steps: Vec::new() });
        if around.depth > PLAN_DEPTH_MAX {
            let message = format!("steps inside steps more than {PLAN_DEPTH_MAX} deep");
            report.error(diagnostic::TOO_LARGE, &around.path, message, "move the inner ones out");
            return number;
        }
        for (at, step) in steps.iter().enumerate() {
            if self.entries.len() >= PLAN_STEPS_MAX {
                if !core::mem::replace(&mut self.has_too_many, true) {
                    let message = format!("more than {PLAN_STEPS_MAX} steps in one plan");
                    report.error(diagnostic::TOO_LARGE, &around.path.index(at), message, "split the workflow");
                }
                break;
            }
            self.step(step, at, number, around, report);
        }
        number
    }

    fn step(&mut self, step: &'a Value, at: usize, block: u32, around: &Surroundings<'_>, report: &mut Report<'_>) {
        let path = around.path.index(at);
        let Some(map) = step.as_map() else {
            let message = format!("a step must be an object, not {}", step.kind());
            report.error(diagnostic::WRONG_KIND, &path, message, "write {type: …} and the keys of that type");
            return;
        };
        let fields = Fields { map, path };
        let id_path = format!("{}[{at}]", around.id_path);
        let kind = kind_of(&fields, report);
        let given = id_of(&fields, report);
        let (id, has_own_id) = (given.map_or_else(|| id_path.clone(), ToString::to_string), given.is_some());
        let number = self.entries.len() as u32;
        self.blocks[block as usize].steps.push(number);
        self.name(&id, number, &fields, report);
        if let Some(output) = fields.get("outputVariable").and_then(Value::as_text) {
            self.outputs.entry(output).or_insert(number);
        }
        let is_loop = kind.is_some_and(|kind| kind.name == "loop");
        let in_loop = around.in_loop || is_loop || fields.has("forEach");
        self.entries.push(Entry { fields, kind, id, has_own_id, block, branches: Vec::new(), in_loop });
        self.branches(number, &id_path, around.depth, report);
    }

    fn branches(&mut self, number: u32, id_path: &str, depth: usize, report: &mut Report<'_>) {
        let Entry { fields, kind, in_loop, .. } = &self.entries[number as usize];
        if kind.is_some_and(|kind| kind.branches.is_empty()) {
            return;
        }
        let (fields, kind, in_loop) = (fields.clone(), *kind, *in_loop);
        for (key, order) in kind.map_or(BRANCHES_OF_UNKNOWN, |kind| kind.branches) {
            let steps = match kind {
                Some(_) => report.list(&fields, key),
                None => fields.get(key).and_then(Value::as_list),
            };
            // A conditional always has a block for yes, so that the one for no is never taken for it.
            let is_left_out = steps.is_none() && kind.is_some() && *key == "then" && fields.has("else");
            let Some(steps) = steps.or(is_left_out.then_some(&[])) else { continue };
            let (path, id_path) = (fields.path.key(key), format!("{id_path}.{key}"));
            if steps.is_empty() && kind.is_some() && *key == "steps" {
                report.error(diagnostic::EMPTY, &path, "`steps` is empty", "give it at least one step");
            }
            let owner = Some(number);
            let inside = Surroundings { owner, order: *order, path, id_path: &id_path, depth: depth + 1, in_loop };
            let block = self.block(steps, &inside, report);
            self.entries[number as usize].branches.push((key, block));
        }
    }

    fn name(&mut self, id: &str, number: u32, fields: &Fields<'a>, report: &mut Report<'_>) {
        match self.names.get(id) {
            None => {
                self.names.insert(id.to_string(), number);
            }
            Some(first) => {
                let first = report.place_in_words(&self.entries[*first as usize].fields.path.key("id"));
                let message = format!("duplicate id {}: the first step of that id stands {first}", named(id));
                report.error(
                    diagnostic::DUPLICATE_ID,
                    &fields.path.key("id"),
                    message,
                    "give each step an id of its own",
                );
            }
        }
    }

    /// Two branches that run at the same time may not write one output variable: the last one would win by chance.
    fn check_output_variables(&self, report: &mut Report<'_>) {
        let mut writers: BTreeMap<(&str, u32), (u32, u32)> = BTreeMap::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let Some(name) = entry.fields.get("outputVariable").and_then(Value::as_text) else { continue };
            let number = number as u32;
            let mut clash = None;
            for (block, branch) in self.way_up(number) {
                if self.blocks[block as usize].order == Order::Parallel {
                    let (first_branch, first) = *writers.entry((name, block)).or_insert((branch, number));
                    clash = clash.or((first_branch != branch).then_some(first));
                }
            }
            if let Some(first) = clash {
                let (first, second) = (named(&self.entries[first as usize].id), named(&entry.id));
                let message = format!("{first} and {second} run at the same time and both write {}", named(name));
                let path = entry.fields.path.key("outputVariable");
                report.error(
                    diagnostic::DUPLICATE_OUTPUT_VARIABLE,
                    &path,
                    message,
                    "give each branch a variable of its own",
                );
            }
        }
    }

    /// The blocks around a step from the inside out, each with its step that is or contains the step.
    pub(super) fn way_up(&self, step: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut next = Some(step);
        core::iter::from_fn(move || {
            let step = next?;
            let block = self.entries[step as usize].block;
            next = self.blocks[block as usize].owner;
            Some((block, step))
        })
    }
}

fn kind_of(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<&'static Kind> {
    let names = KINDS.iter().map(|kind| kind.name);
    if !fields.has("type") {
        let known = names.collect::<Vec<_>>().join(", ");
        report.missing(fields, "type", format!("say what the step does: {known}"));
        return None;
    }
    let name = report.filled_text(fields, "type")?;
    let kind = Kind::of(name);
    if kind.is_none() {
        let message = format!("unknown step type {}", quoted(name));
        report.error(diagnostic::UNKNOWN_TYPE, &fields.path.key("type"), message, write_instead(name, names));
    }
    kind
}

/// The given id, also where it is a bad one: others may refer to it, and one mistake is told once.
fn id_of<'a>(fields: &Fields<'a>, report: &mut Report<'_>) -> Option<&'a str> {
    let id = report.filled_text(fields, "id")?;
    check_name(id, "id", &fields.path, report);
    if RESERVED_NAMES.contains(&id) {
        let message = format!("`{id}` is no id: `@{id}` means something else");
        report.error(diagnostic::BAD_NAME, &fields.path.key("id"), message, format!("write another, as `{id}_step`"));
    }
    Some(id)
}

/// Refuses what cannot be written after an `@`.
pub(super) fn check_name(name: &str, key: &str, path: &Path, report: &mut Report<'_>) {
    if !is_name(name) {
        let message = format!("{} is no name", quoted(name));
        let mend = format!("`{key}` is a letter or `_`, then letters, digits, `_` and `-`");
        report.error(diagnostic::BAD_NAME, &path.key(key), message, mend);
    }
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        let message = format!("`{key}` has more than {NAME_CHARS_MAX} characters");
        report.error(diagnostic::TOO_LARGE, &path.key(key), message, "write a shorter one");
    }
}
