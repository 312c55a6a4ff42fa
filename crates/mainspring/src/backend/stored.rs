//! The operations that a data folder and a shared store have in common: reading, verifying, quarantine and erasure.

use std::collections::BTreeSet;

use mainspring_engine::{
    EngineError,
    audit::of_user,
    envelope, erasure,
    execution_tree::ExecutionTree,
    quarantine::{self, Act, Place as StorePlace, Released},
    receipts::ReceiptCounts,
};
use mainspring_kernel::{
    history::History,
    journal::Verified,
    key::ExecutionKey,
    note::Note,
    record::Purpose,
    time::rfc3339,
    value::{Map, Value},
};
use mainspring_server::{
    http::problem::Problem,
    services::pending_approvals::{self, Cursor, Pending},
};
use mainspring_store::{AuditEntry, ExecutionRow, Filter, QuarantinedRow};

use super::{
    contract::{
        ApprovalPage, Erased, ExecutionDetails, ListQuery, ListedExecution, QuarantineChange, Verdict, Verification,
    },
    read_store::{ReadStore, find, no_executions},
};
use crate::{
    error::CliError,
    output::{
        approvals::{ApprovalView, ApproverView},
        execution_view::{AttemptPage, ExecutionView},
        summary::Summary,
        table::Row,
        text::{counted, shown},
    },
    paths, runner,
};

/// Rows of a store that are read at a time.
const PAGE: usize = 1_000;

pub(super) fn list(read: &ReadStore, query: &ListQuery) -> Result<Vec<ListedExecution>, CliError> {
    let filter = Filter { statuses: query.statuses.clone(), workflow: query.workflow.clone(), ..Filter::default() };
    let rows = read.store.executions(&filter, None, query.limit).map_err(EngineError::from)?;
    if rows.is_empty() && !query.is_narrowed() {
        return Err(no_executions(&read.location));
    }
    Ok(rows.iter().map(|row| ListedExecution { row: Row::from(row), value: row_value(row) }).collect())
}

impl From<&ExecutionRow> for Row {
    fn from(row: &ExecutionRow) -> Self {
        Self {
            id: row.id.clone(),
            status: row.status.clone(),
            workflow: row.workflow.clone(),
            started_at: row.started_at,
            completed_at: row.completed_at,
            outcome: row.outcome.clone(),
            error: row.error.clone(),
            parent: row.started_by(),
        }
    }
}

/// A row as JSON, with the fields of the second specification.
fn row_value(row: &ExecutionRow) -> Value {
    Value::map([
        ("executionId", row.id.as_str().into()),
        ("key", row.key.to_string().into()),
        ("workflow", row.workflow.as_deref().into()),
        ("workflowName", row.names.workflow_name.as_deref().into()),
        ("parentExecutionId", row.started_by().into()),
        ("workflowVersion", row.workflow_version.as_deref().into()),
        ("workflowHash", row.workflow_hash.as_str().into()),
        ("status", row.status.as_str().into()),
        ("outcome", row.outcome.as_deref().into()),
        ("error", row.error.as_deref().into()),
        ("triggerType", row.trigger_type.as_str().into()),
        ("initiatorType", row.initiator_type.as_str().into()),
        ("initiatorUserId", row.initiator_user_id.as_deref().into()),
        ("idempotencyKey", row.idempotency_key.as_deref().into()),
        ("attemptCount", row.attempt_count.into()),
        ("startedAt", rfc3339(row.started_at).into()),
        ("completedAt", row.completed_at.map(rfc3339).into()),
    ])
}

pub(super) fn show(read: &ReadStore, name: &str, page: AttemptPage) -> Result<ExecutionDetails, CliError> {
    let row = find(&*read.store, name)?;
    let mut history = History::default();
    let loaded =
        read.loader.frames(row.key, |state, frame| history.add(&state.plan, frame)).map_err(EngineError::from)?;
    let loaded = loaded.ok_or(EngineError::NoSuchExecution)?;
    let state = loaded.journal.state;
    let tree = ExecutionTree::of(&read.loader, &read.key, &state)?;
    let attempts = history.attempts.clone();
    history.attempts = history.attempts.drain(page.range(attempts.len())).collect();
    let view = ExecutionView {
        name: state.plan.name.clone().unwrap_or_else(|| "workflow".into()),
        workflow_hash: state.plan.workflow_hash.prefixed(),
        began: state.start.as_ref().map(|start| (start.at, start.by.clone(), row.key.to_string())),
        parent: row.started_by(),
        quarantined: loaded.quarantined,
        unattended: (!runner::is_settled(state.status()) && !read.has_engine()).then(|| read.unattended(name)),
        attempts,
        summary: Summary::of(&state, &tree),
    };
    Ok(ExecutionDetails { view, envelope: envelope::of_execution(&state, &history, &tree.gates) })
}

pub(super) fn approvals(read: &ReadStore, limit: usize, after: Option<&str>) -> Result<ApprovalPage, CliError> {
    let after = after.map(cursor).transpose()?;
    let page = pending_approvals::pending(&*read.store, &read.loader, &read.key, after.as_ref(), limit)
        .map_err(unavailable)?;
    let approvals = page.gates.iter().map(|pending| approval_view(read, pending)).collect::<Result<Vec<_>, _>>()?;
    let next = page.next.map(|(execution, step, gate)| format!("{execution}:{step}:{gate}"));
    Ok(ApprovalPage { approvals, next, unreadable: page.broken })
}

fn unavailable(problem: Problem) -> CliError {
    CliError::internal("store_unavailable", problem.full_message())
}

fn approval_view(read: &ReadStore, pending: &Pending) -> Result<ApprovalView, CliError> {
    let Pending { listed, row, open } = pending;
    let catalogue = read.store.catalogue();
    let members = pending_approvals::named(catalogue, row, open).map_err(unavailable)?;
    let approvers = match members {
        Some(members) => {
            let named = |member: &pending_approvals::Approver| ApproverView {
                user: member.user_id.clone(),
                can_decide: Some(member.can_decide),
            };
            members.iter().map(named).collect()
        }
        None => open.gate.approvers.iter().map(|user| ApproverView { user: user.clone(), can_decide: None }).collect(),
    };
    Ok(ApprovalView {
        execution: row.id.clone(),
        workflow: row.names.workflow_name.clone().or_else(|| row.workflow.clone()),
        step: open.step.clone(),
        prompt: open.gate.prompt.clone(),
        approvers,
        owner: row.organization.as_ref().and(row.initiator_user_id.clone()),
        count: open.gate.count.into(),
        approved_by: open.gate.approved_by.clone(),
        since: Some(listed.opened_at),
        until: open.gate.expires_at,
        default_action: open.gate.on_timeout.name().into(),
        can_be_approved: pending_approvals::are_enough(catalogue, row, open).map_err(unavailable)?,
        form: (open.gate.purpose == Purpose::Form).then(|| open.gate.items.get("form").cloned()).flatten(),
        url: None,
    })
}

fn cursor(text: &str) -> Result<Cursor, CliError> {
    let unknown = || CliError::bad_input("bad_cursor", "--cursor must be the one of the previous page");
    let (execution, rest) = text.split_once(':').ok_or_else(unknown)?;
    let (step, gate) = rest.rsplit_once(':').ok_or_else(unknown)?;
    let execution = ExecutionKey::parse(execution).ok_or_else(unknown)?;
    Ok((execution, step.to_string(), gate.parse().map_err(|_| unknown())?))
}

pub(super) fn verify(
    read: &ReadStore,
    name: Option<&str>,
    report: &mut dyn FnMut(Verification),
) -> Result<(), CliError> {
    if let Some(name) = name {
        report(verify_one(read, &find(&*read.store, name)?));
        return Ok(());
    }
    let mut before = None;
    loop {
        let rows = read.store.executions(&Filter::default(), before, PAGE).map_err(EngineError::from)?;
        let Some(last) = rows.last() else {
            return if before.is_some() { Ok(()) } else { Err(no_executions(&read.location)) };
        };
        before = Some(last.key);
        rows.iter().for_each(|row| report(verify_one(read, row)));
    }
}

fn verify_one(read: &ReadStore, row: &ExecutionRow) -> Verification {
    let found = match read.loader.verify_with_columns(row.key) {
        Ok(Some((verified, differences))) if differences.is_empty() => Ok(verified),
        Ok(Some((_, differences))) => {
            let named: Vec<String> = differences.iter().map(ToString::to_string).collect();
            Err(format!("the journal is valid, and columns of the store differ from it: {}", named.join("; ")))
        }
        Ok(None) => Err("its journal is missing".to_string()),
        Err(error) => Err(error.to_string()),
    };
    let found = found.and_then(|verified| Ok((verified, receipts_of(read, row.key)?)));
    let ended = read.loader.forced_end(row.key).ok().flatten();
    let value = verification_value(row, &found, ended.as_ref());
    let ended = ended.map(|note| {
        let (at, by, reason) = (rfc3339(note.at), shown(&note.by), shown(&note.reason));
        format!("; ended in quarantine at {at} by {by}, sealed: {reason}")
    });
    let ended = ended.unwrap_or_default();
    let unsigned_receipts = Some(found.as_ref().map_or(0, |(_, receipts)| receipts.unsigned));
    let verdict = match found {
        Ok((verified, receipts)) => {
            let erased: Vec<_> =
                verified.erased.iter().map(|(frame, place)| format!("frame {frame}, value {place}")).collect();
            let erased = if erased.is_empty() { String::new() } else { format!("; erased: {}", erased.join("; ")) };
            Verdict::Sound(format!(
                "{} in the chain, {} decided again with the same result, head sealed{}{erased}{ended}",
                counted(verified.frames, "frame", "frames"),
                verified.decided_again,
                receipts_text(&receipts)
            ))
        }
        Err(why) => Verdict::Broken(format!("{why}{ended}")),
    };
    Verification { subject: row.id.clone(), verdict, unsigned_receipts, value }
}

/// Checks the receipts of an execution, and passes each as JSON.
pub(super) fn receipts(read: &ReadStore, name: &str, report: &mut dyn FnMut(Value)) -> Result<(), CliError> {
    let row = find(&*read.store, name)?;
    let found = read.loader.receipts(row.key, |checked| report(checked.to_value())).map_err(EngineError::from)?;
    found.map(drop).ok_or_else(|| EngineError::NoSuchExecution.into())
}

/// Checks the signatures of an execution's receipts.
fn receipts_of(read: &ReadStore, execution: ExecutionKey) -> Result<ReceiptCounts, String> {
    let found = read.loader.receipts(execution, drop).map_err(|error| error.to_string())?;
    let counts = found.ok_or("its journal is missing")?;
    match counts.broken {
        Some(why) => Err(why),
        None => Ok(counts),
    }
}

fn receipts_text(counts: &ReceiptCounts) -> String {
    let mut text = String::new();
    if counts.proven > 0 {
        let executors: BTreeSet<String> = counts.executors.values().map(|known| shown(&known.name)).collect();
        let executors: Vec<String> = executors.into_iter().collect();
        text.push_str(&format!(
            "; {} signed by {}",
            counted(counts.proven, "receipt", "receipts"),
            executors.join(", ")
        ));
    }
    if counts.unsigned > 0 {
        let unsigned = counted(counts.unsigned, "receipt", "receipts");
        text.push_str(&format!("; {unsigned} unsigned: recorded before receipts were signed"));
    }
    text
}

fn receipts_value(counts: &ReceiptCounts) -> Value {
    let executors: Vec<Value> = counts.executors.values().map(|known| known.to_value()).collect();
    Value::map([
        ("executors", executors.into()),
        ("signed", counts.proven.into()),
        ("unsigned", counts.unsigned.into()),
    ])
}

fn verification_value(
    row: &ExecutionRow,
    found: &Result<(Verified, ReceiptCounts), String>,
    ended: Option<&Note>,
) -> Value {
    let mut map = Map::from([
        ("executionId".to_string(), Value::from(row.id.as_str())),
        ("ok".to_string(), found.is_ok().into()),
    ]);
    match found {
        Ok((verified, receipts)) => {
            let place = |(frame, place): &(u64, usize)| {
                Value::map([("frame", (*frame).into()), ("value", (*place as u64).into())])
            };
            map.insert("frames".into(), verified.frames.into());
            map.insert("decidedAgain".into(), verified.decided_again.into());
            map.insert("receipts".into(), receipts_value(receipts));
            map.insert("erased".into(), verified.erased.iter().map(place).collect::<Vec<_>>().into());
        }
        Err(why) => drop(map.insert("error".into(), why.as_str().into())),
    }
    if let Some(note) = ended {
        let value = Value::map([
            ("at", rfc3339(note.at).into()),
            ("by", note.by.as_str().into()),
            ("reason", note.reason.as_str().into()),
        ]);
        map.insert("endedInQuarantine".into(), value);
    }
    Value::Map(map)
}

pub(super) fn quarantined(read: &ReadStore, report: &mut dyn FnMut(&str, &str)) -> Result<(), CliError> {
    let mut after = None;
    loop {
        let rows = read.store.quarantined(None, after, PAGE).map_err(EngineError::from)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.execution);
        rows.iter().for_each(|row| report(&name(row), &row.reason));
    }
}

fn name(row: &QuarantinedRow) -> String {
    row.id.clone().unwrap_or_else(|| row.execution.to_string())
}

/// Verifies the journal of a quarantined execution again, and releases it.
pub(super) fn release(read: &ReadStore, name: &str, reason: &str) -> Result<QuarantineChange, CliError> {
    let row = find(&*read.store, name)?;
    let work = |place: StorePlace<'_>, act: &Act<'_>| quarantine::release(place, row.key, act);
    let released = acted(read, &row, ("quarantine.release", reason, Map::new()), work)?;
    let who = read.location.engine_description(&*read.store);
    let next = who.map_or_else(|| read.location.help(), |who| format!("{who} continues it"));
    let (status, message) = match released {
        Released::Resumed => ("released", format!("released; {next}")),
        Released::Canceled => {
            ("cancelled", format!("released and cancelled, because its parent has continued without it; {next}"))
        }
    };
    Ok(QuarantineChange { id: row.id, status: status.into(), message })
}

/// Ends a quarantined execution without its journal.
pub(super) fn end_quarantined(read: &ReadStore, name: &str, reason: &str) -> Result<QuarantineChange, CliError> {
    let row = find(&*read.store, name)?;
    let work = |place: StorePlace<'_>, act: &Act<'_>| quarantine::force_end(place, row.key, act);
    acted(read, &row, ("quarantine.end", reason, Map::new()), work)?;
    let message = "ended; its journal stays as it is, and `mainspring verify` names the end".into();
    Ok(QuarantineChange { id: row.id, status: "ended".into(), message })
}

/// Erases values. The chain stays valid, and `verify` names the erased values.
pub(super) fn erase(read: &ReadStore, name: &str, steps: &[String], reason: &str) -> Result<Erased, CliError> {
    let row = find(&*read.store, name)?;
    let named: Vec<Value> = steps.iter().map(|step| step.as_str().into()).collect();
    let detail = Map::from([("steps".to_string(), named.into())]);
    let work = |place: StorePlace<'_>, act: &Act<'_>| erasure::erase(place, row.key, steps, act);
    let count = acted(read, &row, ("execution.erase", reason, detail), work)? as u64;
    Ok(Erased { id: row.id, count })
}

/// Changes an execution in the store, with an entry in its organization's audit log.
fn acted<T>(
    read: &ReadStore,
    row: &ExecutionRow,
    (action, reason, mut detail): (&str, &str, Map),
    work: impl FnOnce(StorePlace<'_>, &Act<'_>) -> Result<T, EngineError>,
) -> Result<T, CliError> {
    let (store, by) = (read.location.store()?, paths::user());
    detail.insert("reason".into(), reason.into());
    let audit: Vec<AuditEntry> = of_user(row, &by, action, detail).into_iter().collect();
    let place = StorePlace { store: &*store, loader: &read.loader, data_dir: read.location.home() };
    Ok(work(place, &Act { key: &read.key, by: &by, reason, audit: &audit })?)
}
