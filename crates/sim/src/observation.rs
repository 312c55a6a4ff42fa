//! The result of a case without its expectations, from which a skeleton of a scenario is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_engine::evaluator::{Evaluator, InProcess};
use mainspring_kernel::{
    instance::Instance,
    plan::{Plan, Work},
    record::{Ending, Record},
    state::{ExecutionStatus, State, Status},
    value::Value,
};

use crate::{
    case::{compiled, fixture, lines},
    faults::Faults,
    run::{Finished, run},
    scenario::{Case, End},
};

/// The result of a case in a run without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The status of the execution.
    pub status: End,
    /// True if a failure was tolerated.
    pub with_failures: bool,
    /// The output of the execution; null if there is none.
    pub output: Value,
    /// The code of the error of an execution that failed, or the reason of a cancellation.
    pub error_code: Option<String>,
    /// The statuses of the steps outside of loops, by id.
    pub steps: BTreeMap<String, Status>,
    /// Ids of the steps that completed at least once, those in loops included.
    pub completed: BTreeSet<String>,
    /// Ids of the steps of which an attempt failed.
    pub failed: BTreeSet<String>,
    /// Ids of the steps that were skipped at least once.
    pub skipped: BTreeSet<String>,
    /// The branches that each conditional took, by its id: true for `then`.
    pub branches: BTreeMap<String, BTreeSet<bool>>,
    /// The names of the effects whose results were used.
    pub used: BTreeSet<String>,
    /// The entries of the inbox that had no effect, by number.
    pub missed: BTreeSet<usize>,
    /// All calls in order: the tool or the kind of the effect, and the arguments.
    pub calls: Vec<(String, Value)>,
}

/// Runs a case once without faults. The error is one sentence, or several lines for a definition that is refused.
pub fn observe(case: &Case) -> Result<Observation, String> {
    let evaluator: Arc<dyn Evaluator> = Arc::new(InProcess);
    let (compiled, workflows) =
        compiled(case, &evaluator).map_err(|problems| lines(&problems).trim_end().to_string())?;
    let fixture = fixture(case, compiled, workflows, &evaluator);
    run(&fixture, Faults::NONE, 0).map(|finished| of(&finished)).map_err(|broken| broken.why)
}

fn of(finished: &Finished) -> Observation {
    let (state, plan) = (&finished.state, &finished.plan);
    let is_anybody_asked = state.open_gates().next().is_some() || !state.open.held_children.is_empty();
    let mut observation = Observation {
        status: End::of(state.status(), is_anybody_asked),
        with_failures: state.status() == ExecutionStatus::Completed && state.end.with_failures,
        output: state.output().cloned().unwrap_or_default(),
        error_code: error_code(state),
        steps: BTreeMap::new(),
        completed: BTreeSet::new(),
        failed: BTreeSet::new(),
        skipped: BTreeSet::new(),
        branches: BTreeMap::new(),
        used: finished.scripts_used.clone(),
        missed: finished.missed.iter().map(|(place, _)| *place).collect(),
        calls: finished.calls.iter().map(|call| (call.tool.clone(), call.arguments.clone())).collect(),
    };
    for step in (0..plan.steps.len() as u32).filter(|step| is_outside_of_loops(plan, *step)) {
        if let Some(instance) = Instance::parse(plan.id(step), plan) {
            observation.steps.insert(plan.id(step).into(), state.step_status(&instance));
        }
    }
    for record in finished.frames.iter().flat_map(|frame| &frame.records) {
        match record {
            Record::StepCompleted { instance, .. } => {
                observation.completed.insert(plan.id(instance.step).into());
            }
            Record::StepFailed { instance, .. } | Record::AttemptFailed { instance, .. } => {
                observation.failed.insert(plan.id(instance.step).into());
            }
            Record::StepSkipped { instance, .. } => {
                observation.skipped.insert(plan.id(instance.step).into());
            }
            Record::BranchTaken { instance, block } => {
                if let Work::Conditional { then, .. } = plan.step(instance.step).work {
                    let taken = observation.branches.entry(plan.id(instance.step).into()).or_default();
                    taken.insert(*block == Some(then));
                }
            }
            _ => {}
        }
    }
    observation
}

fn error_code(state: &State) -> Option<String> {
    match state.end.ending.as_ref().filter(|_| state.end.ended_at.is_some())? {
        Ending::Completed { .. } => None,
        Ending::Cancelled { reason } => Some(reason.clone()),
        Ending::Failed { fault, .. } => Some(fault.code.clone()),
    }
}

fn is_outside_of_loops(plan: &Plan, step: u32) -> bool {
    plan.loop_depth(step) == 0
}
