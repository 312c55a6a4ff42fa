//! Starts executions: validates a start, creates the workspace for scripts, and submits the start to the engine. The
//! start is durable before the response.

use std::time::Duration;

use mainspring_engine::{
    StartAnswer,
    evaluator::{Evaluator, ForTenant},
    start_request::StartRequest,
};
use mainspring_kernel::{
    diagnostic::Diagnostic,
    failure::Failure,
    input::{REPOSITORY_IN_TRIGGER, TRIGGER_IN_TRIGGER, WORKFLOWS_IN_TRIGGER},
    plan::{Constraints, Loop, Over, PROPOSE_TOOL, Work},
    secret::{SESSION_TOKEN, references_of},
    value::{Map, Value},
};
use mainspring_store::{ExecutionRow, Origin};

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission, token::random},
    http::problem::{Code, Problem, Result},
    resources::{
        Organization, RUNTIME_FEATURE, Workflow,
        repository::{Repository, Stored, entry},
        rollout_key,
    },
    services::{
        approvers::warnings_for_start,
        compile::{request_of, trigger_fields},
        repository_context::StartRepository,
        rollout_choice::{Chosen, choose, stable},
        rollout_progress::count_refused_start,
        workspaces::{self, Start},
    },
};

/// Parameters of a start.
#[derive(Debug, Clone)]
pub(crate) struct Starting {
    /// `manual`, `webhook`, `schedule`.
    pub trigger: &'static str,
    /// Id of the trigger resource; `None` for a start without one.
    pub trigger_id: Option<String>,
    /// Metadata of the trigger.
    pub metadata: Map,
    /// Idempotency key: the workflow starts once per key.
    pub idempotency_key: String,
    /// `@vars`.
    pub variables: Map,
    /// `@input`.
    pub input: Value,
    /// Bounds of this execution, within those of the definition.
    pub bounds: Constraints,
    /// The repository; [`pin`](super::repository_context::pin) has resolved it.
    pub repository: StartRepository,
}

/// The caller's organization, if its runtime is enabled.
pub(crate) fn running(app: &App, organization: &str) -> Result<Organization> {
    let stored = Repository::of(app.catalogue(), "").require::<Organization>(organization)?;
    if stored.body.has(RUNTIME_FEATURE) {
        return Ok(stored.body);
    }
    let message = "The runtime of workflows is turned off for this organization (feature `workflow_runtime_v1`).";
    Err(Problem::new(Code::WorkflowRuntimeDisabled, message))
}

/// Idempotency key of a manual start (first specification, 12.1).
pub(crate) fn manual_key(workflow: &str, user: &str, client_request: &str) -> String {
    format!("manual:{workflow}:{user}:{client_request}")
}

/// The execution that an idempotency key has started before.
pub(crate) fn earlier(app: &App, caller: &Caller, workflow: &str, key: &str) -> Result<Option<ExecutionRow>> {
    let origin = Origin { organization: Some(&caller.organization), workflow_id: Some(workflow), workflow: None };
    Ok(app.engine.store().execution_by_idempotency_key(&origin, key)?)
}

/// Validates a start and builds the engine's request. Also returns warnings about approvers who cannot decide.
pub(crate) fn prepare(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    starting: Starting,
) -> Result<(StartRequest, Vec<Diagnostic>)> {
    caller.require(Permission::ExecutionsStart)?;
    running(app, &caller.organization)?;
    if !workflow.body.enabled {
        let message = format!("The workflow `{}` is disabled: enable it to start it.", workflow.id);
        return Err(Problem::new(Code::WorkflowDisabled, message));
    }
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let chosen = choose(repository, workflow, &starting.idempotency_key)?;
    let (request, warnings) = match chosen.candidate_bucket {
        None => checked(app, caller, &chosen, starting)?,
        Some(bucket) => {
            let checked_candidate = checked(app, caller, &chosen, starting.clone());
            checked_candidate.map_err(|problem| refused(app, caller, workflow, (starting, bucket), problem))?
        }
    };
    let workspace = workspace(app, caller, &request, &workflow.id)?;
    Ok((StartRequest { workspace, ..request }, warnings))
}

/// Counts a start that the candidate of a rollout refuses and the stable definition accepts, and names the candidate in
/// the error. A start that both refuse is not evidence against the candidate.
fn refused(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    (starting, bucket): (Starting, u64),
    problem: Problem,
) -> Problem {
    let is_of_the_server = matches!(problem.code, Code::Unavailable | Code::InternalError | Code::RateLimited);
    let Some(rollout) = workflow.body.rollout.as_ref().filter(|_| !is_of_the_server) else { return problem };
    if checked(app, caller, &stable(workflow, None), starting).is_err() {
        return problem;
    }
    count_refused_start(app, &caller.organization, &rollout_key(&workflow.id, &rollout.id), bucket);
    let message = format!(
        "{}. The candidate of the rollout `{}` refuses this start, and the present definition accepts it.",
        problem.message.trim_end_matches('.'),
        rollout.id
    );
    Problem { message, ..problem }
}

/// Builds the engine's request for a chosen definition, after all checks of the start.
fn checked(
    app: &App,
    caller: &Caller,
    Chosen { workflow, rollout, .. }: &Chosen<'_>,
    starting: Starting,
) -> Result<(StartRequest, Vec<Diagnostic>)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let Starting { trigger, trigger_id, metadata, idempotency_key, variables, input, bounds, repository: named } =
        starting;
    let request = request_of(app, repository, &workflow.body, (&caller.user, &idempotency_key))?;
    check_bounds(&bounds, &request.plan.constraints)?;
    let own = [
        ("type", trigger.into()),
        ("metadata", metadata.into()),
        ("organizationId", caller.organization.as_str().into()),
    ];
    let started = request.trigger.get(WORKFLOWS_IN_TRIGGER).cloned();
    let started = started.map(|workflows| (WORKFLOWS_IN_TRIGGER, workflows));
    let by_trigger = trigger_id.map(|id| (TRIGGER_IN_TRIGGER, id.into()));
    let of_rollout = rollout.clone();
    let pinned = named.pinned.map(|pinned| (REPOSITORY_IN_TRIGGER, pinned.to_value()));
    let trigger = own.into_iter().chain(trigger_fields(workflow)).chain(of_rollout).chain(started).chain(by_trigger);
    let trigger = trigger.chain(pinned);
    let trigger = Value::map(trigger);
    let idempotency_key = Some(idempotency_key);
    let request = StartRequest { variables, input, bounds, trigger, idempotency_key, ..request };
    let rejected = |failure: Failure| {
        let details = serde_json::to_value(crate::http::body::Data(failure.to_value())).unwrap_or_default();
        Problem::new(Code::ValidationError, failure.message).with(details)
    };
    let evaluator = ForTenant { evaluator: &*app.evaluator, tenant: &caller.organization };
    let request = admitted(request, &evaluator).map_err(rejected)?;
    check_session_rights(caller, &request)?;
    if runs_scripts(&request) {
        caller.require(Permission::ScriptsRun)?;
    }
    let warnings = warnings_for_start(app, caller, &workflow.body)?;
    Ok((request, warnings))
}

/// Checks a start. Without an input, or with null, the input is an empty object if the schema refuses null and accepts that:
/// a trigger has variables only, and the schema may give all fields their defaults.
fn admitted(request: StartRequest, evaluator: &dyn Evaluator) -> Result<StartRequest, Failure> {
    match request.admit(evaluator) {
        Ok(()) => Ok(request),
        Err(refused) if request.input != Value::Null || request.plan.input_schema.is_none() => Err(refused),
        // The message is about the empty object, since the caller may not have sent null.
        Err(_) => {
            let request = StartRequest { input: Value::Map(Map::new()), ..request };
            request.admit(evaluator).map(|()| request)
        }
    }
}

/// True if a step of the tree may run a script.
fn runs_scripts(request: &StartRequest) -> bool {
    has_work(request, Work::may_run_scripts)
}

/// Rejects bounds that are wider than those of the definition: starting a workflow does not permit changing its limits.
fn check_bounds(asked: &Constraints, allowed: &Constraints) -> Result<()> {
    let of = |bounds: &Constraints| {
        let small = |number: Option<u32>| number.map(u64::from);
        let Constraints { timeout_ms, max_steps, max_parallel, max_output_bytes, .. } = *bounds;
        [timeout_ms, small(max_steps), small(max_parallel), small(max_output_bytes)]
    };
    let names = ["timeoutMs", "maxSteps", "maxParallel", "maxOutputBytes"];
    for ((name, asked), allowed) in names.into_iter().zip(of(asked)).zip(of(allowed)) {
        if let (Some(asked), Some(allowed)) = (asked, allowed)
            && asked > allowed
        {
            let message =
                format!("the definition's `constraints.{name}` is {allowed}: ask for that or less, not {asked}");
            return Err(Problem::field(&format!("runtime.policy.{name}"), message));
        }
    }
    Ok(())
}

/// Rejects a start whose execution could do more as the session of the member than the credential itself.
fn check_session_rights(caller: &Caller, request: &StartRequest) -> Result<()> {
    if caller.scopes.is_empty() && caller.known_to.is_none() {
        return Ok(());
    }
    check_session_token(caller, request)?;
    check_propose_tool(caller, request)
}

/// True if a step of the tree fits.
fn has_work(request: &StartRequest, fits: impl Fn(&Work) -> bool) -> bool {
    let mut plans = [&request.plan].into_iter().chain(request.workflows.values());
    plans.any(|plan| plan.steps.iter().any(|step| fits(&step.work)))
}

/// Rejects the credential for workflows whose steps get the token of their session: the token has no scopes, and only the
/// member is taken to act with it.
fn check_session_token(caller: &Caller, request: &StartRequest) -> Result<()> {
    let uses_token = |work: &Work| match work {
        Work::Effect { params, .. } => {
            references_of(params).iter().any(|placed| placed.reference.name == SESSION_TOKEN)
        }
        _ => false,
    };
    if !has_work(request, uses_token) {
        return Ok(());
    }
    let message = match &caller.known_to {
        Some(admin) => made_by_admin(admin, &format!("a step uses `{SESSION_TOKEN}`")),
        None => format!(
            "This credential has scopes, and a step uses `{SESSION_TOKEN}`, which has the permissions of the member: start \
             the workflow with a credential without scopes."
        ),
    };
    Err(Problem::new(Code::Forbidden, message))
}

/// Permissions of the tool `propose_change`: it returns the present definition, and proposes another one.
const PROPOSING: [Permission; 2] = [Permission::ProposalsWrite, Permission::WorkflowsRead];

/// Rejects the credential for workflows with an agent that has the tool `propose_change`, unless its scopes have the permissions
/// of the tool, since the tool acts as the session, which has the permissions of the member.
fn check_propose_tool(caller: &Caller, request: &StartRequest) -> Result<()> {
    let proposes = |work: &Work| match work {
        Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.permits(PROPOSE_TOOL),
        _ => false,
    };
    if !has_work(request, proposes) {
        return Ok(());
    }
    if let Some(admin) = &caller.known_to {
        let message = made_by_admin(admin, &format!("an agent has the tool `{PROPOSE_TOOL}`"));
        return Err(Problem::new(Code::Forbidden, message));
    }
    let missing = PROPOSING.iter().find(|permission| !caller.scopes.contains(permission));
    let Some(missing) = missing else { return Ok(()) };
    let name = missing.name();
    let message = format!(
        "This credential has scopes without `{name}`, and an agent has the tool `{PROPOSE_TOOL}`, which has the permissions of \
         the member: start the workflow with a credential without scopes, or with this scope as well."
    );
    Err(Problem::new(Code::Forbidden, message).with(serde_json::json!({ "permission": name })))
}

/// The message for a credential that an admin has made. The admin could review a change that the session proposes, as if
/// another person had written it.
fn made_by_admin(admin: &str, because: &str) -> String {
    format!(
        "The admin `{admin}` made this credential, {because}, and the session acts as the member: start the workflow with a \
         credential that only the member knows. Sign in through the identity provider, or ask an owner for a token."
    )
}

/// Longest wait for a node to take a start from its inbox, and the interval of polling for it.
const STARTED_WITHIN: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Submits a start. When this returns, the execution has started durably.
pub(crate) async fn submit(app: &App, caller: &Caller, request: StartRequest, workflow: &str) -> Result<StartAnswer> {
    let audit = entry(caller, "execution.start", "", Value::map([("workflowId", workflow.into())]));
    let idempotency_key = request.idempotency_key.clone().unwrap_or_default();
    let workspace = request.workspace.clone();
    let submitted = app.engine.start(StartRequest { audit: Some(Box::new(audit)), ..request }).await;
    if submitted.as_ref().map_or(true, |submitted| submitted.existed) {
        // No execution will use the workspace, and it is empty.
        workspace.iter().for_each(|path| workspaces::discard(path.as_ref()));
    }
    let submitted = submitted?;
    let submitted = if submitted.is_enqueued {
        let started = tokio::time::timeout(STARTED_WITHIN, started(app, caller, workflow, &idempotency_key));
        let late = |_| {
            Problem::new(
                Code::Unavailable,
                "No node has started the execution yet. Repeat the request with the same `clientRequestId` or delivery id; it is \
                 started once.",
            )
        };
        let row = started.await.map_err(late)??;
        StartAnswer { execution: row.key, existed: row.key != submitted.execution, is_enqueued: false }
    } else {
        submitted
    };
    Ok(submitted)
}

/// Waits for the execution of an idempotency key. If several messages carry the same start, the first one that a node
/// takes starts it.
async fn started(app: &App, caller: &Caller, workflow: &str, key: &str) -> Result<ExecutionRow> {
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    loop {
        poll.tick().await;
        let (asker, workflow, key) = (caller.clone(), workflow.to_string(), key.to_string());
        if let Some(row) = app.run(move |app| earlier(app, &asker, &workflow, &key)).await? {
            return Ok(row);
        }
    }
}

/// Creates the workspace of an execution with scripts, or with tools of servers that are processes; `None` for others. The
/// workspace of an execution with scripts is the permission to run them: without one, a node runs no script of an execution.
fn workspace(app: &App, caller: &Caller, request: &StartRequest, workflow: &str) -> Result<Option<String>> {
    let plans = || [&request.plan].into_iter().chain(request.workflows.values());
    let steps = || plans().flat_map(|plan| &plan.steps);
    let is_needed = app.settings.tools_use_workspaces && steps().any(|step| step.work.may_call_tool_servers());
    if !is_needed && !runs_scripts(request) {
        return Ok(None);
    }
    let path = app.settings.workspaces.join(random(16)?);
    let failed = |why: String| {
        let message = "The workspace of this execution cannot be created. Try again, or inform the server's operator.";
        Problem::new(Code::Unavailable, message).because(format!("{}: {why}", path.display()))
    };
    let start = Start {
        organization: &caller.organization,
        workflow,
        idempotency_key: request.idempotency_key.as_deref().unwrap_or_default(),
        detaches: steps().any(|step| matches!(&step.work, Work::Subworkflow { waits: false, .. })),
        repository: request.trigger.get(REPOSITORY_IN_TRIGGER),
    };
    workspaces::create(&path, &start).map_err(|error| failed(error.to_string()))?;
    path.to_str().map(|text| Some(text.to_string())).ok_or_else(|| failed("its path is not UTF-8".into()))
}
