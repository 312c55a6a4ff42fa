//! Every byte of a proof, of a certificate and of an envelope counts.

use mainspring_kernel::key::ExecutionKey;

use super::*;

fn receipt(number: u8) -> Receipt {
    Receipt {
        execution: ExecutionKey([number; 16]),
        workflow_hash: Hash([1; 32]),
        plan_hash: Hash([2; 32]),
        step: format!("fetch[{number}]"),
        attempt: 1,
        intent: Some(Hash([3; 32])),
        effect: "bash".into(),
        status: "done",
        via: Via::Executor,
        at: 1_000 + u64::from(number),
        frame: Some((7, Hash([4; 32]))),
    }
}

const PAYLOAD: Hash = Hash([5; 32]);

fn installation() -> SigningKey {
    SigningKey::of_installation(&[9; 32])
}

fn key(seed: u8) -> ExecutorKey {
    ExecutorKey::new(&[seed; 32], &installation(), "node-1", "0.1.0", 500)
}

fn sign(key: &ExecutorKey, count: u8) -> Vec<Proof> {
    let envelope = |number| (Via::Executor, receipt(number).envelope(PAYLOAD, key.recorder()));
    key.sign(&(0..count).map(envelope).collect::<Vec<_>>())
}

/// Checks one receipt alone.
fn check<'k>(known: &'k KnownKeys, receipt: &Receipt, payload: Hash, proof: &Proof) -> Result<&'k Certificate, Fault> {
    known.check(receipt, payload, proof, &mut SignatureChecks::default())
}

fn known(keys: &[&ExecutorKey]) -> KnownKeys {
    let encoded: Vec<_> = keys.iter().map(|key| key.certificate().encode()).collect();
    KnownKeys::of(encoded.iter().map(Vec::as_slice), installation().public())
}

#[test]
fn each_receipt_of_a_group_of_every_size_is_proven_alone() {
    let key = key(1);
    let known = known(&[&key]);
    for count in 1..=2 * GROUP_RECEIPTS_MAX as u8 + 1 {
        for (number, proof) in (0..).zip(sign(&key, count)) {
            let proof = Proof::decode(&proof.encode()).unwrap();
            assert_eq!(check(&known, &receipt(number), PAYLOAD, &proof), Ok(key.certificate()), "{number} of {count}");
            let other = receipt(number ^ 1);
            assert_eq!(check(&known, &other, PAYLOAD, &proof), Err(Fault::OtherReceipt(proof.key)));
        }
    }
}

#[test]
fn a_change_of_any_field_is_found() {
    let key = key(1);
    let known = known(&[&key]);
    let proof = &sign(&key, 3)[2];
    let honest = receipt(2);
    let changed = [
        Receipt { execution: ExecutionKey([8; 16]), ..honest.clone() },
        Receipt { workflow_hash: Hash([8; 32]), ..honest.clone() },
        Receipt { plan_hash: Hash([8; 32]), ..honest.clone() },
        Receipt { step: "fetch[3]".into(), ..honest.clone() },
        Receipt { attempt: 2, ..honest.clone() },
        Receipt { intent: None, ..honest.clone() },
        Receipt { effect: "http".into(), ..honest.clone() },
        Receipt { status: "failed", ..honest.clone() },
        Receipt { via: Via::Inbox, ..honest.clone() },
        Receipt { at: 9, ..honest.clone() },
        Receipt { frame: Some((8, Hash([4; 32]))), ..honest.clone() },
        Receipt { frame: Some((7, Hash([8; 32]))), ..honest.clone() },
        Receipt { frame: None, ..honest.clone() },
    ];
    for other in changed {
        assert_eq!(check(&known, &other, PAYLOAD, proof), Err(Fault::OtherReceipt(proof.key)), "{other:?}");
    }
    assert_eq!(check(&known, &honest, Hash([8; 32]), proof), Err(Fault::OtherReceipt(proof.key)));
    assert!(check(&known, &honest, PAYLOAD, proof).is_ok());
}

#[test]
fn a_change_of_any_byte_of_a_proof_or_a_certificate_is_found() {
    let key = key(1);
    let honest = known(&[&key]);
    let whole = sign(&key, 3)[2].encode();
    let certificate = key.certificate().encode();
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            // The way is checked through the envelope, which the caller makes with it.
            let is_proven = Proof::decode(&bytes).is_ok_and(|proof| {
                let receipt = Receipt { via: proof.via, ..receipt(2) };
                check(&honest, &receipt, PAYLOAD, &proof).is_ok()
            });
            assert!(!is_proven, "bit {bit} of byte {place}");
        }
    }
    for place in 0..certificate.len() {
        let mut bytes = certificate.clone();
        bytes[place] ^= 1;
        let known = KnownKeys::of([bytes.as_slice()], installation().public());
        assert_eq!(known.certificates().count(), 0, "byte {place}");
    }
}

#[test]
fn the_key_of_another_installation_is_unknown() {
    let (own, other) = (key(1), key(2));
    let proof = &sign(&other, 1)[0];
    let known = known(&[&own]);
    assert_eq!(check(&known, &receipt(0), PAYLOAD, proof), Err(Fault::UnknownExecutor(other.recorder().key)));
    let forged = ExecutorKey::new(&[2; 32], &SigningKey::of_installation(&[8; 32]), "node-1", "0.1.0", 500);
    let certificate = forged.certificate().encode();
    let known = KnownKeys::of([certificate.as_slice()], installation().public());
    assert_eq!(check(&known, &receipt(0), PAYLOAD, proof), Err(Fault::UnknownExecutor(other.recorder().key)));
}

/// The receipts of a group follow each other in a journal, and have one signature.
#[test]
fn the_signature_of_a_group_is_checked_once() {
    let key = key(1);
    let known = known(&[&key]);
    let groups = 3;
    let proofs = sign(&key, groups * GROUP_RECEIPTS_MAX as u8);
    let mut checks = SignatureChecks::default();
    for (number, proof) in (0..).zip(&proofs) {
        assert!(known.check(&receipt(number), PAYLOAD, proof, &mut checks).is_ok());
    }
    assert_eq!(checks.count(), u64::from(groups));
    // A root that was proven proves no other envelope, and no other signature of it.
    let last = proofs.len() as u8 - 1;
    let proof = &proofs[usize::from(last)];
    assert!(known.check(&receipt(0), PAYLOAD, proof, &mut checks).is_err());
    let mut forged = proof.clone();
    forged.signature[0] ^= 1;
    assert!(known.check(&receipt(last), PAYLOAD, &forged, &mut checks).is_err());
    assert_eq!(checks.count(), u64::from(groups) + 2);
}
