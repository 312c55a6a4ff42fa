//! `mainspring approve` and `deny`: decides an approval, after which the execution continues.

use clap::Args;
use mainspring_kernel::{decide::Words, limits::REASON_CHARS_MAX, plan::Decision, value::Value};

use crate::{
    backend::contract::DecideRequest,
    context::Context,
    error::{CliError, Exit},
    output::{
        summary::show_items,
        terminal::{bold, print_out},
        text::paragraph,
    },
};

/// The flags of `approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    target: Target,
    /// The content of the form that a tool server asks for, as a JSON object from fields to values
    #[arg(long, value_name = "JSON")]
    content: Option<String>,
}

/// The flags of `deny`.
#[derive(Debug, Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    target: Target,
    /// Report a cancel to the tool server that asks for a form, instead of a decline
    #[arg(long)]
    cancel: bool,
}

/// The flags of a decision.
#[derive(Debug, Args)]
struct Target {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// The step, if several approvals are open (`mainspring approvals` lists them); `sub/gate` for the approval `gate`
    /// of the child that step `sub` started
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// The reason, up to 2,000 characters, recorded with the decision and in the organization's audit log; the answer, if a
    /// model asks a question
    #[arg(long, value_name = "TEXT", visible_alias = "answer")]
    reason: Option<String>,
}

pub(crate) fn approve(approve: &Approve, context: &Context) -> Result<Exit, CliError> {
    let read = |text: &String| {
        let read = mainspring_kernel::json::data(text.as_bytes());
        read.map_err(|error| CliError::bad_input("bad_content", format!("--content is not JSON: {}", error.message)))
    };
    let content = approve.content.as_ref().map(read).transpose()?;
    decide(&approve.target, Decision::Approve, (content, false), context)
}

pub(crate) fn deny(deny: &Deny, context: &Context) -> Result<Exit, CliError> {
    decide(&deny.target, Decision::Deny, (None, deny.cancel), context)
}

fn decide(
    target: &Target,
    decision: Decision,
    (content, cancels): (Option<Value>, bool),
    context: &Context,
) -> Result<Exit, CliError> {
    check_reason(target.reason.as_deref())?;
    let words = Words { reason: target.reason.clone(), content, cancels };
    let request = DecideRequest { name: &target.id, step: target.step.as_deref(), decision, words };
    let announce = |prompt: &str, items: &Value| {
        if !context.global.json {
            print_out!("{}", bold(&paragraph(prompt)));
            show_items(items);
        }
    };
    Ok(context.backend()?.decide(&request, &announce)?.conclude(context))
}

/// Rejects a reason above the limit of journals and audit logs.
fn check_reason(reason: Option<&str>) -> Result<(), CliError> {
    if reason.is_none_or(|reason| reason.chars().count() <= REASON_CHARS_MAX) {
        return Ok(());
    }
    let message = format!("--reason must have at most {REASON_CHARS_MAX} characters");
    Err(CliError::bad_input("reason_too_long", message))
}
