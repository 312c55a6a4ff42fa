//! `mainspring verify`: checks that journals are unmodified.

use clap::{ArgGroup, Args};
use mainspring_kernel::{json::compact, value::Value};

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
#[command(group(ArgGroup::new("executions").args(["id", "all"]).required(true)))]
pub(crate) struct Verify {
    /// The execution: its id, the beginning of it, or `last`
    id: Option<String>,
    /// Every execution of the data folder
    #[arg(long)]
    all: bool,
    /// Fail if a receipt has no signature, also if it was recorded before receipts were signed
    #[arg(long)]
    require_signatures: bool,
}

/// Verifies journals: every hash, every value, every decision repeated, the sealed head, the signatures of receipts.
pub(crate) fn verify(verify: &Verify, context: &Context) -> Result<Exit, CliError> {
    let mut exit = Exit::Fine;
    context.backend()?.verify(verify.id.as_deref(), &mut |verification| {
        let verification = match verify.require_signatures {
            true => requiring_signatures(verification),
            false => verification,
        };
        if matches!(verification.verdict, Verdict::Broken(_)) {
            exit = Exit::NotSo;
        }
        print(&verification, context.global.json);
    })?;
    Ok(exit)
}

/// Fails a verification that does not meet `--require-signatures`.
fn requiring_signatures(mut verification: Verification) -> Verification {
    let why = match verification.unsigned_receipts {
        Some(0) => return verification,
        Some(1) => "1 receipt has no signature".into(),
        Some(count) => format!("{count} receipts have no signature"),
        None => {
            "the signatures of receipts are not checked from here; run `mainspring verify` where the store is".into()
        }
    };
    if !matches!(verification.verdict, Verdict::Broken(_)) {
        if let Value::Map(map) = &mut verification.value {
            map.insert("ok".into(), false.into());
            map.insert("error".into(), why.as_str().into());
        }
        verification.verdict = Verdict::Broken(why);
    }
    verification
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
