//! Proposals of changes: creates, reviews and applies them, and returns workflows to earlier definitions.

use std::collections::BTreeMap;

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{document::Document, limits::REASON_CHARS_MAX, value::Value};
use mainspring_store::{Change, Filter};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        execution_access::actionable_execution,
        permission::Role,
        token::random,
    },
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        Applied, Author, Member, Proposal, ProposalStatus, ProposedChange, Review, SHADOW_FEATURE, Source, Workflow,
        Written, proposal_key,
        repository::{Repository, Stored, entry, with_retries},
    },
    services::{
        begin_rollout::{NewRollout, begin, check_can_begin},
        compile::compile,
        drains::{UNFINISHED, announce_end, check_can_drain},
        migrations,
        proposal_checks::{check_base, check_decides, check_permits, check_text, expiry, needs_four_eyes, requires},
        proposal_review::{self, Subject, subject},
        proposal_status::{Move, after, status_at},
        rollout_choice::check_none,
        save_workflow::{Draft, Origin, Saved, replacement},
        scenarios::{LastVerdict, Verdict},
    },
};

/// Attempts of a change that conflicts with concurrent ones.
pub(super) const TRIES: usize = 5;

/// Most open proposals of one workflow: more than people review, and few enough that a program that proposes in a loop is
/// stopped.
const OPEN_MAX: usize = 100;

/// Most open proposals of one workflow by sessions and members with the role `agent`: people always have room for theirs.
const OPEN_BY_PROGRAMS_MAX: usize = 20;

/// Most open proposals of one workflow by one person who is no admin: no member uses all places of the others.
const OPEN_BY_MEMBER_MAX: usize = 40;

/// Expired proposals that one creation marks. Each is written with its definition.
const MARKED_MAX: usize = 8;
/// Unfinished executions that a message names.
const UNFINISHED_NAMED_MAX: usize = 3;

/// Most characters of a rationale.
const RATIONALE_CHARS_MAX: usize = 10_000;

/// The message for an approval that lacks a required shadow run.
const NO_SHADOW: &str = "The organization requires a shadow run before the approval: send POST to the `shadow` route of the proposal, \
                         or use `mainspring proposals shadow`.";

/// A proposal to create.
pub(crate) struct NewProposal {
    /// The id, for a request that may be repeated: a proposal with it is returned. `None` for a new one.
    pub id: Option<String>,
    pub base_hash: String,
    pub data: Data,
    pub summary: Option<String>,
    pub rationale: Option<String>,
    pub execution: Option<String>,
    /// Milliseconds since 1970; `None` for the default.
    pub expires_at: Option<u64>,
    /// The model that wrote it, if one did.
    pub written: Option<Written>,
}

/// A review to record.
pub(crate) struct NewReview {
    pub approve: bool,
    pub notes: Option<String>,
    /// The hash that the reviewer has seen; `None` for the present one.
    pub hash: Option<String>,
}

/// A proposal with its present status and the subject of its review.
pub(crate) struct Shown {
    pub id: String,
    pub body: Proposal,
    pub status: ProposalStatus,
    pub subject: Option<Subject>,
}

/// Treatment of the workflow's unfinished executions when a proposal is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhileRunning {
    /// They end with their definition, beside executions of the new one.
    Pin,
    /// The application is refused while there are any. The check precedes the transaction.
    Strict,
    /// Executions of the new definition wait until all older ones have ended.
    Drain,
    /// They continue with the new definition, if every step that has begun has its counterpart there.
    Migrate,
}

/// The way in which a proposal is applied.
#[derive(Debug, Clone)]
pub(crate) struct Treatment {
    /// Unfinished executions, at the application or at the promotion of the rollout.
    pub while_running: WhileRunning,
    /// The rollout that it begins; `None` for all starts at once.
    pub rollout: Option<NewRollout>,
}

impl WhileRunning {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Strict => "strict",
            Self::Drain => "drain",
            Self::Migrate => "migrate",
        }
    }
}

/// The result of a change that is committed even if the request is rejected.
struct Outcome<T>(Result<T>);

/// Checks the permission, the base and the definition, and creates a proposal.
pub(crate) fn create(
    app: &App,
    caller: &Caller,
    new: &NewProposal,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<Shown> {
    let now = now_ms();
    check_text("proposal.summary", new.summary.as_deref(), REASON_CHARS_MAX)?;
    check_text("proposal.rationale", new.rationale.as_deref(), RATIONALE_CHARS_MAX)?;
    let expires_at = expiry(caller, new.expires_at, now)?;
    let workflow = find()?;
    let author = author(app, caller, new.execution.as_deref(), &workflow)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    if let Some(id) = &new.id
        && repository.get::<Proposal>(&proposal_key(&workflow.id, id))?.is_some()
    {
        return show(app, caller, &workflow, id);
    }
    check_permits(app, caller, &workflow)?;
    check_base(&new.base_hash, &workflow)?;
    // The scenarios take seconds, so a proposal without room ends before they run. The transaction checks it again.
    expire(repository, caller, &workflow, now, &mut Change::default())?.check(caller, &workflow)?;
    let compiled = compile(app, &caller.organization, &Document::placeless(new.data.0.clone()))?;
    let hash = compiled.workflow_hash.prefixed();
    if hash == workflow.body.hash {
        return Err(Problem::field("proposal.proposedWorkflow", "it is the present definition"));
    }
    let NewProposal { base_hash, data, summary, rationale, .. } = new;
    let change = ProposedChange {
        base_hash: base_hash.clone(),
        hash,
        data: data.clone(),
        summary: summary.clone(),
        rationale: rationale.clone(),
    };
    let judged = (&data.0, change.hash.as_str());
    let scenario_failure = LastVerdict::default().judge(app, &caller.organization, &workflow, judged)?.failure();
    let body = Proposal {
        workflow: workflow.id.clone(),
        workflow_created_at: workflow.body.created_at,
        author,
        change,
        written: new.written.clone(),
        status: ProposalStatus::Pending,
        reviews: Vec::new(),
        applied: None,
        failure: None,
        shadow: None,
        scenario_failure,
        expires_at,
        created_at: now,
        updated_at: now,
    };
    let id = new.id.clone().map_or_else(|| Ok(format!("pr-{now:013}-{}", random(8)?)), Ok::<_, Problem>)?;
    let subject = subject(app, repository, &workflow.body.user, &body)?;
    with_retries(app.catalogue(), TRIES, || {
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        expire(repository, caller, &workflow, now, &mut change)?.check(caller, &workflow)?;
        change.puts.push(repository.put(&proposal_key(&workflow.id, &id), &body, 0)?);
        change.audit.push(audit(
            caller,
            "proposal.create",
            &id,
            &body,
            [("risk", Value::from(subject.report.risk.name())), ("reviewHash", subject.hash.as_str().into())],
        ));
        Ok((change, ()))
    })?;
    Ok(Shown { status: body.status, id, body, subject: Some(subject) })
}

/// Returns a proposal with the subject of its review.
pub(crate) fn show(app: &App, caller: &Caller, workflow: &Stored<Workflow>, id: &str) -> Result<Shown> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let stored = repository.require::<Proposal>(&proposal_key(&workflow.id, id))?;
    let status = status_at(&stored.body, workflow, now_ms());
    let subject = subject(app, repository, &workflow.body.user, &stored.body)?;
    Ok(Shown { id: id.into(), body: stored.body, status, subject: Some(subject) })
}

/// Records a review.
pub(crate) fn review(
    app: &App,
    caller: &Caller,
    id: &str,
    new: &NewReview,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<Shown> {
    check_text("notes", new.notes.as_deref(), REASON_CHARS_MAX)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let outcome = with_retries(app.catalogue(), TRIES, || {
        let workflow = find()?;
        check_decides(caller, &workflow)?;
        let mut stored = repository.require::<Proposal>(&proposal_key(&workflow.id, id))?;
        let now = now_ms();
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        if let Some(problem) =
            closed((repository, caller), (id, new.approve), &mut stored, &workflow, now, &mut change)?
        {
            return Ok((change, Outcome(Err(problem))));
        }
        if new.approve && stored.body.author.is(&caller.user) && needs_four_eyes(app, caller)? {
            let message = "You proposed this change, or created the credential that proposed it, and the organization requires that another member approves it.";
            return Err(Problem::new(Code::Forbidden, message));
        }
        if new.approve && stored.body.shadow.is_none() && requires(app, caller, SHADOW_FEATURE)? {
            return Err(Problem::new(Code::Conflict, NO_SHADOW));
        }
        let step = if new.approve { Move::Approve } else { Move::Reject };
        let Some(status) = after(stored.body.status, step) else {
            let message = format!("The proposal is already {}.", stored.body.status.name());
            return Err(Problem::new(Code::Conflict, message));
        };
        let subject = subject(app, repository, &workflow.body.user, &stored.body)?;
        if new.hash.as_ref().is_some_and(|seen| *seen != subject.hash) {
            let message = "Something that you reviewed has changed: read the proposal again for its new `reviewHash`.";
            return Err(Problem::new(Code::Conflict, message));
        }
        let (by, notes, hash) = (caller.user.clone(), new.notes.clone(), subject.hash.clone());
        stored.body.reviews.push(Review { by, approve: new.approve, notes, hash, is_void: false, at: now });
        stored.body.status = status;
        stored.body.updated_at = now;
        change.puts.push(repository.put(&stored.id, &stored.body, stored.version)?);
        let action = if new.approve { "proposal.approve" } else { "proposal.reject" };
        change.audit.push(audit(
            caller,
            action,
            id,
            &stored.body,
            [
                ("reviewHash", Value::from(subject.hash.as_str())),
                ("reason", new.notes.as_deref().map_or(Value::Null, Value::from)),
            ],
        ));
        Ok((change, Outcome(Ok(Shown { id: id.into(), status, body: stored.body, subject: Some(subject) }))))
    })?;
    outcome.0
}

/// Applies an approved proposal. The definition, the version, the drain and the status of the proposal are one transaction.
pub(crate) fn apply(
    app: &App,
    caller: &Caller,
    id: &str,
    treatment: &Treatment,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<(Shown, Saved)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let verdict = LastVerdict::default();
    let outcome = with_retries(app.catalogue(), TRIES, || {
        let workflow = find()?;
        check_decides(caller, &workflow)?;
        let mut stored = repository.require::<Proposal>(&proposal_key(&workflow.id, id))?;
        let now = now_ms();
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        if stored.body.status != ProposalStatus::Approved {
            return Err(not_approved(&status_at(&stored.body, &workflow, now)));
        }
        check_running(app, caller, &workflow, (treatment, &stored.body.change))?;
        stored.body.updated_at = now;
        if now >= stored.body.expires_at {
            let problem = Problem::new(Code::Conflict, "The proposal has expired.");
            let moved = moved(repository, caller, id, stored, Move::Expire, &problem.message, &mut change);
            return moved.map(|()| (change, Outcome(Err(problem))));
        }
        match applied(app, caller, (id, treatment, &verdict), &stored.body, &workflow) {
            Ok((mut change, saved, subject)) => {
                let (version, by) = (new_version(&saved), caller.user.clone());
                let while_running = Some(treatment.while_running.name().into());
                let rollout = treatment.rollout.as_ref().map(|new| new.id.clone());
                stored.body.applied = Some(Applied { by, version: version.clone(), while_running, rollout, at: now });
                stored.body.status = after(stored.body.status, Move::Apply).unwrap_or(stored.body.status);
                change.puts.push(repository.put(&stored.id, &stored.body, stored.version)?);
                change.audit.push(audit(
                    caller,
                    "proposal.apply",
                    id,
                    &stored.body,
                    [
                        ("reviewHash", Value::from(subject.hash.as_str())),
                        ("version", version.into()),
                        ("whileRunning", treatment.while_running.name().into()),
                        ("rollout", treatment.rollout.as_ref().map_or(Value::Null, |new| new.id.as_str().into())),
                    ],
                ));
                let status = stored.body.status;
                let shown = Shown { id: id.into(), status, body: stored.body, subject: Some(subject) };
                Ok((change, Outcome(Ok((shown, saved)))))
            }
            Err(Refusal::Later(problem)) => Err(problem),
            Err(Refusal::Void(problem)) => {
                stored.body.reviews.iter_mut().for_each(|review| review.is_void = true);
                moved(repository, caller, id, stored, Move::Void, &problem.message, &mut change)?;
                Ok((change, Outcome(Err(problem))))
            }
            Err(Refusal::Failed(problem)) => {
                stored.body.failure = Some(problem.message.clone());
                moved(repository, caller, id, stored, Move::Fail, &problem.message, &mut change)?;
                Ok((change, Outcome(Err(problem))))
            }
        }
    })?;
    let drains = treatment.while_running == WhileRunning::Drain && treatment.rollout.is_none();
    if outcome.0.as_ref().is_ok_and(|(_, saved)| saved.ends_drain || drains) {
        app.engine.limits_changed(&caller.organization);
    }
    outcome.0
}

/// Returns a workflow to a definition of its history. `None` if it has that definition already.
pub(crate) fn rollback(
    app: &App,
    caller: &Caller,
    hash: &str,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<(Saved, bool)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let (saved, was_there) = with_retries(app.catalogue(), TRIES, || {
        let workflow = find()?;
        let Some(target) = proposal_review::entry(repository, &workflow.id, hash)? else {
            return Err(Problem::not_found("version"));
        };
        // The present definition of a rollout is not all that starts take.
        check_none(&workflow.id, &workflow.body)?;
        let is_there = workflow.body.hash == hash;
        // A rollback to the present definition checks the caller as well, and writes only the audit entry.
        let draft = Draft { data: Some(target.data), ..Draft::default() };
        let from = workflow.body.hash.clone();
        let (mut change, saved) = replacement(app, caller, workflow, &draft, &Origin::of(Source::Rollback))?;
        if is_there {
            return Ok((Change { sealing: *app.engine.key(), ..Change::default() }, (saved, true)));
        }
        let detail = Value::map([("hash", Value::from(hash)), ("from", from.as_str().into())]);
        change.audit.push(entry(caller, "workflow.rollback", &saved.stored.id, detail));
        Ok((change, (saved, false)))
    })?;
    announce_end(app, caller, saved.ends_drain);
    Ok((saved, was_there))
}

/// Ends the drain of a workflow: the starts that wait begin beside the older executions.
pub(crate) fn end_drain(
    app: &App,
    caller: &Caller,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<Stored<Workflow>> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let ended = with_retries(app.catalogue(), TRIES, || {
        let mut stored = find()?;
        check_decides(caller, &stored)?;
        let Some(drain) = stored.body.drain.take() else {
            let message = format!("The workflow `{}` does not drain.", stored.id);
            return Err(Problem::new(Code::Conflict, message));
        };
        let puts = vec![repository.put(&stored.id, &stored.body, stored.version)?];
        let detail = [("proposal", Value::from(drain.proposal)), ("from", drain.from.into())];
        let audit = vec![entry(caller, "workflow.drain_end", &stored.id, Value::map(detail))];
        stored.version += 1;
        Ok((Change { puts, audit, sealing: *app.engine.key(), ..Change::default() }, stored))
    })?;
    app.engine.limits_changed(&caller.organization);
    Ok(ended)
}

/// Checks that the executions that run permit an application.
fn check_running(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    (treatment, change): (&Treatment, &ProposedChange),
) -> Result<()> {
    check_none(&workflow.id, &workflow.body)?;
    if treatment.rollout.is_some() {
        return check_can_begin(app, caller, workflow, change);
    }
    match treatment.while_running {
        WhileRunning::Pin | WhileRunning::Migrate => Ok(()),
        WhileRunning::Strict => check_idle(app, caller, workflow),
        WhileRunning::Drain => check_can_drain(app, caller, workflow),
    }
}

/// Checks that no execution of a workflow is unfinished.
fn check_idle(app: &App, caller: &Caller, workflow: &Stored<Workflow>) -> Result<()> {
    let filter = Filter {
        statuses: UNFINISHED.map(String::from).into(),
        organization: Some(caller.organization.clone()),
        workflow_id: Some(workflow.id.clone()),
        ..Filter::default()
    };
    let rows = app.engine.store().executions(&filter, None, UNFINISHED_NAMED_MAX)?;
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = rows.iter().map(|row| format!("`{}`", row.id)).collect();
    let message = format!(
        "Executions of the workflow `{}` are unfinished, such as {}: wait for them or cancel them, or apply with `pin`.",
        workflow.id,
        ids.join(", ")
    );
    Err(Problem::new(Code::Conflict, message))
}

/// The version that an application gave to the definition.
fn new_version(saved: &Saved) -> String {
    let Workflow { version, rollout, .. } = &saved.stored.body;
    rollout.as_ref().map_or(version, |rollout| &rollout.candidate.version).clone()
}

/// Checks before the promotion of a rollout that the review of its proposal is still valid.
pub(super) fn check_reviewed(
    app: &App,
    caller: &Caller,
    proposal: &Proposal,
    workflow: &Stored<Workflow>,
) -> Result<()> {
    match reviewed(app, caller, &LastVerdict::default(), proposal, workflow) {
        Ok(_) => Ok(()),
        Err(Refusal::Later(problem) | Refusal::Void(problem) | Refusal::Failed(problem)) => Err(problem),
    }
}

/// The reason for which an approved proposal is not applied.
enum Refusal {
    /// The request can be repeated: nothing is written.
    Later(Problem),
    /// The review is void.
    Void(Problem),
    /// The proposal has failed.
    Failed(Problem),
}

/// Prepares the change that applies a proposal, after all checks.
fn applied(
    app: &App,
    caller: &Caller,
    (id, treatment, verdict): (&str, &Treatment, &LastVerdict),
    proposal: &Proposal,
    workflow: &Stored<Workflow>,
) -> Result<(Change, Saved, Subject), Refusal> {
    check_base(&proposal.change.base_hash, workflow).map_err(failed)?;
    if proposal.workflow_created_at != workflow.body.created_at {
        let message = "The proposal is for a deleted workflow of this id.";
        return Err(Refusal::Failed(Problem::new(Code::Conflict, message)));
    }
    check_permits(app, caller, workflow).map_err(failed)?;
    let subject = reviewed(app, caller, verdict, proposal, workflow)?;
    let (mut change, saved) = match &treatment.rollout {
        Some(new) => begin(app, caller, workflow.clone(), (id, &proposal.change.data), new),
        None => {
            let draft = Draft { data: Some(proposal.change.data.clone()), ..Draft::default() };
            let drains = treatment.while_running == WhileRunning::Drain;
            let origin = Origin { source: Source::ProposalApply, proposal: Some(id.into()), drains };
            replacement(app, caller, workflow.clone(), &draft, &origin)
        }
    }
    .map_err(failed)?;
    if treatment.while_running == WhileRunning::Migrate {
        change.puts.extend(migrations::begin(app, caller, id, &saved.stored).map_err(failed)?);
    }
    Ok((change, saved, subject))
}

fn failed(problem: Problem) -> Refusal {
    match problem.code {
        Code::Unavailable | Code::InternalError | Code::RateLimited | Code::Forbidden => Refusal::Later(problem),
        _ => Refusal::Failed(problem),
    }
}

/// Checks that the review of a proposal is valid. Returns its subject.
fn reviewed(
    app: &App,
    caller: &Caller,
    verdict: &LastVerdict,
    proposal: &Proposal,
    workflow: &Stored<Workflow>,
) -> Result<Subject, Refusal> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let subject = subject(app, repository, &workflow.body.user, proposal).map_err(failed)?;
    let approvals = || proposal.reviews.iter().filter(|review| review.approve && !review.is_void);
    if !approvals().any(|review| review.hash == subject.hash) {
        let message = "The review is void: since then a workflow that this one starts, the policy, or the report has changed. Read the proposal again; it needs a new review, or a new proposal if it was applied.";
        return Err(Refusal::Void(Problem::new(Code::Conflict, message)));
    }
    // A proposal that was approved before the organization required four eyes has no sufficient review.
    let is_by_another = approvals().any(|review| !proposal.author.is(&review.by));
    if !is_by_another && needs_four_eyes(app, caller).map_err(failed)? {
        let message = "The review is void: the organization requires that another member than the author approves.";
        return Err(Refusal::Void(Problem::new(Code::Conflict, message)));
    }
    // So does one that was approved before the organization required a shadow run.
    if proposal.shadow.is_none() && requires(app, caller, SHADOW_FEATURE).map_err(failed)? {
        return Err(Refusal::Void(Problem::new(Code::Conflict, NO_SHADOW)));
    }
    let definition = (&proposal.change.data.0, proposal.change.hash.as_str());
    match verdict.judge(app, &caller.organization, workflow, definition).map_err(failed)? {
        Verdict::Hold => Ok(subject),
        Verdict::Violated(why) => Err(Refusal::Failed(Problem::new(Code::Conflict, why))),
        Verdict::Unfinished(why) => Err(Refusal::Later(Problem::new(Code::Unavailable, why))),
    }
}

/// Writes a move that ends a request with an error.
fn moved(
    repository: Repository<'_>,
    caller: &Caller,
    id: &str,
    mut stored: Stored<Proposal>,
    step: Move,
    reason: &str,
    change: &mut Change,
) -> Result<()> {
    let Some(status) = after(stored.body.status, step) else { return Ok(()) };
    stored.body.status = status;
    change.puts.push(repository.put(&stored.id, &stored.body, stored.version)?);
    let action = match step {
        Move::Expire => "proposal.expire",
        Move::Void => "proposal.void",
        _ => "proposal.fail",
    };
    change.audit.push(audit(caller, action, id, &stored.body, [("reason", Value::from(reason))]));
    Ok(())
}

/// Returns the error for a proposal that can no longer be reviewed, and writes its expiry.
fn closed(
    (repository, caller): (Repository<'_>, &Caller),
    (id, approves): (&str, bool),
    stored: &mut Stored<Proposal>,
    workflow: &Stored<Workflow>,
    now: u64,
    change: &mut Change,
) -> Result<Option<Problem>> {
    let status = status_at(&stored.body, workflow, now);
    let message = match status {
        ProposalStatus::Pending | ProposalStatus::Approved => return Ok(None),
        ProposalStatus::Expired if stored.body.status.is_open() => {
            stored.body.updated_at = now;
            moved(repository, caller, id, stored.clone(), Move::Expire, "The proposal has expired.", change)?;
            "The proposal has expired.".into()
        }
        // A rejection makes room for other proposals, and needs no present base.
        ProposalStatus::Superseded if !approves && stored.body.status == ProposalStatus::Pending => return Ok(None),
        ProposalStatus::Superseded => {
            "The workflow has another definition than the one that the proposal changes: propose again.".into()
        }
        other => format!("The proposal is already {}.", other.name()),
    };
    Ok(Some(Problem::new(Code::Conflict, message)))
}

fn not_approved(status: &ProposalStatus) -> Problem {
    let message = match status {
        ProposalStatus::Applied => "The proposal is already applied.".into(),
        ProposalStatus::Expired => "The proposal has expired.".into(),
        other => format!("The proposal must be approved before it is applied; it is {}.", other.name()),
    };
    Problem::new(Code::Conflict, message)
}

/// Numbers of open proposals of a workflow.
#[derive(Debug, Default, PartialEq, Eq)]
struct Open {
    all: usize,
    /// Those of sessions and of members with the role `agent`.
    by_programs: usize,
    /// Those of the caller.
    by_caller: usize,
}

impl Open {
    /// Checks that there is room for one more.
    fn check(&self, caller: &Caller, workflow: &Stored<Workflow>) -> Result<()> {
        let Self { all, by_programs, by_caller } = *self;
        let message = if all >= OPEN_MAX {
            format!("The workflow `{}` has {all} open proposals: review or reject some.", workflow.id)
        } else if by_programs >= OPEN_BY_PROGRAMS_MAX && is_of_program(&caller.kind, caller.role) {
            format!(
                "The workflow `{}` has {by_programs} open proposals of sessions and agents: people review or reject some first.",
                workflow.id
            )
        } else if by_caller >= OPEN_BY_MEMBER_MAX && !caller.effective_role().is_admin() {
            format!(
                "The workflow `{}` has {by_caller} open proposals of yours: some must be reviewed first.",
                workflow.id
            )
        } else {
            return Ok(());
        };
        Err(Problem::new(Code::RateLimited, message))
    }
}

fn is_of_program(kind: &Kind, role: Role) -> bool {
    *kind != Kind::Person || role == Role::Agent
}

/// Marks open proposals of a workflow whose time limit has passed, and counts the others.
fn expire(
    repository: Repository<'_>,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    now: u64,
    change: &mut Change,
) -> Result<Open> {
    let (mut open, mut marked, mut roles) = (Open::default(), 0, BTreeMap::new());
    for stored in repository.all::<Proposal>(Some(("open", workflow.id.clone()))) {
        let mut stored = stored?;
        match status_at(&stored.body, workflow, now) {
            ProposalStatus::Expired if marked < MARKED_MAX => {
                stored.body.updated_at = now;
                let id = stored.id.rsplit('/').next().unwrap_or_default().to_string();
                moved(repository, caller, &id, stored, Move::Expire, "The proposal has expired.", change)?;
                marked += 1;
            }
            ProposalStatus::Expired => {}
            // It was for a deleted workflow with this id, and can never be current again.
            _ if stored.body.workflow_created_at != workflow.body.created_at => {}
            // A superseded proposal counts: a rollback can make it current again.
            _ => {
                open.all += 1;
                let author = stored.body.author;
                open.by_caller += usize::from(author.user == caller.user);
                open.by_programs +=
                    usize::from(author.session.is_some() || is_agent(repository, author.user, &mut roles)?);
            }
        }
        if open.all >= OPEN_MAX {
            break;
        }
    }
    Ok(open)
}

/// True if a member has the role `agent`. Members that were read before are in `roles`.
fn is_agent(repository: Repository<'_>, user: String, roles: &mut BTreeMap<String, bool>) -> Result<bool> {
    if let Some(known) = roles.get(&user) {
        return Ok(*known);
    }
    let is_agent = repository.get::<Member>(&user)?.is_some_and(|member| member.body.role == Role::Agent);
    roles.insert(user, is_agent);
    Ok(is_agent)
}

/// The author of a proposal. A session proposes for the workflow of its own execution only.
fn author(app: &App, caller: &Caller, execution: Option<&str>, workflow: &Stored<Workflow>) -> Result<Author> {
    let user = caller.user.clone();
    let execution = match &caller.kind {
        Kind::Person => execution,
        Kind::Session { execution: own } => {
            if execution.is_some_and(|named| named != own) {
                return Err(Problem::new(Code::Forbidden, "A session proposes as its own execution only."));
            }
            Some(own.as_str())
        }
    };
    let mut session = None;
    if let Some(execution) = execution {
        let row = actionable_execution(app, caller, execution)?;
        if row.workflow_id.as_deref() != Some(&workflow.id) {
            let message = format!("executionId: it is no execution of the workflow `{}`", workflow.id);
            return Err(Problem::new(Code::Forbidden, message));
        }
        session = (caller.kind != Kind::Person).then(|| row.session());
    }
    let known_to = caller.known_to.clone();
    Ok(Author { user, execution: execution.map(String::from), session, known_to })
}

pub(super) fn audit<const N: usize>(
    caller: &Caller,
    action: &str,
    id: &str,
    proposal: &Proposal,
    details: [(&'static str, Value); N],
) -> mainspring_store::AuditEntry {
    let own = [
        ("workflow", Value::from(proposal.workflow.as_str())),
        ("base", proposal.change.base_hash.as_str().into()),
        ("hash", proposal.change.hash.as_str().into()),
    ];
    entry(caller, action, id, Value::map(own.into_iter().chain(details)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workflow() -> Stored<Workflow> {
        let body = Workflow {
            user: "ada".into(),
            slug: None,
            name: "w".into(),
            description: None,
            version: "1.0.0".into(),
            data: Data::default(),
            hash: "sha256:1".into(),
            enabled: true,
            tags: Vec::new(),
            created_at: 7,
            updated_at: 7,
            revision: 1,
            drain: None,
            rollout: None,
            repository: None,
        };
        Stored { id: "w".into(), version: 1, body }
    }

    fn proposal(expires_at: u64, bytes: usize) -> Proposal {
        let change = ProposedChange {
            base_hash: "sha256:1".into(),
            hash: "sha256:2".into(),
            data: Data("x".repeat(bytes).as_str().into()),
            summary: None,
            rationale: None,
        };
        Proposal {
            workflow: "w".into(),
            workflow_created_at: 7,
            author: Author { user: "ada".into(), execution: None, session: None, known_to: None },
            change,
            written: None,
            status: ProposalStatus::Pending,
            reviews: Vec::new(),
            applied: None,
            shadow: None,
            scenario_failure: None,
            failure: None,
            expires_at,
            created_at: 10,
            updated_at: 10,
        }
    }

    /// The definitions of all open proposals are larger than one page of a list.
    #[test]
    fn open_proposals_of_any_size_are_counted() {
        let store = mainspring_store::memory::MemoryStore::new();
        let (repository, caller) = (Repository::of(&store, "acme"), Caller::example("acme", "ada"));
        let add = |number: usize, expires_at: u64| {
            let key = proposal_key("w", &format!("pr-{number:03}"));
            let puts = vec![repository.put(&key, &proposal(expires_at, 200_000), 0).unwrap()];
            crate::resources::repository::apply(&store, &Change { puts, ..Change::default() }).unwrap().unwrap();
        };
        (0..20).for_each(|number| add(number, 50));
        (20..OPEN_MAX + 19).for_each(|number| add(number, 200));
        let count = || {
            let mut change = Change::default();
            let open = expire(repository, &caller, &workflow(), 100, &mut change).unwrap();
            (open.all, change.puts.len())
        };
        assert_eq!(count(), (OPEN_MAX - 1, MARKED_MAX));
        add(OPEN_MAX + 19, 200);
        assert_eq!(count().0, OPEN_MAX);
    }
}
