//! The signatures of an execution's receipts in an archive, and the executor keys that made them.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use mainspring_kernel::{decide::SIGNED_RECEIPTS_SINCE, hash::Hash, json, receipt::Receipt, value::Value};

use crate::{
    documents::lines,
    receipts::{Certificate, Fault, KnownKeys, Proof},
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
}

/// Checks the proofs of receipts, by sequence, and writes the file.
pub(crate) fn derive(
    recorded: &[Recorded],
    proofs: &BTreeMap<u64, Vec<u8>>,
    known: &KnownKeys,
    decide_version: u32,
) -> Result<Signatures, String> {
    let (mut found, mut unsigned) = (Vec::new(), 0);
    for Recorded { receipt, payload } in recorded {
        let Some((sequence, _)) = receipt.frame else { continue };
        let place = |why: String| {
            format!("frame {sequence}: the receipt of step `{}`, attempt {}: {why}", receipt.step, receipt.attempt)
        };
        let Some(bytes) = proofs.get(&sequence) else {
            if decide_version >= SIGNED_RECEIPTS_SINCE || !found.is_empty() {
                return Err(place("its signature is missing, and was stored with the receipt".into()));
            }
            unsigned += 1;
            continue;
        };
        let proof = Proof::decode(bytes).map_err(|_| place(Fault::NoProof.to_string()))?;
        let receipt = Receipt { via: proof.via, ..receipt.clone() };
        let certificate = known.check(&receipt, *payload, &proof).map_err(|fault| place(fault.to_string()))?;
        let recorder = certificate.recorder();
        found.push(Value::map([
            ("envelope", Value::from(STANDARD.encode(receipt.envelope(*payload, &recorder)))),
            ("proof", STANDARD.encode(bytes).into()),
            ("receipt", receipt.to_value(*payload, &recorder)),
            ("sequence", sequence.into()),
        ]));
    }
    let own: BTreeSet<u64> = recorded.iter().filter_map(|one| Some(one.receipt.frame?.0)).collect();
    let stray = proofs.keys().find(|sequence| !own.contains(sequence));
    if let Some(stray) = stray {
        return Err(format!("frame {stray} has a signature and no receipt"));
    }
    Ok(Signatures { text: lines(&found), signed: found.len() as u64, unsigned })
}

/// Reads the proofs of a file, by sequence.
pub(crate) fn read(text: &[u8]) -> Result<BTreeMap<u64, Vec<u8>>, String> {
    let mut proofs = BTreeMap::new();
    for (number, line) in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        let read = || {
            let line = json::value(line).ok()?;
            let proof = STANDARD.decode(line.get("proof")?.as_text()?).ok()?;
            Some((line.get("sequence")?.as_u64()?, proof))
        };
        let (sequence, proof) = read().ok_or_else(|| format!("line {} is no signature", number + 1))?;
        proofs.insert(sequence, proof);
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
