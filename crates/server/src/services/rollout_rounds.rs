//! Decides rollouts at their thresholds.
//!
//! Every node runs it, and no node is special: a decision is one transaction on the versions that were read, so of several
//! nodes one writes it, and the others find the rollout ended.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use mainspring_engine::clock::now_ms;
use mainspring_store::{Change, ReadLimit, Removal};
use tokio::{task::JoinHandle, time::MissedTickBehavior};
use tracing::{debug, warn};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        permission::Role,
    },
    http::{
        problem::{Problem, Result},
        request_slots::{Account, Kind as SlotKind, on_account},
    },
    resources::{
        Member, Rollout, RolloutStatus, WatchedRollout, Workflow,
        repository::{Listing, Repository, Resource, Stored, apply},
        rollout_key,
    },
    services::{
        rollout_figures::{Verdict, figures, judge},
        rollout_progress::{progress, store_refusal},
        rollouts::{Decision, end},
    },
};

/// The interval in which watched rollouts are judged: one row of the store if there are none.
const INTERVAL: Duration = Duration::from_secs(10);

/// Rollouts that are read in one round, those of five organizations. The next round continues behind them.
const ROUND_MAX: usize = 100;

/// Time until a refused decision is repeated. A decision can run the scenarios of a workflow, for which the reason must first
/// end.
const RETRY_MS: u64 = 60_000;

/// The member to whom the request slots are charged: none, so that the members keep their own.
const SERVER: &str = "";

/// Judges rollouts until the task is aborted. Each organization has a task of its own, so that none waits for the scenarios of
/// another. An organization whose task still runs is left out of the round.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut after, mut running) = (None, HashMap::<String, JoinHandle<usize>>::new());
    loop {
        again.tick().await;
        if app.engine.is_draining() {
            return;
        }
        running.retain(|_, task| !task.is_finished());
        match read_round(&app, after.take()).await {
            Ok((organizations, next)) => {
                after = next;
                for (organization, rows) in organizations {
                    let judge = judge_all(app.clone(), organization.clone(), rows);
                    running.entry(organization).or_insert_with(|| tokio::spawn(judge));
                }
            }
            Err(problem) => {
                warn!(error = problem.full_message(), "rollouts were not read; they are read again in ten seconds");
            }
        }
    }
}

/// Judges all rollouts once. Returns the number of decisions.
pub async fn poll(app: &App) -> Result<usize> {
    let (mut decided, mut after) = (0, None);
    loop {
        let (organizations, next) = read_round(app, after).await?;
        let judge = |(organization, rows)| tokio::spawn(judge_all(app.clone(), organization, rows));
        for task in organizations.into_iter().map(judge).collect::<Vec<_>>() {
            decided += task.await.unwrap_or_default();
        }
        after = next;
        if after.is_none() {
            return Ok(decided);
        }
    }
}

/// The rollouts of a round by organization.
type Organizations = BTreeMap<String, Vec<Stored<WatchedRollout>>>;

/// Reads the rollouts behind one. Returns them with the id of the last one if more follow.
async fn read_round(app: &App, after: Option<String>) -> Result<(Organizations, Option<String>)> {
    let read = move |app: &App| {
        let listing = Listing { after, most: ReadLimit::of(ROUND_MAX), ..Listing::default() };
        Repository::of(app.catalogue(), "").list::<WatchedRollout>(listing)
    };
    let page = app.run(read).await?;
    let next = page.next_cursor(|last| last.id.clone());
    let mut organizations = Organizations::new();
    for row in page.rows {
        organizations.entry(row.body.organization.clone()).or_default().push(row);
    }
    Ok((organizations, next))
}

/// Judges rollouts of one organization, one after the other. Returns the number of decisions.
async fn judge_all(app: App, organization: String, rows: Vec<Stored<WatchedRollout>>) -> usize {
    let mut decided = 0;
    for row in rows {
        let account = Account { kind: SlotKind::Ordinary, key: organization.clone(), member: SERVER.into() };
        let id = row.id.clone();
        match on_account(account, app.run(move |app| judge_one(app, &row))).await {
            Ok(has_decided) => decided += usize::from(has_decided),
            Err(problem) => {
                warn!(rollout = id, error = problem.full_message(), "a rollout was not judged; it is judged again");
            }
        }
    }
    decided
}

/// Judges one rollout, and ends it at its thresholds. True if it did.
fn judge_one(app: &App, row: &Stored<WatchedRollout>) -> Result<bool> {
    let WatchedRollout { organization, workflow } = &row.body;
    let (repository, key) = (Repository::of(app.catalogue(), organization), rollout_key(workflow, &row.id));
    let rollout = repository.get::<Rollout>(&key)?;
    let Some(rollout) = rollout.filter(|rollout| rollout.body.ended.is_none()) else {
        forget(app, &row.id)?;
        return Ok(false);
    };
    let both = figures(app, organization, &rollout)?;
    let (status, reasons) = match judge(&rollout.body.plan, &both) {
        Some(Verdict::Exceeded(reasons)) => (RolloutStatus::Aborted, reasons),
        Some(Verdict::Kept(reasons)) if rollout.body.plan.promote => (RolloutStatus::Promoted, reasons),
        _ => return Ok(false),
    };
    // An abort has no conditions, so it is never delayed.
    let refusal = progress(repository, &key)?.body.last_refusal;
    let is_too_early = refusal.is_some_and(|refusal| now_ms() < refusal.at.saturating_add(RETRY_MS));
    if status == RolloutStatus::Promoted && is_too_early {
        return Ok(false);
    }
    let caller = in_the_name_of(app, organization, &rollout.body, &row.id)?;
    let decision = Decision { status, reason: reasons.join("; "), automatic: true, figures: Some(both) };
    let find = || repository.get::<Workflow>(workflow)?.ok_or_else(|| Problem::not_found("workflow"));
    let Err(problem) = end(app, &caller, &row.id, &decision, find) else { return Ok(true) };
    if repository.get::<Rollout>(&key)?.is_none_or(|rollout| rollout.body.ended.is_some()) {
        debug!(rollout = row.id, error = problem.full_message(), "another node or a person has decided a rollout");
        return Ok(false);
    }
    warn!(rollout = row.id, error = problem.full_message(), "a rollout was not decided; it is decided again");
    store_refusal(app, organization, &key, &problem.message)?;
    Ok(false)
}

/// Removes the row of a rollout that no longer runs. Another node may have removed it.
fn forget(app: &App, id: &str) -> Result<()> {
    let (kind, organization) = (WatchedRollout::KIND.into(), String::new());
    let removals = vec![Removal { kind, organization, id: id.into(), expected: None }];
    apply(app.catalogue(), &Change { removals, ..Change::default() }).map(drop)
}

/// The member who began a rollout, with the present role. A removed member may decide nothing, and neither may a later member
/// with the same id.
fn in_the_name_of(app: &App, organization: &str, began: &Rollout, rollout: &str) -> Result<Caller> {
    let user = &began.by;
    let member = Repository::of(app.catalogue(), organization).get::<Member>(user)?;
    let member = member.filter(|member| member.body.created_at <= began.since);
    Ok(Caller {
        organization: organization.into(),
        user: user.clone(),
        role: member.map_or(Role::Agent, |member| member.body.role),
        kind: Kind::Person,
        token: format!("rollout/{rollout}"),
        sign_in: None,
        scopes: Vec::new(),
        is_operator: false,
        made_by: None,
        known_to: None,
        expires_at: None,
    })
}
