//! Delegates an input through the inbox to the process or node that runs the execution.

use mainspring_engine::{EngineError, inbox};
use mainspring_kernel::{input::Input, json::compact, key::ExecutionKey, value::Value};
use mainspring_store::AuditEntry;

use super::run::taken_in;
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, print_out},
    read_store::ReadStore,
};

/// The result of delegating an input.
pub(crate) struct Delegated {
    /// True if the input was received while this process waited; otherwise it is still in the inbox.
    pub(crate) accepted: bool,
    /// The process or node that receives it, as text.
    pub(crate) by: String,
}

/// Enqueues an input with its audit entry, and waits a bounded time until it was received.
pub(crate) fn delegate(
    opened: &ReadStore,
    key: ExecutionKey,
    input: &Input,
    entry: Option<AuditEntry>,
    global: &Global,
) -> Result<Delegated, CliError> {
    let location = &opened.location;
    let store = location.store()?;
    // Only the receiver finds out whether the input has an effect, so the action of the entry has the suffix
    // `.posted`.
    let entry = entry.map(|entry| AuditEntry { action: format!("{}.posted", entry.action), ..entry });
    let id = inbox::post(&*store, location.home(), &opened.key, (key, input), entry.as_ref())?;
    let gone = || -> Result<Option<()>, EngineError> {
        let waits = inbox::is_waiting(&*store, key, Some(&id))?;
        Ok((!waits).then_some(()))
    };
    let accepted = taken_in(location, global, gone)?.is_some();
    let by = location.who_works(&*store).unwrap_or_else(|| "the next engine".to_string());
    Ok(Delegated { accepted, by })
}

impl Delegated {
    /// Prints the result.
    pub(crate) fn tell(&self, global: &Global, terminal: &Terminal) -> Exit {
        let Self { accepted, by } = self;
        let words = if *accepted { format!("received by {by}") } else { format!("enqueued for {by}") };
        if global.json {
            print_out!("{}", compact(&Value::map([("ok", true.into()), ("accepted", (*accepted).into())])));
        } else {
            terminal.note(&words);
        }
        Exit::Fine
    }
}
