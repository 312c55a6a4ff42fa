//! Child executions: their start, their cancellation, and the messages between child and parent.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Decider, OutgoingMessage};
use crate::{
    apply::IllegalTransition,
    budget::Budget,
    decide_version::SECOND_RULES,
    effect::{ChildEnd, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    input::{
        INITIATOR_IN_TRIGGER, Input, Lineage, NAME_IN_TRIGGER, ORGANIZATION_IN_TRIGGER, PARENT_IN_TRIGGER, Parent,
        Policy, REPOSITORY_IN_TRIGGER, ROOT_IN_TRIGGER, Start, VERSION_IN_TRIGGER, WORKFLOW_IN_TRIGGER,
        WORKFLOWS_IN_TRIGGER,
    },
    instance::Instance,
    key::ExecutionKey,
    limits::{EDGES_STEPS_DEFAULT, EXECUTION_STEPS_DEFAULT, LINEAGE_DEPTH_MAX},
    record::{Ending, Record},
    state::State,
    value::{Map, Value},
};

impl Decider<'_> {
    /// Returns the failure of a step whose child cannot start, or `None` if it can.
    pub(super) fn child_refused(&self, instance: &Instance, workflow: &str, waits: bool) -> Option<Failure> {
        let id = self.state.plan.id(instance.step);
        if !self.state.lineage.workflows.iter().any(|pinned| pinned.name == workflow) {
            let message = format!("step `{id}`: no workflow `{workflow}` was known when this execution began");
            return Some(Failure::new(Class::Invalid, "unknown_workflow", message));
        }
        // A detached child does not extend the chain of executions that wait for each other.
        let has_depth = waits || !self.is_bounded();
        if has_depth && self.state.lineage.depth >= LINEAGE_DEPTH_MAX {
            let message =
                format!("step `{id}`: {LINEAGE_DEPTH_MAX} executions are above this one, and it may start no other");
            return Some(Failure::new(Class::Policy, format!("lineage_too_deep:{LINEAGE_DEPTH_MAX}"), message));
        }
        None
    }

    /// Starts the child of an attempt. The start message is stored in the commit that starts the attempt.
    pub(super) fn start_child(
        &mut self,
        instance: &Instance,
        attempt: u32,
        (executions, budget): (Option<u32>, Option<Budget>),
    ) {
        let Some((workflow, waits)) = self.state.started_workflow(instance) else { return };
        let pinned = self.state.lineage.workflows.iter().find(|pinned| pinned.name == workflow);
        let (Some(pinned), Some(began)) = (pinned.cloned(), &self.state.start) else { return };
        let to = child_key(self.state, instance, attempt);
        let recorded = self.state.steps.get(instance).map(|step| &step.input);
        // The input of a tool call has the parameters inside.
        let recorded = recorded.and_then(|input| input.get("params").or(Some(input)));
        let input = recorded.cloned().unwrap_or_default();
        let parent = Parent { execution: self.state.key, instance: instance.clone(), attempt };
        let lineage = Lineage {
            parent: waits.then_some(parent),
            depth: if waits || !self.is_bounded() { self.state.lineage.depth + 1 } else { 1 },
            workflows: self.state.lineage.workflows.clone(),
            executions,
            budget,
        };
        let mut trigger = Map::from([
            ("type".into(), "subworkflow".into()),
            (PARENT_IN_TRIGGER.into(), began.execution_id.as_str().into()),
            ("parentStepId".into(), instance.name(&self.state.plan).into()),
            (ROOT_IN_TRIGGER.into(), self.state.root().to_string().into()),
        ]);
        // The child belongs to the organization and the initiator of its parent.
        for key in [ORGANIZATION_IN_TRIGGER, INITIATOR_IN_TRIGGER, WORKFLOWS_IN_TRIGGER, REPOSITORY_IN_TRIGGER] {
            trigger.extend(began.trigger.get(key).map(|said| (key.into(), said.clone())));
        }
        let known = began.trigger.get(WORKFLOWS_IN_TRIGGER).and_then(|workflows| workflows.get(workflow));
        for key in [WORKFLOW_IN_TRIGGER, NAME_IN_TRIGGER, VERSION_IN_TRIGGER] {
            trigger.extend(known.and_then(|known| known.get(key)).map(|said| (key.into(), said.clone())));
        }
        let start = Start {
            // A child runs within the admission of its root.
            queue: None,
            execution_id: to.to_string(),
            workflow_hash: pinned.workflow_hash,
            plan_hash: pinned.plan_hash,
            input: input.get("input").cloned().unwrap_or_default(),
            variables: input.get("variables").cloned().unwrap_or_default(),
            trigger: Value::Map(trigger),
            policy: Policy { timeout_ms: None, ..began.policy },
            attempt: 1,
            by: began.by.clone(),
            workspace: began.workspace.clone(),
            lineage: Some(lineage),
        };
        self.agenda.turn.messages.push(OutgoingMessage {
            to,
            id: "start".into(),
            input: Input::Start(Box::new(start)),
        });
    }

    /// Cancels the child of an attempt. The child still sends its end, which is awaited.
    pub(super) fn stop_child(&mut self, instance: &Instance, attempt: u32) {
        let to = child_key(self.state, instance, attempt);
        let by = self.state.start.as_ref().map(|start| start.by.clone()).unwrap_or_default();
        let input = Input::Cancel { reason: "parent_cancelled".into(), by };
        let rounds: String = instance.rounds.iter().map(|round| format!(".{round}")).collect();
        let id = format!("{CANCELED_BY}{} {}{rounds} {attempt}", self.state.key, instance.step);
        self.agenda.turn.messages.push(OutgoingMessage { to, id, input });
    }

    /// Returns the limits of the execution. In a child, those of its definition take precedence over those of its
    /// parent.
    pub(super) fn policy_of(&self, start: &Start) -> Policy {
        let is_child = start.lineage.as_ref().is_some_and(|lineage| lineage.depth > 0);
        if !is_child {
            return start.policy;
        }
        let asked = self.state.plan.constraints;
        Policy {
            max_steps: asked.max_steps.unwrap_or_else(|| self.inherited_steps(start.policy.max_steps)),
            max_output_bytes: asked.max_output_bytes.or(start.policy.max_output_bytes),
            max_parallel: asked.max_parallel.unwrap_or(start.policy.max_parallel),
            timeout_ms: asked.timeout_ms.or(start.policy.timeout_ms),
        }
    }

    /// Returns the limit on step visits of a child whose definition has none. If the parent's limit is merely a
    /// default, the child may use its own default if that is higher.
    fn inherited_steps(&self, of_parent: u32) -> u32 {
        let is_default = of_parent == EXECUTION_STEPS_DEFAULT || of_parent == EDGES_STEPS_DEFAULT;
        let own = self.state.plan.max_steps_default();
        if self.is_bounded() && is_default { of_parent.max(own) } else { of_parent }
    }

    /// Notifies the parent when this execution starts to wait for approvals only, and when it runs again.
    pub(super) fn notify_parent_of_waiting(&mut self, waits: bool) -> Result<(), IllegalTransition> {
        let knows = self.state.counts.parent_notices % 2 == 1;
        let Some(parent) = self.state.lineage.parent.clone().filter(|_| waits != knows) else { return Ok(()) };
        if self.state.decide_version < SECOND_RULES {
            return Ok(());
        }
        self.record(Record::ParentNotified)?;
        let count = self.state.counts.parent_notices;
        let input = Input::ChildWaits { instance: parent.instance, attempt: parent.attempt, count };
        let id = format!("waiting {count} of {}", self.state.key);
        self.agenda.turn.messages.push(OutgoingMessage { to: parent.execution, id, input });
        Ok(())
    }

    /// Processes a notification of a child. Messages can arrive out of order, so only the highest count is used.
    pub(super) fn child_waits(
        &mut self,
        instance: &Instance,
        attempt: u32,
        count: u32,
    ) -> Result<(), IllegalTransition> {
        let step = self.state.steps.get(instance).filter(|_| self.state.open.attempts.contains(instance));
        let is_news =
            step.is_some_and(|step| step.attempt == attempt && step.stopping.is_none() && step.child.notices < count);
        if !is_news || self.state.started_workflow(instance).is_none() {
            return Ok(());
        }
        self.record(Record::ChildWaits { instance: instance.clone(), count })
    }

    /// Sends the result of the execution to its parent, as the receipt of the waiting attempt.
    pub(super) fn notify_parent(&mut self) {
        let (Some(parent), Some(ending)) = (self.state.lineage.parent.clone(), &self.state.end.ending) else { return };
        let end = match ending {
            Ending::Completed { output } => ChildEnd::Done(output.value().clone()),
            Ending::Failed { fault, .. } => ChildEnd::Failed(fault.failure()),
            Ending::Cancelled { reason } if self.state.decide_version >= SECOND_RULES => {
                ChildEnd::Cancelled(reason.clone())
            }
            Ending::Cancelled { reason } => ChildEnd::Failed(cancellation(reason)),
        };
        let account = &self.state.counts.budgets.execution;
        let usage = account.spent.plus(account.reserved);
        let outcome = match self.is_bounded() {
            true if self.state.lineage.budget.is_some() || !usage.is_zero() => {
                let executions = self.state.counts.executions.saturating_add(1);
                Outcome::ChildWithUsage { end, executions, usage: Box::new(usage), raised: Box::new(account.raised) }
            }
            true => Outcome::Child { end, executions: self.state.counts.executions.saturating_add(1) },
            false => end.into(),
        };
        let input = Input::Receipt { instance: parent.instance, attempt: parent.attempt, outcome };
        self.agenda.turn.messages.push(OutgoingMessage {
            to: parent.execution,
            id: format!("end of {}", self.state.key),
            input,
        });
    }
}

/// Creates the failure of an attempt whose child was canceled.
pub(super) fn cancellation(reason: &str) -> Failure {
    let message = format!("the workflow that was started was cancelled: {reason}");
    Failure::new(Class::Cancelled, reason, message)
}

/// Prefix of the id of the message by which a parent cancels its child.
const CANCELED_BY: &str = "parent_cancelled of ";

/// Parses the waiting attempt of the parent from the id of a cancel message; `None` for any other message. If the child
/// never started, the id is the only thing that names its parent.
pub fn canceled_by(id: &str) -> Option<Parent> {
    let mut words = id.strip_prefix(CANCELED_BY)?.split(' ');
    let (execution, instance, attempt) = (words.next()?, words.next()?, words.next()?);
    let mut numbers = instance.split('.').map(|number| number.parse().ok());
    let step = numbers.next()??;
    let rounds = numbers.collect::<Option<Vec<u32>>>()?;
    let (execution, attempt) = (ExecutionKey::parse(execution)?, attempt.parse().ok()?);
    words.next().is_none().then_some(Parent { execution, instance: Instance { step, rounds }, attempt })
}

/// Returns the key of the child execution of an attempt. It derives from the step's intent, so a repeated start message
/// does not start a second child.
pub fn child_key(state: &State, instance: &Instance, attempt: u32) -> ExecutionKey {
    let step = state.steps.get(instance);
    let intent = step.and_then(|step| step.intent).unwrap_or_default();
    child_key_of(intent, attempt, step.map_or(0, |step| step.times.handed_out_at))
}

/// Computes the key of a child from the step's intent, the attempt number and the dispatch time of the attempt.
pub fn child_key_of(intent: Hash, attempt: u32, handed_out_at: u64) -> ExecutionKey {
    let hash = Hash::of_parts(&[&intent.0, &attempt.to_be_bytes()]);
    let mut entropy = [0; 10];
    entropy.copy_from_slice(&hash.0[..10]);
    ExecutionKey::new(handed_out_at, entropy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_by_its_complete_id() {
        let key = ExecutionKey::new(1_767_225_600_000, [7; 10]);
        let parent = |rounds: &[u32]| Parent {
            execution: key,
            instance: Instance { step: 3, rounds: rounds.to_vec() },
            attempt: 2,
        };
        assert_eq!(canceled_by(&format!("parent_cancelled of {key} 3 2")), Some(parent(&[])));
        assert_eq!(canceled_by(&format!("parent_cancelled of {key} 3.0.9 2")), Some(parent(&[0, 9])));
        for wrong in ["parent_cancelled", "parent_cancelled of ", "parent_cancelled of x 3 2"] {
            assert_eq!(canceled_by(wrong), None, "{wrong}");
        }
        for wrong in ["3", "3 ", "3 x", "3. 2", "x 2", "3 2 1", "4294967296 1"] {
            assert_eq!(canceled_by(&format!("parent_cancelled of {key} {wrong}")), None, "{wrong}");
        }
    }
}
