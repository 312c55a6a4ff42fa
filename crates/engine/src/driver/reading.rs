//! Requests of the node to the store: heartbeats, and reads on threads that can wait for it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use mainspring_kernel::{input::Input, key::ExecutionKey};
use mainspring_store::{Store, StoreError};
use tracing::warn;

use super::{
    command::Command,
    failures,
    state::{Driver, reads::HeartbeatAnswer},
};
use crate::{
    admission::{self, Drained, Limits},
    clock::{now_ms, read_clocks},
    inbox,
    membership::Heartbeat,
    node::{HeartbeatRequest, NodeEvent, PageRequest, ROWS_AT_A_TIME, UnnotifiedParents, all_quarantined, record},
    period_budgets::{self, WantedLease},
    quarantine::Place,
    shard::{Event, PendingInput},
};

/// The first pause before a failed request for a lease is repeated. It doubles with each failure.
const LEASE_RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest pause before a failed request for a lease is repeated.
const LEASE_RETRY_MAX: Duration = Duration::from_secs(5);

impl Driver {
    /// Sends a heartbeat from a thread of its own: behind blocking tasks of the runtime, the lease would expire first.
    pub(super) fn send_heartbeat(&mut self, request: HeartbeatRequest) {
        let HeartbeatRequest { session, handoff, is_leaving } = request;
        let answers = self.reads.heartbeats.0.clone();
        let heartbeat = move || {
            let say = || session.heartbeat(&handoff, is_leaving, read_clocks);
            // After a panic the next heartbeat is sent anyway.
            let result = catch_unwind(AssertUnwindSafe(say)).unwrap_or_else(|panic| {
                Heartbeat::Unreachable(StoreError::Unavailable(format!(
                    "the heartbeat panicked: {}",
                    failures::text(&*panic)
                )))
            });
            let _ = answers.send((handoff, result));
        };
        if let Err(error) = std::thread::Builder::new().name("heartbeat".into()).spawn(heartbeat) {
            let why = format!("the heartbeat thread cannot be started: {error}");
            self.node.receive(NodeEvent::HeartbeatNotSent(why));
        }
    }

    pub(super) fn heartbeat_answered(&mut self, (handoff, result): HeartbeatAnswer) {
        self.telemetry.see_heartbeat(&result, &self.node);
        self.node.receive(NodeEvent::Heartbeat(handoff, result));
    }

    /// Creates the next incarnation of this node.
    pub(super) fn rejoin(&mut self) {
        let Some(session) = self.node.session() else { return };
        let event = match session.rejoin() {
            Ok(session) => NodeEvent::Rejoined(Box::new(session)),
            Err(error) => NodeEvent::Fatal(error.to_string()),
        };
        self.node.receive(event);
    }

    pub(super) fn read_inbox(&self, request: PageRequest) {
        let (loader, commands) = (self.loader.clone(), self.commands.clone());
        let metrics = self.telemetry.metrics.inbox.clone();
        self.runtime.spawn_blocking(move || {
            let is_first = request.is_first();
            let page = request.read(&loader, |arrived| {
                if is_first {
                    metrics.record_poll(arrived, now_ms());
                }
            });
            let _ = commands.send(Command::Node(NodeEvent::Page(Box::new(page))));
        });
    }

    /// Reads all pages of due executions: executions outside the scope can fill many of them.
    pub(super) fn read_due(&self, partitions: Vec<u32>, until_ms: u64) {
        let (store, commands) = (self.store.clone(), self.commands.clone());
        self.runtime.spawn_blocking(move || {
            let read = || {
                let mut after = None;
                while let Ok(due) = store.due(&partitions, until_ms, after, ROWS_AT_A_TIME)
                    && let Some(last) = due.last()
                {
                    after = Some(*last);
                    if commands.send(Command::Node(NodeEvent::Due(due))).is_err() {
                        return;
                    }
                }
            };
            // Another read follows even after a panic.
            let _ = catch_unwind(AssertUnwindSafe(read));
            let _ = commands.send(Command::Node(NodeEvent::DueRead));
        });
    }

    pub(super) fn quarantine(&mut self, execution: ExecutionKey, why: String) {
        self.callers.unwatch(execution);
        let counts = self.reads.limits.is_some();
        self.answer_of(
            move |store| record(store, execution, &why, counts),
            move |recorded| {
                let recorded = recorded.unwrap_or_else(|panic| {
                    Err(StoreError::Unavailable(format!("recording its quarantine panicked: {panic}")))
                });
                NodeEvent::QuarantineRecorded(execution, recorded)
            },
        );
    }

    pub(super) fn read_quarantined(&self) {
        self.answer_of(
            |store| all_quarantined(store).ok(),
            |found| NodeEvent::QuarantinedRead(found.unwrap_or_default()),
        );
    }

    pub(super) fn notify_parents(&self, parents: UnnotifiedParents) {
        let (store, loader, commands) = (self.store.clone(), self.loader.clone(), self.commands.clone());
        let data_dir = self.data_dir.as_ref().map(|(data_dir, _)| data_dir.clone());
        self.runtime.spawn_blocking(move || {
            let place = Place { store: &*store, loader: &loader, data_dir: data_dir.as_ref() };
            let _ = commands.send(Command::Node(NodeEvent::NotifiedParents(parents.notify(place))));
        });
    }

    /// Requests a lease of budgets. The execution waits for the answer, so a request that fails is repeated.
    pub(super) fn lease(&self, wanted: WantedLease) {
        let (store, commands, budgets) = (self.store.clone(), self.commands.clone(), self.reads.budgets.clone());
        let permits = self.reads.leasing.clone();
        tokio::spawn(async move {
            let mut pause = LEASE_RETRY_MIN;
            let answer = loop {
                let (store, budgets, wanted) = (store.clone(), budgets.clone(), wanted.clone());
                let request = move || period_budgets::lease(&*store, budgets.as_deref(), &wanted, now_ms());
                // The semaphore is never closed.
                let permit = permits.acquire().await;
                let answered = tokio::task::spawn_blocking(request).await;
                drop(permit);
                match answered {
                    Ok(Ok(answer)) => break answer,
                    Ok(Err(why)) => warn!(why, "a lease of budgets could not be requested, and is requested again"),
                    Err(error) if error.is_panic() => warn!(%error, "a request for a lease of budgets panicked"),
                    // The runtime is shutting down.
                    Err(_) => return,
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LEASE_RETRY_MAX);
            };
            if let Some(free) = answer.free {
                let _ = commands.send(Command::Node(NodeEvent::Shard(Event::Unbudgeted(free))));
            }
            if let Some(change) = answer.change {
                let input = Input::Lease { lease: wanted.number, change };
                let event = Event::Take(wanted.execution, PendingInput::without_reply(input));
                let _ = commands.send(Command::Node(NodeEvent::Shard(event)));
            }
        });
    }

    pub(super) fn read_queues(&self) {
        self.answer_of(
            |store| store.pending_organizations().unwrap_or_default(),
            |found| NodeEvent::Organizations(found.unwrap_or_default()),
        );
    }

    /// Runs a request to the store, and passes the answer to the node, or the message of a panic: a panic without an
    /// answer would prevent all further requests.
    fn answer_of<T: 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> T + Send + 'static,
        event: impl FnOnce(Result<T, String>) -> NodeEvent + Send + 'static,
    ) {
        let (store, commands) = (self.store.clone(), self.commands.clone());
        self.runtime.spawn_blocking(move || {
            let answer = catch_unwind(AssertUnwindSafe(|| work(&*store)));
            let answer = answer.map_err(|panic| failures::text(&*panic).to_owned());
            let _ = commands.send(Command::Node(event(answer)));
        });
    }

    pub(super) fn read_organization(&self, organization: String, over: Vec<Drained>) {
        self.count(organization, move |store, limits, organization| {
            let read = || admission::find(store, limits, &organization, &over);
            // Starts that wait for this read would otherwise wait forever.
            let found = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("the read was interrupted".into()));
            NodeEvent::OrganizationRead(organization, found)
        });
    }

    pub(super) fn count_unfinished(&self, organization: String) {
        self.count(organization, |store, limits, organization| {
            let count = || admission::count_unfinished(store, limits, &organization);
            // Callers that wait for this count would otherwise wait forever.
            let found = catch_unwind(AssertUnwindSafe(count)).unwrap_or_default();
            NodeEvent::UnfinishedCounted(organization, found)
        });
    }

    /// Reads an organization, under a permit.
    fn count(
        &self,
        organization: String,
        work: impl FnOnce(&dyn Store, &dyn Limits, String) -> NodeEvent + Send + 'static,
    ) {
        let Some(limits) = self.reads.limits.clone() else { return };
        let (store, commands, counting) = (self.store.clone(), self.commands.clone(), self.reads.counting.clone());
        self.runtime.spawn(async move {
            // The semaphore is never closed.
            let permit = counting.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                let event = work(&*store, &*limits, organization);
                drop(permit);
                let _ = commands.send(Command::Node(event));
            });
        });
    }

    /// Sends admissions to executions of other nodes.
    pub(super) fn admit(&self, executions: Vec<ExecutionKey>) {
        let key = *self.loader.key();
        self.in_background(move |store| {
            let mut enqueued = executions
                .into_iter()
                .map(|execution| inbox::enqueue(store, None, &key, (execution, &Input::Admit), None));
            let _ = enqueued.try_for_each(|enqueued| enqueued.map(drop));
        });
    }
}
