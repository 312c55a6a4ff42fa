//! `mainspring tail`: follows an execution that another process runs.

use clap::Args;

use crate::{
    context::Context,
    error::{CliError, Exit},
};

/// Follow an execution.
#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// Show past events and return
    #[arg(long)]
    no_follow: bool,
}

/// Follows an execution until it has settled.
pub(crate) fn tail(tail: &Tail, context: &Context) -> Result<Exit, CliError> {
    context.backend()?.follow(&tail.id, tail.no_follow)
}
