//! `mainspring quarantine`: lists, releases or ends quarantined executions.

use clap::{Args, Subcommand};
use mainspring_engine::{
    EngineError,
    audit::of_user,
    quarantine::{self, Act, Place, Released},
};
use mainspring_kernel::{
    json::compact,
    limits::REASON_CHARS_MAX,
    value::{Map, Value},
};
use mainspring_store::{AuditEntry, ExecutionRow, QuarantinedRow};

use super::remote;
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, dim, print_out},
    output::text::{paragraph, shown},
    paths,
    read_store::{ReadStore, find, open_read_only},
};

/// List, release or end quarantined executions.
#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    pub(super) action: Action,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// List quarantined executions with the reasons
    List,
    /// Verify the journal of an execution again, and resume it
    Release(Which),
    /// End an execution without its journal: it fails, and executions that wait for it continue
    End(Which),
}

/// The execution, and the reason for the change.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// The reason, recorded in the audit log
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
}

/// Executions read at a time.
const PAGE: usize = 1_000;

/// Lists quarantined executions, or changes one.
pub(crate) fn quarantine(quarantine: &Quarantine, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    if let Action::Release(which) | Action::End(which) = &quarantine.action {
        check_reason(&which.reason)?;
    }
    if let Some(client) = global.client()? {
        return remote::quarantine(quarantine, &client, global, terminal);
    }
    let opened = open_read_only(global)?;
    match &quarantine.action {
        Action::List => list(&opened, global),
        Action::Release(which) => {
            let row = find(&*opened.store, &which.id)?;
            let work = |place: Place<'_>, act: &Act<'_>| quarantine::release(place, row.key, act);
            let released = acted(&opened, &row, ("quarantine.release", &which.reason, Map::new()), work)?;
            let status = if released == Released::GoesOn { "released" } else { "cancelled" };
            let who = opened.location.who_works(&*opened.store);
            let next = who.map_or_else(|| opened.location.help(), |who| format!("{who} continues it"));
            let words = match released {
                Released::GoesOn => format!("released; {next}"),
                Released::Canceled => {
                    format!("released and cancelled, because its parent has continued without it; {next}")
                }
            };
            Ok(tell(&row.id, status, &words, global, terminal))
        }
        Action::End(which) => {
            let row = find(&*opened.store, &which.id)?;
            let work = |place: Place<'_>, act: &Act<'_>| quarantine::force_end(place, row.key, act);
            acted(&opened, &row, ("quarantine.end", &which.reason, Map::new()), work)?;
            let words = "ended; its journal stays as it is, and `mainspring verify` names the end";
            Ok(tell(&row.id, "ended", words, global, terminal))
        }
    }
}

/// Changes an execution in the store, with an entry in its organization's audit log.
pub(super) fn acted<T>(
    opened: &ReadStore,
    row: &ExecutionRow,
    (action, reason, mut detail): (&str, &str, Map),
    work: impl FnOnce(Place<'_>, &Act<'_>) -> Result<T, EngineError>,
) -> Result<T, CliError> {
    let (store, by) = (opened.location.store()?, paths::user());
    detail.insert("reason".into(), reason.into());
    let audit: Vec<AuditEntry> = of_user(row, &by, action, detail).into_iter().collect();
    let place = Place { store: &*store, loader: &opened.loader, data_dir: opened.location.home() };
    Ok(work(place, &Act { key: &opened.key, by: &by, reason, audit: &audit })?)
}

/// Rejects a reason that is empty or above the limit of audit logs.
pub(super) fn check_reason(reason: &str) -> Result<(), CliError> {
    if (1..=REASON_CHARS_MAX).contains(&reason.chars().count()) {
        return Ok(());
    }
    Err(CliError::bad_input("bad_reason", format!("--reason must have 1 to {REASON_CHARS_MAX} characters")))
}

fn list(opened: &ReadStore, global: &Global) -> Result<Exit, CliError> {
    let (mut after, mut is_any) = (None, false);
    loop {
        let rows = opened.store.quarantined(None, after, PAGE).map_err(EngineError::from)?;
        let Some(last) = rows.last() else { break };
        (after, is_any) = (Some(last.execution), true);
        rows.iter().for_each(|row| print(&name(row), &row.reason, global));
    }
    if !is_any && !global.json {
        print_out!("{}", dim("none"));
    }
    Ok(Exit::Fine)
}

fn name(row: &QuarantinedRow) -> String {
    row.id.clone().unwrap_or_else(|| row.execution.to_string())
}

/// Prints a quarantined execution.
pub(super) fn print(id: &str, reason: &str, global: &Global) {
    if global.json {
        let value = Value::map([("executionId", id.into()), ("reason", reason.into())]);
        return print_out!("{}", compact(&value));
    }
    print_out!("{}  {}", bold(&shown(id)), paragraph(reason));
}

/// Prints the result for an execution.
pub(super) fn tell(id: &str, status: &str, words: &str, global: &Global, terminal: &Terminal) -> Exit {
    if global.json {
        let value = Value::map([("ok", true.into()), ("executionId", id.into()), ("status", status.into())]);
        print_out!("{}", compact(&value));
    } else {
        terminal.note(&format!("{} {words}", shown(id)));
    }
    Exit::Fine
}
