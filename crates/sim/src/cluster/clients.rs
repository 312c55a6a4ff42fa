//! Clients: they start executions, decide at gates, send signals and cancel.

use mainspring_engine::{
    evaluator::tenant_of,
    node::NodeEvent,
    shard::{Event, NewExecution, PendingInput, Reply, Shard, ShardError, Ticket},
    start_request::row,
};
use mainspring_kernel::{
    input::{Input, Queue, Start},
    key::ExecutionKey,
    plan::{Decision, Work},
    state::Status,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{EnqueueRequest, Origin, memory::MemoryStore, partition_of};

use super::{Cluster, ClusterEvent, node::ProcessEvent, subject::Subject, workflows::Workflows};
use crate::fixture::keys;

/// Interval at which clients handle the open approvals and waits, in milliseconds.
pub(super) const ROUND_MS: u64 = 3_000;

/// Milliseconds after which a client repeats a start without a reply.
const START_RETRY_MS: u64 = 15_000;

/// Accepted starts and sent signals.
pub(super) struct Clients {
    accepted: Vec<bool>,
    left: usize,
    signals: u64,
}

impl Clients {
    pub(super) fn new(executions: u32) -> Self {
        Self { accepted: vec![false; executions as usize], left: executions as usize, signals: 0 }
    }

    pub(super) fn all_accepted(&self) -> bool {
        self.left == 0
    }

    fn accept(&mut self, number: u32) {
        let accepted = &mut self.accepted[number as usize];
        if !std::mem::replace(accepted, true) {
            self.left -= 1;
        }
    }

    /// Handles the reply to a start. The tickets of starts begin at 1.
    pub(super) fn handle_reply(&mut self, ticket: Ticket, reply: &Reply) {
        let Some(number) = ticket.0.checked_sub(1) else { return };
        if matches!(reply, Ok(_) | Err(ShardError::Exists(_))) {
            self.accept(number as u32);
        }
    }

    /// Checks that every accepted start has an execution in the store.
    pub(super) fn check_end(&self, store: &MemoryStore, workflows: &Workflows) -> Result<(), String> {
        for number in 0..self.accepted.len() as u32 {
            if find(store, workflows, number)?.is_none() {
                return Err(format!("request {number} was accepted and has no execution"));
            }
        }
        Ok(())
    }
}

/// Finds the execution of a request by its idempotency key.
fn find(store: &MemoryStore, workflows: &Workflows, number: u32) -> Result<Option<ExecutionKey>, String> {
    let organization = workflows.organization(number);
    let origin = Origin { organization, ..Origin::named(workflows.name(number)) };
    let key = format!("request {number}");
    let row = store.execution_by_idempotency_key(&origin, &key).map_err(|error| error.to_string())?;
    Ok(row.map(|row| row.key))
}

impl Cluster {
    /// Requests an execution from a node that owns partitions, or by an inbox message. The request is repeated until it
    /// is accepted.
    pub(super) fn start_execution(&mut self, number: u32) -> Result<(), String> {
        if self.clients.accepted[number as usize] {
            return Ok(());
        }
        if self.now >= self.injected.down_until && find(&self.store, &self.workflows, number)?.is_some() {
            self.clients.accept(number);
            return Ok(());
        }
        self.at(START_RETRY_MS, ClusterEvent::StartExecution(number));
        let request = self.workflows.request(number)?;
        let (plan, stored_plans) = (request.plan.clone(), request.stored_plans());
        // Some executions without an organization are queued until a client admits them.
        let queue = (number % 8 == 3 && self.workflows.subject.is_none()).then_some(Queue::Organization);
        let start = |execution| Box::new(Start { queue, ..request.start(execution) });
        let node = self.rng.below(self.settings.size.nodes as u64) as usize;
        let held = self.nodes[node].holds();
        if held.is_empty() || self.rng.chance(20) {
            if self.now < self.injected.down_until {
                return Ok(());
            }
            let execution = self.fresh_key();
            let input = Input::Start(start(execution));
            let partitions = self.store.partitions().map_err(|error| error.to_string())?;
            let message = mainspring_engine::inbox::message(&keys().sealing, execution, &input, partitions, self.now);
            let posting = EnqueueRequest { plans: &stored_plans, ..EnqueueRequest::of(&message, partitions) };
            self.store.enqueue(&posting).map_err(|error| error.to_string())?;
            self.notify_nodes(&[message.partition]);
            return Ok(());
        }
        let partitions = self.nodes[node].shard().map_or(1, Shard::partitions);
        let mut execution = self.fresh_key();
        while !held.contains(&partition_of(execution, partitions)) {
            execution = self.fresh_key();
        }
        let start = start(execution);
        let row = row(execution, &start, &plan, self.now);
        let ticket = Some(Ticket(u64::from(number) + 1));
        let submission = NewExecution { execution, plan, stored_plans, start, row, message: None, ticket, audit: None };
        let incarnation = self.nodes[node].incarnation;
        let event = Event::Start(Box::new(submission));
        let event = NodeEvent::Ask(Ticket(u64::from(number) + 1), event);
        self.at(0, ClusterEvent::Node(node, incarnation, ProcessEvent::Node(event)));
        Ok(())
    }

    fn fresh_key(&mut self) -> ExecutionKey {
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&self.rng.next().to_be_bytes());
        entropy[8..].copy_from_slice(&self.rng.next().to_be_bytes()[..2]);
        ExecutionKey::new(self.now, entropy)
    }

    /// Decides, signals and admits, sometimes twice. In rare cases the client cancels the execution.
    pub(super) fn clients_act(&mut self) -> Result<(), String> {
        self.at(ROUND_MS, ClusterEvent::Clients);
        if self.now < self.injected.down_until {
            return Ok(());
        }
        if let Some(subject) = self.workflows.subject.clone() {
            let inputs = self.scripted_inputs(&subject)?;
            return self.deliver_all(inputs);
        }
        let mut inputs = Vec::new();
        let is_healed = self.is_healed();
        for state in self.commits.open_executions() {
            if !is_healed && self.rng.chance(1) && self.rng.chance(30) {
                inputs.push((state.key, Input::Cancel { reason: "user_stop".into(), by: "owner".into() }));
            }
            // The nodes admit the queued executions of organizations.
            if state.queue.is_some() && tenant_of(state).is_empty() && self.rng.chance(40) {
                inputs.push((state.key, Input::Admit));
            }
            for (instance, step) in &state.steps {
                if let Some(gate) = step.gate.as_ref().filter(|gate| gate.is_open) {
                    if self.rng.chance(40) {
                        let decision = if self.rng.chance(80) { Decision::Approve } else { Decision::Deny };
                        let (instance, gate, reason) = (instance.clone(), gate.number, Value::Null);
                        let by = "owner".into();
                        inputs.push((state.key, Input::Decide { instance, gate, decision, by, reason }));
                    }
                } else if step.status == Status::Waiting
                    && matches!(state.plan.step(instance.step).work, Work::Signal { .. })
                    && self.rng.chance(40)
                {
                    self.clients.signals += 1;
                    let id = format!("signal {}", self.clients.signals);
                    inputs.push((state.key, Input::Signal { id, name: "go".into(), payload: Value::Null }));
                }
            }
        }
        self.deliver_all(inputs)
    }

    /// Builds the decisions and signals of an author's case for the open gates and waits.
    fn scripted_inputs(&mut self, subject: &Subject) -> Result<Vec<(ExecutionKey, Input)>, String> {
        let mut inputs = Vec::new();
        for state in self.commits.open_executions() {
            for (instance, step) in &state.steps {
                let id = &state.plan.step(instance.step).id;
                if let Some(gate) = step.gate.as_ref().filter(|gate| gate.is_open) {
                    let Some((decision, by)) = subject.decision(id, gate.number) else {
                        return Err(format!(
                            "step `{id}` waits for a decision; write into the inbox {{at: {{waiting: {id}}}, decide: approve}}"
                        ));
                    };
                    // Each of several required approvals has the name of another approver.
                    let by = match gate.approved_by.len() {
                        0 => by.to_owned(),
                        before => gate.approvers.get(before).cloned().unwrap_or_else(|| format!("{by} {before}")),
                    };
                    let (instance, gate, reason) = (instance.clone(), gate.number, Value::Null);
                    inputs.push((state.key, Input::Decide { instance, gate, decision, by, reason }));
                } else if step.status == Status::Waiting
                    && let Work::Signal { name, .. } = &state.plan.step(instance.step).work
                {
                    for (place, payload) in subject.signals(name) {
                        let id = format!("entry {place}");
                        if !state.signals.seen.contains(&id) {
                            let (name, payload) = (name.clone(), payload.clone());
                            inputs.push((state.key, Input::Signal { id, name, payload }));
                            break;
                        }
                    }
                }
            }
        }
        Ok(inputs)
    }

    fn deliver_all(&mut self, inputs: Vec<(ExecutionKey, Input)>) -> Result<(), String> {
        for (execution, input) in inputs {
            let times = if self.draws_fault(self.faults.twice) { 2 } else { 1 };
            for _ in 0..times {
                self.deliver(execution, input.clone())?;
            }
        }
        Ok(())
    }

    /// Sends an input as an inbox message, or to a random node, which forwards it if it is not the owner.
    fn deliver(&mut self, execution: ExecutionKey, input: Input) -> Result<(), String> {
        let node = self.rng.below(self.settings.size.nodes as u64) as usize;
        if self.rng.chance(50) && self.nodes[node].is_alive() {
            let incarnation = self.nodes[node].incarnation;
            let queued = PendingInput { input, message: None, ticket: Some(Ticket(0)), audit: None };
            let event = NodeEvent::Ask(Ticket(0), Event::Take(execution, queued));
            self.at(0, ClusterEvent::Node(node, incarnation, ProcessEvent::Node(event)));
            return Ok(());
        }
        self.enqueue(execution, &input)
    }
}
