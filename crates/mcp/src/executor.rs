//! The executor of `tool` steps.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use mainspring_kernel::{
    effect::{Attempt, Outcome, PinnedTool, Report},
    hash::Hash,
    value::{Map, Value},
};
use rmcp::model::InputRequiredResult;

use crate::{
    connection::{Answer, Given, Scope},
    error::ToolError,
    forms,
    handle::{Handle, Pending},
    limits::{HELD_CALLS_MAX, LOOKUP_TIMEOUT},
    live::{HeldCalls, LiveCall, Next, OwnedCall, Taken},
    lookup::find,
    pool::{Lease, Pool},
    report::{asked, continued, responses},
    task::{TaskCall, begun},
    tool::Tool,
};

/// Performs the attempts of `tool` steps at the configured servers.
pub struct Tools {
    pool: Arc<Pool>,
    lookup_timeout: Duration,
    checks: Option<Arc<dyn CheckArguments>>,
    held: HeldCalls,
}

/// The tool of an attempt.
enum Found {
    /// The execution uses it for the first time.
    Unpinned(Vec<PinnedTool>),
    /// It cannot be called with these arguments.
    Refused(Outcome),
    /// It can be called.
    Callable(Lease, String),
}

fn scope_of(attempt: &Attempt) -> Scope {
    Scope { organization: attempt.organization.clone(), workspace: attempt.workspace.clone() }
}

fn tool_of(attempt: &Attempt) -> &str {
    attempt.params.get("tool").and_then(Value::as_text).unwrap_or_default()
}

/// Returns the digest by which an execution pins a tool. A tool that is not listed has one as well.
pub fn pinned_digest(server: &str, tool: Option<&Tool>) -> Hash {
    let tool = tool.map_or_else(|| Hash::of(b"not listed"), |tool| tool.digest);
    Hash::of_parts(&[server.as_bytes(), &tool.0])
}

/// Returns the outcome of an attempt whose call was answered.
fn outcome_of(attempt: &Attempt, call: &LiveCall, answer: Answer) -> Outcome {
    let connection = call.connection();
    let server = connection.server();
    let outcome = match answer {
        Answer::Ended(outcome) => Ok(outcome),
        _ if attempt.progress.is_none() => Err(ToolError::InputRequired(server.to_owned())),
        Answer::NeedsInput(needed) => needs_input(connection, call.tool(), needed),
        Answer::Task(task) => begun(server, call.tool(), &task),
    };
    let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(error.to_failure(&attempt.step)));
    call.connection().redactor().outcome(outcome)
}

/// Asks for the first form of a call that is to be sent again with input.
fn needs_input(connection: &Lease, tool: &str, needed: InputRequiredResult) -> Result<Outcome, ToolError> {
    let InputRequiredResult { input_requests, request_state: state, .. } = needed;
    let server = connection.server();
    let open = forms::read_all(server, &input_requests.unwrap_or_default(), connection.redactor())?;
    let form = open.first().map(|(_, form)| form.clone());
    let handle = Handle::Repeat { state, forms: Pending::of(open) };
    match form {
        Some(form) => asked(server, tool, form, &handle),
        // The server only wants the call again.
        None => continued(server, &handle),
    }
}

/// Checks arguments against the schema of a tool. The schema comes from the tool server, so it is untrusted. The call
/// blocks.
pub trait CheckArguments: Send + Sync {
    /// Returns the mismatches as a sentence, for a call of an organization.
    fn check(&self, organization: Option<&str>, schema: &Value, arguments: &Value) -> Result<(), String>;
}

impl Tools {
    /// Makes an executor.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self { pool, lookup_timeout: LOOKUP_TIMEOUT, checks: None, held: HeldCalls::default() }
    }

    /// Changes the time in which all servers must list their tools for a name without its server.
    pub fn with_lookup_timeout(self, lookup_timeout: Duration) -> Self {
        Self { lookup_timeout, ..self }
    }

    /// Checks the arguments of each call before it is sent.
    pub fn with_checks(self, checks: Arc<dyn CheckArguments>) -> Self {
        Self { checks: Some(checks), ..self }
    }

    async fn run(&self, attempt: &Attempt, mut stop: CancelSignal) -> Result<Outcome, ToolError> {
        let progress = attempt.progress.as_deref();
        if progress.is_some_and(|progress| progress.is_stopping) {
            return Ok(self.stop(attempt).await);
        }
        if let Some(handle) = progress.map(|progress| &progress.handle).filter(|handle| **handle != Value::Null) {
            let answer = progress.map_or(&Value::Null, |progress| &progress.answer);
            return self.proceed(attempt, handle, answer, stop).await;
        }
        if stop.is_requested() {
            return Ok(Outcome::Stopped(Value::Null));
        }
        let found = tokio::select! {
            biased;
            found = self.find(attempt) => found?,
            () = stop.requested() => return Ok(Outcome::Stopped(Value::Null)),
        };
        match found {
            Found::Unpinned(tools) => Ok(Outcome::Reported(Box::new(Report::Tools(tools)))),
            Found::Refused(outcome) => Ok(outcome),
            Found::Callable(connection, tool) => self.call(attempt, connection, tool, Given::default(), stop).await,
        }
    }

    /// Finds the tool of an attempt, compares it with the pinned one, and checks the arguments.
    async fn find(&self, attempt: &Attempt) -> Result<Found, ToolError> {
        let scope = scope_of(attempt);
        let name = tool_of(attempt);
        let pin = attempt.progress.as_deref().map(|progress| progress.pins.get(name));
        let found = find(&self.pool, name, &scope, self.lookup_timeout).await;
        let (connection, tool) = match found {
            Err(ToolError::UnknownTool { tool, .. }) if pin.flatten().is_some() => {
                return Err(ToolError::ToolGone(tool));
            }
            found => found?,
        };
        if let Some(pin) = pin {
            let tools = connection.tools().await?;
            let full_name = format!("{}.{tool}", connection.server());
            let digest = pinned_digest(connection.server(), tools.get(&tool));
            let of_full_name = attempt.progress.as_deref().and_then(|progress| progress.pins.get(&full_name));
            match (pin, tools.get(&tool)) {
                (None, _) if of_full_name.is_none_or(|pin| *pin == digest) => {
                    // The full name is pinned as well: the tool is the same by every name.
                    let names = [name.to_owned(), full_name];
                    let names = if names[0] == names[1] { &names[..1] } else { &names[..] };
                    let pin = |name: &String| PinnedTool { name: name.clone(), digest };
                    return Ok(Found::Unpinned(names.iter().map(pin).collect()));
                }
                (None, None) => return Err(ToolError::ToolGone(name.to_owned())),
                (None, Some(_)) => {
                    let server = connection.server().to_owned();
                    return Err(ToolError::ToolChanged { tool: name.to_owned(), server });
                }
                (Some(pin), found) if *pin == pinned_digest(connection.server(), found) => {}
                (Some(_), None) => return Err(ToolError::ToolGone(name.to_owned())),
                (Some(_), Some(_)) => {
                    let server = connection.server().to_owned();
                    return Err(ToolError::ToolChanged { tool: name.to_owned(), server });
                }
            }
        }
        let arguments = attempt.params.get("arguments").unwrap_or(&Value::Null);
        match self.check(&connection, &tool, arguments, &scope).await {
            Ok(()) => Ok(Found::Callable(connection, tool)),
            Err(error) => {
                let failed = Outcome::Failed(error.to_failure(&attempt.step));
                Ok(Found::Refused(connection.redactor().outcome(failed)))
            }
        }
    }

    /// Sends a call, and follows it to its end or to a report.
    async fn call(
        &self,
        attempt: &Attempt,
        connection: Lease,
        tool: String,
        given: Given,
        stop: CancelSignal,
    ) -> Result<Outcome, ToolError> {
        let arguments = attempt.params.get("arguments").cloned().unwrap_or_default();
        let call = OwnedCall { tool, arguments, intent: attempt.intent, step: attempt.step.clone(), given };
        let can_ask = attempt.progress.is_some();
        self.follow(attempt, LiveCall::start(connection, call, can_ask), stop).await
    }

    /// Follows a call to its end or to a report.
    async fn follow(
        &self,
        attempt: &Attempt,
        mut call: LiveCall,
        mut stop: CancelSignal,
    ) -> Result<Outcome, ToolError> {
        match call.next(&mut stop).await {
            Next::Answered(answer) => Ok(outcome_of(attempt, &call, answer)),
            Next::Asked(form) => {
                // A call that waits for a person would keep the forms of all others from this connection.
                call.connection().retire();
                let server = call.connection().server().to_owned();
                let form = call.connection().redactor().value(form);
                let (call, error) = match asked(&server, call.tool(), form, &Handle::Held) {
                    Ok(asked) => match self.held.hold(attempt.into(), attempt.organization.as_deref(), call) {
                        Ok(()) => return Ok(asked),
                        Err(call) => (*call, ToolError::TooManyForms(HELD_CALLS_MAX)),
                    },
                    Err(error) => (call, error),
                };
                // A call that is still open would keep the server from asking for another form.
                call.end().await;
                Err(error)
            }
        }
    }

    /// Ends the call or the task of an attempt that is only to be stopped. Nothing else is sent.
    async fn stop(&self, attempt: &Attempt) -> Outcome {
        let handle = attempt.progress.as_deref().and_then(|progress| Handle::read(&progress.handle));
        match handle {
            Some(Handle::Held) => match self.held.take(attempt.into()) {
                Some(Taken::Open(call)) => {
                    let answer = call.end().await;
                    answer.map_or(Outcome::Stopped(Value::Null), |(call, answer)| outcome_of(attempt, &call, answer))
                }
                Some(Taken::Ended(outcome)) => outcome,
                None => Outcome::Stopped(Value::Null),
            },
            Some(Handle::Task { server, tool, id, .. }) => {
                TaskCall { pool: &self.pool, scope: scope_of(attempt), server, tool, id }.cancel().await
            }
            Some(Handle::Repeat { .. }) | None => Outcome::Stopped(Value::Null),
        }
    }

    /// Continues a call after a report: with the answer of a person, or by asking for its task.
    async fn proceed(
        &self,
        attempt: &Attempt,
        handle: &Value,
        answer: &Value,
        mut stop: CancelSignal,
    ) -> Result<Outcome, ToolError> {
        match Handle::read(handle) {
            Some(Handle::Held) => match self.held.take(attempt.into()) {
                Some(Taken::Open(mut call)) => {
                    call.give(answer);
                    self.follow(attempt, call, stop).await
                }
                Some(Taken::Ended(outcome)) => Ok(outcome),
                // The process that held the call has ended.
                None => Ok(Outcome::Interrupted),
            },
            Some(Handle::Repeat { state, forms }) => {
                if stop.is_requested() {
                    return Ok(Outcome::Stopped(Value::Null));
                }
                let forms = forms.answered(answer);
                let found = tokio::select! {
                    biased;
                    found = self.find(attempt) => found?,
                    () = stop.requested() => return Ok(Outcome::Stopped(Value::Null)),
                };
                match found {
                    Found::Callable(connection, tool) if forms.open.is_empty() => {
                        let responses = Some(responses(&forms.answers));
                        self.call(attempt, connection, tool, Given { responses, state }, stop).await
                    }
                    Found::Callable(connection, tool) => {
                        let form = forms.open.first().map(|(_, form)| form.clone()).unwrap_or_default();
                        asked(connection.server(), &tool, form, &Handle::Repeat { state, forms })
                    }
                    Found::Refused(outcome) => Ok(outcome),
                    Found::Unpinned(_) => Err(ToolError::ToolGone(tool_of(attempt).to_owned())),
                }
            }
            Some(Handle::Task { server, tool, id, forms }) => {
                let task = TaskCall { pool: &self.pool, scope: scope_of(attempt), server, tool, id };
                task.follow(attempt, forms.answered(answer), stop).await
            }
            // A newer release has begun the call.
            None => Ok(Outcome::Interrupted),
        }
    }

    /// Checks the arguments against the schema that the server lists for the tool. A tool that the server does not list
    /// is called without a check: the server answers for it.
    async fn check(&self, connection: &Lease, tool: &str, arguments: &Value, scope: &Scope) -> Result<(), ToolError> {
        let Some(checks) = self.checks.clone() else { return Ok(()) };
        let listed = connection.tools().await?;
        let Some(schema) = listed.get(tool).map(|tool| tool.input_schema.clone()) else { return Ok(()) };
        let arguments = if *arguments == Value::Null { Value::Map(Map::new()) } else { arguments.clone() };
        let organization = scope.organization.clone();
        let checked = move || checks.check(organization.as_deref(), &schema, &arguments);
        // A check that panicked gives no verdict on the arguments, which the server checks as well.
        let checked = tokio::task::spawn_blocking(checked).await.unwrap_or(Ok(()));
        checked.map_err(|why| ToolError::ArgumentsMismatch(tool.to_owned(), why))
    }
}

impl Executor for Tools {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "tool" && !self.pool.servers().is_empty()
    }

    /// The result is the structured content of the tool's result, or the list of its content blocks.
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.run(attempt, stop).await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::Failed(error.to_failure(&attempt.step)),
            }
        })
    }

    fn watch<'a>(&'a self, attempt: &'a Attempt, mut stop: CancelSignal) -> BoxFuture<'a, Option<Outcome>> {
        Box::pin(async move {
            let outcome = self.held.ended(attempt.into(), &mut stop, |call, answer| outcome_of(attempt, call, answer));
            // The gate of the form stays open for a call that needs other input: it is interrupted when it continues.
            outcome.await.filter(|outcome| !matches!(outcome, Outcome::Reported(_)))
        })
    }

    /// A call is sent only after its tool is pinned, and a task is only asked for.
    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Adopted> {
        let was_called = match attempt.progress.as_deref() {
            // It only ends what may be open.
            Some(progress) if progress.is_stopping && progress.handle != Value::Null => false,
            Some(progress) if progress.handle == Value::Null => progress.pins.contains_key(tool_of(attempt)),
            Some(progress) => match Handle::read(&progress.handle) {
                Some(Handle::Task { .. }) => false,
                // Further forms are to be answered before the call is sent again.
                Some(Handle::Repeat { forms, .. }) => forms.answered(&progress.answer).open.is_empty(),
                Some(Handle::Held) | None => true,
            },
            None => true,
        };
        let adopted = if was_called { Adopted::Interrupted } else { Adopted::NeverStarted };
        Box::pin(std::future::ready(adopted))
    }

    fn forget(&self, attempt: AttemptName<'_>) {
        self.held.forget(attempt);
    }
}
