//! `mainspring sim`: a case of an author on several simulated nodes, under every misfortune of a seed.
//!
//! The case is run once with nothing going wrong; that is how each execution has to end. Then each seed runs a number of
//! executions at once on nodes that die, stand still, lose their leases and are told nothing of what the store has
//! written. The rules of [`cluster`] hold for it as for the project's own workflows; beside them every execution is
//! compared with the straight run.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_engine::evaluator::InProcess;
use mainspring_kernel::state::{ExecutionStatus, State};
use mainspring_kernel::value::Value;

pub use crate::cluster::Fault;
use crate::{
    case::{compiled, lines, setup},
    cluster::{self, Size, Subject},
    faults::Faults,
    run::run,
    scenario::{Case, What},
    setup::START_MS,
};

/// A case that can be simulated, and how it ends when nothing goes wrong.
#[derive(Debug, Clone)]
pub struct Simulation {
    subject: Subject,
    expected: Ended,
}

/// How an execution has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// Whether a failure was let through.
    pub with_failures: bool,
    /// Its output.
    pub output: Value,
}

/// What came of one seed.
#[derive(Debug, Clone)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// Executions, those included that others started.
    pub executions: u64,
    /// Calls that were begun.
    pub calls: u64,
    /// Steps that were called again although a call of them had been answered with success, by how often: the answer was
    /// lost with its node. What such a step calls has to recognize the repetition by its intent.
    pub repeated: BTreeMap<String, u64>,
    /// What does not hold; empty if the seed passes.
    pub failures: Vec<String>,
}

impl Ended {
    pub(crate) fn of(state: &State) -> Self {
        let is_completed = state.status() == ExecutionStatus::Completed;
        let output = state.output().cloned().unwrap_or_default();
        Self { status: state.status().name(), with_failures: is_completed && state.with_failures, output }
    }

    fn words(&self) -> String {
        let with = if self.with_failures { " with failures" } else { "" };
        format!("{}{with}, output {}", self.status, mainspring_kernel::json::compact(&self.output))
    }
}

impl Simulation {
    /// Compiles a case and runs it with nothing going wrong. An error says what of the case cannot be simulated, and what
    /// to write.
    pub fn of(case: &Case) -> Result<Self, String> {
        if let Some(what) = case.inbox.iter().find_map(|entry| unsupported(&entry.what)) {
            return Err(format!(
                "its inbox has {what}, which `sim` does not know: seeds bring misfortune of their own"
            ));
        }
        let evaluator: Arc<dyn mainspring_engine::evaluator::Evaluator> = Arc::new(InProcess);
        let (compiled, workflows) = compiled(case, &evaluator)
            .map_err(|found| format!("the definition was refused:\n{}", lines(&found).trim_end()))?;
        let setup = setup(case, compiled, workflows.clone(), &evaluator);
        let finished = run(&setup, Faults::NONE, 0).map_err(|broken| broken.why)?;
        if finished.state.ended_at.is_none() {
            return Err("it does not end although nothing goes wrong: write into its inbox what it waits for, as \
                        {at: {waiting: STEP}, decide: approve} or {at: {waiting: STEP}, signal: {name: NAME}}"
                .into());
        }
        let subject = Subject {
            plan: setup.plan.clone(),
            workflows,
            input: case.input.clone(),
            variables: case.variables.clone(),
            bounds: case.policy,
            effects: case.effects.clone(),
            inbox: case.inbox.clone(),
            takes_ms: finished.ended_at.saturating_sub(START_MS),
        };
        Ok(Self { subject, expected: Ended::of(&finished.state) })
    }

    /// How every execution has to end.
    pub fn expected(&self) -> &Ended {
        &self.expected
    }

    /// Runs one seed. `faults` are those that may strike; none given means all of them, each as the seed has it.
    pub fn run(&self, seed: u64, size: Size, faults: &[Fault]) -> SeedReport {
        let mut report = SeedReport { seed, executions: 0, calls: 0, repeated: BTreeMap::new(), failures: Vec::new() };
        match cluster::run_subject(seed, size, &self.subject, faults) {
            Err(why) => report.failures.push(why),
            Ok(came) => {
                report.executions = came.report.executions;
                report.calls = came.report.calls;
                report.repeated = came.repeated;
                let others = came.ended.iter().filter(|(_, ended)| *ended != self.expected);
                report.failures = others
                    .map(|(execution, ended)| {
                        let expected = self.expected.words();
                        format!("{execution} is {}; when nothing goes wrong it is {expected}", ended.words())
                    })
                    .collect();
            }
        }
        report
    }
}

fn unsupported(what: &What) -> Option<&'static str> {
    match what {
        What::Cancel { .. } => Some("a `cancel`"),
        What::Crash => Some("a `crash`"),
        What::Decide { .. } | What::Signal { .. } | What::Tick => None,
    }
}
