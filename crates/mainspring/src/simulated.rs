//! Runs the scenarios of a server's members with the simulator.

use std::sync::{Arc, OnceLock};

use mainspring_kernel::{
    definition::{self, Syntax},
    diagnostic::Diagnostic,
    document::Document,
    value::Value,
};
use mainspring_server::services::scenario_runner::{
    FindDefinition, RunBounds, ScenarioReport, ScenarioRun, ScenarioRunner,
};
use mainspring_sim::{
    Allowance, Bounds, run_case_within,
    scenario::{Definition, Definitions, read_within},
};

/// Runs scenarios with the simulator. It reads no files: a definition comes from the request or from the store.
pub(crate) struct Simulated;

/// The definitions of a request.
struct Requested {
    definition: Option<Value>,
    /// The parsed definition, which all cases share.
    parsed: OnceLock<Definition>,
    workflows: FindDefinition,
}

impl Definitions for Requested {
    fn definition(&self, _: &str) -> Result<Definition, String> {
        let Some(definition) = &self.definition else {
            return Err("a server reads no files, and the request has no definition".into());
        };
        Ok(self.parsed.get_or_init(|| Arc::new(document(definition))).clone())
    }

    fn workflow(&self, _: &str, name: &str) -> Option<Definition> {
        (self.workflows)(name).as_ref().map(|definition| Arc::new(document(definition)))
    }

    fn help(&self) -> String {
        "write the definition in place, or send it or the id of a workflow with the scenarios".into()
    }
}

fn document(definition: &Value) -> Result<Document, Diagnostic> {
    match definition {
        Value::Text(text) => definition::read(text.as_bytes(), Syntax::Guess),
        value => Ok(Document::placeless(value.clone())),
    }
}

impl ScenarioRunner for Simulated {
    fn run(&self, run: &ScenarioRun) -> Result<Vec<ScenarioReport>, String> {
        let (definition, workflows, parsed) = (run.definition.clone(), run.workflows.clone(), OnceLock::new());
        let definitions = Requested { definition, parsed, workflows };
        let is_over = run.is_over.clone();
        let RunBounds { cases_max, problems_max, journal_bytes_max } = run.bounds;
        let allowance = Allowance::new(move || is_over(), Bounds { cases_max, problems_max, journal_bytes_max });
        let mut cases = read_within(&run.text, Syntax::Guess, Arc::new(definitions), &allowance)?;
        if let Some(only) = &run.only {
            cases.retain(|case| case.name.contains(only));
        }
        let report = |case| {
            let report = run_case_within(case, &run.evaluator, &allowance);
            ScenarioReport {
                name: report.name,
                modes: report.modes.iter().map(|mode| mode.mode.name()).collect(),
                failures: report.failures,
                warnings: report.warnings,
            }
        };
        Ok(cases.iter().map(report).collect())
    }
}
