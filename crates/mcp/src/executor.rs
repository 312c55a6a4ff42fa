//! The executor of `tool` steps.

use std::sync::Arc;

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    value::Value,
};

use crate::{
    config::ServerConfig,
    connection::{Call, Scope},
    error::ToolError,
    pool::{Lease, Pool},
};

/// The lists of tools to search.
#[derive(Debug, Clone, Copy)]
enum Lists {
    Kept,
    Fresh,
}

/// Performs the attempts of `tool` steps at the configured servers.
pub struct Tools {
    pool: Arc<Pool>,
}

impl Tools {
    /// Makes an executor.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self { pool }
    }

    async fn run(&self, attempt: &Attempt, mut stop: CancelSignal) -> Result<Outcome, ToolError> {
        if stop.is_requested() {
            return Ok(Outcome::Stopped(Value::Null));
        }
        let scope = Scope { organization: attempt.organization.clone(), workspace: attempt.workspace.clone() };
        let name = attempt.params.get("tool").and_then(Value::as_text).unwrap_or_default();
        let found = tokio::select! {
            biased;
            found = self.find(name, &scope) => found?,
            () = stop.requested() => return Ok(Outcome::Stopped(Value::Null)),
        };
        let (connection, tool) = found;
        let arguments = attempt.params.get("arguments").unwrap_or(&Value::Null);
        let call = Call { tool: &tool, arguments, intent: attempt.intent, step: &attempt.step };
        connection.call(call, &mut stop).await
    }

    /// Finds the server of a tool: by the full name `SERVER.TOOL`, or by a name that only one server has.
    async fn find(&self, name: &str, scope: &Scope) -> Result<(Lease, String), ToolError> {
        if let Some((server, tool)) = self.by_full_name(name) {
            let connection = self.pool.connection(server, scope).await?;
            return Ok((connection, tool.to_owned()));
        }
        // A notification of a new tool may still be on its way, so an unknown name is looked up in fresh lists.
        match self.among(name, scope, Lists::Kept).await {
            Err(ToolError::UnknownTool { .. }) => self.among(name, scope, Lists::Fresh).await,
            found => found,
        }
    }

    async fn among(&self, name: &str, scope: &Scope, lists: Lists) -> Result<(Lease, String), ToolError> {
        let (mut found, mut all) = (Vec::new(), Vec::new());
        for server in self.pool.servers() {
            let connection = self.pool.connection(server, scope).await?;
            let tools = match lists {
                Lists::Kept => connection.tools().await?,
                Lists::Fresh => connection.tools_now().await?,
            };
            match tools.get(name) {
                Some(_) => found.push((server, connection)),
                None => all.extend(tools.tools().iter().map(|tool| format!("{}.{}", server.name, tool.name))),
            }
        }
        match (found.pop(), found.as_slice()) {
            (None, _) => Err(unknown(name, &all)),
            (Some((_, connection)), []) => Ok((connection, name.to_owned())),
            (Some(last), _) => Err(ToolError::AmbiguousTool {
                tool: name.to_owned(),
                candidates: found.iter().chain([&last]).map(|(server, _)| format!("{}.{name}", server.name)).collect(),
            }),
        }
    }

    fn by_full_name<'a>(&self, name: &'a str) -> Option<(&ServerConfig, &'a str)> {
        let (server, tool) = name.split_once('.')?;
        let server = self.pool.servers().iter().find(|config| config.name == server)?;
        Some((server, tool))
    }
}

/// The error of an unknown tool, with the names that differ least.
fn unknown(name: &str, all: &[String]) -> ToolError {
    let wanted = name.to_lowercase();
    let nearest = all.iter().filter(|full| {
        let tool = full.split_once('.').map_or(full.as_str(), |(_, tool)| tool).to_lowercase();
        tool.contains(&wanted) || wanted.contains(&tool)
    });
    ToolError::UnknownTool { tool: name.to_owned(), nearest: nearest.take(5).cloned().collect() }
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
