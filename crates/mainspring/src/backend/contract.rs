//! The operations that every backend has, with their requests and results.

use std::path::{Path, PathBuf};

use mainspring_kernel::{
    decide::Words,
    hash::hex,
    json::compact,
    plan::{Constraints, Decision},
    value::{Map, Value},
};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{
        approvals::ApprovalView,
        execution_view::{AttemptPage, ExecutionView},
        table::Row,
        terminal::print_out,
    },
    telemetry::Metrics,
};

/// The operations of a command on executions. `name` is the id of an execution, the beginning of it, or `last`.
pub(crate) trait Backend {
    /// Lists executions, the newest first.
    fn list(&self, query: &ListQuery) -> Result<Vec<ListedExecution>, CliError>;

    /// Reads an execution with one page of its attempts.
    fn show(&self, name: &str, page: AttemptPage) -> Result<ExecutionDetails, CliError>;

    /// Lists open approvals.
    fn approvals(&self, limit: usize, cursor: Option<&str>) -> Result<ApprovalPage, CliError>;

    /// Starts an execution, and follows it unless the request detaches it.
    fn start(&self, request: &RunRequest<'_>) -> Result<Exit, CliError>;

    /// Prints the events of an execution until it has settled, or past events only.
    fn follow(&self, name: &str, is_past_only: bool) -> Result<Exit, CliError>;

    /// Decides an open approval. `announce` gets its prompt and its items before the decision is sent.
    fn decide(&self, request: &DecideRequest<'_>, announce: &dyn Fn(&str, &Value)) -> Result<Sent, CliError>;

    /// Sends a signal.
    fn signal(&self, name: &str, signal: &SignalRequest) -> Result<Sent, CliError>;

    /// Sends a message to a conversation.
    fn message(&self, name: &str, message: &MessageRequest) -> Result<Sent, CliError>;

    /// Cancels an execution.
    /// If `skips_cleanup` is true, the steps of `finally` are skipped.
    fn cancel(&self, name: &str, reason: &str, skips_cleanup: bool) -> Result<Sent, CliError>;

    /// Verifies the journal of one execution, or all journals. `report` gets each result.
    fn verify(&self, name: Option<&str>, report: &mut dyn FnMut(Verification)) -> Result<(), CliError>;

    /// Checks the receipts of an execution: `report` gets each as JSON.
    fn receipts(&self, name: &str, report: &mut dyn FnMut(Value)) -> Result<(), CliError>;

    /// Lists quarantined executions: `report` gets the id and the reason of each.
    fn quarantined(&self, report: &mut dyn FnMut(&str, &str)) -> Result<(), CliError>;

    /// Releases an execution from quarantine.
    fn release(&self, name: &str, reason: &str) -> Result<QuarantineChange, CliError>;

    /// Ends a quarantined execution without its journal.
    fn end_quarantined(&self, name: &str, reason: &str) -> Result<QuarantineChange, CliError>;

    /// Erases values of an ended execution: those of the steps, or all.
    fn erase(&self, name: &str, steps: &[String], reason: &str) -> Result<Erased, CliError>;
}

/// Selects executions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListQuery {
    /// The statuses; empty for all.
    pub(crate) statuses: Vec<String>,
    /// The name of a workflow; at a server its slug or id.
    pub(crate) workflow: Option<String>,
    /// The maximum number of executions.
    pub(crate) limit: usize,
}

impl ListQuery {
    /// True if the query excludes executions.
    pub(super) fn is_narrowed(&self) -> bool {
        !self.statuses.is_empty() || self.workflow.is_some()
    }
}

/// An execution of a list.
pub(crate) struct ListedExecution {
    pub(crate) row: Row,
    /// The row as JSON, with the fields of the second specification.
    pub(crate) value: Value,
}

/// An execution with its attempts.
pub(crate) struct ExecutionDetails {
    pub(crate) view: ExecutionView,
    /// The JSON envelope with the selected attempts.
    pub(crate) envelope: Value,
}

/// A page of open approvals.
pub(crate) struct ApprovalPage {
    pub(crate) approvals: Vec<ApprovalView>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
    /// The ids of executions whose journals cannot be read.
    pub(crate) unreadable: Vec<String>,
}

/// A request to start an execution.
pub(crate) struct RunRequest<'a> {
    /// The definition file; at a server the slug or id of a saved workflow.
    pub(crate) workflow: &'a Path,
    /// The files of subworkflows that are not in the folder of the definition.
    pub(crate) subworkflows: &'a [PathBuf],
    /// True if the server saves the definition first.
    pub(crate) is_saved_first: bool,
    /// The input as it was given: JSON, `@FILE`, or `-` for standard input.
    pub(crate) input: Option<&'a str>,
    pub(crate) variables: Map,
    pub(crate) bounds: Constraints,
    pub(crate) execution_id: Option<&'a str>,
    pub(crate) idempotency_key: Option<&'a str>,
    /// The workspace of the steps; `None` is the current folder.
    pub(crate) workspace: Option<&'a Path>,
    /// The repository that a server checks out: `{url, ref}` or `{fullName, ref}`.
    pub(crate) repository: Option<Value>,
    /// True if the command returns at once.
    pub(crate) is_detached: bool,
    /// True if every approval is approved.
    pub(crate) approves_all: bool,
    pub(crate) metrics: &'a Metrics,
}

/// A decision of an approval.
pub(crate) struct DecideRequest<'a> {
    /// The execution.
    pub(crate) name: &'a str,
    /// The step, if several approvals are open.
    pub(crate) step: Option<&'a str>,
    pub(crate) decision: Decision,
    pub(crate) words: Words,
}

/// A signal to send.
pub(crate) struct SignalRequest {
    /// The id, by which a repeated signal is recognized.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) payload: Value,
}

/// A message to send to a conversation.
pub(crate) struct MessageRequest {
    /// The id, by which a repeated message is recognized.
    pub(crate) id: String,
    /// The conversation; `None` for the only one of the workflow.
    pub(crate) conversation: Option<String>,
    pub(crate) content: String,
    /// True if the open model call is canceled.
    pub(crate) interrupt: bool,
}

/// The result of sending an input.
pub(crate) enum Sent {
    /// Another process or node, or the server, receives the input.
    Delegated(Delegated),
    /// This process has run the execution afterwards.
    Followed(Exit),
}

impl Sent {
    /// Prints the result of a delegation, and returns the exit code.
    pub(crate) fn conclude(self, context: &Context) -> Exit {
        match self {
            Self::Delegated(delegated) => delegated.print(context),
            Self::Followed(exit) => exit,
        }
    }
}

/// The result of delegating an input.
pub(crate) struct Delegated {
    /// True if the input was received while this process waited; otherwise it is still in the inbox.
    pub(crate) accepted: bool,
    /// The process or node that receives it, as text.
    pub(crate) by: String,
}

impl Delegated {
    fn print(&self, context: &Context) -> Exit {
        let Self { accepted, by } = self;
        if context.global.json {
            print_out!("{}", compact(&Value::map([("ok", true.into()), ("accepted", (*accepted).into())])));
        } else {
            let verb = if *accepted { "received by" } else { "enqueued for" };
            context.terminal.note(&format!("{verb} {by}"));
        }
        Exit::Fine
    }
}

/// The result of verifying one journal or an audit log.
pub(crate) struct Verification {
    /// The id of the execution, or `audit log`.
    pub(crate) subject: String,
    pub(crate) verdict: Verdict,
    /// The number of receipts without a signature; `None` if signatures were not checked.
    pub(crate) unsigned_receipts: Option<u64>,
    /// The result as JSON.
    pub(crate) value: Value,
}

/// The verdict of a verification, with a description of the verified properties or of the difference.
pub(crate) enum Verdict {
    Sound(String),
    Broken(String),
    Unchecked(String),
}

/// The result of changing a quarantined execution.
pub(crate) struct QuarantineChange {
    pub(crate) id: String,
    pub(crate) status: String,
    /// The result as text.
    pub(crate) message: String,
}

/// The result of an erasure.
pub(crate) struct Erased {
    pub(crate) id: String,
    /// The number of erased values.
    pub(crate) count: u64,
}

/// Returns a random id.
pub(crate) fn fresh_id() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
    Ok(hex(&bytes))
}
