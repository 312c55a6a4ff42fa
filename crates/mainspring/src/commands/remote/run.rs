//! `mainspring run` at a server: starts a saved workflow and follows the execution to its end.

use std::{collections::BTreeSet, path::Path, time::Duration};

use mainspring_engine::{clock::now_ms, envelope};
use mainspring_kernel::{
    json::compact,
    plan::Decision,
    time::rfc3339,
    value::{Map, Value},
};

use super::{
    decide::{no_approver, send},
    follow::{Followed, Following, Told},
};
use crate::output::prompt::{Answer as Said, ask};
use crate::{
    cli::Global,
    client::{
        Client, Repeat,
        address::route,
        error::Kind,
        execution::{Execution, Gate, attempts},
        response::Response,
    },
    commands::{
        follow::Gates,
        run::{Run, detached, input, variables},
        save::saved,
        signal::fresh_id,
        validate::{list, said},
    },
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, dim, print_out},
    output::text::shown,
    read_store::block_on,
    runner::{Signals, print_event},
};

/// Interval at which a displayed question is checked for decisions by others, interval at which a decision is checked
/// at its node, and number of those checks.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const ARRIVED: Duration = Duration::from_millis(200);
const ARRIVED_POLLS: u32 = 100;

/// A saved workflow of a server.
struct Workflow {
    id: String,
    name: String,
    data: Value,
    /// Warnings of the save, if this command has saved the workflow.
    warnings: Vec<Value>,
}

/// A started execution.
struct Started {
    id: String,
    status: String,
    existed: bool,
    /// Warnings about approvers who cannot decide.
    warnings: Vec<Value>,
}

/// Runs a saved workflow of a server.
pub(in crate::commands) fn run(
    run: &Run,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    if let Some(flag) = run.flag_of_this_machine() {
        let message =
            format!("{flag} is for executions of this machine; a server runs a workflow as it is saved there");
        return Err(CliError::bad_input("not_at_a_server", message));
    }
    let variables = variables(&run.variables)?;
    block_on(async {
        let mut signals = Signals::new()?;
        let prepared = async {
            let workflow = workflow(run, client, global, terminal).await?;
            let input = input(run.input.as_deref(), workflow.data.get("inputSchema"))?;
            let started = start(run, client, &workflow, input, variables).await?;
            Ok::<_, CliError>((workflow, started))
        };
        let (workflow, started) = tokio::select! {
            () = signals.any() => {
                let message = "interrupted before the server has answered: `mainspring list` tells whether it was started";
                return Err(CliError::internal("interrupted", message));
            }
            prepared = prepared => prepared?,
        };
        // Warnings of the save are already printed.
        let news = started.warnings.iter().filter(|warning| !workflow.warnings.contains(warning));
        said(&news.cloned().collect::<Vec<_>>(), None);
        if run.detach {
            detached(&started.id, &started.status, global);
            return Ok(Exit::Fine);
        }
        if !global.json {
            let again = if started.existed { ", which exists" } else { "" };
            print_out!("{} {}", bold(&workflow.title()), dim(&shown(&format!("{}{again}", started.id))));
        }
        let gates = if run.yes { Gates::Approve } else { Gates::Ask };
        Attached { client, gates, global, terminal, decided: BTreeSet::new() }.follow(&started.id, &mut signals).await
    })
}

impl Workflow {
    fn title(&self) -> String {
        let version = self.data.get("version").and_then(Value::as_text);
        shown(&format!("{}{}", self.name, version.map(|version| format!(" {version}")).unwrap_or_default()))
    }
}

/// Finds the workflow by id or slug. A file is refused, since a server runs saved workflows only; `--save` saves it
/// first.
async fn workflow(run: &Run, client: &Client, global: &Global, terminal: &Terminal) -> Result<Workflow, CliError> {
    let name = run.file.to_str().unwrap_or_default();
    let save_first = |what: &str| {
        let file = run.file.display();
        let message = format!(
            "{what}: `mainspring save {file}` puts it there, and `mainspring run --save {file}` runs it as well"
        );
        CliError::bad_input("not_saved", message)
    };
    if !run.save && is_file_name(&run.file) {
        return Err(save_first("a server runs workflows that are saved there, and this is a file"));
    }
    let body = if run.save {
        let Some(body) = saved(&run.file, None, client, global).await? else {
            return Err(CliError::bad_input("invalid_definition", "the definition is invalid, and nothing was saved"));
        };
        let of = |key: &str| body.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        terminal.note(&format!("saved {} {}", of("slug"), of("version")));
        body
    } else {
        match client.get(&route(&["api", "workflows", name], &[])).await {
            Err(error) if error.is("NOT_FOUND") && run.file.is_file() => {
                return Err(save_first(&format!(
                    "there is no workflow `{name}` at {}, and a file of that name here",
                    client.address()
                )));
            }
            Err(error) if error.is("NOT_FOUND") => {
                let message = format!(
                    "there is no workflow `{name}` at {}; `mainspring workflows` lists those there are",
                    client.address()
                );
                return Err(error.saying("no_such_workflow", message));
            }
            body => body?,
        }
    };
    let answer = Response::new(client, "a workflow", &body);
    let (id, name) = (answer.text("id")?, answer.text("name")?);
    Ok(Workflow { id, name, data: answer.any("data"), warnings: list(&body, "warnings") })
}

/// Returns whether a name can only be a file: ids and slugs contain no slash.
fn is_file_name(path: &Path) -> bool {
    let is_definition =
        path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
    is_definition || path.to_str().is_none_or(|text| text.contains('/'))
}

/// Starts an execution. The request has an idempotency key, so a retried request starts one execution.
async fn start(
    run: &Run,
    client: &Client,
    workflow: &Workflow,
    input: Value,
    variables: Map,
) -> Result<Started, CliError> {
    let request = run.idempotency_key.clone().map_or_else(fresh_id, Ok)?;
    let body = [
        ("workflowId", Value::from(workflow.id.as_str())),
        ("clientRequestId", request.as_str().into()),
        ("variables", variables.into()),
        ("input", input),
    ];
    let body = Value::map(body.into_iter().chain(policy(run).map(|policy| ("runtime", policy))));
    let done = client.post(&route(&["api", "triggers", "manual", "run"], &[]), &body, Repeat::May).await;
    let done = done.map_err(|error| match error.kind {
        Kind::Broken | Kind::Unreachable => {
            let why = error.cli_error.failure.message.clone();
            let message = format!(
                "{why}; the same with --idempotency-key {request} starts it once, whether it was started or not"
            );
            error.saying("server_unreachable", message)
        }
        _ => error.into(),
    })?;
    let answer = Response::new(client, "what was started", &done);
    let (id, status) = (answer.text("executionId")?, answer.text("status")?);
    Ok(Started { id, status, existed: answer.flag("existed")?, warnings: list(&done, "warnings") })
}

/// Builds the `runtime` object of a start with the requested bounds; `None` without bounds, since an older release of
/// the server rejects the object.
fn policy(run: &Run) -> Option<Value> {
    let bounds = [
        ("timeoutMs", run.timeout_ms),
        ("maxSteps", run.max_steps.map(u64::from)),
        ("maxParallel", run.max_parallel.map(u64::from)),
        ("maxOutputBytes", run.max_output_bytes.map(u64::from)),
    ];
    let given: Map = bounds.into_iter().filter_map(|(key, bound)| Some((key.to_string(), bound?.into()))).collect();
    (!given.is_empty()).then(|| Value::map([("policy", given.into())]))
}

/// The state of a process that follows an execution and decides at its gates.
struct Attached<'a> {
    client: &'a Client,
    gates: Gates,
    global: &'a Global,
    terminal: &'a Terminal,
    /// Resume tokens of the gates that this process has decided.
    decided: BTreeSet<String>,
}

impl Attached<'_> {
    async fn follow(mut self, id: &str, signals: &mut Signals) -> Result<Exit, CliError> {
        let told = if self.global.json { Told::Beside } else { Told::Lines };
        let mut following = Following::new(self.client, id, told, self.terminal);
        loop {
            let execution = match following.until_settled(signals).await? {
                Followed::Settled(execution) => execution,
                Followed::Interrupted => return Ok(self.left(id)),
            };
            if execution.has_ended() || !self.decide_all(&execution, signals).await? {
                return self.conclude(&execution).await;
            }
        }
    }

    /// Decides at every open gate; false if no decision was made.
    async fn decide_all(&mut self, execution: &Execution, signals: &mut Signals) -> Result<bool, CliError> {
        let mut has_decided = false;
        for gate in &execution.gates {
            let Some(token) = &gate.token else {
                if self.gates == Gates::Approve {
                    return Err(no_approver(self.client, gate).await?);
                }
                continue;
            };
            // A gate that needs further approvals stays open after our decision.
            if self.decided.contains(token) {
                continue;
            }
            let (decision, reason) = match self.gates {
                Gates::Approve => (Decision::Approve, "as the owner, with --yes"),
                Gates::Ask if !self.terminal.can_ask || self.global.json => return Ok(has_decided),
                Gates::Ask => match self.asked(execution.id(), gate, token, signals).await? {
                    Said::Decided(decision) => (decision, "at the terminal"),
                    Said::Later => return Ok(false),
                    Said::Elsewhere => return Ok(true),
                },
            };
            self.decided.insert(token.clone());
            match send(self.client, execution.id(), gate, token, decision, Some(reason)).await {
                Ok(delegated) if delegated.accepted => {}
                Ok(_) => self.arrived(execution.id(), gate, token).await?,
                Err(error) if error.failure.code == "not_open" => {
                    self.terminal.note("the approval was already decided, or its timeout has expired");
                }
                Err(error) => return Err(error),
            }
            has_decided = true;
        }
        Ok(has_decided)
    }

    async fn asked(&self, id: &str, gate: &Gate, token: &str, signals: &mut Signals) -> Result<Said, CliError> {
        let still_open = async || match Execution::get(self.client, id).await {
            Ok(execution) => Ok(execution.gates.iter().any(|open| open.token.as_deref() == Some(token))),
            // A question stays open while the server is unavailable.
            Err(error) if error.may_pass() => Ok(true),
            Err(error) => Err(error.into()),
        };
        ask(&gate.prompt, &gate.items, POLL_INTERVAL, signals, still_open).await
    }

    /// Waits until a decision that the server has forwarded to another node is applied.
    async fn arrived(&self, id: &str, gate: &Gate, token: &str) -> Result<(), CliError> {
        for _ in 0..ARRIVED_POLLS {
            let execution = Execution::get(self.client, id).await?;
            let now = execution.gates.iter().find(|open| open.token.as_deref() == Some(token));
            if now.is_none_or(|now| now.approved_by.len() > gate.approved_by.len()) {
                return Ok(());
            }
            tokio::time::sleep(ARRIVED).await;
        }
        Ok(())
    }

    async fn conclude(&self, execution: &Execution) -> Result<Exit, CliError> {
        let now = now_ms();
        if !self.global.json {
            execution.summary(now).show();
            return Ok(execution.exit());
        }
        let id = execution.id();
        if !execution.has_ended() {
            let (steps, at) = (execution.gates.iter(), rfc3339(now));
            steps.for_each(|gate| print_event(&required(id, gate, &at)));
            let finished =
                [("type", Value::from("execution.finished")), ("executionId", id.into()), ("ts", at.as_str().into())];
            let finished = finished.into_iter().chain([("status", execution.word().into())]);
            print_event(&Value::map(finished));
        }
        print_out!("{}", compact(&execution.envelope(attempts(self.client, id).await?.0)));
        Ok(execution.exit())
    }

    /// Prints how to continue. The execution is not affected by the end of this process.
    fn left(&self, id: &str) -> Exit {
        let message = format!(
            "detached; it continues on {}: `mainspring tail {id}` follows it, `mainspring cancel {id}` cancels it",
            self.client.address()
        );
        if self.global.json {
            let failure = CliError::internal("interrupted", message.clone()).failure;
            print_out!("{}", compact(&envelope::of_refusal(Some(id), &failure)));
        }
        self.terminal.note(&message);
        Exit::Failed
    }
}

/// Builds the event of an open gate. The resume token is included for approvers.
fn required(id: &str, gate: &Gate, at: &str) -> Value {
    let of_gate = |key: &str| gate.value.get(key).cloned().unwrap_or_default();
    let mut event = Map::from([
        ("type".to_string(), Value::from("approval.required")),
        ("executionId".into(), id.into()),
        ("stepId".into(), of_gate("stepId")),
        ("ts".into(), at.into()),
        ("prompt".into(), gate.prompt.as_str().into()),
        ("resumeToken".into(), gate.token.as_deref().into()),
    ]);
    if gate.is_childs {
        event.insert("executionId".into(), of_gate("executionId"));
        event.insert("path".into(), gate.path.as_str().into());
    }
    Value::Map(event)
}
