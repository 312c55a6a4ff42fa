//! What a shard holds: partitions come, are given up and are lost.
//!
//! Of a partition that is lost, nothing more is shown, started or written, whatever has been decided of it. What its
//! effects bring back goes to the inbox, for whoever holds it now. One that is given up is let go of between two commits:
//! what is performed of it goes on here, and the store says so to whoever takes it.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{decide::open_attempt, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{RemoteAttempt, Table};

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

/// An attempt that this process performs of an execution which it has given up.
#[derive(Debug)]
pub(super) struct Lent {
    /// The name of its step.
    step: String,
    /// Whether it was asked to stop because the word is over under which others wait for it.
    is_stopped: bool,
}

impl Shard {
    /// Time has passed: what is held by a word whose time is over is lost now. Whoever drives a shard says so before every
    /// event and before every output.
    pub fn expire(&mut self, now: Reading) {
        if self.leases.is_over(now) {
            self.lose_all();
            self.stop_lent();
        }
    }

    /// The time that counts, for every event that is handled: see [`Leases::now`](crate::lease::Leases::now).
    pub fn now(&self, reading: Reading) -> u64 {
        self.leases.now(reading)
    }

    /// The store says so as well: nothing is this node's any more, and nobody waits for what it brings back under its name.
    pub(super) fn lapsed(&mut self) {
        self.lose_all();
        self.stop_lent();
        self.lent.clear();
    }

    /// What goes on here for others is stopped. The store may still hear this node in time: then others wait for what runs,
    /// and it is posted as theirs. What is not begun any more, nobody is told to wait for.
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

    /// The partitions that are held.
    pub fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.leases.held()
    }

    /// Over how many partitions the store spreads, as far as is known here.
    pub fn partitions(&self) -> u32 {
        self.leases.partitions()
    }

    /// The partitions that are held and of which nothing is going on.
    pub fn idle(&self) -> BTreeSet<u32> {
        let mut idle: BTreeSet<u32> = self.leases.held().collect();
        let busy = self.cells.iter().filter(|(_, cell)| !matches!(cell, Cell::Live(live) if live.is_idle()));
        let performing = self.performing.keys().map(|(execution, ..)| execution).chain(self.adopting.keys());
        for execution in busy.map(|(execution, _)| execution).chain(performing) {
            idle.remove(&self.leases.partition(*execution));
        }
        idle
    }

    /// What the store said counts; what was taken on the strength of it is held; what others lack is let go of.
    pub(super) fn heard(&mut self, heard: &Heard) {
        let Heard { name, until, clock, table, taken, is_leaving } = heard;
        self.leases.see(*clock);
        let table = &self.without_what_is_let_go(table);
        if self.leases.partitions() != table.partitions {
            self.lose_all();
        }
        let Change { lost, mut gained } = self.leases.renew(*until, table);
        self.lose(&lost);
        // What came back under another epoch was lost first.
        self.leases.add(&table.held);
        self.leases.add(taken);
        gained.extend(taken.iter().map(|fence| fence.partition));
        self.gain(gained);
        self.stop_for_others(&table.to_stop);
        self.look_elsewhere(table);
        self.handing_over.clear();
        if clock.apart().is_some() {
            // Whatever is decided here would count from the wrong time.
            self.handing_over.extend(self.leases.held());
            self.hand_over();
        } else if !is_leaving {
            let idle = self.idle();
            let busy = self.leases.held().filter(|partition| !idle.contains(partition));
            // Rather what nothing is going on of.
            let order: Vec<u32> = idle.iter().copied().rev().chain(busy).collect();
            self.handing_over.extend(wish(table, name, &order).give_up);
            self.hand_over();
        }
    }

    /// What the store said, as it will be when it has heard what was given up.
    fn without_what_is_let_go(&mut self, table: &Table) -> Table {
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

    /// What goes on here for others, and they want stopped.
    fn stop_for_others(&mut self, to_stop: &[RemoteAttempt]) {
        for RemoteAttempt { execution, step, number } in to_stop {
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

    /// What went on at a node that is not alive any more is to be looked after here. What is to be stopped is asked for
    /// again: the last asking may have been lost.
    fn look_elsewhere(&mut self, table: &Table) {
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

    /// An attempt as the store names it; `None` if its execution is not in memory.
    pub(super) fn remote_attempt(&self, name: &(ExecutionKey, Instance, u32)) -> Option<RemoteAttempt> {
        let (execution, instance, number) = name;
        let plan = self.cells.get(execution)?.plan()?;
        Some(RemoteAttempt { execution: *execution, step: instance.name(plan), number: *number })
    }

    /// Lets go of what others lack, unless a commit is on its way: who performs what is not known before it has landed.
    /// A partition of which something is being found out or read stays until that is known.
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
        let mut lent: BTreeMap<_, _> =
            self.performing.extract_if(.., |(execution, ..), _| is_gone(execution)).collect();
        // What an attempt has brought back and no commit has taken yet is about to be posted: until then nobody is to
        // believe it interrupted.
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

    /// Partitions are another's, or may be.
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
        // What runs is ended at once: who has the partition now believes it interrupted, and may begin it again. Its outcome
        // is passed on.
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

    /// Inputs for an execution that is not held here. Whoever waits for an answer asks again, a letter is still in the
    /// inbox; of a receipt nobody else knows.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, queued: Vec<Queued>) {
        for queued in queued {
            if let Some(ticket) = queued.ticket {
                // Who is told to ask elsewhere begins something anew.
                let is_in_doubt = self.in_doubt.contains(&ticket);
                let why = "the execution passes to another node, and whether this was taken in before is unknown";
                self.reply(ticket, Err(if is_in_doubt { ShardError::Store(why.into()) } else { ShardError::NotHere }));
            } else if let Some((instance, number)) = brought(&queued) {
                let lent = self.lent.remove(&(execution, instance.clone(), number));
                let remote = lent.map(|lent| RemoteAttempt { execution, step: lent.step, number });
                self.outputs.push_back(Output::PassOn(execution, queued.input, remote));
            }
        }
    }

    /// Whether an execution's partition is held.
    pub(crate) fn holds(&self, execution: ExecutionKey) -> bool {
        self.leases.fence(self.leases.partition(execution)).is_some()
    }
}

/// The attempt whose receipt an input is, if its effect has brought that and nobody else knows of it. That an attempt is
/// interrupted, whoever holds it finds out by itself.
pub(super) fn brought(queued: &Queued) -> Option<(&Instance, u32)> {
    match &queued.input {
        Input::Receipt { instance, attempt, outcome } if queued.letter.is_none() => {
            (*outcome != Outcome::Interrupted).then_some((instance, *attempt))
        }
        _ => None,
    }
}
