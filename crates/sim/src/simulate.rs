//! `mainspring sim`: an author's case on several simulated nodes, under all faults of a seed.
//!
//! The case runs once without faults, which determines how each execution must end. Then each seed runs several
//! executions at once on nodes that crash, pause, lose their leases and miss responses of the store. The rules of
//! [`cluster`] apply as they do to the project's own workflows; in addition, every execution is compared with the
//! straight run.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_engine::evaluator::InProcess;

pub use crate::cluster::Fault;
use crate::{
    case::{compiled, fixture, lines},
    cluster::{self, Size, Subject},
    ended_execution::EndedExecution,
    faults::Faults,
    fixture::START_MS,
    run::run,
    scenario::{Case, EntryAction},
};

/// A case that can be simulated, with its outcome in a run without faults.
#[derive(Debug, Clone)]
pub struct Simulation {
    subject: Subject,
    expected: EndedExecution,
}

/// The result of one seed.
#[derive(Debug, Clone)]
pub struct SeedReport {
    /// The number from which the run was generated.
    pub seed: u64,
    /// Executions, including those that other executions started.
    pub executions: u64,
    /// Calls that were started.
    pub calls: u64,
    /// The number of repeated calls of each step after a successful one, whose response was lost with its node. The
    /// called service must recognize the repetition by its idempotency key.
    pub repeated: BTreeMap<String, u64>,
    /// Violations; empty if the seed passes.
    pub failures: Vec<String>,
}

impl Simulation {
    /// Compiles a case and runs it without faults. An error names the reason for which the case cannot be simulated,
    /// and the change to make.
    pub fn of(case: &Case) -> Result<Self, String> {
        if let Some(action) = case.inbox.iter().find_map(|entry| unsupported(&entry.action)) {
            return Err(format!("the inbox has {action}, which `sim` does not support: faults come from the seed"));
        }
        let evaluator: Arc<dyn mainspring_engine::evaluator::Evaluator> = Arc::new(InProcess);
        let (compiled, workflows) = compiled(case, &evaluator)
            .map_err(|found| format!("the definition was refused:\n{}", lines(&found).trim_end()))?;
        let fixture = fixture(case, compiled, workflows, &evaluator);
        let finished = run(&fixture, Faults::NONE, 0).map_err(|broken| broken.why)?;
        if finished.state.end.ended_at.is_none() {
            return Err(
                "the case does not end in a run without faults: add the entry that it waits for to its inbox, as \
                        {at: {waiting: STEP}, decide: approve} or {at: {waiting: STEP}, signal: {name: NAME}}"
                    .into(),
            );
        }
        let subject = Subject {
            plan: fixture.plan.clone(),
            workflows: fixture.workflows.clone(),
            input: case.input.clone(),
            variables: case.variables.clone(),
            bounds: case.policy,
            effects: case.effects.clone(),
            inbox: case.inbox.clone(),
            takes_ms: finished.ended_at.saturating_sub(START_MS),
        };
        Ok(Self { subject, expected: EndedExecution::of(&finished.state) })
    }

    /// Returns the outcome that every execution must have.
    pub fn expected(&self) -> &EndedExecution {
        &self.expected
    }

    /// Runs one seed. Only `faults` occur; an empty list means all, each as drawn from the seed.
    pub fn run(&self, seed: u64, size: Size, faults: &[Fault]) -> SeedReport {
        let mut report = SeedReport { seed, executions: 0, calls: 0, repeated: BTreeMap::new(), failures: Vec::new() };
        match cluster::run_subject(seed, size, &self.subject, faults) {
            Err(why) => report.failures.push(why),
            Ok(result) => {
                report.executions = result.report.executions;
                report.calls = result.report.calls;
                report.repeated = result.repeated;
                let others = result.ended.iter().filter(|(_, ended)| *ended != self.expected);
                report.failures = others
                    .map(|(execution, ended)| {
                        let expected = self.expected.description();
                        let (ended, why) = (ended.description(), ended.interruptions());
                        format!("{execution} is {ended}; without faults it is {expected}{why}")
                    })
                    .collect();
            }
        }
        report
    }
}

fn unsupported(action: &EntryAction) -> Option<&'static str> {
    match action {
        EntryAction::Cancel { .. } => Some("a `cancel`"),
        EntryAction::Crash => Some("a `crash`"),
        EntryAction::Migrate { .. } => Some("a migration"),
        EntryAction::Message { .. } => Some("a `message`"),
        EntryAction::Decide { .. } | EntryAction::Signal { .. } | EntryAction::MonotonicMs => None,
    }
}
