//! Migrates the executions of workflows whose proposals were applied with `migrate`, some at a time.
//!
//! Every node runs it, and no node is special: an execution that is asked twice has migrated already, and the progress is one
//! row, of whose writers one wins. A node that dies leaves the progress where it was.

use std::time::Duration;

use mainspring_engine::{EngineError, clock::now_ms};
use mainspring_kernel::{input::Input, key::ExecutionKey, value::Value};
use mainspring_store::{AuditEntry, Change, ExecutionRow, ReadLimit, Removal, is_final};
use tokio::time::MissedTickBehavior;
use tracing::warn;

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        permission::Role,
    },
    http::{
        problem::{Code, Result},
        request_slots::{Account, Kind as SlotKind, on_account},
    },
    resources::{
        Member, MigrationEnd, MigrationRun, OpenMigration, StayReason, Workflow, proposal_key,
        repository::{Listing, Repository, Resource, Stored, apply, entry},
    },
    services::{
        migrations::{Target, reason, stays, unfinished},
        proposal_checks::check_decides,
    },
};

/// The interval of polls for open migrations: one row of the store if there are none.
const INTERVAL: Duration = Duration::from_secs(5);

/// Migrations that are continued in one round.
const ROUND_MAX: usize = 20;

/// Executions that are migrated before the progress is stored.
const STEP_EXECUTIONS: usize = 25;

/// Steps of a migration in one round, so that migrations of other organizations wait for a few hundred executions at most.
const STEPS_MAX: usize = 20;

/// Executions that stayed, of which the reasons are stored: the row of a migration has a few hundred kilobytes at most.
const STAYS_STORED_MAX: usize = 200;

/// Migrates until the task is aborted.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        if app.engine.is_draining() {
            return;
        }
        if let Err(problem) = poll(&app).await {
            warn!(error = problem.full_message(), "migrations were not continued; they are continued in five seconds");
        }
    }
}

/// Continues all open migrations. Returns the number of those that have not ended.
pub async fn poll(app: &App) -> Result<usize> {
    let read = |app: &App| {
        let listing = Listing { most: ReadLimit::of(ROUND_MAX), ..Listing::default() };
        Repository::of(app.catalogue(), "").list::<OpenMigration>(listing)
    };
    let mut left = 0;
    for row in app.run(read).await?.rows {
        for _ in 0..STEPS_MAX {
            let account =
                Account { kind: SlotKind::Compiling, key: row.body.organization.clone(), member: String::new() };
            match on_account(account, step(app, &row)).await {
                Ok(Step::More) => {}
                Ok(Step::Waits) => {
                    left += 1;
                    break;
                }
                Ok(Step::Ended) => break,
                Err(problem) => {
                    left += 1;
                    let error = problem.full_message();
                    warn!(migration = row.id, error, "a migration was not continued; it is continued in five seconds");
                    break;
                }
            }
        }
    }
    Ok(left)
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Executions are left.
    More,
    /// Executions were asked, whose nodes have not answered.
    Waits,
    Ended,
}

/// An execution in a step.
struct Candidate {
    row: ExecutionRow,
    input: Input,
    audit: AuditEntry,
}

/// The work of a step.
struct Work {
    run: Stored<MigrationRun>,
    target: Target,
    candidates: Vec<Candidate>,
    /// The last execution that was read; `None` if these are executions that were asked before.
    last: Option<ExecutionKey>,
}

/// The answer of an execution.
enum Answer {
    Migrated,
    /// It was asked, and its node has not answered.
    Asked,
    /// It can be compared to find the reasons.
    Refused,
    Stays(StayReason),
}

/// Migrates the next executions of a migration, and stores the progress.
async fn step(app: &App, row: &Stored<OpenMigration>) -> Result<Step> {
    let open = row.body.clone();
    let Some(work) = app.run(move |app| prepare(app, &open)).await? else { return Ok(Step::Ended) };
    let Work { run, target, candidates, last } = work;
    let mut answers = Vec::with_capacity(candidates.len());
    for Candidate { row, input, audit } in candidates {
        let answer = match last {
            None => asked(&row, &target),
            Some(_) => ask(app, &row, input, audit).await?,
        };
        answers.push((row, answer));
    }
    let open = row.body.clone();
    app.run(move |app| store(app, &open, (run, last), &target, answers)).await
}

/// Reads the next executions. `None` if the migration has ended.
fn prepare(app: &App, open: &OpenMigration) -> Result<Option<Work>> {
    let OpenMigration { organization, workflow, proposal } = open;
    let repository = Repository::of(app.catalogue(), organization);
    let run = repository.get::<MigrationRun>(&proposal_key(workflow, proposal))?;
    let Some(run) = run.filter(|run| run.body.ended.is_none()) else { return forget(app, open).map(|()| None) };
    let workflow = repository.get::<Workflow>(workflow)?;
    let workflow = match workflow.filter(|workflow| workflow.body.hash == run.body.hash) {
        Some(workflow) => workflow,
        None => return end(app, open, run, Some("the workflow has another definition now")).map(|()| None),
    };
    let caller = in_the_name_of(app, open, &run.body)?;
    if check_decides(&caller, &workflow).is_err() {
        let reason = "the member who applied the proposal may no longer apply it";
        return end(app, open, run, Some(reason)).map(|()| None);
    }
    let target = match Target::of(app, organization, &workflow.body) {
        Ok(target) => target,
        Err(problem) if matches!(problem.code, Code::Unavailable | Code::InternalError | Code::RateLimited) => {
            return Err(problem);
        }
        Err(problem) => return end(app, open, run, Some(&problem.message)).map(|()| None),
    };
    let are_asked = !run.body.asked.is_empty();
    let rows: Vec<ExecutionRow> = if are_asked {
        let keys = run.body.asked.iter().filter_map(|key| ExecutionKey::parse(key));
        let rows: Result<Vec<_>, _> = keys.map(|key| app.engine.store().execution(key)).collect();
        rows?.into_iter().flatten().collect()
    } else {
        let after = run.body.after.as_deref().and_then(ExecutionKey::parse);
        unfinished(app, organization, &workflow.id, after, STEP_EXECUTIONS)?
    };
    if rows.is_empty() && !are_asked {
        return end(app, open, run, None).map(|()| None);
    }
    let last = rows.last().filter(|_| !are_asked).map(|row| row.key);
    // Executions that started with this definition are not part of the migration.
    let is_new = |row: &ExecutionRow| row.workflow_hash == target.hash && row.started_at >= run.body.since;
    let rows = rows.into_iter().filter(|row| !is_new(row));
    let candidates = rows.map(|row| candidate(&caller, row, (&run.body, &target), proposal)).collect();
    Ok(Some(Work { candidates, run, target, last }))
}

fn candidate(caller: &Caller, row: ExecutionRow, (run, target): (&MigrationRun, &Target), proposal: &str) -> Candidate {
    let input = Input::Migrate {
        plan: target.bytes.clone(),
        version: Some(run.version.clone()),
        by: caller.user.clone(),
        reason: format!("proposal {proposal}"),
    };
    let detail = [
        ("proposal", Value::from(proposal)),
        ("from", row.workflow_hash.as_str().into()),
        ("to", target.hash.as_str().into()),
    ];
    let audit = entry(caller, "execution.migrate", &row.id, Value::map(detail));
    Candidate { row, input, audit }
}

/// Asks an execution to migrate, at this node or by its inbox.
///
/// # Errors
/// Fails if the node cannot ask any execution now.
async fn ask(app: &App, row: &ExecutionRow, input: Input, audit: AuditEntry) -> Result<Answer> {
    if is_of(row, &input) {
        return Ok(Answer::Migrated);
    }
    let answer = app.engine.take(row.key, input.clone(), Some(audit.clone())).await;
    Ok(match answer {
        Ok(true) => Answer::Migrated,
        Ok(false) => Answer::Refused,
        Err(EngineError::NotHere) => {
            // The node that takes the message finds its effect; this entry records only the request.
            let audit = AuditEntry { action: format!("{}.posted", audit.action), ..audit };
            let key = row.key;
            app.run(move |app| Ok(app.engine.enqueue(key, &input, Some(&audit))?)).await?;
            Answer::Asked
        }
        Err(EngineError::Quarantined(_)) => Answer::Stays(reason("quarantined", "the execution is quarantined")),
        Err(error @ (EngineError::Busy | EngineError::Stopped(_))) => return Err(error.into()),
        Err(error) => Answer::Stays(reason("not_asked", &error.to_string())),
    })
}

/// True if the row of an execution has the plan of the input already.
fn is_of(row: &ExecutionRow, input: &Input) -> bool {
    matches!(input, Input::Migrate { plan, .. } if mainspring_kernel::hash::Hash::of(&plan.0) == row.plan_hash)
}

/// The answer of an execution that was asked by its inbox, as its row shows it.
fn asked(row: &ExecutionRow, target: &Target) -> Answer {
    match row.plan_hash == target.plan_hash {
        true => Answer::Migrated,
        false if is_final(&row.status) => {
            Answer::Stays(reason("execution_ending", "the execution ended before its node answered"))
        }
        false => Answer::Asked,
    }
}

/// Stores the progress after a step. Another node may have done the same step.
fn store(
    app: &App,
    open: &OpenMigration,
    (mut run, last): (Stored<MigrationRun>, Option<ExecutionKey>),
    target: &Target,
    answers: Vec<(ExecutionRow, Answer)>,
) -> Result<Step> {
    let body = &mut run.body;
    body.after = last.map(|last| last.to_string()).or(body.after.take());
    let before = std::mem::take(&mut body.asked);
    for (row, answer) in &answers {
        let reasons = match answer {
            Answer::Migrated => {
                body.migrated += 1;
                continue;
            }
            Answer::Asked if is_waiting(app, row, target)? => {
                body.asked.push(row.key.to_string());
                continue;
            }
            Answer::Asked | Answer::Refused => refusal(app, row, target),
            Answer::Stays(reason) => vec![reason.clone()],
        };
        if reasons.is_empty() {
            // It has migrated or ended since.
            body.migrated += 1;
            continue;
        }
        body.stayed += 1;
        if body.stays.len() < STAYS_STORED_MAX {
            body.stays.push(stays(row, reasons));
        }
    }
    let waits = before == body.asked && !before.is_empty();
    if waits {
        return Ok(Step::Waits);
    }
    let has_asked = !body.asked.is_empty();
    let repository = Repository::of(app.catalogue(), &open.organization);
    let puts = vec![repository.put(&run.id, &run.body, run.version)?];
    apply(app.catalogue(), &Change { puts, ..Change::default() }).map(drop)?;
    Ok(if has_asked { Step::Waits } else { Step::More })
}

/// True if the message that asks an execution is still in its inbox, or its effect is not in the row yet.
fn is_waiting(app: &App, row: &ExecutionRow, target: &Target) -> Result<bool> {
    let id = format!("migrate {}", target.plan_hash.prefixed());
    Ok(mainspring_engine::inbox::is_waiting(&**app.engine.store(), row.key, Some(&id))?)
}

/// The reasons for which an execution has refused; none if it has the plan now.
fn refusal(app: &App, row: &ExecutionRow, target: &Target) -> Vec<StayReason> {
    let state = match app.engine.state(row.key) {
        Ok(state) => state,
        Err(error) => return vec![reason("journal_unreadable", &error.to_string())],
    };
    if state.start.as_ref().is_some_and(|start| start.plan_hash == target.plan_hash) {
        return Vec::new();
    }
    match target.reasons(&state) {
        reasons if reasons.is_empty() => {
            vec![reason("changed_meanwhile", "the execution could not migrate at that time; apply again to retry")]
        }
        reasons => reasons,
    }
}

/// Writes that nothing more is migrated, with the reason if executions are left.
fn end(app: &App, open: &OpenMigration, mut run: Stored<MigrationRun>, reason: Option<&str>) -> Result<()> {
    let at = now_ms();
    run.body.ended = Some(MigrationEnd { reason: reason.map(Into::into), at });
    let repository = Repository::of(app.catalogue(), &open.organization);
    let caller = in_the_name_of(app, open, &run.body)?;
    let detail = [
        ("proposal", Value::from(open.proposal.as_str())),
        ("hash", run.body.hash.as_str().into()),
        ("migrated", run.body.migrated.into()),
        ("stayed", run.body.stayed.into()),
        ("reason", reason.map_or(Value::Null, Value::from)),
    ];
    let audit = vec![entry(&caller, "workflow.migration_end", &open.workflow, Value::map(detail))];
    let puts = vec![repository.put(&run.id, &run.body, run.version)?];
    let change = Change { puts, audit, removals: vec![removal(open)], sealing: *app.engine.key() };
    apply(app.catalogue(), &change).map(drop)
}

/// Removes the row of a migration that has ended. Another node may have removed it.
fn forget(app: &App, open: &OpenMigration) -> Result<()> {
    let removals = vec![removal(open)];
    apply(app.catalogue(), &Change { removals, ..Change::default() }).map(drop)
}

fn removal(open: &OpenMigration) -> Removal {
    Removal { kind: OpenMigration::KIND.into(), organization: String::new(), id: open.id(), expected: None }
}

/// The member who applied the proposal, with the present role. A removed member may migrate nothing, and neither may a later
/// member with the same id.
fn in_the_name_of(app: &App, open: &OpenMigration, run: &MigrationRun) -> Result<Caller> {
    let member = Repository::of(app.catalogue(), &open.organization).get::<Member>(&run.by)?;
    let member = member.filter(|member| member.body.created_at <= run.since);
    Ok(Caller {
        organization: open.organization.clone(),
        user: run.by.clone(),
        role: member.map_or(Role::Agent, |member| member.body.role),
        kind: Kind::Person,
        token: format!("migration/{}", open.proposal),
        sign_in: None,
        scopes: Vec::new(),
        is_operator: false,
        made_by: None,
        known_to: None,
        expires_at: None,
    })
}
