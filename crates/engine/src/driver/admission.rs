//! Admission in the driver: performs the reads and notifications that the state machine of
//! [`admission`](crate::admission) requests.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_kernel::{
    decide::QUEUES_SINCE,
    failure::{Class, Failure},
    input::{Input, ORGANIZATION_IN_TRIGGER},
    key::ExecutionKey,
    record::Record,
    value::Value,
};

use super::{Command, Driver, inbox::Opened};
use crate::{
    admission::{self, Admission, AdmissionActions, Found, Limits, UNFINISHED, partition_of_organization},
    clock::{monotonic_now, read_clocks},
    inbox,
    shard::{CommittedFrame, Event, NewExecution, PendingInput, ShardError, Ticket},
    unfinished::UnfinishedCounts,
};

/// State of admission in the driver.
pub(super) struct AdmissionDriver {
    machine: Admission,
    limits: Arc<dyn Limits>,
    is_searching_queues: bool,
    notifications: Notifications,
    unfinished: UnfinishedCounts,
}

/// Pause between two reads caused by notifications. Notifications also announce messages and arrive constantly, and the
/// cost of a read grows with the unfinished executions of the organization.
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(200);

/// Partitions named by notifications. None is lost: a notification within the pause is followed when the pause ends.
#[derive(Debug, Default)]
struct Notifications {
    partitions: BTreeSet<u32>,
    followed_at: Option<Instant>,
    is_pausing: bool,
}

impl Notifications {
    /// Returns the delay after which notifications are followed, or `None` if that is scheduled already.
    fn add(&mut self, partitions: &[u32], now: Instant) -> Option<Duration> {
        self.partitions.extend(partitions);
        let is_pausing = std::mem::replace(&mut self.is_pausing, true);
        let since = self.followed_at.map(|at| now.duration_since(at));
        (!is_pausing).then(|| since.map_or(Duration::ZERO, |since| NOTIFICATION_PAUSE.saturating_sub(since)))
    }

    fn follow(&mut self, now: Instant) -> BTreeSet<u32> {
        (self.followed_at, self.is_pausing) = (Some(now), false);
        std::mem::take(&mut self.partitions)
    }
}

impl AdmissionDriver {
    pub(super) fn new(limits: Arc<dyn Limits>) -> Self {
        Self {
            machine: Admission::default(),
            limits,
            is_searching_queues: false,
            notifications: Notifications::default(),
            unfinished: UnfinishedCounts::default(),
        }
    }
}

impl Driver {
    /// Passes an event to the shard. A start may be queued or refused by admission first.
    pub(super) fn enter(&mut self, event: Event) {
        let knows_queues = self.shard.decide_version() >= QUEUES_SINCE;
        let Event::Submit(submission) = event else { return self.handle(event) };
        let Some(submission) = self.within_bound(submission) else { return };
        let is_here =
            admission::organization_of(&submission.start).is_none_or(|organization| self.counts(organization));
        let begins = match &mut self.admission {
            Some(admission) if knows_queues => admission.machine.start(submission, is_here),
            _ => Some(submission),
        };
        if let Some(submission) = begins {
            self.handle(Event::Submit(submission));
        }
        self.start_wanted_reads();
    }

    /// Returns false for a detached start while its organization is at its bound: its message stays in the inbox.
    pub(super) fn has_place(&mut self, opened: &Opened) -> bool {
        let (Opened::Event(event), Some(admission)) = (opened, &mut self.admission) else { return true };
        let Event::Submit(submission) = &**event else { return true };
        let is_awaited = submission.start.lineage.as_ref().is_some_and(|lineage| lineage.parent.is_some());
        let organization = submission.start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text);
        let Some(organization) = organization.filter(|_| !is_awaited && !self.shard.has(submission.execution)) else {
            return true;
        };
        let (has_room, is_due) = admission.unfinished.has_room(organization, monotonic_now());
        if is_due {
            let organization = organization.to_owned();
            self.count_live(organization);
        }
        has_room
    }

    /// Returns the start unless its organization has reached its bound of unfinished executions. At the bound a caller
    /// is refused, and a step that waits for the child fails. The step cannot wait for room, since the executions that
    /// would make room may wait for the step.
    fn within_bound(&mut self, submission: Box<NewExecution>) -> Option<Box<NewExecution>> {
        let organization = submission.start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text);
        let (Some(admission), Some(organization)) = (&mut self.admission, organization) else {
            return Some(submission);
        };
        if self.shard.has(submission.execution) {
            return Some(submission);
        }
        let (answer, is_due) = admission.unfinished.begin(organization, monotonic_now());
        if is_due {
            let organization = organization.to_owned();
            self.count_live(organization);
        }
        let Err(most) = answer else { return Some(submission) };
        if let Some(ticket) = submission.ticket {
            self.waiting.remove(&ticket).map(|asker| asker.sender.send(Err(ShardError::TooMany(most))));
            return None;
        }
        // A detached start was checked by `has_place`. It starts even if others have started since.
        if submission.start.lineage.as_ref().is_none_or(|lineage| lineage.parent.is_none()) {
            return Some(submission);
        }
        let message = format!(
            "{most} executions of the organization have not ended, and no other may begin: wait for some to end, or start \
             fewer at a time"
        );
        let failure = Failure::new(Class::Policy, format!("organization_executions_exceeded:{most}"), message);
        self.handle(Event::TurnAway(submission, failure));
        None
    }

    fn count_live(&self, organization: String) {
        let Some(admission) = &self.admission else { return };
        let (store, limits, commands) = (self.store.clone(), admission.limits.clone(), self.commands.clone());
        let counting = self.counting.clone();
        tokio::spawn(async move {
            // The semaphore is never closed.
            let permit = counting.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                let count = || {
                    let most = limits.of(&*store, &organization).ok()?.live;
                    let statuses = UNFINISHED.map(|status| status.name());
                    let found = store.count_executions(&organization, &statuses, most as usize).ok()?;
                    Some((most, found as u64))
                };
                // Callers that wait for this count would otherwise wait forever.
                let found = catch_unwind(AssertUnwindSafe(count)).unwrap_or_default();
                drop(permit);
                let _ = commands.send(Command::CountedLive(organization, found));
            });
        });
    }

    pub(super) fn counted_live(&mut self, organization: &str, found: Option<(u32, u64)>) {
        if let Some(admission) = &mut self.admission {
            admission.unfinished.counted(organization, found);
        }
    }

    /// True if this node counts the running executions of an organization.
    fn counts(&self, organization: &str) -> bool {
        let partition = partition_of_organization(organization, self.shard.partitions());
        self.session.is_none() || self.shard.held().any(|held| held == partition)
    }

    fn start_wanted_reads(&mut self) {
        let Some(admission) = &mut self.admission else { return };
        for organization in admission.machine.take_wanted_reads() {
            let (store, limits, commands) = (self.store.clone(), admission.limits.clone(), self.commands.clone());
            let counting = self.counting.clone();
            tokio::spawn(async move {
                // The semaphore is never closed.
                let permit = counting.acquire_owned().await;
                tokio::task::spawn_blocking(move || {
                    let read = || admission::find(&*store, &*limits, &organization);
                    // Starts that wait for this read would otherwise wait forever.
                    let found =
                        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("the read was interrupted".into()));
                    drop(permit);
                    let _ = commands.send(Command::Found(organization, found));
                });
            });
        }
    }

    pub(super) fn found(&mut self, organization: &str, found: Found) {
        self.shard.expire(read_clocks());
        if !self.counts(organization) {
            return self.forget_organizations();
        }
        if let Err(why) = &found {
            tracing::warn!(organization, why, "how much of an organization runs could not be found out");
        }
        if let Some(admission) = &mut self.admission {
            let shard = &self.shard;
            let actions = admission.machine.on_read(organization, found, |execution| shard.has(execution));
            self.run_actions(actions);
        }
        self.start_wanted_reads();
    }

    fn run_actions(&mut self, actions: AdmissionActions) {
        let AdmissionActions { begin, refuse, admit } = actions;
        for submission in begin {
            self.handle(Event::Submit(Box::new(submission)));
        }
        for (ticket, why) in refuse {
            self.waiting.remove(&ticket).map(|asker| asker.sender.send(Err(ShardError::Store(why))));
        }
        self.admit(admit);
    }

    /// Enqueues the admissions, since each may produce outputs of its own.
    fn admit(&self, executions: Vec<ExecutionKey>) {
        let (here, elsewhere): (Vec<_>, Vec<_>) = executions.into_iter().partition(|key| self.shard.holds(*key));
        for execution in here {
            let queued = PendingInput::without_reply(Input::Admit);
            let _ = self.commands.send(Command::Event(Event::Take(execution, queued)));
        }
        // A node of an older release would quarantine the execution, since it does not know this input.
        if elsewhere.is_empty() || self.shard.decide_version() < QUEUES_SINCE {
            return;
        }
        // A lost admission message is sent again after the next read of the organization.
        let (store, key) = (self.store.clone(), *self.loader.key());
        tokio::task::spawn_blocking(move || {
            elsewhere
                .into_iter()
                .try_for_each(|execution| inbox::post(&*store, None, &key, (execution, &Input::Admit), None).map(drop))
        });
    }

    pub(super) fn answered(&mut self, ticket: Ticket, has_begun: bool) {
        let Some(admission) = &mut self.admission else { return };
        let admit = admission.machine.answered(ticket, has_begun);
        self.admit(admit);
    }

    /// Notifies the counting node of an execution that is queued or has ended.
    pub(super) fn count(&mut self, frame: &CommittedFrame) {
        if matches!(frame.records.last(), Some(Record::Ended { .. })) {
            self.free_place(frame.execution);
        }
        // A child in the slot of its parent is not announced: the next read of the counting node removes it.
        if let Some(organization) = &frame.place_of {
            self.notify_counting_node(organization);
        }
    }

    /// Stops counting a quarantined execution.
    pub(super) fn count_out(&mut self, execution: ExecutionKey, organization: Option<String>) {
        self.free_place(execution);
        if let Some(organization) = organization {
            self.notify_counting_node(&organization);
        }
    }

    /// True if this engine enforces limits.
    pub(super) fn counts_places(&self) -> bool {
        self.admission.is_some()
    }

    fn free_place(&mut self, execution: ExecutionKey) {
        let Some(admission) = &mut self.admission else { return };
        let admit = admission.machine.ended(execution);
        self.admit(admit);
    }

    fn notify_counting_node(&self, organization: &str) {
        if self.admission.is_some() && !self.counts(organization) {
            self.store.notify(&[partition_of_organization(organization, self.shard.partitions())]);
        }
    }

    pub(super) fn count_places(&self) {
        let counts = self.admission.as_ref().map(|admission| admission.machine.counts());
        self.metrics.show_places(counts.unwrap_or_default());
    }

    pub(super) fn want_reads_of(&mut self, organizations: &BTreeSet<String>) {
        let counted: Vec<_> = organizations.iter().filter(|organization| self.counts(organization)).collect();
        if let Some(admission) = &mut self.admission {
            admission.is_searching_queues = false;
            counted.into_iter().for_each(|organization| admission.machine.want(organization));
        }
        self.start_wanted_reads();
    }

    pub(super) fn bounds_changed(&mut self, organization: &str) {
        if let Some(admission) = &mut self.admission {
            admission.machine.bounds_changed(organization);
        }
        self.start_wanted_reads();
    }

    /// A notification about organizations of these partitions. It names partitions, so it may concern others in them.
    pub(super) fn on_organizations_notified(&mut self, partitions: &[u32]) {
        let Some(admission) = &mut self.admission else { return };
        let Some(pause) = admission.notifications.add(partitions, Instant::now()) else { return };
        if pause.is_zero() {
            return self.follow_notifications();
        }
        let commands = self.commands.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = commands.send(Command::FollowNotifications);
        });
    }

    pub(super) fn follow_notifications(&mut self) {
        let spread = self.shard.partitions();
        let Some(admission) = &mut self.admission else { return };
        let partitions = admission.notifications.follow(Instant::now());
        let is_meant = |organization: &str| partitions.contains(&partition_of_organization(organization, spread));
        admission.machine.want_those_of(is_meant);
        self.start_wanted_reads();
        self.search_queues();
    }

    /// Compares the counts with the store periodically and finds queued executions.
    pub(super) fn refresh_organizations(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.machine.want_all();
            admission.unfinished.forget_unused();
        }
        self.start_wanted_reads();
        self.search_queues();
    }

    /// Finds executions that other nodes have queued without a notification.
    pub(super) fn search_queues_of_others(&mut self) {
        if self.session.is_some() {
            self.search_queues();
        }
    }

    pub(super) fn search_queues(&mut self) {
        let Some(admission) = self.admission.as_mut().filter(|admission| !admission.is_searching_queues) else {
            return;
        };
        admission.is_searching_queues = true;
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            let read = || store.pending_organizations().unwrap_or_default();
            let found = catch_unwind(AssertUnwindSafe(read)).unwrap_or_default();
            let _ = commands.send(Command::Organizations(found));
        });
    }

    /// Stops counting the organizations that another node counts from now on.
    pub(super) fn forget_organizations(&mut self) {
        let Some(mut admission) = self.admission.take() else { return };
        let begin = admission.machine.keep(|organization| self.counts(organization));
        self.admission = Some(admission);
        for submission in begin {
            // Enqueued behind the outputs that are being performed.
            let _ = self.commands.send(Command::Event(Event::Submit(Box::new(submission))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_followed_once_per_pause() {
        let (mut notifications, now) = (Notifications::default(), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        assert_eq!(notifications.add(&[1], now), Some(Duration::ZERO));
        assert_eq!(notifications.follow(now), [1].into());
        assert_eq!(notifications.add(&[2], after(50)), Some(Duration::from_millis(150)));
        assert_eq!(notifications.add(&[3], after(60)), None, "one pause for all that comes in it");
        assert_eq!(notifications.follow(after(200)), [2, 3].into());
        assert_eq!(notifications.add(&[4], after(1_000)), Some(Duration::ZERO));
    }
}
