//! Runs scenarios on virtual time with scripted effects: those of a request, and those that are stored with a workflow.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use mainspring_engine::{clock::now_ms, evaluator::Evaluator};
use mainspring_kernel::{hash::Hash, json, value::Value};
use mainspring_store::Change;

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Tag, check_seen},
        problem::{Code, Problem, Result},
    },
    resources::{
        Workflow, WorkflowScenarios,
        repository::{Repository, Stored, entry, with_retries},
    },
    services::{
        compile_budget::Charged,
        scenario_runner::{FindDefinition, RunBounds, ScenarioReport, ScenarioRun, Scenarios},
        workflow_names::{PendingChange, resolve_started},
    },
};

/// Attempts of a change that conflicts with concurrent ones.
const TRIES: usize = 5;

/// Most time for the scenarios of one request. The request occupies a slot during that time.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes of the journals of one run. A request holds those of two runs, decoded and as text.
const JOURNAL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most cases of one request: more than the tests of a workflow have.
const CASES_MAX: usize = 200;

/// Most mistakes of a text in a response: more than an author corrects at a time.
const PROBLEMS_MAX: usize = 50;

/// Most characters of those mistakes. Each has its line and a help text.
const PROBLEMS_CHARS_MAX: usize = 40_000;

/// Most files of one workflow, and bytes of all of them: more than people write, and little for a row of the store.
const FILES_MAX: usize = 20;
const FILES_BYTES_MAX: usize = 512 * 1024;

/// Most characters of the name of a file.
const FILE_NAME_CHARS_MAX: usize = 100;

/// Violations of a case, and characters of each, in a response. A difference of two journals may have megabytes.
const VIOLATIONS_MAX: usize = 20;
const VIOLATION_CHARS_MAX: usize = 4_000;

/// The scenarios of a request.
pub(crate) struct Requested {
    /// Texts by name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The definition of every path in the scenarios.
    pub definition: Option<Value>,
    /// Only cases whose name contains this text.
    pub only: Option<String>,
    /// Definitions that are not stored yet, by slug. They come before stored ones.
    pub pending: Arc<BTreeMap<String, Value>>,
}

/// A case with the name of its file.
pub(crate) struct Ran {
    pub file: String,
    pub report: ScenarioReport,
}

impl Ran {
    pub(crate) fn holds(&self) -> bool {
        self.report.failures.is_empty()
    }
}

/// Runs scenarios. Children of a definition are the workflows that `owner` would start.
pub(crate) fn run(app: &App, organization: &str, owner: &str, requested: &Requested) -> Result<Vec<Ran>> {
    run_until(app, organization, owner, requested, ends_at())
}

fn run_until(app: &App, organization: &str, owner: &str, requested: &Requested, ends_at: Instant) -> Result<Vec<Ran>> {
    let Some(Scenarios(runner)) = &app.settings.scenarios else {
        return Err(Problem::new(Code::NotAvailable, "This server cannot run scenarios."));
    };
    let is_dropped = app.request_is_dropped();
    let is_over: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(move || is_dropped() || Instant::now() >= ends_at);
    let (evaluator, tenant, budget) = (app.evaluator.clone(), organization.to_string(), app.budget());
    let evaluator: Arc<dyn Evaluator> = Arc::new(Charged { evaluator, tenant, budget });
    let (mut all, mut left) = (Vec::new(), CASES_MAX);
    let unread = Arc::new(OnceLock::new());
    for (file, text) in &requested.files {
        let run = ScenarioRun {
            text: text.clone(),
            definition: requested.definition.clone(),
            workflows: children(app, (organization, owner), requested.pending.clone(), unread.clone()),
            evaluator: evaluator.clone(),
            only: requested.only.clone(),
            bounds: RunBounds { cases_max: left, problems_max: PROBLEMS_MAX, journal_bytes_max: JOURNAL_BYTES_MAX },
            is_over: is_over.clone(),
        };
        let reports = runner.run(&run).map_err(|why| {
            let why = cut(&why, PROBLEMS_CHARS_MAX);
            Problem::field("scenarios", format!("{file}: {why}"))
        });
        // A child that could not be read is a problem of the store, and not of the scenario that lacks it.
        if let Some(problem) = unread.get() {
            return Err(Problem::clone(problem));
        }
        let reports = reports?;
        left = left.saturating_sub(reports.len());
        all.extend(reports.into_iter().map(|report| Ran { file: file.clone(), report: bounded(report) }));
    }
    // A case that was cut short for this reason is not a failed one.
    if app.request_is_dropped()() {
        return Err(Problem::new(Code::Unavailable, "The client has disconnected."));
    }
    if app.budget().is_late() {
        let message = "No worker was free to run the functions of the scenarios: try again in a second.";
        return Err(Problem::new(Code::Unavailable, message));
    }
    Ok(all)
}

/// The workflows that the definition of a member may start, as they are stored now. Keeps the first problem of the store.
fn children(
    app: &App,
    (organization, owner): (&str, &str),
    pending: Arc<BTreeMap<String, Value>>,
    unread: Arc<OnceLock<Problem>>,
) -> FindDefinition {
    let (app, organization, owner) = (app.clone(), organization.to_string(), owner.to_string());
    Arc::new(move |name| {
        if let Some(definition) = pending.get(name) {
            return Some(definition.clone());
        }
        let repository = Repository::of(app.catalogue(), &organization);
        match resolve_started(repository, &owner, name, &PendingChange::default()) {
            Ok(found) => Some(found?.body.data.0),
            Err(problem) => {
                // Only the first problem is reported.
                let _ = unread.set(problem);
                None
            }
        }
    })
}

fn bounded(report: ScenarioReport) -> ScenarioReport {
    let texts = |texts: Vec<String>| {
        let more = texts.len().saturating_sub(VIOLATIONS_MAX);
        let mut texts: Vec<String> =
            texts.iter().take(VIOLATIONS_MAX).map(|text| cut(text, VIOLATION_CHARS_MAX)).collect();
        if more > 0 {
            texts.push(format!("and {more} more"));
        }
        texts
    };
    ScenarioReport { failures: texts(report.failures), warnings: texts(report.warnings), ..report }
}

fn cut(text: &str, chars_max: usize) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into(),
    }
}

/// The end of the time in which a request that begins now reads or runs scenarios.
pub(crate) fn ends_at() -> Instant {
    Instant::now() + TIME_MAX
}

/// Returns the scenarios of a workflow, if it has any.
pub(crate) fn find(repository: Repository<'_>, workflow: &str) -> Result<Option<Stored<WorkflowScenarios>>> {
    repository.get::<WorkflowScenarios>(workflow)
}

/// Hash over the scenarios of a workflow: `sha256:…`.
pub(crate) fn hash(scenarios: &WorkflowScenarios) -> String {
    let files = scenarios.files.iter().map(|(name, text)| (name.as_str(), Value::from(text.as_str())));
    Hash::of(json::canonical(&Value::map(files)).as_bytes()).prefixed()
}

/// Adds the writes that replace the scenarios of a workflow to a change. They must be readable with the definition that
/// the change saves; they do not run.
pub(crate) fn add(
    app: &App,
    caller: &Caller,
    (workflow, pending): (&Stored<Workflow>, &Arc<BTreeMap<String, Value>>),
    (files, ends_at): (&BTreeMap<String, String>, Instant),
    change: &mut Change,
) -> Result<()> {
    check(files)?;
    check_owner(caller, workflow)?;
    let requested = Requested {
        files: files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect(),
        definition: Some(workflow.body.data.0.clone()),
        // No name of a case has a null character: all cases are read, and none runs.
        only: Some("\0".into()),
        pending: pending.clone(),
    };
    let read = run_until(app, &caller.organization, &workflow.body.user, &requested, ends_at);
    if Instant::now() >= ends_at {
        let message = format!("The scenarios could not be read in {} s: send fewer at a time.", TIME_MAX.as_secs());
        return Err(Problem::new(Code::Unavailable, message));
    }
    read?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let before = find(repository, &workflow.id)?;
    put(repository, caller, &workflow.id, (before, files), change).map(drop)
}

/// Adds the removal of the scenarios of a workflow to a change.
pub(crate) fn add_removal(app: &App, caller: &Caller, workflow: &Stored<Workflow>, change: &mut Change) -> Result<()> {
    check_owner(caller, workflow)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let stored = repository.require::<WorkflowScenarios>(&workflow.id)?;
    change.removals.push(repository.removal(&stored));
    change.audit.push(entry(caller, "workflow.scenarios_delete", &workflow.id, Value::Null));
    Ok(())
}

/// The writes that replace scenarios, and the scenarios after them.
fn put(
    repository: Repository<'_>,
    caller: &Caller,
    workflow: &str,
    (before, files): (Option<Stored<WorkflowScenarios>>, &BTreeMap<String, String>),
    change: &mut Change,
) -> Result<Stored<WorkflowScenarios>> {
    let (now, version) = (now_ms(), before.as_ref().map_or(0, |before| before.version));
    let created_at = before.map_or(now, |before| before.body.created_at);
    let body = WorkflowScenarios { files: files.clone(), updated_by: caller.user.clone(), created_at, updated_at: now };
    change.puts.push(repository.put(workflow, &body, version)?);
    let detail = Value::map([("hash", Value::from(hash(&body)))]);
    change.audit.push(entry(caller, "workflow.scenarios", workflow, detail));
    Ok(Stored { id: workflow.into(), version: version + 1, body })
}

/// Replaces the scenarios of a workflow, as its owner or as an admin. They must be readable; they need not hold, so that
/// they can be saved before the definition that they describe.
pub(crate) fn save(
    app: &App,
    caller: &Caller,
    files: &BTreeMap<String, String>,
    seen: Option<Tag>,
    find_workflow: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<(Stored<WorkflowScenarios>, Vec<Ran>)> {
    check(files)?;
    let workflow = find_workflow()?;
    check_owner(caller, &workflow)?;
    let requested = Requested {
        files: files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect(),
        definition: Some(workflow.body.data.0.clone()),
        only: None,
        pending: Arc::default(),
    };
    let ran = run(app, &caller.organization, &workflow.body.user, &requested)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let stored = with_retries(app.catalogue(), TRIES, || {
        let workflow = find_workflow()?;
        check_owner(caller, &workflow)?;
        let before = find(repository, &workflow.id)?;
        check_seen(seen, before.as_ref().map(Stored::tag))?;
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        let stored = put(repository, caller, &workflow.id, (before, files), &mut change)?;
        Ok((change, stored))
    })?;
    Ok((stored, ran))
}

/// Removes the scenarios of a workflow, as its owner or as an admin.
pub(crate) fn delete(
    app: &App,
    caller: &Caller,
    seen: Option<Tag>,
    find_workflow: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<()> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    with_retries(app.catalogue(), TRIES, || {
        let workflow = find_workflow()?;
        check_owner(caller, &workflow)?;
        let stored = repository.require::<WorkflowScenarios>(&workflow.id)?;
        check_seen(seen, Some(stored.tag()))?;
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        add_removal(app, caller, &workflow, &mut change)?;
        Ok((change, ()))
    })
}

/// Scenarios decide whether a proposal is applied, so only members who can apply proposals may change them.
fn check_owner(caller: &Caller, workflow: &Stored<Workflow>) -> Result<()> {
    if caller.is_person() && caller.may_act_for(&workflow.body.user) {
        return Ok(());
    }
    let message = format!("The scenarios of the workflow `{}` are changed by its owner and by admins.", workflow.id);
    Err(Problem::new(Code::Forbidden, message))
}

fn check(files: &BTreeMap<String, String>) -> Result<()> {
    let refused = |message: String| Err(Problem::field("files", message));
    if files.is_empty() || files.len() > FILES_MAX {
        return refused(format!("it must have 1 to {FILES_MAX} files"));
    }
    let is_name = |name: &str| {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        !name.is_empty() && name.len() <= FILE_NAME_CHARS_MAX && name.chars().all(is_plain)
    };
    if let Some(name) = files.keys().find(|name| !is_name(name)) {
        return refused(format!(
            "{name:?} is not a name of a file: 1 to {FILE_NAME_CHARS_MAX} letters, digits, `.`, `_` and `-`"
        ));
    }
    if files.values().map(String::len).sum::<usize>() > FILES_BYTES_MAX {
        return refused(format!("together they have more than {FILES_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// The result of the scenarios of a workflow with another definition.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// All hold, or there are none.
    Hold,
    /// One does not hold, with the reason.
    Violated(String),
    /// The time did not suffice, with a message.
    Unfinished(String),
}

impl Verdict {
    /// The reason for which the scenarios are not known to hold.
    pub(crate) fn failure(self) -> Option<String> {
        match self {
            Self::Hold => None,
            Self::Violated(why) | Self::Unfinished(why) => Some(why),
        }
    }
}

/// The last verdict of a request, with the hashes of the definition and of the scenarios. A transaction that is tried again
/// after a conflict does not run the same scenarios again.
#[derive(Debug, Default)]
pub(crate) struct LastVerdict(RefCell<Option<(String, String, Verdict)>>);

impl LastVerdict {
    /// Runs the scenarios of a workflow with another definition, unless the last verdict is about both of them.
    pub(crate) fn judge(
        &self,
        app: &App,
        organization: &str,
        workflow: &Stored<Workflow>,
        (definition, definition_hash): (&Value, &str),
    ) -> Result<Verdict> {
        let Some(stored) = find(Repository::of(app.catalogue(), organization), &workflow.id)? else {
            return Ok(Verdict::Hold);
        };
        let scenarios_hash = hash(&stored.body);
        if let Some((of, by, verdict)) = &*self.0.borrow()
            && (of.as_str(), by) == (definition_hash, &scenarios_hash)
        {
            return Ok(verdict.clone());
        }
        let verdict = judge_by(app, organization, workflow, definition, stored.body)?;
        *self.0.borrow_mut() = Some((definition_hash.into(), scenarios_hash, verdict.clone()));
        Ok(verdict)
    }
}

fn judge_by(
    app: &App,
    organization: &str,
    workflow: &Stored<Workflow>,
    definition: &Value,
    scenarios: WorkflowScenarios,
) -> Result<Verdict> {
    let files = scenarios.files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    let requested = Requested { files, definition: Some(definition.clone()), only: None, pending: Arc::default() };
    let ends_at = ends_at();
    let ran = run_until(app, organization, &workflow.body.user, &requested, ends_at);
    // Also an error may be one of the time, which would end the proposal otherwise.
    if Instant::now() >= ends_at {
        return Ok(Verdict::Unfinished(format!(
            "The scenarios of the workflow did not end in {} s: try again later, or make them smaller.",
            TIME_MAX.as_secs()
        )));
    }
    let ran = ran?;
    let failed: Vec<&Ran> = ran.iter().filter(|ran| !ran.holds()).collect();
    let Some(first) = failed.first() else { return Ok(Verdict::Hold) };
    let why = first.report.failures.first().map(|why| cut(why, VIOLATION_CHARS_MAX)).unwrap_or_default();
    Ok(Verdict::Violated(format!(
        "{} of {} scenarios of the workflow fail with this definition, first {:?} in {}: {why}",
        failed.len(),
        ran.len(),
        first.report.name,
        first.file
    )))
}
