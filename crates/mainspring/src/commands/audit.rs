//! `mainspring audit verify`: checks the export of an audit log. It needs no server and no store.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueHint};
use mainspring_engine::keys;
use mainspring_kernel::{json::compact, value::Value};
use mainspring_server::services::audit_export::{Proof, verify};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::{bold, print_out, status},
    output::text::{counted, paragraph, shown},
};

/// Verify exported audit logs
#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Verify a file from GET /api/audit/export
    Verify {
        /// The file; - for standard input
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The file of the installation's key, to verify the seal
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        key: Option<PathBuf>,
    },
}

/// Checks a file.
pub(crate) fn audit(audit: &Audit, context: &Context) -> Result<Exit, CliError> {
    let What::Verify { file, key } = &audit.what;
    let key = key.as_deref().map(keys::load).transpose()?;
    let found = verify(open(file)?, key.as_ref());
    if context.global.json {
        print_out!("{}", compact(&answer(&found)));
    } else {
        tell(&found);
    }
    Ok(if found.is_ok() { Exit::Fine } else { Exit::NotSo })
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, CliError> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let refused = |error| CliError::bad_input("no_file", format!("{}: {error}", file.display()));
    Ok(Box::new(BufReader::new(File::open(file).map_err(refused)?)))
}

fn tell(found: &Result<Proof, String>) {
    match found {
        Ok(Proof { organization, entries, head: None, .. }) => {
            print_out!(
                "{} {}  {}: nothing to prove",
                bold(&shown(organization)),
                status("ok"),
                counted(*entries, "entry", "entries")
            );
        }
        Ok(Proof { organization, entries, head: Some(head), exported_at, is_sealed }) => {
            let follow = counted(*entries, "entry is in the chain", "entries follow each other");
            print_out!("{} {}  {follow}", bold(&shown(organization)), status("ok"));
            print_out!("  up to     {}, exported {}", shown(head), shown(exported_at));
            if *is_sealed {
                print_out!("  sealed    by the installation, which has written all of it up to there");
            } else {
                print_out!("  seal      not verified: the file could be forged as a whole; verify it with --key");
            }
        }
        Err(why) => print_out!("{}  {}", status("failed"), paragraph(why)),
    }
}

fn answer(found: &Result<Proof, String>) -> Value {
    match found {
        Ok(proof) => Value::map([
            ("ok", true.into()),
            ("organizationId", proof.organization.as_str().into()),
            ("exportedAt", proof.exported_at.as_str().into()),
            ("entries", proof.entries.into()),
            ("head", proof.head.as_deref().into()),
            ("isSealed", proof.is_sealed.into()),
        ]),
        Err(why) => Value::map([("ok", Value::from(false)), ("error", why.as_str().into())]),
    }
}
