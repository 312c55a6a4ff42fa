//! Starts saved workflows of a server, and follows the executions.

use std::{collections::BTreeSet, path::Path, time::Duration};

use mainspring_engine::{clock::now_ms, envelope};
use mainspring_kernel::{
    decide::Words,
    json::compact,
    plan::Decision,
    time::rfc3339,
    value::{Map, Value},
};

use super::{
    contract::{RunRequest, fresh_id},
    engine_follow::{FORM_NOTE, Gates},
    server_decide::{no_approver, send},
    server_follow::{EventOutput, Followed, Following},
    server_save::saved,
    start::{input, print_detached},
};
use crate::{
    client::{
        Client, Repeat,
        address::route,
        error::Kind,
        execution::{Execution, Gate, attempts},
        response::Response,
    },
    context::{Context, block_on},
    definitions::{list, print_remote},
    error::{CliError, Exit},
    idempotency::reused,
    output::{
        prompt::{PromptAnswer, ask},
        terminal::{bold, dim, print_out},
        text::shown,
    },
    runner::print_event,
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

/// Starts a saved workflow of a server.
pub(super) fn start(request: &RunRequest<'_>, client: &Client, context: &Context) -> Result<Exit, CliError> {
    if let Some(flag) = flag_of_this_machine(request) {
        let message =
            format!("{flag} is for executions of this machine; a server runs a workflow as it is saved there");
        return Err(CliError::bad_input("not_at_a_server", message));
    }
    block_on(async {
        context.signals.install()?;
        let prepared = async {
            let workflow = workflow(request, client, context).await?;
            let input = input(request.input, workflow.data.get("inputSchema"))?;
            let started = enqueue_start(request, client, &workflow, input, context).await?;
            Ok::<_, CliError>((workflow, started))
        };
        let (workflow, started) = tokio::select! {
            () = context.signals.any() => {
                let message = "interrupted before the server responded: `mainspring list` shows if it was started";
                return Err(CliError::internal("interrupted", message));
            }
            prepared = prepared => prepared?,
        };
        // Warnings of the save are already printed.
        let news = started.warnings.iter().filter(|warning| !workflow.warnings.contains(warning));
        print_remote(&news.cloned().collect::<Vec<_>>(), None);
        if request.is_detached {
            print_detached(&started.id, &started.status, context);
            return Ok(Exit::Fine);
        }
        if !context.global.json {
            let again = if started.existed { ", which exists" } else { "" };
            print_out!("{} {}", bold(&workflow.title()), dim(&shown(&format!("{}{again}", started.id))));
        }
        let gates = if request.approves_all { Gates::Approve } else { Gates::Ask };
        Attached { client, gates, context, decided: BTreeSet::new() }.follow(&started.id).await
    })
}

/// Returns a given flag that has no meaning at a server.
fn flag_of_this_machine(request: &RunRequest<'_>) -> Option<&'static str> {
    let given = [
        ("--workflow", !request.subworkflows.is_empty()),
        ("--id", request.execution_id.is_some()),
        ("--workspace", request.workspace.is_some()),
        ("--max-calls", request.bounds.max_calls.is_some()),
        ("--metrics", request.metrics.is_flag()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
}

impl Workflow {
    fn title(&self) -> String {
        let version = self.data.get("version").and_then(Value::as_text);
        shown(&format!("{}{}", self.name, version.map(|version| format!(" {version}")).unwrap_or_default()))
    }
}

/// Finds the workflow by id or slug. A file is refused, since a server runs saved workflows only; `--save` saves it
/// first.
async fn workflow(request: &RunRequest<'_>, client: &Client, context: &Context) -> Result<Workflow, CliError> {
    let name = request.workflow.to_str().unwrap_or_default();
    let save_first = |what: &str| {
        let file = request.workflow.display();
        let message =
            format!("{what}: `mainspring save {file}` saves it, and `mainspring run --save {file}` also runs it");
        CliError::bad_input("not_saved", message)
    };
    if !request.is_saved_first && is_file_name(request.workflow) {
        return Err(save_first("a server runs workflows that are saved there, and this is a file"));
    }
    let body = if request.is_saved_first {
        let Some(body) = saved(request.workflow, None, client, context, None).await? else {
            return Err(CliError::bad_input("invalid_definition", "the definition is invalid, and nothing was saved"));
        };
        let of = |key: &str| body.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        context.terminal.note(&format!("saved {} {}", of("slug"), of("version")));
        body
    } else {
        match client.get(&route(&["api", "workflows", name], &[])).await {
            Err(error) if error.is("NOT_FOUND") && request.workflow.is_file() => {
                return Err(save_first(&format!(
                    "there is no workflow `{name}` at {}, and a file of that name here",
                    client.address()
                )));
            }
            Err(error) if error.is("NOT_FOUND") => {
                let message =
                    format!("there is no workflow `{name}` at {}; `mainspring workflows` lists all", client.address());
                return Err(error.with_message("no_such_workflow", message));
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
async fn enqueue_start(
    request: &RunRequest<'_>,
    client: &Client,
    workflow: &Workflow,
    input: Value,
    context: &Context,
) -> Result<Started, CliError> {
    let key = request.idempotency_key.map_or_else(fresh_id, |key| Ok(key.to_string()))?;
    let body = [
        ("workflowId", Value::from(workflow.id.as_str())),
        ("clientRequestId", key.as_str().into()),
        ("variables", request.variables.clone().into()),
        ("input", input),
    ];
    let runtime = policy(request).map(|policy| ("runtime", policy));
    let repository = request.repository.clone().map(|repository| ("repository", repository));
    let body = Value::map(body.into_iter().chain(runtime).chain(repository));
    let done = client.post(&route(&["api", "triggers", "manual", "run"], &[]), &body, Repeat::May).await;
    let done = done.map_err(|error| match error.kind {
        Kind::Broken | Kind::Unreachable => {
            let why = error.cli_error.failure.message.clone();
            let message =
                format!("{why}; the same with --idempotency-key {key} starts it once, whether it was started or not");
            error.with_message("server_unreachable", message)
        }
        _ => error.into(),
    })?;
    let answer = Response::new(client, "what was started", &done);
    let (id, status) = (answer.text("executionId")?, answer.text("status")?);
    let differs = list(&done, "differs");
    let differs: Vec<&str> = differs.iter().filter_map(Value::as_text).collect();
    if !differs.is_empty() {
        context.terminal.note(&shown(&reused(&key, &id, &differs.join(", "))));
    }
    Ok(Started { id, status, existed: answer.flag("existed")?, warnings: list(&done, "warnings") })
}

/// Builds the `runtime` object of a start with the requested bounds; `None` without bounds, since an older release of
/// the server rejects the object.
fn policy(request: &RunRequest<'_>) -> Option<Value> {
    let bounds = [
        ("timeoutMs", request.bounds.timeout_ms),
        ("maxSteps", request.bounds.max_steps.map(u64::from)),
        ("maxParallel", request.bounds.max_parallel.map(u64::from)),
        ("maxOutputBytes", request.bounds.max_output_bytes.map(u64::from)),
    ];
    let given: Map = bounds.into_iter().filter_map(|(key, bound)| Some((key.to_string(), bound?.into()))).collect();
    (!given.is_empty()).then(|| Value::map([("policy", given.into())]))
}

/// The state of a process that follows an execution and decides at its gates.
struct Attached<'a> {
    client: &'a Client,
    gates: Gates,
    context: &'a Context,
    /// Resume tokens of the gates that this process has decided.
    decided: BTreeSet<String>,
}

impl Attached<'_> {
    async fn follow(mut self, id: &str) -> Result<Exit, CliError> {
        let event_output = if self.context.global.json { EventOutput::StandardError } else { EventOutput::Lines };
        let mut following = Following::new(self.client, id, event_output, self.context);
        loop {
            let execution = match following.until_settled().await? {
                Followed::Settled(execution) => execution,
                Followed::Interrupted => return Ok(self.left(id)),
            };
            if execution.has_ended() || !self.decide_all(&execution).await? {
                return self.conclude(&execution).await;
            }
        }
    }

    /// Decides at every open gate; false if no decision was made.
    async fn decide_all(&mut self, execution: &Execution) -> Result<bool, CliError> {
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
            let is_permission = gate.value.get("items").is_some_and(|items| items.get("permission").is_some());
            if gate.value.get("purpose").and_then(Value::as_text) == Some("form") && !is_permission {
                self.context.terminal.note(FORM_NOTE);
                return Ok(has_decided);
            }
            let (decision, reason) = match self.gates {
                Gates::Approve => (Decision::Approve, "as the owner, with --yes"),
                Gates::Ask if !self.context.terminal.can_ask || self.context.global.json => return Ok(has_decided),
                Gates::Ask => match self.asked(execution.id(), gate, token).await? {
                    PromptAnswer::Decided(decision) => (decision, "at the terminal"),
                    PromptAnswer::Later => return Ok(false),
                    PromptAnswer::Elsewhere => return Ok(true),
                },
            };
            self.decided.insert(token.clone());
            let words = Words { reason: Some(reason.into()), ..Words::default() };
            match send(self.client, execution.id(), gate, token, decision, &words).await {
                Ok(delegated) if delegated.accepted => {}
                Ok(_) => self.arrived(execution.id(), gate, token).await?,
                Err(error) if error.failure.code == "not_open" => {
                    self.context.terminal.note("the approval was already decided, or its timeout has expired");
                }
                Err(error) => return Err(error),
            }
            has_decided = true;
        }
        Ok(has_decided)
    }

    async fn asked(&self, id: &str, gate: &Gate, token: &str) -> Result<PromptAnswer, CliError> {
        let still_open = async || match Execution::get(self.client, id).await {
            Ok(execution) => Ok(execution.gates.iter().any(|open| open.token.as_deref() == Some(token))),
            // A question stays open while the server is unavailable.
            Err(error) if error.is_transient() => Ok(true),
            Err(error) => Err(error.into()),
        };
        ask(&gate.prompt, &gate.items, POLL_INTERVAL, &self.context.signals, still_open).await
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
        if !self.context.global.json {
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
        if self.context.global.json {
            let failure = CliError::internal("interrupted", message.clone()).failure;
            print_out!("{}", compact(&envelope::of_refusal(Some(id), &failure)));
        }
        self.context.terminal.note(&message);
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
