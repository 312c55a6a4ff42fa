//! Carries out the outputs of a shard.

use mainspring_engine::shard::Output;
use mainspring_store::prelude::*;

use super::{
    Cluster, ClusterEvent,
    fault_coverage::PAUSED,
    faults::{FaultProfile, LEASE_MS},
    network::{CommitOutcome, Passing, StoreRequest},
    node::NodeEvent,
};

/// Delay after a commit that was not written, in milliseconds; the engine's driver uses the same.
const PAUSE_MIN_MS: u64 = 20;
const PAUSE_MAX_MS: u64 = 1_000;

/// Outputs after which a round of a shared driver ends, in percent.
const ROUND_ENDS_PERCENT: u64 = 20;

impl Cluster {
    /// Carries out the outputs of a node, unless a pause of the node is injected before one of them.
    pub(super) fn carry(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_over {
            return Ok(());
        }
        let life = self.nodes[node].life;
        let reading = self.nodes[node].clocks.read(self.now);
        if let Some(shard) = &mut self.nodes[node].shard {
            shard.expire(reading);
            shard.flush();
        }
        let mut percent = self.pause_before_first(node);
        loop {
            if self.nodes[node].is_alive() && self.draws_fault(percent) {
                let for_ms = self.rng.below(3 * LEASE_MS) + 1;
                self.pause_node(node, for_ms);
                let landed = std::mem::take(&mut self.nodes[node].landed);
                self.coverage.add_records(&landed, PAUSED);
                self.at(for_ms, ClusterEvent::Node(node, life, NodeEvent::Resume));
                return Ok(());
            }
            percent = self.faults.pause_before_output;
            if self.ends_round(node) {
                self.at(1, ClusterEvent::Node(node, life, NodeEvent::Resume));
                break;
            }
            let Some(shard) = &mut self.nodes[node].shard else { return Ok(()) };
            shard.expire(reading);
            let (believed, held) = (shard.partitions(), shard.held().collect::<Vec<_>>());
            let Some(output) = shard.next_output() else { break };
            let stored = self.store.partitions().map_err(|error| error.to_string())?;
            self.commits.check_belief(&self.nodes[node].name(), (believed, stored), &held)?;
            self.check_clock(node, &held)?;
            self.put_out(node, output)?;
            if !self.nodes[node].is_life(life) || self.nodes[node].is_over {
                return Ok(());
            }
        }
        self.set_alarm(node);
        Ok(())
    }

    /// Ends a round with outputs left, as the driver does while several organizations share it: other events come first.
    fn ends_round(&mut self, node: usize) -> bool {
        let is_shared =
            self.nodes[node].shard.as_ref().is_some_and(|shard| shard.is_always_shared() && shard.has_outputs());
        is_shared && self.rng.below(100) < ROUND_ENDS_PERCENT
    }

    /// Percent of pauses before all that is carried out now. After a kind of record that no pause of this seed has followed
    /// there are more: where nodes often stand still, hardly anything rare is written.
    fn pause_before_first(&self, node: usize) -> u64 {
        let FaultProfile { pause_before_output, pause_after_new, .. } = self.faults;
        let has_new = || self.coverage.has_new(&self.nodes[node].landed, PAUSED);
        if pause_after_new > 0 && has_new() { pause_after_new } else { pause_before_output }
    }

    fn put_out(&mut self, node: usize, output: Output) -> Result<(), String> {
        let life = self.nodes[node].life;
        match output {
            Output::Commit { commit_id, batch } => {
                self.nodes[node].in_flight = true;
                let outcome = self.draw_commit_outcome(node, &batch);
                self.nodes[node].is_commit_slow = outcome == CommitOutcome::Slow;
                self.request_store(node, StoreRequest::Commit { commit_id, batch, outcome });
            }
            Output::Load(execution, number) => self.ask_for_journal(node, execution, number),
            Output::Perform { execution, instance, attempt } => {
                self.perform(node, execution, &instance, &attempt)?;
            }
            Output::Stop { execution, instance, attempt } | Output::Kill { execution, instance, attempt } => {
                self.stop(node, execution, &instance, attempt);
            }
            Output::Reconcile { execution, instance, attempt } => {
                self.adopt_behind_letters(node, (execution, instance, attempt));
            }
            Output::Evaluate { execution, evaluation, suspended } => {
                let event = self.evaluate(execution, evaluation, *suspended);
                let after = self.rng.below(50);
                self.at(after, ClusterEvent::Node(node, life, NodeEvent::Event(event)));
            }
            Output::MessagesEnqueued(partitions) => self.on_messages_enqueued(node, &partitions),
            Output::RescanInbox => {
                self.reset_inbox_cursor(node);
                self.poll_inbox(node);
            }
            Output::Acquired(partitions) => {
                self.look_at_gained(node, partitions);
                self.request_quarantined(node);
            }
            Output::Handoff(handoff) => self.handoff(node, handoff),
            Output::PassOn(execution, input, remote) => {
                *self.nodes[node].passing_on.entry(execution).or_default() += 1;
                let (name, since) = (self.nodes[node].name(), self.now);
                self.request_store(node, StoreRequest::PassOn(Passing { execution, input, remote, name, since }));
            }
            Output::StopRemote(attempt) => self.request_store(node, StoreRequest::StopRemote(attempt)),
            Output::Reply(ticket, reply) => self.clients.handle_reply(ticket, &reply),
            Output::Notify(moment) => self.commits.check_told(moment.execution, moment.sequence)?,
            Output::Quarantine(execution, why) => self.quarantine(node, execution, why)?,
            Output::Fatal(why) => return Err(format!("{} has given up: {why}", self.nodes[node].name())),
            // Scheduled after the current outputs, since the event may produce further ones.
            Output::Activate(execution) => self.at(0, ClusterEvent::Node(node, life, NodeEvent::Activate(execution))),
            Output::Stalled(_) if self.nodes[node].is_draining => self.give_in(node),
            Output::Stalled(_) => {
                let place = &mut self.nodes[node];
                place.pause_ms = (place.pause_ms * 2).clamp(PAUSE_MIN_MS, PAUSE_MAX_MS);
            }
            Output::Lost(_) => self.calls.lose(node, life),
            Output::Forget { .. } => {}
        }
        Ok(())
    }
}
