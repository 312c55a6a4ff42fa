//! Ownership of partitions: a shard acquires them, releases them and loses them.
//!
//! Executions of a lost partition are not shown, started or written any more, even if their turns are decided. Receipts
//! of their attempts are sent to the inbox for the new owner. A released partition is handed off between two commits:
//! its running attempts stay here as detached attempts, which the store names to the next owner.

use std::collections::BTreeSet;

use mainspring_kernel::{decide::open_attempt, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{ClusterView, Fence, RemoteAttempt};

use crate::{
    clock::ClockReading,
    lease::{Change, Leases, plan_rebalance},
    membership::{Handoff, LeaseRenewal},
    shard::{
        Shard,
        attempts::{AttemptId, AttemptState, DetachedAttempt},
        commit::{HeldEffects, InFlightCommit},
        entry::ExecutionEntry,
        protocol::{Output, PendingInput, ShardError},
    },
};

/// The partitions that this shard owns, and their releases.
#[derive(Debug)]
pub(super) struct Ownership {
    pub(super) leases: Leases,
    /// Partitions that are released as soon as no commit of them is in flight.
    pub(super) draining: BTreeSet<u32>,
    /// Releases that the store has not confirmed. The answer to an earlier heartbeat may still list these partitions.
    unconfirmed_releases: Vec<Fence>,
}

impl Ownership {
    pub(super) fn new(leases: Leases) -> Self {
        Self { leases, draining: BTreeSet::new(), unconfirmed_releases: Vec::new() }
    }
}

impl Shard {
    /// Drops all partitions if the lease has expired. The node calls it before every event and every step.
    pub fn expire(&mut self, now: ClockReading) {
        if self.ownership.leases.is_over(now) {
            self.lose_all();
            self.kill_detached();
        }
    }

    /// The time for the next event: see [`Leases::now`](crate::lease::Leases::now).
    pub fn now(&self, reading: ClockReading) -> u64 {
        self.ownership.leases.now(reading)
    }

    /// The store has expired the lease as well: nothing is owned here, and no node waits for receipts of this node.
    pub(super) fn lapsed(&mut self) {
        self.lose_all();
        self.kill_detached();
        self.attempts.remove_if(|_, state| matches!(state, AttemptState::Detached(_)));
    }

    /// Kills the detached attempts. The store may still accept the next heartbeat in time: the new owners then wait for
    /// these attempts, and their receipts are sent. Attempts that have not started are removed from the release, so
    /// that no node waits for them.
    fn kill_detached(&mut self) {
        if self.attempts.detached().all(|(_, detached)| detached.is_stopped) {
            return;
        }
        let mut not_started = Vec::new();
        for output in &self.outputs {
            if let Output::Perform { execution, instance, attempt } = output
                && let Some(detached) =
                    self.attempts.take_detached(&AttemptId::new(*execution, instance.clone(), attempt.number))
            {
                not_started.push(RemoteAttempt { execution: *execution, step: detached.step, number: attempt.number });
            }
        }
        for output in &mut self.outputs {
            if let Output::Handoff(handoff) = output {
                handoff.running.retain(|attempt| !not_started.contains(attempt));
            }
        }
        self.outputs.retain(|output| output.stays_without(&|_| true, false));
        for (id, detached) in self.attempts.detached_mut() {
            if !std::mem::replace(&mut detached.is_stopped, true) {
                let AttemptId { execution, instance, number } = id.clone();
                self.outputs.push_back(Output::Kill { execution, instance, attempt: number });
            }
        }
    }

    /// The partitions that this node owns, in ascending order.
    pub fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.ownership.leases.held()
    }

    /// The number of partitions of the store, as last known.
    pub fn partitions(&self) -> u32 {
        self.ownership.leases.partitions()
    }

    /// Owned partitions without active executions.
    pub fn idle(&self) -> BTreeSet<u32> {
        let mut idle: BTreeSet<u32> = self.ownership.leases.held().collect();
        let busy = self
            .executions
            .iter()
            .filter(|(_, entry)| !matches!(entry, ExecutionEntry::Loaded(loaded) if loaded.is_idle()));
        let is_open = |state: &AttemptState| matches!(state, AttemptState::Running(_)) || state.is_being_recovered();
        let open = self.attempts.iter().filter(|(_, state)| is_open(state)).map(|(id, _)| &id.execution);
        for execution in busy.map(|(execution, _)| execution).chain(open) {
            idle.remove(&self.ownership.leases.partition(*execution));
        }
        idle
    }

    /// Handles a successful heartbeat: the cluster view of the store counts, acquired partitions are added, and surplus
    /// ones are released.
    pub(super) fn renewed(&mut self, renewal: &LeaseRenewal) {
        let LeaseRenewal { name, until, clock, view, taken, is_leaving, .. } = renewal;
        self.ownership.leases.record_clock(*clock);
        let view = &self.without_released(view);
        if self.ownership.leases.partitions() != view.partitions {
            self.lose_all();
        }
        let Change { lost, mut acquired } = self.ownership.leases.renew(*until, view);
        self.lose(&lost);
        // Partitions that came back under another epoch were lost first.
        self.ownership.leases.add(&view.held);
        self.ownership.leases.add(taken);
        acquired.extend(taken.iter().map(|fence| fence.partition));
        self.gain(acquired);
        self.stop_for_others(&view.stop_requested);
        self.check_remote_attempts(view);
        self.ownership.draining.clear();
        if clock.skew().is_some() {
            // Turns decided here would use the wrong time.
            self.ownership.draining.extend(self.ownership.leases.held());
            self.release_drained();
        } else if !is_leaving {
            let idle = self.idle();
            let busy = self.ownership.leases.held().filter(|partition| !idle.contains(partition));
            // Idle partitions are released first.
            let order: Vec<u32> = idle.iter().copied().rev().chain(busy).collect();
            self.ownership.draining.extend(plan_rebalance(view, name, &order).release);
            self.release_drained();
        }
    }

    /// The cluster view as it will be when the store has recorded the pending releases.
    fn without_released(&mut self, view: &ClusterView) -> ClusterView {
        self.ownership.unconfirmed_releases.retain(|fence| view.held.contains(fence));
        let is_kept =
            |partition: u32| self.ownership.unconfirmed_releases.iter().all(|fence| fence.partition != partition);
        let mut view = view.clone();
        view.held.retain(|fence| is_kept(fence.partition));
        view.holders.retain(|(partition, _)| is_kept(*partition));
        view
    }

    fn lose_all(&mut self) {
        let all: Vec<u32> = self.ownership.leases.held().collect();
        self.lose(&all);
    }

    fn gain(&mut self, acquired: Vec<u32>) {
        if !acquired.is_empty() {
            self.outputs.push_back(Output::Acquired(acquired));
        }
    }

    /// Stops detached attempts whose owners request it.
    fn stop_for_others(&mut self, stop_requested: &[RemoteAttempt]) {
        for RemoteAttempt { execution, step, number } in stop_requested {
            let is_named = |(id, detached): &(&AttemptId, &DetachedAttempt)| {
                (&id.execution, &id.number, &detached.step) == (execution, number, step)
            };
            if let Some((id, _)) = self.attempts.detached().find(is_named) {
                let AttemptId { execution, instance, number } = id.clone();
                self.outputs.push_back(Output::Stop { execution, instance, attempt: number });
            }
        }
    }

    /// Recovers attempts of nodes that are no longer alive. Stop requests are repeated, since the last one may have
    /// been lost.
    fn check_remote_attempts(&mut self, view: &ClusterView) {
        let remote = self.attempts.iter().filter_map(|(id, state)| match state {
            AttemptState::Remote(node) => Some((id.clone(), node.clone())),
            _ => None,
        });
        for (id, at) in remote.collect::<Vec<_>>() {
            let AttemptId { execution, instance, number } = &id;
            let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(execution) else { continue };
            let step = loaded.state.steps.get(instance).filter(|step| step.attempt == *number);
            let is_open = step.is_some() && loaded.state.open.attempts.contains(instance);
            let is_stopping = step.is_some_and(|step| step.stopping.is_some());
            if !is_open {
                self.attempts.end(&id);
            } else if view.nodes.iter().any(|node| node.name == at) {
                let remote = is_stopping.then(|| self.remote_attempt(&id)).flatten();
                self.outputs.extend(remote.map(Output::StopRemote));
            } else if let Some(attempt) = open_attempt(&loaded.state, instance) {
                self.attempts.end(&id);
                if self.attempts.begin_reconciling(id.clone()) {
                    let AttemptId { execution, instance, .. } = id;
                    self.outputs.push_back(Output::Reconcile { execution, instance, attempt });
                }
            }
        }
    }

    /// The name of an attempt in the store. `None` if its execution is not in memory.
    pub(super) fn remote_attempt(&self, id: &AttemptId) -> Option<RemoteAttempt> {
        let AttemptId { execution, instance, number } = id;
        let plan = self.executions.get(execution)?.plan()?;
        Some(RemoteAttempt { execution: *execution, step: instance.name(plan), number: *number })
    }

    /// Releases the surplus partitions, unless a commit is in flight: the running attempts are known only after it. A
    /// partition with a load or a recovery in progress stays until that is complete.
    pub(super) fn release_drained(&mut self) {
        if self.ownership.draining.is_empty()
            || self.commits.in_flight.is_some()
            || self.refusals.is_halving()
            || !self.commits.releasing.is_empty()
        {
            return;
        }
        let mut partitions = std::mem::take(&mut self.ownership.draining);
        let unread = self.executions.iter().filter(|(_, entry)| matches!(entry, ExecutionEntry::Loading(_)));
        let unread = unread.map(|(execution, _)| execution).chain(self.loads.deferred_inputs.keys());
        let recovering = self.attempts.iter().filter(|(_, state)| state.is_being_recovered());
        let unsettled = recovering.map(|(id, _)| &id.execution).chain(unread);
        for partition in
            unsettled.map(|execution| self.ownership.leases.partition(*execution)).collect::<BTreeSet<u32>>()
        {
            if partitions.remove(&partition) {
                self.ownership.draining.insert(partition);
            }
        }
        let fences: Vec<_> =
            partitions.iter().filter_map(|partition| self.ownership.leases.fence(*partition)).collect();
        if fences.is_empty() {
            return;
        }
        let is_gone = |execution: &ExecutionKey| partitions.contains(&self.ownership.leases.partition(*execution));
        let mut detached = self.attempts.take_running(is_gone);
        // A receipt without a commit is about to be enqueued. Until then the attempt is listed as running, so that no
        // node considers it interrupted.
        for (execution, entry) in self.executions.iter().filter(|(execution, _)| is_gone(execution)) {
            let Some(plan) = entry.plan() else { continue };
            for (instance, attempt) in entry.queued().filter_map(brought) {
                detached.insert(AttemptId::new(*execution, instance.clone(), attempt), instance.name(plan));
            }
        }
        let mut running = Vec::new();
        for (id, step) in detached {
            running.push(RemoteAttempt { execution: id.execution, step: step.clone(), number: id.number });
            self.attempts.set(id, AttemptState::Detached(DetachedAttempt { step, is_stopped: false }));
        }
        self.ownership.unconfirmed_releases.extend(&fences);
        self.drop_executions(&partitions, true);
        self.outputs.push_back(Output::Handoff(Handoff { fences, running }));
    }

    /// Drops partitions that another node owns, or may own.
    pub(super) fn lose(&mut self, partitions: &[u32]) {
        if partitions.is_empty() {
            return;
        }
        self.drop_executions(&partitions.iter().copied().collect(), false);
        self.outputs.push_back(Output::Lost(partitions.to_vec()));
    }

    fn drop_executions(&mut self, partitions: &BTreeSet<u32>, is_handoff: bool) {
        let leases = &self.ownership.leases;
        let is_gone = |execution: &ExecutionKey| partitions.contains(&leases.partition(*execution));
        let gone: Vec<ExecutionKey> = self.executions.keys().copied().filter(is_gone).collect();
        self.outputs.retain(|output| output.stays_without(&is_gone, is_handoff));
        self.timers.retain(|execution| !is_gone(execution));
        self.discards.undeliverable.retain(|execution, _| !is_gone(execution));
        self.discards.delayed.forget(&is_gone);
        self.memory.forget_held_back(is_gone);
        self.commits.unconfirmed.retain(|execution, _| !is_gone(execution));
        let still_running = self.attempts.take_still_running(is_gone);
        let is_kept = |state: &AttemptState| matches!(state, AttemptState::Running(_) | AttemptState::Detached(_));
        self.attempts.remove_if(|id, state| is_gone(&id.execution) && !is_kept(state));
        self.ownership.draining.retain(|partition| !partitions.contains(partition));
        self.refusals.forget(&is_gone);
        let on_the_way =
            self.commits.in_flight.iter_mut().flat_map(InFlightCommit::held_effects).chain(&mut self.commits.releasing);
        let on_the_way = on_the_way.chain(self.refusals.held_effects());
        on_the_way.filter(|effects| is_gone(effects.execution())).for_each(HeldEffects::detach);
        let kept: Vec<_> = self.loads.deferred_inputs.extract_if(.., |execution, _| is_gone(execution)).collect();
        // Kills the running attempts: the new owner considers them interrupted and may start them again. Their outcomes
        // are forwarded.
        let running = self.attempts.take_running(is_gone).into_keys();
        for AttemptId { execution, instance, number } in running.chain(still_running) {
            self.outputs.push_back(Output::Kill { execution, instance, attempt: number });
        }
        for partition in partitions {
            self.ownership.leases.remove(*partition);
        }
        for execution in gone {
            let queued = self.forget_entry(execution);
            self.pass_on(execution, queued);
        }
        for (execution, queued) in kept {
            self.pass_on(execution, queued);
        }
    }

    /// Rejects inputs for an execution that is not owned here. Callers are redirected, and messages are still in the
    /// inbox. Receipts exist only here and are forwarded.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, queued: Vec<PendingInput>) {
        for queued in queued {
            if let Some(ticket) = queued.ticket {
                // A redirected caller would start a new request, although the first one may have been written.
                let is_in_doubt = self.commits.in_doubt.contains(&ticket);
                let why =
                    "the execution is handed off to another node, and it is unknown if the input was processed before";
                self.reply(ticket, Err(if is_in_doubt { ShardError::Store(why.into()) } else { ShardError::NotHere }));
            } else if let Some((instance, number)) = brought(&queued) {
                let detached = self.attempts.take_detached(&AttemptId::new(execution, instance.clone(), number));
                let remote = detached.map(|detached| RemoteAttempt { execution, step: detached.step, number });
                self.outputs.push_back(Output::PassOn(execution, queued.input, remote));
            }
        }
    }

    /// From 0, whether this node owns it or not.
    pub(crate) fn partition(&self, execution: ExecutionKey) -> u32 {
        self.ownership.leases.partition(execution)
    }

    /// True if the partition of the execution is owned here.
    pub(crate) fn holds(&self, execution: ExecutionKey) -> bool {
        self.ownership.leases.fence(self.ownership.leases.partition(execution)).is_some()
    }
}

/// The attempt of a receipt that exists only here. An interruption is not included, since the owner detects it itself.
pub(super) fn brought(queued: &PendingInput) -> Option<(&Instance, u32)> {
    match &queued.input {
        Input::Receipt { instance, attempt, outcome } if queued.message.is_none() => {
            (*outcome != Outcome::Interrupted).then_some((instance, *attempt))
        }
        _ => None,
    }
}
