//! The audit log: lists, verifies and exports its entries, which form a hash chain.

use std::{io, time::Duration};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{
        HeaderMap, Method,
        header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    },
    response::IntoResponse,
};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditRow, Change, ReadLimit};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{caller::Caller, credential_lookup::reauthorize, cross_site::check_origin, permission::Permission},
    http::{
        body::Data,
        extract::QueryParams,
        pagination::{PAGE_MAX, Page, most, number},
        problem::{Code, Problem, Result},
        request_slots::{current, on_account},
        timestamps,
    },
    resources::repository::{apply, entry},
    services::audit_export::{Entry, Head, line, prove},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(verify)).routes(routes!(export))
}

/// Selection of audit entries.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AuditQuery {
    /// Returns entries after this number only.
    after: Option<u64>,
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EntryBody {
    /// Number of the entry, from 1 without gaps.
    number: u64,
    /// Time, RFC 3339.
    at: String,
    /// Id of the member or component that acted.
    actor: String,
    /// Action, such as `approval.decide`.
    action: String,
    /// Target of the action.
    target: String,
    /// Structured details of the action.
    #[schema(value_type = Option<Object>)]
    detail: Data,
    /// Hash of the previous hash and of all fields of this entry: `sha256:…`.
    hash: String,
}

/// A page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Entries {
    /// Entries in ascending order.
    entries: Vec<EntryBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

fn body(row: &AuditRow) -> EntryBody {
    let entry = row.entry.clone();
    EntryBody {
        number: row.number,
        at: timestamps::text(entry.at),
        actor: entry.actor,
        action: entry.action,
        target: entry.target,
        detail: Data(cbor::decode(&entry.detail).unwrap_or_default()),
        hash: row.hash.prefixed(),
    }
}

/// List the audit log of the organization in ascending order.
#[utoipa::path(get, path = "/api/audit", tag = "audit", params(AuditQuery),
    extensions(("x-permission" = json!("audit:read"))),
    responses((status = 200, body = Entries)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Result<Json<Entries>> {
    let (most, after) = (most(query.limit)?, number(query.cursor.as_deref())?);
    app.run(move |app| {
        let mut page = Page::new(most);
        for row in app.catalogue().audit(&caller.organization, after.max(query.after).unwrap_or(0), most)? {
            page.add(body(&row), row.byte_count());
        }
        let next_cursor = page.next_cursor(|last| last.number.to_string());
        Ok(Json(Entries { entries: page.rows, next_cursor }))
    })
    .await
}

/// Result of verifying the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Verified {
    /// True if the entries form an unbroken chain up to the sealed head.
    ok: bool,
    /// Number of verified entries.
    entries: u64,
    /// First defect with its position; null if there is none.
    error: Option<String>,
}

/// Verify the audit log: detects entries that were changed, removed, inserted, or truncated at the end.
#[utoipa::path(get, path = "/api/audit/verify", tag = "audit", extensions(("x-permission" = json!("audit:read"))),
    responses((status = 200, body = Verified)))]
async fn verify(State(app): State<App>, caller: Caller) -> Result<Json<Verified>> {
    app.run(move |app| {
        let (entries, error) =
            prove(app.catalogue(), app.engine.key(), &caller.organization, app.settings.marks.as_deref())?;
        Ok(Json(Verified { ok: error.is_none(), entries, error }))
    })
    .await
}

/// Most pages of an export that wait for the client.
const PAGES_BUFFERED_MAX: usize = 2;

/// Time for the client to read a page.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Export the whole audit log as NDJSON, with the signed head first, for verification elsewhere with `mainspring audit
/// verify`. The export adds an entry to the log. Requests with a cookie need proof of origin, as changes do.
#[utoipa::path(get, path = "/api/audit/export", tag = "audit", extensions(("x-permission" = json!("audit:read"))),
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
async fn export(
    State(app): State<App>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
) -> Result<impl IntoResponse> {
    // HEAD would record an export that sent nothing.
    if method != Method::GET {
        return Err(Problem::new(Code::MethodNotAllowed, "Export with GET: the response has no head of its own."));
    }
    if caller.sign_in.is_some() {
        check_origin(&app.settings.base, &headers, true)?;
    }
    let organization = caller.organization.clone();
    // Reads the head before writing the entry of this export: the export ends with the entry that the head names.
    let audit_entry = entry(&caller, "audit.export", &organization, Value::Null);
    let head = app
        .run(move |app| {
            let head = app.catalogue().audit_head(&organization)?;
            let change = Change { audit: vec![audit_entry], sealing: *app.engine.key(), ..Change::default() };
            apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
            Ok(head)
        })
        .await?;
    let first = line(&Head::new(&caller.organization, now_ms(), head.as_ref()));
    let (to, from) = mpsc::channel(PAGES_BUFFERED_MAX);
    let name = format!("attachment; filename=\"audit-{}.ndjson\"", caller.organization);
    let last = head.map_or(0, |head| head.number);
    tokio::spawn(on_account(current(), stream_entries(app, caller, first, last, to)));
    let headers = [(CONTENT_TYPE, "application/x-ndjson".to_string()), (CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(ReceiverStream::new(from))))
}

/// Streams the first line and the entries up to the last one, page by page. The response breaks off after a read error,
/// or if the credential has lost its permission, which each page checks again because slow readers prolong an export.
/// An incomplete export fails verification.
async fn stream_entries(app: App, caller: Caller, first: Vec<u8>, last: u64, to: mpsc::Sender<io::Result<Bytes>>) {
    let (mut page, mut after, mut before) = (first, 0, 0);
    loop {
        match app.responses.part(&current(), page) {
            Ok(part) => {
                if to.send_timeout(Ok(part), READ_TIMEOUT).await.is_err() || after >= last {
                    return;
                }
                before = after;
            }
            // Drops the page and reads it again once there is room, because waiting pages are in no memory budget.
            Err(page) => {
                let bytes = page.len();
                drop(page);
                let account = current();
                tokio::select! {
                    () = app.responses.room_for(&account, bytes) => after = before,
                    () = to.closed() => return,
                }
            }
        }
        let asker = caller.clone();
        let page_of = move |app: &App| {
            let now = reauthorize(app, &asker, Permission::AuditRead)?;
            Ok(app.catalogue().audit(&now.organization, after, ReadLimit::of(PAGE_MAX))?)
        };
        let read = app.run(page_of).await;
        let rows = match read {
            Ok(rows) if !rows.is_empty() => rows,
            Ok(_) => return,
            Err(problem) => {
                let _ = to.send_timeout(Err(io::Error::other(problem.full_message())), READ_TIMEOUT).await;
                return;
            }
        };
        after = rows.last().map_or(last, |row| row.number);
        page = rows.iter().filter(|row| row.number <= last).flat_map(|row| line(&Entry::from(row))).collect();
    }
}
