//! Reads the work of a step from the keys of its type.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    agents::{is_conversation, is_runner},
    fields::Fields,
    help::Help,
    inspector::Outside,
    notation::Notation,
    references::Reader,
    report::named,
    schema_fit::{Misfit, misfit},
    step_types::Kind,
    steps::refuse_type,
    suggest::adapt::{adapted, flow},
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    fix::Fix,
    limits::{APPROVAL_COUNT_MAX, APPROVAL_TTL_DEFAULT_MS, NAME_CHARS_MAX, SOURCE_BYTES_MAX, WAIT_MAX_MS},
    plan::{Decision, Gate, Work},
    reference,
    reference::is_whole,
    template::Template,
    time::parse_rfc3339,
    value::{Map, Value},
};

/// True for the tool `bash`, which is another spelling of a shell step.
pub(super) fn is_shell_tool(notation: Notation, kind: &Kind, fields: &Fields<'_>) -> bool {
    let is_action = notation == Notation::Dataflow && fields.has("action");
    let tool =
        if is_action { fields.get("action").and_then(|action| action.get("toolName")) } else { fields.get("tool") };
    kind.name == "tool" && tool.and_then(Value::as_text) == Some("bash")
}

impl Reader<'_, '_> {
    /// Reads the work of a step and reports its mistakes.
    pub(super) fn work(&mut self, kind: &Kind, fields: &Fields<'_>) -> Option<Work> {
        let notation = self.outline.notation;
        let action = fields.get("action").filter(|_| notation == Notation::Dataflow).and_then(Value::as_map);
        let action = action.map(|map| Fields { map, path: fields.path.key("action") });
        match kind.name {
            "bash" => self.shell(fields),
            "tool" if is_shell_tool(notation, kind, fields) => {
                self.shell_tool(fields, if action.is_some() { "input" } else { "arguments" })
            }
            "tool" => match &action {
                Some(action) => self.tool(action, "toolName", fields, "input"),
                None => self.tool(fields, "tool", fields, "arguments"),
            },
            "http" => self.http(fields),
            "code" => self.code(action.as_ref().unwrap_or(fields), fields),
            "subworkflow" => self.subworkflow(fields),
            "loop" => self.loop_step(fields),
            "agent" if is_runner(Some(kind), fields) => self.runner(fields),
            "agent" if is_conversation(Some(kind), fields) => self.conversation(fields),
            "agent" => self.agent(fields),
            "agent_message" => self.agent_message(fields),
            "conditional" => self.conditional(fields),
            "parallel" => self.parallel(fields),
            "approval" => self.approval(fields),
            "sleep" => self.sleep(fields),
            "signal" => self.signal(fields),
            "return" => {
                if let Some(action) = &action
                    && self.report.bool(action, "return") == Some(false)
                {
                    let path = action.path.key("return");
                    self.report.error(
                        diagnostic::WRONG_VALUE,
                        &path,
                        "`return` is true or not there",
                        "write {return: true}",
                    );
                }
                Some(Work::Return { output: self.field(fields, "input").unwrap_or(Template::Literal(Value::Null)) })
            }
            _ => {
                refuse_type(kind, fields, self.report);
                None
            }
        }
    }

    /// Reads a tool: its name under one key, its arguments under another.
    fn tool(&mut self, named: &Fields<'_>, name_key: &str, given: &Fields<'_>, key: &str) -> Option<Work> {
        if !named.has(name_key) {
            self.report.missing(named, name_key, format!("say which tool, as in: write `{name_key}: SEARCH`"));
        }
        let tool = self.report.filled_text(named, name_key).map(String::from);
        if let Some(name) = &tool {
            self.plain_name(name, name_key, &named.path, "write the tool's name");
            self.check_tool_server(name, &named.path.key(name_key));
        }
        let arguments = self.field(given, key).unwrap_or(Template::Literal(Map::new().into()));
        let is_object = matches!(arguments, Template::Map(_) | Template::Whole(_) | Template::Literal(Value::Map(_)));
        if let Some(value) = given.get(key).filter(|value| !is_object && !is_whole(value)) {
            self.report.wrong_kind(&given.path.key(key), key, "an object or a reference to one", value);
        }
        Some(effect("tool", [("tool", Some(literal(tool?))), ("arguments", Some(arguments))]))
    }

    fn code(&mut self, holder: &Fields<'_>, fields: &Fields<'_>) -> Option<Work> {
        if !holder.has("code") {
            self.report.missing(holder, "code", "write a module, as in: write `code: export default (input) => input`");
        }
        let input = self.field(fields, "input").unwrap_or(Template::Literal(Map::new().into()));
        Some(Work::Code { source: self.source(holder, "code")?, input })
    }

    /// Reads the optional source of a function. References are not allowed in it.
    pub(super) fn source(&mut self, fields: &Fields<'_>, key: &str) -> Option<String> {
        let source = self.report.filled_text(fields, key)?;
        let path = fields.path.key(key);
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!("`{key}` has {} bytes, more than {SOURCE_BYTES_MAX}", source.len());
            self.report.error(diagnostic::TOO_LARGE, &path, message, "split the function");
            return None;
        }
        let outline = self.outline;
        if let Some(Err(complaint)) = outline.function(self.number, if key == "code" { key } else { "transform" }) {
            self.report.refuse_source(source, complaint, &path);
        }
        Some(source.into())
    }

    fn subworkflow(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if !fields.has("workflow") {
            self.report.missing(fields, "workflow", "write `workflow: NAME`, the name of the workflow that is started");
        }
        let workflow = self.report.filled_text(fields, "workflow").map(String::from);
        if let Some(name) = &workflow {
            let help = "write the workflow's name: which ones may be started is settled when the first begins";
            self.plain_name(name, "workflow", &fields.path, help);
            self.check_outside(Outside::Workflow, name, &fields.path.key("workflow"));
        }
        let input = self.field(fields, "input").unwrap_or(Template::Literal(Value::Null));
        if let Some(name) = &workflow {
            self.check_child_input(name, fields);
        }
        let variables = self.field(fields, "variables").unwrap_or(Template::Literal(Map::new().into()));
        let is_object = matches!(variables, Template::Map(_) | Template::Whole(_) | Template::Literal(Value::Map(_)));
        if let Some(value) = fields.get("variables").filter(|value| !is_object && !is_whole(value)) {
            self.report.wrong_kind(
                &fields.path.key("variables"),
                "variables",
                "an object or a reference to one",
                value,
            );
        }
        let waits = self.report.bool(fields, "wait").unwrap_or(true);
        Some(Work::Subworkflow { workflow: workflow?, input, variables, waits })
    }

    /// Warns about an input that the schema of the child workflow refuses. The values of references are not known yet.
    fn check_child_input(&mut self, name: &str, fields: &Fields<'_>) {
        if !fields.has("input") && self.report.is_meant(&fields.path, "input") {
            return;
        }
        let Some(schema) = self.report.inspector().workflow_input(name) else { return };
        let given = fields.get("input").unwrap_or(&Value::Null);
        let is_open = |value: &Value| value.as_text().is_some_and(|text| text.contains('@'));
        let Some(Misfit { at, why }) = misfit(given, (&schema, &schema), true, &is_open) else { return };
        let part = if at.is_empty() { "the input".into() } else { format!("{} of the input", named(&at)) };
        let message = format!("{} refuses this input: {part} {why}", named(name));
        let help = format!("write an input that the `inputSchema` of {} accepts", named(name));
        let key = if fields.has("input") { "input" } else { "workflow" };
        self.report.warning(diagnostic::VALUE_NOT_IN_SCHEMA, &fields.path.key(key), message, help);
    }

    /// Reports a reference in a name that must be known before the execution starts.
    pub(super) fn plain_name(&mut self, name: &str, key: &str, path: &Path, help: &str) {
        let refers = |at: usize| {
            let body = &name[at + 1..];
            reference::length(body).is_some_and(|(length, _)| self.root_of(&body[..length]).is_some())
        };
        if name.starts_with('@') || name.match_indices('@').any(|(at, _)| refers(at)) {
            let message = format!("`{key}` is a name and does not refer: {}", quoted(name));
            self.report.error(diagnostic::MISPLACED_REFERENCE, &path.key(key), message, help);
        }
    }

    fn agent(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let goal = self.one_text(
            fields,
            ["goal", "content", "message"],
            "say what the agent is to do, as in: write `goal: Summarize the changes`",
        );
        let context = self.field(fields, "context");
        Some(effect("agent", [("goal", Some(goal?)), ("context", context)]))
    }

    /// Reads the text under exactly one of several keys. The first key is the recommended one.
    pub(super) fn one_text(&mut self, fields: &Fields<'_>, keys: [&str; 3], purpose: &str) -> Option<Template> {
        let given: Vec<&str> = keys.into_iter().filter(|key| fields.has(key)).collect();
        match given.as_slice() {
            [] => {
                self.report.missing(fields, keys[0], purpose);
                None
            }
            [key] => {
                self.report.filled_text(fields, key)?;
                self.field(fields, key)
            }
            [first, second, ..] => {
                let message = format!("`{first}` and `{second}` mean the same here");
                self.report.error_at_key(
                    diagnostic::EXCLUSIVE_KEYS,
                    &fields.path.key(second),
                    message,
                    "keep one of them",
                );
                None
            }
        }
    }

    fn conditional(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if !fields.has("condition") {
            if let Some(when) = fields.get("when").filter(|when| when.as_map().is_some()) {
                let (from, to) = (fields.path.key("when"), fields.path.key("condition"));
                let text = format!("write `condition: {}`: `when` skips the whole step", flow(when));
                self.report.missing(fields, "condition", Help::new(text, Fix::moved(&from, to)));
            } else {
                self.report.missing(
                    fields,
                    "condition",
                    "say when `then` is taken, as in: write `condition: {ref: \"@input.ready\"}`",
                );
            }
        }
        let condition = fields.get("condition").and_then(|value| self.condition(value, &fields.path.key("condition")));
        if !fields.has("then") && !fields.has("else") {
            self.report.missing(
                fields,
                "then",
                "give it steps in `then`, in `else`, or in both, as in: write `then: [{type: bash, command: ls}]`",
            );
        }
        let branch = |key| self.entry().branches.iter().find(|(name, _)| *name == key).map(|(_, block)| *block);
        let (then, otherwise) = (branch("then"), branch("else"));
        Some(Work::Conditional { condition: condition?, then: then?, otherwise })
    }

    fn parallel(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if !fields.has("steps") {
            self.report.missing(fields, "steps", "each of its steps is a branch");
        }
        self.entry().branches.first().map(|(_, block)| Work::Parallel { block: *block })
    }

    fn approval(&mut self, fields: &Fields<'_>) -> Option<Work> {
        self.report.filled_text(fields, "prompt");
        let question = format!("Approval required for step {}", self.entry().id);
        let prompt = self.field(fields, "prompt").unwrap_or(literal(question));
        let items = self.field(fields, "items").unwrap_or(literal(Vec::<Value>::new()));
        let approvers = self.approvers(fields);
        let count = self.report.whole_32(fields, "count", 1..=APPROVAL_COUNT_MAX).unwrap_or(1);
        if !approvers.is_empty() && count as usize > approvers.len() {
            let message = format!("`count` asks for {count} of {} `approvers`", approvers.len());
            self.report.error(
                diagnostic::WRONG_VALUE,
                &fields.path.key("count"),
                message,
                format!("name more people, or ask for fewer: write `{}`", approvers.len()),
            );
        }
        let ttl_ms = self.report.whole(fields, "ttlMs", 1..=WAIT_MAX_MS).unwrap_or(APPROVAL_TTL_DEFAULT_MS);
        let decisions = [Decision::Deny, Decision::Approve].map(|decision| (decision.name(), decision));
        let on_timeout = self.report.word(fields, "onTimeout", &decisions).unwrap_or(Decision::Deny);
        Some(Work::Approval(Gate { prompt, items, approvers, count, ttl_ms, on_timeout }))
    }

    fn approvers(&mut self, fields: &Fields<'_>) -> Vec<String> {
        let path = fields.path.key("approvers");
        let mut approvers: Vec<String> = Vec::new();
        let Some(items) = self.report.list(fields, "approvers") else { return approvers };
        if items.is_empty() {
            let help = Help::new("leave it out: then the owner and the admins decide", Fix::remove(&path));
            self.report.error(diagnostic::EMPTY, &path, "`approvers` is empty", help);
        }
        let mut seen = alloc::collections::BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            match item.as_text() {
                None if item.as_map().is_some() => {
                    let message =
                        "an item of `approvers` must be the name of a person, not an object: a role cannot be named";
                    let help =
                        "write the names of members, or leave `approvers` out: then the owner and the admins decide";
                    self.report.error(diagnostic::WRONG_KIND, &path.index(at), message, help);
                }
                None => self.report.wrong_item(&path.index(at), "approvers", "a name", item),
                Some(name) if name.trim().is_empty() => {
                    self.report.error(diagnostic::EMPTY, &path.index(at), "a blank name", "take it out")
                }
                Some(name) if !seen.insert(name) => {
                    let message = format!("{} stands in `approvers` twice", named(name));
                    self.report.error(diagnostic::WRONG_VALUE, &path.index(at), message, "keep one of them");
                }
                Some(name) => approvers.push(name.to_string()),
            }
        }
        approvers
    }

    fn sleep(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if fields.has("until") {
            if fields.has("durationMs") {
                let (path, message) =
                    (fields.path.key("until"), "a step sleeps for `durationMs` or `until` a time, not both");
                self.report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &path, message, "keep one of them");
            }
            return self.sleep_until(fields);
        }
        let Some(value) = fields.get("durationMs") else {
            if self.report.is_meant(&fields.path, "until") {
                return None;
            }
            self.report.missing(fields, "durationMs", "say how long, or `until` when, as in: write `durationMs: 1000`");
            return None;
        };
        let duration_ms = match value {
            Value::Number(_) => literal(self.report.whole(fields, "durationMs", 0..=WAIT_MAX_MS)?),
            value if is_whole(value) => self.field(fields, "durationMs")?,
            other => {
                let wanted = "a whole number of milliseconds or a reference to one";
                self.report.wrong_kind(&fields.path.key("durationMs"), "durationMs", wanted, other);
                return None;
            }
        };
        Some(Work::Sleep { duration_ms })
    }

    fn sleep_until(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let value = fields.get("until")?;
        let is_time = value.as_u64().is_some() || value.as_text().is_some_and(|text| parse_rfc3339(text).is_some());
        if !is_time && !value.as_text().is_some_and(|text| text.contains('@')) {
            let message = "`until` must be a time, milliseconds since 1970, or a reference to one";
            let path = fields.path.key("until");
            let help = adapted("until", "until", value).at_value(&path);
            let help = help.unwrap_or_else(|| "as in: write `\"2026-02-07T12:00:00Z\"`".into());
            self.report.error(diagnostic::WRONG_VALUE, &path, message, help);
        }
        Some(Work::SleepUntil { time: self.field(fields, "until")? })
    }

    fn signal(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if !fields.has("signal") {
            self.report.missing(fields, "signal", "say which signal is waited for, as in: write `signal: paid`");
        }
        Some(Work::Signal { name: self.shared_name(fields, "signal")?.to_string() })
    }

    /// Reads a name that several steps use, or people outside: that of a signal or of a conversation.
    pub(super) fn shared_name<'f>(&mut self, fields: &Fields<'f>, key: &str) -> Option<&'f str> {
        let name = self.report.filled_text(fields, key)?;
        let path = fields.path.key(key);
        if name.starts_with('@') {
            let message = format!("`{key}` is a name and does not refer: {}", quoted(name));
            self.report.error(diagnostic::MISPLACED_REFERENCE, &path, message, format!("write the {key}'s name"));
            return None;
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':' | '/');
        if !name.chars().all(is_plain) {
            let message = format!("{} is no name of a {key}", quoted(name));
            let fitting: String =
                name.trim().chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
            let text = format!("write {}: letters, digits and `_ - . : /`", quoted(&fitting));
            let at = fields.path.key(key);
            let help = Help::new(text, Fix::replace(&at, fitting.as_str()));
            self.report.error(diagnostic::BAD_NAME, &path, message, help);
        }
        if name.chars().nth(NAME_CHARS_MAX).is_some() {
            let message = format!("`{key}` has more than {NAME_CHARS_MAX} characters");
            self.report.error(diagnostic::TOO_LARGE, &path, message, "write a shorter one");
        }
        Some(name)
    }

    /// Reads an optional field in which references are allowed.
    pub(super) fn field(&mut self, fields: &Fields<'_>, key: &str) -> Option<Template> {
        fields.get(key).map(|value| self.template(value, &fields.path.key(key)))
    }
}

/// Builds an effect from its name and the parameters that are present.
pub(super) fn effect<'k>(name: &str, params: impl IntoIterator<Item = (&'k str, Option<Template>)>) -> Work {
    let mut params: Vec<_> = params.into_iter().filter_map(|(key, param)| Some((key.to_string(), param?))).collect();
    // Sorted as objects are, so that a plan reads back from its stored form unchanged.
    params.sort_by(|(a, _), (b, _)| a.cmp(b));
    Work::Effect { effect: name.to_string(), params: Template::Map(params).normalized() }
}

pub(super) fn literal(value: impl Into<Value>) -> Template {
    Template::Literal(value.into())
}
