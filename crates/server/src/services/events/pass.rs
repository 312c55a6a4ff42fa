//! A pass: sends due events of a subscription.
//!
//! A pass derives the events of an execution from its journal, sends one after the other, and moves the position after
//! each. So the events of an execution are sent in order, and a crash between a delivery and the move repeats the delivery
//! with the same id. A pass ends after a bounded time, so that other subscriptions have their turn; the rest stays due.

use std::{sync::Arc, time::Duration};

use mainspring_store::{Change, DueTimes, EventCursor, ExecutionRow};
use mainspring_triggers::limits::{RETRY_LATEST_MS, RETRY_LONGEST_MS, WAITING_EXECUTIONS_MAX};
use tokio::{task::JoinSet, time::Instant};
use tracing::{error, warn};

use super::{
    cloud_event::of_execution,
    delivery::{Delivered, send},
    event_types::selects,
    failures::{after_failure, give_up, record_failure, record_success},
    hops,
    journal_cache::JournalCache,
    journal_events::JournalEvent,
    partition_owner::owns,
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

/// The time after which a pass begins no further delivery. Those in progress have their time limit.
const PASS_MAX: Duration = Duration::from_secs(3);

/// Executions of one pass, and those that are sent at the same time.
const EXECUTIONS_MAX: usize = 64;
const CONCURRENT_MAX: usize = 4;

/// Events of an execution in one pass, so that a long one does not delay the others.
const EVENTS_MAX: usize = 100;

/// Attempts of a write that conflicts with one of a member.
const TRIES: usize = 8;

/// The member to whom the request slots of deliveries are charged: none, so that the members keep their own.
const SENDER: &str = "";

/// A subscription that is sent to.
struct Target {
    organization: String,
    subscription: Stored<EventSubscription>,
    /// Failed attempts since the last success.
    failures: u32,
    partitions: u32,
    journals: Arc<JournalCache>,
    ends_at: Instant,
}

impl Target {
    fn is_over(&self) -> bool {
        Instant::now() >= self.ends_at
    }

    fn id(&self) -> (&str, &str) {
        (&self.organization, &self.subscription.id)
    }
}

/// The course of a pass after an event or an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The pass continues.
    Continues,
    /// The pass continues, and leaves events that are due.
    LeavesDue,
    /// The subscription has changed since the pass began. The next pass begins at once.
    HasChanged,
    /// Nothing more is to be sent to the subscription now.
    Stops,
}

/// Sends due events of a subscription. True if it left events that are due.
pub(super) async fn pass(app: &App, id: &str, counts: bool, journals: Arc<JournalCache>) -> Result<bool> {
    let subscription = id.to_string();
    let read = app.run(move |app| read(app, &subscription, counts, journals)).await?;
    let Some((target, rows)) = read else { return Ok(false) };
    let account = Account { kind: Kind::Ordinary, key: target.organization.clone(), member: SENDER.into() };
    // After failures one execution is tried first.
    let concurrent = if target.failures > 0 { 1 } else { CONCURRENT_MAX };
    let mut has_more = rows.len() == EXECUTIONS_MAX;
    let (target, mut rows) = (Arc::new(target), rows.into_iter().peekable());
    let mut sending = JoinSet::new();
    let mut stops = None;
    loop {
        while stops.is_none()
            && sending.len() < concurrent
            && !target.is_over()
            && let Some(row) = rows.next()
        {
            let (app, target) = (app.clone(), target.clone());
            sending.spawn(on_account(account.clone(), async move { send_execution(&app, &target, row).await }));
        }
        let course = match sending.join_next().await {
            None => break,
            Some(Ok(Ok(course))) => course,
            Some(Ok(Err(problem))) => {
                warn!(subscription = id, error = problem.full_message(), "an event was not sent; it is sent again");
                Course::Stops
            }
            Some(Err(failed)) => {
                error!(subscription = id, error = failed.to_string(), "a delivery ended early");
                Course::Stops
            }
        };
        match course {
            Course::Continues => {}
            Course::LeavesDue => has_more = true,
            Course::HasChanged | Course::Stops => {
                stops = stops.filter(|course| *course == Course::Stops).or(Some(course))
            }
        }
    }
    Ok(match stops {
        None => has_more || rows.peek().is_some(),
        Some(course) => course == Course::HasChanged,
    })
}

/// The times at which events are due now.
pub(super) fn due_times(app: &App) -> DueTimes {
    let now_ms = app.now_ms();
    DueTimes { now_ms, latest_ms: now_ms.saturating_add(RETRY_LATEST_MS) }
}

/// Reads a subscription with its due executions; `None` if nothing is to be sent now.
fn read(app: &App, id: &str, counts: bool, journals: Arc<JournalCache>) -> Result<Option<(Target, Vec<EventCursor>)>> {
    let (store, due) = (app.engine.store(), due_times(app));
    let rows = store.event_queue().due_events(id, due, EXECUTIONS_MAX)?;
    let Some(organization) = rows.first().map(|row| row.organization.clone()) else { return Ok(None) };
    let repository = Repository::of(app.catalogue(), &organization);
    if counts && store.event_queue().count_events(id, WAITING_EXECUTIONS_MAX + 1)? > WAITING_EXECUTIONS_MAX {
        overflow(app, repository, id)?;
    }
    let subscription = repository.get::<EventSubscription>(id)?.filter(|stored| stored.body.enabled);
    let Some(subscription) = subscription else {
        // It was deleted or disabled while a commit added rows.
        store.event_queue().remove_events(id)?;
        return Ok(None);
    };
    let state = repository.get::<SubscriptionState>(id)?.map(|stored| stored.body).unwrap_or_default();
    if state.paused.is_some() || !due.includes(state.not_before) {
        return Ok(None);
    }
    let (partitions, failures, ends_at) = (store.partitions()?, state.failures, Instant::now() + PASS_MAX);
    Ok(Some((Target { organization, subscription, failures, partitions, journals, ends_at }, rows)))
}

/// Decides before each execution and each event if it may be sent: members change and delete subscriptions in the meantime, and
/// other executions of the pass fail.
fn check(app: &App, target: &Target) -> Result<Course> {
    let (organization, id) = target.id();
    if !owns(app, id, target.partitions) {
        return Ok(Course::Stops);
    }
    let repository = Repository::of(app.catalogue(), organization);
    let subscription = repository.get::<EventSubscription>(id)?;
    if subscription.is_none_or(|stored| stored.version != target.subscription.version) {
        return Ok(Course::HasChanged);
    }
    let state = repository.get::<SubscriptionState>(id)?.map(|stored| stored.body).unwrap_or_default();
    let waits = state.paused.is_some() || !due_times(app).includes(state.not_before);
    Ok(if waits { Course::Stops } else { Course::Continues })
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
    hops: u32,
    events: Vec<JournalEvent>,
    /// The frame behind those that were read.
    next: u64,
    /// True if all selected events are in the list.
    is_complete: bool,
}

/// Derives the events that are to be sent. `None` if there are none: the subscription selects other workflows, or there is
/// no journal.
fn selected(app: &App, target: &Target, at: &EventCursor) -> Result<Option<Selected>> {
    let EventSubscription { types, workflows, .. } = &target.subscription.body;
    let Some(row) = app.engine.store().execution(at.execution)? else { return Ok(None) };
    let is_selected = match (workflows, &row.workflow_id) {
        (None, _) => true,
        (Some(workflows), Some(id)) => workflows.contains(id),
        (Some(_), None) => false,
    };
    if !is_selected {
        return Ok(None);
    }
    target.journals.with(at.execution, |journal| {
        if journal.next() <= at.newest && !journal.read(app, at.execution)? {
            return Ok(None);
        }
        let begin = journal.events.partition_point(|event| (event.sequence, event.index) < (at.sequence, at.position));
        let mut rest = journal.events[begin..].iter().filter(|event| selects(types, &event.event_type));
        let events: Vec<JournalEvent> = rest.by_ref().take(EVENTS_MAX).cloned().collect();
        let is_complete = rest.next().is_none();
        if let (None, Some(state), false) = (journal.hops, journal.state(), events.is_empty()) {
            journal.hops = Some(hops::of_execution(app, &row, state)?);
        }
        let hops = journal.hops.unwrap_or(0);
        Ok(Some(Selected { row, hops, events, next: journal.next(), is_complete }))
    })
}

/// Sends the events of one execution in order.
async fn send_execution(app: &App, target: &Arc<Target>, at: EventCursor) -> Result<Course> {
    let (of, cursor) = (target.clone(), at.clone());
    let read = app.run(move |app| match check(app, &of)? {
        Course::Continues => Ok(Ok(selected(app, &of, &cursor)?)),
        // The position must not move by types and workflows that a member has replaced.
        course => Ok(Err(course)),
    });
    let selected = match read.await {
        Ok(Err(course)) => return Ok(course),
        Ok(Ok(Some(selected))) => selected,
        Ok(Ok(None)) => {
            let end = EventCursor { sequence: at.newest + 1, position: 0, ..at.clone() };
            move_to(app, at, end).await?;
            return Ok(Course::Continues);
        }
        Err(problem) if problem.code == Code::InternalError => {
            // A journal that cannot be read must not hold up those of other executions.
            let (execution, error) = (at.execution.to_string(), problem.full_message());
            warn!(execution, error, "the events of an execution cannot be read; they are tried again in an hour");
            let later = EventCursor { due_at: app.now_ms().saturating_add(RETRY_LONGEST_MS), ..at.clone() };
            move_to(app, at, later).await?;
            return Ok(Course::Continues);
        }
        Err(problem) => return Err(problem),
    };
    send_events(app, target, at, selected).await
}

async fn send_events(app: &App, target: &Arc<Target>, mut at: EventCursor, selected: Selected) -> Result<Course> {
    let mut had_failed = target.failures > 0;
    for (number, event) in selected.events.iter().enumerate() {
        // Each execution of a pass has at least one event sent, so that a pass moves forward.
        if number > 0 && target.is_over() {
            return Ok(Course::LeavesDue);
        }
        let of = target.clone();
        let course = app.run(move |app| check(app, &of)).await?;
        if course != Course::Continues {
            return Ok(course);
        }
        let sent = of_execution(&selected.row, event, selected.hops);
        let next = EventCursor {
            sequence: event.sequence,
            position: event.index + 1,
            due_at: app.now_ms(),
            attempts: 0,
            failing_since: None,
            ..at.clone()
        };
        match send(app, &target.organization, &target.subscription, &sent).await {
            Delivered::Accepted(_) => {
                if !move_to(app, at, next.clone()).await? {
                    return Ok(Course::Continues);
                }
                if std::mem::take(&mut had_failed) {
                    let of = target.clone();
                    app.run(move |app| record_success(app, of.id())).await?;
                }
                at = next;
            }
            Delivered::Failed(failure) => {
                let (after, is_over) = after_failure(&at, &failure, app.now_ms());
                let (of, event, execution) = (target.clone(), event.clone(), selected.row.id.clone());
                return app
                    .run(move |app| {
                        let stops = record_failure(app, of.id(), &sent.id, &failure)?;
                        let is_listed = is_over && give_up(app, &after, &event, (&sent, &execution), &failure.error)?;
                        app.engine.store().event_queue().move_events(&at, if is_listed { &next } else { &after })?;
                        Ok(if stops { Course::Stops } else { Course::Continues })
                    })
                    .await;
            }
        }
    }
    if !selected.is_complete {
        return Ok(Course::LeavesDue);
    }
    let end = EventCursor { sequence: selected.next, position: 0, ..at.clone() };
    move_to(app, at, end).await?;
    Ok(Course::Continues)
}

/// Moves a position; false if it has moved since it was read.
async fn move_to(app: &App, at: EventCursor, to: EventCursor) -> Result<bool> {
    app.run(move |app| Ok(app.engine.store().event_queue().move_events(&at, &to)?)).await
}
