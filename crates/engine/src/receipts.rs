//! Signed receipts: the executor key of a node, which signs commits, and the check of stored receipts.
//!
//! The commit thread signs, so that the driver does not wait. The key is made when the engine starts, and its secret part
//! stays in the memory of this process: a copy of the data folder cannot sign.

use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use mainspring_evidence::{
    receipts::{Certificate, ExecutorKey, Fault, KnownKeys, Proof, SignatureChecks},
    signing::{PublicKey, SigningKey},
};
use mainspring_kernel::{
    decide::SIGNED_RECEIPTS_SINCE,
    frame::Frame,
    hash::Hash,
    input::Input,
    journal::Fold,
    key::ExecutionKey,
    receipt::{Receipt, Via, intent_of, payload_of_frame, payload_of_late},
    state::State,
    stored_frame::StoredFrame,
    value::Value,
};
use mainspring_store::{
    Batch, CommitError, LateReceipt, NewReceipt, Part, PartOutcome, Signed, Store, StoreError, StoredExecutorKey,
};

use crate::{
    clock::now_ms,
    error::EngineError,
    journal_loader::{LoadError, Loader},
};

/// Proofs of one read.
const PROOFS_AT_A_TIME: usize = 1024;

/// Signs the receipts of commits.
#[derive(Debug)]
pub struct Signer {
    key: ExecutorKey,
    stored: StoredExecutorKey,
    /// A commit with the public part is durable.
    is_stored: bool,
}

impl Signer {
    /// Makes an executor key, certified with the installation's key, for a node of this name.
    pub(crate) fn new(installation: &[u8; 32], name: &str) -> Result<Self, EngineError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| EngineError::Stopped(error.to_string()))?;
        Ok(Self::of_seed(&seed, installation, name, now_ms()))
    }

    /// The same with given randomness and time.
    pub fn of_seed(seed: &[u8; 32], installation: &[u8; 32], name: &str, since: u64) -> Self {
        let installation = SigningKey::of_installation(installation);
        let key = ExecutorKey::new(seed, &installation, name, env!("CARGO_PKG_VERSION"), since);
        let certificate = key.certificate().encode().into();
        let stored = StoredExecutorKey { id: key.recorder().key, certificate };
        Self { key, stored, is_stored: false }
    }

    /// Signs the receipts of a batch. A batch that is sent again keeps its signatures.
    pub fn sign(&self, batch: &Batch) {
        let is_unsigned = |part: &&Part| !part.receipts.new.is_empty() && part.receipts.signed.get().is_none();
        let parts: Vec<&Part> = batch.parts.iter().filter(is_unsigned).collect();
        let envelopes: Vec<(Via, Vec<u8>)> = parts.iter().flat_map(|part| self.envelopes(part)).collect();
        let mut proofs = self.key.sign(&envelopes).into_iter().map(|proof| proof.encode());
        for part in parts {
            let proofs = proofs.by_ref().take(part.receipts.new.len()).collect();
            let key = (!self.is_stored).then(|| self.stored.clone());
            let _ = part.receipts.signed.set(Signed { proofs, key });
        }
    }

    /// Learns if the store has the public part of the key.
    pub fn committed(&mut self, batch: &Batch, answer: &Result<Vec<PartOutcome>, CommitError>) {
        let Ok(answers) = answer else { return };
        let is_durable = |(part, outcome): (&Part, &PartOutcome)| {
            *outcome == PartOutcome::Durable && part.receipts.signed.get().is_some_and(|signed| signed.key.is_some())
        };
        self.is_stored |= batch.parts.iter().zip(answers).any(is_durable);
    }

    fn envelopes<'p>(&'p self, part: &'p Part) -> impl Iterator<Item = (Via, Vec<u8>)> + 'p {
        let mut frames = part.frames.iter();
        let mut payload = move |new: &NewReceipt| match (new.late, new.receipt.frame) {
            (Some(late), _) => part.receipts.late.get(late).map(|late| payload_of_late(&late.body)),
            (None, Some((sequence, _))) => {
                // Receipts are in the order of their frames.
                let frame = frames.find(|frame| frame.sequence == sequence);
                frame.and_then(|frame| payload_of_frame(&frame.frame).ok())
            }
            (None, None) => None,
        };
        part.receipts.new.iter().map(move |new| {
            let payload = payload(new).expect("a draft has the frame or the late receipt of each of its receipts");
            (new.receipt.via, new.receipt.envelope(payload, self.key.recorder()))
        })
    }
}

/// A stored receipt after its check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedReceipt {
    /// The receipt as the journal has it, or the late one.
    pub receipt: Receipt,
    /// SHA-256, as the envelope has it.
    pub payload: Hash,
    /// The stored proof, if there is one.
    pub proof: Option<Vec<u8>>,
    /// The result of the check.
    pub verdict: Verdict,
}

/// The result of checking a receipt.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// A known executor key has signed it.
    Proven(Arc<Certificate>),
    /// It has no signature, and was recorded before receipts were signed.
    Unsigned,
    /// It is not proven, for this reason.
    Broken(String),
}

/// The receipts of an execution, in numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReceiptCounts {
    /// Receipts that a known executor key has signed.
    pub proven: u64,
    /// Receipts that were recorded before receipts were signed.
    pub unsigned: u64,
    /// The first receipt that is not proven: its place and the reason.
    pub broken: Option<String>,
    /// The keys that signed, with their certificates.
    pub executors: BTreeMap<Hash, Arc<Certificate>>,
}

impl CheckedReceipt {
    /// Returns the receipt as data for people and programs.
    pub fn to_value(&self) -> Value {
        let (status, error, certificate) = match &self.verdict {
            Verdict::Proven(certificate) => ("verified", None, Some(certificate)),
            Verdict::Unsigned => ("unsigned", None, None),
            Verdict::Broken(why) => ("broken", Some(why.as_str()), None),
        };
        let recorder = certificate.map(|certificate| certificate.recorder());
        let mut value = match &recorder {
            Some(recorder) => self.receipt.to_value(self.payload, recorder),
            None => self.receipt.to_value(self.payload, &Default::default()),
        };
        if let Value::Map(map) = &mut value {
            if recorder.is_none() {
                map.insert("executor".into(), Value::Null);
            }
            map.insert("signature".into(), status.into());
            map.insert("error".into(), error.into());
        }
        value
    }
}

impl ReceiptCounts {
    fn count(&mut self, checked: &CheckedReceipt) {
        match &checked.verdict {
            Verdict::Proven(certificate) => {
                self.proven += 1;
                self.executors.entry(certificate.key.hash()).or_insert_with(|| certificate.clone());
            }
            Verdict::Unsigned => self.unsigned += 1,
            Verdict::Broken(why) => {
                let place = match checked.receipt.frame {
                    Some((sequence, _)) => format!("frame {sequence}"),
                    None => "a late receipt".into(),
                };
                let (step, attempt) = (&checked.receipt.step, checked.receipt.attempt);
                self.broken
                    .get_or_insert_with(|| format!("{place}: the receipt of step `{step}`, attempt {attempt}: {why}"));
            }
        }
    }
}

/// The place of a receipt among those of an execution. A receipt that is recorded later does not change the places of
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReceiptPlace {
    /// The sequence of its frame.
    Frame(u64),
    /// The number of a late receipt, from 0. Late receipts follow those of the journal.
    Late(u64),
}

/// The end of a part of the receipts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageEnd {
    /// The place of the last receipt that was passed, if others follow.
    pub next: Option<ReceiptPlace>,
    /// The number of signatures that were checked.
    pub signature_checks: u64,
}

impl Loader {
    /// Checks the receipts of an execution, in order, the late ones last, and passes each. `None` if the execution does
    /// not exist.
    ///
    /// # Errors
    /// Fails if the journal is broken or the store does not answer.
    pub fn receipts(
        &self,
        execution: ExecutionKey,
        mut each: impl FnMut(CheckedReceipt),
    ) -> Result<Option<ReceiptCounts>, LoadError> {
        let mut counts = ReceiptCounts::default();
        let take = |_, checked: CheckedReceipt| {
            counts.count(&checked);
            each(checked);
        };
        let read = self.visit_receipts(execution, |_| true, take)?;
        Ok(read.map(|_| counts))
    }

    /// Checks the receipts after a place, or all if there is none, and passes each until `each` returns false. Only their
    /// signatures are checked, but the whole journal is read. `None` if the execution does not exist.
    ///
    /// # Errors
    /// Fails if the journal is broken or the store does not answer.
    pub fn receipts_after(
        &self,
        execution: ExecutionKey,
        after: Option<ReceiptPlace>,
        mut each: impl FnMut(CheckedReceipt) -> bool,
    ) -> Result<Option<PageEnd>, LoadError> {
        let (is_full, has_more, mut last) = (Cell::new(false), Cell::new(false), None);
        let wants = |place| {
            let is_behind = after.is_none_or(|after| place > after);
            has_more.set(has_more.get() || is_behind && is_full.get());
            is_behind && !is_full.get()
        };
        let take = |place, checked| {
            last = Some(place);
            is_full.set(!each(checked));
        };
        let read = self.visit_receipts(execution, wants, take)?;
        let next = last.filter(|_| has_more.get());
        Ok(read.map(|signature_checks| PageEnd { next, signature_checks }))
    }

    /// Checks and passes the receipts that are selected. Returns the number of signatures that
    /// were checked.
    fn visit_receipts(
        &self,
        execution: ExecutionKey,
        wants: impl Fn(ReceiptPlace) -> bool,
        mut take: impl FnMut(ReceiptPlace, CheckedReceipt),
    ) -> Result<Option<u64>, LoadError> {
        let mut check = Check::new(&**self.store(), self.public_key());
        let mut failed = None;
        let read = self.walk(execution, |fold, stored| {
            let place = ReceiptPlace::Frame(stored.sequence);
            match check.frame(fold, stored, || wants(place))? {
                Ok(checked) => checked.into_iter().for_each(|checked| take(place, checked)),
                Err(error) => _ = failed.get_or_insert(error),
            }
            Ok(())
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let Some(read) = read else { return Ok(None) };
        // Late receipts have an order of their own: those of an older release come before the first signed one.
        check.has_signed = false;
        for (place, late) in (0..).map(ReceiptPlace::Late).zip(self.store().late_receipts(execution)?) {
            // An erased one has no body.
            if late.body.is_empty() {
                continue;
            }
            if !wants(place) {
                check.has_signed |= late.proof.is_some();
                continue;
            }
            take(place, check.late(&read.journal.state, late)?);
        }
        Ok(Some(check.signatures.count()))
    }

    /// The public part of the key that certifies executor keys.
    pub fn public_key(&self) -> PublicKey {
        SigningKey::of_installation(self.key()).public()
    }
}

/// The check of one execution.
struct Check<'s> {
    store: &'s dyn Store,
    installation: PublicKey,
    /// The certificates that were read; `None` for a key that is not known.
    keys: BTreeMap<Hash, Option<Arc<Certificate>>>,
    proofs: VecDeque<(u64, Vec<u8>)>,
    /// The sequence from which on no proofs were read.
    proofs_from: Option<u64>,
    has_signed: bool,
    signatures: SignatureChecks,
}

impl<'s> Check<'s> {
    fn new(store: &'s dyn Store, installation: PublicKey) -> Self {
        let (keys, proofs) = (BTreeMap::new(), VecDeque::new());
        let (has_signed, signatures) = (false, SignatureChecks::default());
        Self { store, installation, keys, proofs, proofs_from: Some(0), has_signed, signatures }
    }

    /// Applies a frame, and checks the receipt in it if that is wanted. A failure of the store does not end the walk.
    fn frame(
        &mut self,
        fold: &mut Fold,
        stored: &StoredFrame,
        is_wanted: impl FnOnce() -> bool,
    ) -> Result<Result<Option<CheckedReceipt>, StoreError>, mainspring_kernel::journal::Broken> {
        let (Frame { input, .. }, hash) = fold.read(stored)?;
        let intent = intent_of(&fold.state, &input);
        let frame = fold.push(stored)?;
        let proof = match self.proof(fold.state.key, stored.sequence) {
            Ok(proof) => proof,
            Err(error) => return Ok(Err(error)),
        };
        let of_frame = Some((stored.sequence, hash));
        let make = |via| Receipt::of(&fold.state, &input, intent, via, frame.now, of_frame);
        let is_receipt = matches!(input, Input::Receipt { .. }) && make(Via::Executor).is_some();
        if !is_receipt && proof.is_none() || !is_wanted() {
            self.has_signed |= is_receipt && proof.is_some();
            return Ok(Ok(None));
        }
        let Ok(payload) = payload_of_frame(&stored.frame) else { return Ok(Ok(None)) };
        if !is_receipt {
            let receipt = Receipt { frame: of_frame, ..Receipt::undecodable(&fold.state, &[], frame.now) };
            let verdict = Verdict::Broken("it has a signature and no receipt".into());
            return Ok(Ok(Some(CheckedReceipt { receipt, payload, proof, verdict })));
        }
        Ok(self.checked(&fold.state, make, payload, proof))
    }

    /// Checks a late receipt. One that cannot be decoded is broken, since nothing else writes such rows.
    fn late(&mut self, state: &State, late: LateReceipt) -> Result<CheckedReceipt, StoreError> {
        let (payload, input) = (payload_of_late(&late.body), Input::decode(&late.body));
        if let Ok(input) = &input {
            let make = |via| Receipt::of(state, input, None, via, late.at, None);
            if let Some(checked) = self.checked(state, make, payload, late.proof.clone())? {
                return Ok(checked);
            }
        }
        let why = match input {
            Ok(_) => "it is not the receipt of a step of this workflow".into(),
            Err(error) => format!("its content cannot be decoded: {error}"),
        };
        self.has_signed |= late.proof.is_some();
        let receipt = Receipt::undecodable(state, &late.body, late.at);
        Ok(CheckedReceipt { receipt, payload, proof: late.proof, verdict: Verdict::Broken(why) })
    }

    fn checked(
        &mut self,
        state: &State,
        make: impl Fn(Via) -> Option<Receipt>,
        payload: Hash,
        proof: Option<Vec<u8>>,
    ) -> Result<Option<CheckedReceipt>, StoreError> {
        let decoded = proof.as_deref().map(Proof::decode);
        let via = match &decoded {
            Some(Ok(proof)) => proof.via,
            _ => Via::Executor,
        };
        let Some(receipt) = make(via) else { return Ok(None) };
        let verdict = match decoded {
            Some(Ok(proof)) => self.verdict(&receipt, payload, &proof)?,
            Some(Err(_)) => Verdict::Broken(Fault::NoProof.to_string()),
            None if self.has_signed || state.decide_version >= SIGNED_RECEIPTS_SINCE => {
                Verdict::Broken("its signature is missing, and was stored with the receipt".into())
            }
            None => Verdict::Unsigned,
        };
        self.has_signed |= proof.is_some();
        Ok(Some(CheckedReceipt { receipt, payload, proof, verdict }))
    }

    fn verdict(&mut self, receipt: &Receipt, payload: Hash, proof: &Proof) -> Result<Verdict, StoreError> {
        let certificate = match self.keys.get(&proof.key) {
            Some(known) => known.clone(),
            None => {
                let stored = self.store.executor_key(proof.key)?;
                let certificate = stored.and_then(|stored| Certificate::decode(&stored.certificate).ok());
                let is_known = |certificate: &Certificate| {
                    certificate.key.hash() == proof.key && certificate.is_signed_by(self.installation)
                };
                let known = certificate.filter(is_known).map(Arc::new);
                self.keys.insert(proof.key, known.clone());
                known
            }
        };
        let Some(certificate) = certificate else {
            return Ok(Verdict::Broken(Fault::UnknownExecutor(proof.key).to_string()));
        };
        Ok(match self.signatures.check(&certificate, receipt, payload, proof) {
            Ok(()) => Verdict::Proven(certificate),
            Err(fault) => Verdict::Broken(fault.to_string()),
        })
    }

    /// Returns the proof beside a frame. Frames are asked for in order.
    fn proof(&mut self, execution: ExecutionKey, sequence: u64) -> Result<Option<Vec<u8>>, StoreError> {
        while self.proofs.pop_front_if(|(own, _)| *own < sequence).is_some() {}
        if self.proofs.is_empty()
            && let Some(from) = self.proofs_from
        {
            let page = self.store.receipt_proofs(execution, from.max(sequence), PROOFS_AT_A_TIME)?;
            self.proofs_from = page.last().filter(|_| page.len() == PROOFS_AT_A_TIME).map(|(last, _)| last + 1);
            self.proofs = page.into();
        }
        Ok(self.proofs.pop_front_if(|(own, _)| *own == sequence).map(|(_, proof)| proof))
    }
}

/// Names this process in the certificate of its executor key: host and process id.
pub(crate) fn this_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

/// Reads the certified executor keys of a store, at most `limit`.
///
/// # Errors
/// Fails if the store cannot be read.
pub fn executor_keys(store: &dyn Store, installation: PublicKey, limit: usize) -> Result<KnownKeys, StoreError> {
    let stored = store.executor_keys(None, limit)?;
    Ok(KnownKeys::of(stored.iter().map(|key| &*key.certificate), installation))
}
