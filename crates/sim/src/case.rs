//! Runs a case in all of its modes and reports violated expectations.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_engine::{
    evaluator::{Evaluator, InProcess, SandboxInspector},
    start_request::plan_tree,
};
use mainspring_kernel::{
    definition::{Compiled, compile_with, denied_calls},
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path},
    fix::Fix,
    plan::Plan,
};

use crate::{
    allowance::Allowance,
    check::{differences, missing_words, text_diff},
    faults::Faults,
    fixture::{Fixture, Given, Sandbox},
    picture::picture,
    run::{Broken, Finished, run},
    scenario::{Case, Expect, Mode},
    unused_effects::{unlisted_tools, unused_effects},
};

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseReport {
    /// The case's name.
    pub name: String,
    /// The author's reason for the case: the error that it guards against.
    pub why: String,
    /// The result of each mode; none for a rejected definition.
    pub modes: Vec<ModeReport>,
    /// Violations: sentences, some with lines of details. A violation in several modes is listed once.
    pub failures: Vec<String>,
    /// Remarks for the author that do not fail the case.
    pub warnings: Vec<String>,
}

/// The result of one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeReport {
    /// The faults under which it ran.
    pub mode: Mode,
    /// Violations.
    pub failures: Vec<String>,
    /// The journal as text.
    pub picture: String,
}

impl CaseReport {
    /// Returns whether all expectations hold.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Runs a case, and its functions in this process. The same case always gives the same report.
pub fn run_case(case: &Case) -> CaseReport {
    run_case_with(case, &in_process())
}

fn in_process() -> Arc<dyn Evaluator> {
    Arc::new(InProcess)
}

/// As [`run_case`], with another evaluator of functions.
pub fn run_case_with(case: &Case, evaluator: &Arc<dyn Evaluator>) -> CaseReport {
    run_case_within(case, evaluator, &Allowance::default())
}

/// As [`run_case_with`], with bounds. A case that reaches one fails with that message.
pub fn run_case_within(case: &Case, evaluator: &Arc<dyn Evaluator>, allowance: &Allowance) -> CaseReport {
    let (name, why) = (case.name.clone(), case.why.clone());
    let mut report = CaseReport { name, why, modes: Vec::new(), failures: Vec::new(), warnings: Vec::new() };
    match (compiled_within(case, evaluator, allowance), case.expect.accepted) {
        _ if allowance.is_over() => report.failures.push(allowance.time_is_over()),
        (Ok((compiled, _)), Some(false)) => {
            let warnings = lines(&compiled.warnings);
            report.failures.push(format!("the definition was accepted and must not be\n{warnings}").trim_end().into());
        }
        (Err(problems), Some(false)) => report.failures = check_refusal(&case.expect, &problems),
        (Err(problems), _) => {
            report.failures.push(format!("the definition was refused:\n{}", lines(&problems).trim_end()))
        }
        (Ok((compiled, workflows)), _) => {
            report.failures = missing_words(&case.expect.diagnostics_contain, &lines(&compiled.warnings));
            let mut fixture = fixture(case, compiled, workflows, evaluator);
            fixture.allowance = allowance.clone();
            (report.modes, report.warnings) = run_modes(case, &fixture);
            report.failures.extend(summary(&report.modes));
        }
    }
    report
}

/// A definition that is rejected only for features that this build does not have does not count as rejected.
fn check_refusal(expect: &Expect, problems: &[Diagnostic]) -> Vec<String> {
    let errors = || problems.iter().filter(|problem| problem.severity == Severity::Error);
    if errors().all(|problem| problem.code == diagnostic::NOT_IN_BUILD) {
        return vec![format!(
            "the definition was refused only for what is not in this build:\n{}",
            lines(problems).trim_end()
        )];
    }
    missing_words(&expect.diagnostics_contain, &lines(problems))
}

/// Runs a case once under the given faults, and returns the violated expectations. Unless the faults kill calls, the
/// journal must equal that of the straight run. The seed decides when the faults occur.
pub fn run_case_under(case: &Case, faults: Faults, seed: u64) -> Vec<String> {
    let evaluator = &in_process();
    let (compiled, workflows) = match compiled(case, evaluator) {
        Ok(compiled) if case.expect.accepted != Some(false) => compiled,
        // A rejected definition does not run, so faults cannot affect it.
        _ => return run_case(case).failures,
    };
    let fixture = fixture(case, compiled, workflows, evaluator);
    let straight = run(&fixture, Faults::NONE, 0).ok().filter(|_| faults.kill_before_input == 0);
    judge(Mode::Straight, &case.expect, run(&fixture, faults, seed).as_ref(), straight.as_ref()).failures
}

/// Compiles the workflow of a case, and those that it may start.
pub(crate) fn compiled(case: &Case, evaluator: &Arc<dyn Evaluator>) -> Result<(Compiled, Workflows), Vec<Diagnostic>> {
    compiled_within(case, evaluator, &Allowance::default())
}

fn compiled_within(
    case: &Case,
    evaluator: &Arc<dyn Evaluator>,
    allowance: &Allowance,
) -> Result<(Compiled, Workflows), Vec<Diagnostic>> {
    let inspector = SandboxInspector(&**evaluator);
    let compile = |definition: &Result<Document, Diagnostic>| {
        let document = definition.as_ref().map_err(|problem| vec![problem.clone()])?;
        compile_with(document, &inspector)
    };
    let compiled = compile(&case.definition)?;
    if let Ok(document) = &*case.definition {
        // A start refuses such a workflow as well.
        let denied = denied_calls(&compiled, document, &case.settings, None);
        if !denied.is_empty() {
            return Err(denied);
        }
    }
    let workflows = plan_tree(&compiled.plan, |name| {
        if allowance.is_over() {
            return Err(allowance.time_is_over().into());
        }
        if case.children.is_some() && compiled.plan.name.as_deref() == Some(name) {
            return Ok::<_, Refusal>(Arc::new(compiled.plan.clone()));
        }
        let definition = case.child(name).ok_or_else(|| unknown_workflow(name))?;
        let compiled = compile(&definition).map_err(|problems| in_workflow(name, problems))?;
        Ok(Arc::new(compiled.plan))
    });
    let workflows = workflows.map_err(|Refusal(problems)| problems)?;
    let within = case.settings.surroundings(&compiled.plan, &workflows);
    within.map_err(|why| Refusal::from(why.to_string()).0)?;
    Ok((compiled, workflows))
}

pub(crate) type Workflows = BTreeMap<String, Arc<Plan>>;

/// The reason why the workflows of a case cannot run.
struct Refusal(Vec<Diagnostic>);

impl From<Vec<Diagnostic>> for Refusal {
    fn from(problems: Vec<Diagnostic>) -> Self {
        Self(problems)
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        let (severity, code, path, place) = (Severity::Error, diagnostic::WRONG_VALUE, Path::root(), None);
        Self(vec![Diagnostic { severity, code, path, place, message, help: String::new(), fix: Fix::default() }])
    }
}

/// Names the workflow in the mistakes of one that is started.
fn in_workflow(name: &str, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let named = |problem: Diagnostic| Diagnostic {
        message: format!("in the workflow `{name}`: {}", problem.message),
        ..problem
    };
    problems.into_iter().filter(|problem| problem.severity == Severity::Error).map(named).collect()
}

fn unknown_workflow(name: &str) -> Refusal {
    let help = format!("write workflows: {{{name}: {name}.yaml}}, or save {name}.yaml beside the definition");
    format!("the workflow `{name}` is started and not given; {help}").into()
}

pub(crate) fn lines(problems: &[Diagnostic]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

pub(crate) fn fixture(
    case: &Case,
    compiled: Compiled,
    workflows: Workflows,
    evaluator: &Arc<dyn Evaluator>,
) -> Fixture {
    let given = Given {
        workflows,
        sandbox: Sandbox(evaluator.clone()),
        input: case.input.clone(),
        variables: case.variables.clone(),
        bounds: case.policy,
        policy: case.settings.clone(),
        execution_id: case.execution_id.clone(),
        effects: case.effects.clone(),
        inbox: case.inbox.clone(),
    };
    Fixture::new(compiled.plan, given)
}

fn run_modes(case: &Case, fixture: &Fixture) -> (Vec<ModeReport>, Vec<String>) {
    let straight = run(fixture, Faults::NONE, 0);
    let report = |mode: &Mode| match mode {
        Mode::Straight => judge(*mode, &case.expect, straight.as_ref(), None),
        mode => judge(*mode, &case.expect, run(fixture, Faults::of(*mode), 0).as_ref(), straight.as_ref().ok()),
    };
    let finished = straight.as_ref().ok();
    let warnings = unused_effects(fixture, finished, case).into_iter().chain(unlisted_tools(finished, &case.expect));
    (case.modes.iter().map(report).collect(), warnings.collect())
}

fn judge(mode: Mode, expect: &Expect, result: Result<&Finished, &Broken>, straight: Option<&Finished>) -> ModeReport {
    match result {
        Err(broken) => ModeReport { mode, failures: vec![broken.why.clone()], picture: broken.picture.clone() },
        Ok(finished) => {
            let mut failures = differences(expect, finished);
            failures.extend(straight.and_then(|straight| other_journal(straight, finished)));
            failures.extend(finished.missed.iter().map(|(_, sentence)| sentence.clone()));
            ModeReport { mode, failures, picture: picture(&finished.plan, &finished.frames) }
        }
    }
}

/// Returns the difference between two journals, if there is one.
pub(crate) fn other_journal(straight: &Finished, other: &Finished) -> Option<String> {
    if straight.stored == other.stored {
        return None;
    }
    let picture_of = |finished: &Finished| picture(&finished.plan, &finished.frames);
    let (expected, actual) = (picture_of(straight), picture_of(other));
    if expected != actual {
        return Some(format!("the journal is not that of the straight run:\n{}", text_diff(&expected, &actual)));
    }
    let first = straight.stored.iter().zip(&other.stored).take_while(|(expected, actual)| expected == actual).count();
    Some(format!("the bytes of frame {first} are not those of the straight run, though its records are equal"))
}

/// Lists violations with the modes in which they occur, in order of first occurrence.
fn summary(modes: &[ModeReport]) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&'static str>)> = Vec::new();
    for report in modes {
        for failure in &report.failures {
            match said.iter_mut().find(|(said, _)| said == failure) {
                Some((_, ways)) => ways.push(report.mode.name()),
                None => said.push((failure, vec![report.mode.name()])),
            }
        }
    }
    let is_everywhere = |ways: &[&str]| ways.len() == modes.len();
    said.into_iter()
        .map(|(failure, ways)| match is_everywhere(&ways) {
            true => failure.to_string(),
            false => format!("{}: {failure}", ways.join(", ")),
        })
        .collect()
}
