//! `mainspring upgrade`: upgrades the store of an older release to the format of this one.

use std::sync::Arc;

use clap::Args;
use mainspring_engine::{
    EngineError,
    inbox::{Unsealed, seal_older},
    resource_seals,
    seal_note::SealNote,
};
use mainspring_kernel::{json::compact, value::Value};
use mainspring_store::{Store, sqlite::SqliteStore};

use crate::{
    backend::read_store::no_executions,
    context::Context,
    error::{CliError, Exit},
    output::terminal::print_out,
    paths,
    store_location::StoreLocation,
};

/// Upgrade the store of an older release to the format of this one
///
/// No other process may use the store during the upgrade. `mainspring up`, `mainspring node` and commands that run an engine
/// upgrade it at their start; other commands never do.
#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    /// Accept unsealed inbox messages and resources as those of the older release. Use it only after an interrupted
    /// upgrade: everyone with write access to the store can insert such messages, members and tokens
    #[arg(long)]
    accept_unsealed: bool,
}

/// Upgrades the store, and seals the inbox messages and the resources of the older release.
pub(crate) fn upgrade(upgrade: &Upgrade, context: &Context) -> Result<Exit, CliError> {
    let location = StoreLocation::of(&context.global)?;
    let (messages, resources) = match &location {
        StoreLocation::Folder(home) => {
            if !home.journal().exists() {
                return Err(no_executions(&location));
            }
            let key = home.key(&paths::key_file(&[home.folder()]))?;
            home.check_key(&key)?;
            // The lock excludes other processes from here on.
            let held = home.hold(&key)?;
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&home.journal()).map_err(EngineError::from)?);
            let sealed = seal_all(&store, &key, upgrade, &location.seal_note(home, true))?;
            drop(held);
            sealed
        }
        StoreLocation::Shared(_) => {
            let store = location.store_for_engine()?;
            let key = location.key(&*store)?;
            seal_all(&store, &key, upgrade, &location.seal_note(&context.global.home()?, true))?
        }
    };
    if context.global.json {
        let (messages, resources) = (messages as u64, resources as u64);
        let sealed = [("messagesSealed", Value::from(messages)), ("resourcesSealed", resources.into())];
        print_out!("{}", compact(&Value::map([("ok", Value::from(true))].into_iter().chain(sealed))));
    } else {
        context.terminal.note("the store has the format of this release");
        if messages > 0 {
            context.terminal.note(&format!("sealed inbox messages of the older release: {messages}"));
        }
        if resources > 0 {
            context.terminal.note(&format!("sealed resources of the older release: {resources}"));
        }
    }
    Ok(Exit::Fine)
}

/// Returns the numbers of sealed messages and resources.
fn seal_all(
    store: &Arc<dyn Store>,
    key: &[u8; 32],
    upgrade: &Upgrade,
    note: &SealNote,
) -> Result<(usize, usize), EngineError> {
    let unsealed = if upgrade.accept_unsealed { Unsealed::Accepted } else { note.unsealed()? };
    let messages = seal_older(store, key, unsealed)?;
    let resources = resource_seals::seal_older(&**store, key, unsealed)?;
    note.record()?;
    Ok((messages, resources))
}
