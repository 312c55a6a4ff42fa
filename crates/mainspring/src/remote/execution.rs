//! An execution as a server shows it.

use mainspring_engine::request::is_child;
use mainspring_kernel::{
    failure::{Class, Failure},
    key::ExecutionKey,
    state::{ExecutionStatus, Status},
    trace::AttemptTrace,
    value::{Map, Value},
};

use super::{Client, Trouble, address::route, answer::Answer};
use crate::{
    commands::{
        list::Row,
        summary::{Summary, Waiting},
    },
    exit::{self, Exit},
};

/// The statuses of executions by their words.
const STATUSES: [(&str, ExecutionStatus); 7] = [
    ("pending", ExecutionStatus::Pending),
    ("running", ExecutionStatus::Running),
    ("waiting_approval", ExecutionStatus::WaitingApproval),
    ("cancel_requested", ExecutionStatus::CancelRequested),
    ("completed", ExecutionStatus::Completed),
    ("failed", ExecutionStatus::Failed),
    ("cancelled", ExecutionStatus::Cancelled),
];

/// Those of steps.
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

/// What a list says of an execution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    /// Its id.
    pub(crate) id: String,
    /// How it stands.
    pub(crate) status: ExecutionStatus,
    /// `sha256:…` of its definition.
    pub(crate) workflow_hash: String,
    /// Who started it.
    pub(crate) started_by: Option<String>,
    /// Whether an execution has started it.
    pub(crate) is_child: bool,
    /// The rest, as the table has it.
    pub(crate) row: Row,
    /// The words of the server.
    pub(crate) value: Value,
}

/// An execution, whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Execution {
    /// What a list says of it.
    pub(crate) listed: Listed,
    /// What people call its workflow.
    pub(crate) workflow_name: Option<String>,
    /// What came of it so far.
    pub(crate) output: Value,
    /// Why it ended as it did.
    pub(crate) error: Value,
    /// The gates that wait, of what it has started too.
    pub(crate) gates: Vec<Gate>,
    /// Why it was set aside, if it was.
    pub(crate) quarantined: Option<String>,
}

/// A gate that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gate {
    /// The way to it: its step, or through the steps that have started its execution.
    pub(crate) path: String,
    /// Whether it is one of an execution that this one has started.
    pub(crate) is_childs: bool,
    /// What is asked.
    pub(crate) prompt: String,
    /// What is approved.
    pub(crate) items: Value,
    /// Who may decide; nobody in particular if it is empty.
    pub(crate) approvers: Vec<String>,
    /// How many must approve.
    pub(crate) count: u64,
    /// Who has.
    pub(crate) approved_by: Vec<String>,
    /// What opens it, if this caller may.
    pub(crate) token: Option<String>,
    /// The words of the server.
    pub(crate) value: Value,
}

impl Listed {
    /// Reads one.
    pub(crate) fn read(answer: Answer<'_>) -> Result<Self, Trouble> {
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
    /// Reads one.
    pub(crate) fn read(client: &Client, value: &Value) -> Result<Self, Trouble> {
        let answer = Answer::new(client, "an execution", value);
        let gates = answer.objects("approvals", "a gate")?;
        Ok(Self {
            listed: Listed::read(answer)?,
            workflow_name: answer.maybe_text("workflowName")?,
            output: answer.any("outputs"),
            error: answer.any("error"),
            gates: gates.into_iter().map(Gate::read).collect::<Result<_, _>>()?,
            quarantined: answer.maybe_text("quarantined")?,
        })
    }

    /// Asks for one by its id.
    pub(crate) async fn get(client: &Client, id: &str) -> Result<Self, Trouble> {
        Self::read(client, &client.get(&route(&["api", "executions", id], &[])).await?)
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.listed.id
    }

    /// Whether nothing will come of it by itself, as far as its status says.
    pub(crate) fn rests(&self) -> bool {
        !matches!(
            self.listed.status,
            ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested
        )
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.rests() && self.listed.status != ExecutionStatus::WaitingApproval
    }

    /// The last lines about it.
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

    /// The envelope of a command that answers in JSON, as of an execution of this machine.
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
        Value::Map(map)
    }

    /// The word of an envelope for how it stands.
    pub(crate) fn word(&self) -> &'static str {
        match self.listed.status {
            ExecutionStatus::Completed => "ok",
            ExecutionStatus::WaitingApproval => "needs_approval",
            ExecutionStatus::Cancelled => "cancelled",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested => "running",
        }
    }

    /// The exit code of a command that has seen it to its rest.
    pub(crate) fn exit(&self) -> Exit {
        let text = |key: &str| self.error.get(key).and_then(Value::as_text).unwrap_or_default();
        let class = Class::parse(text("class")).unwrap_or(Class::Failed);
        match self.listed.status {
            ExecutionStatus::Failed if exit::is_policy(text("code"), class) => Exit::Policy,
            ExecutionStatus::Failed => Exit::Failed,
            _ => Exit::Fine,
        }
    }
}

impl Gate {
    fn read(answer: Answer<'_>) -> Result<Self, Trouble> {
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

/// What an execution did, attempt by attempt: as values, and read.
pub(crate) async fn attempts(client: &Client, id: &str) -> Result<(Vec<Value>, Vec<AttemptTrace>), Trouble> {
    let (mut values, mut read, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let query: Vec<(&str, &str)> = cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
        let page = client.get(&route(&["api", "executions", id, "steps"], &query)).await?;
        let answer = Answer::new(client, "the steps of an execution", &page);
        let steps = answer.objects("steps", "a step")?;
        for step in &steps {
            read.push(attempt(step)?);
            values.push(step.value.clone());
        }
        let next = answer.maybe_text("nextCursor")?;
        // A server that goes round in a circle ends here.
        if next.is_none() || next == cursor || steps.is_empty() {
            return Ok((values, read));
        }
        cursor = next;
    }
}

fn attempt(answer: &Answer<'_>) -> Result<AttemptTrace, Trouble> {
    let error = answer.any("error");
    let failure = match &error {
        Value::Null => None,
        error => Some(failure(answer, error)?),
    };
    let child = answer.maybe_text("childExecutionId")?;
    let log = if answer.any("log") == Value::Null { Vec::new() } else { answer.list("log")?.to_vec() };
    Ok(AttemptTrace {
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
        // Nobody reads them here but from the answer's own words: the note has the last.
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

fn failure(answer: &Answer<'_>, error: &Value) -> Result<Failure, Trouble> {
    let text = |key: &str| error.get(key).and_then(Value::as_text).ok_or_else(|| answer.not("error", "an error"));
    let class = Class::parse(text("class")?).ok_or_else(|| answer.not("error", "an error of a class that is known"))?;
    let details = error.get("details").cloned().unwrap_or_default();
    Ok(Failure::new(class, text("code")?, text("message")?).with_details(details))
}
