//! Quarantined executions: records each in the store, and notifies the executions that wait for them.
//!
//! The owner of a quarantined execution notifies its parent. A node can crash between the quarantine and the
//! notification, so the next owner of the partition reads its quarantined executions and notifies again. A repeated
//! notification is the same message, and the journal of the parent says if it still waits.

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::StoreError;

use super::{
    protocol::{NodeEvent, NodeOutput, Report},
    quarantine_requests::{NotifiedParents, UnnotifiedParents},
    state::Node,
};
use crate::{
    options::EngineScope,
    shard::{Event, LoadAnswer},
};

impl Node {
    /// Quarantines an execution without waiting for the store. Until the store has recorded it, the journal is not read
    /// again.
    pub(super) fn quarantine(&mut self, execution: ExecutionKey, why: String) {
        self.quarantine.pending_quarantines.insert(execution, why.clone());
        self.outputs.push_back(NodeOutput::Quarantine(execution, why));
    }

    /// True if the quarantine of no execution is being recorded.
    pub(super) fn has_recorded_all_quarantines(&self) -> bool {
        self.quarantine.pending_quarantines.is_empty()
    }

    /// Requests a journal. `None` if the quarantine of the execution is not recorded yet: the request is answered here.
    pub(super) fn load(&mut self, execution: ExecutionKey, number: u64) -> Option<NodeOutput> {
        let Some(why) = self.quarantine.pending_quarantines.get(&execution) else {
            return Some(NodeOutput::Load(execution, number));
        };
        // Queued, since it may produce outputs of its own.
        let answer = Box::new(LoadAnswer::Quarantined(why.clone()));
        self.receive(NodeEvent::Shard(Event::Loaded(execution, number, answer)));
        None
    }

    /// Handles the store's answer to a quarantine. With a shared store, a failed one is repeated when the execution is
    /// loaded again. The execution's messages were rejected in the meantime, so they are read again.
    pub(super) fn on_quarantine_recorded(
        &mut self,
        execution: ExecutionKey,
        answer: Result<Option<String>, StoreError>,
    ) {
        let why = self.quarantine.pending_quarantines.remove(&execution).unwrap_or_default();
        match answer {
            Ok(organization) => {
                self.report(Report::Quarantined(execution, why));
                self.count_out(execution, organization);
                self.quarantined(execution);
            }
            Err(error) if self.is_alone() => {
                self.stop(format!("an execution cannot be quarantined: {error}"));
            }
            Err(_) => self.reset_inbox_cursor(),
        }
    }

    /// Notifies the parent of an execution that was quarantined just now.
    pub(super) fn quarantined(&mut self, execution: ExecutionKey) {
        self.quarantine.met.remove(&execution);
        self.quarantine.meet(execution);
        self.notify_parents();
    }

    /// Compares the result of a load with the known quarantined executions. An execution that is no longer quarantined
    /// was released, so the inbox is read again for the messages that it could not receive.
    pub(super) fn meet_quarantined(&mut self, event: &Event) {
        let Event::Loaded(execution, _, answer) = event else { return };
        match **answer {
            LoadAnswer::Quarantined(_) => {
                self.quarantine.meet(*execution);
                self.notify_parents();
            }
            LoadAnswer::Journal(_) if self.quarantine.met.remove(execution).is_some() => {
                self.reset_inbox_cursor();
                self.poll_inbox();
            }
            _ => {}
        }
    }

    /// Partitions were acquired: their former owner may have notified no parent of the executions quarantined in them.
    pub(super) fn want_quarantined(&mut self) {
        self.quarantine.is_wanted = true;
        self.read_quarantined();
    }

    /// Reads the quarantined executions if that was requested, one read at a time. An engine that works on named
    /// executions notifies their parents when it loads them.
    pub(super) fn read_quarantined(&mut self) {
        self.quarantine.retry(self.now.monotonic);
        self.notify_parents();
        if !self.quarantine.is_wanted || self.quarantine.is_reading || self.scope != EngineScope::All {
            return;
        }
        (self.quarantine.is_wanted, self.quarantine.is_reading) = (false, true);
        self.outputs.push_back(NodeOutput::ReadQuarantined);
    }

    pub(super) fn found_quarantined(&mut self, found: Option<Vec<ExecutionKey>>) {
        self.quarantine.is_reading = false;
        let Some(found) = found else {
            // Retried with the next poll of timers.
            self.quarantine.is_wanted = true;
            return;
        };
        for execution in found {
            if self.shard.holds(execution) {
                self.quarantine.meet(execution);
            }
        }
        self.read_quarantined();
    }

    /// Notifies the next batch of parents.
    fn notify_parents(&mut self) {
        let Some(children) = self.quarantine.next_batch() else { return };
        let not_started =
            children.iter().filter_map(|child| Some((*child, *self.quarantine.not_started.get(child)?))).collect();
        self.outputs.push_back(NodeOutput::NotifyParents(UnnotifiedParents { children, not_started }));
    }

    /// Notifies the parent of a child whose start message was forged, if that parent waits for this child.
    pub(super) fn not_started(&mut self, child: ExecutionKey, parent: Option<ExecutionKey>) {
        let Some(parent) = parent.filter(|_| !self.quarantine.met.contains_key(&child)) else { return };
        self.quarantine.meet(child);
        self.quarantine.not_started.insert(child, parent);
        self.notify_parents();
    }

    pub(super) fn parents_notified(&mut self, notified: NotifiedParents) {
        self.quarantine.notified(notified, self.now.monotonic);
        self.notify_parents();
    }
}
