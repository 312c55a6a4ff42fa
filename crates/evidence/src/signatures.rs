//! The signatures of an execution's receipts in an archive, and the executor keys that made them.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use mainspring_kernel::{
    decide::SIGNED_RECEIPTS_SINCE,
    hash::Hash,
    input::Input,
    json,
    receipt::{Receipt, Recorder, Via, payload_of_late},
    state::State,
    value::Value,
};

use crate::{
    documents::lines,
    receipts::{Certificate, Fault, KnownKeys, Proof, SignatureChecks},
    signing::PublicKey,
};

/// The executor keys of an archive, one line for each.
pub const EXECUTOR_KEYS: &str = "executor-keys.ndjson";

/// The signatures of an execution's receipts, one line for each.
pub(crate) const SIGNATURES: &str = "signatures.ndjson";

/// The late receipts of an execution, one line for each.
pub(crate) const LATE_RECEIPTS: &str = "late-receipts.ndjson";

/// A receipt that came too late to count, as a store has it beside the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// The time of its arrival, in milliseconds since 1970.
    pub at: u64,
    /// The input in the kernel's encoding; empty once it was erased.
    pub body: Vec<u8>,
    /// The proof of its signature.
    pub proof: Option<Vec<u8>>,
}

/// A receipt that a journal contains, with its payload hash. Its way is not in the journal.
pub(crate) struct Recorded {
    pub(crate) receipt: Receipt,
    pub(crate) payload: Hash,
}

/// The checked signatures of a journal.
pub(crate) struct Signatures {
    /// The file.
    pub(crate) text: Vec<u8>,
    pub(crate) signed: u64,
    pub(crate) unsigned: u64,
    /// Receipts whose signature is missing or wrong: the place of each and the reason.
    pub(crate) broken: Vec<String>,
}

/// Checks the proofs of receipts, by sequence, and writes the file. Broken signatures have lines as well, so that an archive
/// shows them with all that surrounds them.
pub(crate) fn derive(
    recorded: &[Recorded],
    proofs: &BTreeMap<u64, Vec<u8>>,
    known: &KnownKeys,
    decide_version: u32,
) -> Signatures {
    let mut found = Signatures { text: Vec::new(), signed: 0, unsigned: 0, broken: Vec::new() };
    let (mut written, mut checks) = (BTreeMap::new(), SignatureChecks::default());
    for Recorded { receipt, payload } in recorded {
        let Some((sequence, _)) = receipt.frame else { continue };
        let proof = proofs.get(&sequence);
        if proof.is_none() && decide_version < SIGNED_RECEIPTS_SINCE && found.signed == 0 && found.broken.is_empty() {
            found.unsigned += 1;
            continue;
        }
        let line = match checked(receipt, *payload, proof, known, &mut checks) {
            Ok(line) => {
                found.signed += 1;
                line
            }
            Err(why) => {
                let (step, attempt) = (&receipt.step, receipt.attempt);
                found.broken.push(format!("frame {sequence}: the receipt of step `{step}`, attempt {attempt}: {why}"));
                broken_line(why, proof, without_executor(receipt, *payload))
            }
        };
        written.insert(sequence, line);
    }
    for (sequence, proof) in proofs.iter().filter(|(sequence, _)| !written.contains_key(sequence)).collect::<Vec<_>>() {
        let why = "it has a signature and no receipt".to_string();
        found.broken.push(format!("frame {sequence}: {why}"));
        written.insert(*sequence, broken_line(why, Some(proof), Value::Null));
    }
    let with_place = |(sequence, mut line): (u64, Value)| {
        if let Value::Map(map) = &mut line {
            map.insert("sequence".into(), sequence.into());
        }
        line
    };
    found.text = lines(&written.into_iter().map(with_place).collect::<Vec<_>>());
    found
}

/// Checks the proofs of late receipts, and writes the file. Nothing proves that a late receipt is missing: they have no chain.
pub(crate) fn derive_late(state: &State, all: &[Late], known: &KnownKeys) -> Signatures {
    let mut found = Signatures { text: Vec::new(), signed: 0, unsigned: 0, broken: Vec::new() };
    let (mut written, mut checks) = (Vec::new(), SignatureChecks::default());
    for (number, late) in (0u64..).zip(all) {
        let mut line = match late.body.is_empty() {
            true => Value::map([("erased", Value::from(true))]),
            false => late_line(state, late, known, &mut checks, &mut found),
        };
        if let Value::Map(map) = &mut line {
            map.insert("atMs".into(), late.at.into());
            map.insert("number".into(), number.into());
        }
        written.push(line);
    }
    found.text = lines(&written);
    found
}

/// Checks a late receipt, counts it, and returns its line.
fn late_line(
    state: &State,
    late: &Late,
    known: &KnownKeys,
    checks: &mut SignatureChecks,
    found: &mut Signatures,
) -> Value {
    let payload = payload_of_late(&late.body);
    let receipt = match Input::decode(&late.body) {
        Ok(input) => Receipt::of(state, &input, None, Via::Executor, late.at, None)
            .ok_or_else(|| "it is not the receipt of a step of this workflow".to_string()),
        Err(error) => Err(format!("its content cannot be decoded: {error}")),
    };
    let (receipt, checked) = match receipt {
        Ok(receipt) => {
            let is_first_signed = found.signed == 0 && found.broken.is_empty();
            if late.proof.is_none() && state.decide_version < SIGNED_RECEIPTS_SINCE && is_first_signed {
                found.unsigned += 1;
                let line = [("proof", Value::Null), ("receipt", without_executor(&receipt, payload))];
                return with_body(Value::map(line), late);
            }
            let checked = checked(&receipt, payload, late.proof.as_ref(), known, checks);
            (receipt, checked)
        }
        Err(why) => (Receipt::undecodable(state, &late.body, late.at), Err(why)),
    };
    let line = match checked {
        Ok(line) => {
            found.signed += 1;
            line
        }
        Err(why) => {
            let (step, attempt) = (&receipt.step, receipt.attempt);
            found.broken.push(format!("a late receipt: the receipt of step `{step}`, attempt {attempt}: {why}"));
            broken_line(why, late.proof.as_ref(), without_executor(&receipt, payload))
        }
    };
    with_body(line, late)
}

fn with_body(mut line: Value, late: &Late) -> Value {
    if let Value::Map(map) = &mut line {
        map.insert("body".into(), STANDARD.encode(&late.body).into());
    }
    line
}

fn without_executor(receipt: &Receipt, payload: Hash) -> Value {
    let mut value = receipt.to_value(payload, &Recorder::default());
    if let Value::Map(map) = &mut value {
        map.insert("executor".into(), Value::Null);
    }
    value
}

/// Reads the late receipts of a file, in order.
pub(crate) fn read_late(text: &[u8]) -> Result<Vec<Late>, String> {
    let mut all = Vec::new();
    for (number, line) in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        let read = || {
            let line = json::value(line).ok()?;
            let bytes = |key: &str| match line.get(key) {
                None | Some(Value::Null) => Some(None),
                Some(value) => Some(Some(STANDARD.decode(value.as_text()?).ok()?)),
            };
            let at = line.get("atMs")?.as_u64()?;
            Some(Late { at, body: bytes("body")?.unwrap_or_default(), proof: bytes("proof")? })
        };
        all.push(read().ok_or_else(|| format!("line {} is no late receipt", number + 1))?);
    }
    Ok(all)
}

/// Checks the signature of a receipt, and returns its line.
fn checked(
    receipt: &Receipt,
    payload: Hash,
    bytes: Option<&Vec<u8>>,
    known: &KnownKeys,
    checks: &mut SignatureChecks,
) -> Result<Value, String> {
    let bytes = bytes.ok_or("its signature is missing, and was stored with the receipt")?;
    let proof = Proof::decode(bytes).map_err(|_| Fault::NoProof.to_string())?;
    let receipt = Receipt { via: proof.via, ..receipt.clone() };
    let certificate = known.check(&receipt, payload, &proof, checks).map_err(|fault| fault.to_string())?;
    let recorder = certificate.recorder();
    Ok(Value::map([
        ("envelope", Value::from(STANDARD.encode(receipt.envelope(payload, &recorder)))),
        ("proof", STANDARD.encode(bytes).into()),
        ("receipt", receipt.to_value(payload, &recorder)),
    ]))
}

fn broken_line(why: String, proof: Option<&Vec<u8>>, receipt: Value) -> Value {
    Value::map([
        ("error", Value::from(why)),
        ("proof", proof.map(|proof| STANDARD.encode(proof)).into()),
        ("receipt", receipt),
    ])
}

/// Reads the proofs of a file, by sequence. A line of a missing signature has none.
pub(crate) fn read(text: &[u8]) -> Result<BTreeMap<u64, Vec<u8>>, String> {
    let mut proofs = BTreeMap::new();
    for (number, line) in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        let read = || {
            let line = json::value(line).ok()?;
            let proof = match line.get("proof")? {
                Value::Null => None,
                proof => Some(STANDARD.decode(proof.as_text()?).ok()?),
            };
            Some((line.get("sequence")?.as_u64()?, proof))
        };
        let (sequence, proof) = read().ok_or_else(|| format!("line {} is no signature", number + 1))?;
        proofs.extend(proof.map(|proof| (sequence, proof)));
    }
    Ok(proofs)
}

/// Writes the file of executor keys.
pub fn write_keys<'c>(certificates: impl IntoIterator<Item = &'c Certificate>) -> Vec<u8> {
    let line = |certificate: &Certificate| {
        let mut value = certificate.to_value();
        if let Value::Map(map) = &mut value {
            map.insert("certificate".into(), STANDARD.encode(certificate.encode()).into());
            map.insert("publicKey".into(), certificate.key.hex().into());
        }
        value
    };
    lines(&certificates.into_iter().map(line).collect::<Vec<_>>())
}

/// Reads the file of executor keys. Every one must be certified by the installation.
pub(crate) fn read_keys(text: &[u8], installation: PublicKey) -> Result<KnownKeys, String> {
    let certificate = |line: &[u8]| {
        let line = json::value(line).ok()?;
        STANDARD.decode(line.get("certificate")?.as_text()?).ok()
    };
    let mut certificates = Vec::new();
    for (number, line) in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        certificates.push(certificate(line).ok_or_else(|| format!("line {} is no executor key", number + 1))?);
    }
    let known = KnownKeys::of(certificates.iter().map(Vec::as_slice), installation);
    if known.certificates().count() != certificates.len() {
        return Err(format!("a key is not certified by {}", installation.id()));
    }
    match write_keys(known.certificates()) == text {
        true => Ok(known),
        false => Err("it is not in the form in which keys are written".into()),
    }
}
