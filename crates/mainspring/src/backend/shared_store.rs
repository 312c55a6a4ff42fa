//! A store that several nodes share. This process reads the store and enqueues inputs; the nodes run the executions.

use mainspring_kernel::value::Value;

use super::{
    contract::{
        ApprovalPage, Backend, DecideRequest, Erased, ExecutionDetails, ListQuery, ListedExecution, MessageRequest,
        QuarantineChange, RunRequest, Sent, SignalRequest, Verification,
    },
    delivery::Delivery,
    read_store::{ReadStore, open_read_only},
    start::{self, detach, enqueue},
    store_tail, stored,
};
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::execution_view::AttemptPage,
};

/// The backend of a shared store.
pub(super) struct SharedStore<'a> {
    pub(super) context: &'a Context,
}

impl SharedStore<'_> {
    fn read(&self) -> Result<ReadStore, CliError> {
        open_read_only(&self.context.global)
    }
}

impl Backend for SharedStore<'_> {
    fn list(&self, query: &ListQuery) -> Result<Vec<ListedExecution>, CliError> {
        stored::list(&self.read()?, query)
    }

    fn show(&self, name: &str, page: AttemptPage) -> Result<ExecutionDetails, CliError> {
        stored::show(&self.read()?, name, page)
    }

    fn approvals(&self, limit: usize, cursor: Option<&str>) -> Result<ApprovalPage, CliError> {
        stored::approvals(&self.read()?, limit, cursor)
    }

    fn start(&self, request: &RunRequest<'_>) -> Result<Exit, CliError> {
        let Some((start, fingerprint)) = start::prepare(request, self.context)? else { return Ok(Exit::BadInput) };
        if request.is_detached {
            return detach(start, &fingerprint, self.context);
        }
        if request.approves_all {
            let message = "--yes approves what this process runs; a node runs this: `mainspring approvals` lists its gates, `mainspring approve` decides there";
            return Err(CliError::bad_input("shared_store", message));
        }
        let row = enqueue(start, &fingerprint, self.context)?;
        store_tail::tail(&row.key.to_string(), false, self.context)
    }

    fn follow(&self, name: &str, is_past_only: bool) -> Result<Exit, CliError> {
        store_tail::tail(name, is_past_only, self.context)
    }

    fn decide(&self, request: &DecideRequest<'_>, announce: &dyn Fn(&str, &Value)) -> Result<Sent, CliError> {
        let store = self.read()?;
        Delivery::decision(&store, request, announce)?.delegate(&store, self.context)
    }

    fn signal(&self, name: &str, signal: &SignalRequest) -> Result<Sent, CliError> {
        let store = self.read()?;
        Delivery::signal(&store, name, signal)?.delegate(&store, self.context)
    }

    fn message(&self, name: &str, message: &MessageRequest) -> Result<Sent, CliError> {
        let store = self.read()?;
        Delivery::message(&store, name, message)?.delegate(&store, self.context)
    }

    fn cancel(&self, name: &str, reason: &str, skips_cleanup: bool) -> Result<Sent, CliError> {
        let store = self.read()?;
        Delivery::cancel(&store, name, reason, skips_cleanup)?.delegate(&store, self.context)
    }

    fn verify(&self, name: Option<&str>, report: &mut dyn FnMut(Verification)) -> Result<(), CliError> {
        stored::verify(&self.read()?, name, report)
    }

    fn receipts(&self, name: &str, report: &mut dyn FnMut(Value)) -> Result<(), CliError> {
        stored::receipts(&self.read()?, name, report)
    }

    fn quarantined(&self, report: &mut dyn FnMut(&str, &str)) -> Result<(), CliError> {
        stored::quarantined(&self.read()?, report)
    }

    fn release(&self, name: &str, reason: &str) -> Result<QuarantineChange, CliError> {
        stored::release(&self.read()?, name, reason)
    }

    fn end_quarantined(&self, name: &str, reason: &str) -> Result<QuarantineChange, CliError> {
        stored::end_quarantined(&self.read()?, name, reason)
    }

    fn erase(&self, name: &str, steps: &[String], reason: &str) -> Result<Erased, CliError> {
        stored::erase(&self.read()?, name, steps, reason)
    }
}
