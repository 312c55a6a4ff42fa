//! Commands on an execution: approve, cancel, signal, and reports of its session. Each becomes an input of the engine
//! or a message in the inbox of another node.

use axum::{Json, extract::State};
use mainspring_effects::live_progress::REPORT_BYTES_MAX;
use mainspring_engine::{
    EngineError,
    clock::now_ms,
    closed_gate::{ClosedGate, open_now},
    execution_tree::OpenGate,
    journal_loader::LoadError,
};
use mainspring_kernel::{
    cbor,
    decide::Words,
    hash::Hash,
    input::Input,
    json,
    key::ExecutionKey,
    limits::{MESSAGE_BYTES_MAX, REASON_CHARS_MAX, SIGNAL_BYTES_MAX},
    plan::Decision,
    state::{MessageRejection, SignalRejection},
    value::Value,
};
use mainspring_store::{AuditEntry, ExecutionRow, is_final};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        execution_access::{actionable_execution, check_control, is_for_admins, may_decide},
    },
    http::{
        body::{Body, Data},
        extract::PathParams,
        problem::{Code, Problem, ProblemBody, Result},
    },
    resources::repository::entry,
    services::execution_view::{ExecutionDetails, read_details},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(approve))
        .routes(routes!(cancel))
        .routes(routes!(signal))
        .routes(routes!(message))
        .routes(routes!(complete))
        .routes(routes!(status))
}

/// A decision of an open approval.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Approve {
    /// True to approve, false to deny.
    approve: bool,
    /// Resume token of the approval, as the execution shows it to callers who may decide.
    resume_token: String,
    /// Reason, recorded in the journal and the audit log.
    #[schema(max_length = 2000)]
    reason: Option<String>,
    /// Content of the form that a tool server asks for, as an object from fields to values; only with an approval.
    #[schema(value_type = Option<serde_json::Value>)]
    content: Option<Data>,
    /// With a denial of a form: true if the person cancels, and does not only decline.
    #[serde(default)]
    cancel: bool,
}

/// Result of an input.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandResult {
    /// Always true.
    pub ok: bool,
    /// Execution, as in `/api/executions/{id}`.
    pub execution_id: String,
    /// Status after the input; `accepted` if the execution runs on another node, which processes the input from its
    /// inbox.
    pub status: String,
}

/// Most names of signals in a response.
const SIGNALS_LISTED_MAX: usize = 50;

/// Result of delivering an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivered {
    /// The input took effect, now or earlier.
    Accepted,
    /// The execution accepted the input, and it had no effect.
    Stale,
    /// The input is durable in the inbox of the execution, which runs on another node.
    Posted,
}

/// An input, its execution, and its audit entry.
struct ExecutionCommand {
    execution: ExecutionKey,
    input: Input,
    action: &'static str,
    detail: Value,
}

/// Delivers an input to an execution on any node. `row` is the execution in the request, which may be an ancestor.
async fn deliver(app: &App, caller: &Caller, row: &ExecutionRow, command: ExecutionCommand) -> Result<Delivered> {
    let ExecutionCommand { execution, input, action, detail } = command;
    let audit = entry(caller, action, &row.id, detail);
    let answer = app.engine.take(execution, input.clone(), Some(audit.clone())).await;
    app.run(move |app| {
        let is_here = match answer {
            Ok(true) => return Ok(Delivered::Accepted),
            Ok(false) => true,
            Err(EngineError::NotHere) => false,
            Err(error) => return Err(error.into()),
        };
        if is_repeated(app, execution, &input)? {
            return Ok(Delivered::Accepted);
        }
        if is_here {
            return Ok(Delivered::Stale);
        }
        // The node that takes the message finds its effect; this entry records only the request.
        let audit = AuditEntry { action: format!("{action}.posted"), ..audit };
        app.engine.enqueue(execution, &input, Some(&audit))?;
        Ok(Delivered::Posted)
    })
    .await
}

/// True if the input is a signal or a message that arrived before. One that has no effect for another reason is an error,
/// so that the sender learns of it.
fn is_repeated(app: &App, execution: ExecutionKey, input: &Input) -> Result<bool> {
    if !matches!(input, Input::Signal { .. } | Input::Message { .. }) {
        return Ok(false);
    }
    let state = match app.engine.state(execution) {
        // A node that can read the journal will process the input.
        Err(EngineError::Load(LoadError::Newer(_))) => return Ok(false),
        read => read?,
    };
    let refused = |what: &str, why: &str| {
        Err(Problem::new(Code::Conflict, format!("The {what} is not kept: the execution {why}.")))
    };
    match input {
        Input::Signal { id, name, payload } => match state.signal_rejection(id, name, payload) {
            None => Ok(false),
            Some(SignalRejection::Repeated) => Ok(true),
            Some(rejection) => refused("signal", rejection.words()),
        },
        Input::Message { id, conversation, content, .. } => {
            match state.message_rejection(id, conversation.as_deref(), content) {
                None => Ok(false),
                Some(MessageRejection::Repeated) => Ok(true),
                Some(rejection) => refused("message", rejection.words()),
            }
        }
        _ => Ok(false),
    }
}

async fn done(app: &App, key: ExecutionKey, delivered: Delivered) -> Result<CommandResult> {
    app.run(move |app| {
        let row = app.engine.store().execution(key)?.ok_or_else(|| Problem::not_found("execution"))?;
        let status = if delivered == Delivered::Posted { "accepted".into() } else { row.status };
        Ok(CommandResult { ok: true, execution_id: row.id, status })
    })
    .await
}

/// The execution with this id, if the caller may control it.
async fn controlled(app: &App, caller: &Caller, id: String) -> Result<ExecutionRow> {
    let asker = caller.clone();
    app.run(move |app| {
        let row = actionable_execution(app, &asker, &id)?;
        check_control(&asker, &row)?;
        Ok(row)
    })
    .await
}

/// Checks the length of a text: 1 to 200 characters.
fn check_length(field: &str, text: &str) -> Result<()> {
    if (1..=200).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(Problem::field(field, "it must have 1 to 200 characters"))
}

/// Checks that a reason fits into journals and audit logs.
fn check_reason(reason: Option<&str>) -> Result<()> {
    if reason.is_none_or(|reason| reason.chars().count() <= REASON_CHARS_MAX) {
        return Ok(());
    }
    Err(Problem::field("reason", format!("it must have at most {REASON_CHARS_MAX} characters")))
}

/// Checks the size of a signal's payload.
fn check_payload(payload: &Value) -> Result<()> {
    let bytes = cbor::byte_count(payload);
    if bytes <= SIGNAL_BYTES_MAX {
        return Ok(());
    }
    let message = format!("it takes {bytes} bytes in binary form, and a signal has at most {SIGNAL_BYTES_MAX}");
    Err(Problem::field("payload", message))
}

/// The reason for which a resume token opens no gate: what has become of its gate, and what is open now.
fn unfit(app: &App, details: &ExecutionDetails, token: &str) -> Problem {
    let closed = ClosedGate::of_token(app.engine.loader(), app.engine.key(), &details.state, token);
    let why = match closed {
        Ok(Some(closed)) => capitalized(&closed.to_string()),
        Ok(None) => "The token opens no gate that waits: it is wrong, used or expired".into(),
        Err(error) => return error.into(),
    };
    let message = format!("{why}; {}.", open_now(&details.tree.gates, &details.state));
    Problem::new(Code::InvalidResumeToken, message)
}

/// A message as a sentence.
pub(super) fn capitalized(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The open gate of a resume token, if the caller may decide there.
fn opened(app: &App, caller: &Caller, row: &ExecutionRow, token: &str) -> Result<OpenGate> {
    let given = Hash::of(token.as_bytes());
    let fits = |open: &OpenGate| Hash::of(open.token.as_bytes()).equals_in_constant_time(&given);
    let details = read_details(app, row)?;
    let mut waiting = details.tree.gates.iter().filter(|open| now_ms() < open.gate.expires_at);
    let Some(open) = waiting.find(|open| fits(open)) else { return Err(unfit(app, &details, token)) };
    if !may_decide(caller, row, open) {
        let message = match is_for_admins(open.gate.purpose, &open.gate.items) {
            true => {
                "You may not decide here: only admins and owners of the organization raise the budget of a day or a month."
            }
            false => "You may not decide here: those named by the gate may, or else the execution's owner and admins.",
        };
        return Err(Problem::new(Code::Forbidden, message));
    }
    Ok(open.clone())
}

/// Returns the reason of a decision for the audit log, which cannot be erased: a hash stands for the content of a form.
fn without_content(reason: &Value) -> Value {
    let Value::Map(parts) = reason else { return reason.clone() };
    let part = |(key, value): (&String, &Value)| match key.as_str() {
        "content" => ("contentHash".to_string(), Hash::of(json::canonical(value).as_bytes()).prefixed().into()),
        _ => (key.clone(), value.clone()),
    };
    Value::Map(parts.iter().map(part).collect())
}

/// Decides at the gate of a resume token.
pub(super) async fn decide(
    app: &App,
    caller: &Caller,
    row: ExecutionRow,
    token: String,
    approve: bool,
    words: Words,
) -> Result<CommandResult> {
    check_reason(words.reason.as_deref())?;
    let asker = caller.clone();
    let (row, open) = app.run(move |app| opened(app, &asker, &row, &token).map(|open| (row, open))).await?;
    let decision = if approve { Decision::Approve } else { Decision::Deny };
    let reason = words.to_reason(&open.gate, decision).map_err(|why| Problem::field("content", why))?;
    let by = caller.user.clone();
    let detail = [
        ("step", open.path.as_str().into()),
        ("decision", decision.name().into()),
        ("reason", without_content(&reason)),
    ];
    let detail = Value::map(detail);
    let input = Input::Decide { instance: open.instance, gate: open.gate.number, decision, by, reason };
    let command = ExecutionCommand { execution: open.execution, input, action: "approval.decide", detail };
    let delivered = deliver(app, caller, &row, command).await?;
    if delivered == Delivered::Stale {
        let message = "The approval was already decided, or you have already decided it.";
        return Err(Problem::new(Code::InvalidResumeToken, message));
    }
    done(app, row.key, delivered).await
}

/// Approve or deny an open approval of an execution.
#[utoipa::path(post, path = "/api/executions/{id}/approve", tag = "executions", params(("id" = String, Path)), request_body = Approve,
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn approve(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Approve>,
) -> Result<Json<CommandResult>> {
    let asker = caller.clone();
    let row = app.run(move |app| actionable_execution(app, &asker, &id)).await?;
    let Approve { approve, resume_token, reason, content, cancel: cancels } = body;
    let words = Words { reason, content: content.map(|content| content.0), cancels };
    decide(&app, &caller, row, resume_token, approve, words).await.map(Json)
}

/// A cancel request.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// Reason of the cancellation, such as `user_cancelled`.
    #[schema(max_length = 200)]
    reason: Option<String>,
    /// Also skip the steps of `finally`, as a second cancel does.
    #[serde(default)]
    force: bool,
}

/// Cancel an execution. Running attempts are stopped; the status is `cancelled` when they and the steps of `finally` have
/// ended. A second cancel skips what is left of `finally`.
#[utoipa::path(post, path = "/api/executions/{id}/cancel", tag = "executions", params(("id" = String, Path)), request_body = Cancel,
    extensions(("x-permission" = json!("executions:control"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Cancel>,
) -> Result<Json<CommandResult>> {
    let reason = body.reason.unwrap_or_else(|| "user_cancelled".into());
    check_length("reason", &reason)?;
    let row = controlled(&app, &caller, id).await?;
    if is_final(&row.status) {
        return Err(Problem::new(Code::Conflict, "The execution has ended."));
    }
    let (key, by) = (row.key, caller.user.clone());
    let force = body.force.then_some(("force", true.into()));
    let detail = Value::map([("reason", reason.as_str().into())].into_iter().chain(force));
    let skip = Input::SkipCleanup { by: by.clone() };
    let is_second = app.run(move |app| Ok(is_cancel_requested(app, key))).await?;
    let input = if is_second { skip.clone() } else { Input::Cancel { reason, by } };
    let command = |input, detail| ExecutionCommand { execution: key, input, action: "execution.cancel", detail };
    if body.force && !is_second {
        // Comes first, as cleanup begins at once after the cancel. Has no effect on an execution without cleanup.
        deliver(&app, &caller, &row, command(skip, detail.clone())).await?;
    }
    let delivered = deliver(&app, &caller, &row, command(input, detail)).await?;
    if delivered == Delivered::Stale {
        return Err(Problem::new(Code::Conflict, "The execution has ended, or is ending already."));
    }
    done(&app, row.key, delivered).await.map(Json)
}

/// True if a cancel was requested before. A journal that cannot be read here is read by the node that gets the command.
fn is_cancel_requested(app: &App, execution: ExecutionKey) -> bool {
    app.engine.state(execution).is_ok_and(|state| state.end.is_cancel_requested)
}

/// A named signal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Signal {
    /// Unique id of the signal. A repeated id has no second effect.
    #[schema(min_length = 1, max_length = 200)]
    id: String,
    /// Name that a step waits for.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Payload: any JSON value, up to 256 KiB in binary form.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    payload: Data,
}

/// Rejects a signal for which no step ever waits: its name is probably a typing error. A journal that cannot be read here is
/// read by the node that gets the signal.
fn check_awaited(app: &App, execution: ExecutionKey, name: &str) -> Result<()> {
    let Ok(state) = app.engine.state(execution) else { return Ok(()) };
    match state.plan.refused_signal(name) {
        None => Ok(()),
        Some(why) => {
            let known: Vec<&str> = state.plan.signals().into_iter().take(SIGNALS_LISTED_MAX).collect();
            let message = format!("The signal is not kept: {why}");
            let message = if message.ends_with('?') { message } else { format!("{message}.") };
            Err(Problem::new(Code::Conflict, message).with(serde_json::json!({ "signals": known })))
        }
    }
}

/// Send a named signal to an execution. A signal that arrives before its step is buffered.
///
/// A signal for which no step of the execution ever waits is rejected with 409, and `details.signals` has the names for which
/// its steps wait.
///
/// A response with a status of the execution means that the signal was processed, now or by an earlier request with its
/// id. `accepted` means that the signal is durable in the inbox. It is processed later, unless the execution ends or
/// reaches its limit of signals before that; a repeated request with the same id returns the result. 409 means that the
/// signal was rejected, with the reason.
#[utoipa::path(post, path = "/api/executions/{id}/signal", tag = "executions", params(("id" = String, Path)), request_body = Signal,
    extensions(("x-permission" = json!("executions:control"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn signal(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Signal>,
) -> Result<Json<CommandResult>> {
    check_length("id", &body.id)?;
    check_length("name", &body.name)?;
    check_payload(&body.payload.0)?;
    let row = controlled(&app, &caller, id).await?;
    let (key, name) = (row.key, body.name.clone());
    app.run(move |app| check_awaited(app, key, &name)).await?;
    let detail = Value::map([("name", body.name.as_str().into())]);
    let input = Input::Signal { id: body.id, name: body.name, payload: body.payload.0 };
    let command = ExecutionCommand { execution: row.key, input, action: "execution.signal", detail };
    match deliver(&app, &caller, &row, command).await? {
        // The signal queue was full when it arrived, and is not any more.
        Delivered::Stale => {
            Err(Problem::new(Code::Conflict, "The signal was not stored, and can be now: send it again."))
        }
        delivered => done(&app, row.key, delivered).await.map(Json),
    }
}

/// A message to an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Message {
    /// Unique id of the message. A repeated id has no second effect.
    #[schema(min_length = 1, max_length = 200)]
    id: String,
    /// Name of the conversation; may be absent if the workflow has only one.
    #[schema(min_length = 1, max_length = 200)]
    conversation: Option<String>,
    /// Text of the message, up to 64 KiB.
    #[schema(min_length = 1)]
    content: String,
    /// Cancel the open model call, so that the message is read at once. The call counts as paid.
    #[serde(default)]
    interrupt: bool,
}

/// Send a message to an agent. The agent of the conversation reads it at its next turn, or the next agent does when it
/// begins.
///
/// The responses are those of a signal: `accepted` means that the message is durable in the inbox, and 409 that it was
/// rejected, with the reason.
#[utoipa::path(post, path = "/api/executions/{id}/messages", tag = "executions", params(("id" = String, Path)), request_body = Message,
    extensions(("x-permission" = json!("executions:control"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn message(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Message>,
) -> Result<Json<CommandResult>> {
    check_length("id", &body.id)?;
    body.conversation.as_deref().map_or(Ok(()), |name| check_length("conversation", name))?;
    let content = Value::from(body.content);
    if cbor::byte_count(&content) > MESSAGE_BYTES_MAX || content.as_text().is_none_or(|text| text.trim().is_empty()) {
        return Err(Problem::field("content", format!("it must be a text of 1 to {MESSAGE_BYTES_MAX} bytes")));
    }
    let row = controlled(&app, &caller, id).await?;
    // The text is in the journal alone, where it can be erased.
    let detail = [("conversation", body.conversation.clone().into()), ("interrupt", body.interrupt.into())];
    let (conversation, interrupt, by) = (body.conversation, body.interrupt, caller.user.clone());
    let input = Input::Message { id: body.id, conversation, content, interrupt, by };
    let detail = Value::map(detail);
    let command = ExecutionCommand { execution: row.key, input, action: "execution.message", detail };
    match deliver(&app, &caller, &row, command).await? {
        Delivered::Stale => {
            Err(Problem::new(Code::Conflict, "The message was not stored, and can be now: send it again."))
        }
        delivered => done(&app, row.key, delivered).await.map(Json),
    }
}

/// Report of a session about its execution.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Report {
    /// Status that the session reports.
    status: String,
    /// Text for people who watch the execution, up to 1,024 bytes; only with the status `running`.
    #[schema(max_length = 1024)]
    message: Option<String>,
    /// Outputs of an ended execution; any JSON value.
    #[serde(default, rename = "outputs")]
    #[schema(value_type = serde_json::Value)]
    _outputs: Data,
    /// Steps of an ended execution; any JSON value.
    #[serde(default, rename = "steps")]
    #[schema(value_type = serde_json::Value)]
    _steps: Data,
    /// Error of a failed execution; any JSON value.
    #[serde(default, rename = "error")]
    #[schema(value_type = serde_json::Value)]
    _error: Data,
}

/// Returns the execution that a session reports on, which is its own one.
fn reported(app: &App, caller: &Caller, id: &str) -> Result<ExecutionRow> {
    let row = actionable_execution(app, caller, id)?;
    match &caller.kind {
        Kind::Session { execution } if *execution == row.id => Ok(row),
        _ => Err(Problem::new(Code::Forbidden, "Only the execution's own session may report on it.")),
    }
}

/// The answer to a report that agrees with the journal.
fn agreed(row: ExecutionRow) -> Json<CommandResult> {
    Json(CommandResult { ok: true, execution_id: row.id, status: row.status })
}

/// Report the end of an execution, from its session.
///
/// The server carries executions out itself, so a report changes nothing. One that agrees with an ended execution is
/// accepted, and every other is refused (409).
#[utoipa::path(post, path = "/api/executions/{id}/complete", tag = "executions", params(("id" = String, Path)), request_body = Report,
    extensions(("x-permission" = json!("executions:report"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn complete(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(report): Body<Report>,
) -> Result<Json<CommandResult>> {
    app.run(move |app| {
        let row = reported(app, &caller, &id)?;
        if report.message.is_some() {
            return Err(Problem::field("message", "it is for `/status`"));
        }
        if is_final(&row.status) && row.status == report.status {
            return Ok(agreed(row));
        }
        let message = match is_final(&row.status) {
            true => format!("The execution has ended with the status `{}`, and no report changes that.", row.status),
            false => "The server carries this execution out itself, and ends it once its steps have ended.".into(),
        };
        Err(Problem::new(Code::Conflict, message))
    })
    .await
}

/// Report the status of an execution, from its session.
///
/// The text in `message` is shown with `include=progress` by the server that receives it, until the execution ends. It is
/// not kept, and decides nothing.
#[utoipa::path(post, path = "/api/executions/{id}/status", tag = "executions", params(("id" = String, Path)), request_body = Report,
    extensions(("x-permission" = json!("executions:report"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn status(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(report): Body<Report>,
) -> Result<Json<CommandResult>> {
    app.run(move |app| {
        let row = reported(app, &caller, &id)?;
        if is_final(&row.status) || report.status != "running" {
            let message = format!(
                "The server decides the status, which is `{}`. While the execution runs, report `running` with a `message`.",
                row.status
            );
            return Err(Problem::new(Code::Conflict, message));
        }
        let text = report.message.as_deref().unwrap_or_default().trim();
        if text.is_empty() || text.len() > REPORT_BYTES_MAX || text.chars().any(char::is_control) {
            let wrong = format!("it must be a line of 1 to {REPORT_BYTES_MAX} bytes without control characters");
            return Err(Problem::field("message", wrong));
        }
        app.engine.live_progress().report(row.key, text, now_ms());
        Ok(agreed(row))
    })
    .await
}
