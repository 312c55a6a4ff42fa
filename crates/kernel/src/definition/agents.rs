//! Reads `agent` steps. A step with one of [`CONVERSATION_KEYS`] is a loop of turns; any other is one call of a model, or
//! has a `runner`.

use alloc::{boxed::Box, collections::BTreeMap, format, string::String, string::ToString, vec::Vec};

use super::{
    budget::budget, fields::Fields, inspector::Outside, outline::Entry, references::Reader, report::named,
    step_types::Kind, step_work::literal,
};
use crate::{
    diagnostic,
    document::Path,
    failure::Class,
    limits::{
        AGENT_TIMEOUT_DEFAULT_MS, AGENT_TOKENS_MAX, AGENT_TOOL_CALLS_DEFAULT, AGENT_TOOL_CALLS_MAX, AGENT_TOOLS_MAX,
        AGENT_TURNS_DEFAULT, AGENT_TURNS_MAX, PARALLEL_MAX, TOOL_TIMEOUT_DEFAULT_MS,
    },
    plan::{
        Agent, AgentPart, Loop, Matcher, OnError, OnInterrupted, Over, PROPOSE_TOOL, Retry, Step, WORKFLOW_TOOL, Work,
    },
    template::Template,
    value::{Map, Value},
};

/// The keys that make an `agent` step a conversation.
pub(super) const CONVERSATION_KEYS: [&str; 11] = [
    "instructions",
    "model",
    "tools",
    "maxTurns",
    "maxToolCalls",
    "maxTokens",
    "temperature",
    "seed",
    "budget",
    "conversation",
    "outputSchema",
];

/// The attempts of the calls inside an agent.
pub(super) struct Attempts {
    pub(super) retry: Retry,
    pub(super) timeout_ms: Option<u64>,
    pub(super) on_interrupted: OnInterrupted,
}

/// True for an `agent` step that is a loop of turns.
pub(super) fn is_conversation(kind: Option<&Kind>, fields: &Fields<'_>) -> bool {
    kind.is_some_and(|kind| kind.name == "agent")
        && !fields.has("runner")
        && CONVERSATION_KEYS.iter().any(|key| fields.has(key))
}

/// True for an `agent` step that an external agent performs.
pub(super) fn is_runner(kind: Option<&Kind>, fields: &Fields<'_>) -> bool {
    kind.is_some_and(|kind| kind.name == "agent") && fields.has("runner")
}

/// Returns the attempts of such a step. Each may cost money and changes files, so it is not repeated unless the author says
/// so.
pub(super) fn runner_attempts(retry: &Retry, given: OnInterrupted, fields: &Fields<'_>) -> (Retry, OnInterrupted) {
    let on_interrupted = if fields.has("onInterrupted") { given } else { OnInterrupted::Fail };
    (without_timeouts(retry, fields), on_interrupted)
}

impl Reader<'_, '_> {
    /// Reads the loop of an agent. The steps inside have no text of their own and are built by [`agent_part`].
    pub(super) fn conversation(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let block = self.entry().branches.first().map(|(_, block)| *block);
        let goal = self.one_text(
            fields,
            ["goal", "content", "message"],
            "say what the agent is to do, as in: write `goal: Summarize the changes`",
        );
        let mut settings: Vec<(String, Template)> = Vec::new();
        let mut add = |key: &str, value: Option<Template>| settings.extend(value.map(|value| (key.to_string(), value)));
        add("goal", goal.clone());
        add("context", self.field(fields, "context"));
        for key in ["instructions", "model"] {
            let is_text = fields.has(key) && self.report.filled_text(fields, key).is_some();
            add(key, if is_text { self.field(fields, key) } else { None });
        }
        if let Some(model) = fields.get("model").and_then(Value::as_text) {
            self.check_outside(Outside::Model, model, &fields.path.key("model"));
        }
        add("maxTokens", self.report.whole(fields, "maxTokens", 1..=AGENT_TOKENS_MAX).map(literal));
        add("seed", self.report.whole(fields, "seed", 0..=u64::from(u32::MAX)).map(literal));
        add("temperature", self.temperature(fields).map(literal));
        let tools = self.agent_tools(fields);
        let max_turns = self.report.whole_32(fields, "maxTurns", 1..=AGENT_TURNS_MAX).unwrap_or(AGENT_TURNS_DEFAULT);
        let calls = self.report.whole_32(fields, "maxToolCalls", 0..=AGENT_TOOL_CALLS_MAX);
        if fields.has("transform") {
            let message = "`transform` is for the result of one call, and this agent makes several";
            let help = "take it out, and use a `code` step after the agent";
            self.report.error_at_key(diagnostic::MISPLACED_KEY, &fields.path.key("transform"), message, help);
        }
        goal?;
        settings.sort_by(|(a, _), (b, _)| a.cmp(b));
        let agent = Agent {
            settings: Template::Map(settings).normalized(),
            tools,
            input_schemas: Map::new(),
            tool_guards: BTreeMap::new(),
            max_turns,
            max_tool_calls: calls.unwrap_or(AGENT_TOOL_CALLS_DEFAULT),
            answer_schema: fields.get("outputSchema").cloned(),
            budget: budget(fields, self.report),
            conversation: self.conversation_name(fields),
        };
        Some(Work::Loop(Loop { block: block?, over: Over::Turns(Box::new(agent)), concurrency: 1, is_each: false }))
    }

    fn temperature(&mut self, fields: &Fields<'_>) -> Option<Value> {
        let value = fields.get("temperature")?;
        match value.as_number() {
            Some(number) if (0.0..=2.0).contains(&number.as_double()) => Some(value.clone()),
            _ => {
                let path = fields.path.key("temperature");
                let message = "`temperature` has to be a number from 0 to 2";
                self.report.error(diagnostic::WRONG_VALUE, &path, message, "write 0 for the most likely answer");
                None
            }
        }
    }

    /// Reads the tools that the model may call.
    fn agent_tools(&mut self, fields: &Fields<'_>) -> Vec<String> {
        let path = fields.path.key("tools");
        let items = self.report.list(fields, "tools").unwrap_or_default();
        if items.len() > AGENT_TOOLS_MAX {
            let message = format!("`tools` has more than {AGENT_TOOLS_MAX} entries");
            self.report.error(diagnostic::TOO_LARGE, &path, message, "write `SERVER.*` for all tools of a server");
        }
        let mut tools: Vec<String> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let path = path.index(at);
            let named_tool = match item {
                Value::Map(_) => self.workflow_tool(item, &path),
                Value::Text(name) if is_tool(name) => Some(name.clone()),
                Value::Text(name) => {
                    let message = format!("{} is no tool of an agent", named(name));
                    let help = "write `SERVER.TOOL`, `SERVER.*` for all tools of a server, `{workflow: NAME}`, `http`, `bash`, `ask`, `budget` or `propose_change`";
                    self.report.error(diagnostic::WRONG_VALUE, &path, message, help);
                    None
                }
                other => {
                    self.report.wrong_item(&path, "tools", "the name of a tool", other);
                    None
                }
            };
            let Some(tool) = named_tool else { continue };
            if tools.contains(&tool) {
                let message = format!("{} stands in `tools` twice", named(&tool));
                self.report.error(diagnostic::WRONG_VALUE, &path, message, "keep one of them");
                continue;
            }
            if item.as_map().is_none() {
                self.check_tool_server(&tool, &path);
            }
            tools.push(tool);
        }
        tools
    }

    /// Reads `{workflow: NAME}`.
    fn workflow_tool(&mut self, item: &Value, path: &Path) -> Option<String> {
        let fields = Fields { map: item.as_map()?, path: path.clone() };
        self.report.known_keys(&fields, &["workflow"]);
        if !fields.has("workflow") {
            self.report.missing(&fields, "workflow", "write `{workflow: NAME}`, the name of a workflow");
        }
        let name = self.report.filled_text(&fields, "workflow")?.to_string();
        let help = "write the workflow's name: which ones may be started is settled when the first begins";
        self.plain_name(&name, "workflow", path, help);
        self.check_outside(Outside::Workflow, &name, &path.key("workflow"));
        Some(format!("{WORKFLOW_TOOL}{name}"))
    }

    /// Builds a step inside an agent. Its attempts are those of the agent's step.
    pub(super) fn agent_part(&self, entry: &Entry<'_>, part: AgentPart, attempts: &Attempts) -> Option<Step> {
        let fields = &entry.fields;
        let effect =
            |effect: &str| Work::Effect { effect: effect.into(), params: Template::Literal(Map::new().into()) };
        let given_ms = attempts.timeout_ms;
        let (work, retry, timeout_ms) = match part {
            AgentPart::Model => {
                let retry = without_timeouts(&attempts.retry, fields);
                (effect("agent"), retry, Some(given_ms.unwrap_or(AGENT_TIMEOUT_DEFAULT_MS)))
            }
            AgentPart::Calls => {
                let block = entry.branches.first().map(|(_, block)| *block)?;
                let of = Loop { block, over: Over::Calls, concurrency: PARALLEL_MAX, is_each: false };
                (Work::Loop(of), Retry::never(), None)
            }
            AgentPart::Call => {
                // A failed tool call is a result that the model gets, so it is repeated only if the author says so.
                let retry = if has_retry(fields) { attempts.retry.clone() } else { Retry::never() };
                (effect("tool"), retry, Some(given_ms.unwrap_or(TOOL_TIMEOUT_DEFAULT_MS)))
            }
        };
        let is_call = part != AgentPart::Calls;
        Some(Step {
            id: entry.id.clone(),
            block: entry.block,
            when: None,
            work,
            retry,
            timeout_ms,
            on_error: OnError::Fail,
            on_interrupted: if is_call { attempts.on_interrupted } else { OnInterrupted::Retry },
            output_variable: None,
            bail: None,
            output_schema: None,
            transform: None,
            priority: 0,
            key_per_attempt: is_call && fields.get("keyPer").and_then(Value::as_text) == Some("attempt"),
            guard: None,
        })
    }
}

fn has_retry(fields: &Fields<'_>) -> bool {
    ["retry", "retryPolicy"].iter().any(|key| fields.has(key))
        || fields.get("config").is_some_and(|config| config.get("maxAttempts").is_some())
}

/// A model call that timed out may have been paid for, so the default policy does not repeat it.
fn without_timeouts(retry: &Retry, fields: &Fields<'_>) -> Retry {
    let mut retry = retry.clone();
    if !has_retry(fields) && retry.max_attempts > 1 {
        retry.never_on.push(Matcher::Class(Class::Timeout));
    }
    retry
}

/// True for a name that an agent may list: a tool of a server, all tools of a server, or a built-in tool.
fn is_tool(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['*', '@', ' ']) && !part.contains(char::is_control);
    match name.split_once('.') {
        _ if name.starts_with(WORKFLOW_TOOL) => false,
        None => matches!(name, "http" | "bash" | "ask" | "budget" | PROPOSE_TOOL),
        Some((server, tool)) => is_plain(server) && (tool == "*" || is_plain(tool)),
    }
}
