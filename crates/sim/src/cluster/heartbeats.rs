//! Heartbeats at the store, with late responses.

use mainspring_engine::{
    clock::ClockReading,
    membership::Heartbeat,
    node::{HeartbeatRequest, NodeEvent},
};
use mainspring_store::{memory::MemoryStore, prelude::*};

use super::{Cluster, faults::LEASE_MS};

/// Percent of late responses to heartbeats that follow a late response or a slow commit.
const LATE_AGAIN: u64 = 50;

impl Cluster {
    /// Handles a heartbeat at the store, which does not check whether the sender is still alive. Readings of the node's
    /// clock are those of the request until the store has applied the heartbeat, and those of the response afterwards.
    pub(super) fn handle_heartbeat(
        &mut self,
        (node, incarnation): (usize, u32),
        request: HeartbeatRequest,
        sent_at: ClockReading,
    ) -> Result<(), String> {
        let HeartbeatRequest { session: member, handoff, is_leaving } = request;
        let is_late = self.is_heartbeat_late(node);
        let delay = match self.draws_delayed_heartbeat(node) {
            true => self.delay_heartbeat(node),
            false if is_late => self.rng.below(LEASE_MS),
            false => self.delay_of_answer(),
        };
        let answered_at = self.nodes[node].clocks.read(self.now + delay);
        let (store, now) = (self.store.clone(), self.now);
        // If an earlier heartbeat was applied in the same millisecond, the table of nodes cannot show whether this one
        // was.
        let was_renewed = is_renewed(&store, member.name(), now);
        let is_after = || !was_renewed && is_renewed(&store, member.name(), now);
        let answer = member.heartbeat(&handoff, is_leaving, || if is_after() { answered_at } else { sent_at });
        if let Heartbeat::Renewed(renewal) = &answer {
            self.check_taking(member.name(), renewal, is_leaving)?;
            self.commits.took(&renewal.name, &renewal.taken)?;
        }
        self.answer_in(delay, (node, incarnation), NodeEvent::Heartbeat(handoff, answer));
        Ok(())
    }

    /// Draws whether the response to a heartbeat is late. In seeds with late responses these follow late responses and
    /// slow commits, as slowness lasts in practice. A partition that is released when such a commit becomes durable is
    /// released during a heartbeat, so the next heartbeat must report it.
    fn is_heartbeat_late(&mut self, node: usize) -> bool {
        let is_slow = self.nodes[node].delays.was_late || self.nodes[node].delays.is_commit_slow;
        let percent = if is_slow && self.faults.late_heartbeats > 0 { LATE_AGAIN } else { self.faults.late_heartbeats };
        let is_late = self.draws_fault(percent);
        self.nodes[node].delays.was_late = is_late;
        is_late
    }
}

/// Returns whether the store has applied a heartbeat of the node at this very time: only then does its lease last for
/// the whole term from now on.
fn is_renewed(store: &MemoryStore, name: &str, now: u64) -> bool {
    store.set_now(now + LEASE_MS - 1);
    let is_alive = store.cluster_view().is_ok_and(|table| table.nodes.iter().any(|node| node.name == name));
    store.set_now(now);
    is_alive
}
