//! Checks an archive with a public key alone.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{definition, document::Document, json, key::ExecutionKey, value::Value};

use crate::{
    archive::{self, Files, MANIFEST, PUBLIC_KEY},
    dsse,
    execution::{CHECKPOINT, CHECKPOINT_TYPE, DERIVED, Folded, JOURNAL, OPTIONAL, PLAN, fold, folder},
    journal,
    limits::EXECUTIONS_MAX,
    receipts::KnownKeys,
    signatures::{self, EXECUTOR_KEYS, LATE_RECEIPTS, SIGNATURES, Signatures},
    signing::PublicKey,
};

/// The source of the public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The caller has given the key.
    Given(PublicKey),
    /// The key is that of the archive. The archive could be forged.
    OfArchive,
}

/// A checked archive.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The key of all signatures.
    pub key: PublicKey,
    /// The executions, by key.
    pub executions: Vec<CheckedExecution>,
    /// The audit logs by path, whose digests were checked and whose chains were not.
    pub audit_logs: BTreeMap<String, Vec<u8>>,
    /// The executions whose journal could not be exported: id and reason.
    pub not_exported: Vec<(String, String)>,
}

/// The file of an archive that names the executions whose journal could not be exported, each with the reason.
pub const NOT_EXPORTED: &str = "not-exported.ndjson";

/// One execution of an archive whose journal was decided again.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedExecution {
    /// Public id.
    pub id: String,
    /// Status at the end of the journal.
    pub status: &'static str,
    /// Number of frames.
    pub frames: u64,
    /// Number of frames whose input was decided again with the same records.
    pub decided_again: u64,
    /// Number of erased values.
    pub erased: u64,
    /// Number of receipts that a certified executor key has signed.
    pub signed_receipts: u64,
    /// Number of late receipts, with those that were erased.
    pub late_receipts: u64,
    /// Number of receipts from before receipts were signed.
    pub unsigned_receipts: u64,
    /// Receipts whose signature was missing or wrong in the store: the place of each and the reason.
    pub broken_receipts: Vec<String>,
}

impl Checked {
    /// True if all receipts are proven. An archive with broken signatures is whole, and shows that they are broken.
    pub fn is_proven(&self) -> bool {
        self.not_exported.is_empty() && self.executions.iter().all(|execution| execution.broken_receipts.is_empty())
    }
}

/// Checks an archive: signatures, digests, chains, decisions and derived documents.
///
/// A signature of a receipt that was broken in the store already is reported with its execution.
///
/// # Errors
/// Names the file and the first defect.
pub fn verify(bytes: &[u8], trust: Trust) -> Result<Checked, String> {
    let (manifest, files) = archive::read(bytes)?;
    let own = files.get(PUBLIC_KEY).and_then(|text| std::str::from_utf8(text).ok()).and_then(PublicKey::read);
    let own = own.ok_or_else(|| format!("{PUBLIC_KEY}: it is missing or no Ed25519 public key"))?;
    let key = match trust {
        Trust::Given(key) if key != own => {
            return Err(format!("{PUBLIC_KEY}: the archive has the key {}, and not {}", own.id(), key.id()));
        }
        Trust::Given(_) | Trust::OfArchive => own,
    };
    archive::check(&manifest, &files, key)?;
    let known = match files.get(EXECUTOR_KEYS) {
        Some(text) => signatures::read_keys(text, key).map_err(|why| format!("{EXECUTOR_KEYS}: {why}"))?,
        None => KnownKeys::default(),
    };
    let mut executions = Vec::new();
    for execution in names(&files)? {
        executions.push(execution_of(&files, execution, &known, key)?);
    }
    let is_log = |name: &&String| name.starts_with("audit/") && name.ends_with(".ndjson");
    let audit_logs = files.iter().filter(|(name, _)| is_log(name)).map(|(name, log)| (name.clone(), log.clone()));
    let not_exported = not_exported(files.get(NOT_EXPORTED)).map_err(|why| format!("{NOT_EXPORTED}: {why}"))?;
    Ok(Checked { key, executions, audit_logs: audit_logs.collect(), not_exported })
}

/// Returns the executions that the export has left out: id and reason.
fn not_exported(text: Option<&Vec<u8>>) -> Result<Vec<(String, String)>, String> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let one = |line: &str| {
        let value = json::value(line.as_bytes()).map_err(|found| found.message)?;
        let part = |key: &str| value.get(key).and_then(Value::as_text).map(String::from);
        part("execution").zip(part("reason")).ok_or_else(|| "a line has no execution and reason".to_string())
    };
    text.split('\n').filter(|line| !line.is_empty()).map(one).collect()
}

/// Returns the executions of an archive, and refuses files that belong to nothing.
fn names(files: &Files) -> Result<BTreeSet<ExecutionKey>, String> {
    let mut found = BTreeSet::new();
    for name in files.keys() {
        let parts: Vec<&str> = name.split('/').collect();
        match parts.as_slice() {
            [PUBLIC_KEY | EXECUTOR_KEYS | NOT_EXPORTED | "README.md" | "controls.md"] | ["audit", _] => {}
            ["executions", key, file] if is_known(file) => {
                let key = ExecutionKey::parse(key).ok_or_else(|| format!("{name}: the folder is no execution key"))?;
                found.insert(key);
            }
            _ => return Err(format!("{name}: the archive has no such file")),
        }
    }
    if found.len() > EXECUTIONS_MAX {
        return Err(format!("{MANIFEST}: more than {EXECUTIONS_MAX} executions"));
    }
    Ok(found)
}

fn is_known(file: &str) -> bool {
    [JOURNAL, PLAN, CHECKPOINT].contains(&file) || DERIVED.contains(&file) || OPTIONAL.contains(&file)
}

fn execution_of(
    files: &Files,
    execution: ExecutionKey,
    known: &KnownKeys,
    key: PublicKey,
) -> Result<CheckedExecution, String> {
    let folder = folder(execution);
    let at = |why: String| format!("{folder}/{why}");
    let file =
        |name: &str| files.get(&format!("{folder}/{name}")).ok_or_else(|| format!("{folder}/{name}: it is missing"));
    let frames = journal::read(file(JOURNAL)?).map_err(|why| at(format!("{JOURNAL}: {why}")))?;
    let mut folded = fold(execution, file(PLAN)?, &frames, true).map_err(at)?;
    let signatures = check_signatures(files.get(&format!("{folder}/{SIGNATURES}")), &folded, known);
    let mut signatures = signatures.map_err(|why| at(format!("{SIGNATURES}: {why}")))?;
    let late = check_late(files.get(&format!("{folder}/{LATE_RECEIPTS}")), &folded, known);
    let (late_receipts, late) = late.map_err(|why| at(format!("{LATE_RECEIPTS}: {why}")))?;
    signatures.signed += late.signed;
    signatures.unsigned += late.unsigned;
    signatures.broken.extend(late.broken);
    folded.report(&signatures);
    check_point(file(CHECKPOINT)?, execution, &folded, key).map_err(|why| at(format!("{CHECKPOINT}: {why}")))?;
    for name in DERIVED {
        if folded.derived.get(name) != Some(file(name)?) {
            return Err(at(format!("{name}: it does not follow from the journal")));
        }
    }
    if let Some(definition) = files.get(&format!("{folder}/definition.json")) {
        check_definition(definition, &folded).map_err(|why| at(format!("definition.json: {why}")))?;
    }
    if let Some(proposals) = files.get(&format!("{folder}/proposals.ndjson")) {
        check_proposals(proposals, &folded).map_err(|why| at(format!("proposals.ndjson: {why}")))?;
    }
    let Folded { state, sequence, decided_again, erased, .. } = folded;
    let id = state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default();
    Ok(CheckedExecution {
        id,
        status: state.status().name(),
        frames: sequence + 1,
        decided_again,
        erased,
        signed_receipts: signatures.signed,
        late_receipts,
        unsigned_receipts: signatures.unsigned,
        broken_receipts: signatures.broken,
    })
}

/// Checks the signatures of receipts, and derives the file again.
fn check_signatures(file: Option<&Vec<u8>>, folded: &Folded, known: &KnownKeys) -> Result<Signatures, String> {
    let text = file.map(Vec::as_slice).unwrap_or_default();
    let found = signatures::derive(&folded.receipts, &signatures::read(text)?, known, folded.state.decide_version);
    if found.text == text { Ok(found) } else { Err("it does not follow from the journal".into()) }
}

/// Checks the late receipts, and derives the file again. Returns their number.
fn check_late(file: Option<&Vec<u8>>, folded: &Folded, known: &KnownKeys) -> Result<(u64, Signatures), String> {
    let text = file.map(Vec::as_slice).unwrap_or_default();
    let late = signatures::read_late(text)?;
    let found = signatures::derive_late(&folded.state, &late, known);
    match found.text == text {
        true => Ok((late.len() as u64, found)),
        false => Err("it is not in the form in which late receipts are written".into()),
    }
}

fn check_point(envelope: &[u8], execution: ExecutionKey, folded: &Folded, key: PublicKey) -> Result<(), String> {
    let statement = dsse::open(envelope, key)?;
    let [subject] = statement.subjects.as_slice() else { return Err("it does not have one subject".into()) };
    let sequence = statement.predicate.get("sequence").and_then(Value::as_u64);
    if statement.predicate_type != CHECKPOINT_TYPE || subject.name != execution.to_string() {
        return Err("it is the checkpoint of something else".into());
    }
    if subject.sha256 != folded.head.hex() || sequence != Some(folded.sequence) {
        return Err("the journal does not end in the frame that was signed".into());
    }
    Ok(())
}

/// Checks that a definition has the hash that the execution pins.
fn check_definition(text: &[u8], folded: &Folded) -> Result<(), String> {
    let value = json::value(text).map_err(|error| error.to_string())?;
    let compiled = definition::compile(&Document::placeless(value)).map_err(|found| {
        let first = found.first().map(ToString::to_string).unwrap_or_default();
        format!("it does not compile with this release: {first}")
    })?;
    let pinned = folded.state.start.as_ref().map(|start| start.workflow_hash);
    if pinned == Some(compiled.workflow_hash) {
        Ok(())
    } else {
        Err("it is not the definition of this execution".into())
    }
}

/// Checks that each proposal has led to the definition of the execution, and that an approval is bound to it.
fn check_proposals(text: &[u8], folded: &Folded) -> Result<(), String> {
    let pinned = folded.state.start.as_ref().map(|start| start.workflow_hash.prefixed()).unwrap_or_default();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let proposal = json::value(line).map_err(|error| error.to_string())?;
        let change = proposal.get("change");
        let hash = change.and_then(|change| change.get("hash")).and_then(Value::as_text);
        if hash != Some(&pinned) {
            return Err("a proposal is for another definition than that of this execution".into());
        }
        let data = change.and_then(|change| change.get("data")).cloned().unwrap_or_default();
        let compiled =
            definition::compile(&Document::placeless(data)).map_err(|_| "a proposed definition does not compile")?;
        if compiled.workflow_hash.prefixed() != pinned {
            return Err("a proposed definition does not have the hash of its proposal".into());
        }
        let reviews = proposal.get("reviews").and_then(Value::as_list).unwrap_or_default();
        let is_approval = |review: &&Value| {
            review.get("approve").and_then(Value::as_bool) == Some(true)
                && review.get("is_void").and_then(Value::as_bool) == Some(false)
        };
        if !reviews.iter().any(|review| is_approval(&review)) {
            return Err("an applied proposal has no valid approval".into());
        }
    }
    Ok(())
}
