//! What a shard holds: partitions come, are given up and are lost.
//!
//! Of a partition that is lost, nothing more is shown, started or written, whatever has been decided of it. What its
//! effects bring back goes to the inbox, for whoever holds it now.

use std::collections::BTreeSet;

use mainspring_kernel::{input::Input, key::ExecutionKey};
use mainspring_store::Fence;

use crate::{
    lease::{Change, Tick, wish},
    member::Heard,
    shard::{
        Shard,
        cell::Cell,
        words::{Output, Queued, ShardError},
    },
};

impl Shard {
    /// Time has passed on the clock that never goes back: what is held by a word whose time is over is lost now. Whoever
    /// drives a shard says so before every event and before every output.
    pub fn expire(&mut self, now: Tick) {
        if self.leases.is_over(now) {
            self.lapsed();
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
        let performing = self.performing.iter().chain(&self.adopting).map(|(execution, ..)| execution);
        for execution in busy.map(|(execution, _)| execution).chain(performing) {
            idle.remove(&self.leases.partition(*execution));
        }
        idle
    }

    /// What the store said counts; what was taken on the strength of it is held; what others lack is let go of.
    pub(super) fn heard(&mut self, heard: &Heard) {
        let Heard { name, until, table, taken, is_leaving } = heard;
        if self.leases.partitions() != table.partitions {
            self.lapsed();
        }
        let Change { lost, mut gained } = self.leases.renew(*until, table);
        self.lose(&lost);
        // What came back under another epoch was lost first.
        self.leases.add(&table.held);
        self.leases.add(taken);
        gained.extend(taken.iter().map(|fence| fence.partition));
        self.gain(gained);
        if !is_leaving {
            let surplus = wish(table, name, &self.idle()).give_up;
            self.give_up(&surplus);
        }
    }

    pub(super) fn lapsed(&mut self) {
        let all: Vec<u32> = self.leases.held().collect();
        self.lose(&all);
    }

    fn gain(&mut self, gained: Vec<u32>) {
        if !gained.is_empty() {
            self.outputs.push_back(Output::Gained(gained));
        }
    }

    /// Lets go of those of the partitions of which nothing is going on; the others stay.
    fn give_up(&mut self, partitions: &[u32]) {
        let idle = self.idle();
        let partitions: Vec<u32> = partitions.iter().copied().filter(|partition| idle.contains(partition)).collect();
        let fences: Vec<Fence> = partitions.iter().filter_map(|partition| self.leases.fence(*partition)).collect();
        self.drop_cells(&partitions);
        if !fences.is_empty() {
            self.outputs.push_back(Output::GivenUp(fences));
        }
    }

    /// Partitions are another's, or may be.
    pub(super) fn lose(&mut self, partitions: &[u32]) {
        if partitions.is_empty() {
            return;
        }
        self.drop_cells(partitions);
        self.outputs.push_back(Output::Lost(partitions.to_vec()));
    }

    fn drop_cells(&mut self, partitions: &[u32]) {
        let leases = &self.leases;
        let is_gone = |execution: &ExecutionKey| partitions.contains(&leases.partition(*execution));
        let gone: Vec<ExecutionKey> = self.cells.keys().copied().filter(is_gone).collect();
        self.outputs.retain(|output| output.stays_without(&is_gone));
        self.timers.retain(|(_, execution)| !is_gone(execution));
        self.dead_letters.retain(|execution, _| !is_gone(execution));
        self.untold.retain(|execution, _| !is_gone(execution));
        self.adopting.retain(|(execution, ..)| !is_gone(execution));
        if let Some(flight) = &mut self.flight {
            flight.orphan(is_gone);
        }
        let kept: Vec<_> = self.kept.extract_if(.., |execution, _| is_gone(execution)).collect();
        // What runs is asked to end: who has the partition now believes it interrupted. Its outcome is passed on.
        for (execution, instance, attempt) in self.performing.extract_if(.., |(execution, ..)| is_gone(execution)) {
            self.outputs.push_back(Output::Stop { execution, instance, attempt });
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
        for Queued { input, letter, ticket } in queued {
            if let Some(ticket) = ticket {
                self.outputs.push_back(Output::Reply(ticket, Err(ShardError::NotHere)));
            } else if letter.is_none() && matches!(input, Input::Receipt { .. }) {
                self.outputs.push_back(Output::PassOn(execution, input));
            }
        }
    }

    /// Whether an execution's partition is held.
    pub(super) fn holds(&self, execution: ExecutionKey) -> bool {
        self.leases.fence(self.leases.partition(execution)).is_some()
    }
}
