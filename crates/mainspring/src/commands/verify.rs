//! `mainspring verify`: checks that journals are unmodified.

use clap::Args;
use mainspring_engine::EngineError;
use mainspring_kernel::{json::compact, note::Note, time::rfc3339, value::Value};
use mainspring_store::{ExecutionRow, Filter};

use super::remote;
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, print_out, status},
    output::text::{paragraph, shown},
    read_store::{ReadStore, find, no_executions, open_read_only},
};

/// Verify journals.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Verify {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: Option<String>,
    /// Every execution of the data folder
    #[arg(long)]
    all: bool,
}

/// Executions read at a time.
const PAGE: usize = 1000;

/// Verifies journals: every hash, every value, every decision repeated, the sealed head.
pub(crate) fn verify(verify: &Verify, global: &Global, _: &Terminal) -> Result<Exit, CliError> {
    if let Some(client) = global.client()? {
        return remote::verify(verify, &client, global);
    }
    let opened = open_read_only(global)?;
    if let Some(id) = &verify.id {
        return Ok(one(&opened, &find(&*opened.store, id)?, global));
    }
    let (mut exit, mut before) = (Exit::Fine, None);
    loop {
        let rows = opened.store.executions(&Filter::default(), before, PAGE).map_err(EngineError::from)?;
        let Some(last) = rows.last() else {
            return if before.is_some() { Ok(exit) } else { Err(no_executions(&opened.location)) };
        };
        before = Some(last.key);
        for row in &rows {
            if one(&opened, row, global) != Exit::Fine {
                exit = Exit::NotSo;
            }
        }
    }
}

fn one(opened: &ReadStore, row: &ExecutionRow, global: &Global) -> Exit {
    let found = match opened.loader.verify_with_columns(row.key) {
        Ok(Some((verified, differences))) if differences.is_empty() => Ok(verified),
        Ok(Some((_, differences))) => {
            let named: Vec<String> = differences.iter().map(ToString::to_string).collect();
            Err(format!(
                "the journal is what was written, and what the store keeps beside it is not: {}",
                named.join("; ")
            ))
        }
        Ok(None) => Err("its journal is missing".to_string()),
        Err(error) => Err(error.to_string()),
    };
    let exit = if found.is_ok() { Exit::Fine } else { Exit::NotSo };
    let ended = opened.loader.forced_end(row.key).ok().flatten();
    if global.json {
        print_out!("{}", compact(&answer(row, &found, ended.as_ref())));
        return exit;
    }
    let ended = ended.map(|note| {
        let (at, by, reason) = (rfc3339(note.at), shown(&note.by), shown(&note.reason));
        format!("; ended in quarantine at {at} by {by}, sealed: {reason}")
    });
    let ended = ended.unwrap_or_default();
    let id = bold(&shown(&row.id));
    match found {
        Ok(verified) => {
            let erased: Vec<_> =
                verified.erased.iter().map(|(frame, place)| format!("frame {frame}, value {place}")).collect();
            let erased = if erased.is_empty() { String::new() } else { format!("; erased: {}", erased.join("; ")) };
            print_out!(
                "{id} {}  {} frames in the chain, {} decided again with the same result, head sealed{erased}{ended}",
                status("ok"),
                verified.frames,
                verified.decided_again
            );
        }
        Err(why) => print_out!("{id} {}  {}", status("failed"), paragraph(&format!("{why}{ended}"))),
    }
    exit
}

fn answer(
    row: &ExecutionRow,
    found: &Result<mainspring_kernel::journal::Verified, String>,
    ended: Option<&Note>,
) -> Value {
    let mut map = mainspring_kernel::value::Map::from([
        ("executionId".to_string(), Value::from(row.id.as_str())),
        ("ok".to_string(), found.is_ok().into()),
    ]);
    match found {
        Ok(verified) => {
            let place = |(frame, place): &(u64, usize)| {
                Value::map([("frame", (*frame).into()), ("value", (*place as u64).into())])
            };
            map.insert("frames".into(), verified.frames.into());
            map.insert("decidedAgain".into(), verified.decided_again.into());
            map.insert("erased".into(), verified.erased.iter().map(place).collect::<Vec<_>>().into());
        }
        Err(why) => drop(map.insert("error".into(), why.as_str().into())),
    }
    if let Some(note) = ended {
        let value = Value::map([
            ("at", rfc3339(note.at).into()),
            ("by", note.by.as_str().into()),
            ("reason", note.reason.as_str().into()),
        ]);
        map.insert("endedInQuarantine".into(), value);
    }
    Value::Map(map)
}
