//! The sender: delivers the events of subscriptions.
//!
//! The queue of a subscription has the executions with frames behind its position. A pass derives the events of an
//! execution from its journal, sends one after the other, and moves the position after each. So the events of an execution
//! are sent in order, and a crash between a delivery and the move repeats the delivery with the same id. One node sends
//! for a subscription: the owner of the partition that its id belongs to. While the owner changes, two nodes can send the
//! same event; the position is moved once.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use mainspring_store::{Change, EventCursor, ExecutionRow, partition_of};
use mainspring_triggers::limits::{RETRY_LONGEST_MS, WAITING_EXECUTIONS_MAX};
use tokio::{task::JoinSet, time::MissedTickBehavior};
use tracing::{error, warn};

use super::{
    cloud_event::of_execution,
    delivery::{Delivered, send},
    event_types::selects,
    failures::{after_failure, give_up, record_failure, record_success},
    journal_events::{JournalEvent, events_from},
};
use crate::{
    app::App,
    http::{
        problem::{Code, Result},
        request_slots::{Account, Kind, on_account},
    },
    resources::{
        EventSubscription, SubscriptionState,
        repository::{Repository, Stored, with_retries},
    },
};

/// The interval in which the queue is read.
const INTERVAL: Duration = Duration::from_millis(500);

/// Subscriptions that are sent to at the same time.
const SUBSCRIPTIONS_MAX: usize = 32;

/// Executions of one pass of a subscription, and those that are sent at the same time.
const EXECUTIONS_MAX: usize = 64;
const CONCURRENT_MAX: usize = 4;

/// Events of an execution in one pass, so that a long one does not delay the others.
const EVENTS_MAX: usize = 100;

/// Passes of a subscription between two counts of its queue.
const PASSES_PER_COUNT: u32 = 120;

/// Subscriptions whose passes are remembered. Beyond them all queues are counted again.
const COUNTED_MAX: usize = 10_000;

/// Attempts of a write that conflicts with one of a member.
const TRIES: usize = 8;

/// The member to whom the request slots of deliveries are charged: none, so that the members keep their own.
const SENDER: &str = "";

/// Sends events until the task is aborted.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut passes = Passes::default();
    loop {
        tokio::select! {
            _ = again.tick() => {
                if app.engine.is_draining() {
                    return;
                }
                if let Err(problem) = passes.start(&app).await {
                    warn!(error = problem.full_message(), "the queue of events was not read; it is read again");
                }
            }
            () = passes.finish_one(), if !passes.running.is_empty() => {}
        }
    }
}

/// Sends the events that are due now, one pass for each subscription. Returns the number of subscriptions.
pub async fn poll(app: &App) -> Result<usize> {
    let mut passes = Passes::default();
    passes.start(app).await?;
    let count = passes.running.len();
    while !passes.running.is_empty() {
        passes.finish_one().await;
    }
    Ok(count)
}

/// The passes that are running.
#[derive(Default)]
struct Passes {
    running: JoinSet<()>,
    subscriptions: HashMap<tokio::task::Id, String>,
    /// The number of passes of each subscription since its queue was counted.
    counted: HashMap<String, u32>,
    /// The subscription at which the last read ended, so that all have their turn.
    last: String,
}

impl Passes {
    /// Starts a pass for each due subscription of this node that has none, in turns up to the bound.
    async fn start(&mut self, app: &App) -> Result<()> {
        let running: HashSet<String> = self.subscriptions.values().cloned().collect();
        let mut due = app.run(move |app| due(app, &running)).await?;
        if self.counted.len() > COUNTED_MAX {
            self.counted.clear();
        }
        let begin = due.partition_point(|subscription| *subscription <= self.last);
        due.rotate_left(begin);
        for subscription in due.into_iter().take(SUBSCRIPTIONS_MAX.saturating_sub(self.running.len())) {
            let passes = self.counted.entry(subscription.clone()).or_insert(0);
            let counts = *passes == 0;
            *passes = (*passes + 1) % PASSES_PER_COUNT;
            self.last.clone_from(&subscription);
            let (app, id) = (app.clone(), subscription.clone());
            let task = self.running.spawn(async move {
                if let Err(problem) = pass(&app, &id, counts).await {
                    let error = problem.full_message();
                    warn!(subscription = id, error, "events were not sent; they are sent again");
                }
            });
            self.subscriptions.insert(task.id(), subscription);
        }
        Ok(())
    }

    /// Waits until a pass has ended. Nothing is lost if the wait is canceled.
    async fn finish_one(&mut self) {
        match self.running.join_next_with_id().await {
            None => {}
            Some(Ok((id, ()))) => drop(self.subscriptions.remove(&id)),
            Some(Err(failed)) => {
                self.subscriptions.remove(&failed.id());
                error!(error = failed.to_string(), "a pass of a subscription ended early");
            }
        }
    }
}

/// The due subscriptions of this node without those in progress, sorted.
fn due(app: &App, running: &HashSet<String>) -> Result<Vec<String>> {
    let store = app.engine.store();
    let found = store.event_queue().due_subscriptions(app.now_ms())?;
    if found.is_empty() {
        return Ok(found);
    }
    let partitions = store.partitions()?;
    let is_ours = |id: &String| !running.contains(id) && owns(app, id, partitions);
    Ok(found.into_iter().filter(is_ours).collect())
}

/// True if this node sends for a subscription.
fn owns(app: &App, subscription: &str, partitions: u32) -> bool {
    app.engine.owned_partitions().contains(&partition_of_name(subscription, partitions))
}

/// The partition of a name that is no execution. Its owner sends for the name.
fn partition_of_name(name: &str, partitions: u32) -> u32 {
    let mut key = [0; 16];
    key.copy_from_slice(&Hash::of(name.as_bytes()).0[..16]);
    partition_of(ExecutionKey(key), partitions)
}

/// Returns a test for the names for which this node sends at present.
pub(crate) fn owner(app: &App) -> Result<impl Fn(&str) -> bool + use<>> {
    let (owned, partitions) = (app.engine.owned_partitions(), app.engine.store().partitions()?);
    Ok(move |name: &str| owned.contains(&partition_of_name(name, partitions)))
}

/// A subscription that is sent to.
struct Target {
    organization: String,
    subscription: Stored<EventSubscription>,
    state: SubscriptionState,
    partitions: u32,
    rows: Vec<EventCursor>,
}

/// Sends due events of a subscription.
async fn pass(app: &App, id: &str, counts: bool) -> Result<()> {
    let subscription = id.to_string();
    let Some(mut target) = app.run(move |app| read(app, &subscription, counts)).await? else { return Ok(()) };
    let account = Account { kind: Kind::Ordinary, key: target.organization.clone(), member: SENDER.into() };
    let mut rows = std::mem::take(&mut target.rows).into_iter();
    let target = Arc::new(target);
    // After failures one execution is tried first.
    let concurrent = if target.state.failures > 0 { 1 } else { CONCURRENT_MAX };
    let mut sending = JoinSet::new();
    let mut stops = false;
    loop {
        while !stops
            && sending.len() < concurrent
            && let Some(row) = rows.next()
        {
            let (app, target) = (app.clone(), target.clone());
            sending.spawn(on_account(account.clone(), async move { send_execution(&app, &target, row).await }));
        }
        match sending.join_next().await {
            None => return Ok(()),
            Some(Ok(Ok(has_stopped))) => stops |= has_stopped,
            Some(Ok(Err(problem))) => {
                warn!(subscription = id, error = problem.full_message(), "an event was not sent; it is sent again");
                stops = true;
            }
            Some(Err(failed)) => {
                error!(subscription = id, error = failed.to_string(), "a delivery ended early");
                stops = true;
            }
        }
    }
}

/// Reads a subscription with its due executions; `None` if nothing is to be sent now.
fn read(app: &App, id: &str, counts: bool) -> Result<Option<Target>> {
    let (store, now_ms) = (app.engine.store(), app.now_ms());
    let rows = store.event_queue().due_events(id, now_ms, EXECUTIONS_MAX)?;
    let Some(organization) = rows.first().map(|row| row.organization.clone()) else { return Ok(None) };
    let repository = Repository::of(app.catalogue(), &organization);
    let subscription = repository.get::<EventSubscription>(id)?.filter(|stored| stored.body.enabled);
    let Some(subscription) = subscription else {
        // It was deleted or disabled while a commit added rows.
        store.event_queue().remove_events(id)?;
        return Ok(None);
    };
    if counts && store.event_queue().count_events(id, WAITING_EXECUTIONS_MAX + 1)? > WAITING_EXECUTIONS_MAX {
        overflow(app, repository, id)?;
    }
    let state = repository.get::<SubscriptionState>(id)?.map(|stored| stored.body).unwrap_or_default();
    if state.paused.is_some() || state.not_before > now_ms {
        return Ok(None);
    }
    Ok(Some(Target { partitions: store.partitions()?, organization, subscription, state, rows }))
}

/// Ends the recording of a subscription whose queue is full. Its rows are still sent.
fn overflow(app: &App, repository: Repository<'_>, id: &str) -> Result<()> {
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let stored = repository.get::<EventSubscription>(id)?;
        let Some(mut stored) = stored.filter(|stored| stored.body.is_recording()) else {
            return Ok((Change::default(), ()));
        };
        warn!(subscription = id, "over {WAITING_EXECUTIONS_MAX} executions wait; later events are not recorded");
        stored.body.overflowed_at = Some(app.now_ms());
        let puts = vec![repository.put(id, &stored.body, stored.version)?];
        Ok((Change { puts, ..Change::default() }, ()))
    })
}

/// The events of an execution that a subscription selects.
struct Selected {
    row: ExecutionRow,
    events: Vec<JournalEvent>,
    /// The frame behind those that were read.
    next: u64,
    /// True if all selected events are in the list.
    is_complete: bool,
}

fn selected(app: &App, target: &Target, at: &EventCursor) -> Result<Option<Selected>> {
    let row = app.engine.store().execution(at.execution)?;
    let Some((row, part)) = row.zip(events_from(app, at.execution, (at.sequence, at.position))?) else {
        return Ok(None);
    };
    let EventSubscription { types, workflows, .. } = &target.subscription.body;
    let is_of = |id: &String| workflows.as_ref().is_none_or(|workflows| workflows.contains(id));
    let is_selected = match &row.workflow_id {
        Some(id) => is_of(id),
        None => workflows.is_none(),
    };
    let mut events = part.events;
    events.retain(|event| is_selected && selects(types, &event.event_type));
    let is_complete = events.len() <= EVENTS_MAX;
    events.truncate(EVENTS_MAX);
    Ok(Some(Selected { row, events, next: part.next, is_complete }))
}

/// Sends the events of one execution in order. True if nothing more is to be sent to the subscription now.
async fn send_execution(app: &App, target: &Arc<Target>, at: EventCursor) -> Result<bool> {
    let (of, cursor) = (target.clone(), at.clone());
    let selected = match app.run(move |app| selected(app, &of, &cursor)).await {
        Ok(Some(selected)) => selected,
        Ok(None) => {
            let end = EventCursor { sequence: at.newest + 1, position: 0, ..at.clone() };
            move_to(app, at, end).await?;
            return Ok(false);
        }
        Err(problem) if problem.code == Code::InternalError => {
            // A journal that cannot be read must not hold up those of other executions.
            let (execution, error) = (at.execution.to_string(), problem.full_message());
            warn!(execution, error, "the events of an execution cannot be read; they are tried again in an hour");
            let later = EventCursor { due_at: app.now_ms().saturating_add(RETRY_LONGEST_MS), ..at.clone() };
            move_to(app, at, later).await?;
            return Ok(false);
        }
        Err(problem) => return Err(problem),
    };
    send_events(app, target, at, selected).await
}

async fn send_events(app: &App, target: &Arc<Target>, mut at: EventCursor, selected: Selected) -> Result<bool> {
    let mut had_failed = target.state.failures > 0;
    for event in &selected.events {
        if !owns(app, &target.subscription.id, target.partitions) {
            return Ok(true);
        }
        let sent = of_execution(&selected.row, event);
        let next = EventCursor {
            sequence: event.sequence,
            position: event.index + 1,
            due_at: 0,
            attempts: 0,
            failing_since: None,
            ..at.clone()
        };
        match send(app, &target.organization, &target.subscription, &sent).await? {
            Delivered::Accepted(_) => {
                if !move_to(app, at, next.clone()).await? {
                    return Ok(false);
                }
                if std::mem::take(&mut had_failed) {
                    let of = target.clone();
                    app.run(move |app| record_success(app, (&of.organization, &of.subscription.id))).await?;
                }
                at = next;
            }
            Delivered::Failed(failure) => {
                let (after, is_over) = after_failure(&at, &failure, app.now_ms());
                let (of, event, execution) = (target.clone(), event.clone(), selected.row.id.clone());
                return app
                    .run(move |app| {
                        let id = (of.organization.as_str(), of.subscription.id.as_str());
                        let stops = record_failure(app, id, &sent.id, &failure)?;
                        let is_listed = is_over && give_up(app, &after, &event, (&sent, &execution), &failure.error)?;
                        app.engine.store().event_queue().move_events(&at, if is_listed { &next } else { &after })?;
                        Ok(stops)
                    })
                    .await;
            }
        }
    }
    if selected.is_complete {
        let end = EventCursor { sequence: selected.next, position: 0, ..at.clone() };
        move_to(app, at, end).await?;
    }
    Ok(false)
}

/// Moves a position; false if another node has moved it.
async fn move_to(app: &App, at: EventCursor, to: EventCursor) -> Result<bool> {
    app.run(move |app| Ok(app.engine.store().event_queue().move_events(&at, &to)?)).await
}
