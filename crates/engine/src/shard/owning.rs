//! Ownership of partitions: a shard acquires them, releases them and loses them.
//!
//! Executions of a lost partition are not shown, started or written any more, even if their turns are decided. Receipts
//! of their attempts are sent to the inbox for the new owner. A released partition is handed off between two commits:
//! its running attempts stay here as detached attempts, which the store names to the next owner.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{decide::open_attempt, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{ClusterView, RemoteAttempt};

use crate::{
    clock::Reading,
    lease::{Change, wish},
    member::Heard,
    shard::{
        Shard, begin_adopting,
        cell::Cell,
        flight::{Flight, Passenger},
        words::{GivenUp, Output, Queued, ShardError},
    },
};

/// A detached attempt: it runs here, and its execution was released to another node.
#[derive(Debug)]
pub(super) struct Lent {
    /// The name of the step instance.
    step: String,
    /// It was asked to stop, since the lease under which the new owner waits for it has expired.
    is_stopped: bool,
}

impl Shard {
    /// Drops all partitions if the lease has expired. The driver calls it before every event and every output.
    pub fn expire(&mut self, now: Reading) {
        if self.leases.is_over(now) {
            self.lose_all();
            self.stop_lent();
        }
    }

    /// The time for the next event: see [`Leases::now`](crate::lease::Leases::now).
    pub fn now(&self, reading: Reading) -> u64 {
        self.leases.now(reading)
    }

    /// The store has expired the lease as well: nothing is owned here, and no node waits for receipts of this node.
    pub(super) fn lapsed(&mut self) {
        self.lose_all();
        self.stop_lent();
        self.lent.clear();
    }

    /// Kills the detached attempts. The store may still accept the next heartbeat in time: the new owners then wait for
    /// these attempts, and their receipts are sent. Attempts that have not started are removed from the release, so
    /// that no node waits for them.
    fn stop_lent(&mut self) {
        if self.lent.values().all(|lent| lent.is_stopped) {
            return;
        }
        let mut not_begun = Vec::new();
        for output in &self.outputs {
            if let Output::Perform { execution, instance, attempt } = output
                && let Some(lent) = self.lent.remove(&(*execution, instance.clone(), attempt.number))
            {
                not_begun.push(RemoteAttempt { execution: *execution, step: lent.step, number: attempt.number });
            }
        }
        for output in &mut self.outputs {
            if let Output::GivenUp(given_up) = output {
                given_up.running.retain(|attempt| !not_begun.contains(attempt));
            }
        }
        self.outputs.retain(|output| output.stays_without(&|_| true, false));
        for ((execution, instance, attempt), lent) in &mut self.lent {
            if !std::mem::replace(&mut lent.is_stopped, true) {
                let (execution, instance, attempt) = (*execution, instance.clone(), *attempt);
                self.outputs.push_back(Output::Kill { execution, instance, attempt });
            }
        }
    }

    /// The partitions that this node owns, in ascending order.
    pub fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.leases.held()
    }

    /// The number of partitions of the store, as last known.
    pub fn partitions(&self) -> u32 {
        self.leases.partitions()
    }

    /// Owned partitions without active executions.
    pub fn idle(&self) -> BTreeSet<u32> {
        let mut idle: BTreeSet<u32> = self.leases.held().collect();
        let busy = self.cells.iter().filter(|(_, cell)| !matches!(cell, Cell::Live(live) if live.is_idle()));
        let performing = self.performing.keys().map(|(execution, ..)| execution).chain(self.adopting.keys());
        for execution in busy.map(|(execution, _)| execution).chain(performing) {
            idle.remove(&self.leases.partition(*execution));
        }
        idle
    }

    /// Handles a successful heartbeat: the cluster view of the store counts, acquired partitions are added, and surplus
    /// ones are released.
    pub(super) fn heard(&mut self, heard: &Heard) {
        let Heard { name, until, clock, table, taken, is_leaving } = heard;
        self.leases.see(*clock);
        let table = &self.without_what_is_let_go(table);
        if self.leases.partitions() != table.partitions {
            self.lose_all();
        }
        let Change { lost, mut gained } = self.leases.renew(*until, table);
        self.lose(&lost);
        // Partitions that came back under another epoch were lost first.
        self.leases.add(&table.held);
        self.leases.add(taken);
        gained.extend(taken.iter().map(|fence| fence.partition));
        self.gain(gained);
        self.stop_for_others(&table.stop_requested);
        self.look_elsewhere(table);
        self.handing_over.clear();
        if clock.apart().is_some() {
            // Turns decided here would use the wrong time.
            self.handing_over.extend(self.leases.held());
            self.hand_over();
        } else if !is_leaving {
            let idle = self.idle();
            let busy = self.leases.held().filter(|partition| !idle.contains(partition));
            // Idle partitions are released first.
            let order: Vec<u32> = idle.iter().copied().rev().chain(busy).collect();
            self.handing_over.extend(wish(table, name, &order).give_up);
            self.hand_over();
        }
    }

    /// The cluster view as it will be when the store has recorded the pending releases.
    fn without_what_is_let_go(&mut self, table: &ClusterView) -> ClusterView {
        self.letting_go.retain(|fence| table.held.contains(fence));
        let is_kept = |partition: u32| self.letting_go.iter().all(|fence| fence.partition != partition);
        let mut table = table.clone();
        table.held.retain(|fence| is_kept(fence.partition));
        table.holders.retain(|(partition, _)| is_kept(*partition));
        table
    }

    fn lose_all(&mut self) {
        let all: Vec<u32> = self.leases.held().collect();
        self.lose(&all);
    }

    fn gain(&mut self, gained: Vec<u32>) {
        if !gained.is_empty() {
            self.outputs.push_back(Output::Gained(gained));
        }
    }

    /// Stops detached attempts whose owners request it.
    fn stop_for_others(&mut self, stop_requested: &[RemoteAttempt]) {
        for RemoteAttempt { execution, step, number } in stop_requested {
            let named = self
                .lent
                .iter()
                .find(|((of, _, attempt), lent)| (of, attempt, &lent.step) == (execution, number, step));
            if let Some(((execution, instance, attempt), _)) = named {
                let (execution, instance, attempt) = (*execution, instance.clone(), *attempt);
                self.outputs.push_back(Output::Stop { execution, instance, attempt });
            }
        }
    }

    /// Recovers attempts of nodes that are no longer alive. Stop requests are repeated, since the last one may have
    /// been lost.
    fn look_elsewhere(&mut self, table: &ClusterView) {
        let names: Vec<_> = self.elsewhere.iter().map(|(name, at)| (name.clone(), at.clone())).collect();
        for (name, at) in names {
            let (execution, instance, number) = &name;
            let Some(Cell::Live(live)) = self.cells.get(execution) else { continue };
            let step = live.state.steps.get(instance).filter(|step| step.attempt == *number);
            let is_open = step.is_some() && live.state.open_attempts.contains(instance);
            let is_stopping = step.is_some_and(|step| step.stopping.is_some());
            if !is_open {
                self.elsewhere.remove(&name);
            } else if table.nodes.iter().any(|node| node.name == at) {
                let remote = is_stopping.then(|| self.remote_attempt(&name)).flatten();
                self.outputs.extend(remote.map(Output::StopRemote));
            } else if let Some(attempt) = open_attempt(&live.state, instance) {
                self.elsewhere.remove(&name);
                if begin_adopting(&mut self.adopting, name.clone()) {
                    let (execution, instance, _) = name;
                    self.outputs.push_back(Output::Adopt { execution, instance, attempt });
                }
            }
        }
    }

    /// The name of an attempt in the store. `None` if its execution is not in memory.
    pub(super) fn remote_attempt(&self, name: &(ExecutionKey, Instance, u32)) -> Option<RemoteAttempt> {
        let (execution, instance, number) = name;
        let plan = self.cells.get(execution)?.plan()?;
        Some(RemoteAttempt { execution: *execution, step: instance.name(plan), number: *number })
    }

    /// Releases the surplus partitions, unless a commit is in flight: the running attempts are known only after it. A
    /// partition with a load or a recovery in progress stays until that is complete.
    pub(super) fn hand_over(&mut self) {
        if self.handing_over.is_empty()
            || self.flight.is_some()
            || self.refusals.is_halving()
            || !self.landing.is_empty()
        {
            return;
        }
        let mut partitions = std::mem::take(&mut self.handing_over);
        let unread = self.cells.iter().filter(|(_, cell)| matches!(cell, Cell::Loading(_)));
        let unread = unread.map(|(execution, _)| execution).chain(self.kept.keys());
        let unsettled = self.adopting.keys().chain(unread);
        for partition in unsettled.map(|execution| self.leases.partition(*execution)).collect::<BTreeSet<u32>>() {
            if partitions.remove(&partition) {
                self.handing_over.insert(partition);
            }
        }
        let fences: Vec<_> = partitions.iter().filter_map(|partition| self.leases.fence(*partition)).collect();
        if fences.is_empty() {
            return;
        }
        let is_gone = |execution: &ExecutionKey| partitions.contains(&self.leases.partition(*execution));
        let mut lent: BTreeMap<_, _> = self
            .performing
            .extract_if(.., |(execution, ..), _| is_gone(execution))
            .map(|(name, performing)| (name, performing.step))
            .collect();
        // A receipt without a commit is about to be enqueued. Until then the attempt is listed as running, so that no
        // node considers it interrupted.
        for (execution, cell) in self.cells.iter().filter(|(execution, _)| is_gone(execution)) {
            let Some(plan) = cell.plan() else { continue };
            for (instance, attempt) in cell.queued().filter_map(brought) {
                lent.insert((*execution, instance.clone(), attempt), instance.name(plan));
            }
        }
        let mut running = Vec::new();
        for (name, step) in lent {
            let (execution, _, number) = name;
            running.push(RemoteAttempt { execution, step: step.clone(), number });
            self.lent.insert(name, Lent { step, is_stopped: false });
        }
        self.letting_go.extend(&fences);
        self.drop_cells(&partitions, true);
        self.outputs.push_back(Output::GivenUp(GivenUp { fences, running }));
    }

    /// Drops partitions that another node owns, or may own.
    pub(super) fn lose(&mut self, partitions: &[u32]) {
        if partitions.is_empty() {
            return;
        }
        self.drop_cells(&partitions.iter().copied().collect(), false);
        self.outputs.push_back(Output::Lost(partitions.to_vec()));
    }

    fn drop_cells(&mut self, partitions: &BTreeSet<u32>, is_lent: bool) {
        let leases = &self.leases;
        let is_gone = |execution: &ExecutionKey| partitions.contains(&leases.partition(*execution));
        let gone: Vec<ExecutionKey> = self.cells.keys().copied().filter(is_gone).collect();
        self.outputs.retain(|output| output.stays_without(&is_gone, is_lent));
        self.timers.retain(|execution| !is_gone(execution));
        self.dead_letters.retain(|execution, _| !is_gone(execution));
        self.delayed.forget(&is_gone);
        self.memory.forget_held_back(is_gone);
        self.untold.retain(|execution, _| !is_gone(execution));
        self.adopting.retain(|execution, _| !is_gone(execution));
        self.elsewhere.retain(|(execution, ..), _| !is_gone(execution));
        self.handing_over.retain(|partition| !partitions.contains(partition));
        self.refusals.forget(&is_gone);
        let on_the_way = self.flight.iter_mut().flat_map(Flight::passengers).chain(&mut self.landing);
        let on_the_way = on_the_way.chain(self.refusals.passengers());
        on_the_way.filter(|passenger| is_gone(passenger.execution())).for_each(Passenger::orphan);
        let kept: Vec<_> = self.kept.extract_if(.., |execution, _| is_gone(execution)).collect();
        self.never_begun.retain(|(execution, ..)| !is_gone(execution));
        // Kills the running attempts: the new owner considers them interrupted and may start them again. Their outcomes
        // are forwarded.
        for (name, _) in self.performing.extract_if(.., |(execution, ..), _| is_gone(execution)) {
            let (execution, instance, attempt) = name;
            self.outputs.push_back(Output::Kill { execution, instance, attempt });
        }
        for partition in partitions {
            self.leases.remove(*partition);
        }
        for execution in gone {
            let queued = self.forget_cell(execution);
            self.pass_on(execution, queued);
        }
        for (execution, queued) in kept {
            self.pass_on(execution, queued);
        }
    }

    /// Rejects inputs for an execution that is not owned here. Callers are redirected, and messages are still in the
    /// inbox. Receipts exist only here and are forwarded.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, queued: Vec<Queued>) {
        for queued in queued {
            if let Some(ticket) = queued.ticket {
                // A redirected caller would start a new request, although the first one may have been written.
                let is_in_doubt = self.in_doubt.contains(&ticket);
                let why =
                    "the execution is handed off to another node, and it is unknown if the input was processed before";
                self.reply(ticket, Err(if is_in_doubt { ShardError::Store(why.into()) } else { ShardError::NotHere }));
            } else if let Some((instance, number)) = brought(&queued) {
                let lent = self.lent.remove(&(execution, instance.clone(), number));
                let remote = lent.map(|lent| RemoteAttempt { execution, step: lent.step, number });
                self.outputs.push_back(Output::PassOn(execution, queued.input, remote));
            }
        }
    }

    /// True if the partition of the execution is owned here.
    pub(crate) fn holds(&self, execution: ExecutionKey) -> bool {
        self.leases.fence(self.leases.partition(execution)).is_some()
    }
}

/// The attempt of a receipt that exists only here. An interruption is not included, since the owner detects it itself.
pub(super) fn brought(queued: &Queued) -> Option<(&Instance, u32)> {
    match &queued.input {
        Input::Receipt { instance, attempt, outcome } if queued.letter.is_none() => {
            (*outcome != Outcome::Interrupted).then_some((instance, *attempt))
        }
        _ => None,
    }
}
