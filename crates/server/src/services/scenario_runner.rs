//! The interface to the simulator, which runs scenarios. The executable implements it, since the two crates are of one layer.

use std::{fmt, sync::Arc};

use mainspring_engine::evaluator::Evaluator;
use mainspring_kernel::value::Value;

/// Runs scenarios. The simulator implements it.
pub trait ScenarioRunner: Send + Sync {
    /// Runs the cases of a text in their order. A case fails if it reaches a bound. The work ends soon after `is_over` returns
    /// true, also while it reads the text.
    ///
    /// # Errors
    /// Fails with several lines of text if the scenarios cannot be read.
    fn run(&self, run: &ScenarioRun) -> Result<Vec<ScenarioReport>, String>;
}

/// Returns the definition with a name, as text or as a value.
pub type FindDefinition = Arc<dyn Fn(&str) -> Option<Value> + Send + Sync>;

/// Scenarios to run.
pub struct ScenarioRun {
    /// The scenarios, YAML or JSON.
    pub text: Vec<u8>,
    /// The definition of every path in the scenarios, as text or as a value.
    pub definition: Option<Value>,
    /// The workflows that a definition may start, by name.
    pub workflows: FindDefinition,
    /// Evaluates functions and schemas.
    pub evaluator: Arc<dyn Evaluator>,
    /// Only cases whose name contains this text.
    pub only: Option<String>,
    /// Most cases, mistakes and bytes.
    pub bounds: RunBounds,
    /// Returns true once the run must stop.
    pub is_over: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// The bounds of scenarios that run.
#[derive(Debug, Clone, Copy)]
pub struct RunBounds {
    /// Most cases, counted before any of them is read.
    pub cases_max: usize,
    /// Most mistakes of the text that the error has. It counts the others.
    pub problems_max: usize,
    /// Bytes of the journals of one run.
    pub journal_bytes_max: usize,
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioReport {
    /// The name of the case.
    pub name: String,
    /// The modes in which it ran; none for a rejected definition.
    pub modes: Vec<&'static str>,
    /// Violated expectations; none if the case holds.
    pub failures: Vec<String>,
    /// Remarks that do not fail the case.
    pub warnings: Vec<String>,
}

/// The runner of a server.
#[derive(Clone)]
pub struct Scenarios(pub Arc<dyn ScenarioRunner>);

impl fmt::Debug for Scenarios {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Scenarios")
    }
}
