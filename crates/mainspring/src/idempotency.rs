//! Compares a repeated start request with the execution that has its name. The execution continues only if both
//! agree.

use mainspring_engine::start_request::{StartRequest, policy};
use mainspring_kernel::{
    hash::Hash,
    input::Policy,
    json::compact,
    limits::{EDGES_STEPS_DEFAULT, EXECUTION_STEPS_DEFAULT},
    state::{Started, State},
    value::{Map, Value},
};

use crate::error::CliError;

/// The default step limits of this release and of earlier ones.
const STEPS_DEFAULTS: [u32; 2] = [EXECUTION_STEPS_DEFAULT, EDGES_STEPS_DEFAULT];

/// The compared parts of a request, kept while the request itself is sent. The number of dispatches and the trigger
/// are not compared: they may differ between calls, and those of the first call are used.
#[derive(Debug)]
pub struct RequestFingerprint {
    workflow_hash: Hash,
    /// `None` compares the definition only: a repeated idempotency key returns the first execution.
    execution_id: Option<String>,
    input: Value,
    variables: Map,
    policy: Policy,
    max_calls: Option<u32>,
    /// `None` if the request names no workspace and uses the current folder.
    workspace: Option<String>,
}

/// Characters of a value in an error message.
const SHOWN_CHARS_MAX: usize = 200;

impl RequestFingerprint {
    /// Takes the compared parts of a request. `names_workspace` is true if the request names its workspace.
    pub fn of(request: &StartRequest, names_workspace: bool) -> Self {
        Self {
            workflow_hash: request.plan.workflow_hash,
            execution_id: request.execution_id.clone(),
            input: request.input.clone(),
            variables: request.variables.clone(),
            policy: policy(&request.bounds, &request.plan),
            max_calls: request.plan.constraints.max_calls,
            workspace: request.workspace.clone().filter(|_| names_workspace),
        }
    }

    /// Compares only the definition from now on.
    pub fn forget_name(&mut self) {
        self.execution_id = None;
    }

    /// The note for an idempotency key that has started another execution with another request: the first one counts. `None`
    /// if the requests agree, or if the request names the execution itself.
    pub fn reuse(&self, key: Option<&str>, state: &State) -> Option<String> {
        let (key, start) = (key?, state.start.as_ref()?);
        if self.execution_id.as_ref() == Some(&start.execution_id) {
            return None;
        }
        let differences = self.differences(start, state);
        let words: Vec<_> = differences.iter().map(Difference::words).collect();
        (!words.is_empty()).then(|| reused(key, &start.execution_id, &words.join("; ")))
    }

    /// Fails if the execution was started with another request. `help` is the help text; `ID` in it is replaced by
    /// the name of the execution.
    pub fn check(&self, state: &State, help: &str) -> Result<(), CliError> {
        let Some(start) = &state.start else { return Ok(()) };
        let id = &start.execution_id;
        let (pinned, wanted) = (start.workflow_hash, self.workflow_hash);
        if pinned != wanted {
            let what = format!("the execution `{id}` was started with");
            return Err(hash_mismatch(&what, pinned, wanted));
        }
        let differences = self.differences(start, state);
        if self.execution_id.as_ref() != Some(id) || differences.is_empty() {
            return Ok(());
        }
        let words: Vec<_> = differences.iter().map(Difference::words).collect();
        let help = help.replace("ID", id);
        let message = format!("the execution `{id}` was started with another request: {}; {help}", words.join("; "));
        let mut error = CliError::contract("request_mismatch", message);
        let names: Vec<Value> = differences.iter().map(|difference| difference.key.as_str().into()).collect();
        error.failure.details = Value::map([("differs", names.into())]);
        Err(error)
    }

    fn differences(&self, start: &Started, state: &State) -> Vec<Difference> {
        let number = |number: Option<u64>| number.map(Value::from);
        let (then, now) = (&start.policy, &self.policy);
        // Earlier releases had another default for graphs and dataflows. Two defaults are not a difference.
        let is_default = [then.max_steps, now.max_steps].iter().all(|steps| STEPS_DEFAULTS.contains(steps));
        let max_steps = if is_default { then.max_steps } else { now.max_steps };
        let workspaces = (start.workspace.as_deref().map(Value::from), self.workspace.as_deref().map(Value::from));
        let mut pairs = vec![
            Difference::new("input", "the input", Some(start.input.clone()), Some(self.input.clone())),
            Difference::new("maxSteps", "the bound on steps", Some(then.max_steps.into()), Some(max_steps.into())),
            Difference::new(
                "maxOutputBytes",
                "the bound on the bytes of an output",
                then.max_output_bytes.map(Value::from),
                now.max_output_bytes.map(Value::from),
            ),
            Difference::new(
                "maxParallel",
                "the bound on branches at a time",
                Some(then.max_parallel.into()),
                Some(now.max_parallel.into()),
            ),
            Difference::new(
                "maxCalls",
                "the bound on calls",
                state.plan.constraints.max_calls.map(Value::from),
                self.max_calls.map(Value::from),
            ),
            Difference::new("timeoutMs", "the bound on milliseconds", number(then.timeout_ms), number(now.timeout_ms)),
        ];
        if self.workspace.is_some() {
            pairs.push(Difference::new("workspace", "the workspace", workspaces.0, workspaces.1));
        }
        let none = Map::new();
        let given = start.variables.as_map().unwrap_or(&none);
        let names: std::collections::BTreeSet<_> = given.keys().chain(self.variables.keys()).collect();
        // An erased value cannot be compared, so it counts as equal.
        let is_known = |value: &Value| !(state.journal.has_erased && *value == Value::Null);
        pairs.retain(|pair| pair.then.as_ref().is_none_or(is_known));
        if is_known(&start.variables) {
            pairs.extend(names.into_iter().map(|name| {
                let (then, now) = (given.get(name).cloned(), self.variables.get(name).cloned());
                Difference::new(&format!("variables.{name}"), &format!("variable `{name}`"), then, now)
            }));
        }
        pairs.retain(|pair| pair.then != pair.now);
        pairs
    }
}

/// The note for a key that was used with another request.
pub fn reused(key: &str, execution: &str, differences: &str) -> String {
    format!(
        "the idempotency key `{key}` has started `{execution}` before, with another request, which counts; this request \
         starts nothing (it differs in: {differences}); use another key for another execution"
    )
}

/// One difference: the value of the execution and the value of the request.
struct Difference {
    key: String,
    name: String,
    then: Option<Value>,
    now: Option<Value>,
}

impl Difference {
    fn new(key: &str, name: &str, then: Option<Value>, now: Option<Value>) -> Self {
        Self { key: key.into(), name: name.into(), then, now }
    }

    fn words(&self) -> String {
        let word = |value: &Option<Value>| value.as_ref().map_or("not given".into(), brief);
        format!("{} was {} and is now {}", self.name, word(&self.then), word(&self.now))
    }
}

fn brief(value: &Value) -> String {
    let text = compact(value);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The error for a definition with another hash.
pub fn hash_mismatch(what: &str, found: Hash, wanted: Hash) -> CliError {
    let message = format!(
        "the workflow's hash does not match: {what} {}, and {} was requested",
        found.prefixed(),
        wanted.prefixed()
    );
    CliError::contract("hash_mismatch", message)
}
