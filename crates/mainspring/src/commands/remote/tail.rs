//! `mainspring tail` at a server.

use super::{
    find::find,
    follow::{Following, Rest, Told},
};
use mainspring_engine::engine::now_ms;

use crate::{
    cli::Global,
    commands::tail::Tail,
    exit::{Exit, Refusal},
    naming::block_on,
    remote::Client,
    runner::Signals,
    terminal::Terminal,
};

/// Follows an execution of a server until it ends or waits only for approvals.
pub(in crate::commands) fn tail(
    tail: &Tail,
    client: Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, Refusal> {
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
            match following.until_rest(&mut signals).await? {
                Rest::Rests(execution) => *execution,
                Rest::Interrupted => return Ok(Exit::Fine),
            }
        };
        if !global.json {
            execution.summary(now_ms()).show();
        }
        Ok(execution.exit())
    })
}
