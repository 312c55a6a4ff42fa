//! Executions: seen, decided, signalled, called off.

use std::time::Duration;

use axum::{Json, extract::State};
use mainspring_engine::EngineError;
use mainspring_kernel::{input::Input, key::ExecutionKey, plan::Decision, value::Value};
use mainspring_store::{AuditEntry, ExecutionRow, Filter, is_final};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::workflows::Executions;
use crate::{
    app::App,
    body::{Body, Data},
    compiling::named,
    extract::{Asked, Named},
    identity::{Caller, Kind},
    page::{cursor, limit},
    problem::{Answer, Code, Problem, ProblemBody},
    shelf::{Shelf, entry},
    starting::{Delivered, check_control, delivered, visible},
    view::{self, ExecutionBody, ExecutionSummary, look, may_decide},
};

/// How long a request may wait for an execution, and how long it does if nothing is said.
const WAIT_MS_MAX: u64 = 60_000;
const WAIT_MS_DEFAULT: u64 = 30_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(steps))
        .routes(routes!(journal))
        .routes(routes!(wait))
        .routes(routes!(approve))
        .routes(routes!(cancel))
        .routes(routes!(signal))
        .routes(routes!(complete))
        .routes(routes!(status))
}

/// Which executions.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// One of these statuses, separated by commas.
    status: Option<String>,
    /// Of this workflow, by its id or its slug.
    workflow_id: Option<String>,
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The statuses of executions.
const STATUSES: [&str; 6] = ["pending", "running", "waiting_approval", "completed", "failed", "cancelled"];

/// A page of an organisation's executions.
pub(super) fn page(
    app: &App,
    caller: &Caller,
    statuses: Vec<String>,
    workflow_id: Option<String>,
    asked: Option<usize>,
    after: Option<&str>,
) -> Answer<Json<Executions>> {
    let limit = limit(asked)?;
    let unknown = || Problem::field("cursor", "it is not the `nextCursor` of an answer");
    let before = after.map(|text| ExecutionKey::parse(text).ok_or_else(unknown)).transpose()?;
    let filter = Filter { statuses, workflow_id, organization: Some(caller.organization.clone()), ..Filter::default() };
    let rows = app.engine.store().executions(&filter, before, limit)?;
    let next_cursor = cursor(&rows, limit, |row| row.key.to_string());
    Ok(Json(Executions { executions: rows.iter().map(ExecutionSummary::from).collect(), next_cursor }))
}

/// The organisation's executions, the newest first.
#[utoipa::path(get, path = "/api/executions", tag = "executions", params(ListQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Executions), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn list(State(app): State<App>, caller: Caller, Asked(query): Asked<ListQuery>) -> Answer<Json<Executions>> {
    let statuses: Vec<String> = query.status.iter().flat_map(|list| list.split(',')).map(Into::into).collect();
    if let Some(other) = statuses.iter().find(|status| !STATUSES.contains(&status.as_str())) {
        return Err(Problem::field("status", format!("`{other}` is none of {}", STATUSES.join(", "))));
    }
    app.run(move |app| {
        let workflow = match &query.workflow_id {
            None => None,
            Some(name) => {
                let shelf = Shelf::of(app.catalogue(), &caller.organization);
                // What a workflow that is gone has started is still there.
                Some(named(shelf, &caller.user, name)?.map_or_else(|| name.clone(), |held| held.id))
            }
        };
        page(app, &caller, statuses, workflow, query.limit, query.cursor.as_deref())
    })
    .await
}

fn whole(app: &App, caller: &Caller, id: &str) -> Answer<ExecutionBody> {
    let row = visible(app, caller, id)?;
    let looked = look(app, &row)?;
    // The journal was read after the row: where they differ, the journal is right.
    let row = app.engine.store().execution(row.key)?.unwrap_or(row);
    Ok(view::body(caller, &row, &looked))
}

/// An execution.
#[utoipa::path(get, path = "/api/executions/{id}", tag = "executions", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionBody), (status = 401, body = ProblemBody), (status = 403, body = ProblemBody),
        (status = 404, body = ProblemBody)))]
async fn get(State(app): State<App>, caller: Caller, Named(id): Named<String>) -> Answer<Json<ExecutionBody>> {
    app.run(move |app| whole(app, &caller, &id).map(Json)).await
}

/// What an execution did, attempt by attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Steps {
    /// The execution.
    execution_id: String,
    /// In the order in which they began: `{stepId, attempt, status, startedAt, completedAt, input, output, error, because}`.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Data>,
}

/// What an execution did, attempt by attempt.
#[utoipa::path(get, path = "/api/executions/{id}/steps", tag = "executions", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Steps), (status = 401, body = ProblemBody), (status = 403, body = ProblemBody),
        (status = 404, body = ProblemBody)))]
async fn steps(State(app): State<App>, caller: Caller, Named(id): Named<String>) -> Answer<Json<Steps>> {
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        Ok(Json(Steps { steps: view::steps(&look(app, &row)?.trace), execution_id: row.id }))
    })
    .await
}

/// The journal of an execution: what is proved and how long it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Journal {
    /// The execution.
    execution_id: String,
    /// Its frames, in order.
    frames: Vec<FrameBody>,
    /// The sequence that the next page begins with; null if there is none.
    next: Option<u64>,
}

/// A frame of a journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FrameBody {
    /// Its place, from 0.
    sequence: u64,
    /// When it was decided.
    at: String,
    /// The hash of the frame before it, `sha256:…`.
    before: String,
    /// Its own hash.
    hash: String,
    /// The frame as it is stored, in deterministic CBOR, as hexadecimal digits: what the hash is over.
    frame: String,
}

/// Which frames.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JournalQuery {
    /// The first frame's sequence.
    from: Option<u64>,
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// The journal of an execution, frame by frame, with the hashes that chain them.
#[utoipa::path(get, path = "/api/executions/{id}/journal", tag = "executions", params(("id" = String, Path), JournalQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Journal), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody)))]
async fn journal(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Asked(query): Asked<JournalQuery>,
) -> Answer<Json<Journal>> {
    let limit = limit(query.limit)?;
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let stored = app.engine.store().frames(row.key, query.from.unwrap_or(0), limit)?;
        let frames = stored.iter().map(frame).collect::<Answer<Vec<_>>>()?;
        let next = frames.last().filter(|_| frames.len() >= limit).map(|last| last.sequence + 1);
        Ok(Json(Journal { execution_id: row.id, frames, next }))
    })
    .await
}

fn frame(stored: &mainspring_kernel::stored::StoredFrame) -> Answer<FrameBody> {
    let broken = |error: mainspring_kernel::frame::FrameError| {
        Problem::new(Code::InternalError, format!("Frame {} cannot be read: {error}.", stored.sequence))
    };
    let (frame, hash) = mainspring_kernel::frame::Frame::read(stored).map_err(broken)?;
    Ok(FrameBody {
        sequence: frame.sequence,
        at: crate::clock::text(frame.now),
        before: frame.before.prefixed(),
        hash: hash.prefixed(),
        frame: mainspring_kernel::hash::hex(&stored.frame),
    })
}

/// How long to wait.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitQuery {
    /// Milliseconds, up to 60,000; 30,000 if nothing is said.
    #[param(maximum = 60000)]
    timeout_ms: Option<u64>,
}

/// Wait until an execution has ended or waits for people, and see it; as it stands when the time is over.
#[utoipa::path(get, path = "/api/executions/{id}/wait", tag = "executions", params(("id" = String, Path), WaitQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionBody), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody)))]
async fn wait(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Asked(query): Asked<WaitQuery>,
) -> Answer<Json<ExecutionBody>> {
    let wait_ms = query.timeout_ms.unwrap_or(WAIT_MS_DEFAULT);
    if wait_ms > WAIT_MS_MAX {
        return Err(Problem::field("timeoutMs", format!("it must be at most {WAIT_MS_MAX}")));
    }
    let (asker, name) = (caller.clone(), id.clone());
    let row = app.run(move |app| visible(app, &asker, &name)).await?;
    let feed = app.feeds.of(&app, row.key);
    let rests = async {
        let mut reader = feed.reader();
        loop {
            let row = app.run({
                let key = row.key;
                move |app| Ok(app.engine.store().execution(key)?)
            });
            let rests = |row: &ExecutionRow| is_final(&row.status) || row.status == "waiting_approval";
            if row.await?.is_none_or(|row| rests(&row)) || !reader.changed().await {
                return Ok::<(), Problem>(());
            }
        }
    };
    if let Ok(done) = tokio::time::timeout(Duration::from_millis(wait_ms), rests).await {
        done?;
    }
    app.run(move |app| whole(app, &caller, &id).map(Json)).await
}

/// A decision at a gate.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Approve {
    /// Whether it may go on.
    approve: bool,
    /// What opens the gate, as the execution shows it to those who may decide.
    resume_token: String,
    /// Why, for the journal.
    reason: Option<String>,
}

/// What came of an input.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Done {
    /// True.
    pub ok: bool,
    /// The execution.
    pub execution_id: String,
    /// Its status afterwards; `accepted` where it runs at another node and takes the input from its inbox.
    pub status: String,
}

/// Posts an input to an execution that runs at another node.
fn post(app: &App, key: ExecutionKey, input: &Input, audit: &AuditEntry) -> Result<(), EngineError> {
    // Whether it changes anything is found out by whoever takes it in: the log says what was done here.
    let audit = AuditEntry { action: format!("{}.posted", audit.action), ..audit.clone() };
    app.engine.post(key, input, Some(&audit)).map(drop)
}

pub(super) async fn done(app: &App, key: ExecutionKey, delivered: Delivered) -> Answer<Done> {
    app.run(move |app| {
        let row = app.engine.store().execution(key)?.ok_or_else(|| Problem::not_found("execution"))?;
        let status = if delivered == Delivered::Posted { "accepted".into() } else { row.status };
        Ok(Done { ok: true, execution_id: row.id, status })
    })
    .await
}

/// Decides at the gate that a token opens.
pub(super) async fn decide(
    app: &App,
    caller: &Caller,
    row: ExecutionRow,
    token: String,
    approve: bool,
    reason: Option<String>,
) -> Answer<Done> {
    let asker = caller.clone();
    let (open, row) = app
        .run(move |app| {
            let looked = look(app, &row)?;
            let given = mainspring_kernel::hash::Hash::of(token.as_bytes());
            let fits = |open: &&mainspring_engine::family::OpenGate| {
                mainspring_kernel::hash::Hash::of(open.token.as_bytes()).equals_in_constant_time(&given)
            };
            let unknown = "The token opens no gate that waits: it is wrong, used or expired.";
            let open = looked.family.gates.iter().find(fits).cloned();
            let open = open.filter(|open| mainspring_engine::engine::now_ms() < open.gate.expires_at);
            let open = open.ok_or_else(|| Problem::new(Code::InvalidResumeToken, unknown))?;
            if !may_decide(&asker, &row, &open) {
                let message =
                    "You may not decide here: those named by the gate may, or else the execution's owner and admins.";
                return Err(Problem::new(Code::Forbidden, message));
            }
            Ok((open, row))
        })
        .await?;
    let decision = if approve { Decision::Approve } else { Decision::Deny };
    let reason = reason.map_or(Value::Null, Value::from);
    let by = caller.user.clone();
    let detail = Value::map([("step", open.path.as_str().into()), ("decision", decision.name().into())]);
    let audit = entry(caller, "approval.decide", &row.id, detail);
    let (execution, instance, gate) = (open.execution, open.instance.clone(), open.gate.number);
    let input = Input::Decide { instance, gate, decision, by, reason };
    let answer = app.engine.take(execution, input.clone(), Some(audit.clone())).await;
    let delivered = app.run(move |app| delivered(answer, || post(app, execution, &input, &audit))).await?;
    if delivered == Delivered::Stale {
        let message = "The gate was decided meanwhile, or you have decided there already.";
        return Err(Problem::new(Code::InvalidResumeToken, message));
    }
    app.bus.publish("workflow.approval.decided", &caller.organization, &row.id);
    done(app, row.key, delivered).await
}

/// Approve or deny what an execution waits for.
#[utoipa::path(post, path = "/api/executions/{id}/approve", tag = "executions", params(("id" = String, Path)), request_body = Approve,
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = Done), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 413, body = ProblemBody), (status = 415, body = ProblemBody), (status = 503, body = ProblemBody)))]
async fn approve(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Approve>,
) -> Answer<Json<Done>> {
    let asker = caller.clone();
    let row = app.run(move |app| visible(app, &asker, &id)).await?;
    decide(&app, &caller, row, body.resume_token, body.approve, body.reason).await.map(Json)
}

/// Why an execution is called off.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// A word for it, as `user_cancelled`.
    #[schema(max_length = 200)]
    reason: Option<String>,
}

/// Call an execution off. What runs is stopped; it is `cancelled` when that has ended.
#[utoipa::path(post, path = "/api/executions/{id}/cancel", tag = "executions", params(("id" = String, Path)), request_body = Cancel,
    extensions(("x-permission" = json!("executions:control"))),
    responses((status = 200, body = Done), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 413, body = ProblemBody), (status = 415, body = ProblemBody), (status = 503, body = ProblemBody)))]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Cancel>,
) -> Answer<Json<Done>> {
    let reason = body.reason.unwrap_or_else(|| "user_cancelled".into());
    if reason.is_empty() || reason.chars().count() > 200 {
        return Err(Problem::field("reason", "it must have 1 to 200 characters"));
    }
    let asker = caller.clone();
    let row = app
        .run(move |app| {
            let row = visible(app, &asker, &id)?;
            check_control(&asker, &row)?;
            Ok(row)
        })
        .await?;
    let audit = entry(&caller, "execution.cancel", &row.id, Value::Null);
    let input = Input::Cancel { reason, by: caller.user.clone() };
    let answer = app.engine.take(row.key, input.clone(), Some(audit.clone())).await;
    let key = row.key;
    let delivered = app.run(move |app| delivered(answer, || post(app, key, &input, &audit))).await?;
    if delivered == Delivered::Stale {
        return Err(Problem::new(Code::Conflict, "The execution has ended, or is ending already."));
    }
    done(&app, row.key, delivered).await.map(Json)
}

/// A named message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Signal {
    /// The message's own name: the second of one name is no message.
    #[schema(min_length = 1, max_length = 200)]
    id: String,
    /// What a step waits for.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What it brings.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    payload: Data,
}

/// Send an execution a named message. One that comes before it is waited for is kept.
#[utoipa::path(post, path = "/api/executions/{id}/signal", tag = "executions", params(("id" = String, Path)), request_body = Signal,
    extensions(("x-permission" = json!("executions:control"))),
    responses((status = 200, body = Done), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 413, body = ProblemBody), (status = 415, body = ProblemBody), (status = 503, body = ProblemBody)))]
async fn signal(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Signal>,
) -> Answer<Json<Done>> {
    for (field, text) in [("id", &body.id), ("name", &body.name)] {
        if !(1..=200).contains(&text.chars().count()) {
            return Err(Problem::field(field, "it must have 1 to 200 characters"));
        }
    }
    let asker = caller.clone();
    let row = app
        .run(move |app| {
            let row = visible(app, &asker, &id)?;
            check_control(&asker, &row)?;
            Ok(row)
        })
        .await?;
    if is_final(&row.status) {
        return Err(Problem::new(Code::Conflict, "The execution has ended."));
    }
    let audit = entry(&caller, "execution.signal", &row.id, Value::map([("name", body.name.as_str().into())]));
    let input = Input::Signal { id: body.id, name: body.name, payload: body.payload.0 };
    let answer = app.engine.take(row.key, input.clone(), Some(audit.clone())).await;
    let key = row.key;
    // One of this name has come before: it is the same message, and is there.
    let delivered = app.run(move |app| delivered(answer, || post(app, key, &input, &audit))).await?;
    done(&app, row.key, delivered).await.map(Json)
}

/// What a session says of its execution.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Report {
    /// The status that the session reports.
    #[serde(rename = "status")]
    _status: String,
    /// The outputs, if it has ended.
    #[serde(default, rename = "outputs")]
    #[schema(value_type = Option<Object>)]
    _outputs: Data,
    /// The steps, if it has ended.
    #[serde(default, rename = "steps")]
    #[schema(value_type = Option<Object>)]
    _steps: Data,
    /// Why it failed.
    #[serde(default, rename = "error")]
    #[schema(value_type = Option<Object>)]
    _error: Data,
}

/// What a session says counts only for the execution that it carries out; and this server carries all of its executions
/// out itself, so that there is nothing for a session to say yet.
async fn reported(app: App, caller: Caller, id: String) -> Answer<Json<Done>> {
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let is_its_own = matches!(&caller.kind, Kind::Session { execution } if *execution == row.id);
        if !is_its_own {
            return Err(Problem::new(Code::Forbidden, "Only the execution's own session may report on it."));
        }
        let message =
            "The server carries this execution out itself: its journal says how it stands, and no report changes that.";
        Err(Problem::new(Code::Conflict, message))
    })
    .await
}

/// Report that an execution has ended, from the session that carries it out.
#[utoipa::path(post, path = "/api/executions/{id}/complete", tag = "executions", params(("id" = String, Path)), request_body = Report,
    extensions(("x-permission" = json!("executions:report"))),
    responses((status = 200, body = Done), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 413, body = ProblemBody), (status = 415, body = ProblemBody)))]
async fn complete(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(_report): Body<Report>,
) -> Answer<Json<Done>> {
    reported(app, caller, id).await
}

/// Report how an execution stands, from the session that carries it out.
#[utoipa::path(post, path = "/api/executions/{id}/status", tag = "executions", params(("id" = String, Path)), request_body = Report,
    extensions(("x-permission" = json!("executions:report"))),
    responses((status = 200, body = Done), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 413, body = ProblemBody), (status = 415, body = ProblemBody)))]
async fn status(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(_report): Body<Report>,
) -> Answer<Json<Done>> {
    reported(app, caller, id).await
}
