//! The audit log: what was done, by whom, in a chain that can be proved.

use axum::{Json, extract::State};
use mainspring_kernel::{cbor, hash::Hash};
use mainspring_store::AuditRow;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::Data,
    clock,
    extract::Asked,
    identity::Caller,
    page::limit,
    problem::{Answer, ProblemBody},
    shelf::PAGE_MAX,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(verify))
}

/// Which entries.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AuditQuery {
    /// Only those behind this number.
    after: Option<u64>,
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// An entry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EntryBody {
    /// Counted from 1, without gaps.
    number: u64,
    /// When.
    at: String,
    /// Who.
    actor: String,
    /// What was done.
    action: String,
    /// To what.
    target: String,
    /// More about it.
    #[schema(value_type = Option<Object>)]
    detail: Data,
    /// Of the hash before it and of everything here: `sha256:…`.
    hash: String,
}

/// A page of the log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Entries {
    /// In order.
    entries: Vec<EntryBody>,
    /// What `after` of the next page is; null if there is none.
    next: Option<u64>,
}

fn body(row: &AuditRow) -> EntryBody {
    let entry = row.entry.clone();
    EntryBody {
        number: row.number,
        at: clock::text(entry.at),
        actor: entry.actor,
        action: entry.action,
        target: entry.target,
        detail: Data(cbor::decode(&entry.detail).unwrap_or_default()),
        hash: row.hash.prefixed(),
    }
}

/// The organisation's audit log, in order.
#[utoipa::path(get, path = "/api/audit", tag = "audit", params(AuditQuery),
    extensions(("x-permission" = json!("audit:read"))),
    responses((status = 200, body = Entries), (status = 400, body = ProblemBody), (status = 401, body = ProblemBody),
        (status = 403, body = ProblemBody)))]
async fn list(State(app): State<App>, caller: Caller, Asked(query): Asked<AuditQuery>) -> Answer<Json<Entries>> {
    let limit = limit(query.limit)?;
    app.run(move |app| {
        let rows = app.catalogue().audit(&caller.organization, query.after.unwrap_or(0), limit)?;
        let next = rows.last().filter(|_| rows.len() >= limit).map(|last| last.number);
        Ok(Json(Entries { entries: rows.iter().map(body).collect(), next }))
    })
    .await
}

/// Whether the log is what was written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Verified {
    /// Whether every entry follows the one before, up to the sealed head.
    ok: bool,
    /// How many entries were looked at.
    entries: u64,
    /// What is wrong, and where; null if nothing is.
    error: Option<String>,
}

/// Prove the audit log: that no entry was changed, left out or put in, and that none is missing at its end.
#[utoipa::path(get, path = "/api/audit/verify", tag = "audit", extensions(("x-permission" = json!("audit:read"))),
    responses((status = 200, body = Verified), (status = 401, body = ProblemBody), (status = 403, body = ProblemBody)))]
async fn verify(State(app): State<App>, caller: Caller) -> Answer<Json<Verified>> {
    app.run(move |app| {
        // The head is read first: what is added meanwhile is of another moment.
        let head = app.catalogue().audit_head(&caller.organization)?;
        let (mut before, mut count) = (Hash::default(), 0);
        let told = |entries, error: Option<String>| Ok(Json(Verified { ok: error.is_none(), entries, error }));
        let Some(head) = head else {
            let stray = !app.catalogue().audit(&caller.organization, 0, 1)?.is_empty();
            return told(0, stray.then(|| "the log has entries and no head".to_string()));
        };
        if !head.is_sealed(app.engine.key(), &caller.organization) {
            return told(0, Some("the head is not sealed with this installation's key".into()));
        }
        while count < head.number {
            let rows = app.catalogue().audit(&caller.organization, count, PAGE_MAX)?;
            let Some(last) = rows.last().map(|row| row.number) else {
                return told(count, Some(format!("entry {} is missing", count + 1)));
            };
            for row in rows.iter().filter(|row| row.number <= head.number) {
                if row.number != count + 1 || !row.follows(before) {
                    return told(count, Some(format!("entry {} is not what was written", count + 1)));
                }
                (before, count) = (row.hash, row.number);
            }
            debug_assert!(last >= count);
        }
        let fits = before == head.hash;
        told(count, (!fits).then(|| format!("entry {count} is not the one that the head names")))
    })
    .await
}
