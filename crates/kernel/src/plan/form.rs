//! Plans as they are stored and shown: one value, in which steps nest as they were written.
//!
//! A stored plan holds no numbers of steps or blocks: both follow from the walk over the tree, so that no stored plan
//! can name a step that is not there. References are kept as their text and read again with the plan's own names.
//! The form grows by keys: a reader gives a missing key the meaning that its absence always had, and refuses a key that
//! it does not know, because it would run another plan than was meant.
//!
//! Texts of templates say in their first letter what they are:
//!
//! | text | template |
//! |---|---|
//! | `@step.path` | that one whole reference |
//! | `~to @{step.path}, me@@home` | text with references, in which `@@` is an `@` |
//! | `=@literal` | the literal text after the sign, where it begins with one of the three signs itself |
//! | anything else | that literal text |

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use super::{Constraints, Delay, OnError, OnInterrupted, Plan, Retry, Step, Work};
use crate::{
    cbor,
    condition::{Condition, Test},
    document::Path,
    failure::Class,
    hash::Hash,
    template::{Piece, Template},
    value::{Map, Value},
};

mod read;

/// The version of the form. It changes when an old key changes its meaning, which no build has done yet.
const FORMAT: u64 = 1;

/// A stored plan that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The way to the part, inside the plan.
    pub path: Path,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.segments().is_empty() { "plan" } else { "plan, " };
        write!(out, "{path}{}: {}", self.path, self.message)
    }
}

impl Plan {
    /// The stored form. It holds what [`compile`](crate::definition::compile) makes: steps numbered as they are
    /// walked, `parallel` the only steps that do not go one after another.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("format".into(), FORMAT.into());
        put(&mut map, "name", self.name.as_deref());
        put(&mut map, "version", self.version.as_deref());
        map.insert("workflowHash".into(), self.workflow_hash.prefixed().into());
        if self.constraints != Constraints::default() {
            map.insert("constraints".into(), constraints(&self.constraints));
        }
        map.insert("steps".into(), block(self, 0));
        Value::Map(map)
    }

    /// The bytes that are stored and hashed: the form in deterministic CBOR.
    pub fn encode(&self) -> Vec<u8> {
        cbor::encode(&self.to_value())
    }

    /// The plan of some stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, PlanError> {
        let error = |error: cbor::CborError| PlanError { path: Path::root(), message: format!("{error}") };
        Self::from_value(&cbor::decode(bytes).map_err(error)?)
    }

    /// The plan of its stored form. Total: whatever the value is, every number in the plan that comes of it leads to a
    /// step or a block.
    pub fn from_value(value: &Value) -> Result<Self, PlanError> {
        read::plan(value)
    }

    /// The name of a plan: the hash of its stored bytes.
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
    put(&mut map, "timeoutMs", constraints.timeout_ms);
    put(&mut map, "allowSelfModification", constraints.allow_self_modification.then_some(true));
    Value::Map(map)
}

fn block(plan: &Plan, number: u32) -> Value {
    plan.block(number).steps.iter().map(|number| step(plan, plan.step(*number))).collect::<Vec<_>>().into()
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
    work(plan, &step.work, &mut map);
    Value::Map(map)
}

fn work(plan: &Plan, work: &Work, map: &mut Map) {
    let kind = if work.is_effect() { "effect" } else { work.kind() };
    map.insert("type".into(), kind.into());
    match work {
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
    for (key, number) in work.branches() {
        map.insert(key.into(), block(plan, number));
    }
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
    let classes = |classes: &[Class]| texts(classes.iter().map(|class| class.name()));
    put(&mut map, "retryOn", retry.retry_on.as_deref().map(classes));
    put(&mut map, "neverOn", (!retry.never_on.is_empty()).then(|| classes(&retry.never_on)));
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
