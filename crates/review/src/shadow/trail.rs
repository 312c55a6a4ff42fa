//! The path of an execution: each step instance with its end, read from records.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    hash::Hash,
    plan::Plan,
    record::{Ending, Record},
    state::{ExecutionStatus, State},
    value::Value,
};

/// The steps of an execution by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trail {
    /// Each step instance that has a record.
    pub steps: BTreeMap<String, StepTrail>,
}

/// One step instance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepTrail {
    /// `running`, or its final status.
    pub status: &'static str,
    /// The branch that a conditional step took: `then`, `else`, or `none`.
    pub branch: Option<&'static str>,
    /// The output of a completed step.
    pub output: Option<Value>,
    /// The failure code of a failed step, or the reason of a canceled one.
    pub reason: Option<String>,
}

/// The end of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// The output of a completed execution.
    pub output: Option<Value>,
    /// The failure code, or the reason of the cancellation.
    pub reason: Option<String>,
}

impl Trail {
    /// Updates the step instance of a record.
    pub(super) fn add(&mut self, plan: &Plan, record: &Record) {
        let Some(instance) = record.instance() else { return };
        let (status, output, reason) = match record {
            Record::StepStarted { .. } => ("running", None, None),
            Record::StepSkipped { .. } => ("skipped", None, None),
            Record::StepCompleted { output, .. } => ("completed", Some(output.value().clone()), None),
            Record::StepFailed { fault, .. } => ("failed", None, Some(fault.code.clone())),
            Record::StepCancelled { reason, .. } => ("cancelled", None, Some(reason.clone())),
            Record::BranchTaken { instance, block } => {
                let branches = plan.step(instance.step).work.branches();
                let taken = branches.into_iter().find(|(_, inner)| Some(*inner) == *block);
                let step = self.steps.entry(instance.name(plan)).or_default();
                step.branch = Some(taken.map_or("none", |(name, _)| name));
                return;
            }
            _ => return,
        };
        let step = self.steps.entry(instance.name(plan)).or_default();
        (step.status, step.output, step.reason) = (status, output, reason);
    }

    /// Returns the features by which executions are chosen: each step with its final status and its branch. The rounds of a
    /// loop count as one.
    pub fn features(&self) -> BTreeSet<Hash> {
        let feature = |(name, step): (&String, &StepTrail)| {
            let parts = [without_rounds(name), step.status.into(), step.branch.unwrap_or_default().into()];
            Hash::of(parts.join("\n").as_bytes())
        };
        self.steps.iter().map(feature).collect()
    }
}

/// Removes round numbers: `each[12].b` becomes `each[].b`.
fn without_rounds(name: &str) -> String {
    let is_number = |letter: &char| letter.is_ascii_digit();
    let mut out = String::with_capacity(name.len());
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        out.push(letter);
        if letter == '[' || letter == '#' {
            while letters.next_if(is_number).is_some() {}
        }
    }
    out
}

impl End {
    /// Returns the end of an execution; `None` while it runs.
    pub(super) fn of(state: &State) -> Option<Self> {
        state.end.ended_at?;
        let reason = match &state.end.ending {
            Some(Ending::Failed { fault, .. }) => Some(fault.code.clone()),
            Some(Ending::Cancelled { reason }) => Some(reason.clone()),
            _ => None,
        };
        let is_completed = state.status() == ExecutionStatus::Completed;
        let output = is_completed.then(|| state.output().cloned().unwrap_or_default());
        Some(Self { status: state.status().name(), output, reason })
    }
}
