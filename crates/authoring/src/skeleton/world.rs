//! The values of a case: input, variables and the results of all steps that a scenario scripts.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    budget::Budget,
    instance::Instance,
    json,
    plan::{AgentPart, Gate, Loop, Order, Output, Over, Plan, WORKFLOW_TOOL, Work},
    reference::{Found, Lookup, Part, Reference, Root},
    template::Template,
    value::{Map, Number, Value},
};

use super::samples;

/// The values of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) input: Value,
    /// An object by name; null if there are none.
    variables: Value,
    /// The results of effects, child workflows and signals, by step.
    pub(super) outputs: BTreeMap<u32, Value>,
    /// The results before any condition has changed them.
    originals: BTreeMap<u32, Value>,
    /// Values of agents whose answers are JSON.
    answers: BTreeMap<u32, Value>,
    /// Steps whose effect fails.
    pub(super) failing: BTreeSet<u32>,
    /// The gate that is denied; for a call of an agent, the agent.
    pub(super) denied: Option<u32>,
    /// The agent whose model calls a tool that asks first.
    pub(super) calling: Option<u32>,
}

impl World {
    /// Creates values with which all references of a plan lead somewhere.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut world = Self::default();
        if let Some(schema) = &plan.input_schema {
            world.input = samples::of_schema(schema);
        }
        for variable in plan.variables.iter().flatten().filter(|variable| variable.default.is_none()) {
            world.set_variable(&variable.name, samples::of_variable(variable.kind));
        }
        for step in 0..plan.steps.len() as u32 {
            world.script(plan, step);
        }
        for reference in references(plan) {
            world.require(plan, reference.root, &reference.path);
        }
        for step in 0..plan.steps.len() as u32 {
            world.fill(plan, step);
        }
        world.originals = world.outputs.clone();
        world
    }

    fn script(&mut self, plan: &Plan, number: u32) {
        let step = plan.step(number);
        // Nothing performs a message to a conversation, so no script is called.
        if plan.agent_part(number).is_some() || plan.conversation_of_message(number).is_some() {
            return;
        }
        let sample = step.output_schema.as_ref().filter(|_| step.transform.is_none()).map(samples::of_schema);
        match &step.work {
            work if work.runner().is_some() => {
                let mut output = samples::answer();
                if let (Value::Map(fields), Some(value)) =
                    (&mut output, step.output_schema.as_ref().map(samples::of_schema))
                {
                    fields.insert("value".into(), value);
                }
                self.outputs.insert(number, output);
            }
            Work::Effect { effect, .. } => {
                let result = samples::with_sample(samples::result(effect, &step.id), sample);
                self.outputs.insert(number, result);
            }
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => {
                if let Some(schema) = &agent.answer_schema {
                    self.answers.insert(number, samples::of_schema(schema));
                }
                self.outputs.insert(number, samples::answer());
            }
            Work::Subworkflow { .. } | Work::Signal { .. } => {
                self.outputs.insert(number, sample.unwrap_or_else(|| Map::new().into()));
            }
            _ => {}
        }
    }

    /// Makes a path lead somewhere, unless it does.
    fn require(&mut self, plan: &Plan, root: Root, path: &[Part]) {
        for (root, path) in targets(plan, root, path) {
            if root == Root::Input && plan.input_schema.is_some() {
                continue;
            }
            if let Some(value) = self.slot(root).filter(|value| follow(value, &path).is_none()) {
                put(value, &path, samples::TEXT.into());
            }
        }
    }

    /// Makes the list of a loop a list of two items, and gives a sleep its duration or its time.
    fn fill(&mut self, plan: &Plan, number: u32) {
        let (reference, value) = match &plan.step(number).work {
            Work::Loop(Loop { over: Over::Items(list), .. }) => (list, items_of(plan, number)),
            Work::Sleep { duration_ms: Template::Whole(reference) } => (reference, 1_000u64.into()),
            Work::SleepUntil { time: Template::Whole(reference) } => (reference, "2026-02-07T12:00:00Z".into()),
            _ => return,
        };
        for (root, path) in targets(plan, reference.root, &reference.path) {
            if let Some(slot) = self.slot(root) {
                let has_kind = follow(slot, &path).is_some_and(|old| old.kind() == value.kind());
                if !has_kind || matches!(value, Value::Text(_)) {
                    put(slot, &path, value.clone());
                }
            }
        }
    }

    /// Sets the value of a reference. Returns false if no input and no result has it.
    pub(super) fn set(&mut self, plan: &Plan, root: Root, path: &[Part], value: Value) -> bool {
        let targets = targets(plan, root, path);
        let mut is_set = false;
        for (root, path) in targets {
            if let Some(slot) = self.slot(root) {
                put(slot, &path, value.clone());
                is_set = true;
            }
        }
        is_set
    }

    /// Returns the value of a reference before any condition has changed it.
    pub(super) fn original(&self, root: Root, path: &[Part]) -> Option<Value> {
        let Root::Step(step) = root else { return None };
        self.originals.get(&step).and_then(|value| follow(value, path)).cloned()
    }

    pub(super) fn set_variable(&mut self, name: &str, value: Value) {
        put(&mut self.variables, &[Part::Name(name.into())], value);
    }

    /// Removes the value of a reference.
    pub(super) fn remove(&mut self, plan: &Plan, root: Root, path: &[Part]) -> bool {
        let [(root, path)] = targets(plan, root, path).try_into().unwrap_or_else(|_| [(Root::Index, Vec::new())]);
        let (Some(slot), Some((Part::Name(name), above))) = (self.slot(root), path.split_last()) else {
            return false;
        };
        let above = above.iter().try_fold(slot, |value, part| match (value, part) {
            (Value::Map(map), Part::Name(name)) => map.get_mut(name),
            _ => None,
        });
        let Some(Value::Map(map)) = above else { return false };
        map.remove(name).is_some()
    }

    fn slot(&mut self, root: Root) -> Option<&mut Value> {
        match root {
            Root::Input => Some(&mut self.input),
            Root::Variables => Some(&mut self.variables),
            Root::Step(step) if self.answers.contains_key(&step) => self.answers.get_mut(&step),
            Root::Step(step) => self.outputs.get_mut(&step),
            Root::Context | Root::Item | Root::Index => None,
        }
    }

    /// Returns the fields of the case: input, variables, effects, inbox and workflows.
    pub(super) fn fields(&self, plan: &Plan) -> Map {
        let mut fields = Map::new();
        let (mut effects, mut inbox, mut workflows) = (Map::new(), Vec::new(), Map::new());
        for (number, output) in &self.outputs {
            let step = plan.step(*number);
            match &step.work {
                Work::Signal { name } => {
                    let signal = Value::map([("name", name.as_str().into()), ("payload", output.clone())]);
                    let entry = |at| Value::map([("at", at), ("signal", signal.clone())]);
                    inbox.extend(waits_of(plan, *number).into_iter().map(entry));
                }
                Work::Subworkflow { workflow, .. } => {
                    let end = Value::map([("type", "return".into()), ("input", output.clone())]);
                    workflows.insert(workflow.clone(), Value::map([("steps", vec![end].into())]));
                }
                _ => {
                    let result = if self.failing.contains(number) { failure() } else { self.result(*number, output) };
                    let call = guarded_call(plan, *number).filter(|_| self.calling == Some(*number));
                    let result = match call {
                        Some((_, tool)) => vec![tool_call(&tool), result].into(),
                        None => result,
                    };
                    effects.insert(step.id.clone(), result);
                }
            }
        }
        for number in 0..plan.steps.len() as u32 {
            inbox.extend(self.decisions(plan, number));
        }
        if let Some((call, tool)) = self.calling.and_then(|agent| guarded_call(plan, agent)) {
            let decision = if self.denied == self.calling { "deny" } else { "approve" };
            let at = Value::map([("waiting", call.as_str().into())]);
            inbox.push(Value::map([("at", at), ("decide", decision.into())]));
            let kind = if matches!(tool.as_str(), "bash" | "http") { tool.as_str() } else { "tool" };
            effects.insert(call.clone(), Value::map([("return", samples::result(kind, &call))]));
        }
        if let Some(prices) = prices(plan) {
            fields.insert("prices".into(), prices);
        }
        if self.input != Value::Null {
            fields.insert("input".into(), self.input.clone());
        }
        if self.variables != Value::Null {
            fields.insert("variables".into(), self.variables.clone());
        }
        let parts = [("effects", &effects), ("workflows", &workflows)];
        for (key, map) in parts.into_iter().filter(|(_, map)| !map.is_empty()) {
            fields.insert(key.into(), map.clone().into());
        }
        if !inbox.is_empty() {
            fields.insert("inbox".into(), inbox.into());
        }
        fields
    }

    /// Returns the decisions at a gate, in all rounds of the loops around it.
    fn decisions(&self, plan: &Plan, step: u32) -> Vec<Value> {
        let (people, count) = match &plan.step(step).work {
            Work::Approval(gate) => (people(gate), gate.count as usize),
            _ if asks(plan, step) => (vec![OWNER.to_string()], 1),
            _ => return Vec::new(),
        };
        let (decision, count) = if self.denied == Some(step) { ("deny", 1) } else { ("approve", count) };
        let entry = |at: &Value, by: String| {
            let mut entry = Value::map([("at", at.clone()), ("decide", decision.into())]);
            if let (Value::Map(map), true) = (&mut entry, by != OWNER) {
                map.insert("by".into(), by.into());
            }
            entry
        };
        let people = &people[..count.min(people.len())];
        let waits = waits_of(plan, step);
        waits.iter().flat_map(|at| people.iter().map(move |by| entry(at, by.clone()))).collect()
    }

    fn result(&self, step: u32, output: &Value) -> Value {
        let mut output = output.clone();
        if let (Some(answer), Value::Map(map)) = (self.answers.get(&step), &mut output) {
            map.insert("text".into(), json::compact(answer).into());
        }
        Value::map([("return", output)])
    }
}

/// True if the policy asks a person before the call of a step that is not inside of an agent.
pub(super) fn asks(plan: &Plan, step: u32) -> bool {
    let guard = plan.step(step).guard.filter(|_| plan.agent_part(step).is_none());
    guard.is_some_and(|guard| !guard.is_denied)
}

/// Returns the name of an agent's first tool call, if the policy asks before it, and a tool that the model can call.
/// `None` for agents in loops.
pub(super) fn guarded_call(plan: &Plan, agent: u32) -> Option<(String, String)> {
    let Work::Loop(Loop { over: Over::Turns(work), .. }) = &plan.step(agent).work else { return None };
    let is_call = |step: &u32| {
        let owner = plan.parent(*step).and_then(|calls| plan.parent(calls));
        plan.agent_part(*step) == Some(AgentPart::Call) && owner == Some(agent)
    };
    let step = (0..plan.steps.len() as u32).find(is_call)?;
    plan.step(step).guard.filter(|guard| !guard.is_denied && plan.loop_depth(agent) == 0)?;
    let is_call = |tool: &&String| !matches!(tool.as_str(), "ask" | "budget") && !tool.starts_with(WORKFLOW_TOOL);
    let tool = work.tools.iter().find(is_call)?;
    let tool = tool.strip_suffix('*').map_or_else(|| tool.clone(), |prefix| format!("{prefix}tool"));
    Some((Instance { step, rounds: vec![0, 0] }.name(plan), tool))
}

/// Returns the answer of a model that calls a tool.
fn tool_call(tool: &str) -> Value {
    let arguments = match tool {
        "bash" => Value::map([("command", "echo text".into())]),
        "http" => Value::map([("method", "GET".into()), ("url", "https://example.org/".into())]),
        _ => Map::new().into(),
    };
    let call = Value::map([("id", "call1".into()), ("name", tool.into()), ("arguments", arguments)]);
    Value::map([("return", Value::map([("toolCalls", vec![call].into())]))])
}

/// Returns prices for the models of a plan whose budgets limit the cost: those that an execution has pinned, else samples.
pub(super) fn prices(plan: &Plan) -> Option<Value> {
    let has_cost = |budget: Option<&Budget>| budget.is_some_and(|budget| budget.limits.has_cost());
    let mut is_limited = has_cost(plan.constraints.budget.as_ref());
    let mut models = Map::new();
    for step in &plan.steps {
        let settings = match &step.work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => {
                is_limited |= has_cost(agent.budget.as_ref());
                &agent.settings
            }
            Work::Effect { effect, params } if effect == "agent" => params,
            _ => continue,
        };
        let model = literal(settings, "model");
        let sample = Value::map([("input", 3u64.into()), ("output", 15u64.into())]);
        models.insert(model.unwrap_or("default").to_string(), pinned(plan, model).unwrap_or(sample));
    }
    let table = [("date", "2026-01-01".into()), ("currency", "USD".into()), ("models", models.into())];
    is_limited.then(|| Value::map(table))
}

/// Returns the price of a model that an execution has pinned, in units for a million tokens.
fn pinned(plan: &Plan, model: Option<&str>) -> Option<Value> {
    let terms = plan.models.as_ref()?;
    let price = terms.models.get(model.or(terms.default.as_deref())?)?.price?;
    let units = |billionths: u64| Number::double(billionths as f64 / 1_000.0).map_or(Value::Null, Value::Number);
    let parts = [("input", price.input), ("output", price.output), ("cachedInput", price.cached_input)];
    Some(Value::map(parts.map(|(key, billionths)| (key, units(billionths)))))
}

/// Returns a literal text among the fields of a template.
fn literal<'t>(template: &'t Template, key: &str) -> Option<&'t str> {
    match template {
        Template::Literal(value) => value.get(key)?.as_text(),
        Template::Map(fields) => match fields.iter().find(|(name, _)| name == key) {
            Some((_, Template::Literal(value))) => value.as_text(),
            _ => None,
        },
        _ => None,
    }
}

fn failure() -> Value {
    let error = [("class", "failed".into()), ("message", "scripted failure".into())];
    Value::map([("error", Value::map(error))])
}

/// The user who decides if an entry has no `by`.
const OWNER: &str = "owner";

/// Returns the people who may approve at a gate.
fn people(gate: &Gate) -> Vec<String> {
    let others = (1..gate.count as usize).map(|number| format!("person{number}"));
    match gate.approvers.as_slice() {
        [] => std::iter::once(OWNER.to_string()).chain(others).collect(),
        named => named.to_vec(),
    }
}

/// Maximum number of rounds with entries of their own, of all loops around a step together.
const ROUNDS_MAX: usize = 16;

/// Returns the times at which a step waits: in each of the two rounds of a loop over a list, and in the first round of
/// other loops.
fn waits_of(plan: &Plan, step: u32) -> Vec<Value> {
    let mut rounds: Vec<Vec<u32>> = vec![Vec::new()];
    for around in plan.loops_around(step) {
        let of_list = matches!(&plan.step(around).work, Work::Loop(Loop { over: Over::Items(_), .. }));
        let numbers = if of_list && rounds.len() * 2 <= ROUNDS_MAX { 0..2 } else { 0..1 };
        // Loops come innermost first, and a round is named outermost first.
        let longer = |number: u32| rounds.iter().map(move |inner| [&[number], inner.as_slice()].concat());
        rounds = numbers.flat_map(longer).collect();
    }
    let name = |rounds| Instance { step, rounds }.name(plan);
    rounds.into_iter().map(|rounds| Value::map([("waiting", name(rounds).into())])).collect()
}

impl Lookup for World {
    fn root(&self, root: Root) -> Found<'_> {
        match root {
            Root::Input => Found::Kept(&self.input),
            Root::Variables => Found::Kept(&self.variables),
            Root::Step(step) => match (self.answers.get(&step), self.outputs.get(&step)) {
                (Some(answer), _) => Found::Made(Value::map([("value", answer.clone())])),
                (None, Some(output)) => Found::Kept(output),
                (None, None) => Found::Missing,
            },
            Root::Context | Root::Item | Root::Index => Found::Missing,
        }
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn output(&self, _: &str) -> Option<&Value> {
        None
    }
}

/// Returns the innermost loop over a list around a step.
fn list_loop(plan: &Plan, step: u32) -> Option<u32> {
    plan.loops_around(step)
        .find(|around| matches!(plan.step(*around).work, Work::Loop(Loop { over: Over::Items(_), .. })))
}

/// Returns two items for the list of a loop, with everything that its steps read of `@item`.
fn items_of(plan: &Plan, number: u32) -> Value {
    let mut item = Value::Null;
    let inside =
        plan.step(number).work.branches().into_iter().flat_map(|(_, block)| {
            plan.block(block).steps.first().map_or(0..0, |first| *first..plan.end_of_block(block))
        });
    for step in inside.filter(|step| list_loop(plan, *step) == Some(number)) {
        for reference in references_of(plan, step).into_iter().filter(|reference| reference.root == Root::Item) {
            let is_list =
                matches!(&plan.step(step).work, Work::Loop(Loop { over: Over::Items(list), .. }) if list == reference);
            let value = if is_list { items_of(plan, step) } else { samples::TEXT.into() };
            if !reference.path.is_empty() || is_list {
                put(&mut item, &reference.path, value);
            }
        }
    }
    match item {
        Value::Null => vec![Value::from("first"), "second".into()].into(),
        item => vec![item.clone(), item].into(),
    }
}

/// Replaces `@item` in a step by the first item of the list, so that its value can be set.
pub(super) fn first_item(plan: &Plan, step: u32, reference: &Reference) -> Option<Reference> {
    if reference.root != Root::Item {
        return Some(reference.clone());
    }
    let around = list_loop(plan, step)?;
    let Work::Loop(Loop { over: Over::Items(list), .. }) = &plan.step(around).work else { return None };
    let list = first_item(plan, around, list)?;
    let path = list.path.iter().cloned().chain([Part::Index(0)]).chain(reference.path.iter().cloned()).collect();
    Some(Reference { root: list.root, path, text: reference.text.clone() })
}

/// Returns the schema of a part of an input or a result, if it is declared.
pub(super) fn schema_of<'p>(plan: &'p Plan, root: Root, path: &[Part]) -> Option<&'p Value> {
    let schema = match root {
        Root::Input => plan.input_schema.as_ref()?,
        Root::Step(step) => match &plan.step(step).work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.answer_schema.as_ref()?,
            _ => plan.step(step).output_schema.as_ref()?,
        },
        _ => return None,
    };
    path.iter().try_fold(schema, |schema, part| match part {
        Part::Name(name) => schema.get("properties")?.get(name),
        Part::Index(_) => schema.get("items"),
    })
}

/// Returns the inputs and results that a reference reads, through containers whose output is that of a step inside.
pub(super) fn targets(plan: &Plan, root: Root, path: &[Part]) -> Vec<(Root, Vec<Part>)> {
    let Root::Step(step) = root else { return vec![(root, path.to_vec())] };
    let last = |block: u32| plan.block(block).steps.last().copied();
    let through =
        |block: u32, path: &[Part]| last(block).map(|step| targets(plan, Root::Step(step), path)).unwrap_or_default();
    match &plan.step(step).work {
        Work::Effect { .. } | Work::Subworkflow { .. } | Work::Signal { .. } => vec![(root, path.to_vec())],
        Work::Loop(Loop { over: Over::Turns(_), .. }) => match path.split_first() {
            Some((Part::Name(name), rest)) if name == "value" => vec![(root, rest.to_vec())],
            _ => Vec::new(),
        },
        Work::Loop(Loop { over: Over::Items(_), block, .. }) => match path.split_first() {
            Some((Part::Index(_), rest)) => through(*block, rest),
            _ => Vec::new(),
        },
        Work::Loop(Loop { block, .. }) => through(*block, path),
        Work::Conditional { then, otherwise, .. } => {
            let mut found = through(*then, path);
            found.extend(otherwise.map(|block| through(block, path)).unwrap_or_default());
            found
        }
        Work::Parallel { block } => match path.split_first() {
            Some((Part::Name(name), rest)) => {
                let branch = plan.block(*block).steps.iter().find(|step| plan.id(**step) == name);
                branch.map(|step| targets(plan, Root::Step(*step), rest)).unwrap_or_default()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns all references of a plan.
fn references(plan: &Plan) -> Vec<&Reference> {
    let mut found: Vec<&Reference> = (0..plan.steps.len() as u32).flat_map(|step| references_of(plan, step)).collect();
    for block in &plan.blocks {
        if let Order::Edges(graph) = &block.order {
            let edges = (0..block.steps.len() as u32).flat_map(|place| graph.incoming(place).iter());
            edges.filter_map(|edge| edge.condition.as_ref()).for_each(|condition| condition.references(&mut found));
        }
    }
    if let Output::Given(template) = &plan.output {
        template.references(&mut found);
    }
    found
}

/// Returns the references of one step.
pub(super) fn references_of(plan: &Plan, step: u32) -> Vec<&Reference> {
    let (step, mut found) = (plan.step(step), Vec::new());
    step.work.references(&mut found);
    let conditions = step.when.iter().chain(&step.bail);
    conditions.for_each(|condition| condition.references(&mut found));
    found
}

fn follow<'v>(value: &'v Value, path: &[Part]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, part| match (value, part) {
        (Value::Map(map), Part::Name(name)) => map.get(name),
        (Value::Map(map), Part::Index(index)) => map.get(&index.to_string()),
        (Value::List(items), Part::Index(index)) => items.get(*index as usize),
        _ => None,
    })
}

/// The largest index that a skeleton fills up to. A reference may ask for item four billion.
const INDEX_MAX: u32 = 100;

/// Writes a value at a path, with objects and lists on the way to it.
fn put(value: &mut Value, path: &[Part], new: Value) {
    match path.split_first() {
        None => *value = new,
        Some((Part::Name(name), rest)) => {
            if value.as_map().is_none() {
                *value = Map::new().into();
            }
            if let Value::Map(map) = value {
                put(map.entry(name.clone()).or_default(), rest, new);
            }
        }
        Some((Part::Index(index), rest)) if *index <= INDEX_MAX => {
            if value.as_list().is_none() {
                *value = Vec::new().into();
            }
            if let Value::List(items) = value {
                while items.len() <= *index as usize {
                    items.push(samples::TEXT.into());
                }
                put(&mut items[*index as usize], rest, new);
            }
        }
        Some(_) => {}
    }
}
