//! Decides rollouts at their thresholds.
//!
//! Every node runs it, and no node is special: a decision is one transaction on the versions that were read, so of several
//! nodes one writes it, and the others find the rollout ended.

use std::time::Duration;

use mainspring_store::{Change, ReadLimit, Removal};
use tokio::time::MissedTickBehavior;
use tracing::{debug, warn};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        permission::Role,
    },
    http::{
        problem::{Code, Problem, Result},
        request_slots::{Account, Kind as SlotKind, on_account},
    },
    resources::{
        Member, Rollout, RolloutStatus, WatchedRollout, Workflow,
        repository::{Listing, Repository, Resource, Stored, apply},
        rollout_key,
    },
    services::{
        rollout_figures::{Verdict, figures, judge},
        rollouts::{Decision, end},
    },
};

/// The interval in which watched rollouts are judged: one row of the store if there are none.
const INTERVAL: Duration = Duration::from_secs(10);

/// Rollouts that are judged in one round, those of five organizations. The next round continues behind them.
const ROUND_MAX: usize = 100;

/// The member to whom the request slots are charged: none, so that the members keep their own.
const SERVER: &str = "";

/// Judges rollouts until the task is aborted.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut after = None;
    loop {
        again.tick().await;
        if app.engine.is_draining() {
            return;
        }
        match round(&app, after.take()).await {
            Ok((_, next)) => after = next,
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
        let (count, next) = round(app, after).await?;
        decided += count;
        after = next;
        if after.is_none() {
            return Ok(decided);
        }
    }
}

/// Judges the rollouts behind one. Returns the number of decisions, and the id of the last one if more follow.
async fn round(app: &App, after: Option<String>) -> Result<(usize, Option<String>)> {
    let read = move |app: &App| {
        let listing = Listing { after, most: ReadLimit::of(ROUND_MAX), ..Listing::default() };
        Repository::of(app.catalogue(), "").list::<WatchedRollout>(listing)
    };
    let page = app.run(read).await?;
    let next = page.next_cursor(|last| last.id.clone());
    let mut decided = 0;
    for row in page.rows {
        let account = Account { kind: SlotKind::Ordinary, key: row.body.organization.clone(), member: SERVER.into() };
        let id = row.id.clone();
        match on_account(account, app.run(move |app| judge_one(app, &row))).await {
            Ok(has_decided) => decided += usize::from(has_decided),
            // Another node or a person has decided, or a person must.
            Err(problem) if problem.code == Code::Conflict || problem.code == Code::Forbidden => {
                debug!(rollout = id, error = problem.full_message(), "a rollout was not decided");
            }
            Err(problem) => {
                warn!(rollout = id, error = problem.full_message(), "a rollout was not decided; it is judged again");
            }
        }
    }
    Ok((decided, next))
}

/// Judges one rollout, and ends it at its thresholds. True if it did.
fn judge_one(app: &App, row: &Stored<WatchedRollout>) -> Result<bool> {
    let WatchedRollout { organization, workflow } = &row.body;
    let repository = Repository::of(app.catalogue(), organization);
    let rollout = repository.get::<Rollout>(&rollout_key(workflow, &row.id))?;
    let Some(rollout) = rollout.filter(|rollout| rollout.body.ended.is_none()) else {
        forget(app, &row.id)?;
        return Ok(false);
    };
    let both = figures(app, &row.id)?;
    let (status, reasons) = match judge(&rollout.body.plan, &both) {
        Some(Verdict::Exceeded(reasons)) => (RolloutStatus::Aborted, reasons),
        Some(Verdict::Kept(reasons)) if rollout.body.plan.promote => (RolloutStatus::Promoted, reasons),
        _ => return Ok(false),
    };
    let caller = in_the_name_of(app, organization, &rollout.body.by, &row.id)?;
    let decision = Decision { status, reason: reasons.join("; "), automatic: true, figures: Some(both) };
    let find = || repository.get::<Workflow>(workflow)?.ok_or_else(|| Problem::not_found("workflow"));
    end(app, &caller, &row.id, &decision, find)?;
    Ok(true)
}

/// Removes the row of a rollout that no longer runs. Another node may have removed it.
fn forget(app: &App, id: &str) -> Result<()> {
    let (kind, organization) = (WatchedRollout::KIND.into(), String::new());
    let removals = vec![Removal { kind, organization, id: id.into(), expected: None }];
    apply(app.catalogue(), &Change { removals, ..Change::default() }).map(drop)
}

/// The member who began a rollout, with the present role. A removed member may decide nothing.
fn in_the_name_of(app: &App, organization: &str, user: &str, rollout: &str) -> Result<Caller> {
    let member = Repository::of(app.catalogue(), organization).get::<Member>(user)?;
    Ok(Caller {
        organization: organization.into(),
        user: user.into(),
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
