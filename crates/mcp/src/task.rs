//! Tasks: calls that a server continues after its answer, and that are asked for until they end.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{CancelSignal, secrets::Redactor};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::Class,
    value::Value,
};
use rmcp::model::{DetailedTask, Task, TaskPayload};
use tokio::time::sleep;

use crate::{
    connection::{Connection, Scope},
    error::ToolError,
    forms::read_all,
    handle::{Handle, Pending},
    limits::{HANDLE_TEXT_BYTES_MAX, POLL_INTERVAL_DEFAULT, POLL_INTERVALS},
    outcome::{outcome, unknown_form},
    pool::Pool,
    report::{asked, continued, responses},
};

/// A task of an attempt.
pub(crate) struct TaskCall<'a> {
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) scope: Scope,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) id: String,
}

/// Returns the report of an attempt whose call continues as a task.
pub(crate) fn begun(server: &str, tool: &str, task: &Task) -> Result<Outcome, ToolError> {
    if task.task_id.is_empty() || task.task_id.len() > HANDLE_TEXT_BYTES_MAX {
        let why = format!("the id of its task has {} bytes", task.task_id.len());
        return Err(ToolError::InvalidAnswer(server.to_owned(), why));
    }
    let (server, tool, id) = (server.to_owned(), tool.to_owned(), task.task_id.clone());
    let handle = Handle::Task { server: server.clone(), tool, id, forms: Pending::default() };
    continued(&server, &handle)
}

/// The state of a task, as far as it matters to the attempt.
enum Polled {
    Ended(Outcome),
    /// The time until it is asked for again.
    Works(Duration),
}

impl TaskCall<'_> {
    /// Cancels the task of a step that is stopped.
    pub(crate) async fn cancel(&self) -> Outcome {
        self.end_at_server().await;
        Outcome::Stopped(Value::Null)
    }

    /// Polls the task until it ends or needs input. A lost connection is opened again: asking has no effect, and the
    /// timeout of the step limits the time. A cancellation cancels the task, unless the process only leaves.
    pub(crate) async fn follow(
        &self,
        attempt: &Attempt,
        mut forms: Pending,
        mut stop: CancelSignal,
    ) -> Result<Outcome, ToolError> {
        let mut pause = POLL_INTERVAL_DEFAULT;
        loop {
            let polled = tokio::select! {
                biased;
                polled = self.poll(attempt, &mut forms), if !stop.is_requested() => polled,
                () = stop.requested() => return Ok(self.stopped(&stop).await),
            };
            let wait = match polled {
                Ok(Polled::Ended(outcome)) => return Ok(outcome),
                Ok(Polled::Works(interval)) => {
                    pause = POLL_INTERVAL_DEFAULT;
                    interval
                }
                Err(error) if is_passing(&error) => {
                    pause = (pause * 2).min(POLL_INTERVALS.1);
                    pause
                }
                Err(error) => return Err(error),
            };
            tokio::select! {
                biased;
                () = stop.requested() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Polls the task once, after it got the answers of people.
    async fn poll(&self, attempt: &Attempt, forms: &mut Pending) -> Result<Polled, ToolError> {
        if let Some((_, form)) = forms.open.first() {
            return self.asks(form.clone(), forms.clone()).map(Polled::Ended);
        }
        let config = self.pool.servers().iter().find(|config| config.name == self.server);
        let config = config.ok_or_else(|| ToolError::ToolGone(format!("{}.{}", self.server, self.tool)))?;
        let connection = self.pool.connection(config, &self.scope).await?;
        let polled = self.poll_over(&connection, attempt, forms).await;
        let polled = polled.map_err(|error| error.map_text(|text| connection.redactor().text(text)))?;
        Ok(match polled {
            Polled::Ended(outcome) => Polled::Ended(connection.redactor().outcome(outcome)),
            works => works,
        })
    }

    async fn poll_over(
        &self,
        connection: &Connection,
        attempt: &Attempt,
        forms: &mut Pending,
    ) -> Result<Polled, ToolError> {
        if !forms.answers.is_empty() {
            match connection.update_task(&self.id, responses(&forms.answers)).await {
                // An earlier process may have given the answers. Otherwise the task requests it again.
                Ok(()) | Err(ToolError::Rejected { .. }) => forms.answers.clear(),
                Err(error) => return Err(error),
            }
        }
        match connection.task(&self.id).await? {
            Some(DetailedTask { task, payload, .. }) => self.read(attempt, &task, payload, connection.redactor()),
            // The server has lost it, perhaps with its process.
            None => Ok(Polled::Ended(Outcome::Interrupted)),
        }
    }

    fn read(
        &self,
        attempt: &Attempt,
        task: &Task,
        payload: TaskPayload,
        redactor: &Redactor,
    ) -> Result<Polled, ToolError> {
        let interval = task.poll_interval_ms.map_or(POLL_INTERVAL_DEFAULT, Duration::from_millis);
        let works = Polled::Works(interval.clamp(POLL_INTERVALS.0, POLL_INTERVALS.1));
        match payload {
            TaskPayload::InputRequired { input_requests } => {
                let open = read_all(&self.server, &input_requests, redactor)?;
                match open.first().map(|(_, form)| form.clone()) {
                    Some(form) => self.asks(form, Pending::of(open)).map(Polled::Ended),
                    None => Ok(works),
                }
            }
            TaskPayload::Completed { result } => {
                let result = serde_json::Value::Object(result);
                let ended = match serde_json::from_value(result.clone()) {
                    Ok(result) => outcome(&self.server, &self.tool, &attempt.step, &result)?,
                    Err(_) => unknown_form(&self.server, &result)?,
                };
                Ok(Polled::Ended(ended))
            }
            TaskPayload::Failed { error } => {
                let code =
                    error.get("code").and_then(serde_json::Value::as_i64).and_then(|code| i32::try_from(code).ok());
                let message = error.get("message").and_then(serde_json::Value::as_str).unwrap_or("without a message");
                let (server, message) = (self.server.clone(), message.to_owned());
                Err(ToolError::Rejected { server, code: code.unwrap_or(0), message })
            }
            TaskPayload::Cancelled => Err(ToolError::TaskCancelled(self.server.clone())),
            _ => Ok(works),
        }
    }

    fn asks(&self, form: Value, forms: Pending) -> Result<Outcome, ToolError> {
        let Self { server, tool, id, .. } = self;
        let handle = Handle::Task { server: server.clone(), tool: tool.clone(), id: id.clone(), forms };
        asked(server, tool, form, &handle)
    }

    /// Ends the wait. A task continues without the process that waits for it.
    async fn stopped(&self, stop: &CancelSignal) -> Outcome {
        if !stop.is_leaving() {
            self.end_at_server().await;
        }
        Outcome::Stopped(Value::Null)
    }

    /// Asks the server to cancel the task. The attempt ends without its answer, also if it cannot be reached.
    async fn end_at_server(&self) {
        let Some(config) = self.pool.servers().iter().find(|config| config.name == self.server) else { return };
        if let Ok(connection) = self.pool.connection(config, &self.scope).await {
            Connection::cancel_task(&connection, &self.id).await;
        }
    }
}

/// True for failures after which the task can be asked for again.
fn is_passing(error: &ToolError) -> bool {
    let class = error.to_failure("").class;
    matches!(class, Class::Unavailable | Class::Timeout | Class::Transient | Class::RateLimited)
}
