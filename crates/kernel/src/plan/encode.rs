//! The stored form of plans: one value in which steps nest as they do in the definition.
//!
//! The stored form has no numbers of steps or blocks. Both are assigned while the tree is read, so a stored plan cannot
//! name a step that does not exist. References are stored as text and resolved again when the plan is read. New
//! features add keys. A reader treats a missing key as its old default, and rejects an unknown key, because ignoring it
//! would run a different plan.
//!
//! The first character of a template's text selects its kind:
//!
//! | text | template |
//! |---|---|
//! | `@step.path` | one whole reference |
//! | `~to @{step.path}, me@@home` | text with references, in which `@@` is an `@` |
//! | `=@literal` | the literal text after `=`; used if that text begins with `@`, `~` or `=` |
//! | anything else | that literal text |

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::fmt;

use super::{
    Agent, Constraints, Delay, EdgeKind, FailurePolicy, Guard, Loop, Matcher, OnError, OnInterrupted, Order, Output,
    Over, Plan, Retry, Step, Variable, Work,
    budget::{budget, models},
    decode,
};
use crate::{
    cbor,
    condition::{Condition, Test},
    document::Path,
    hash::Hash,
    label::Label,
    template::{Piece, Template},
    value::{Map, Value},
};

/// The version of the stored form. It increases only if an existing key changes its meaning.
pub(super) const FORMAT: u64 = 1;

/// The key of the body of a `forEach` step.
pub(super) const BODY: &str = "body";

/// A plan in its stored form, inside an input or a record. It is no payload: without it, an execution that was migrated
/// could not be read, so it cannot be erased.
#[derive(Clone, PartialEq, Eq)]
pub struct PlanBytes(pub Arc<[u8]>);

impl fmt::Debug for PlanBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PlanBytes({})", self.0.len())
    }
}

/// The error for a stored plan that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The path of the faulty part, inside the stored form.
    pub path: Path,
    /// The description of the fault.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.segments().is_empty() { "plan" } else { "plan, " };
        write!(out, "{path}{}: {}", self.path, self.message)
    }
}

impl Plan {
    /// Returns the stored form. It can represent any plan that [`compile`](crate::definition::compile) builds: steps
    /// numbered in tree order, and edges in the outermost block only.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("format".into(), FORMAT.into());
        put(&mut map, "name", self.name.as_deref());
        put(&mut map, "version", self.version.as_deref());
        map.insert("workflowHash".into(), self.workflow_hash.prefixed().into());
        if self.constraints != Constraints::default() {
            map.insert("constraints".into(), constraints(&self.constraints));
        }
        put(&mut map, "policy", (self.policy != FailurePolicy::default()).then(|| policy(&self.policy)));
        put(&mut map, "effectRules", (!self.effect_rules.is_empty()).then(|| self.effect_rules.to_value()));
        put(&mut map, "models", self.models.as_ref().map(models));
        put(&mut map, "inputSchema", self.input_schema.clone());
        put(&mut map, "variables", self.variables.as_deref().map(variables));
        put(&mut map, "defaultContext", (!self.default_context.is_empty()).then(|| self.default_context.clone()));
        match &self.output {
            Output::Variables => {}
            Output::Ends => put(&mut map, "output", Some("ends")),
            Output::Given(output) => put(&mut map, "output", Some(Value::map([("given", template(output))]))),
        }
        put(&mut map, "order", matches!(self.block(0).order, Order::Edges(_)).then_some("edges"));
        map.insert("steps".into(), block(self, 0));
        if let Some(finally) = self.finally {
            map.insert("finally".into(), block(self, finally.block));
            map.insert("finallyTimeoutMs".into(), finally.timeout_ms.into());
        }
        Value::Map(map)
    }

    /// Encodes the stored form as deterministic CBOR. These bytes are stored and hashed.
    pub fn encode(&self) -> Vec<u8> {
        cbor::encode(&self.to_value())
    }

    /// Decodes a plan from its stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, PlanError> {
        let error = |error: cbor::CborError| PlanError { path: Path::root(), message: format!("{error}") };
        Self::from_value(&cbor::decode(bytes).map_err(error)?)
    }

    /// Reads a plan from its stored form. Never panics: for any value the result is an error, or a plan in which every
    /// number refers to an existing step or block.
    pub fn from_value(value: &Value) -> Result<Self, PlanError> {
        decode::plan(value)
    }

    /// Returns the SHA-256 of the stored bytes, which identifies the plan.
    pub fn hash(bytes: &[u8]) -> Hash {
        Hash::of(bytes)
    }
}

fn put<T: Into<Value>>(map: &mut Map, key: &str, value: Option<T>) {
    if let Some(value) = value {
        map.insert(key.into(), value.into());
    }
}

fn constraints(constraints: &Constraints) -> Value {
    let mut map = Map::new();
    put(&mut map, "maxSteps", constraints.max_steps);
    put(&mut map, "maxParallel", constraints.max_parallel);
    put(&mut map, "maxCalls", constraints.max_calls);
    put(&mut map, "maxExecutions", constraints.max_executions);
    put(&mut map, "maxOutputBytes", constraints.max_output_bytes);
    put(&mut map, "timeoutMs", constraints.timeout_ms);
    put(&mut map, "budget", constraints.budget.as_ref().map(budget));
    put(&mut map, "allowSelfModification", constraints.allow_self_modification.then_some(true));
    Value::Map(map)
}

fn policy(policy: &FailurePolicy) -> Value {
    let mut map = Map::new();
    put(&mut map, "failOpen", policy.fail_open.then_some(true));
    put(&mut map, "maxNodeFailures", policy.max_node_failures);
    put(&mut map, "maxRetriesExhausted", policy.max_retries_exhausted);
    Value::Map(map)
}

fn variables(declared: &[Variable]) -> Value {
    let variable = |variable: &Variable| {
        let mut map = Map::new();
        map.insert("name".into(), variable.name.as_str().into());
        map.insert("type".into(), variable.kind.name().into());
        put(&mut map, "required", variable.is_required.then_some(true));
        put(&mut map, "private", variable.is_private.then_some(true));
        put(&mut map, "default", variable.default.clone());
        Value::Map(map)
    };
    declared.iter().map(variable).collect::<Vec<_>>().into()
}

fn block(plan: &Plan, number: u32) -> Value {
    let block = plan.block(number);
    let with_edges = |(place, number): (usize, &u32)| {
        let mut step = step(plan, plan.step(*number));
        if let (Some(trust), Value::Map(map)) = (plan.trust.get(number), &mut step) {
            map.insert("trust".into(), trust.to_value());
        }
        if let (Order::Edges(graph), Value::Map(map)) = (&block.order, &mut step) {
            let edges = graph.incoming(place as u32).iter().map(|edge| {
                let mut map = Map::new();
                map.insert("from".into(), edge.from.into());
                put(&mut map, "kind", (edge.kind != EdgeKind::Ended).then(|| edge.kind.name()));
                put(&mut map, "condition", edge.condition.as_ref().map(condition));
                Value::Map(map)
            });
            let edges: Vec<Value> = edges.collect();
            put(map, "edges", (!edges.is_empty()).then_some(edges));
        }
        step
    };
    block.steps.iter().enumerate().map(with_edges).collect::<Vec<_>>().into()
}

fn step(plan: &Plan, step: &Step) -> Value {
    let mut map = Map::new();
    map.insert("id".into(), step.id.as_str().into());
    put(&mut map, "when", step.when.as_ref().map(condition));
    put(&mut map, "retry", (step.retry != Retry::never()).then(|| retry(&step.retry)));
    put(&mut map, "timeoutMs", step.timeout_ms);
    put(&mut map, "onError", (step.on_error != OnError::Fail).then(|| step.on_error.name()));
    put(&mut map, "onInterrupted", (step.on_interrupted != OnInterrupted::Retry).then(|| step.on_interrupted.name()));
    put(&mut map, "outputVariable", step.output_variable.as_deref());
    put(&mut map, "bail", step.bail.as_ref().map(condition));
    put(&mut map, "outputSchema", step.output_schema.clone());
    put(&mut map, "transform", step.transform.as_deref());
    put(&mut map, "priority", (step.priority != 0).then_some(i64::from(step.priority)));
    put(&mut map, "keyPer", step.key_per_attempt.then_some("attempt"));
    put(&mut map, "guard", step.guard.map(guard));
    work(plan, &step.work, &mut map);
    Value::Map(map)
}

/// Null is a call that runs.
fn tool_guards(guards: &BTreeMap<String, Option<Guard>>) -> Map {
    guards.iter().map(|(tool, of_tool)| (tool.clone(), of_tool.map_or(Value::Null, guard))).collect()
}

fn guard(guard: Guard) -> Value {
    let mut map = Map::new();
    map.insert("class".into(), guard.class.name().into());
    map.insert("verdict".into(), guard.verdict().name().into());
    put(&mut map, "isAssumed", guard.is_assumed.then_some(true));
    put(&mut map, "label", guard.label.map(Label::name));
    Value::Map(map)
}

fn work(plan: &Plan, work: &Work, map: &mut Map) {
    let kind = match work {
        Work::Effect { .. } => "effect",
        Work::Loop(of) if of.is_each => "each",
        Work::Loop(_) => "loop",
        _ => work.kind(),
    };
    let kind = kind.to_string();
    map.insert("type".into(), kind.as_str().into());
    match work {
        Work::Loop(of) => over(of, map),
        Work::Code { source, input } => {
            map.insert("source".into(), source.as_str().into());
            map.insert("input".into(), template(input));
        }
        Work::Subworkflow { workflow, input, variables, waits } => {
            map.insert("workflow".into(), workflow.as_str().into());
            map.insert("input".into(), template(input));
            map.insert("variables".into(), template(variables));
            put(map, "waits", (!waits).then_some(false));
        }
        Work::SleepUntil { time } => {
            map.insert("until".into(), template(time));
        }
        Work::Effect { effect, params } => {
            map.insert("effect".into(), effect.as_str().into());
            map.insert("params".into(), template(params));
        }
        Work::Conditional { condition: asked, .. } => {
            map.insert("condition".into(), condition(asked));
        }
        Work::Parallel { .. } => {}
        Work::Approval(gate) => {
            map.insert("prompt".into(), template(&gate.prompt));
            map.insert("items".into(), template(&gate.items));
            put(
                map,
                "approvers",
                (!gate.approvers.is_empty()).then(|| texts(gate.approvers.iter().map(String::as_str))),
            );
            map.insert("count".into(), gate.count.into());
            map.insert("ttlMs".into(), gate.ttl_ms.into());
            map.insert("onTimeout".into(), gate.on_timeout.name().into());
        }
        Work::Sleep { duration_ms } => {
            map.insert("durationMs".into(), template(duration_ms));
        }
        Work::Signal { name } => {
            map.insert("signal".into(), name.as_str().into());
        }
        Work::Return { output } => {
            map.insert("output".into(), template(output));
        }
    }
    let is_each = kind == "each";
    for (key, number) in work.branches() {
        map.insert(if is_each { BODY } else { key }.into(), block(plan, number));
    }
}

fn over(of: &Loop, map: &mut Map) {
    match &of.over {
        Over::Items(list) => put(map, "forEach", Some(format!("{list}"))),
        Over::Turns(of) => put(map, "turns", Some(agent(of))),
        Over::Calls => put(map, "calls", Some(true)),
        Over::While { condition: asked, max_rounds } => {
            put(map, "while", Some(condition(asked)));
            put(map, "maxRounds", Some(*max_rounds));
        }
        Over::Until { condition: asked, max_rounds } => {
            put(map, "until", Some(condition(asked)));
            put(map, "maxRounds", Some(*max_rounds));
        }
    }
    put(map, "concurrency", (of.concurrency != 1).then_some(of.concurrency));
}

fn agent(agent: &Agent) -> Value {
    let mut map = Map::new();
    map.insert("settings".into(), template(&agent.settings));
    map.insert("tools".into(), texts(agent.tools.iter().map(String::as_str)));
    put(&mut map, "inputSchemas", (!agent.input_schemas.is_empty()).then(|| agent.input_schemas.clone()));
    put(&mut map, "toolGuards", (!agent.tool_guards.is_empty()).then(|| tool_guards(&agent.tool_guards)));
    map.insert("maxTurns".into(), agent.max_turns.into());
    map.insert("maxToolCalls".into(), agent.max_tool_calls.into());
    put(&mut map, "answerSchema", agent.answer_schema.clone());
    put(&mut map, "budget", agent.budget.as_ref().map(budget));
    put(&mut map, "conversation", agent.conversation.as_deref());
    Value::Map(map)
}

fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Value {
    texts.map(Value::from).collect::<Vec<_>>().into()
}

fn retry(retry: &Retry) -> Value {
    let mut map = Map::new();
    map.insert("maxAttempts".into(), retry.max_attempts.into());
    let delay = match &retry.delay {
        Delay::Listed(delays_ms) => delays_ms.iter().map(|delay_ms| Value::from(*delay_ms)).collect::<Vec<_>>().into(),
        Delay::Formula { backoff, initial_ms, max_ms } => Value::map([
            ("backoff", backoff.name().into()),
            ("initialMs", (*initial_ms).into()),
            ("maxMs", (*max_ms).into()),
        ]),
    };
    map.insert("delay".into(), delay);
    put(&mut map, "jitterPermille", (retry.jitter_permille > 0).then_some(retry.jitter_permille));
    let words = |matchers: &[Matcher]| matchers.iter().map(|matcher| Value::from(matcher.word())).collect::<Vec<_>>();
    put(&mut map, "retryOn", retry.retry_on.as_deref().map(words));
    put(&mut map, "neverOn", (!retry.never_on.is_empty()).then(|| words(&retry.never_on)));
    Value::Map(map)
}

fn condition(asked: &Condition) -> Value {
    let several = |parts: &[Condition]| parts.iter().map(condition).collect::<Vec<_>>().into();
    match asked {
        Condition::Constant(answer) => (*answer).into(),
        Condition::About(reference, test) => {
            let mut map = Map::new();
            map.insert("ref".into(), format!("{reference}").into());
            match test {
                Test::Truth => {}
                Test::Exists(wanted) => put(&mut map, "exists", Some(*wanted)),
                Test::Compares(compares) => {
                    map.extend(compares.iter().map(|(operator, operand)| (operator.name().into(), template(operand))));
                }
            }
            Value::Map(map)
        }
        Condition::Variable(name, equals) => {
            let mut map = Map::new();
            map.insert("variable".into(), name.as_str().into());
            put(&mut map, "equals", equals.clone());
            Value::Map(map)
        }
        Condition::All(parts) => Value::map([("all", several(parts))]),
        Condition::Any(parts) => Value::map([("any", several(parts))]),
        Condition::Not(part) => Value::map([("not", condition(part))]),
    }
}

fn template(of: &Template) -> Value {
    match of {
        Template::Literal(value) => literal(value),
        Template::Whole(reference) => format!("{reference}").into(),
        Template::Text(pieces) => pieces.iter().fold(String::from("~"), with_piece).into(),
        Template::List(items) => items.iter().map(template).collect::<Vec<_>>().into(),
        Template::Map(fields) => {
            fields.iter().map(|(key, field)| (key.clone(), template(field))).collect::<Map>().into()
        }
    }
}

fn with_piece(mut text: String, piece: &Piece) -> String {
    match piece {
        Piece::Plain(plain) => text.push_str(&plain.replace('@', "@@")),
        Piece::Reference(reference) => text.push_str(&format!("@{{{}}}", reference.text)),
    }
    text
}

fn literal(value: &Value) -> Value {
    match value {
        Value::Text(text) if text.starts_with(['=', '@', '~']) => format!("={text}").into(),
        Value::List(items) => items.iter().map(literal).collect::<Vec<_>>().into(),
        Value::Map(map) => map.iter().map(|(key, field)| (key.clone(), literal(field))).collect::<Map>().into(),
        other => other.clone(),
    }
}
