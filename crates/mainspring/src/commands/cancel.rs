//! `mainspring cancel`: cancels an execution.

use clap::Args;
use mainspring_engine::EngineScope;
use mainspring_kernel::{input::Input, limits::NAME_CHARS_MAX};

use super::{
    audit_entry,
    delegate::delegate,
    follow::{From, Gates, follow},
    remote,
    resume::leave,
};
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::Terminal,
    paths,
    read_store::{block_on, engine, find, open_read_only},
    runner::{self, Signals},
};

/// Cancel an execution.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WORD", default_value = "user_cancelled")]
    pub(super) reason: String,
}

/// Cancels an execution: running work is stopped, nothing new starts, and the history is kept.
pub(crate) fn cancel(cancel: &Cancel, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    if !(1..=NAME_CHARS_MAX).contains(&cancel.reason.chars().count()) {
        let message = format!("--reason must have 1 to {NAME_CHARS_MAX} characters");
        return Err(CliError::bad_input("bad_reason", message));
    }
    if let Some(client) = global.client()? {
        return remote::cancel(cancel, &client, global, terminal);
    }
    let opened = open_read_only(global)?;
    let row = find(&*opened.store, &cancel.id)?;
    if mainspring_store::is_final(&row.status) {
        return Err(CliError::contract("ended", format!("`{}` has ended: it is {}", row.id, row.status)));
    }
    let by = paths::user();
    let entry = audit_entry::cancel(&row, &cancel.reason, &by);
    let input = Input::Cancel { reason: cancel.reason.clone(), by };
    if opened.is_others() {
        return Ok(delegate(&opened, row.key, &input, entry, global)?.tell(global, terminal));
    }
    drop(opened);
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, EngineScope::named()).await?;
        let before = runner::snapshot(&engine, row.key, |_, _| ())?;
        engine.take(row.key, input, entry).await?;
        engine.activate(row.key);
        let from = From::Frame(before.next_sequence);
        let exit = follow(&engine, row.key, Gates::Ask, from, global, terminal, &mut signals).await;
        leave(&engine, exit, terminal, &mut signals).await
    })
}
