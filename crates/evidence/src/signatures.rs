//! The signatures of an execution's receipts in an archive, and the executor keys that made them.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use mainspring_kernel::{
    decide::SIGNED_RECEIPTS_SINCE,
    hash::Hash,
    json,
    receipt::{Receipt, Recorder},
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
                let mut value = receipt.to_value(*payload, &Recorder::default());
                if let Value::Map(map) = &mut value {
                    map.insert("executor".into(), Value::Null);
                }
                broken_line(why, proof, value)
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
