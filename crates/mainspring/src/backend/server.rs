//! A server, which runs its executions itself. This process sends requests over HTTP.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{state::ExecutionStatus, value::Value};

use super::{
    contract::{
        ApprovalPage, Backend, DecideRequest, Erased, ExecutionDetails, ListQuery, ListedExecution, MessageRequest,
        QuarantineChange, RunRequest, Sent, SignalRequest, Verification,
    },
    server_decide::{self, delegated},
    server_find::{PAGE_ROWS, find},
    server_follow::{EventOutput, Followed, Following},
    server_list, server_start, server_verify,
};
use crate::{
    client::{
        Client, ClientError, Repeat,
        address::route,
        execution::{Execution, attempts},
        response::Response,
    },
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        approvals::{ApprovalView, ApproverView},
        execution_view::{AttemptPage, ExecutionView},
    },
};

/// The backend of a server. Outputs and exit codes are those of a local store.
pub(super) struct Server<'a> {
    pub(super) client: Client,
    pub(super) context: &'a Context,
}

impl Server<'_> {
    /// Changes a quarantined execution. An unreadable execution must be named by its whole id.
    fn change_quarantined(&self, name: &str, verb: &str, reason: &str) -> Result<QuarantineChange, CliError> {
        let body = Value::map([("reason", reason.into())]);
        let path = |id: &str| route(&["api", "executions", id, verb], &[]);
        let done = block_on(async {
            // Sent as an id first: an execution that cannot be read is found by nothing else.
            match self.client.post(&path(name), &body, Repeat::MustNot).await {
                Err(error) if error.is("NOT_FOUND") => {
                    let id = find(&self.client, name).await?;
                    Ok(self.client.post(&path(&id), &body, Repeat::MustNot).await?)
                }
                done => Ok(done?),
            }
        })?;
        let answer = Response::new(&self.client, "what came of it", &done);
        let (id, status) = (answer.text("executionId")?, answer.text("status")?);
        let message = match status.as_str() {
            "cancelled" => "released and cancelled, because its parent has continued without it",
            "ended" => "ended; its journal stays as it is",
            _ => "released; the server continues it",
        };
        Ok(QuarantineChange { id, status, message: message.into() })
    }
}

impl Backend for Server<'_> {
    fn list(&self, query: &ListQuery) -> Result<Vec<ListedExecution>, CliError> {
        block_on(server_list::list(&self.client, query))
    }

    fn show(&self, name: &str, page: AttemptPage) -> Result<ExecutionDetails, CliError> {
        let (execution, (mut values, attempts)) = block_on(async {
            let id = find(&self.client, name).await?;
            // Steps are read first. The execution that is read afterwards is newer and has everything that they refer
            // to.
            let attempts = attempts(&self.client, &id).await?;
            Ok((Execution::get(&self.client, &id).await?, attempts))
        })?;
        let row = &execution.listed.row;
        let by = execution.listed.started_by.clone().unwrap_or_else(|| "nobody".into());
        let view = ExecutionView {
            name: execution.workflow_name.clone().unwrap_or_else(|| "workflow".into()),
            workflow_hash: execution.listed.workflow_hash.clone(),
            began: Some((row.started_at, by, execution.id().to_string())),
            parent: row.parent.clone(),
            quarantined: execution.quarantined.clone(),
            unattended: None,
            attempts,
            summary: execution.summary(now_ms()),
        };
        let range = page.range(values.len());
        Ok(ExecutionDetails { view, envelope: execution.envelope(values.drain(range).collect()) })
    }

    fn approvals(&self, limit: usize, cursor: Option<&str>) -> Result<ApprovalPage, CliError> {
        let (mut approvals, mut cursor) = (Vec::new(), cursor.map(ToString::to_string));
        block_on(async {
            loop {
                let rows = (limit - approvals.len()).min(PAGE_ROWS).to_string();
                let mut query = vec![("limit", rows.as_str())];
                query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
                let page = self.client.get(&route(&["api", "approvals"], &query)).await?;
                let answer = Response::new(&self.client, "a page of approvals", &page);
                for gate in answer.objects("approvals", "an approval")? {
                    approvals.push(approval_view(gate)?);
                }
                let next = answer.maybe_text("nextCursor")?;
                // Ends the loop if a faulty server repeats a cursor.
                let is_over = next.is_none() || next == cursor;
                cursor = next;
                if is_over || approvals.len() >= limit {
                    return Ok(ApprovalPage { approvals, next: cursor, unreadable: Vec::new() });
                }
            }
        })
    }

    fn start(&self, request: &RunRequest<'_>) -> Result<Exit, CliError> {
        server_start::start(request, &self.client, self.context)
    }

    fn follow(&self, name: &str, is_past_only: bool) -> Result<Exit, CliError> {
        let context = self.context;
        block_on(async {
            context.signals.install()?;
            let id = tokio::select! {
                () = context.signals.any() => return Ok(Exit::Fine),
                id = find(&self.client, name) => id?,
            };
            let event_output = if context.global.json { EventOutput::StandardOutput } else { EventOutput::Lines };
            let mut following = Following::new(&self.client, &id, event_output, context);
            let execution = if is_past_only {
                following.as_it_stands().await?
            } else {
                match following.until_settled().await? {
                    Followed::Settled(execution) => *execution,
                    Followed::Interrupted => return Ok(Exit::Fine),
                }
            };
            if !context.global.json {
                execution.summary(now_ms()).show();
            }
            Ok(execution.exit())
        })
    }

    fn decide(&self, request: &DecideRequest<'_>, announce: &dyn Fn(&str, &Value)) -> Result<Sent, CliError> {
        block_on(server_decide::decide(request, &self.client, announce)).map(Sent::Delegated)
    }

    /// Sends a signal. A request without a response is retried: the id of the signal makes it idempotent.
    fn signal(&self, name: &str, signal: &SignalRequest) -> Result<Sent, CliError> {
        block_on(async {
            let id = unfinished(&self.client, name).await?;
            let body = Value::map([
                ("id", Value::from(signal.id.as_str())),
                ("name", signal.name.as_str().into()),
                ("payload", signal.payload.clone()),
            ]);
            let route = route(&["api", "executions", &id, "signal"], &[]);
            let done = self.client.post(&route, &body, Repeat::May).await?;
            Ok(Sent::Delegated(delegated(&self.client, &done)?))
        })
    }

    fn message(&self, name: &str, message: &MessageRequest) -> Result<Sent, CliError> {
        block_on(async {
            let id = unfinished(&self.client, name).await?;
            let conversation = message.conversation.as_deref().map(|name| ("conversation", name.into()));
            let fields = [
                ("id", Value::from(message.id.as_str())),
                ("content", message.content.as_str().into()),
                ("interrupt", message.interrupt.into()),
            ];
            let body = Value::map(fields.into_iter().chain(conversation));
            let route = route(&["api", "executions", &id, "messages"], &[]);
            let done = self.client.post(&route, &body, Repeat::May).await?;
            Ok(Sent::Delegated(delegated(&self.client, &done)?))
        })
    }

    fn cancel(&self, name: &str, reason: &str, skips_cleanup: bool) -> Result<Sent, CliError> {
        block_on(async {
            let id = unfinished(&self.client, name).await?;
            let force = skips_cleanup.then_some(("force", true.into()));
            let body = Value::map([("reason", Value::from(reason))].into_iter().chain(force));
            let route = route(&["api", "executions", &id, "cancel"], &[]);
            let done = self.client.post(&route, &body, Repeat::MustNot).await.map_err(|error| ending(error, &id))?;
            Ok(Sent::Delegated(delegated(&self.client, &done)?))
        })
    }

    fn verify(&self, name: Option<&str>, report: &mut dyn FnMut(Verification)) -> Result<(), CliError> {
        block_on(server_verify::verify(&self.client, name, report))
    }

    fn receipts(&self, name: &str, report: &mut dyn FnMut(Value)) -> Result<(), CliError> {
        block_on(async {
            let id = find(&self.client, name).await?;
            let mut cursor = None::<String>;
            loop {
                let page = self.client.get(&server_verify::receipts_route(&id, cursor.as_deref())).await?;
                let answer = Response::new(&self.client, "a page of receipts", &page);
                answer.list("receipts")?.iter().cloned().for_each(&mut *report);
                cursor = answer.maybe_text("nextCursor")?;
                if cursor.is_none() {
                    return Ok(());
                }
            }
        })
    }

    fn quarantined(&self, report: &mut dyn FnMut(&str, &str)) -> Result<(), CliError> {
        let mut cursor = None::<String>;
        loop {
            let query: Vec<(&str, &str)> = cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
            let route = route(&["api", "quarantine"], &query);
            let page = block_on(async { Ok(self.client.get(&route).await?) })?;
            let answer = Response::new(&self.client, "a page of quarantined executions", &page);
            for row in answer.objects("quarantined", "a quarantined execution")? {
                report(&row.text("executionId")?, &row.text("reason")?);
            }
            let next = answer.maybe_text("nextCursor")?;
            // Ends the loop if a faulty server repeats a cursor.
            if next.is_none() || next == cursor {
                return Ok(());
            }
            cursor = next;
        }
    }

    fn release(&self, name: &str, reason: &str) -> Result<QuarantineChange, CliError> {
        self.change_quarantined(name, "release", reason)
    }

    fn end_quarantined(&self, name: &str, reason: &str) -> Result<QuarantineChange, CliError> {
        self.change_quarantined(name, "end", reason)
    }

    fn erase(&self, name: &str, steps: &[String], reason: &str) -> Result<Erased, CliError> {
        let steps: Vec<Value> = steps.iter().map(|step| step.as_str().into()).collect();
        let body = Value::map([("reason", reason.into()), ("steps", steps.into())]);
        let done = block_on(async {
            let id = find(&self.client, name).await?;
            let route = route(&["api", "executions", &id, "erase"], &[]);
            Ok(self.client.post(&route, &body, Repeat::May).await?)
        })?;
        let answer = Response::new(&self.client, "what was erased", &done);
        Ok(Erased { id: answer.text("executionId")?, count: answer.number("erased")? })
    }
}

/// Resolves a name to the id of an open execution.
async fn unfinished(client: &Client, name: &str) -> Result<String, CliError> {
    let id = find(client, name).await?;
    let execution = Execution::get(client, &id).await?;
    if execution.has_ended() {
        let status: ExecutionStatus = execution.listed.status;
        return Err(CliError::contract("ended", format!("`{id}` has ended: it is {}", status.name())));
    }
    Ok(id)
}

fn ending(error: ClientError, id: &str) -> CliError {
    if error.is("CONFLICT") {
        return error.with_message("ended", format!("`{id}` has ended, or is ending already"));
    }
    error.into()
}

fn approval_view(answer: Response<'_>) -> Result<ApprovalView, ClientError> {
    let gate = answer.object("gate", "a gate")?;
    let named =
        |one: Response<'_>| Ok(ApproverView { user: one.text("userId")?, can_decide: Some(one.flag("canDecide")?) });
    let approvers = answer.objects("approvers", "an approver")?.into_iter().map(named);
    Ok(ApprovalView {
        execution: answer.text("executionId")?,
        workflow: answer
            .maybe_text("workflowName")?
            .map_or_else(|| answer.maybe_text("workflowId"), |name| Ok(Some(name)))?,
        step: answer.text("stepId")?,
        prompt: answer.text("message")?,
        approvers: approvers.collect::<Result<Vec<_>, ClientError>>()?,
        owner: answer.maybe_text("userId")?,
        count: gate.number("count")?,
        approved_by: gate.texts("approvedBy")?,
        since: answer.maybe_time("requestedAt")?,
        until: answer.time("timeoutAt")?,
        default_action: answer.text("defaultAction")?,
        can_be_approved: Some(answer.flag("canBeApproved")?),
        form: match gate.maybe_text("purpose")?.as_deref() {
            Some("form") => gate.any("items").get("form").cloned(),
            _ => None,
        },
        url: answer.maybe_text("url")?,
    })
}
