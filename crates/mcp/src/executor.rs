//! The executor of `tool` steps.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    value::{Map, Value},
};

use crate::{
    connection::{Call, Scope},
    error::ToolError,
    limits::LOOKUP_TIMEOUT,
    lookup::find,
    pool::{Lease, Pool},
};

/// Performs the attempts of `tool` steps at the configured servers.
pub struct Tools {
    pool: Arc<Pool>,
    lookup_timeout: Duration,
    checks: Option<Arc<dyn CheckArguments>>,
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
        Self { pool, lookup_timeout: LOOKUP_TIMEOUT, checks: None }
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
        if stop.is_requested() {
            return Ok(Outcome::Stopped(Value::Null));
        }
        let scope = Scope { organization: attempt.organization.clone(), workspace: attempt.workspace.clone() };
        let name = attempt.params.get("tool").and_then(Value::as_text).unwrap_or_default();
        let arguments = attempt.params.get("arguments").unwrap_or(&Value::Null);
        let checked = async {
            let (connection, tool) = find(&self.pool, name, &scope, self.lookup_timeout).await?;
            let checked = self.check(&connection, &tool, arguments, &scope).await;
            Ok::<_, ToolError>((connection, tool, checked))
        };
        let found = tokio::select! {
            biased;
            found = checked => found?,
            () = stop.requested() => return Ok(Outcome::Stopped(Value::Null)),
        };
        let (connection, tool, checked) = found;
        let call = Call { tool: &tool, arguments, intent: attempt.intent, step: &attempt.step };
        let outcome = match checked {
            Ok(()) => connection.call(call, &mut stop).await,
            Err(error) => Err(error),
        };
        let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(error.to_failure(&attempt.step)));
        Ok(connection.redactor().outcome(outcome))
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
        // A check that panicked says nothing about the arguments, which the server checks as well.
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

    /// A call is not recorded before it is sent, and its server may have ended with the earlier process.
    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
