//! The sender of prompts: delivers due prompts to the orchestrators of their organizations.
//!
//! A prompt is removed after the endpoint has accepted it, so a crash in between repeats it with the same id. One node
//! sends for an organization: the owner of the partition that its id belongs to. While the owner changes, two nodes can
//! send the same prompt; one of them records the result.

use std::time::Duration;

use mainspring_store::Change;
use mainspring_triggers::limits::{RETRY_LATEST_MS, RETRY_WITHIN_MS};
use tokio::time::MissedTickBehavior;
use tracing::warn;

use super::queue::{due_removal, entry, put_due, take};
use crate::{
    app::App,
    http::problem::Result,
    resources::{
        DuePrompt, Member, Prompt, PromptFailure, PromptState, RunOutcome, TriggerState, due_id,
        repository::{Repository, Stored, apply, with_retries},
    },
    services::{
        events::{
            cloud_event::of_prompt,
            delivery::{Delivered, DeliveryFailure, Outgoing, post},
            failures::Attempted,
            partition_owner::owner,
        },
        schedule_rounds::{DueRow, Rounds},
    },
};

/// The interval in which due prompts are read: one row of the store if none is due.
const INTERVAL: Duration = Duration::from_millis(500);

/// Attempts of a write that conflicts with one of the run log.
const TRIES: usize = 20;

impl DueRow for DuePrompt {
    const LONGEST_DELAY_MS: Option<u64> = Some(RETRY_LATEST_MS);

    fn organization(&self) -> &str {
        &self.organization
    }

    fn own(app: &App) -> Result<impl Fn(&Self) -> bool> {
        let owns = owner(app)?;
        Ok(move |row: &Self| owns(&row.organization))
    }
}

/// Sends prompts until the task is aborted.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rounds = Rounds::<DuePrompt>::default();
    loop {
        tokio::select! {
            _ = again.tick() => {
                if app.engine.is_draining() {
                    return;
                }
                if let Err(problem) = rounds.read(&app).await {
                    warn!(error = problem.full_message(), "due prompts were not read; they are read again");
                }
            }
            () = rounds.finish_one(), if rounds.is_running() => {}
        }
        rounds.start(&app, deliver);
    }
}

/// Sends the prompts that are due now, once each. Returns their number.
pub async fn poll(app: &App) -> Result<usize> {
    let mut rounds = Rounds::<DuePrompt>::default();
    let count = rounds.read(app).await?;
    rounds.start(app, deliver);
    while rounds.is_running() {
        rounds.finish_one().await;
        rounds.start(app, deliver);
    }
    Ok(count)
}

/// Sends a due prompt once, and records the result.
async fn deliver(app: App, row: Stored<DuePrompt>, _: u64) -> Result<()> {
    let due = row.clone();
    let Some(prompt) = app.run(move |app| read(app, &due)).await? else { return Ok(()) };
    let organization = row.body.organization;
    if !prompt.is_owned {
        return app.run(move |app| refuse(app, &organization, &prompt.stored)).await;
    }
    let prompt = prompt.stored;
    let sent = send(&app, &organization, &prompt).await;
    app.run(move |app| record(app, &organization, &prompt, &sent)).await
}

/// A prompt that is due.
struct Due {
    stored: Stored<Prompt>,
    /// True if its owner is a member.
    is_owned: bool,
}

/// Reads the prompt of a row. A row without one is removed.
fn read(app: &App, row: &Stored<DuePrompt>) -> Result<Option<Due>> {
    let own = Repository::of(app.catalogue(), &row.body.organization);
    let prompt = own.get::<Prompt>(&row.body.prompt)?;
    let prompt = prompt.filter(|prompt| prompt.body.due == row.id);
    if prompt.is_none() {
        let removals = vec![Repository::of(app.catalogue(), "").removal(row)];
        // Another node may have removed it.
        let _ = apply(app.engine.store().catalogue(), &Change { removals, ..Change::default() })?;
    }
    let Some(stored) = prompt else { return Ok(None) };
    let is_owned = own.get::<Member>(&stored.body.user)?.is_some();
    Ok(Some(Due { stored, is_owned }))
}

async fn send(app: &App, organization: &str, prompt: &Stored<Prompt>) -> Delivered {
    let orchestrators = &app.settings.outgoing.orchestrators;
    // The reasons of the operator can contain paths of files, so members read a code, and the log has the reason.
    let failed = |code: &str, error: &str| {
        warn!(organization, prompt = prompt.id, error, "a prompt was not sent: {code}");
        Delivered::Failed(DeliveryFailure::new(code))
    };
    let Some(endpoint) = orchestrators.of(organization) else {
        return failed("orchestrator_missing", "the settings of this node have no endpoint for the organization");
    };
    let secret = match orchestrators.secret_of(organization, endpoint).await {
        Ok(secret) => secret,
        Err(error) => return failed("orchestrator_secret_unreadable", &format!("{}: {error}", error.kind().1)),
    };
    let event = of_prompt(organization, prompt);
    let sender = prompt.body.trigger.as_str();
    let request = Outgoing { organization, url: &endpoint.url, secrets: &[&secret], sender, event: &event };
    match post(app, &request).await {
        Ok(delivered) => delivered,
        Err(error) => failed("orchestrator_secret_invalid", &error.to_string()),
    }
}

/// Ends a prompt whose owner is no longer a member. The orchestrator would act for the owner.
fn refuse(app: &App, organization: &str, read: &Stored<Prompt>) -> Result<()> {
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let own = Repository::of(app.catalogue(), organization);
        let mut change = Change::default();
        let prompt = own.get::<Prompt>(&read.id)?.filter(|prompt| prompt.version == read.version);
        let Some((prompt, state)) = prompt.zip(own.get::<TriggerState>(&read.body.trigger)?) else {
            return Ok((change, ()));
        };
        let mut after = state.body.clone();
        let reason = format!("the owner `{}` of the trigger is no longer a member", prompt.body.user);
        end(app, organization, &prompt, (RunOutcome::Refused, None, Some(reason)), (&mut after, &mut change))?;
        change.puts.push(own.put(&read.body.trigger, &after, state.version)?);
        Ok((change, ()))
    })
}

/// Records the result of an attempt, unless the prompt has changed since it was read: another node has recorded one, or
/// the trigger was deleted.
fn record(app: &App, organization: &str, read: &Stored<Prompt>, sent: &Delivered) -> Result<()> {
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let own = Repository::of(app.catalogue(), organization);
        let mut change = Change::default();
        let prompt = own.get::<Prompt>(&read.id)?.filter(|prompt| prompt.version == read.version);
        let Some((prompt, state)) = prompt.zip(own.get::<TriggerState>(&read.body.trigger)?) else {
            return Ok((change, ()));
        };
        let (mut after, now) = (state.body.clone(), app.now_ms());
        match sent {
            Delivered::Accepted(status) => {
                end(
                    app,
                    organization,
                    &prompt,
                    (RunOutcome::Delivered, Some(*status), None),
                    (&mut after, &mut change),
                )?;
                if let Some(prompts) = &mut after.prompts {
                    prompts.last_failure = None;
                }
            }
            Delivered::Failed(failure) => {
                let before = (prompt.body.attempts, prompt.body.failing_since);
                let attempted = Attempted::after(&prompt.id, before, failure, now);
                if attempted.is_over {
                    let (hours, error) = (RETRY_WITHIN_MS / 3_600_000, &failure.error);
                    let reason =
                        format!("not delivered in {} attempts within {hours} h, the last: {error}", attempted.attempts);
                    let failed = (RunOutcome::Failed, status_of(error), Some(reason));
                    end(app, organization, &prompt, failed, (&mut after, &mut change))?;
                } else {
                    retry(app, organization, &prompt, attempted, &mut change)?;
                }
                after.prompts.get_or_insert_with(PromptState::default).last_failure = Some(PromptFailure {
                    prompt: prompt.id.clone(),
                    at: now,
                    error: failure.error.clone(),
                    attempts: attempted.attempts,
                    next_at: if attempted.is_over { 0 } else { attempted.due_at },
                });
            }
        }
        change.puts.push(own.put(&read.body.trigger, &after, state.version)?);
        Ok((change, ()))
    })
}

/// Takes a prompt out of the queue, and adds its outcome to the run log.
fn end(
    app: &App,
    organization: &str,
    prompt: &Stored<Prompt>,
    (outcome, status, reason): (RunOutcome, Option<u16>, Option<String>),
    (state, change): (&mut TriggerState, &mut Change),
) -> Result<()> {
    take(app, organization, prompt, (state, change))?;
    let Prompt { source, request, scheduled_at, .. } = &prompt.body;
    let delivery = request.clone().or_else(|| scheduled_at.clone());
    state.add(entry((source, &prompt.id), delivery, app.now_ms(), outcome, (status, reason))?);
    Ok(())
}

/// Moves a prompt to its next attempt.
fn retry(
    app: &App,
    organization: &str,
    prompt: &Stored<Prompt>,
    attempted: Attempted,
    change: &mut Change,
) -> Result<()> {
    let mut after = prompt.body.clone();
    (after.attempts, after.failing_since) = (attempted.attempts, Some(attempted.failing_since));
    after.due = due_id(attempted.due_at, &prompt.id);
    change.removals.extend(due_removal(app, prompt)?);
    change.puts.push(put_due(app, organization, &after.due, &prompt.id)?);
    change.puts.push(Repository::of(app.catalogue(), organization).put(&prompt.id, &after, prompt.version)?);
    Ok(())
}

/// The HTTP status of a failed attempt.
fn status_of(error: &str) -> Option<u16> {
    error.strip_prefix("http_status:").and_then(|status| status.parse().ok())
}
