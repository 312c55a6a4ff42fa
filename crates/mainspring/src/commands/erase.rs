//! `mainspring erase`: erases values of an execution; the hash chain of its journal stays.

use clap::Args;
use mainspring_engine::{
    erasure,
    quarantine::{Act, Place},
};
use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::{
    quarantine::{acted, check_reason},
    remote,
};
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, print_out},
    output::text::shown,
    read_store::{find, open_read_only},
};

/// Erase values of an ended execution.
#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// Only inputs and outputs of this step or step instance; repeatable
    #[arg(long, value_name = "STEP")]
    pub(super) step: Vec<String>,
    /// The reason, recorded in the sealed note and the audit log
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
}

/// Erases values. The chain stays valid, and `verify` names the erased values.
pub(crate) fn erase(erase: &Erase, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    check_reason(&erase.reason)?;
    if let Some(client) = global.client()? {
        return remote::erase(erase, &client, global, terminal);
    }
    let opened = open_read_only(global)?;
    let row = find(&*opened.store, &erase.id)?;
    let steps: Vec<Value> = erase.step.iter().map(|step| step.as_str().into()).collect();
    let detail = Map::from([("steps".to_string(), steps.into())]);
    let work = |place: Place<'_>, act: &Act<'_>| erasure::erase(place, row.key, &erase.step, act);
    let erased = acted(&opened, &row, ("execution.erase", &erase.reason, detail), work)?;
    Ok(tell(&row.id, erased as u64, global, terminal))
}

/// Prints the number of erased values.
pub(super) fn tell(id: &str, erased: u64, global: &Global, terminal: &Terminal) -> Exit {
    if global.json {
        let value = Value::map([("ok", true.into()), ("executionId", id.into()), ("erased", erased.into())]);
        print_out!("{}", compact(&value));
        return Exit::Fine;
    }
    let words = match erased {
        0 => "nothing to erase: already erased".to_string(),
        1 => "1 value erased".to_string(),
        count => format!("{count} values erased"),
    };
    terminal.note(&format!("{}: {words}; copies in journals of its parent and children remain", shown(id)));
    Exit::Fine
}
