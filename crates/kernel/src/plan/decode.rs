//! Reads stored plans. A stored plan is untrusted input: every part is checked, and no content can cause a panic.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::encode::{BODY, FORMAT, PlanError};
use crate::{
    budget::{Budget, ModelTerms},
    condition::{Condition, Operator, Test},
    document::{Path, Segment},
    hash::Hash,
    label::{Label, Trust},
    limits::{DEPTH_MAX, PLAN_STEPS_MAX},
    plan::{
        Agent, Backoff, Block, Constraints, Decision, Delay, Edge, EdgeKind, EffectClass, FailurePolicy, Finally, Gate,
        Graph, Guard, Loop, Matcher, OnError, OnInterrupted, Order, Output, Over, Plan, Retry, Step, VARIABLE_TYPES,
        Variable, Verdict, VerdictRules, Work,
    },
    reference::{self, Reference, Root},
    template::{Piece, Template},
    value::{Map, Value},
};

const PLAN_KEYS: &[&str] = &[
    "format",
    "name",
    "version",
    "workflowHash",
    "constraints",
    "policy",
    "effectRules",
    "models",
    "inputSchema",
    "variables",
    "defaultContext",
    "output",
    "order",
    "steps",
    "finally",
    "finallyTimeoutMs",
];
const CONSTRAINT_KEYS: &[&str] = &[
    "maxSteps",
    "maxParallel",
    "maxCalls",
    "maxExecutions",
    "maxOutputBytes",
    "timeoutMs",
    "budget",
    "allowSelfModification",
];
const POLICY_KEYS: &[&str] = &["failOpen", "maxNodeFailures", "maxRetriesExhausted"];
const STEP_KEYS: &[&str] = &[
    "id",
    "type",
    "when",
    "retry",
    "timeoutMs",
    "onError",
    "onInterrupted",
    "outputVariable",
    "bail",
    "outputSchema",
    "transform",
    "priority",
    "keyPer",
    "guard",
    "trust",
    "edges",
];
const AGENT_KEYS: &[&str] = &[
    "settings",
    "tools",
    "maxTurns",
    "maxToolCalls",
    "answerSchema",
    "budget",
    "inputSchemas",
    "toolGuards",
    "conversation",
];
const RETRY_KEYS: &[&str] = &["maxAttempts", "delay", "jitterPermille", "retryOn", "neverOn"];
const APPROVAL_KEYS: &[&str] = &["prompt", "items", "approvers", "count", "ttlMs", "onTimeout"];

/// The keys of inner steps, in numbering order.
const BRANCH_KEYS: [&str; 4] = ["then", "else", "steps", BODY];

/// Reads a plan from its stored form.
pub(super) fn plan(value: &Value) -> Result<Plan, PlanError> {
    let part = Part { value, path: Path::root() };
    part.known(&[PLAN_KEYS])?;
    let format = part.field("format")?;
    if format.value.as_u64() != Some(FORMAT) {
        return Err(format.error("a form that this build does not know"));
    }
    let steps = part.field("steps")?;
    let mut names = BTreeMap::new();
    let mut count = 0;
    learn_names(&steps, &mut names, &mut count, 0)?;
    let cleanup = part.get("finally");
    if let Some(cleanup) = &cleanup {
        learn_names(cleanup, &mut names, &mut count, 0)?;
    }
    let mut reader = Reader { names, blocks: Vec::new(), steps: Vec::new(), trust: BTreeMap::new() };
    reader.block(&steps, None, Order::Sequence)?;
    if part.optional("order", |part| part.word(|word| (word == "edges").then_some(())))?.is_some() {
        reader.blocks[0].order = Order::Edges(reader.graph(&steps)?);
    }
    let finally = match (&cleanup, part.get("finallyTimeoutMs")) {
        (Some(cleanup), Some(timeout_ms)) => Some(reader.finally(cleanup, &timeout_ms)?),
        (None, None) => None,
        _ => return Err(part.error("`finally` and `finallyTimeoutMs` should both be here")),
    };
    reader.check_agents(&steps)?;
    if let Some(cleanup) = &cleanup {
        reader.check_agents(cleanup)?;
    }
    Ok(Plan {
        name: part.optional("name", Part::text)?,
        version: part.optional("version", Part::text)?,
        workflow_hash: workflow_hash(&part.field("workflowHash")?)?,
        constraints: part.optional("constraints", constraints)?.unwrap_or_default(),
        policy: part.optional("policy", policy)?.unwrap_or_default(),
        effect_rules: part.optional("effectRules", effect_rules)?.unwrap_or_default(),
        models: part.optional("models", models)?,
        input_schema: part.get("inputSchema").map(|schema| schema.value.clone()),
        variables: part.optional("variables", |part| part.items()?.map(|item| variable(&item)).collect())?,
        default_context: part.optional("defaultContext", |part| part.map().cloned())?.unwrap_or_default(),
        output: part.optional("output", |part| reader.output(part))?.unwrap_or(Output::Variables),
        finally,
        blocks: reader.blocks,
        steps: reader.steps,
        trust: reader.trust,
    })
}

/// A part of the stored form with its path.
struct Part<'v> {
    value: &'v Value,
    path: Path,
}

impl<'v> Part<'v> {
    fn error(&self, message: impl Into<String>) -> PlanError {
        PlanError { path: self.path.clone(), message: message.into() }
    }

    fn map(&self) -> Result<&'v Map, PlanError> {
        self.value.as_map().ok_or_else(|| self.error("an object should be here"))
    }

    /// Returns an error unless the part is an object with known keys only.
    fn known(&self, known: &[&[&str]]) -> Result<(), PlanError> {
        match self.map()?.keys().find(|key| !known.iter().any(|keys| keys.contains(&key.as_str()))) {
            Some(key) => Err(self.error(format!("the key {key:?} is not known to this build"))),
            None => Ok(()),
        }
    }

    fn field(&self, key: &str) -> Result<Part<'v>, PlanError> {
        self.get(key).ok_or_else(|| self.error(format!("{key:?} is missing")))
    }

    fn get(&self, key: &str) -> Option<Part<'v>> {
        self.value.get(key).map(|value| Part { value, path: self.path.key(key) })
    }

    fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Part<'v>) -> Result<T, PlanError>,
    ) -> Result<Option<T>, PlanError> {
        self.get(key).map(|part| read(&part)).transpose()
    }

    fn items(&self) -> Result<impl Iterator<Item = Part<'v>> + use<'v, '_>, PlanError> {
        let items = self.value.as_list().ok_or_else(|| self.error("a list should be here"))?;
        Ok(items.iter().enumerate().map(|(at, value)| Part { value, path: self.path.index(at) }))
    }

    fn text(&self) -> Result<String, PlanError> {
        self.value.as_text().map(ToString::to_string).ok_or_else(|| self.error("a text should be here"))
    }

    fn u64(&self) -> Result<u64, PlanError> {
        self.value.as_u64().ok_or_else(|| self.error("a whole number should be here"))
    }

    fn u32(&self) -> Result<u32, PlanError> {
        u32::try_from(self.u64()?).map_err(|_| self.error("a whole number below 2^32 should be here"))
    }

    fn i32(&self) -> Result<i32, PlanError> {
        let number = self.value.as_number().and_then(|number| i32::try_from(number.as_whole()?).ok());
        number.ok_or_else(|| self.error("a whole number of 32 bits should be here"))
    }

    fn positive(&self) -> Result<u32, PlanError> {
        self.u32().and_then(|number| if number == 0 { Err(self.error("0 is too few")) } else { Ok(number) })
    }

    fn bool(&self) -> Result<bool, PlanError> {
        self.value.as_bool().ok_or_else(|| self.error("true or false should be here"))
    }

    /// Reads a text that is one of several words.
    fn word<T>(&self, meaning: impl FnOnce(&str) -> Option<T>) -> Result<T, PlanError> {
        self.value.as_text().and_then(meaning).ok_or_else(|| self.error("a word that is not known here"))
    }
}

/// Collects all ids with their numbers before references are read, because a reference may name a later step.
fn learn_names(
    steps: &Part<'_>,
    names: &mut BTreeMap<String, u32>,
    count: &mut usize,
    depth: usize,
) -> Result<(), PlanError> {
    let is_body = steps.path.segments().last() == Some(&Segment::Key(BODY.into()));
    if depth > DEPTH_MAX {
        return Err(steps.error("blocks too deep"));
    }
    for step in steps.items()? {
        let number = *count;
        *count += 1;
        // A `forEach` step counts twice, and an agent in it five times: these steps are not written by the author.
        if number >= 5 * PLAN_STEPS_MAX {
            return Err(step.error("too many steps"));
        }
        if !is_body && names.insert(step.field("id")?.text()?, number as u32).is_some() {
            return Err(step.error("two steps of one id"));
        }
        for branch in BRANCH_KEYS.iter().filter_map(|key| step.get(key)) {
            learn_names(&branch, names, count, depth + 1)?;
        }
    }
    Ok(())
}

/// Accepts only the form that is written, so that equal plans have equal bytes.
fn workflow_hash(part: &Part<'_>) -> Result<Hash, PlanError> {
    let text = part.text()?;
    Hash::parse(&text).filter(|hash| hash.prefixed() == text).ok_or_else(|| part.error("a hash should be here"))
}

fn constraints(part: &Part<'_>) -> Result<Constraints, PlanError> {
    part.known(&[CONSTRAINT_KEYS])?;
    Ok(Constraints {
        max_steps: part.optional("maxSteps", Part::u32)?,
        max_parallel: part.optional("maxParallel", Part::u32)?,
        max_calls: part.optional("maxCalls", Part::u32)?,
        max_executions: part.optional("maxExecutions", Part::u32)?,
        max_output_bytes: part.optional("maxOutputBytes", Part::u32)?,
        timeout_ms: part.optional("timeoutMs", Part::u64)?,
        budget: part.optional("budget", budget)?,
        allow_self_modification: part.optional("allowSelfModification", Part::bool)?.unwrap_or_default(),
    })
}

fn budget(part: &Part<'_>) -> Result<Budget, PlanError> {
    super::budget::read_budget(part.value).ok_or_else(|| part.error("no budget that this build knows"))
}

fn models(part: &Part<'_>) -> Result<ModelTerms, PlanError> {
    super::budget::read_models(part.value).ok_or_else(|| part.error("no terms of models that this build knows"))
}

fn policy(part: &Part<'_>) -> Result<FailurePolicy, PlanError> {
    part.known(&[POLICY_KEYS])?;
    Ok(FailurePolicy {
        fail_open: part.optional("failOpen", Part::bool)?.unwrap_or_default(),
        max_node_failures: part.optional("maxNodeFailures", Part::positive)?,
        max_retries_exhausted: part.optional("maxRetriesExhausted", Part::positive)?,
    })
}

fn effect_rules(part: &Part<'_>) -> Result<VerdictRules, PlanError> {
    let rules = VerdictRules::read("effectRules", part.value);
    let rules = rules.map_err(|errors| part.error(errors.first().map(ToString::to_string).unwrap_or_default()))?;
    if rules.is_empty() { Err(part.error("no rule is here")) } else { Ok(rules) }
}

fn tool_guards(part: &Part<'_>) -> Result<BTreeMap<String, Option<Guard>>, PlanError> {
    let of_tool = |tool: &String| {
        let guarded = part.field(tool)?;
        Ok((tool.clone(), (*guarded.value != Value::Null).then(|| guard(&guarded)).transpose()?))
    };
    let guards: BTreeMap<_, _> = part.map()?.keys().map(of_tool).collect::<Result<_, PlanError>>()?;
    if guards.is_empty() { Err(part.error("no tool is here")) } else { Ok(guards) }
}

fn guard(part: &Part<'_>) -> Result<Guard, PlanError> {
    part.known(&[&["class", "verdict", "isAssumed", "label"]])?;
    let is_denied = |word: &str| match Verdict::parse(word)? {
        Verdict::Allow => None,
        Verdict::Ask => Some(false),
        Verdict::Deny => Some(true),
    };
    Ok(Guard {
        class: part.field("class")?.word(EffectClass::parse)?,
        is_denied: part.field("verdict")?.word(is_denied)?,
        is_assumed: part.optional("isAssumed", Part::bool)?.unwrap_or_default(),
        label: part.optional("label", |label| label.word(Label::parse))?,
    })
}

fn trust(part: &Part<'_>) -> Result<Trust, PlanError> {
    // Only the form that is written is accepted, so that equal plans have equal bytes.
    let trust = Trust::read(part.value).filter(|trust| trust.to_value() == *part.value);
    trust.ok_or_else(|| part.error("a list of `trusted` and `public` should be here"))
}

fn variable(part: &Part<'_>) -> Result<Variable, PlanError> {
    part.known(&[&["name", "type", "required", "private", "default"]])?;
    let kind = |word: &str| VARIABLE_TYPES.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
    Ok(Variable {
        name: part.field("name")?.text()?,
        kind: part.field("type")?.word(kind)?,
        is_required: part.optional("required", Part::bool)?.unwrap_or_default(),
        is_private: part.optional("private", Part::bool)?.unwrap_or_default(),
        default: part.get("default").map(|default| default.value.clone()),
    })
}

/// Numbers blocks and steps in the same order as [`learn_names`].
struct Reader {
    names: BTreeMap<String, u32>,
    blocks: Vec<Block>,
    steps: Vec<Step>,
    trust: BTreeMap<u32, Trust>,
}

impl Reader {
    /// Reads the steps that run at the end. Their numbers follow those of all other steps.
    fn finally(&mut self, steps: &Part<'_>, timeout_ms: &Part<'_>) -> Result<Finally, PlanError> {
        let block = self.block(steps, None, Order::Sequence)?;
        if self.blocks[block as usize].steps.is_empty() {
            return Err(steps.error("a step should be here"));
        }
        Ok(Finally { block, timeout_ms: timeout_ms.u64()? })
    }

    fn block(&mut self, steps: &Part<'_>, owner: Option<u32>, order: Order) -> Result<u32, PlanError> {
        let number = self.blocks.len() as u32;
        self.blocks.push(Block { owner, order, steps: Vec::new() });
        for step in steps.items()? {
            let step_number = self.steps.len() as u32;
            self.blocks[number as usize].steps.push(step_number);
            let unfinished = self.step(&step, number)?;
            if let Some(trust) = step.optional("trust", trust)? {
                self.trust.insert(step_number, trust);
            }
            self.steps.push(unfinished);
            let work = self.work(&step, step_number)?;
            self.steps[step_number as usize].work = work;
        }
        Ok(number)
    }

    /// Reads a step except its work, which is read after the step has its number: inner steps have higher numbers.
    fn step(&self, part: &Part<'_>, block: u32) -> Result<Step, PlanError> {
        Ok(Step {
            id: part.field("id")?.text()?,
            block,
            when: part.optional("when", |when| self.condition(when, 0))?,
            work: Work::Signal { name: String::new() },
            retry: part.optional("retry", retry)?.unwrap_or_else(Retry::never),
            timeout_ms: part.optional("timeoutMs", Part::u64)?,
            on_error: part
                .optional("onError", |part| part.word(|word| named(OnError::ALL, OnError::name, word)))?
                .unwrap_or(OnError::Fail),
            on_interrupted: part
                .optional("onInterrupted", |part| {
                    part.word(|word| named(OnInterrupted::ALL, OnInterrupted::name, word))
                })?
                .unwrap_or(OnInterrupted::Retry),
            output_variable: part.optional("outputVariable", Part::text)?,
            bail: part.optional("bail", |bail| self.condition(bail, 0))?,
            output_schema: part.get("outputSchema").map(|schema| schema.value.clone()),
            transform: part.optional("transform", Part::text)?,
            priority: part.optional("priority", Part::i32)?.unwrap_or_default(),
            key_per_attempt: part
                .optional("keyPer", |part| part.word(|word| (word == "attempt").then_some(())))?
                .is_some(),
            guard: part.optional("guard", guard)?,
        })
    }

    /// Reads the edges of the outermost block, which are stored at their targets.
    fn graph(&self, steps: &Part<'_>) -> Result<Graph, PlanError> {
        let places = self.blocks[0].steps.len() as u32;
        let edge = |part: &Part<'_>| {
            part.known(&[&["from", "kind", "condition"]])?;
            let from = part.field("from")?;
            let kind = |word: &str| named(EdgeKind::ALL, EdgeKind::name, word);
            Ok(Edge {
                from: from.u32()?,
                kind: part.optional("kind", |part| part.word(kind))?.unwrap_or(EdgeKind::Ended),
                condition: part.optional("condition", |condition| self.condition(condition, 0))?,
            })
        };
        let incoming = steps.items()?.map(|step| {
            let edges = step.optional("edges", |part| part.items()?.map(|item| edge(&item)).collect())?;
            let edges: Vec<Edge> = edges.unwrap_or_default();
            if edges.iter().any(|edge| edge.from >= places) {
                return Err(step.error("an edge from a step that is not there"));
            }
            Ok(edges)
        });
        let graph = Graph::new(incoming.collect::<Result<_, _>>()?);
        if graph.sorted().1.is_empty() { Ok(graph) } else { Err(steps.error("edges that lead in a circle")) }
    }

    fn output(&self, part: &Part<'_>) -> Result<Output, PlanError> {
        if part.value.as_text() == Some("ends") {
            return Ok(Output::Ends);
        }
        part.known(&[&["given"]])?;
        Ok(Output::Given(self.template(&part.field("given")?)?))
    }

    fn work(&mut self, part: &Part<'_>, number: u32) -> Result<Work, PlanError> {
        let keys = |keys: &[&str]| part.known(&[STEP_KEYS, keys]);
        let template = |reader: &Self, key: &str| reader.template(&part.field(key)?);
        let kind = part.field("type")?;
        Ok(match kind.text()?.as_str() {
            "effect" => {
                keys(&["effect", "params"])?;
                Work::Effect { effect: part.field("effect")?.text()?, params: template(self, "params")? }
            }
            "conditional" => {
                keys(&["condition", "then", "else"])?;
                let condition = self.condition(&part.field("condition")?, 0)?;
                let then = self.block(&part.field("then")?, Some(number), Order::Sequence)?;
                let otherwise = part.optional("else", |block| self.block(block, Some(number), Order::Sequence))?;
                Work::Conditional { condition, then, otherwise }
            }
            "parallel" => {
                keys(&["steps"])?;
                Work::Parallel { block: self.block(&part.field("steps")?, Some(number), Order::Parallel)? }
            }
            "approval" => {
                keys(APPROVAL_KEYS)?;
                Work::Approval(self.gate(part)?)
            }
            "loop" | "each" => {
                let is_each = kind.text()? == "each";
                keys(&[
                    "forEach",
                    "while",
                    "until",
                    "maxRounds",
                    "concurrency",
                    "turns",
                    "calls",
                    if is_each { BODY } else { "steps" },
                ])?;
                self.loop_of(part, number, is_each)?
            }
            "code" => {
                keys(&["source", "input"])?;
                Work::Code { source: part.field("source")?.text()?, input: template(self, "input")? }
            }
            "subworkflow" => {
                keys(&["workflow", "input", "variables", "waits"])?;
                Work::Subworkflow {
                    workflow: part.field("workflow")?.text()?,
                    input: template(self, "input")?,
                    variables: template(self, "variables")?,
                    waits: part.optional("waits", Part::bool)?.unwrap_or(true),
                }
            }
            "sleep" if part.get("until").is_some() => {
                keys(&["until"])?;
                Work::SleepUntil { time: template(self, "until")? }
            }
            "sleep" => {
                keys(&["durationMs"])?;
                Work::Sleep { duration_ms: template(self, "durationMs")? }
            }
            "signal" => {
                keys(&["signal"])?;
                Work::Signal { name: part.field("signal")?.text()? }
            }
            "return" => {
                keys(&["output"])?;
                Work::Return { output: template(self, "output")? }
            }
            _ => return Err(kind.error("a type of work that this build does not know")),
        })
    }

    fn loop_of(&mut self, part: &Part<'_>, number: u32, is_each: bool) -> Result<Work, PlanError> {
        let concurrency = part.optional("concurrency", Part::positive)?.unwrap_or(1);
        let over = self.over(part)?;
        let steps = part.field(if is_each { BODY } else { "steps" })?;
        if is_each && steps.value.as_list().is_none_or(|steps| steps.len() != 1) {
            return Err(steps.error("one step should be here"));
        }
        let block = self.block(&steps, Some(number), Order::Sequence)?;
        Ok(Work::Loop(Loop { block, over, concurrency, is_each }))
    }

    /// Checks that an agent has a model call and the loop of tool calls, and that this loop is in no other place.
    fn check_agents(&self, steps: &Part<'_>) -> Result<(), PlanError> {
        let work = |step: u32| &self.steps[step as usize].work;
        let is_effect = |step: u32| matches!(work(step), Work::Effect { .. });
        let is_calls = |step: u32| matches!(work(step), Work::Loop(Loop { over: Over::Calls, .. }));
        for block in &self.blocks {
            let owner = block.owner.map(work);
            let fits = match (owner, block.steps.as_slice()) {
                (Some(Work::Loop(Loop { over: Over::Turns(_), is_each: false, .. })), [model, calls]) => {
                    is_effect(*model) && is_calls(*calls)
                }
                (Some(Work::Loop(Loop { over: Over::Turns(_), .. })), _) => false,
                (Some(Work::Loop(Loop { over: Over::Calls, is_each: false, .. })), [call]) => is_effect(*call),
                (Some(Work::Loop(Loop { over: Over::Calls, .. })), _) => false,
                (_, inside) => !inside.iter().any(|step| is_calls(*step)),
            };
            if !fits {
                return Err(steps.error("a block that is not that of an agent"));
            }
        }
        Ok(())
    }

    fn over(&self, part: &Part<'_>) -> Result<Over, PlanError> {
        let max_rounds = || part.field("maxRounds")?.positive();
        if let Some(list) = part.get("forEach") {
            let text = list.text()?;
            let reference = text.strip_prefix('@').map(|text| self.reference(text, &list));
            return Ok(Over::Items(reference.unwrap_or_else(|| Err(list.error("a reference should be here")))?));
        }
        if let Some(turns) = part.get("turns") {
            return Ok(Over::Turns(Box::new(self.agent(&turns)?)));
        }
        if let Some(calls) = part.get("calls") {
            return if calls.bool()? { Ok(Over::Calls) } else { Err(calls.error("true should be here")) };
        }
        if let Some(condition) = part.optional("while", |condition| self.condition(condition, 0))? {
            return Ok(Over::While { condition, max_rounds: max_rounds()? });
        }
        Ok(Over::Until { condition: self.condition(&part.field("until")?, 0)?, max_rounds: max_rounds()? })
    }

    fn agent(&self, part: &Part<'_>) -> Result<Agent, PlanError> {
        part.known(&[AGENT_KEYS])?;
        Ok(Agent {
            settings: self.template(&part.field("settings")?)?,
            tools: part.field("tools")?.items()?.map(|item| item.text()).collect::<Result<_, _>>()?,
            input_schemas: part.optional("inputSchemas", |part| part.map().cloned())?.unwrap_or_default(),
            tool_guards: part.optional("toolGuards", tool_guards)?.unwrap_or_default(),
            max_turns: part.field("maxTurns")?.positive()?,
            max_tool_calls: part.field("maxToolCalls")?.u32()?,
            answer_schema: part.get("answerSchema").map(|schema| schema.value.clone()),
            budget: part.optional("budget", budget)?,
            conversation: part.optional("conversation", Part::text)?,
        })
    }

    fn gate(&self, part: &Part<'_>) -> Result<Gate, PlanError> {
        let approvers = |part: &Part<'_>| part.items()?.map(|item| item.text()).collect::<Result<_, _>>();
        Ok(Gate {
            prompt: self.template(&part.field("prompt")?)?,
            items: self.template(&part.field("items")?)?,
            approvers: part.optional("approvers", approvers)?.unwrap_or_default(),
            count: part.field("count")?.positive()?,
            ttl_ms: part.field("ttlMs")?.u64()?,
            on_timeout: part.field("onTimeout")?.word(Decision::parse)?,
        })
    }

    fn condition(&self, part: &Part<'_>, depth: usize) -> Result<Condition, PlanError> {
        if depth > DEPTH_MAX {
            return Err(part.error("conditions too deep"));
        }
        if let Some(answer) = part.value.as_bool() {
            return Ok(Condition::Constant(answer));
        }
        let several = |key: &str| {
            part.known(&[&[key]])?;
            part.field(key)?.items()?.map(|item| self.condition(&item, depth + 1)).collect::<Result<Vec<_>, _>>()
        };
        let forms = part.map()?;
        let has = |key: &str| forms.contains_key(key);
        if has("ref") {
            return self.about(part);
        } else if has("all") {
            return several("all").map(Condition::All);
        } else if has("any") {
            return several("any").map(Condition::Any);
        } else if has("not") {
            part.known(&[&["not"]])?;
            return Ok(Condition::Not(Box::new(self.condition(&part.field("not")?, depth + 1)?)));
        }
        part.known(&[&["variable", "equals"]])?;
        let equals = part.get("equals").map(|equals| equals.value.clone());
        Ok(Condition::Variable(part.field("variable")?.text()?, equals))
    }

    fn about(&self, part: &Part<'_>) -> Result<Condition, PlanError> {
        let operators = Operator::ALL.map(Operator::name);
        part.known(&[&["ref", "exists"], &operators])?;
        let whole = part.field("ref")?;
        let text = whole.text()?;
        let text = text.strip_prefix('@').ok_or_else(|| whole.error("a reference should be here"))?;
        let reference = self.reference(text, &whole)?;
        let given = Operator::ALL.into_iter().filter_map(|operator| Some((operator, part.get(operator.name())?)));
        let compares =
            given.map(|(operator, operand)| Ok((operator, self.template(&operand)?))).collect::<Result<Vec<_>, _>>()?;
        let test = match (part.optional("exists", Part::bool)?, compares.is_empty()) {
            (Some(wanted), true) => Test::Exists(wanted),
            (Some(_), false) => return Err(part.error("`exists` stands alone")),
            (None, true) => Test::Truth,
            (None, false) => Test::Compares(compares),
        };
        Ok(Condition::About(reference, test))
    }

    fn template(&self, part: &Part<'_>) -> Result<Template, PlanError> {
        self.raw_template(part, 0).map(Template::normalized)
    }

    fn raw_template(&self, part: &Part<'_>, depth: usize) -> Result<Template, PlanError> {
        if depth > DEPTH_MAX {
            return Err(part.error("nested too deep"));
        }
        Ok(match part.value {
            Value::Text(text) => self.text(text, part)?,
            Value::List(_) => {
                Template::List(part.items()?.map(|item| self.raw_template(&item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Value::Map(map) => {
                let field = |(key, value): (&String, _)| {
                    Ok((key.clone(), self.raw_template(&Part { value, path: part.path.key(key) }, depth + 1)?))
                };
                Template::Map(map.iter().map(field).collect::<Result<_, _>>()?)
            }
            other => Template::Literal(other.clone()),
        })
    }

    fn text(&self, text: &str, part: &Part<'_>) -> Result<Template, PlanError> {
        if let Some(literal) = text.strip_prefix('=') {
            return Ok(Template::Literal(literal.into()));
        }
        if let Some(reference) = text.strip_prefix('@') {
            return self.reference(reference, part).map(Template::Whole);
        }
        match text.strip_prefix('~') {
            Some(pieces) => self.pieces(pieces, part).map(Template::Text),
            None => Ok(Template::Literal(text.into())),
        }
    }

    fn pieces(&self, text: &str, part: &Part<'_>) -> Result<Vec<Piece>, PlanError> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, after)) = rest.split_once('@') {
            plain.push_str(before);
            if let Some(after) = after.strip_prefix('@') {
                plain.push('@');
                rest = after;
                continue;
            }
            let reference = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let Some((reference, after)) = reference else { return Err(part.error("a text with an open reference")) };
            if !plain.is_empty() {
                pieces.push(Piece::Plain(core::mem::take(&mut plain)));
            }
            pieces.push(Piece::Reference(self.reference(reference, part)?));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        Ok(pieces)
    }

    fn reference(&self, text: &str, part: &Part<'_>) -> Result<Reference, PlanError> {
        let is_whole = reference::length(text).is_some_and(|(_, all)| all == text.len());
        let read = if is_whole { Reference::read(text, &|name| self.root_of(name)) } else { None };
        read.ok_or_else(|| part.error(format!("{text:?} refers to nothing in this plan")))
    }

    fn root_of(&self, name: &str) -> Option<Root> {
        match name {
            "input" => Some(Root::Input),
            "vars" => Some(Root::Variables),
            "ctx" => Some(Root::Context),
            "item" => Some(Root::Item),
            "index" => Some(Root::Index),
            id => self.names.get(id).map(|number| Root::Step(*number)),
        }
    }
}

fn retry(part: &Part<'_>) -> Result<Retry, PlanError> {
    part.known(&[RETRY_KEYS])?;
    let words = |part: &Part<'_>| part.items()?.map(|item| item.word(Matcher::parse)).collect::<Result<Vec<_>, _>>();
    Ok(Retry {
        max_attempts: part.field("maxAttempts")?.positive()?,
        delay: delay(&part.field("delay")?)?,
        jitter_permille: part.optional("jitterPermille", Part::u32)?.unwrap_or_default(),
        retry_on: part.optional("retryOn", words)?,
        never_on: part.optional("neverOn", words)?.unwrap_or_default(),
    })
}

fn delay(part: &Part<'_>) -> Result<Delay, PlanError> {
    if part.value.as_list().is_some() {
        return part.items()?.map(|item| item.u64()).collect::<Result<_, _>>().map(Delay::Listed);
    }
    part.known(&[&["backoff", "initialMs", "maxMs"]])?;
    let backoff = |word: &str| named(Backoff::ALL, Backoff::name, word);
    Ok(Delay::Formula {
        backoff: part.field("backoff")?.word(backoff)?,
        initial_ms: part.field("initialMs")?.u64()?,
        max_ms: part.field("maxMs")?.u64()?,
    })
}

/// Returns the value with a name.
fn named<T: Copy, const N: usize>(all: [T; N], name: impl Fn(T) -> &'static str, word: &str) -> Option<T> {
    all.into_iter().find(|one| name(*one) == word)
}
