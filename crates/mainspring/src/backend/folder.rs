//! The data folder of this machine. If no other process owns the folder, this process runs the executions.

use mainspring_engine::EngineScope;
use mainspring_kernel::value::Value;

use super::{
    contract::{
        ApprovalPage, Backend, DecideRequest, Erased, ExecutionDetails, ListQuery, ListedExecution, MessageRequest,
        QuarantineChange, RunRequest, Sent, SignalRequest, Verification,
    },
    delivery::Delivery,
    idle::leave,
    read_store::{ReadStore, engine, open_read_only},
    start::{self, attached, detach},
    store_tail, stored,
};
use crate::{
    context::{Context, block_on},
    error::{CliError, Exit},
    output::execution_view::AttemptPage,
};

/// The backend of a data folder.
pub(super) struct Folder<'a> {
    pub(super) context: &'a Context,
}

impl Folder<'_> {
    fn read(&self) -> Result<ReadStore, CliError> {
        open_read_only(&self.context.global)
    }

    /// Delegates an input to the process that owns the folder, or processes it on an engine of this process.
    fn deliver(&self, store: ReadStore, delivery: Delivery) -> Result<Sent, CliError> {
        if store.is_run_elsewhere() {
            return delivery.delegate(&store, self.context);
        }
        drop(store);
        delivery.process(self.context)
    }
}

impl Backend for Folder<'_> {
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
        request.metrics.begin(self.context.global.json, &self.context.terminal)?;
        block_on(async {
            self.context.signals.install()?;
            let opened = engine(&self.context.global, EngineScope::named()).await;
            let engine = opened.map_err(|error| start::with_detach_help(error, request.workflow))?;
            let exit = attached(&engine, start, &fingerprint, request.approves_all, self.context).await;
            leave(&engine, exit, self.context).await
        })
    }

    fn follow(&self, name: &str, is_past_only: bool) -> Result<Exit, CliError> {
        store_tail::tail(name, is_past_only, self.context)
    }

    fn decide(&self, request: &DecideRequest<'_>, announce: &dyn Fn(&str, &Value)) -> Result<Sent, CliError> {
        let store = self.read()?;
        let delivery = Delivery::decision(&store, request, announce)?;
        self.deliver(store, delivery)
    }

    fn signal(&self, name: &str, signal: &SignalRequest) -> Result<Sent, CliError> {
        let store = self.read()?;
        let delivery = Delivery::signal(&store, name, signal)?;
        self.deliver(store, delivery)
    }

    fn message(&self, name: &str, message: &MessageRequest) -> Result<Sent, CliError> {
        let store = self.read()?;
        let delivery = Delivery::message(&store, name, message)?;
        self.deliver(store, delivery)
    }

    fn cancel(&self, name: &str, reason: &str, skips_cleanup: bool) -> Result<Sent, CliError> {
        let store = self.read()?;
        let delivery = Delivery::cancel(&store, name, reason, skips_cleanup)?;
        self.deliver(store, delivery)
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
