//! Open approvals: lists them and decides at them.

use axum::{Json, extract::State};
use mainspring_engine::{
    closed_gate::{ClosedGate, open_now},
    execution_tree::OpenGate,
};
use mainspring_kernel::{decide::Words, key::ExecutionKey};
use mainspring_store::{ExecutionRow, GateRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::execution_commands::{CommandResult, capitalized, decide as decide_at};
use crate::{
    app::App,
    auth::{
        caller::Caller,
        execution_access::{check_origin, may_decide, visible_execution},
    },
    http::{
        body::{Body, Data, RawJson},
        extract::{PathParams, QueryParams},
        pagination::{Page, PageQuery, most},
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    services::{
        approvers::{Approver, Members},
        execution_view::{ExecutionDetails, approval_id, decide_url, gate, read_details},
    },
};

/// Most open approvals of an execution in the details of an error.
const OPEN_LISTED_MAX: usize = 50;

/// Path prefix of the approval pages.
pub(super) const PAGE_PREFIX: &str = "/approve/";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(decide))
}

/// An open approval.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Approval {
    /// Id of the approval: `EXECUTION:STEP:GATE`. In a path, a `#` of it is `%23`.
    id: String,
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Workflow, as in `/api/workflows/{id}`.
    workflow_id: Option<String>,
    /// Display name of the workflow when the execution was started, else the name in the definition; null if neither
    /// exists.
    workflow_name: Option<String>,
    /// Id of the member who owns the execution.
    user_id: Option<String>,
    /// Id of the step that waits.
    step_id: String,
    /// The question to the approvers.
    message: String,
    /// The approval: `{stepId, prompt, items, approvers, count, approvedBy, expiresAt}`, with `resumeToken` for callers
    /// who may decide.
    #[schema(value_type = Object)]
    gate: RawJson,
    /// Start of the approval, RFC 3339.
    requested_at: String,
    #[serde(flatten)]
    timeout: ApprovalTimeout,
    /// `pending`.
    status: &'static str,
    /// True if the caller may decide.
    may_decide: bool,
    /// Named approvers with their current membership. Without names, the execution's owner and the admins decide.
    approvers: Vec<Approver>,
    /// True if enough approvers can currently approve. Otherwise the approval can be denied, the execution cancelled,
    /// or the timeout expires, unless a missing approver becomes a member with a role that decides.
    can_be_approved: bool,
    #[serde(flatten)]
    links: ApprovalLinks,
}

/// The places where an approval is decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalLinks {
    /// Path of the API: `/api/approvals/ID/decide`, with the id encoded.
    decide_url: String,
    /// URL of the web page with the approval. It requires a sign-in.
    url: String,
}

/// The decision that is made without a member.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalTimeout {
    /// Time of the default decision, RFC 3339.
    timeout_at: String,
    /// Decision at the timeout: `approve` or `deny`.
    default_action: &'static str,
}

/// A page of open approvals.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Approvals {
    /// Open approvals, those of the newest executions first.
    approvals: Vec<Approval>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// The URL of a gate's page. It carries no credential and can be sent to anyone.
fn link(base: &str, id: &str) -> String {
    let mut url = format!("{base}{PAGE_PREFIX}");
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => url.push(byte.into()),
            byte => url += &format!("%{byte:02X}"),
        }
    }
    url
}

fn approval(
    app: &App,
    caller: &Caller,
    members: &mut Members<'_>,
    row: &ExecutionRow,
    open: &OpenGate,
    opened_at: u64,
) -> Result<Approval> {
    let may_decide = may_decide(caller, row, open);
    Ok(Approval {
        id: approval_id(&row.id, open),
        execution_id: row.id.clone(),
        workflow_id: row.workflow_id.clone(),
        workflow_name: row.names.workflow_name.clone().or_else(|| row.workflow.clone()),
        user_id: row.initiator_user_id.clone(),
        step_id: open.step.clone(),
        message: open.gate.prompt.clone(),
        gate: RawJson::of(&gate(open, may_decide))?,
        requested_at: timestamps::text(opened_at),
        timeout: ApprovalTimeout {
            timeout_at: timestamps::text(open.gate.expires_at),
            default_action: open.gate.on_timeout.name(),
        },
        status: "pending",
        may_decide,
        approvers: members.named(open)?,
        can_be_approved: members.are_enough(row, open)?,
        links: ApprovalLinks {
            decide_url: decide_url(&approval_id(&row.id, open)),
            url: link(&app.settings.base, &approval_id(&row.id, open)),
        },
    })
}

/// The gates of the execution itself, without those of its child executions, which are listed with the children.
fn own<'a>(row: &'a ExecutionRow, details: &'a ExecutionDetails) -> impl Iterator<Item = &'a OpenGate> {
    details.tree.gates.iter().filter(|open| open.execution == row.key)
}

/// List the open approvals of the organization.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", params(PageQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Approvals)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Approvals>> {
    let most = most(page.limit)?;
    let after = page.cursor.as_deref().map(cursor).transpose()?;
    app.run(move |app| {
        let store = app.engine.store();
        let after = after.as_ref().map(|(execution, step, gate)| (*execution, step.as_str(), *gate));
        let pending = store.pending_approvals(Some(&caller.organization), after, most.rows)?;
        let (mut page, mut members) = (Page::new(most), Members::of(app, &caller));
        let mut seen = 0;
        for gates in pending.chunk_by(|one, next| one.execution == next.execution) {
            seen += add(app, &caller, &mut members, gates, &mut page)?;
            if page.is_full() {
                break;
            }
        }
        // Position of the last inspected gate, even if it was decided since and is not on the page.
        let is_all = seen == pending.len() && pending.len() < most.rows;
        let last = pending[..seen].last().filter(|_| !is_all);
        let next_cursor = last.map(|last| format!("{}:{}:{}", last.execution, last.step, last.gate));
        Ok(Json(Approvals { approvals: page.rows, next_cursor }))
    })
    .await
}

/// Adds the gates of one execution to a page until it is full. Returns the number of inspected gates.
fn add(
    app: &App,
    caller: &Caller,
    members: &mut Members<'_>,
    gates: &[GateRow],
    page: &mut Page<Approval>,
) -> Result<usize> {
    let Some(row) = app.engine.store().execution(gates[0].execution)? else { return Ok(gates.len()) };
    let Some(details) = readable(&row.id, read_details(app, &row))? else { return Ok(gates.len()) };
    for (place, waiting) in gates.iter().enumerate() {
        if page.is_full() {
            return Ok(place);
        }
        // A gate that was decided since the query is no longer open.
        let is_it = |open: &&OpenGate| open.step == waiting.step && open.gate.number == waiting.gate;
        if let Some(open) = own(&row, &details).find(is_it) {
            let approval = approval(app, caller, members, &row, open, waiting.opened_at)?;
            let named: usize = approval.approvers.iter().map(Approver::byte_count).sum();
            let bytes = approval.message.len() + approval.gate.byte_count() + named;
            page.add(approval, bytes);
        }
    }
    Ok(gates.len())
}

/// The result of reading an execution; `None` if it is missing or broken, because the list continues without it and
/// reading the execution itself reports the error. A store error fails the list: an incomplete one would hide open
/// gates.
fn readable<T>(id: &str, read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(problem) if problem.code == Code::NotFound => Ok(None),
        Err(problem) if problem.code == Code::InternalError => {
            tracing::warn!(execution = id, message = problem.full_message(), "open approvals cannot be read");
            Ok(None)
        }
        Err(problem) => Err(problem),
    }
}

fn cursor(text: &str) -> Result<(ExecutionKey, String, u32)> {
    let unknown = || Problem::field("cursor", "it is not the `nextCursor` of an answer");
    let (execution, rest) = text.split_once(':').ok_or_else(unknown)?;
    let (step, number) = rest.rsplit_once(':').ok_or_else(unknown)?;
    let key = ExecutionKey::parse(execution).ok_or_else(unknown)?;
    Ok((key, step.to_string(), number.parse().map_err(|_| unknown())?))
}

/// The open gate with this id, if the caller may see it. The error has the code `closed` for a gate that the execution has,
/// and that is not open.
pub(super) fn found(app: &App, caller: &Caller, id: &str, closed: Code) -> Result<(ExecutionRow, OpenGate)> {
    let unknown = || Problem::not_found("approval that waits");
    let (execution, gate) = id.split_once(':').ok_or_else(unknown)?;
    let row = visible_execution(app, caller, execution).map_err(|_| unknown())?;
    check_origin(app, &row)?;
    let details = read_details(app, &row)?;
    match own(&row, &details).find(|open| approval_id(&row.id, open) == id) {
        Some(open) => Ok((row.clone(), open.clone())),
        None => Err(not_open(app, &row, &details, gate, closed)),
    }
}

/// The reason for which the gate `STEP:NUMBER` is not open, with the ids of those that are.
fn not_open(app: &App, row: &ExecutionRow, details: &ExecutionDetails, gate: &str, closed: Code) -> Problem {
    let (step, number) = match gate.rsplit_once(':') {
        Some((step, number)) => (step, number.parse().ok()),
        None => (gate, None),
    };
    let why = match ClosedGate::find(app.engine.loader(), &details.state, step, number) {
        Ok(why) => why,
        Err(error) => return error.into(),
    };
    let open: Vec<&OpenGate> = own(row, details).take(OPEN_LISTED_MAX).collect();
    let ids: Vec<String> = open.iter().map(|open| approval_id(&row.id, open)).collect();
    let message = format!("{}; {}.", capitalized(&why.to_string()), open_now(open, &details.state));
    let code = if why.is_known() { closed } else { Code::NotFound };
    Problem::new(code, message).with(serde_json::json!({ "approval": why.name(), "open": ids }))
}

/// Get an open approval with the items to approve.
#[utoipa::path(get, path = "/api/approvals/{id}", tag = "approvals", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Approval)))]
async fn get(State(app): State<App>, caller: Caller, PathParams(id): PathParams<String>) -> Result<Json<Approval>> {
    app.run(move |app| {
        let (row, open) = found(app, &caller, &id, Code::NotFound)?;
        // The list is ordered: the gate follows the previous gate of its step.
        let before = (row.key, open.step.as_str(), open.gate.number.saturating_sub(1));
        let listed = app.engine.store().pending_approvals(Some(&caller.organization), Some(before), 1)?;
        let is_it = |listed: &GateRow| listed.execution == row.key && listed.gate == open.gate.number;
        let listed = listed.first().filter(|listed| is_it(listed) && listed.step == open.step);
        let opened_at =
            listed.map(|listed| listed.opened_at).ok_or_else(|| Problem::not_found("approval that waits"))?;
        approval(app, &caller, &mut Members::of(app, &caller), &row, &open, opened_at).map(Json)
    })
    .await
}

/// Body of a decision at an open approval.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Decision {
    /// True to approve, false to deny.
    approve: bool,
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

/// Approve or deny an open approval.
///
/// One that is not open is answered with 409, and one that the execution does not have with 404. `details.approval` has the
/// reason (`decided`, `expired`, `ended`, `not_yet_open`, `unknown`), and `details.open` the ids of those that are open.
#[utoipa::path(post, path = "/api/approvals/{id}/decide", tag = "approvals", params(("id" = String, Path)), request_body = Decision,
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = CommandResult), (status = 409, body = ProblemBody)))]
async fn decide(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Decision>,
) -> Result<Json<CommandResult>> {
    let asker = caller.clone();
    let (row, open) = app.run(move |app| found(app, &asker, &id, Code::Conflict)).await?;
    let Decision { approve, reason, content, cancel: cancels } = body;
    let words = Words { reason, content: content.map(|content| content.0), cancels };
    decide_at(&app, &caller, row, open.token, approve, words).await.map(Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_segment_of_a_path() {
        assert_eq!(decide_url("e1:ask#1.1:1"), "/api/approvals/e1:ask%231.1:1/decide");
        assert_eq!(decide_url("a/b?c%é ."), "/api/approvals/a%2Fb%3Fc%25%C3%A9%20./decide");
    }

    #[test]
    fn broken_executions_are_skipped_and_store_errors_fail_the_list() {
        let read = |code: Option<Code>| readable("e", code.map_or(Ok(()), |code| Err(Problem::new(code, "why"))));
        assert_eq!(read(None), Ok(Some(())));
        for code in [Code::NotFound, Code::InternalError] {
            assert_eq!(read(Some(code)), Ok(None), "{code:?}");
        }
        assert_eq!(read(Some(Code::Unavailable)).map_err(|problem| problem.code), Err(Code::Unavailable));
    }
}
