//! A run under a name that is taken: whether what is asked for is what the execution was begun with.

use mainspring_engine::request::{Request, policy};
use mainspring_kernel::{
    hash::Hash,
    input::Policy,
    json::compact,
    limits::{EDGES_STEPS_DEFAULT, EXECUTION_STEPS_DEFAULT},
    state::{Started, State},
    value::{Map, Value},
};

use crate::exit::Refusal;

/// The bounds on steps where nobody asks for one.
const STEPS_DEFAULTS: [u32; 2] = [EXECUTION_STEPS_DEFAULT, EDGES_STEPS_DEFAULT];

/// What is asked for, kept while the request itself is on its way. How often it was dispatched and what triggered it are
/// not here: they may differ from one call to the next, and those of the first call count.
#[derive(Debug)]
pub struct Asked {
    workflow_hash: Hash,
    /// Without a name nothing but the definition is compared: a repeated idempotency key gives the first execution.
    execution_id: Option<String>,
    input: Value,
    variables: Map,
    policy: Policy,
    max_calls: Option<u32>,
    /// `None` where it was not asked for a workspace, but the folder of the call is taken.
    workspace: Option<String>,
}

/// Characters of a value that a difference shows.
const SHOWN_CHARS_MAX: usize = 200;

impl Asked {
    /// What a request asks for; whether it names its workspace.
    pub fn of(request: &Request, names_workspace: bool) -> Self {
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

    /// From now on nothing but the definition is compared.
    pub fn forget_name(&mut self) {
        self.execution_id = None;
    }

    /// Refuses to go on with an execution that was begun otherwise. `mend` says what to do then; `ID` in it is its name.
    pub fn check(&self, state: &State, mend: &str) -> Result<(), Refusal> {
        let Some(start) = &state.start else { return Ok(()) };
        let id = &start.execution_id;
        let (pinned, wanted) = (start.workflow_hash, self.workflow_hash);
        if pinned != wanted {
            let what = format!("the execution `{id}` was begun with");
            return Err(hash_mismatch(&what, pinned, wanted));
        }
        let differences = self.differences(start, state);
        if self.execution_id.as_ref() != Some(id) || differences.is_empty() {
            return Ok(());
        }
        let words: Vec<_> = differences.iter().map(Difference::words).collect();
        let mend = mend.replace("ID", id);
        let message = format!("the execution `{id}` was begun otherwise: {}; {mend}", words.join("; "));
        let mut refusal = Refusal::contract("request_mismatch", message);
        let names: Vec<Value> = differences.iter().map(|difference| difference.key.as_str().into()).collect();
        refusal.failure.details = Value::map([("differs", names.into())]);
        Err(refusal)
    }

    fn differences(&self, start: &Started, state: &State) -> Vec<Difference> {
        let number = |number: Option<u64>| number.map(Value::from);
        let (then, now) = (&start.policy, &self.policy);
        // The default of graphs and dataflows was another one in earlier releases.
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
        // Of what was erased nobody knows any more whether it is the same.
        let is_known = |value: &Value| !(state.has_erased && *value == Value::Null);
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

/// One thing, as it was and as it is asked for.
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
        format!("{} was {} and is {} now", self.name, word(&self.then), word(&self.now))
    }
}

fn brief(value: &Value) -> String {
    let text = compact(value);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The refusal of a definition that is another one.
pub fn hash_mismatch(what: &str, found: Hash, wanted: Hash) -> Refusal {
    let message = format!(
        "the workflow's hash does not match: {what} {}, and {} was asked for",
        found.prefixed(),
        wanted.prefixed()
    );
    Refusal::contract("hash_mismatch", message)
}
