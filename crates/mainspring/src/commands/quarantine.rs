//! `mainspring quarantine`: lists, releases or ends quarantined executions.

use clap::{Args, Subcommand};
use mainspring_kernel::{json::compact, limits::REASON_CHARS_MAX, value::Value};

use crate::{
    backend::contract::QuarantineChange,
    context::Context,
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out},
        text::{paragraph, shown},
    },
};

/// List, release or end quarantined executions.
#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    action: Action,
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
    id: String,
    /// The reason, recorded in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Lists quarantined executions, or changes one.
pub(crate) fn quarantine(quarantine: &Quarantine, context: &Context) -> Result<Exit, CliError> {
    if let Action::Release(which) | Action::End(which) = &quarantine.action {
        check_reason(&which.reason)?;
    }
    let backend = context.backend()?;
    match &quarantine.action {
        Action::List => {
            let mut is_any = false;
            backend.quarantined(&mut |id, reason| {
                is_any = true;
                print(id, reason, context);
            })?;
            if !is_any && !context.global.json {
                print_out!("{}", dim("none"));
            }
        }
        Action::Release(which) => print_change(&backend.release(&which.id, &which.reason)?, context),
        Action::End(which) => print_change(&backend.end_quarantined(&which.id, &which.reason)?, context),
    }
    Ok(Exit::Fine)
}

/// Rejects a reason that is empty or above the limit of audit logs.
pub(super) fn check_reason(reason: &str) -> Result<(), CliError> {
    if (1..=REASON_CHARS_MAX).contains(&reason.chars().count()) {
        return Ok(());
    }
    Err(CliError::bad_input("bad_reason", format!("--reason must have 1 to {REASON_CHARS_MAX} characters")))
}

/// Prints a quarantined execution.
fn print(id: &str, reason: &str, context: &Context) {
    if context.global.json {
        let value = Value::map([("executionId", id.into()), ("reason", reason.into())]);
        return print_out!("{}", compact(&value));
    }
    print_out!("{}  {}", bold(&shown(id)), paragraph(reason));
}

fn print_change(change: &QuarantineChange, context: &Context) {
    let QuarantineChange { id, status, message } = change;
    if context.global.json {
        let value = [("ok", true.into()), ("executionId", id.as_str().into()), ("status", status.as_str().into())];
        print_out!("{}", compact(&Value::map(value)));
    } else {
        context.terminal.note(&format!("{} {message}", shown(id)));
    }
}
