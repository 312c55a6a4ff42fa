//! `mainspring tail` at a server.

use super::{
    find::find,
    follow::{Followed, Following, Told},
};
use mainspring_engine::clock::now_ms;

use crate::{
    cli::Global,
    client::Client,
    commands::tail::Tail,
    error::{CliError, Exit},
    output::terminal::Terminal,
    read_store::block_on,
    runner::Signals,
};

/// Follows an execution of a server until it ends or waits only for approvals.
pub(in crate::commands) fn tail(
    tail: &Tail,
    client: Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    block_on(async {
        let mut signals = Signals::new()?;
        let id = tokio::select! {
            () = signals.any() => return Ok(Exit::Fine),
            id = find(&client, &tail.id) => id?,
        };
        let told = if global.json { Told::Out } else { Told::Lines };
        let mut following = Following::new(&client, &id, told, terminal);
        let execution = if tail.no_follow {
            following.as_it_stands().await?
        } else {
            match following.until_settled(&mut signals).await? {
                Followed::Settled(execution) => *execution,
                Followed::Interrupted => return Ok(Exit::Fine),
            }
        };
        if !global.json {
            execution.summary(now_ms()).show();
        }
        Ok(execution.exit())
    })
}
