//! An execution as the API of a server returns it.

use mainspring_engine::start_request::is_child;
use mainspring_kernel::{
    failure::{Class, Failure},
    history::AttemptHistory,
    key::ExecutionKey,
    state::{ExecutionStatus, Status},
    value::{Map, Value},
};

use super::{Client, ClientError, address::route, response::Response};
use crate::{
    error::{self, Exit},
    output::{
        summary::{Summary, Waiting},
        table::Row,
    },
};

/// Statuses of executions in the API.
const STATUSES: [(&str, ExecutionStatus); 7] = [
    ("pending", ExecutionStatus::Pending),
    ("running", ExecutionStatus::Running),
    ("waiting_approval", ExecutionStatus::WaitingApproval),
    ("cancel_requested", ExecutionStatus::CancelRequested),
    ("completed", ExecutionStatus::Completed),
    ("failed", ExecutionStatus::Failed),
    ("cancelled", ExecutionStatus::Cancelled),
];

/// Statuses of steps in the API.
const STEP_STATUSES: [(&str, Status); 9] = [
    ("pending", Status::Pending),
    ("running", Status::Running),
    ("retrying", Status::Retrying),
    ("waiting", Status::Waiting),
    ("waiting_approval", Status::WaitingApproval),
    ("completed", Status::Completed),
    ("failed", Status::Failed),
    ("skipped", Status::Skipped),
    ("cancelled", Status::Cancelled),
];

/// An execution as an element of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) status: ExecutionStatus,
    /// The hash of its definition: `sha256:…`.
    pub(crate) workflow_hash: String,
    /// The user who started it.
    pub(crate) started_by: Option<String>,
    /// True if another execution started it.
    pub(crate) is_child: bool,
    /// The other columns of the list.
    pub(crate) row: Row,
    /// The response of the server.
    pub(crate) value: Value,
}

/// An execution with its results and open approvals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Execution {
    pub(crate) listed: Listed,
    /// The display name of its workflow.
    pub(crate) workflow_name: Option<String>,
    /// The output so far.
    pub(crate) output: Value,
    /// The failure or the reason of a cancel.
    pub(crate) error: Value,
    /// The open approvals, those of its children included.
    pub(crate) gates: Vec<Gate>,
    /// The usage of its agents; null if it has none.
    pub(crate) usage: Value,
    /// The reason, if it is quarantined.
    pub(crate) quarantined: Option<String>,
}

/// An open approval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gate {
    /// The path of its step, through the steps that started child executions.
    pub(crate) path: String,
    /// True if the approval belongs to a child execution.
    pub(crate) is_childs: bool,
    /// The text that is shown to approvers.
    pub(crate) prompt: String,
    /// The items to approve.
    pub(crate) items: Value,
    /// The users who may decide; empty if every permitted user may.
    pub(crate) approvers: Vec<String>,
    /// The number of required approvals.
    pub(crate) count: u64,
    /// The users who have approved.
    pub(crate) approved_by: Vec<String>,
    /// The resume token, if this user may decide.
    pub(crate) token: Option<String>,
    /// The response of the server.
    pub(crate) value: Value,
}

impl Listed {
    pub(crate) fn read(answer: Response<'_>) -> Result<Self, ClientError> {
        let status = answer.word("status", &STATUSES)?;
        Ok(Self {
            id: answer.text("id")?,
            status,
            workflow_hash: answer.text("workflowHash")?,
            started_by: answer.maybe_text("initiatorUserId")?,
            is_child: is_child(&answer.text("triggerType")?),
            row: Row {
                id: answer.text("id")?,
                status: status.name().into(),
                workflow: answer.maybe_text("workflowId")?,
                started_at: answer.time("startedAt")?,
                completed_at: answer.maybe_time("completedAt")?,
                outcome: answer.maybe_text("outcome")?,
                error: answer.maybe_text("errorCode")?,
                parent: answer.maybe_text("parentExecutionId")?,
            },
            value: answer.value.clone(),
        })
    }
}

impl Execution {
    pub(crate) fn read(client: &Client, value: &Value) -> Result<Self, ClientError> {
        let answer = Response::new(client, "an execution", value);
        let gates = answer.objects("approvals", "a gate")?;
        Ok(Self {
            listed: Listed::read(answer)?,
            workflow_name: answer.maybe_text("workflowName")?,
            output: answer.any("outputs"),
            error: answer.any("error"),
            gates: gates.into_iter().map(Gate::read).collect::<Result<_, _>>()?,
            usage: answer.any("usage"),
            quarantined: answer.maybe_text("quarantined")?,
        })
    }

    /// Fetches an execution by its id.
    pub(crate) async fn get(client: &Client, id: &str) -> Result<Self, ClientError> {
        Self::read(client, &client.get(&route(&["api", "executions", id], &[])).await?)
    }

    pub(crate) fn id(&self) -> &str {
        &self.listed.id
    }

    /// True if the status says that the execution cannot continue without a decision, or has ended.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(
            self.listed.status,
            ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested
        )
    }

    /// True if the execution has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_settled() && self.listed.status != ExecutionStatus::WaitingApproval
    }

    /// The summary printed after a command.
    pub(crate) fn summary(&self, now_ms: u64) -> Summary {
        let row = &self.listed.row;
        let waiting =
            |gate: &Gate| Waiting { path: gate.path.clone(), prompt: gate.prompt.clone(), items: gate.items.clone() };
        let is_completed = self.listed.status == ExecutionStatus::Completed;
        Summary {
            id: self.listed.id.clone(),
            status: row.status.clone(),
            with_failures: row.outcome.as_deref() == Some("with_failures"),
            took_ms: row.completed_at.unwrap_or(now_ms).saturating_sub(row.started_at),
            output: if is_completed { self.output.clone() } else { Value::Null },
            error: self.error.clone(),
            gates: self.gates.iter().map(waiting).collect(),
        }
    }

    /// The JSON envelope of a command, equal to that of a local execution.
    pub(crate) fn envelope(&self, steps: Vec<Value>) -> Value {
        let status = self.word();
        let gates: Vec<Value> = self.gates.iter().map(|gate| gate.value.clone()).collect();
        let mut map = Map::new();
        map.insert("ok".into(), (status != "failed").into());
        map.insert("status".into(), status.into());
        map.insert("executionId".into(), self.listed.id.as_str().into());
        map.insert("workflowHash".into(), self.listed.workflow_hash.as_str().into());
        map.insert("output".into(), self.output.clone());
        map.insert("steps".into(), steps.into());
        map.insert("requiresApproval".into(), gates.first().cloned().unwrap_or_default());
        map.insert("approvals".into(), gates.into());
        map.insert("error".into(), self.error.clone());
        if let Some(outcome) = &self.listed.row.outcome {
            map.insert("outcome".into(), outcome.as_str().into());
        }
        if self.usage != Value::Null {
            map.insert("usage".into(), self.usage.clone());
        }
        Value::Map(map)
    }

    /// The status in an envelope.
    pub(crate) fn word(&self) -> &'static str {
        match self.listed.status {
            ExecutionStatus::Completed => "ok",
            ExecutionStatus::WaitingApproval => "needs_approval",
            ExecutionStatus::Cancelled => "cancelled",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested => "running",
        }
    }

    /// The exit code of a command that has waited for the execution.
    pub(crate) fn exit(&self) -> Exit {
        let text = |key: &str| self.error.get(key).and_then(Value::as_text).unwrap_or_default();
        let class = Class::parse(text("class")).unwrap_or(Class::Failed);
        match self.listed.status {
            ExecutionStatus::Failed if error::is_policy(text("code"), class) => Exit::Policy,
            ExecutionStatus::Failed => Exit::Failed,
            ExecutionStatus::WaitingApproval => Exit::Waiting,
            _ => Exit::Fine,
        }
    }
}

impl Gate {
    fn read(answer: Response<'_>) -> Result<Self, ClientError> {
        let path = answer.maybe_text("path")?;
        Ok(Self {
            is_childs: path.is_some(),
            path: path.map_or_else(|| answer.text("stepId"), Ok)?,
            prompt: answer.text("prompt")?,
            items: answer.any("items"),
            approvers: answer.texts("approvers")?,
            count: answer.number("count")?,
            approved_by: answer.texts("approvedBy")?,
            token: answer.maybe_text("resumeToken")?,
            value: answer.value.clone(),
        })
    }
}

/// Fetches all attempts of an execution, as JSON and parsed.
pub(crate) async fn attempts(client: &Client, id: &str) -> Result<(Vec<Value>, Vec<AttemptHistory>), ClientError> {
    let (mut values, mut read, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let query: Vec<(&str, &str)> = cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
        let page = client.get(&route(&["api", "executions", id, "steps"], &query)).await?;
        let answer = Response::new(client, "the steps of an execution", &page);
        let steps = answer.objects("steps", "a step")?;
        for step in &steps {
            read.push(attempt(step)?);
            values.push(step.value.clone());
        }
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        if next.is_none() || next == cursor || steps.is_empty() {
            return Ok((values, read));
        }
        cursor = next;
    }
}

fn attempt(answer: &Response<'_>) -> Result<AttemptHistory, ClientError> {
    let error = answer.any("error");
    let failure = match &error {
        Value::Null => None,
        error => Some(failure(answer, error)?),
    };
    let child = answer.maybe_text("childExecutionId")?;
    let log = if answer.any("log") == Value::Null { Vec::new() } else { answer.list("log")?.to_vec() };
    Ok(AttemptHistory {
        step: answer.text("stepId")?,
        attempt: u32::try_from(answer.number("attempt")?)
            .map_err(|_| answer.not("attempt", "the number of an attempt"))?,
        status: answer.word("status", &STEP_STATUSES)?,
        started_at: answer.time("startedAt")?,
        ended_at: answer.maybe_time("completedAt")?,
        input: answer.any("input"),
        output: answer.any("output"),
        failure,
        because: answer.text("because")?,
        // The display uses the server's note, and not the decisions.
        decisions: Vec::new(),
        note: answer.maybe_text("note")?,
        log,
        child: child
            .as_deref()
            .map(|child| {
                ExecutionKey::parse(child).ok_or_else(|| answer.not("childExecutionId", "the key of an execution"))
            })
            .transpose()?,
    })
}

fn failure(answer: &Response<'_>, error: &Value) -> Result<Failure, ClientError> {
    let text = |key: &str| error.get(key).and_then(Value::as_text).ok_or_else(|| answer.not("error", "an error"));
    let class = Class::parse(text("class")?).ok_or_else(|| answer.not("error", "an error of a class that is known"))?;
    let details = error.get("details").cloned().unwrap_or_default();
    Ok(Failure::new(class, text("code")?, text("message")?).with_details(details))
}
