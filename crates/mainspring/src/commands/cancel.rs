//! `mainspring cancel`: cancels an execution.

use clap::Args;
use mainspring_engine::Reach;
use mainspring_kernel::{input::Input, limits::NAME_CHARS_MAX};

use super::{
    follow::{From, Gates, follow},
    hand_over::hand_over,
    noted, remote,
    resume::leave,
};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{block_on, engine, find, look},
    place,
    runner::{self, Signals},
    terminal::Terminal,
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
pub(crate) fn cancel(cancel: &Cancel, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    if !(1..=NAME_CHARS_MAX).contains(&cancel.reason.chars().count()) {
        let message = format!("--reason must have 1 to {NAME_CHARS_MAX} characters");
        return Err(Refusal::bad_input("bad_reason", message));
    }
    if let Some(client) = global.client()? {
        return remote::cancel(cancel, &client, global, terminal);
    }
    let looked = look(global)?;
    let row = find(&*looked.store, &cancel.id)?;
    if mainspring_store::is_final(&row.status) {
        return Err(Refusal::contract("ended", format!("`{}` has ended: it is {}", row.id, row.status)));
    }
    let by = place::user();
    let noted = noted::cancel(&row, &cancel.reason, &by);
    let input = Input::Cancel { reason: cancel.reason.clone(), by };
    if looked.is_others() {
        return Ok(hand_over(&looked, row.key, &input, noted, global)?.tell(global, terminal));
    }
    drop(looked);
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, Reach::named()).await?;
        let before = runner::standing(&engine, row.key, |_, _| ())?;
        engine.take(row.key, input, noted).await?;
        engine.attend(row.key);
        let from = From::Frame(before.next_sequence);
        let exit = follow(&engine, row.key, Gates::Ask, from, global, terminal, &mut signals).await;
        leave(&engine, exit, terminal, &mut signals).await
    })
}
