//! Delegates an input through the inbox to the process or node that runs the execution.

use mainspring_engine::{EngineError, inbox};
use mainspring_kernel::{input::Input, json::compact, key::ExecutionKey, value::Value};
use mainspring_store::AuditEntry;

use super::run::taken_in;
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::Looked,
    terminal::{Terminal, say},
};

/// The result of delegating an input.
pub(crate) struct Handed {
    /// True if the input was received while this process waited; otherwise it is still in the inbox.
    pub(crate) taken: bool,
    /// The process or node that receives it, as text.
    pub(crate) by: String,
}

/// Enqueues an input with its audit entry, and waits a bounded time until it was received.
pub(crate) fn hand_over(
    looked: &Looked,
    key: ExecutionKey,
    input: &Input,
    noted: Option<AuditEntry>,
    global: &Global,
) -> Result<Handed, Refusal> {
    let ground = &looked.ground;
    let store = ground.store()?;
    // Only the receiver finds out whether the input has an effect, so the action of the entry has the suffix
    // `.posted`.
    let noted = noted.map(|entry| AuditEntry { action: format!("{}.posted", entry.action), ..entry });
    let id = inbox::post(&*store, ground.home(), &looked.key, (key, input), noted.as_ref())?;
    let gone = || -> Result<Option<()>, EngineError> {
        let waits = inbox::is_waiting(&*store, key, Some(&id))?;
        Ok((!waits).then_some(()))
    };
    let taken = taken_in(ground, global, gone)?.is_some();
    let by = ground.who_works(&*store).unwrap_or_else(|| "the next engine".to_string());
    Ok(Handed { taken, by })
}

impl Handed {
    /// Prints the result.
    pub(crate) fn tell(&self, global: &Global, terminal: &Terminal) -> Exit {
        let Self { taken, by } = self;
        let words = if *taken { format!("received by {by}") } else { format!("enqueued for {by}") };
        if global.json {
            say!("{}", compact(&Value::map([("ok", true.into()), ("taken", (*taken).into())])));
        } else {
            terminal.remark(&words);
        }
        Exit::Fine
    }
}
