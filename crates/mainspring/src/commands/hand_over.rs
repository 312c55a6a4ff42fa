//! Handing an input over to whoever works on the executions: the process that holds the folder, or a node.

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

/// What became of an input that was handed over.
pub(crate) struct Handed {
    /// Whether it was taken in while this process waited; else it lies in the inbox.
    pub(crate) taken: bool,
    /// Who takes it in, in words.
    pub(crate) by: String,
}

/// Posts an input to whoever works on an execution, with what the audit log says of it, and waits until it was taken in.
pub(crate) fn hand_over(
    looked: &Looked,
    key: ExecutionKey,
    input: &Input,
    noted: Option<AuditEntry>,
    global: &Global,
) -> Result<Handed, Refusal> {
    let ground = &looked.ground;
    let store = ground.store()?;
    // Whether it changes anything is found out by whoever takes it in: the log says what was done here.
    let noted = noted.map(|entry| AuditEntry { action: format!("{}.posted", entry.action), ..entry });
    let id = inbox::post(&*store, ground.home(), &looked.key, (key, input), noted.as_ref())?;
    let gone = || -> Result<Option<()>, EngineError> {
        let waits = inbox::is_waiting(&*store, key, Some(&id))?;
        Ok((!waits).then_some(()))
    };
    let taken = taken_in(ground, global, gone)?.is_some();
    let by = ground.who_works(&*store).unwrap_or_else(|| "whoever comes to work on it".to_string());
    Ok(Handed { taken, by })
}

impl Handed {
    /// Says what became of it.
    pub(crate) fn tell(&self, global: &Global, terminal: &Terminal) -> Exit {
        let Self { taken, by } = self;
        let words =
            if *taken { format!("{by} has taken it in and goes on") } else { format!("posted; {by} will take it in") };
        if global.json {
            say!("{}", compact(&Value::map([("ok", true.into()), ("taken", (*taken).into())])));
        } else {
            terminal.remark(&words);
        }
        Exit::Fine
    }
}
