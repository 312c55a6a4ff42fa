//! Runs the scenarios of a server's members with the simulator.

use std::sync::Arc;

use mainspring_kernel::{
    definition::{self, Syntax},
    diagnostic::Diagnostic,
    document::Document,
    value::Value,
};
use mainspring_server::services::scenario_runner::{FindDefinition, ScenarioReport, ScenarioRun, ScenarioRunner};
use mainspring_sim::{
    Allowance, run_case_within,
    scenario::{Definitions, read_with},
};

/// Runs scenarios with the simulator. It reads no files: a definition comes from the request or from the store.
pub(crate) struct Simulated;

/// The definitions of a request.
struct Requested {
    definition: Option<Value>,
    workflows: FindDefinition,
}

impl Definitions for Requested {
    fn definition(&self, _: &str) -> Result<Result<Document, Diagnostic>, String> {
        let definition = self.definition.as_ref();
        definition.map(document).ok_or_else(|| "a server reads no files, and the request has no definition".into())
    }

    fn workflow(&self, _: &str, name: &str) -> Option<Result<Document, Diagnostic>> {
        (self.workflows)(name).as_ref().map(document)
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
        let definitions = Requested { definition: run.definition.clone(), workflows: run.workflows.clone() };
        let mut cases = read_with(&run.text, Syntax::Guess, Arc::new(definitions))?;
        if let Some(only) = &run.only {
            cases.retain(|case| case.name.contains(only));
        }
        if cases.len() > run.cases_max {
            return Err(format!("there are {} cases, and at most {} can run at a time", cases.len(), run.cases_max));
        }
        let is_over = run.is_over.clone();
        let allowance = Allowance::new(move || is_over(), run.journal_bytes_max);
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
