//! `mainspring approvals`: lists open approvals, with approvers, start and deadline.

use clap::Args;

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{approvals::print, text::shown},
};

/// List open approvals.
#[derive(Debug, Args)]
pub(crate) struct Approvals {
    /// The maximum number of approvals
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Start after this cursor of the previous page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(crate) fn approvals(approvals: &Approvals, context: &Context) -> Result<Exit, CliError> {
    let page = context.backend()?.approvals(approvals.limit as usize, approvals.cursor.as_deref())?;
    print(&page.approvals, page.next.as_deref(), context.global.json);
    if !page.unreadable.is_empty() {
        let names = page.unreadable.iter().map(|id| shown(id)).collect::<Vec<_>>().join(", ");
        let note =
            format!("skipped, because their journals cannot be read: {names}; `mainspring verify` shows the reason");
        context.terminal.note(&note);
    }
    Ok(Exit::Fine)
}
