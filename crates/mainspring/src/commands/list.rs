//! `mainspring list`: lists executions.

use clap::Args;
use mainspring_kernel::json::compact;

use crate::{
    backend::contract::ListQuery,
    context::Context,
    error::{CliError, Exit},
    output::{
        table::{self, Row},
        terminal::print_out,
    },
};

/// List executions.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only executions with this status; repeatable
    #[arg(long, value_name = "STATUS", value_parser = ["pending", "running", "waiting_approval", "cancel_requested", "completed", "failed", "cancelled"])]
    status: Vec<String>,
    /// Only executions of this workflow: its name, or on a server its slug or id
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// The maximum number of executions
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(crate) fn list(list: &List, context: &Context) -> Result<Exit, CliError> {
    let query =
        ListQuery { statuses: list.status.clone(), workflow: list.workflow.clone(), limit: list.limit as usize };
    let found = context.backend()?.list(&query)?;
    if context.global.json {
        found.iter().for_each(|listed| print_out!("{}", compact(&listed.value)));
    } else {
        table::print(&found.into_iter().map(|listed| listed.row).collect::<Vec<Row>>(), &context.terminal);
    }
    Ok(Exit::Fine)
}
