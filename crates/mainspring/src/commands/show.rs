//! `mainspring show`: shows one execution with its steps and attempts.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};

use super::usage;
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{brief, execution_view::AttemptPage, terminal::print_out},
};

/// Show an execution.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// Include the resolved input and the output of every attempt
    #[arg(long, short)]
    verbose: bool,
    /// Skip this many attempts
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// At most this many attempts
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// A summary of at most 3,500 characters: counts, failures, approvals, the beginning of the output
    #[arg(long, conflicts_with_all = ["verbose", "skip", "limit"])]
    brief: bool,
}

pub(crate) fn show(show: &Show, context: &Context) -> Result<Exit, CliError> {
    let page = AttemptPage { skip: show.skip, limit: show.limit };
    let mut details = context.backend()?.show(&show.id, page)?;
    if show.brief {
        match context.global.json {
            true => print_out!("{}", compact(&brief::value(&details.view))),
            false => print_out!("{}", brief::text(&details.view)),
        }
        return Ok(Exit::Fine);
    }
    if !context.global.json {
        details.view.print(page, show.verbose);
        details.envelope.get("usage").into_iter().for_each(usage::print);
        return Ok(Exit::Fine);
    }
    if let Value::Map(envelope) = &mut details.envelope {
        if let Some(parent) = details.view.parent {
            envelope.insert("parentExecutionId".into(), parent.into());
        }
        let count = details.view.attempts.len();
        if page.range(count).len() < count {
            envelope.insert("stepCount".into(), (count as u64).into());
        }
    }
    print_out!("{}", compact(&details.envelope));
    Ok(Exit::Fine)
}
