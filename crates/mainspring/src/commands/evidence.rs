//! `mainspring evidence`: exports and verifies evidence, and pins the heads of the store.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueHint};
use mainspring_engine::{EngineError, clock::now_ms};
use mainspring_evidence::{
    Checked, Trust, archive,
    limits::{ARCHIVE_BYTES_MAX, EXECUTIONS_MAX, STATEMENT_BYTES_MAX},
    pin,
    signing::{PublicKey, SigningKey},
    verify,
};
use mainspring_kernel::{
    json::compact,
    time::{parse_rfc3339, rfc3339},
    value::Value,
};
use mainspring_server::services::{
    audit_export,
    evidence::{Collected, Installation, collect, heads, rewound, since},
};
use mainspring_store::ExecutionRow;

use crate::{
    backend::read_store::{ReadStore, find, open_read_only},
    context::Context,
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out, status},
        text::{counted, paragraph, shown},
    },
};

/// Export and verify evidence of executions
#[derive(Debug, Args)]
pub(crate) struct Evidence {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write an archive of executions that a public key proves
    Export {
        /// The execution: its id, the beginning of it, or `last`
        #[arg(required_unless_present = "since")]
        execution: Option<String>,
        /// All executions that started at this time or later, RFC 3339
        #[arg(long, value_name = "TIME", conflicts_with = "execution")]
        since: Option<String>,
        /// The file to write; it must not exist
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
    /// Verify an archive, without a store and without the installation's secret key
    Verify {
        /// The archive
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The public key of the installation, as PEM or hexadecimal digits
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        public_key: Option<PathBuf>,
    },
    /// Write a signed list of the heads of the store, or compare the store with an earlier one
    Pin {
        /// The file to write; it must not exist
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "against")]
        output: Option<PathBuf>,
        /// A pin of this store: report what the store no longer contains
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        against: Option<PathBuf>,
    },
    /// Print the public key of the installation
    Key,
}

pub(crate) fn evidence(evidence: &Evidence, context: &Context) -> Result<Exit, CliError> {
    match &evidence.action {
        Action::Export { execution, since, output } => export(execution.as_deref(), since.as_deref(), output, context),
        Action::Verify { file, public_key } => verify_file(file, public_key.as_deref(), context),
        Action::Pin { output, against } => pin_store(output.as_deref(), against.as_deref(), context),
        Action::Key => {
            let read = open_read_only(&context.global)?;
            let key = SigningKey::of_installation(&read.key).public();
            match context.global.json {
                true => {
                    print_out!("{}", compact(&Value::map([("id", Value::from(key.id())), ("pem", key.pem().into())])))
                }
                false => print_out!("{}", key.pem().trim_end()),
            }
            Ok(Exit::Fine)
        }
    }
}

fn export(execution: Option<&str>, time: Option<&str>, output: &Path, context: &Context) -> Result<Exit, CliError> {
    let read = open_read_only(&context.global)?;
    let rows = rows(&read, execution, time)?;
    let signing = SigningKey::of_installation(&read.key);
    let installation = Installation { store: &*read.store, loader: &read.loader, signing: &signing };
    let Collected { files, broken, not_exported } =
        collect(installation, &rows).map_err(|why| CliError::bad_input("evidence_incomplete", why))?;
    let mut bytes = Vec::new();
    archive::write(&files, &signing, &mut bytes).map_err(|error| unwritable(output, &error))?;
    create(output, &bytes)?;
    let (count, key) = (rows.len() - not_exported.len(), signing.public().id());
    if context.global.json {
        let list = |list: &[(String, String)]| Value::List(list.iter().map(with_error).collect());
        let value = [
            ("executions", Value::from(count as u64)),
            ("bytes", (bytes.len() as u64).into()),
            ("key", key.into()),
            ("brokenSignatures", list(&broken)),
            ("notExported", list(&not_exported)),
        ];
        print_out!("{}", compact(&Value::map(value)));
    } else {
        for (id, why) in &broken {
            print_out!("{} {}  signature broken at {}", bold(&shown(id)), status("failed"), shown(why));
        }
        print_not_exported(&not_exported);
        let executions = counted(count as u64, "execution", "executions");
        print_out!("{}  {executions}, {} bytes", bold(&shown(&output.display().to_string())), bytes.len());
        print_out!("{}", dim(&format!("signed with {key}")));
    }
    Ok(if broken.is_empty() && not_exported.is_empty() { Exit::Fine } else { Exit::NotSo })
}

fn with_error((id, why): &(String, String)) -> Value {
    Value::map([("executionId", Value::from(id.as_str())), ("error", why.as_str().into())])
}

fn print_not_exported(list: &[(String, String)]) {
    for (id, why) in list {
        print_out!("{} {}  its journal is not in the archive: {}", bold(&shown(id)), status("failed"), shown(why));
    }
}

fn rows(read: &ReadStore, execution: Option<&str>, time: Option<&str>) -> Result<Vec<ExecutionRow>, CliError> {
    if let Some(name) = execution {
        return Ok(vec![find(&*read.store, name)?]);
    }
    let text = time.unwrap_or_default();
    let at = parse_rfc3339(text).ok_or_else(|| {
        CliError::bad_input("bad_arguments", format!("--since {text}: write a time such as 2026-01-31T00:00:00Z"))
    })?;
    match since(&*read.store, at, EXECUTIONS_MAX).map_err(EngineError::from)? {
        None => {
            let message =
                format!("--since {text}: more than {EXECUTIONS_MAX} executions have started since; name a later time");
            Err(CliError::bad_input("bad_arguments", message))
        }
        Some(rows) if rows.is_empty() => {
            Err(CliError::bad_input("no_executions", format!("no execution has started since {text}")))
        }
        Some(rows) => Ok(rows),
    }
}

fn verify_file(file: &Path, public_key: Option<&Path>, context: &Context) -> Result<Exit, CliError> {
    let trust = match public_key {
        None => Trust::OfArchive,
        Some(path) => {
            let text = String::from_utf8_lossy(&bytes_of(path, 4096)?).into_owned();
            let key = PublicKey::read(&text).ok_or_else(|| {
                let message =
                    format!("{}: it is no Ed25519 public key; `mainspring evidence key` prints one", path.display());
                CliError::bad_input("bad_key", message)
            })?;
            Trust::Given(key)
        }
    };
    let bytes = bytes_of(file, ARCHIVE_BYTES_MAX)?;
    let checked = verify(&bytes, trust).and_then(with_audit_logs);
    if context.global.json {
        print_out!("{}", compact(&value_of(&checked, trust)));
    } else {
        print_checked(&checked, trust);
    }
    Ok(if checked.is_ok_and(|checked| checked.is_proven()) { Exit::Fine } else { Exit::NotSo })
}

/// Checks the chains of the audit logs. Their seals need the secret key, which their signed digests replace.
fn with_audit_logs(checked: Checked) -> Result<Checked, String> {
    for (name, log) in &checked.audit_logs {
        let proof = audit_export::verify(log.as_slice(), None).map_err(|why| format!("{name}: {why}"))?;
        if *name != format!("audit/{}.ndjson", proof.organization) {
            return Err(format!("{name}: it is the log of {}", proof.organization));
        }
    }
    Ok(checked)
}

fn value_of(checked: &Result<Checked, String>, trust: Trust) -> Value {
    match checked {
        Err(why) => Value::map([("ok", Value::from(false)), ("error", why.as_str().into())]),
        Ok(checked) => {
            let execution = |one: &mainspring_evidence::CheckedExecution| {
                Value::map([
                    ("executionId", Value::from(one.id.as_str())),
                    ("status", one.status.into()),
                    ("frames", one.frames.into()),
                    ("decidedAgain", one.decided_again.into()),
                    ("erased", one.erased.into()),
                    ("signedReceipts", one.signed_receipts.into()),
                    ("lateReceipts", one.late_receipts.into()),
                    ("unsignedReceipts", one.unsigned_receipts.into()),
                    (
                        "brokenSignatures",
                        one.broken_receipts.iter().map(|why| why.as_str().into()).collect::<Vec<_>>().into(),
                    ),
                ])
            };
            Value::map([
                ("ok", Value::from(checked.is_proven())),
                ("key", checked.key.id().into()),
                ("keyIsGiven", (trust != Trust::OfArchive).into()),
                ("executions", checked.executions.iter().map(execution).collect::<Vec<_>>().into()),
                ("auditLogs", (checked.audit_logs.len() as u64).into()),
                ("notExported", checked.not_exported.iter().map(with_error).collect::<Vec<_>>().into()),
            ])
        }
    }
}

fn print_checked(checked: &Result<Checked, String>, trust: Trust) {
    let checked = match checked {
        Ok(checked) => checked,
        Err(why) => return print_out!("{}  {}", status("failed"), paragraph(why)),
    };
    for one in &checked.executions {
        let erased =
            if one.erased > 0 { format!(", {} erased", counted(one.erased, "value", "values")) } else { String::new() };
        let late = if one.late_receipts > 0 { format!(", {} of them late", one.late_receipts) } else { String::new() };
        let receipts = receipts_text(one.signed_receipts, one.unsigned_receipts) + &late;
        print_out!(
            "{} {}  {}, {} frames, {} decided again with the same result{erased}{receipts}",
            bold(&shown(&one.id)),
            status(if one.broken_receipts.is_empty() { "ok" } else { "failed" }),
            one.status,
            one.frames,
            one.decided_again
        );
        for why in &one.broken_receipts {
            print_out!("  signature broken at {}", shown(why));
        }
    }
    print_not_exported(&checked.not_exported);
    for name in checked.audit_logs.keys() {
        print_out!("{} {}  entries follow each other", bold(&shown(name)), status("ok"));
    }
    print_out!("signed with {}", checked.key.id());
    if trust == Trust::OfArchive {
        print_out!(
            "  the key is that of the archive, so the whole archive could be forged; give the installation's with --public-key"
        );
    }
}

fn receipts_text(signed: u64, unsigned: u64) -> String {
    let signed = if signed > 0 {
        format!(", {} signed by certified executors", counted(signed, "receipt", "receipts"))
    } else {
        String::new()
    };
    match unsigned {
        0 => signed,
        _ => format!("{signed}, {} from before receipts were signed", counted(unsigned, "receipt", "receipts")),
    }
}

fn pin_store(output: Option<&Path>, against: Option<&Path>, context: &Context) -> Result<Exit, CliError> {
    let read = open_read_only(&context.global)?;
    let signing = SigningKey::of_installation(&read.key);
    let mut exit = Exit::Fine;
    if let Some(file) = against {
        let (at, pinned) = pin::read(&bytes_of(file, STATEMENT_BYTES_MAX as u64)?, signing.public())
            .map_err(|why| CliError::bad_input("bad_pin", format!("{}: {why}", file.display())))?;
        let found = rewound(&*read.store, &pinned).map_err(EngineError::from)?;
        if context.global.json {
            let found: Vec<Value> = found.iter().map(|text| text.as_str().into()).collect();
            let value = [("ok", Value::from(found.is_empty())), ("pinnedAt", at.into()), ("missing", found.into())];
            print_out!("{}", compact(&Value::map(value)));
        } else if found.is_empty() {
            print_out!("{}  the store contains all {} heads of {}", status("ok"), pinned.len(), shown(&at));
        } else {
            let count = pinned.len();
            print_out!("{}  the store lacks {} of {count} heads of {}", status("failed"), found.len(), shown(&at));
            found.iter().for_each(|text| print_out!("  {}", shown(text)));
        }
        exit = if found.is_empty() { Exit::Fine } else { Exit::NotSo };
    }
    if let Some(file) = output {
        let installation = Installation { store: &*read.store, loader: &read.loader, signing: &signing };
        let failed = |why: String| CliError::bad_input("evidence_incomplete", why);
        let heads = heads(installation).map_err(failed)?;
        let bytes = pin::write(&heads, &rfc3339(now_ms()), &signing).map_err(failed)?;
        create(file, &bytes)?;
        if !context.global.json {
            print_out!("{}  {} heads", bold(&shown(&file.display().to_string())), heads.len());
        }
    }
    Ok(exit)
}

fn bytes_of(file: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let refused = |why: String| CliError::bad_input("unreadable", format!("{}: {why}", file.display()));
    let size = fs::metadata(file).map_err(|error| refused(error.to_string()))?.len();
    if size > most {
        return Err(refused(format!("it has {size} bytes, more than {most}")));
    }
    fs::read(file).map_err(|error| refused(error.to_string()))
}

/// Writes a new file that its owner alone can read.
fn create(file: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = open.and_then(|mut open| {
        open.write_all(bytes)?;
        open.sync_all()
    });
    written.map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> CliError {
    CliError::bad_input("unwritable", format!("{}: {error}", file.display()))
}
