//! The scheduler: starts the executions of due ticks, and accepts their prompts.
//!
//! Every node runs it, and no node is special. The key of a tick is made of the trigger and the UTC minute, and the
//! store accepts one execution for each key in the commit that starts it. So a tick that several nodes find, or that a
//! node finds again after a crash, starts one execution. The next tick of a schedule is a row that moves forward after
//! its ticks are decided, never before.

use std::time::Duration;

use mainspring_kernel::{
    cbor,
    key::ExecutionKey,
    value::{Map, Value},
};
use mainspring_store::{AuditEntry, Change, ExecutionRow, Filter, Origin};
use mainspring_triggers::{
    catch_up::{DueTicks, due, jitter_ms},
    idempotency::{schedule_key, tick_bucket},
    limits::{FAILED_TICK_RETRY_MS, QUEUED_TICK_RETRY_MS, TICKS_PER_PASS_MAX},
    schedule::Schedule,
};
use tokio::{task::JoinHandle, time::MissedTickBehavior};
use tracing::{debug, warn};

use crate::{
    app::App,
    auth::permission::Permission,
    http::{
        problem::{Code, Problem, Result},
        timestamps,
    },
    resources::{
        DueSchedule, Overlap, RunOutcome, ScheduleConfig, Stopped, Trigger, TriggerConfig, TriggerState,
        repository::{Repository, Stored, apply, with_retries},
    },
    services::{
        fire_trigger::{Firing, fire, log_run, owner_of, write_runs},
        prompts::queue::{NewPrompt, add, message_id},
        run_log::RunEntry,
        save_trigger::schedule,
        schedule_rounds::Rounds,
        trigger_event::Event,
    },
};

/// The interval in which due schedules are read: one row of the store if none is due.
const INTERVAL: Duration = Duration::from_secs(1);

/// Tries to move the row of a schedule, which conflict with writes of its run log.
const ADVANCE_TRIES: usize = 8;

/// Rows that one read for active executions returns, and rows that are read at most.
const ACTIVE_PAGE: usize = 100;
const ACTIVE_MAX: usize = 10_000;

/// Starts due ticks until the task is aborted.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut rounds, mut writer) = (Rounds::<DueSchedule>::default(), None);
    loop {
        tokio::select! {
            _ = again.tick() => {
                if app.engine.is_draining() {
                    return;
                }
                if let Err(problem) = rounds.read(&app).await {
                    warn!(error = problem.full_message(), "due schedules were not read; they are read again in a second");
                }
                write_log(&app, &mut writer);
            }
            () = rounds.finish_one(), if rounds.is_running() => {}
        }
        rounds.start(&app, decide);
    }
}

/// Writes entries of the run log that an earlier write has left, one write at a time.
fn write_log(app: &App, writer: &mut Option<JoinHandle<()>>) {
    if app.pending_runs.is_empty() || writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
        return;
    }
    let app = app.clone();
    *writer = Some(tokio::spawn(async move {
        // A failure is logged by the writer, and the entries of a full server wait for the next second.
        let written = app.run(|app| {
            write_runs(app);
            Ok(())
        });
        let _ = written.await;
    }));
}

/// Decides the ticks that are due now. Returns the number of schedules that it decided.
pub async fn poll(app: &App) -> Result<usize> {
    let mut rounds = Rounds::<DueSchedule>::default();
    let count = rounds.read(app).await?;
    rounds.start(app, decide);
    while rounds.is_running() {
        rounds.finish_one().await;
        rounds.start(app, decide);
    }
    if count > 0 {
        app.run(|app| {
            write_runs(app);
            Ok(())
        })
        .await?;
    }
    Ok(count)
}

/// A due schedule with its trigger.
struct DueTrigger {
    row: Stored<DueSchedule>,
    trigger: Stored<Trigger>,
    config: ScheduleConfig,
}

/// The progress of one pass through the due ticks of a trigger.
struct Progress {
    cursor_ms: u64,
    not_before_ms: u64,
    stopped: Option<Problem>,
    /// Entries of the run log in their order.
    entries: Vec<RunEntry>,
    /// The prompts of ticks, which are accepted in the transaction that moves the row.
    prompts: Vec<NewPrompt>,
}

/// Decides the due ticks of one schedule, and moves its row forward.
async fn decide(app: App, row: Stored<DueSchedule>, now: u64) -> Result<()> {
    let found = row.clone();
    let Some(due_trigger) = app.run(move |app| read(app, found)).await? else {
        return app.run(move |app| forget(app, &row)).await;
    };
    let DueTrigger { row, trigger, config } = &due_trigger;
    let plan = Schedule::new(&config.cron, &config.timezone)
        .map_err(|error| Problem::new(Code::InternalError, format!("The stored schedule cannot be read: {error}.")))?;
    let delay_ms = jitter_ms(&trigger.id, config.jitter_ms);
    let ticks = due(&plan, config.catch_up(), delay_ms, row.body.cursor_ms, now, TICKS_PER_PASS_MAX);
    let mut progress = start_ticks(&app, &due_trigger, &ticks, now).await;
    if ticks.has_dropped {
        let reason = "ticks were due while no node ran; `missed` and `windowMs` say which of them run later";
        progress.entries.insert(0, entry(now, None, RunOutcome::Missed, None, Some(reason.into())));
    }
    app.run(move |app| advance(app, &due_trigger, progress, now)).await
}

/// Reads the trigger of a row; `None` if the row is no longer that of an enabled schedule.
fn read(app: &App, row: Stored<DueSchedule>) -> Result<Option<DueTrigger>> {
    let own = Repository::of(app.catalogue(), &row.body.organization);
    let (trigger, state) = (own.get::<Trigger>(&row.body.trigger)?, own.get::<TriggerState>(&row.body.trigger)?);
    let is_current = state.is_some_and(|state| state.body.due.as_ref() == Some(&row.id));
    let Some(trigger) = trigger.filter(|trigger| is_current && trigger.body.enabled) else { return Ok(None) };
    let TriggerConfig::Schedule(config) = trigger.body.config.clone() else { return Ok(None) };
    Ok(Some(DueTrigger { row, trigger, config }))
}

/// Removes a row without a trigger, unless another node has changed it.
fn forget(app: &App, row: &Stored<DueSchedule>) -> Result<()> {
    let removals = vec![Repository::of(app.catalogue(), "").removal(row)];
    apply(app.engine.store().catalogue(), &Change { removals, ..Change::default() }).map(drop)
}

/// Starts the ticks in their order, up to the first that must be tried again.
async fn start_ticks(app: &App, due: &DueTrigger, ticks: &DueTicks, now: u64) -> Progress {
    let cursor_ms = due.row.body.cursor_ms;
    let (entries, prompts) = (Vec::new(), Vec::new());
    let mut progress = Progress { cursor_ms, not_before_ms: 0, stopped: None, entries, prompts };
    for tick_ms in &ticks.ticks_ms {
        match start_tick(app, due, *tick_ms).await {
            Ok(Decided::Done) => progress.cursor_ms = *tick_ms,
            Ok(Decided::Started(execution, reason)) => {
                progress.entries.push(entry(now, Some(*tick_ms), RunOutcome::Started, Some(execution), reason));
                progress.cursor_ms = *tick_ms;
            }
            Ok(Decided::Skipped(reason)) => {
                progress.entries.push(entry(now, Some(*tick_ms), RunOutcome::Skipped, None, Some(reason)));
                progress.cursor_ms = *tick_ms;
            }
            Ok(Decided::Prompt(prompt)) => {
                progress.prompts.push(prompt);
                progress.cursor_ms = *tick_ms;
            }
            Ok(Decided::Waits) => {
                progress.not_before_ms = now.saturating_add(QUEUED_TICK_RETRY_MS);
                return progress;
            }
            Err(problem) if is_transient(&problem) => {
                let (trigger, error) = (&due.trigger.id, problem.full_message());
                // The bounds of an organization are reached in its own time, and must not fill the log of the node.
                match problem.code {
                    Code::RateLimited => debug!(trigger, error, "a tick was not started; it is tried again"),
                    _ => warn!(trigger, error, "a tick was not started; it is tried again"),
                }
                // The row moves behind the others that are due.
                progress.not_before_ms = now.saturating_add(FAILED_TICK_RETRY_MS);
                return progress;
            }
            Err(problem) => {
                let reason = Some(problem.message.clone());
                progress.entries.push(entry(now, Some(*tick_ms), RunOutcome::Refused, None, reason));
                progress.cursor_ms = *tick_ms;
                if ends_schedule(&problem) {
                    progress.stopped = Some(problem);
                    return progress;
                }
            }
        }
    }
    progress.cursor_ms = progress.cursor_ms.max(ticks.cursor_ms);
    progress
}

/// A tick that is decided, or that waits for the end of an execution.
enum Decided {
    Done,
    /// An execution has started; the text names variables without a value.
    Started(String, Option<String>),
    /// Nothing starts, for this reason.
    Skipped(String),
    /// The tick has a prompt for the orchestrator.
    Prompt(NewPrompt),
    Waits,
}

async fn start_tick(app: &App, due: &DueTrigger, tick_ms: u64) -> Result<Decided> {
    let DueTrigger { row, trigger, config } = due;
    let organization = &row.body.organization;
    let Some((key, bucket)) = schedule_key(&trigger.id, tick_ms).zip(tick_bucket(tick_ms)) else {
        return Ok(Decided::Done);
    };
    if trigger.body.config.prompt().is_some() {
        return prompt_of(app, due, &key, bucket).await.map(Decided::Prompt);
    }
    let event = Event {
        body: Value::map([("tick", timestamps::text(tick_ms).into()), ("scheduledAt", bucket.as_str().into())]),
        ..Event::default()
    };
    if config.overlap != Overlap::Allow {
        let (of, except) = (due.clone_key(), key.clone());
        let active = app.run(move |app| active(app, &of, &except)).await?;
        match (config.overlap, active) {
            // An execution of this tick exists: the tick is decided.
            (_, None) => return Ok(Decided::Done),
            (_, Some(active)) if active.is_empty() => {}
            (Overlap::Queue, _) => return Ok(Decided::Waits),
            (Overlap::Skip, Some(active)) => {
                return Ok(Decided::Skipped(format!("the execution {} was active", active[0])));
            }
            (_, Some(active)) => cancel(app, due, &active).await?,
        }
    }
    let mapped = event.map(&trigger.body.variable_mapping)?;
    let metadata =
        [("tick", Value::from(bucket.as_str())), ("event", event.to_value()), ("missing", mapped.missing_value())];
    let metadata = Map::from(metadata.map(|(key, value)| (key.to_string(), value)));
    let reason = mapped.missing_text();
    let firing = Firing { source: "schedule", idempotency_key: key, metadata, variables: mapped.variables };
    let fired = fire(app, organization, trigger, firing).await?;
    if !fired.existed {
        return Ok(Decided::Started(fired.execution_id, reason));
    }
    Ok(Decided::Done)
}

/// The prompt of a tick. Its trigger acts for a present member who may start executions.
async fn prompt_of(app: &App, due: &DueTrigger, key: &str, bucket: String) -> Result<NewPrompt> {
    let (organization, trigger) = (due.row.body.organization.clone(), due.trigger.clone());
    let id = message_id(&[&organization, key]);
    app.run_short(move |app| owner_of(app, &organization, &trigger)?.require(Permission::ExecutionsStart)).await?;
    let (scheduled_at, source) = (Some(bucket), "schedule");
    Ok(NewPrompt { id, source, scheduled_at, requested_by: None, request: None, redelivery_of: None })
}

impl DueTrigger {
    /// Organization, workflow and trigger. Only the ticks of a trigger with a workflow start executions.
    fn clone_key(&self) -> (String, String, String) {
        let workflow = self.trigger.body.workflow.clone().unwrap_or_default();
        (self.row.body.organization.clone(), workflow, self.trigger.id.clone())
    }
}

/// The active executions of a trigger's ticks; `None` if the tick of this key has an execution, active or ended. Then
/// another node, or this one before a crash, has decided the tick, and the active executions are those of later ticks.
fn active(
    app: &App,
    (organization, workflow, trigger): &(String, String, String),
    key: &str,
) -> Result<Option<Vec<ExecutionKey>>> {
    let of = Origin { organization: Some(organization), workflow_id: Some(workflow), workflow: None };
    if app.engine.store().execution_by_idempotency_key(&of, key)?.is_some() {
        return Ok(None);
    }
    let statuses = ["pending", "running", "waiting_approval", "cancel_requested"].map(Into::into).to_vec();
    let filter = Filter {
        statuses,
        organization: Some(organization.clone()),
        workflow_id: Some(workflow.clone()),
        excludes_quarantined: true,
        ..Filter::default()
    };
    let (mut found, mut before, mut read) = (Vec::new(), None, 0);
    while read < ACTIVE_MAX {
        let rows = app.engine.store().executions(&filter, before, ACTIVE_PAGE)?;
        read += rows.len();
        before = rows.last().map(|row| row.key);
        let is_full = rows.len() == ACTIVE_PAGE;
        let is_ours = |row: &ExecutionRow| row.trigger_id.as_ref() == Some(trigger) && row.trigger_type == "schedule";
        for row in rows.into_iter().filter(is_ours) {
            if row.idempotency_key.as_deref() == Some(key) {
                return Ok(None);
            }
            found.push(row.key);
        }
        if !is_full {
            break;
        }
    }
    Ok(Some(found))
}

/// Cancels the active executions of a trigger. The new execution starts at once: a canceled one ends within the grace
/// period of its scripts.
async fn cancel(app: &App, due: &DueTrigger, active: &[ExecutionKey]) -> Result<()> {
    for execution in active {
        app.engine.cancel(*execution, "replaced_by_next_tick", &due.trigger.body.user).await?;
    }
    Ok(())
}

/// True if the same tick can succeed later.
fn is_transient(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unavailable | Code::RateLimited | Code::InternalError)
}

/// True if no later tick can succeed until a person changes something.
fn ends_schedule(problem: &Problem) -> bool {
    matches!(problem.code, Code::TriggerOwnerRemoved | Code::NotFound)
}

/// An entry of the run log.
fn entry(
    at: u64,
    tick_ms: Option<u64>,
    outcome: RunOutcome,
    execution: Option<String>,
    reason: Option<String>,
) -> RunEntry {
    let delivery = tick_ms.and_then(tick_bucket);
    RunEntry { at, source: "schedule", outcome, status: None, execution, delivery, reason }
}

/// Moves the row of a schedule to its next tick, and logs the ticks. If the row has not moved, another pass decides them
/// again and logs them, except those that have started.
fn advance(app: &App, due: &DueTrigger, mut progress: Progress, now: u64) -> Result<()> {
    let entries = std::mem::take(&mut progress.entries);
    // The state also has the last runs, which other tasks write.
    let moved = with_retries(app.engine.store().catalogue(), ADVANCE_TRIES, || next_row(app, due, &progress, now));
    let has_moved = matches!(moved, Ok(true));
    for entry in entries.into_iter().filter(|entry| has_moved || entry.outcome == RunOutcome::Started) {
        log_run(app, &due.row.body.organization, &due.trigger.id, entry);
    }
    moved.map(drop)
}

/// Returns the change that moves the row of a schedule, and false if the row is no longer that of the schedule.
fn next_row(app: &App, due: &DueTrigger, progress: &Progress, now: u64) -> Result<(Change, bool)> {
    let DueTrigger { row, trigger, .. } = due;
    let organization = row.body.organization.as_str();
    let own = Repository::of(app.catalogue(), organization);
    let stored = own.get::<TriggerState>(&trigger.id)?.filter(|stored| stored.body.due.as_ref() == Some(&row.id));
    let Some(stored) = stored else { return Ok((Change::default(), false)) };
    let (mut change, mut state, mut after) = (Change::default(), stored.body.clone(), trigger.body.clone());
    if let Some(problem) = &progress.stopped {
        after.enabled = false;
        after.updated_at = now;
        let code = serde_json::to_value(problem.code).ok().and_then(|code| code.as_str().map(ToString::to_string));
        let message = problem.message.clone();
        state.stopped = Some(Stopped { code: code.unwrap_or_default(), message, at: now });
        change.puts.push(own.put(&trigger.id, &after, trigger.version)?);
        change.audit.push(stop_entry(due, now));
        change.sealing = *app.engine.key();
    }
    add(app, organization, trigger, &progress.prompts, (&mut state, &mut change))?;
    let times = (progress.cursor_ms, progress.not_before_ms);
    schedule(app, (organization, &trigger.id), &after, &mut state, times, &mut change)?;
    change.puts.push(own.put(&trigger.id, &state, stored.version)?);
    Ok((change, true))
}

/// The audit entry about a trigger that the server stops.
fn stop_entry(due: &DueTrigger, now: u64) -> AuditEntry {
    AuditEntry {
        organization: due.row.body.organization.clone(),
        at: now,
        actor: due.trigger.body.user.clone(),
        action: "trigger.stop".into(),
        target: due.trigger.id.clone(),
        detail: cbor::encode(&Value::map([("by", Value::from("scheduler"))])),
    }
}
