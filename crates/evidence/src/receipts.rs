//! Signed receipts: executor keys, their certificates, and one signature over several receipts.
//!
//! A node makes an executor key when it starts, and its secret part never leaves its memory. The installation's key
//! certifies the public part, with the node's name, release and start.
//!
//! A signature of Ed25519 costs as much as some dozens of hashes, so the receipts of a commit are signed in groups. The
//! envelopes of a group are the leaves of a hash tree (as in RFC 9162, 2.1, with an odd node moved up unchanged), and the key
//! signs its root. Each receipt is stored with the hashes from its leaf to the root and the signature: it can be checked
//! alone, and shows nothing of the other receipts.

use std::collections::BTreeMap;

use mainspring_kernel::{
    cbor::{CborError, Reader, Writer},
    hash::Hash,
    receipt::{Receipt, Recorder, Via},
    time::rfc3339,
    value::Value,
};

use crate::{
    limits::{CERTIFICATE_TEXT_BYTES_MAX, GROUP_RECEIPTS_MAX},
    signing::{PublicKey, SigningKey},
};

/// The longest path in the tree of a group.
const PATH_MAX: usize = GROUP_RECEIPTS_MAX.ilog2() as usize;

/// A signature of Ed25519 (RFC 8032, 5.1.6).
const SIGNATURE_BYTES: usize = 64;

/// Prefixes that keep leaves and inner nodes apart (RFC 9162, 2.1.1).
const LEAF: &[u8] = &[0];
const NODE: &[u8] = &[1];

/// The executor key of a node, with its certificate.
#[derive(Debug)]
pub struct ExecutorKey {
    secret: SigningKey,
    certificate: Certificate,
    recorder: Recorder,
}

/// The installation's statement that an executor key belongs to one of its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The executor key.
    pub key: PublicKey,
    /// Name of the node.
    pub name: String,
    /// Release of the node.
    pub release: String,
    /// Start of the node, in milliseconds since 1970. The key did not exist before.
    pub since: u64,
    /// The installation's signature of the above.
    signature: [u8; SIGNATURE_BYTES],
}

/// The proof that an executor key has signed a receipt, as it is stored beside the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Id of the executor key.
    pub key: Hash,
    /// The way by which the receipt reached the node. It is part of the envelope, and the journal does not say it.
    pub via: Via,
    /// One bit for each hash of the path, from the lowest: 1 if the hash is to the left.
    sides: u64,
    /// The hashes beside the way from the leaf to the root.
    path: Vec<Hash>,
    /// The signature of the root.
    signature: [u8; SIGNATURE_BYTES],
}

/// The executor keys that an installation has certified, by id.
#[derive(Debug, Clone, Default)]
pub struct KnownKeys(BTreeMap<Hash, Certificate>);

/// Checks receipts one after another. The receipts of a group have one signature and follow each other, so it is checked
/// once for all of them.
#[derive(Debug, Default)]
pub struct SignatureChecks {
    /// The last signature that was checked and is right: the key, what it has signed, and the signature.
    last: Option<(PublicKey, Hash, [u8; SIGNATURE_BYTES])>,
    count: u64,
}

/// The result of checking a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The stored bytes are no proof.
    NoProof,
    /// No certificate of this installation names the key.
    UnknownExecutor(Hash),
    /// The key has signed something else.
    OtherReceipt(Hash),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoProof => out.write_str("its signature cannot be read"),
            Self::UnknownExecutor(key) => write!(
                out,
                "it is signed by {}, which is no executor key that this installation has certified",
                key.prefixed()
            ),
            Self::OtherReceipt(key) => {
                write!(out, "it is not the receipt that the executor key {} has signed", key.prefixed())
            }
        }
    }
}

impl ExecutorKey {
    /// Makes the key of a node from 32 random bytes, certified by the installation's key.
    pub fn new(seed: &[u8; 32], installation: &SigningKey, name: &str, release: &str, since: u64) -> Self {
        let secret = SigningKey::of_seed(seed);
        let certificate = Certificate::new(secret.public(), installation, name, release, since);
        let recorder = certificate.recorder();
        Self { secret, certificate, recorder }
    }

    /// The public part.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The node as envelopes name it.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Signs receipts in groups. Returns a proof for each, in the same order.
    pub fn sign(&self, receipts: &[(Via, Vec<u8>)]) -> Vec<Proof> {
        receipts.chunks(GROUP_RECEIPTS_MAX).flat_map(|group| self.sign_group(group)).collect()
    }

    fn sign_group(&self, group: &[(Via, Vec<u8>)]) -> Vec<Proof> {
        let mut level: Vec<Hash> = group.iter().map(|(_, envelope)| leaf(envelope)).collect();
        let key = self.recorder.key;
        let proof =
            |(via, _): &(Via, Vec<u8>)| Proof { key, via: *via, sides: 0, path: Vec::new(), signature: [0; 64] };
        let mut proofs: Vec<Proof> = group.iter().map(proof).collect();
        let mut height = 0;
        while level.len() > 1 {
            for (place, proof) in proofs.iter_mut().enumerate() {
                let node = place >> height;
                if let Some(beside) = level.get(node ^ 1) {
                    proof.sides |= ((node & 1) as u64) << proof.path.len();
                    proof.path.push(*beside);
                }
            }
            let above = |pair: &[Hash]| match pair {
                [left, right] => inner(left, right),
                [alone] => *alone,
                _ => Hash::default(),
            };
            level = level.chunks(2).map(above).collect();
            height += 1;
        }
        let root = level.first().copied().unwrap_or_default();
        let signed = self.secret.sign(&statement_of(root));
        proofs.iter_mut().for_each(|proof| proof.signature.copy_from_slice(&signed));
        proofs
    }
}

impl Certificate {
    fn new(key: PublicKey, installation: &SigningKey, name: &str, release: &str, since: u64) -> Self {
        let (name, release) = (bounded(name), bounded(release));
        let mut certificate = Self { key, name, release, since, signature: [0; SIGNATURE_BYTES] };
        let signed = installation.sign(&certificate.statement());
        certificate.signature.copy_from_slice(&signed);
        certificate
    }

    /// The node as envelopes name it.
    pub fn recorder(&self) -> Recorder {
        Recorder { key: self.key.hash(), name: self.name.clone(), release: self.release.clone() }
    }

    /// True if the installation with this key has signed the certificate.
    pub fn is_signed_by(&self, installation: PublicKey) -> bool {
        installation.has_signed(&self.statement(), &self.signature)
    }

    fn statement(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.array(5);
        out.text("mainspring executor key 1");
        self.write(&mut out);
        out.bytes
    }

    fn write(&self, out: &mut Writer) {
        out.byte_string(&self.key.0);
        out.text(&self.name);
        out.text(&self.release);
        out.unsigned(self.since);
    }

    /// Encodes the certificate for a store or an archive.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.array(5);
        self.write(&mut out);
        out.byte_string(&self.signature);
        out.bytes
    }

    /// Reads an encoded certificate. Its signature is not checked.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, CborError> {
        let mut from = Reader::new(bytes);
        if from.array()? != 5 {
            return Err(from.error("a certificate has five parts"));
        }
        let key = PublicKey(from.byte_array()?);
        let (name, release) = (from.text()?.to_owned(), from.text()?.to_owned());
        let (since, signature) = (from.unsigned()?, from.byte_array()?);
        from.end()?;
        Ok(Self { key, name, release, since, signature })
    }

    /// Returns the certificate as data for people and programs.
    pub fn to_value(&self) -> Value {
        Value::map([
            ("key", Value::from(self.key.id())),
            ("name", self.name.as_str().into()),
            ("since", rfc3339(self.since).into()),
            ("version", self.release.as_str().into()),
        ])
    }
}

impl SignatureChecks {
    /// Checks that the key of a certificate has signed a receipt. The certificate itself is not checked.
    ///
    /// # Errors
    /// Fails if the key has signed something else.
    pub fn check(
        &mut self,
        certificate: &Certificate,
        receipt: &Receipt,
        payload: Hash,
        proof: &Proof,
    ) -> Result<(), Fault> {
        let root = proof.root(&receipt.envelope(payload, &certificate.recorder()));
        let signed = (certificate.key, root, proof.signature);
        if self.last == Some(signed) {
            return Ok(());
        }
        self.count += 1;
        if !certificate.key.has_signed(&statement_of(root), &proof.signature) {
            return Err(Fault::OtherReceipt(proof.key));
        }
        self.last = Some(signed);
        Ok(())
    }

    /// Returns the number of signatures that were checked.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Proof {
    /// Encodes the proof for a store or an archive.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(112 + 32 * self.path.len());
        out.array(6);
        out.unsigned(1);
        out.byte_string(&self.key.0);
        out.unsigned(self.via.number());
        out.unsigned(self.sides);
        let path: Vec<u8> = self.path.iter().flat_map(|hash| hash.0).collect();
        out.byte_string(&path);
        out.byte_string(&self.signature);
        out.bytes
    }

    /// Reads an encoded proof.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, CborError> {
        let mut from = Reader::new(bytes);
        if from.array()? != 6 || from.unsigned()? != 1 {
            return Err(from.error("a proof has six parts and version 1"));
        }
        let key = Hash(from.byte_array()?);
        let via = Via::of_number(from.unsigned()?).ok_or_else(|| from.error("an unknown way"))?;
        let sides = from.unsigned()?;
        let path = from.byte_string()?;
        if path.len() % 32 != 0 || path.len() / 32 > PATH_MAX || sides >> (path.len() / 32) != 0 {
            return Err(from.error("a path of another length"));
        }
        let hash = |bytes: &[u8]| Hash(bytes.try_into().unwrap_or_default());
        let path = path.chunks(32).map(hash).collect();
        let signature = from.byte_array()?;
        from.end()?;
        Ok(Self { key, via, sides, path, signature })
    }

    /// Returns the root of the tree that contains an envelope at the place of this proof.
    fn root(&self, envelope: &[u8]) -> Hash {
        let step = |below: Hash, (place, beside): (usize, &Hash)| match self.sides >> place & 1 {
            1 => inner(beside, &below),
            _ => inner(&below, beside),
        };
        self.path.iter().enumerate().fold(leaf(envelope), step)
    }
}

impl KnownKeys {
    /// Keeps the certificates that the installation with this key has signed. Others prove nothing.
    pub fn of<'c>(certificates: impl IntoIterator<Item = &'c [u8]>, installation: PublicKey) -> Self {
        let read = certificates.into_iter().filter_map(|bytes| Certificate::decode(bytes).ok());
        let known = read.filter(|certificate| certificate.is_signed_by(installation));
        Self(known.map(|certificate| (certificate.key.hash(), certificate)).collect())
    }

    /// Returns the certificate of a key.
    pub fn get(&self, key: Hash) -> Option<&Certificate> {
        self.0.get(&key)
    }

    /// The certificates, by id of the key.
    pub fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        self.0.values()
    }

    /// Checks that a known executor key has signed a receipt. `proof` was [decoded](Proof::decode), and `receipt` has its
    /// way.
    ///
    /// # Errors
    /// Says why the receipt is not proven.
    pub fn check(
        &self,
        receipt: &Receipt,
        payload: Hash,
        proof: &Proof,
        checks: &mut SignatureChecks,
    ) -> Result<&Certificate, Fault> {
        let certificate = self.get(proof.key).ok_or(Fault::UnknownExecutor(proof.key))?;
        checks.check(certificate, receipt, payload, proof).map(|()| certificate)
    }
}

/// The bytes that an executor key signs.
fn statement_of(root: Hash) -> Vec<u8> {
    [b"mainspring receipts 1".as_slice(), &root.0].concat()
}

fn leaf(envelope: &[u8]) -> Hash {
    Hash::of_parts(&[LEAF, envelope])
}

fn inner(left: &Hash, right: &Hash) -> Hash {
    Hash::of_parts(&[NODE, &left.0, &right.0])
}

/// Cuts a text at a character boundary.
fn bounded(text: &str) -> String {
    let mut end = text.len().min(CERTIFICATE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests;
