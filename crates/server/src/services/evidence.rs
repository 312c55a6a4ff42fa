//! Collects evidence from a store: executions with their definitions, proposals and notes, audit logs, and heads for pins.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry as Place};

use mainspring_engine::journal_loader::Loader;
use mainspring_evidence::{
    EXECUTOR_KEYS, Execution, Late, NOT_EXPORTED,
    archive::Files,
    documents::lines,
    files_of,
    pin::{Head, HeadOf},
    receipts::{KnownKeys, Proof},
    signing::SigningKey,
    write_keys,
};
use mainspring_kernel::{
    frame::Frame, json, key::ExecutionKey, note::Subject, record::Record, time::rfc3339, value::Value,
};
use mainspring_store::{ExecutionRow, Filter, ReadLimit, Store};

use crate::{
    http::pagination::PAGE_MAX,
    resources::{
        Organization, Proposal, proposal_key,
        repository::{Listing, Repository},
    },
    services::{
        audit_export::{Entry, Head as ExportHead, line},
        proposal_review,
    },
};

/// Frames or rows of one read.
const PAGE: usize = 1_000;

/// Bytes of all files of an export: it is built in memory.
const EXPORT_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Explains the archive to people.
const README: &str = include_str!("evidence/README.md");

/// Maps the files to controls.
const CONTROLS: &str = include_str!("evidence/controls.md");

/// The parts of an installation from which evidence is collected.
#[derive(Clone, Copy)]
pub struct Installation<'i> {
    /// The store of executions and resources.
    pub store: &'i dyn Store,
    /// Reads and checks journals with the installation's key.
    pub loader: &'i Loader,
    /// Signs checkpoints and the list of files.
    pub signing: &'i SigningKey,
}

/// The files of an archive.
#[derive(Debug)]
pub struct Collected {
    /// The files by path.
    pub files: Files,
    /// The executions with receipts whose signature is missing or wrong, with the place of the first one and the reason.
    pub broken: Vec<(String, String)>,
    /// The executions whose journal cannot be read, with the reason.
    pub not_exported: Vec<(String, String)>,
}

/// Collects the files of an archive. An execution with a broken signature is exported with the others. One whose journal
/// cannot be read is named in the archive, so that it hides no other one.
///
/// # Errors
/// Names the execution that cannot be exported, and the reason, if it is the only one.
pub fn collect(installation: Installation<'_>, rows: &[ExecutionRow]) -> Result<Collected, String> {
    let mut files = Files::from([
        ("README.md".to_string(), README.as_bytes().to_vec()),
        ("controls.md".to_string(), CONTROLS.as_bytes().to_vec()),
    ]);
    let mut bytes = 0;
    let mut add = |new: Files, files: &mut Files| {
        bytes += new.values().map(Vec::len).sum::<usize>();
        files.extend(new);
        match bytes > EXPORT_BYTES_MAX {
            true => {
                Err(format!("the export has more than {EXPORT_BYTES_MAX} bytes: export fewer executions at a time"))
            }
            false => Ok(()),
        }
    };
    let (mut all_keys, mut broken, mut not_exported) = (BTreeMap::new(), Vec::new(), Vec::new());
    for row in rows {
        let (execution, keys) = match execution(installation, row) {
            Ok(found) => found,
            Err(why) if rows.len() == 1 => return Err(format!("execution {}: {why}", row.id)),
            Err(why) => {
                not_exported.push((row.id.clone(), why));
                continue;
            }
        };
        let new =
            files_of(&execution, &keys, installation.signing).map_err(|why| format!("execution {}: {why}", row.id))?;
        add(new.files, &mut files)?;
        broken.extend(new.broken.into_iter().next().map(|why| (row.id.clone(), why)));
        all_keys.extend(keys.certificates().map(|certificate| (certificate.key.hash(), certificate.clone())));
    }
    if !not_exported.is_empty() {
        let line = |(id, why): &(String, String)| {
            Value::map([("execution", Value::from(id.as_str())), ("reason", why.as_str().into())])
        };
        let text = lines(&not_exported.iter().map(line).collect::<Vec<_>>());
        add(Files::from([(NOT_EXPORTED.to_string(), text)]), &mut files)?;
    }
    if !all_keys.is_empty() {
        add(Files::from([(EXECUTOR_KEYS.to_string(), write_keys(all_keys.values()))]), &mut files)?;
    }
    let organizations: BTreeSet<&String> = rows.iter().filter_map(|row| row.organization.as_ref()).collect();
    for organization in organizations {
        let log = audit_log(installation.store, organization)?;
        add(Files::from([(format!("audit/{organization}.ndjson"), log)]), &mut files)?;
    }
    Ok(Collected { files, broken, not_exported })
}

fn execution(installation: Installation<'_>, row: &ExecutionRow) -> Result<(Execution, KnownKeys), String> {
    let Installation { store, loader, .. } = installation;
    // The loader checks the seal, the chain, and the notes of erased values.
    let read = loader.journal(row.key).map_err(|error| error.to_string())?.ok_or("its journal is missing")?;
    let last = read.journal.head.sequence;
    let mut frames = Vec::new();
    while frames.len() as u64 <= last {
        let mut page =
            store.frames(row.key, frames.len() as u64, ReadLimit::of(PAGE)).map_err(|error| error.to_string())?;
        page.retain(|frame| frame.sequence <= last);
        if page.is_empty() {
            return Err(format!("frame {} is missing", frames.len()));
        }
        frames.extend(page);
    }
    let (first, _) = Frame::read(&frames[0]).map_err(|error| error.to_string())?;
    let Some(Record::Started { plan_hash, workflow_hash, .. }) = first.records.first() else {
        return Err("its journal does not begin with a start".into());
    };
    let plan = store.plan(*plan_hash).map_err(|error| error.to_string())?.ok_or("its plan is missing")?;
    // The definition of the last migration, or else of the start.
    let last_hash = read.journal.state.start.as_ref().map_or(*workflow_hash, |start| start.workflow_hash);
    let mut others = definition(store, row, &last_hash.prefixed())?;
    let notes = notes(loader, row.key)?;
    if !notes.is_empty() {
        others.insert("notes.ndjson", notes);
    }
    let proofs = proofs(store, row.key, last)?;
    let late = store.late_receipts(row.key).map_err(|error| error.to_string())?;
    let late: Vec<Late> =
        late.into_iter().map(|late| Late { at: late.at, body: late.body, proof: late.proof }).collect();
    let keys = keys(installation, proofs.values().chain(late.iter().filter_map(|late| late.proof.as_ref())))?;
    let organization = row.organization.clone();
    Ok((Execution { key: row.key, organization, plan: plan.to_vec(), frames, proofs, late, others }, keys))
}

/// Returns the proofs of receipts up to a frame.
fn proofs(store: &dyn Store, execution: ExecutionKey, last: u64) -> Result<BTreeMap<u64, Vec<u8>>, String> {
    let (mut proofs, mut from) = (BTreeMap::new(), 0);
    loop {
        let page = store.receipt_proofs(execution, from, PAGE).map_err(|error| error.to_string())?;
        let Some((newest, _)) = page.last() else { return Ok(proofs) };
        from = newest + 1;
        proofs.extend(page.into_iter().filter(|(sequence, _)| *sequence <= last));
    }
}

/// Returns the executor keys that proofs name.
fn keys<'p>(installation: Installation<'_>, proofs: impl Iterator<Item = &'p Vec<u8>>) -> Result<KnownKeys, String> {
    let Installation { store, signing, .. } = installation;
    let mut certificates = BTreeMap::new();
    for id in proofs.filter_map(|proof| Proof::decode(proof).ok()).map(|proof| proof.key) {
        if let Place::Vacant(place) = certificates.entry(id) {
            place.insert(store.executor_key(id).map_err(|error| error.to_string())?);
        }
    }
    let certificates = certificates.values().flatten().map(|stored| &*stored.certificate);
    Ok(KnownKeys::of(certificates, signing.public()))
}

/// Returns the definition from the history of the workflow, and the proposal that created it.
fn definition(store: &dyn Store, row: &ExecutionRow, hash: &str) -> Result<BTreeMap<&'static str, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    let (Some(organization), Some(workflow)) = (&row.organization, &row.workflow_id) else { return Ok(files) };
    let repository = Repository::of(store.catalogue(), organization);
    let failed = |problem: crate::http::problem::Problem| problem.message;
    let Some(version) = proposal_review::entry(repository, workflow, hash).map_err(failed)? else { return Ok(files) };
    files.insert("definition.json", json::canonical(&version.data.0).into_bytes());
    if let Some(proposal) = &version.source_proposal_id {
        let stored = repository.get::<Proposal>(&proposal_key(workflow, proposal)).map_err(failed)?;
        files.extend(stored.map(|stored| ("proposals.ndjson", line(&stored.body))));
    }
    Ok(files)
}

fn notes(loader: &Loader, key: ExecutionKey) -> Result<Vec<u8>, String> {
    let notes = loader.notes(key).map_err(|error| error.to_string())?;
    let value = |note: &mainspring_kernel::note::Note| {
        let (kind, place) = match note.subject {
            Subject::Erased { sequence, place } => ("erased", Value::from(vec![sequence.into(), place.into()])),
            Subject::Ended => ("ended", Value::Null),
        };
        Value::map([
            ("at", Value::from(rfc3339(note.at))),
            ("by", note.by.as_str().into()),
            ("frameAndValue", place),
            ("kind", kind.into()),
            ("reason", note.reason.as_str().into()),
        ])
    };
    Ok(lines(&notes.iter().map(value).collect::<Vec<_>>()))
}

/// Returns the whole log of an organization, as `GET /api/audit/export` writes it.
fn audit_log(store: &dyn Store, organization: &str) -> Result<Vec<u8>, String> {
    let catalogue = store.catalogue();
    let failed = |error: mainspring_store::StoreError| error.to_string();
    let Some(head) = catalogue.audit_head(organization).map_err(failed)? else { return Ok(Vec::new()) };
    let (mut entries, mut after, mut last_at) = (Vec::new(), 0, 0);
    while after < head.number {
        let rows = catalogue.audit(organization, after, ReadLimit::of(PAGE_MAX)).map_err(failed)?;
        if rows.is_empty() {
            return Err(format!("entry {} of the audit log of {organization} is missing", after + 1));
        }
        for row in rows.iter().filter(|row| row.number <= head.number) {
            (after, last_at) = (row.number, row.entry.at);
            entries.extend(line(&Entry::from(row)));
        }
        if entries.len() > EXPORT_BYTES_MAX {
            return Err(format!("the audit log of {organization} has more than {EXPORT_BYTES_MAX} bytes"));
        }
    }
    // The time of the last entry stands for the time of the export, so that equal stores give equal archives.
    let mut log = line(&ExportHead::new(organization, last_at, Some(&head)));
    log.extend(entries);
    Ok(log)
}

/// Returns the executions that started at or after a time, the oldest first. `None` if there are more than `most`.
///
/// # Errors
/// Fails if the store cannot be read.
pub fn since(
    store: &dyn Store,
    at: u64,
    most: usize,
) -> Result<Option<Vec<ExecutionRow>>, mainspring_store::StoreError> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let rows = store.executions(&Filter::default(), before, PAGE)?;
        let Some(last) = rows.last() else { break };
        before = Some(last.key);
        // Keys sort by time of creation, and an execution starts at once or later.
        found.extend(rows.into_iter().filter(|row| row.started_at >= at));
        if found.len() > most {
            return Ok(None);
        }
    }
    found.reverse();
    Ok(Some(found))
}

/// Returns the heads of all journals and audit logs.
///
/// # Errors
/// Names the head that cannot be read.
pub fn heads(installation: Installation<'_>) -> Result<Vec<Head>, String> {
    let Installation { store, loader, .. } = installation;
    let failed = |error: mainspring_store::StoreError| error.to_string();
    let (mut heads, mut before) = (Vec::new(), None);
    loop {
        let rows = store.executions(&Filter::default(), before, PAGE).map_err(failed)?;
        let Some(last) = rows.last() else { break };
        before = Some(last.key);
        for row in &rows {
            loader.check_head(row.key).map_err(|error| format!("execution {}: {error}", row.id))?;
            let head =
                store.head(row.key).map_err(failed)?.ok_or_else(|| format!("execution {} has no head", row.id))?;
            heads.push(Head { of: HeadOf::Execution(row.key), number: head.head.sequence, hash: head.head.hash });
        }
    }
    let mut after = None;
    loop {
        let listing = Listing { after, most: ReadLimit::of(PAGE_MAX), ..Listing::default() };
        let page =
            Repository::of(store.catalogue(), "").list::<Organization>(listing).map_err(|problem| problem.message)?;
        for organization in &page.rows {
            let head = store.catalogue().audit_head(&organization.id).map_err(failed)?;
            heads.extend(head.map(|head| Head {
                of: HeadOf::AuditLog(organization.id.clone()),
                number: head.number,
                hash: head.hash,
            }));
        }
        after = page.next_cursor(|last| last.id.clone());
        if after.is_none() {
            break;
        }
    }
    heads.sort_by(|a, b| a.of.cmp(&b.of));
    Ok(heads)
}

/// Compares a store with pinned heads. Returns a sentence for each that the store no longer contains.
///
/// # Errors
/// Fails if the store cannot be read.
pub fn rewound(store: &dyn Store, pinned: &[Head]) -> Result<Vec<String>, mainspring_store::StoreError> {
    let mut found = Vec::new();
    for head in pinned {
        let present = match &head.of {
            HeadOf::Execution(key) => {
                let frames = store.frames(*key, head.number, ReadLimit::of(1))?;
                let frame = frames.first().filter(|frame| frame.sequence == head.number);
                let end = store.head(*key)?.filter(|row| row.head.sequence >= head.number);
                end.and(frame).and_then(|frame| Frame::read(frame).ok()).map(|(_, hash)| hash)
            }
            HeadOf::AuditLog(organization) => {
                let before = head.number.saturating_sub(1);
                let rows = store.catalogue().audit(organization, before, ReadLimit::of(1))?;
                rows.first().filter(|row| row.number == head.number).map(|row| row.hash)
            }
        };
        let (name, number) = (head.of.name(), head.number);
        match present {
            Some(hash) if hash == head.hash => {}
            Some(_) => found.push(format!("{name}: number {number} is another one than the pinned one")),
            None => found.push(format!("{name}: number {number} is missing")),
        }
    }
    Ok(found)
}
