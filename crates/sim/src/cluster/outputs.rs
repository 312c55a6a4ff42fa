//! Performs the outputs of a node: its requests go to the store through the network, and its calls to the executors.

use mainspring_engine::node::{NodeEvent, NodeOutput, Report};
use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};

use super::{
    Cluster, ClusterEvent, executors,
    faults::LEASE_MS,
    network::{CommitOutcome, StoreRequest},
    node::ProcessEvent,
    operators,
};

impl Cluster {
    pub(super) fn perform_output(&mut self, node: usize, output: NodeOutput) -> Result<(), String> {
        let request = match output {
            NodeOutput::Commit { commit_id, batch, pause_ms } => {
                let outcome = self.draw_commit_outcome(node, &batch);
                self.nodes[node].delays.is_commit_slow = outcome == CommitOutcome::Slow;
                StoreRequest::Commit { commit_id, batch, outcome, pause_ms }
            }
            NodeOutput::Load(execution, number) => StoreRequest::Load(execution, number),
            NodeOutput::Heartbeat(request) => {
                self.nodes[node].delays.heartbeat_by = None;
                let sent_at = self.nodes[node].clocks.read(self.now);
                StoreRequest::Heartbeat(request, sent_at)
            }
            NodeOutput::ReadInbox(request) => StoreRequest::ReadInbox(request),
            NodeOutput::ReadDue(partitions, until_ms) => StoreRequest::ReadDue(partitions, until_ms),
            NodeOutput::Forward(request) => StoreRequest::Forward(request),
            NodeOutput::EndRemote(name, attempts) => StoreRequest::EndRemote(name, attempts),
            NodeOutput::StopRemote(attempt) => StoreRequest::StopRemote(attempt),
            NodeOutput::Quarantine(execution, why) => {
                self.check_quarantine(node, execution, &why)?;
                StoreRequest::Quarantine(execution, why)
            }
            NodeOutput::ReadQuarantined => StoreRequest::ReadQuarantined,
            NodeOutput::NotifyParents(parents) => StoreRequest::NotifyParents(parents),
            NodeOutput::ReadOrganization(organization, over) => StoreRequest::ReadOrganization(organization, over),
            NodeOutput::CountUnfinished(organization) => StoreRequest::CountUnfinished(organization),
            NodeOutput::ReadQueues => StoreRequest::ReadQueues,
            NodeOutput::Admit(executions) => StoreRequest::Admit(executions),
            NodeOutput::Lease(wanted) => StoreRequest::Lease(wanted),
            output => return self.perform_here(node, output),
        };
        self.request_store(node, request);
        Ok(())
    }

    /// Performs an output that is no request to the store.
    fn perform_here(&mut self, node: usize, output: NodeOutput) -> Result<(), String> {
        let incarnation = self.nodes[node].incarnation;
        match output {
            NodeOutput::Perform(execution, instance, attempt) => self.perform(node, execution, &instance, &attempt)?,
            NodeOutput::Stop((execution, instance, attempt)) | NodeOutput::Kill((execution, instance, attempt)) => {
                self.stop(node, execution, &instance, attempt);
            }
            NodeOutput::Reconcile(execution, instance, attempt) => self.adopt(node, execution, instance, &attempt),
            NodeOutput::Evaluate(execution, evaluation, suspended) => {
                let event = NodeEvent::Shard(self.evaluate(execution, evaluation, *suspended));
                let after = self.draw_evaluation_ms();
                self.at(after, ClusterEvent::Node(node, incarnation, ProcessEvent::Node(event)));
            }
            NodeOutput::Reply(ticket, reply) => self.clients.handle_reply(ticket, &reply),
            NodeOutput::Notify(moment) => self.commits.check_told(moment.execution, moment.sequence)?,
            NodeOutput::Rejoin => self.rejoin(node),
            NodeOutput::NotifyNodes(partitions) => self.notify_nodes(&partitions),
            NodeOutput::Report(report) => self.observe(node, report)?,
            // The store failed during the drain. The next owner decides again about inputs that were not written.
            NodeOutput::Fatal(_) if self.nodes[node].is_leaving() => {}
            NodeOutput::Fatal(why) => return Err(format!("{} has stopped: {why}", self.nodes[node].name())),
            // The other outputs are requests to the store.
            _ => {}
        }
        Ok(())
    }

    /// Recovers an attempt. The executor stops orphaned processes before it responds, which takes time.
    fn adopt(&mut self, node: usize, execution: ExecutionKey, instance: Instance, attempt: &Attempt) {
        let recovery = executors::adopt(&self.nodes[node].executors, attempt);
        let at_most = if self.draws_fault(self.faults.long_calls) { LEASE_MS } else { 20 };
        let (incarnation, after) = (self.nodes[node].incarnation, self.rng.below(at_most));
        let attempt = attempt.number;
        let event = mainspring_engine::shard::Event::AttemptRecovered { execution, instance, attempt, recovery };
        self.at(after, ClusterEvent::Node(node, incarnation, ProcessEvent::Node(NodeEvent::Shard(event))));
    }

    fn observe(&mut self, node: usize, report: Report) -> Result<(), String> {
        match report {
            Report::Lost(_) => self.calls.lose(node, self.nodes[node].incarnation),
            Report::Silent { for_ms, .. } => self.expect_heartbeat(node, for_ms),
            Report::Released(_, running) => self.progress.handed_over += running as u64,
            Report::Forged(_, id) => self.check_forged(&id)?,
            Report::Forwarded { execution, receipt, is_enqueued: false } => self.calls.let_go(execution, &receipt),
            Report::Quarantined(execution, why) if !self.rare_faults.may_be_quarantined.contains(&execution) => {
                return Err(format!("{execution} was quarantined without a cause: {why}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a quarantine. One without an injected cause violates the rules.
    fn check_quarantine(&mut self, node: usize, execution: ExecutionKey, why: &str) -> Result<(), String> {
        if !self.rare_faults.may_be_quarantined.contains(&execution) {
            return Err(format!("{execution} was quarantined without a cause: {why}"));
        }
        if let Some(call) = self.calls.running_attempt(node, self.nodes[node].incarnation, execution) {
            return Err(format!("{execution} is quarantined, and {call:?} still runs"));
        }
        self.progress.coverage.add_fault(operators::QUARANTINED);
        Ok(())
    }
}
