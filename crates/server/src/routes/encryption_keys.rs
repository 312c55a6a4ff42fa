//! The keys that encrypt secrets in the store: their use, and their change.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Body,
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    services::rotate_keys::{self, KeyUse, Step},
};

/// Rows of one request. Each is a transaction, and the request occupies a slot.
const ROWS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(rotate))
}

/// A key that encrypts stored secrets, or has encrypted some.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EncryptionKeyBody {
    /// Identifies the key without revealing it.
    id: String,
    /// True if new values are encrypted with it.
    primary: bool,
    /// True for the installation's key, which also authenticates journals and tokens.
    installation: bool,
    /// True if this node has it in its key file.
    known: bool,
    /// Number of stored values that are encrypted with it.
    values: u64,
}

/// The encryption keys.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EncryptionKeysBody {
    /// Keys in the order of the key file, with unknown ones at the end.
    keys: Vec<EncryptionKeyBody>,
    /// Time since which the primary key encrypts, RFC 3339; null for the installation's key from the beginning.
    activated_at: Option<String>,
    /// Present time of this node, RFC 3339.
    now: String,
}

/// A step of a rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rotate {
    /// Most rows to encrypt again, 1 to 1,000; default 1,000.
    #[schema(minimum = 1, maximum = 1000)]
    rows: Option<usize>,
}

/// The result of a step.
#[derive(Debug, Serialize, ToSchema)]
struct Rotated {
    /// Id of the primary key.
    primary: String,
    /// Number of rows that this step has encrypted again.
    rows: usize,
    /// Number of rows that this node cannot decrypt. They stay as they are.
    unreadable: usize,
    /// True if no row is left. Otherwise, repeat the request.
    done: bool,
}

/// List the keys that encrypt stored secrets, with the number of values under each. Requires an operator of the
/// installation.
#[utoipa::path(get, path = "/api/encryption-keys", tag = "secrets",
    extensions(("x-permission" = json!("installation:write"))),
    responses((status = 200, body = EncryptionKeysBody)))]
async fn list(State(app): State<App>, _: Caller) -> Result<Json<EncryptionKeysBody>> {
    app.run(move |app| {
        let (uses, chosen) = rotate_keys::uses(app)?;
        let body = |KeyUse { id, is_primary, is_installation, is_known, values }: KeyUse| EncryptionKeyBody {
            id,
            primary: is_primary,
            installation: is_installation,
            known: is_known,
            values,
        };
        Ok(Json(EncryptionKeysBody {
            keys: uses.into_iter().map(body).collect(),
            activated_at: chosen.map(|chosen| timestamps::text(chosen.activated_at)),
            now: timestamps::text(app.now_ms()),
        }))
    })
    .await
}

/// Make the newest key of this node's key file the primary one, and encrypt stored secrets again, some rows at a time.
/// Repeat the request until `done` is true. Requires an operator of the installation.
#[utoipa::path(post, path = "/api/encryption-keys/rotate", tag = "secrets", request_body = Rotate,
    extensions(("x-permission" = json!("installation:write"))),
    responses((status = 200, body = Rotated), (status = 409, body = ProblemBody)))]
async fn rotate(State(app): State<App>, caller: Caller, Body(body): Body<Rotate>) -> Result<Json<Rotated>> {
    let rows_max = body.rows.unwrap_or(ROWS_MAX);
    if !(1..=ROWS_MAX).contains(&rows_max) {
        return Err(Problem::field("rows", format!("it must be from 1 to {ROWS_MAX}")));
    }
    app.run(move |app| {
        let Step { primary, rows, unreadable, is_done } = rotate_keys::rotate(app, &caller, rows_max)?;
        Ok(Json(Rotated { primary, rows, unreadable, done: is_done }))
    })
    .await
}
