//! The executor of `tool` steps.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    value::Value,
};

use crate::{
    connection::{Call, Scope},
    error::ToolError,
    limits::LOOKUP_TIMEOUT,
    lookup::find,
    pool::Pool,
};

/// Performs the attempts of `tool` steps at the configured servers.
pub struct Tools {
    pool: Arc<Pool>,
    lookup_timeout: Duration,
}

impl Tools {
    /// Makes an executor.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self { pool, lookup_timeout: LOOKUP_TIMEOUT }
    }

    /// Changes the time in which all servers must list their tools for a name without its server.
    pub fn with_lookup_timeout(self, lookup_timeout: Duration) -> Self {
        Self { lookup_timeout, ..self }
    }

    async fn run(&self, attempt: &Attempt, mut stop: CancelSignal) -> Result<Outcome, ToolError> {
        if stop.is_requested() {
            return Ok(Outcome::Stopped(Value::Null));
        }
        let scope = Scope { organization: attempt.organization.clone(), workspace: attempt.workspace.clone() };
        let name = attempt.params.get("tool").and_then(Value::as_text).unwrap_or_default();
        let found = tokio::select! {
            biased;
            found = find(&self.pool, name, &scope, self.lookup_timeout) => found?,
            () = stop.requested() => return Ok(Outcome::Stopped(Value::Null)),
        };
        let (connection, tool) = found;
        let arguments = attempt.params.get("arguments").unwrap_or(&Value::Null);
        let call = Call { tool: &tool, arguments, intent: attempt.intent, step: &attempt.step };
        connection.call(call, &mut stop).await
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
