//! `mainspring verify`: checks that journals are unmodified.

use clap::Args;
use mainspring_kernel::json::compact;

use crate::{
    backend::contract::{Verdict, Verification},
    context::Context,
    error::{CliError, Exit},
    output::{
        terminal::{bold, print_out, status},
        text::{paragraph, shown},
    },
};

/// Verify journals.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Verify {
    /// The execution: its id, the beginning of it, or `last`
    id: Option<String>,
    /// Every execution of the data folder
    #[arg(long)]
    all: bool,
}

/// Verifies journals: every hash, every value, every decision repeated, the sealed head.
pub(crate) fn verify(verify: &Verify, context: &Context) -> Result<Exit, CliError> {
    let mut exit = Exit::Fine;
    context.backend()?.verify(verify.id.as_deref(), &mut |verification| {
        if matches!(verification.verdict, Verdict::Broken(_)) {
            exit = Exit::NotSo;
        }
        print(&verification, context.global.json);
    })?;
    Ok(exit)
}

fn print(verification: &Verification, json: bool) {
    if json {
        return print_out!("{}", compact(&verification.value));
    }
    let subject = bold(&shown(&verification.subject));
    match &verification.verdict {
        Verdict::Sound(text) => print_out!("{subject} {}  {text}", status("ok")),
        Verdict::Broken(text) => print_out!("{subject} {}  {}", status("failed"), paragraph(text)),
        Verdict::Unchecked(text) => print_out!("{subject}  {text}"),
    }
}
