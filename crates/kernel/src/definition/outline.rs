//! First pass of the compiler: numbers the steps and collects ids, blocks and output variables.
//!
//! Reading a single step requires these facts about the whole plan. The keys of steps are checked in the second pass.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cell::OnceCell;

use super::{
    agents::is_conversation,
    fields::Fields,
    first_round::Loops,
    help::Help,
    inspector::{Complaint, FunctionTypes, Inspector},
    keys,
    notation::{ACTIONS, Notation},
    report::{Report, named},
    step_types::{BRANCHES_OF_UNKNOWN, Kind},
    suggest::{
        adapt::flow,
        nearest::{meant, write_instead},
        rewrite_types, values,
    },
    untyped,
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    fix::Fix,
    limits::{NAME_CHARS_MAX, PLAN_DEPTH_MAX, PLAN_STEPS_MAX, SOURCE_BYTES_MAX},
    plan::{AgentPart, Block, Order},
    reference::{RESERVED_NAMES, Reference, Root, is_name, length},
    value::{Map, Value},
};

/// The declarations at the root of a definition.
#[derive(Debug, Default)]
pub(super) struct Declared<'a> {
    /// The JSON Schema of the input.
    pub input_schema: Option<&'a Value>,
    /// The declared variables; `None` if any variable may be given.
    pub variables: Option<&'a Map>,
}

impl<'a> Declared<'a> {
    pub(super) fn of(root: &Fields<'a>) -> Self {
        let variables = root.get("variables").and_then(Value::as_map).filter(|_| !root.has("defaultContext"));
        Self { input_schema: root.get("inputSchema"), variables }
    }
}

/// The tree of steps as flat lists.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    /// The notation of the definition.
    pub notation: Notation,
    /// The steps by number: each container before its contents, otherwise in written order.
    pub entries: Vec<Entry<'a>>,
    /// The blocks by number, in the order of their first steps.
    pub blocks: Vec<Block>,
    /// The step number of each id.
    pub names: BTreeMap<String, u32>,
    /// The output variables, each with the first step that writes it.
    pub outputs: BTreeMap<&'a str, u32>,
    /// The declared input schema and variables.
    pub declared: Declared<'a>,
    /// The block of `finally`.
    pub finally: Option<u32>,
    outside: Outside<'a>,
    written: usize,
}

/// The source of facts that the definition does not contain.
struct Outside<'a>(&'a dyn Inspector);

impl core::fmt::Debug for Outside<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Outside")
    }
}

/// The facts about a step that the inspector knows, each asked for once.
#[derive(Debug, Default)]
struct Facts {
    /// The function of a `code` step.
    code: OnceCell<Result<FunctionTypes, Complaint>>,
    /// The `transform` function.
    transform: OnceCell<Result<FunctionTypes, Complaint>>,
    /// The shape of the output of the workflow that the step starts.
    workflow: OnceCell<Option<Value>>,
}

/// A step of the outline.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The keys of the step and its path.
    pub fields: Fields<'a>,
    /// The type; `None` if it is missing or unknown.
    pub kind: Option<&'static Kind>,
    /// The id as written, otherwise the path of the step.
    pub id: String,
    /// True if the id was written.
    pub has_own_id: bool,
    /// The block that contains the step.
    pub block: u32,
    /// The inner blocks, by key.
    pub branches: Vec<(&'static str, u32)>,
    /// The loop names that are defined here.
    pub inside: InLoop,
    /// The part of the written step that this entry stands for.
    pub role: Role,
    /// The facts about it that were asked for; few steps have any.
    facts: OnceCell<Box<Facts>>,
}

/// The part of a written step that an entry stands for. A step with `forEach` has two entries, and an agent with turns has
/// three more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The whole step.
    Whole,
    /// The loop of a step with `forEach`.
    Each,
    /// The body of a step with `forEach`: the work for one item.
    Body,
    /// A step inside an agent.
    Agent(AgentPart),
}

/// The loop names that the enclosing loops define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct InLoop {
    /// `@item` is defined.
    pub item: bool,
    /// `@index` is defined.
    pub index: bool,
}

impl Entry<'_> {
    /// True if the entry is the first one of a written step.
    pub(super) fn is_first(&self) -> bool {
        matches!(self.role, Role::Whole | Role::Each)
    }

    fn facts(&self) -> &Facts {
        self.facts.get_or_init(Box::default)
    }

    /// True if a function makes the output.
    pub(super) fn transforms(&self) -> bool {
        self.fields.has("transform")
            || self.fields.get("action").is_some_and(|action| action.get("transformCode").is_some())
    }

    /// True if the inner steps run in rounds.
    pub(super) fn is_loop(&self) -> bool {
        self.role == Role::Each || self.kind.is_some_and(|kind| kind.name == "loop")
    }
}

/// The context of a list of steps.
struct Surroundings<'p> {
    owner: Option<u32>,
    order: Order,
    path: Path,
    id_path: &'p str,
    depth: usize,
    inside: InLoop,
}

/// A step before it has a number.
struct Written<'a> {
    fields: Fields<'a>,
    kind: Option<&'static Kind>,
    id: String,
    has_own_id: bool,
    id_path: String,
}

impl<'a> Outline<'a> {
    /// Numbers the steps of the two lists and all steps inside them.
    pub(super) fn read(notation: Notation, steps: &'a [Value], finally: &'a [Value], report: &mut Report<'a>) -> Self {
        let (entries, blocks, names, outputs) = (Vec::new(), Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (declared, outside, written) = (Declared::default(), Outside(report.inspector()), 0);
        let mut outline = Self { notation, entries, blocks, names, outputs, declared, finally: None, outside, written };
        let (path, order) = (Path::root().key(notation.list_key()), Order::Sequence);
        let id_path = notation.id_path();
        let around = Surroundings { owner: None, order, path, id_path, depth: 0, inside: InLoop::default() };
        outline.block(steps, &around, report);
        if !finally.is_empty() {
            let (path, order) = (Path::root().key("finally"), Order::Sequence);
            // These steps need no names, so they count as inner ones.
            let inside = InLoop::default();
            let around = Surroundings { owner: None, order, path, id_path: "finally", depth: 1, inside };
            outline.finally = Some(outline.block(finally, &around, report));
        }
        outline.check_output_variables(report);
        outline
    }

    fn block(&mut self, steps: &'a [Value], around: &Surroundings<'_>, report: &mut Report<'_>) -> u32 {
        let number = self.open(around.owner, around.order.clone());
        if around.depth > PLAN_DEPTH_MAX {
            let message = format!("steps inside steps more than {PLAN_DEPTH_MAX} deep");
            report.error(diagnostic::TOO_LARGE, &around.path, message, "move the inner ones out");
            return number;
        }
        for (at, step) in steps.iter().enumerate() {
            self.written += 1;
            if self.written > PLAN_STEPS_MAX {
                if self.written == PLAN_STEPS_MAX + 1 {
                    let message = format!("more than {PLAN_STEPS_MAX} steps in one plan");
                    report.error(diagnostic::TOO_LARGE, &around.path.index(at), message, "split the workflow");
                }
                break;
            }
            self.step(step, at, number, around, report);
        }
        number
    }

    fn open(&mut self, owner: Option<u32>, order: Order) -> u32 {
        self.blocks.push(Block { owner, order, steps: Vec::new() });
        self.blocks.len() as u32 - 1
    }

    fn step(&mut self, step: &'a Value, at: usize, block: u32, around: &Surroundings<'_>, report: &mut Report<'_>) {
        let path = around.path.index(at);
        let Some(map) = step.as_map() else {
            let message = format!("a step must be an object, not {}", step.kind());
            let help = match step.as_text() {
                Some(script) => {
                    let step = Value::map([("type", "bash".into()), ("command", script.into())]);
                    Help::from(format!("write `{}` if this is a script", flow(&step)))
                }
                None => rewrite_types::of_list(&path, step)
                    .filter(|_| self.notation == Notation::Sequence)
                    .unwrap_or_else(|| "write {type: …} and the keys of that type".into()),
            };
            report.error(diagnostic::WRONG_KIND, &path, message, help);
            return;
        };
        let fields = Fields { map, path };
        let id_path = format!("{}[{at}]", around.id_path);
        let kind = kind_of(self.notation, &fields, report);
        let given = id_of(self.notation, around.depth, &fields, report);
        let (id, has_own_id) = (given.map_or_else(|| id_path.clone(), ToString::to_string), given.is_some());
        let written = Written { fields, kind, id, has_own_id, id_path };
        let is_loop = kind.is_some_and(|kind| kind.name == "loop");
        let has_items = written.fields.has("forEach");
        let inside =
            InLoop { item: around.inside.item || has_items, index: around.inside.index || is_loop || has_items };
        self.name(&written, report);
        if is_loop || !has_items {
            let own = if is_loop { around.inside } else { inside };
            let number = self.entry(&written, block, own, Role::Whole);
            self.branches(number, &written, around.depth, inside, report);
            self.agent(number, &written, own);
            return;
        }
        let each = self.entry(&written, block, around.inside, Role::Each);
        let body = self.open(Some(each), Order::Sequence);
        self.entries[each as usize].branches.push(("steps", body));
        let number = self.entry(&written, body, inside, Role::Body);
        self.branches(number, &written, around.depth, inside, report);
        self.agent(number, &written, inside);
    }

    /// Adds the steps inside an agent with turns: the model call, and the loop of tool calls with its step.
    fn agent(&mut self, number: u32, written: &Written<'a>, inside: InLoop) {
        if !is_conversation(written.kind, &written.fields) {
            return;
        }
        let turn = self.open(Some(number), Order::Sequence);
        self.entries[number as usize].branches.push(("steps", turn));
        self.agent_part(turn, written, inside, AgentPart::Model);
        let calls = self.agent_part(turn, written, inside, AgentPart::Calls);
        let call = self.open(Some(calls), Order::Sequence);
        self.entries[calls as usize].branches.push(("steps", call));
        self.agent_part(call, written, inside, AgentPart::Call);
    }

    fn agent_part(&mut self, block: u32, written: &Written<'a>, inside: InLoop, part: AgentPart) -> u32 {
        let number = self.entry(written, block, inside, Role::Agent(part));
        let entry = &mut self.entries[number as usize];
        // No reference reaches a step whose id has `#`.
        (entry.id, entry.has_own_id) = (format!("{}{}", written.id, part.suffix()), true);
        number
    }

    fn entry(&mut self, written: &Written<'a>, block: u32, inside: InLoop, role: Role) -> u32 {
        let number = self.entries.len() as u32;
        self.blocks[block as usize].steps.push(number);
        if let Some(output) = written.fields.get("outputVariable").and_then(Value::as_text) {
            self.outputs.entry(output).or_insert(number);
        }
        self.entries.push(Entry {
            fields: written.fields.clone(),
            kind: written.kind,
            id: written.id.clone(),
            has_own_id: written.has_own_id,
            block,
            branches: Vec::new(),
            inside,
            role,
            facts: OnceCell::new(),
        });
        number
    }

    fn branches(&mut self, number: u32, written: &Written<'a>, depth: usize, inside: InLoop, report: &mut Report<'_>) {
        let (fields, kind) = (&written.fields, written.kind);
        for (key, at_the_same_time) in kind.map_or(BRANCHES_OF_UNKNOWN, |kind| kind.branches) {
            let steps = match kind {
                Some(_) => report.list(fields, key),
                None => fields.get(key).and_then(Value::as_list),
            };
            // A conditional with only `else` gets an empty block for `then`; otherwise the first block would be the one
            // for `else`.
            let is_left_out = steps.is_none() && kind.is_some() && *key == "then" && fields.has("else");
            let Some(steps) = steps.or(is_left_out.then_some(&[])) else { continue };
            let (path, id_path) = (fields.path.key(key), format!("{}.{key}", written.id_path));
            if steps.is_empty() && kind.is_some() && *key == "steps" {
                report.error(diagnostic::EMPTY, &path, "`steps` is empty", "give it at least one step");
            }
            let order = if *at_the_same_time { Order::Parallel } else { Order::Sequence };
            let owner = Some(number);
            let inside = Surroundings { owner, order, path, id_path: &id_path, depth: depth + 1, inside };
            let block = self.block(steps, &inside, report);
            self.entries[number as usize].branches.push((key, block));
        }
    }

    fn name(&mut self, written: &Written<'a>, report: &mut Report<'_>) {
        let number = self.entries.len() as u32;
        let key = self.notation.id_key();
        match self.names.get(&written.id) {
            None => {
                self.names.insert(written.id.clone(), number);
            }
            Some(first) => {
                let first = report.place_in_words(&self.entries[*first as usize].fields.path.key(key));
                let id = named(&written.id);
                let message = format!("duplicate {key} {id}: the first step of that {key} stands {first}");
                let other = (2..).map(|at| format!("{}_{at}", written.id)).find(|id| !self.names.contains_key(id));
                let which = if key == "id" { "an id" } else { "a name" };
                let help = match other.filter(|_| written.has_own_id) {
                    Some(other) => format!("give each step {which} of its own: write `{other}`"),
                    None => format!("give each step {which} of its own"),
                };
                report.error(diagnostic::DUPLICATE_ID, &written.fields.path.key(key), message, help);
            }
        }
    }

    /// Reports an output variable that two parallel branches write: the final value would depend on timing.
    fn check_output_variables(&self, report: &mut Report<'_>) {
        let mut writers: BTreeMap<(&str, u32), (u32, u32)> = BTreeMap::new();
        for (number, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.is_first()) {
            let Some(name) = entry.fields.get("outputVariable").and_then(Value::as_text) else { continue };
            let number = number as u32;
            let mut clash = None;
            for (block, branch) in self.way_up(number) {
                if matches!(self.blocks[block as usize].order, Order::Parallel) {
                    let (first_branch, first) = *writers.entry((name, block)).or_insert((branch, number));
                    clash = clash.or((first_branch != branch).then_some(first));
                }
            }
            self.check_rounds(number, name, report);
            if let Some(first) = clash {
                let (first, second) = (named(&self.entries[first as usize].id), named(&entry.id));
                let message = format!("{first} and {second} run at the same time and both write {}", named(name));
                let path = entry.fields.path.key("outputVariable");
                report.error(
                    diagnostic::DUPLICATE_OUTPUT_VARIABLE,
                    &path,
                    message,
                    format!("give each branch a variable of its own: write `{}_2`", name),
                );
            }
        }
    }

    /// Warns about an output variable that concurrent rounds write: the final value depends on timing.
    fn check_rounds(&self, number: u32, name: &str, report: &mut Report<'_>) {
        let at_once = |around: &u32| {
            let list = self.entries[*around as usize].fields.get("forEach");
            list.and_then(|list| list.get("concurrency")).and_then(Value::as_u64).is_some_and(|rounds| rounds > 1)
        };
        // The entry of the loop itself is not inside the loop: it writes its variable once, after all rounds.
        let mut around = self.way_up(number).filter_map(|(block, _)| self.blocks[block as usize].owner);
        let Some(around) = around.find(at_once) else { return };
        let (entry, around) = (&self.entries[number as usize], named(&self.entries[around as usize].id));
        let id = named(&entry.id);
        let message = format!("rounds of {around} run at the same time, and {id} writes {} in each", named(name));
        let help = "the round that ends last wins: refer to the output of the loop, which has that of every round, or \
                    leave `concurrency` out";
        report.warning(diagnostic::DUPLICATE_OUTPUT_VARIABLE, &entry.fields.path.key("outputVariable"), message, help);
    }

    /// Resolves the name at the start of a reference in a step.
    pub(super) fn root_of(&self, step: u32, name: &str) -> Option<Root> {
        let inside = self.entries.get(step as usize).map(|entry| entry.inside).unwrap_or_default();
        match name {
            "input" => Some(Root::Input),
            "vars" => Some(Root::Variables),
            "ctx" => Some(Root::Context),
            "item" => inside.item.then_some(Root::Item),
            "index" => inside.index.then_some(Root::Index),
            id => self.names.get(id).map(|number| Root::Step(*number)),
        }
    }

    /// Reads a whole reference in a step.
    pub(super) fn reference(&self, step: u32, text: &str) -> Option<Reference> {
        let body = text.strip_prefix('@').filter(|body| length(body).is_some_and(|(_, all)| all == body.len()))?;
        Reference::read(body, &|name| self.root_of(step, name))
    }

    /// Returns the answer of the inspector about a function of a step, `code` or `transform`.
    pub(super) fn function(&self, step: u32, key: &str) -> Option<&Result<FunctionTypes, Complaint>> {
        let entry = self.entries.get(step as usize)?;
        let action = entry.fields.get("action").filter(|_| self.notation == Notation::Dataflow);
        let (cell, source) = match key {
            "code" => (&entry.facts().code, action.map_or(entry.fields.get("code"), |action| action.get("code"))),
            _ => {
                let in_action = action.and_then(|action| action.get("transformCode"));
                (&entry.facts().transform, in_action.or(entry.fields.get("transform")))
            }
        };
        let source = source.and_then(Value::as_text).filter(|source| source.len() <= SOURCE_BYTES_MAX)?;
        Some(cell.get_or_init(|| self.outside.0.source(source)))
    }

    /// Returns the shape of the output of the workflow that a step starts, if the inspector knows it.
    pub(super) fn workflow(&self, step: u32) -> Option<&Value> {
        let entry = self.entries.get(step as usize)?;
        let name = entry.fields.get("workflow").and_then(Value::as_text)?;
        entry.facts().workflow.get_or_init(|| self.outside.0.workflow(name)).as_ref()
    }

    /// True if a step is in `finally`, at any depth.
    pub(super) fn is_in_finally(&self, step: u32) -> bool {
        let first = self.finally.and_then(|block| self.blocks[block as usize].steps.first());
        first.is_some_and(|first| step >= *first)
    }

    /// Returns the enclosing blocks from the inside out, each with the member that is or contains the step.
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

impl Loops for Outline<'_> {
    fn is_inside(&self, step: u32, of: u32) -> bool {
        self.way_up(step).skip(1).any(|(_, around)| around == of)
    }

    fn root_of(&self, step: u32, name: &str) -> Option<Root> {
        Outline::root_of(self, step, name)
    }
}

fn kind_of(notation: Notation, fields: &Fields<'_>, report: &mut Report<'_>) -> Option<&'static Kind> {
    if notation == Notation::Dataflow && fields.has("action") {
        let action = report.object(fields, "action")?;
        return kind_of_action(notation, fields, &action, report);
    }
    if !fields.has("type") {
        untyped::report(notation, fields, report);
        return None;
    }
    let name = report.filled_text(fields, "type")?;
    Kind::of(name).or_else(|| unknown_type(name, fields, report))
}

/// Reports an unknown type. Returns the type that was meant, if there is one, so that the other mistakes of the step are
/// reported as well.
fn unknown_type(name: &str, fields: &Fields<'_>, report: &mut Report<'_>) -> Option<&'static Kind> {
    let message = format!("unknown step type {}", quoted(name));
    let path = fields.path.key("type");
    // The names of n8n have the package in front.
    let word = name.rsplit('.').next().unwrap_or(name);
    let of_others = rewrite_types::of_type(name, fields).or_else(|| values::of_each(name, fields));
    let kind = meant(word, keys::step_types()).filter(|_| of_others.is_none()).and_then(Kind::of);
    let help = of_others.unwrap_or_else(|| write_instead(&path, word, keys::step_types()));
    report.error(diagnostic::UNKNOWN_TYPE, &path, message, help);
    kind
}

fn kind_of_action(
    notation: Notation,
    fields: &Fields<'_>,
    action: &Fields<'_>,
    report: &mut Report<'_>,
) -> Option<&'static Kind> {
    for key in action.map.keys().filter(|key| !keys::ACTION.contains(&key.as_str())) {
        if ["input", "when", "forEach", "bail", "config"].contains(&key.as_str()) {
            let message = format!("`{key}` stands inside `action`");
            let from = action.path.key(key);
            let fix = if fields.has(key) { Fix::default() } else { Fix::moved(&from, fields.path.key(key)) };
            let help = Help::new("put it beside `action`", fix);
            report.error_at_key(diagnostic::MISPLACED_KEY, &from, message, help);
        } else if ["arguments", "parameters", "params", "with"].contains(&key.as_str()) && !fields.has("input") {
            let from = action.path.key(key);
            let help = Help::new("put it beside `action`, as `input`", Fix::moved(&from, fields.path.key("input")));
            report.error_at_key(diagnostic::MISPLACED_KEY, &from, format!("`{key}` stands inside `action`"), help);
        } else {
            report.unknown_key(&action.path, key, keys::ACTION.into_iter());
        }
    }
    let given: Vec<&str> = ACTIONS.iter().map(|(key, _)| *key).filter(|key| action.has(key)).collect();
    let help = "write {toolName: …}, {code: …} or {return: true}";
    match given.as_slice() {
        [] => report.missing(action, "toolName", help),
        [_] => {}
        several => {
            let message = format!("an `action` does one thing, and this one has {}", several.join(" and "));
            report.error(diagnostic::EXCLUSIVE_KEYS, &action.path, message, help);
        }
    }
    notation.kind_name(fields).and_then(|(_, name)| Kind::of(name))
}

/// Returns the written id, even an invalid one: references to it are then not reported as well.
fn id_of<'a>(notation: Notation, depth: usize, fields: &Fields<'a>, report: &mut Report<'_>) -> Option<&'a str> {
    let key = notation.id_key();
    if !fields.has(key) && depth == 0 && notation != Notation::Sequence {
        let label = fields.get("name").and_then(Value::as_text).filter(|label| is_name(label));
        let help = match label {
            Some(label) => {
                let text = format!("write `id: {label}`: the `name` of a node is for readers");
                Help::new(text, Fix::add(fields.path.key("id"), label))
            }
            None => unnamed(fields, key).into(),
        };
        report.missing(fields, key, help);
    }
    let id = report.filled_text(fields, key)?;
    check_name(id, key, &fields.path, report);
    if RESERVED_NAMES.contains(&id) {
        let message = format!("`{id}` is no {key}: `@{id}` means something else");
        report.error(
            diagnostic::BAD_NAME,
            &fields.path.key(key),
            message,
            format!("write another, as in: write `{id}_step`"),
        );
    }
    Some(id)
}

/// Suggests a name for a step without one, after its type.
fn unnamed(fields: &Fields<'_>, key: &str) -> String {
    let word = fields.get("type").and_then(Value::as_text).filter(|word| is_name(word)).unwrap_or("step");
    format!("write `{key}: {word}_1`, or another name that no other step has")
}

/// Replaces the characters that a name may not contain.
fn fitting(name: &str) -> String {
    let name = name.trim().trim_start_matches('@');
    let first = if name.starts_with(|first: char| first.is_ascii_digit()) { "_" } else { "" };
    let letters = name.chars().map(|sign| if sign.is_ascii_alphanumeric() || sign == '-' { sign } else { '_' });
    first.chars().chain(letters).collect()
}

/// Reports a name that cannot be written after `@`.
pub(super) fn check_name(name: &str, key: &str, path: &Path, report: &mut Report<'_>) {
    if !is_name(name) {
        let message = format!("{} is no name", quoted(name));
        let rule = format!("`{key}` is a letter or `_`, then letters, digits, `_` and `-`");
        let fitting = fitting(name);
        let at = path.key(key);
        let help = match is_name(&fitting) {
            true => Help::new(format!("write {}: {rule}", quoted(&fitting)), Fix::replace(&at, fitting.as_str())),
            false => rule.into(),
        };
        report.error(diagnostic::BAD_NAME, &path.key(key), message, help);
    }
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        let message = format!("`{key}` has more than {NAME_CHARS_MAX} characters");
        report.error(diagnostic::TOO_LARGE, &path.key(key), message, "write a shorter one");
    }
}
