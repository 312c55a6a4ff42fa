//! The files of one execution in an archive.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    frame::Frame,
    hash::Hash,
    input::Input,
    journal::Fold,
    key::ExecutionKey,
    plan::Plan,
    receipt::{Receipt, Via, intent_of, payload_of_frame},
    record::Record,
    state::State,
    stored_frame::StoredFrame,
    value::Value,
};

use crate::{
    archive::Files,
    documents::{Documents, broken_signatures, policy},
    dsse::{self, Subject},
    journal,
    receipts::KnownKeys,
    signatures::{self, LATE_RECEIPTS, Late, Recorded, SIGNATURES, Signatures},
    signing::SigningKey,
};

/// The predicate type of a checkpoint.
pub(crate) const CHECKPOINT_TYPE: &str = "https://mainspring.dev/evidence/checkpoint/v1";

/// The files that every execution has.
pub(crate) const JOURNAL: &str = "journal.ndjson";
pub(crate) const PLAN: &str = "plan.cbor";
pub(crate) const CHECKPOINT: &str = "checkpoint.dsse.json";
pub(crate) const DERIVED: [&str; 4] = ["approvals.ndjson", "policy.ndjson", "receipts.ndjson", "summary.md"];

/// The files that an execution may have: its definition, its proposals with their reviews, its notes, the signatures of its
/// receipts, and its late receipts.
pub(crate) const OPTIONAL: [&str; 5] =
    ["definition.json", "proposals.ndjson", "notes.ndjson", SIGNATURES, LATE_RECEIPTS];

/// An execution as a store has it. Its head was checked with the installation's key.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Identity in the store, also the name of the folder.
    pub key: ExecutionKey,
    /// `None` for executions of the command line.
    pub organization: Option<String>,
    /// The stored plan.
    pub plan: Vec<u8>,
    /// The journal up to the head.
    pub frames: Vec<StoredFrame>,
    /// The proofs of receipts, by the sequence of their frames.
    pub proofs: BTreeMap<u64, Vec<u8>>,
    /// The receipts that came too late to count, in the order of their arrival.
    pub late: Vec<Late>,
    /// Files whose content does not derive from the journal, by name.
    pub others: BTreeMap<&'static str, Vec<u8>>,
}

/// The part of an archive that one execution fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFiles {
    /// The files by path.
    pub files: Files,
    /// The receipts whose signature is missing or wrong: the place of each and the reason.
    pub broken: Vec<String>,
}

/// A folded journal with its documents.
pub(crate) struct Folded {
    pub state: State,
    pub head: Hash,
    pub sequence: u64,
    pub decided_again: u64,
    pub erased: u64,
    pub derived: BTreeMap<&'static str, Vec<u8>>,
    pub receipts: Vec<Recorded>,
}

/// Returns the folder of an execution in an archive.
pub(crate) fn folder(key: ExecutionKey) -> String {
    format!("executions/{key}")
}

/// Returns the files of an execution, with a signed checkpoint of its journal.
///
/// # Errors
/// Says what is wrong with the journal.
pub fn files_of(execution: &Execution, known: &KnownKeys, signing: &SigningKey) -> Result<ExecutionFiles, String> {
    let Execution { key, organization, plan, frames, proofs, late, others } = execution;
    let mut folded = fold(*key, plan, frames, false)?;
    let mut signatures = signatures::derive(&folded.receipts, proofs, known, folded.state.decide_version);
    let late = signatures::derive_late(&folded.state, late, known);
    signatures.broken.extend(late.broken);
    folded.report(&signatures);
    let subject = Subject { name: key.to_string(), sha256: folded.head.hex() };
    let predicate =
        Value::map([("organization", Value::from(organization.as_deref())), ("sequence", folded.sequence.into())]);
    let folder = folder(*key);
    let path = |name: &str| format!("{folder}/{name}");
    let mut files = Files::from([
        (path(JOURNAL), journal::write(frames)),
        (path(PLAN), plan.clone()),
        (path(CHECKPOINT), dsse::sign(signing, &[subject], CHECKPOINT_TYPE, predicate)),
    ]);
    files.extend(folded.derived.into_iter().map(|(name, content)| (path(name), content)));
    files.extend((!signatures.text.is_empty()).then(|| (path(SIGNATURES), signatures.text)));
    files.extend((!late.text.is_empty()).then(|| (path(LATE_RECEIPTS), late.text)));
    files.extend(others.iter().map(|(name, content)| (path(name), content.clone())));
    Ok(ExecutionFiles { files, broken: signatures.broken })
}

impl Folded {
    /// Adds broken signatures to the summary.
    pub(crate) fn report(&mut self, signatures: &Signatures) {
        if let Some(summary) = self.derived.get_mut("summary.md") {
            summary.extend(broken_signatures(&signatures.broken));
        }
    }
}

/// Folds a journal and derives its documents. If `decides` is true, every input is decided again.
pub(crate) fn fold(key: ExecutionKey, plan: &[u8], frames: &[StoredFrame], decides: bool) -> Result<Folded, String> {
    let hash = Hash::of(plan);
    let decoded = Plan::decode(plan).map_err(|error| format!("{PLAN}: {error}"))?;
    let mut fold = Fold::new(key, Arc::new(decoded));
    let (mut documents, mut decided_again, mut all_erased) = (Documents::default(), 0, 0);
    let mut receipts = Vec::new();
    for stored in frames {
        let erased = Frame::erased(stored).count();
        let broken = |broken: mainspring_kernel::journal::Broken| format!("{JOURNAL}: {broken}");
        let (frame, frame_hash) = fold.read(stored).map_err(broken)?;
        let intent = intent_of(&fold.state, &frame.input);
        if let (Input::Start(start), Some(Record::Started { plan_hash, .. })) = (&frame.input, frame.records.first())
            && (*plan_hash != hash || start.plan_hash != hash)
        {
            return Err(format!("{PLAN}: it is not the plan that the journal names"));
        }
        match decides {
            true => decided_again += u64::from(fold.push_deciding(stored).map_err(broken)?),
            false => drop(fold.push(stored).map_err(broken)?),
        }
        all_erased += erased as u64;
        let of_frame = Some((frame.sequence, frame_hash));
        let receipt = Receipt::of(&fold.state, &frame.input, intent, Via::Executor, frame.now, of_frame);
        let payload = payload_of_frame(&stored.frame).map_err(|error| format!("{JOURNAL}: {error}"))?;
        receipts.extend(receipt.map(|receipt| Recorded { receipt, payload }));
        documents.add(&fold.state, &frame, erased);
    }
    let Some(sequence) = fold.next_sequence().checked_sub(1) else { return Err(format!("{JOURNAL}: it is empty")) };
    let head = fold.head();
    let derived = BTreeMap::from([
        ("approvals.ndjson", documents.approvals()),
        ("policy.ndjson", policy(&fold.state.plan)),
        ("receipts.ndjson", documents.receipts()),
        ("summary.md", documents.summary(&fold.state)),
    ]);
    Ok(Folded { state: fold.state, head, sequence, decided_again, erased: all_erased, derived, receipts })
}
