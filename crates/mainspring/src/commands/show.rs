//! `mainspring show`: shows one execution with its steps and attempts.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};

use super::usage;
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{
        brief,
        execution_view::AttemptPage,
        terminal::{bold, dim, print_out, status},
        text::shown,
    },
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
    /// The receipts of its attempts: the node that recorded each, and the check of its signature
    #[arg(long, conflicts_with_all = ["brief", "verbose", "skip", "limit"])]
    receipts: bool,
}

pub(crate) fn show(show: &Show, context: &Context) -> Result<Exit, CliError> {
    if show.receipts {
        return receipts(show, context);
    }
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

fn receipts(show: &Show, context: &Context) -> Result<Exit, CliError> {
    let (mut exit, mut is_empty) = (Exit::Fine, true);
    context.backend()?.receipts(&show.id, &mut |receipt| {
        is_empty = false;
        if receipt.get("signature").and_then(Value::as_text) == Some("broken") {
            exit = Exit::NotSo;
        }
        match context.global.json {
            true => print_out!("{}", compact(&receipt)),
            false => print_receipt(&receipt),
        }
    })?;
    if is_empty && !context.global.json {
        print_out!("{}", dim("no receipts"));
    }
    Ok(exit)
}

fn print_receipt(receipt: &Value) {
    let text = |value: Option<&Value>| value.and_then(Value::as_text).map(shown).unwrap_or_default();
    let field = |key: &str| text(receipt.get(key));
    let attempt = receipt.get("attempt").and_then(Value::as_u64).unwrap_or_default();
    let call = format!("{} attempt {attempt}  {} {}", bold(&field("step")), field("effect"), field("status"));
    let executor = |key: &str| text(receipt.get("executor").and_then(|executor| executor.get(key)));
    let signature = match field("signature").as_str() {
        "verified" => {
            format!("{} by {} {}, key {}", status("ok"), executor("name"), executor("version"), executor("key"))
        }
        "unsigned" => "unsigned: it was recorded before receipts were signed".to_string(),
        _ => format!("{} {}", status("failed"), field("error")),
    };
    print_out!("{}  {call}  via {}", dim(&field("at")), field("via"));
    print_out!("  {signature}");
}
