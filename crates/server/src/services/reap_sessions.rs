//! Reaps sessions of ended executions by a pattern of their keys: their credentials are revoked and their workspaces
//! removed. The executions stay.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_effects::shell::contain::remove_workspace;
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{key::ExecutionKey, value::Value};
use mainspring_store::{Change, ExecutionRow, Filter, ReadLimit, Removal, is_final};
use mainspring_triggers::session_key::SessionPattern;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::caller::Caller,
    http::{problem::Result, request_slots::SLOTS_MAX},
    resources::{
        RevokedToken, Token,
        repository::{Repository, Stored, entry, with_retries},
    },
    services::{
        execution_sessions::{Parents, STATUSES, matching, session},
        workspaces::unused_of,
    },
};

/// The sessions to reap.
#[derive(Debug)]
pub(crate) struct ReapOrder {
    /// The text of the pattern, for the audit log.
    pub key: String,
    pub pattern: SessionPattern,
    /// Only sessions that ended before this time, in milliseconds since 1970.
    pub before: u64,
    /// True to list the sessions without a change.
    pub is_dry: bool,
}

/// The answer to a request to reap.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReapedSessions {
    /// Sessions of ended executions that match, newest first.
    sessions: Vec<ReapedSession>,
    /// True if nothing was changed because `dryRun` was set.
    dry_run: bool,
    /// `cursor` of the next request; null after the last session. A response may be short and have a cursor.
    next_cursor: Option<String>,
}

/// The credentials and the workspace that a session of an ended execution had left.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReapedSession {
    /// Id of the session.
    id: String,
    /// Session key.
    key: String,
    /// As in `GET /api/executions/{id}`.
    execution_id: String,
    /// Number of its credentials that were revoked, or would be.
    tokens_revoked: usize,
    /// True if its workspace on this server was removed, or would be. Child executions use the workspace of their parent.
    workspace_removed: bool,
}

/// Reaps a page of sessions. The audit entry is durable before a workspace is removed.
pub(crate) fn reap(
    app: &App,
    caller: &Caller,
    order: &ReapOrder,
    (after, most): (Option<ExecutionKey>, ReadLimit),
) -> Result<ReapedSessions> {
    let store = &**app.engine.store();
    let (_, ended) = STATUSES[2];
    let statuses = ended.iter().map(|status| (*status).to_owned()).collect();
    let filter = Filter { statuses, organization: Some(caller.organization.clone()), ..Filter::default() };
    let (mut rows, next) = matching(store, (&filter, Some(&order.pattern)), after, most)?;
    rows.retain(|row| is_final(&row.status) && row.completed_at.is_some_and(|at| at < order.before));
    let unused = unused_of(store, &app.settings.workspaces, (&caller.organization, &rows), now_ms())?;
    let found: BTreeSet<ExecutionKey> = unused.iter().map(|workspace| workspace.execution).collect();
    let mut tokens = tokens_of(app, caller, &rows)?;
    let is_void = tokens.is_empty() && found.is_empty();
    if !order.is_dry && !is_void {
        tokens = with_retries(app.catalogue(), SLOTS_MAX, || {
            let tokens = tokens_of(app, caller, &rows)?;
            Ok((change(app, caller, order, (&rows, &found, &tokens))?, tokens))
        })?;
    }
    // Only what the audit entry names: another workspace may have become unused since.
    let removed = match order.is_dry {
        true => found,
        false => unused.iter().filter(|one| one.remove(remove_workspace)).map(|one| one.execution).collect(),
    };
    let mut parents = Parents::of(store);
    let mut sessions = Vec::new();
    for row in &rows {
        let shown = session(&mut parents, row)?;
        let tokens_revoked = tokens.get(&row.id).map_or(0, Vec::len);
        let workspace_removed = removed.contains(&row.key);
        let (id, key, execution_id) = (shown.id, shown.key, shown.execution_id);
        sessions.push(ReapedSession { id, key, execution_id, tokens_revoked, workspace_removed });
    }
    Ok(ReapedSessions { sessions, dry_run: order.is_dry, next_cursor: next.map(|key| key.to_string()) })
}

/// The credentials of sessions, by execution.
type Tokens = BTreeMap<String, Vec<Stored<Token>>>;

fn tokens_of(app: &App, caller: &Caller, rows: &[ExecutionRow]) -> Result<Tokens> {
    let executions: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut found = Tokens::new();
    if executions.is_empty() {
        return Ok(found);
    }
    let theirs = Some(("organization", caller.organization.clone()));
    for token in Repository::of(app.catalogue(), "").all::<Token>(theirs) {
        let token = token?;
        let of = token.body.session_of.clone().filter(|of| executions.contains(of.as_str()));
        if let Some(of) = of {
            found.entry(of).or_default().push(token);
        }
    }
    Ok(found)
}

/// The change that revokes the credentials.
fn change(
    app: &App,
    caller: &Caller,
    order: &ReapOrder,
    (rows, workspaces, tokens): (&[ExecutionRow], &BTreeSet<ExecutionKey>, &Tokens),
) -> Result<Change> {
    let installation = Repository::of(app.catalogue(), "");
    let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
    let mut ids: Vec<Value> = Vec::new();
    for token in tokens.values().flatten() {
        change.removals.push(Removal { expected: None, ..installation.removal(token) });
        change.puts.push(installation.put(&token.id, &RevokedToken::of(&token.body, now_ms()), 0)?);
        ids.push(token.id.as_str().into());
    }
    let is_reaped = |row: &&ExecutionRow| workspaces.contains(&row.key) || tokens.contains_key(&row.id);
    let sessions: Vec<Value> = rows.iter().filter(is_reaped).map(|row| row.session().into()).collect();
    if !sessions.is_empty() {
        let detail = Value::map([("sessions", Value::from(sessions)), ("tokens", ids.into())]);
        change.audit.push(entry(caller, "session.reap", &order.key, detail));
    }
    Ok(change)
}
