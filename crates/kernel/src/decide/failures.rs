//! Failures of steps: their disposition, and the bounds on their number.

use alloc::format;

use super::{Decider, budgets, fault};
use crate::{
    apply::IllegalTransition,
    decide_version::AGENT_FAILURES_SINCE,
    failure::{Class, Failure},
    instance::Instance,
    plan::{AgentPart, OnError},
    record::{FailureDisposition, Record},
};

impl Decider<'_> {
    pub(super) fn fail(&mut self, instance: &Instance, failure: Failure) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        // A failed tool call of an agent is a result that the model gets.
        let part = plan.agent_part(instance.step);
        let is_result = part == Some(AgentPart::Call) && failure.code != budgets::EXCEEDED;
        let disposition = if is_result || self.is_handled(instance) || self.ends_well() {
            FailureDisposition::Handled
        } else if part.is_some() && self.state.decide_version >= AGENT_FAILURES_SINCE {
            // `failOpen` tolerates the failure of the agent. A tolerated failure in it would be an empty answer.
            FailureDisposition::Failed
        } else if plan.step(instance.step).on_error == OnError::Continue
            || plan.policy.fail_open
            || plan.is_finally(plan.step(instance.step).block)
        {
            FailureDisposition::Tolerated
        } else {
            FailureDisposition::Failed
        };
        self.record(Record::StepFailed { instance: instance.clone(), fault: failure.into(), disposition })?;
        self.check_failure_bounds()
    }

    /// Fails the execution if a failure limit is reached. Tolerated and handled failures count as well.
    fn check_failure_bounds(&mut self) -> Result<(), IllegalTransition> {
        let (policy, state) = (self.state.plan.policy, &*self.state);
        let reached = |bound: Option<u32>, count: u32| bound.filter(|bound| count >= *bound);
        let (code, message) = if let Some(bound) = reached(policy.max_node_failures, state.counts.node_failures) {
            (
                format!("max_node_failures:{bound}"),
                format!("{} steps have failed, and {bound} is the bound", state.counts.node_failures),
            )
        } else if let Some(bound) = reached(policy.max_retries_exhausted, state.counts.retries_exhausted) {
            let used_up = state.counts.retries_exhausted;
            (
                format!("max_retries_exhausted:{bound}"),
                format!("{used_up} steps have used up their attempts, and {bound} is the bound"),
            )
        } else {
            return Ok(());
        };
        if state.end.bound_reached.is_some() || state.end.ending.is_some() {
            return Ok(());
        }
        self.record(Record::FailureBoundReached { fault: fault(Class::Policy, &code, message) })
    }
}
