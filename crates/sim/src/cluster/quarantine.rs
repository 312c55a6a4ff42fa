//! Quarantine at a simulated node, as in the engine's driver: the node records the quarantine in the store, and
//! notifies the parent execution that waits for a quarantined child.

use std::collections::BTreeMap;

use mainspring_engine::{
    quarantine::{Place, notify_parent},
    shard::LoadAnswer,
};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::prelude::*;

use super::{Cluster, ClusterEvent, network::StoreRequest, node::NodeEvent, operators};

/// The state that a process keeps about quarantined executions.
#[derive(Debug, Default)]
pub(super) struct QuarantineState {
    /// Executions whose quarantine is not recorded in the store yet, with the reason.
    unrecorded: BTreeMap<ExecutionKey, String>,
    /// Known quarantined executions. The flag is set once the parent was notified or a notification is in progress.
    notified: BTreeMap<ExecutionKey, bool>,
    /// A read of the quarantined executions is requested (`is_wanted`) or in progress (`is_reading`).
    is_wanted: bool,
    is_reading: bool,
}

impl QuarantineState {
    /// Returns whether a quarantine is still being recorded in the store.
    pub(super) fn is_recording(&self) -> bool {
        !self.unrecorded.is_empty()
    }
}

/// A request to the store.
#[derive(Debug)]
pub(super) enum QuarantineRequest {
    Record(ExecutionKey, String),
    NotifyParent(ExecutionKey),
    Read,
}

/// The response to a request.
#[derive(Debug)]
pub(super) enum QuarantineResponse {
    Recorded(ExecutionKey, bool),
    ParentNotified(ExecutionKey, Option<bool>),
    Found(Option<Vec<ExecutionKey>>),
}

impl Cluster {
    /// Quarantines an execution. A quarantine without an injected cause violates the rules.
    pub(super) fn quarantine(&mut self, node: usize, execution: ExecutionKey, why: String) -> Result<(), String> {
        if !self.rare_faults.may_be_quarantined.contains(&execution) {
            return Err(format!("{execution} was quarantined: {why}"));
        }
        if let Some(call) = self.calls.goes_on(node, self.nodes[node].life, execution) {
            return Err(format!("{execution} is quarantined, and {call:?} still runs"));
        }
        self.coverage.add_fault(operators::QUARANTINED);
        self.nodes[node].quarantine.unrecorded.insert(execution, why.clone());
        self.request_store(node, StoreRequest::Quarantine(QuarantineRequest::Record(execution, why)));
        Ok(())
    }

    /// Requests a journal. The journal of an execution whose quarantine is not recorded yet is not read again: the
    /// request gets its response here.
    pub(super) fn ask_for_journal(&mut self, node: usize, execution: ExecutionKey, number: u64) {
        let Some(why) = self.nodes[node].quarantine.unrecorded.get(&execution) else {
            return self.request_store(node, StoreRequest::Load(execution, number));
        };
        let (answer, life) = (Box::new(LoadAnswer::Quarantined(why.clone())), self.nodes[node].life);
        self.at(0, ClusterEvent::Node(node, life, NodeEvent::Loaded(execution, number, answer)));
    }

    /// Handles a request about quarantined executions at the store. `fails` makes the store unavailable for it.
    pub(super) fn handle_quarantine_request(
        &mut self,
        who: (usize, u32),
        request: QuarantineRequest,
        fails: bool,
    ) -> Result<(), String> {
        let response = match request {
            QuarantineRequest::Record(execution, _) if fails => QuarantineResponse::Recorded(execution, false),
            QuarantineRequest::Record(execution, why) => {
                self.store.quarantine(execution, &why).map_err(|error| error.to_string())?;
                QuarantineResponse::Recorded(execution, true)
            }
            QuarantineRequest::NotifyParent(execution) if fails => QuarantineResponse::ParentNotified(execution, None),
            QuarantineRequest::NotifyParent(execution) => {
                let place = Place { store: &self.store, loader: &self.loader, data_dir: None };
                let told = notify_parent(place, execution);
                let partitions = self.store.partitions().map_err(|error| error.to_string())?;
                self.hint(&(0..partitions).collect::<Vec<u32>>());
                QuarantineResponse::ParentNotified(execution, told.ok())
            }
            QuarantineRequest::Read if fails => QuarantineResponse::Found(None),
            QuarantineRequest::Read => {
                let rows = self.store.quarantined(None, None, usize::MAX).map_err(|error| error.to_string())?;
                QuarantineResponse::Found(Some(rows.iter().map(|row| row.execution).collect()))
            }
        };
        let delay = self.delay_of_answer();
        self.answer_in(delay, who, NodeEvent::Quarantine(response));
        Ok(())
    }

    pub(super) fn handle_quarantine_response(&mut self, node: usize, response: QuarantineResponse) {
        let quarantine = &mut self.nodes[node].quarantine;
        match response {
            QuarantineResponse::Recorded(execution, is_known) => {
                quarantine.unrecorded.remove(&execution);
                if is_known {
                    quarantine.notified.remove(&execution);
                    self.meet(node, execution);
                } else {
                    self.reset_inbox_cursor(node);
                }
            }
            // A failed notification is repeated after a later read.
            QuarantineResponse::ParentNotified(execution, is_told) => {
                if is_told != Some(true) {
                    quarantine.notified.entry(execution).and_modify(|is_told| *is_told = false);
                    quarantine.is_wanted |= is_told.is_none();
                }
            }
            QuarantineResponse::Found(found) => {
                quarantine.is_reading = false;
                let Some(found) = found else {
                    quarantine.is_wanted = true;
                    return;
                };
                for execution in found {
                    if self.nodes[node].holds_execution(execution) {
                        self.meet(node, execution);
                    }
                }
                self.read_quarantined(node);
            }
        }
    }

    /// Compares the answer to a load with the known quarantines. A journal that loads again was released: the inbox
    /// messages that the execution could not consume are read again.
    pub(super) fn check_quarantined(&mut self, node: usize, execution: ExecutionKey, answer: &LoadAnswer) {
        if !self.rare_faults.quarantines() {
            return;
        }
        match answer {
            LoadAnswer::Quarantined(_) => self.meet(node, execution),
            LoadAnswer::Journal(_) if self.nodes[node].quarantine.notified.remove(&execution).is_some() => {
                self.reset_inbox_cursor(node);
                self.poll_inbox(node);
            }
            _ => {}
        }
    }

    /// Requests a read after the node acquired partitions: their previous owner may not have notified the parents of
    /// quarantined executions.
    pub(super) fn request_quarantined(&mut self, node: usize) {
        if self.rare_faults.quarantines() {
            self.nodes[node].quarantine.is_wanted = true;
            self.read_quarantined(node);
        }
    }

    /// Reads the quarantined executions if requested, one read at a time.
    pub(super) fn read_quarantined(&mut self, node: usize) {
        let quarantine = &mut self.nodes[node].quarantine;
        if !quarantine.is_wanted || quarantine.is_reading {
            return;
        }
        (quarantine.is_wanted, quarantine.is_reading) = (false, true);
        self.request_store(node, StoreRequest::Quarantine(QuarantineRequest::Read));
    }

    /// Notifies the parent of a quarantined execution, once.
    fn meet(&mut self, node: usize, execution: ExecutionKey) {
        if self.nodes[node].quarantine.notified.insert(execution, true) != Some(true) {
            self.request_store(node, StoreRequest::Quarantine(QuarantineRequest::NotifyParent(execution)));
        }
    }
}
