//! Second pass of the compiler: reads each step against the outline.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    agents::{Attempts, is_conversation, is_runner, runner_attempts},
    edges::Edges,
    fields::Fields,
    help::Help,
    keys,
    notation::Notation,
    outline::{Entry, Outline, Role, check_name},
    references::Reader,
    report::Report,
    retry,
    schemas::schema,
    step_types::{KINDS, Kind, MODIFIERS},
    suggest::{adapt::renamed, synonyms::synonym},
};
use crate::{
    condition::Condition,
    diagnostic,
    fix::Fix,
    limits::{
        AGENT_TIMEOUT_DEFAULT_MS, AWAIT_DEFAULT_MS, CODE_TIMEOUT_DEFAULT_MS, CODE_TIMEOUT_MAX_MS,
        HTTP_TIMEOUT_DEFAULT_MS, SHELL_TIMEOUT_DEFAULT_MS, SHELL_TIMEOUT_MAX_MS, TOOL_TIMEOUT_DEFAULT_MS, WAIT_MAX_MS,
    },
    plan::{OnError, OnInterrupted, Retry, Step, Work},
    reference::Root,
    value::Value,
};

/// Reads every step of an outline. Steps with mistakes are omitted, so the result is valid only if nothing was
/// reported.
pub(super) fn read<'a>(outline: &Outline<'a>, edges: Option<&Edges<'a>>, report: &mut Report<'a>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut carried = Carried::default();
    for number in 0..outline.entries.len() as u32 {
        let mut reader = Reader::new(outline, edges, number, report);
        steps.extend(reader.step(&mut carried));
    }
    steps
}

/// The parts of a step that its later entries use.
#[derive(Default)]
struct Carried {
    /// The condition of the body of a `forEach` step.
    when_of_body: Option<Condition>,
    /// The attempts of the calls of an agent.
    of_agent: Option<Attempts>,
}

impl Reader<'_, '_> {
    /// Reads a step. A step with `forEach` is read in two parts, the loop and its body. Its keys are checked once, and
    /// each key applies to one of the parts.
    fn step(&mut self, carried: &mut Carried) -> Option<Step> {
        let entry = &self.outline.entries[self.number as usize];
        let Entry { fields, kind, id, block, role, .. } = entry;
        if let Role::Agent(part) = role {
            return self.agent_part(entry, *part, carried.of_agent.as_ref()?);
        }
        if *role != Role::Body {
            self.check_step(*kind, fields);
        }
        let Some(kind) = *kind else {
            self.check_without_type(*role, fields);
            return None;
        };
        let on_error = if *role == Role::Body { quiet_on_error(fields) } else { self.on_error(fields) };
        let (is_loop, is_outer) = (*role == Role::Each, *role != Role::Body);
        let when = match role {
            Role::Body | Role::Agent(_) => carried.when_of_body.take(),
            Role::Whole => self.when(fields),
            Role::Each => {
                let (own, of_body) = self.split_when(fields);
                carried.when_of_body = of_body;
                own
            }
        };
        let (retry, timeout_ms, on_interrupted) =
            if is_loop { (Retry::never(), None, OnInterrupted::Retry) } else { self.attempts(kind, fields) };
        let is_agent = !is_loop && is_conversation(Some(kind), fields);
        let (retry, timeout_ms, on_interrupted) = if !is_loop && is_runner(Some(kind), fields) {
            let (retry, on_interrupted) = runner_attempts(&retry, on_interrupted, fields);
            (retry, timeout_ms, on_interrupted)
        } else if is_agent {
            // An answer that was paid for and lost is not bought again unless the author says so.
            let on_interrupted = if fields.has("onInterrupted") { on_interrupted } else { OnInterrupted::Fail };
            carried.of_agent = Some(Attempts { retry, timeout_ms, on_interrupted });
            (Retry::never(), None, OnInterrupted::Retry)
        } else {
            (retry, timeout_ms, on_interrupted)
        };
        let work = if is_loop { self.each(fields) } else { self.work(kind, fields) };
        let bail = if is_outer { self.bail(fields) } else { None };
        let work = work?;
        Some(Step {
            id: id.clone(),
            block: *block,
            when,
            timeout_ms: timeout_of(&work, timeout_ms, fields),
            retry,
            on_error,
            on_interrupted,
            output_variable: fields
                .get("outputVariable")
                .filter(|_| is_outer)
                .and_then(Value::as_text)
                .map(ToString::to_string),
            bail,
            output_schema: fields.get("outputSchema").filter(|_| !is_loop && !is_agent).cloned(),
            transform: if is_loop { None } else { self.transform(fields) },
            priority: fields
                .get("priority")
                .and_then(Value::as_number)
                .and_then(|n| i32::try_from(n.as_whole()?).ok())
                .unwrap_or(0),
            key_per_attempt: !is_loop && !is_agent && fields.get("keyPer").and_then(Value::as_text) == Some("attempt"),
            guard: None,
            work,
        })
    }

    /// Checks the keys that do not depend on the part.
    fn check_step(&mut self, kind: Option<&'static Kind>, fields: &Fields<'_>) {
        if let Some(kind) = kind {
            self.check_keys(kind, fields);
        }
        self.check_in_finally(kind, fields);
        self.report.text(fields, "name");
        self.report.text(fields, "description");
        self.report.priority(fields, "priority");
        if let Some(name) = self.report.filled_text(fields, "outputVariable") {
            check_name(name, "outputVariable", &fields.path, self.report);
        }
        if kind.is_some_and(|kind| kind.takes("outputSchema")) {
            schema(fields, "outputSchema", self.report);
            self.check_output_schema();
        }
        if kind.is_some_and(|kind| kind.takes("keyPer")) {
            self.report.word(fields, "keyPer", &[("intent", ()), ("attempt", ())]);
        }
        if let Some(config) = self.report.object(fields, "config") {
            self.report.known_keys(&config, &keys::CONFIG);
        }
    }

    /// Reports the mistakes of a step of unknown type in the keys that all types share.
    fn check_without_type(&mut self, role: Role, fields: &Fields<'_>) {
        match role {
            Role::Body | Role::Agent(_) => return,
            Role::Whole => drop(self.when(fields)),
            Role::Each => {
                self.split_when(fields);
                self.each(fields);
            }
        }
        self.on_error(fields);
        retry::read(self.outline.notation, fields, self.report);
        self.bail(fields);
    }

    fn when(&mut self, fields: &Fields<'_>) -> Option<Condition> {
        fields.get("when").and_then(|when| self.condition(when, &fields.path.key("when")))
    }

    /// Reads `when` of a step with `forEach`. The condition is evaluated once, or per item if it refers to the item.
    fn split_when(&mut self, fields: &Fields<'_>) -> (Option<Condition>, Option<Condition>) {
        let own = self.number;
        // The body has the next number, and `@item` and `@index` are defined there.
        self.number = own + 1;
        let when = self.when(fields);
        self.number = own;
        let mut references = Vec::new();
        when.iter().for_each(|when| when.references(&mut references));
        let is_of_item = references.iter().any(|reference| matches!(reference.root, Root::Item | Root::Index));
        if is_of_item { (None, when) } else { (when, None) }
    }

    /// Reads `bail`: `true`, or a condition that may refer to the step's own output.
    fn bail(&mut self, fields: &Fields<'_>) -> Option<Condition> {
        self.at_end = true;
        let bail = fields.get("bail").and_then(|bail| self.condition(bail, &fields.path.key("bail")));
        self.at_end = false;
        bail
    }

    fn on_error(&mut self, fields: &Fields<'_>) -> OnError {
        let words = OnError::ALL.map(|on_error| (on_error.name(), on_error));
        let key = self.report.one_of(fields, "onError", "continueOnError");
        let config = fields.get("config").and_then(Value::as_map).filter(|config| config.contains_key("onError"));
        let config = config.map(|map| Fields { map, path: fields.path.key("config") });
        if let (Some(config), Some(key)) = (&config, key) {
            let message = format!("`{key}` and `config.onError` mean the same");
            let path = config.path.key("onError");
            self.report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &path, message, "keep one of them");
        }
        let given = match (config, key) {
            (Some(config), _) => self.report.word(&config, "onError", &words),
            (None, Some("continueOnError")) => {
                let continues = self.report.bool(fields, "continueOnError");
                continues.map(|continues| if continues { OnError::Continue } else { OnError::Fail })
            }
            (None, _) => self.report.word(fields, "onError", &words),
        };
        given.unwrap_or(OnError::Fail)
    }

    fn attempts(&mut self, kind: &Kind, fields: &Fields<'_>) -> (Retry, Option<u64>, OnInterrupted) {
        if !kind.takes("retry") {
            let timeout_ms =
                if kind.takes("timeoutMs") { self.report.whole(fields, "timeoutMs", 1..=WAIT_MAX_MS) } else { None };
            return (Retry::never(), timeout_ms, OnInterrupted::Retry);
        }
        let retry = retry::read(self.outline.notation, fields, self.report);
        let is_shell = kind.name == "bash" || super::step_work::is_shell_tool(self.outline.notation, kind, fields);
        let longest_ms = match kind.name {
            _ if is_shell => SHELL_TIMEOUT_MAX_MS,
            "code" => CODE_TIMEOUT_MAX_MS,
            _ => WAIT_MAX_MS,
        };
        let timeout_ms = self.timeout(fields, longest_ms);
        let words = OnInterrupted::ALL.map(|on_interrupted| (on_interrupted.name(), on_interrupted));
        let on_interrupted = self.report.word(fields, "onInterrupted", &words);
        if on_interrupted == Some(OnInterrupted::Retry) {
            retry::check_interruption(&retry, fields, self.report);
        }
        (retry, timeout_ms, on_interrupted.unwrap_or(OnInterrupted::Retry))
    }

    fn timeout(&mut self, fields: &Fields<'_>, longest_ms: u64) -> Option<u64> {
        let config = fields.get("config").and_then(Value::as_map).filter(|config| config.contains_key("timeoutMs"));
        let Some(config) = config else { return self.report.whole(fields, "timeoutMs", 1..=longest_ms) };
        let config = Fields { map: config, path: fields.path.key("config") };
        if fields.has("timeoutMs") {
            let (path, message) = (config.path.key("timeoutMs"), "`timeoutMs` and `config.timeoutMs` mean the same");
            self.report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &path, message, "keep one of them");
        }
        self.report.whole(&config, "timeoutMs", 1..=longest_ms)
    }

    /// Reads the transform function, whose key depends on the notation.
    fn transform(&mut self, fields: &Fields<'_>) -> Option<String> {
        let action = fields.get("action").and_then(Value::as_map);
        let action = action.map(|map| Fields { map, path: fields.path.key("action") });
        let in_action = action.as_ref().filter(|action| action.has("transformCode"));
        if let (Some(action), true) = (in_action, fields.has("transform")) {
            let (path, message) = (action.path.key("transformCode"), "`transform` and `transformCode` mean the same");
            self.report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &path, message, "keep one of them");
        }
        match in_action {
            Some(action) => self.source(action, "transformCode"),
            None => self.source(fields, "transform"),
        }
    }

    /// Reports unknown and misplaced keys.
    fn check_keys(&mut self, kind: &Kind, fields: &Fields<'_>) {
        let dataflow = self.outline.notation == Notation::Dataflow;
        let has_action = dataflow && fields.has("action");
        let known = keys::keys_of(kind, self.outline.notation, has_action);
        for key in fields.map.keys().map(String::as_str).filter(|key| !known.contains(key)) {
            match key {
                _ if MODIFIERS.contains(&key) => self.misplaced_modifier(kind, fields, key),
                "id" => {
                    let (path, message) = (fields.path.key(key), "in a dataflow the `name` of a step is its id");
                    self.report.stands_for(&fields.path, "name");
                    self.report.error_at_key(diagnostic::MISPLACED_KEY, &path, message, Help::key(&path, "name"));
                }
                "type" => {
                    let (path, message) = (fields.path.key(key), "`type` and `action` both say what the step does");
                    self.report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &path, message, "keep one of them");
                }
                _ if !kind.runs => {}
                "tool" | "arguments" | "code" if has_action => {
                    let (path, message) = (fields.path.key(key), format!("`{key}` does not stand beside `action`"));
                    let word = if key == "tool" { "toolName" } else { "code" };
                    let said = fields.get("action").and_then(|action| action.get(word));
                    let help = match key {
                        "tool" | "code" if said.is_some() && said == fields.get(key) => {
                            Help::new("leave it out: `action` says it", Fix::remove(&path))
                        }
                        "arguments" if !fields.has("input") => Help::key(&path, "input"),
                        _ => "put it into `action`, as `toolName` or `code`".into(),
                    };
                    self.report.error_at_key(diagnostic::MISPLACED_KEY, &path, message, help);
                }
                _ => self.unknown_step_key(kind, fields, key, &known),
            }
        }
    }

    fn misplaced_modifier(&mut self, kind: &Kind, fields: &Fields<'_>, key: &str) {
        let message = match key {
            "retry" | "retryPolicy" | "timeoutMs" | "onInterrupted" | "config" => {
                format!("`{key}` is for steps that do work, and `{}` does none by itself", kind.name)
            }
            _ => format!("`{key}` is no key of `{}` steps", kind.name),
        };
        let at = fields.path.key(key);
        let help = match (kind.is_container(), kind.name, key) {
            (true, ..) => self.onto_inner(kind, fields, key),
            (_, "approval", "timeoutMs") if !fields.has("ttlMs") => {
                Help::new("write `ttlMs`: how long the gate stays open", Fix::rename(&at, "ttlMs"))
            }
            (_, "sleep", "timeoutMs") if !fields.has("durationMs") => Help::key(&at, "durationMs"),
            _ => Help::new("leave it out", Fix::remove(&at)),
        };
        self.report.error_at_key(diagnostic::MISPLACED_KEY, &at, message, help);
    }

    /// Returns the help for a key that belongs on the steps inside a container. If there is one step, the key is moved.
    fn onto_inner(&self, kind: &Kind, fields: &Fields<'_>, key: &str) -> Help {
        let text = "put it on the steps inside";
        let inner: Vec<_> = kind
            .branches
            .iter()
            .flat_map(|(branch, _)| {
                let steps = fields.get(branch).and_then(Value::as_list).unwrap_or_default();
                steps.iter().enumerate().map(|(at, step)| (fields.path.key(branch).index(at), step))
            })
            .collect();
        let takes = |step: &Value| {
            let name = step.get("type").and_then(Value::as_text);
            name.and_then(Kind::of).is_some_and(|kind| kind.takes(key)) && step.get(key).is_none()
        };
        if inner.is_empty() || !inner.iter().all(|(_, step)| takes(step)) {
            return text.into();
        }
        let from = fields.path.key(key);
        let Some(value) = fields.get(key) else { return text.into() };
        let fix =
            inner.iter().fold(Fix::remove(&from), |fix, (path, _)| fix.and(Fix::add(path.key(key), value.clone())));
        Help::new(text, fix)
    }

    fn unknown_step_key(&mut self, kind: &Kind, fields: &Fields<'_>, key: &str, known: &[&str]) {
        let owners: Vec<_> = KINDS.iter().filter(|other| other.keys.contains(&key)).map(|kind| kind.name).collect();
        if owners.is_empty() {
            return self.report.unknown_key(&fields.path, key, known.iter().copied());
        }
        let message = format!("`{key}` is no key of `{}` steps", kind.name);
        let meant = synonym(key, known.iter().copied()).filter(|meant| !fields.has(meant));
        let path = fields.path.key(key);
        let help = match (meant, fields.get(key)) {
            (Some(meant), Some(value)) => renamed(&path, key, &fields.path, meant, value),
            (_, Some(Value::Map(inner)))
                if key == "arguments" && inner.keys().all(|key| kind.keys.contains(&key.as_str())) =>
            {
                inner.keys().for_each(|key| self.report.stands_for(&fields.path, key));
                let moves = inner.keys().map(|key| Fix::moved(&path.key(key), fields.path.key(key)));
                Help::new("put its keys into the step", moves.fold(Fix::default(), Fix::and).and(Fix::remove(&path)))
            }
            _ => format!("it belongs to: {}", owners.join(", ")).into(),
        };
        if let Some(meant) = meant {
            self.report.stands_for(&fields.path, meant);
        }
        self.report.error_at_key(diagnostic::MISPLACED_KEY, &fields.path.key(key), message, help);
    }
}

/// Reads the error handling of a body without reporting mistakes, which the loop entry has reported already.
fn quiet_on_error(fields: &Fields<'_>) -> OnError {
    let config = fields.get("config").and_then(|config| config.get("onError"));
    let word = config.or(fields.get("onError")).and_then(Value::as_text);
    let continues = word == Some("continue") || fields.get("continueOnError").and_then(Value::as_bool) == Some(true);
    if continues { OnError::Continue } else { OnError::Fail }
}

fn timeout_of(work: &Work, given_ms: Option<u64>, fields: &Fields<'_>) -> Option<u64> {
    let default_ms = match work {
        Work::Effect { effect, .. } => match effect.as_str() {
            "bash" => SHELL_TIMEOUT_DEFAULT_MS,
            "tool" => TOOL_TIMEOUT_DEFAULT_MS,
            "http" => HTTP_TIMEOUT_DEFAULT_MS,
            _ => {
                let awaited_ms = fields.get("await_timeout_ms").and_then(Value::as_u64);
                let awaits = fields.get("await_response").and_then(Value::as_bool) == Some(true);
                let default_ms = if awaits { AWAIT_DEFAULT_MS } else { AGENT_TIMEOUT_DEFAULT_MS };
                return Some(awaited_ms.or(given_ms).unwrap_or(default_ms));
            }
        },
        Work::Code { .. } => CODE_TIMEOUT_DEFAULT_MS,
        Work::Subworkflow { .. } | Work::Signal { .. } => return given_ms,
        _ => return None,
    };
    Some(given_ms.unwrap_or(default_ms))
}

/// Reports a step of a type that this build cannot run.
pub(super) fn refuse_type(kind: &Kind, fields: &Fields<'_>, report: &mut Report<'_>) {
    let message = format!("`{}` steps are not in this build yet", kind.name);
    let runs: Vec<_> = KINDS.iter().filter(|kind| kind.runs).map(|kind| kind.name).collect();
    let path = fields.path.key("type");
    report.error(diagnostic::NOT_IN_BUILD, &path, message, format!("in this build: {}", runs.join(", ")));
}
