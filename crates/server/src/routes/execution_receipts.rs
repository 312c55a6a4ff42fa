//! The receipts of an execution, each with the check of its signature.

use axum::{Json, extract::State};
use mainspring_engine::{
    EngineError,
    receipts::{CheckedReceipt, ReceiptPlace},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{caller::Caller, execution_access::visible_execution},
    http::{
        body::RawJson,
        extract::{PathParams, QueryParams},
        pagination::{Page, most, number},
        problem::{Problem, Result},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(receipts))
}

/// Receipts of an execution.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Receipts {
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Receipts in the order of the journal, then the late ones.
    #[schema(value_type = Vec<ExecutionReceipt>)]
    receipts: Vec<RawJson>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// The outcome of an attempt as the execution received it: the signed envelope, and the check of its signature.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "described here, and written by the kernel")]
struct ExecutionReceipt {
    /// `verified`; `unsigned` for a receipt from before receipts were signed; `broken`.
    signature: String,
    /// Reason why the signature is broken; null otherwise.
    error: Option<String>,
    /// Node that recorded and signed the receipt; null if the signature is not verified.
    #[schema(required)]
    executor: Option<Executor>,
    /// Key of the execution, as in folders of evidence.
    execution_key: String,
    /// Hash of the normalized definition: `sha256:…`.
    workflow_hash: String,
    /// Hash of the stored plan: `sha256:…`.
    plan_hash: String,
    /// Step instance, such as `fetch[3].parse`; empty if the receipt is broken and names none.
    step: String,
    /// Number of the attempt, from 1; 0 if the receipt is broken and names none.
    attempt: u32,
    /// Idempotency key of the step in hexadecimal digits; null for a late receipt.
    intent: Option<String>,
    /// Kind of the call, such as `bash`.
    effect: String,
    /// `done`, `failed`, `stopped`, `interrupted` or `cancelled`; `undecodable` for a late receipt that is broken.
    status: String,
    /// `executor` or `inbox`.
    via: String,
    /// Time of the turn, RFC 3339.
    at: String,
    /// Frame that contains the receipt; null for a late receipt.
    #[schema(required)]
    frame: Option<ReceiptFrame>,
    /// Hash of the payload in hexadecimal digits.
    payload_sha256: String,
}

/// A frame of a journal.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described here, and written by the kernel")]
struct ReceiptFrame {
    /// Position in the journal, from 0.
    sequence: u64,
    /// SHA-256 of the frame in hexadecimal digits.
    sha256: String,
}

/// A node that signs receipts.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described here, and written by the kernel")]
struct Executor {
    /// Id of its executor key: `sha256:…`.
    key: String,
    /// Host and process of the node.
    name: String,
    /// Release of the node.
    version: String,
}

/// Position and size of a page of receipts.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReceiptsQuery {
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// List the receipts of an execution, and check their signatures.
///
/// Each page reads the whole journal, and checks the signatures of its own receipts. A cursor names the last receipt of its
/// page, so receipts that arrive in the meantime repeat none and skip none of the journal.
#[utoipa::path(get, path = "/api/executions/{id}/receipts", tag = "executions",
    params(("id" = String, Path), ReceiptsQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Receipts)))]
async fn receipts(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ReceiptsQuery>,
) -> Result<Json<Receipts>> {
    let (most, after) = (most(query.limit)?, place(query.cursor.as_deref())?);
    app.run(move |app| {
        let row = visible_execution(app, &caller, &id)?;
        let (mut page, mut failed) = (Page::new(most), None);
        let each = |checked: CheckedReceipt| {
            match RawJson::of(&checked.to_value()) {
                Ok(written) => {
                    let bytes = written.byte_count();
                    page.add(written, bytes);
                }
                Err(problem) => _ = failed.get_or_insert(problem),
            }
            !page.is_full() && failed.is_none()
        };
        let found = app.engine.loader().receipts_after(row.key, after, each).map_err(EngineError::from)?;
        let end = found.ok_or_else(|| Problem::not_found("execution"))?;
        if let Some(problem) = failed {
            return Err(problem);
        }
        Ok(Json(Receipts { execution_id: row.id, receipts: page.rows, next_cursor: end.next.map(cursor) }))
    })
    .await
}

/// The beginning of the cursors of late receipts.
const LATE: &str = "late-";

/// Writes the place of a receipt as a cursor: the sequence of its frame, or the number of a late receipt.
fn cursor(place: ReceiptPlace) -> String {
    match place {
        ReceiptPlace::Frame(sequence) => sequence.to_string(),
        ReceiptPlace::Late(number) => format!("{LATE}{number}"),
    }
}

fn place(cursor: Option<&str>) -> Result<Option<ReceiptPlace>> {
    match cursor.and_then(|cursor| cursor.strip_prefix(LATE)) {
        Some(late) => Ok(number(Some(late))?.map(ReceiptPlace::Late)),
        None => Ok(number(cursor)?.map(ReceiptPlace::Frame)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_the_last_receipt() {
        for (text, expected) in [("7", ReceiptPlace::Frame(7)), ("late-0", ReceiptPlace::Late(0))] {
            assert_eq!((cursor(expected), place(Some(text)).unwrap()), (text.to_owned(), Some(expected)));
        }
        for text in ["", "-1", "late-", "late", "late-x", "x", "7-late-1"] {
            assert!(place(Some(text)).is_err(), "{text}");
        }
        assert_eq!(place(None).unwrap(), None);
        assert!(ReceiptPlace::Frame(u64::MAX) < ReceiptPlace::Late(0));
    }
}
