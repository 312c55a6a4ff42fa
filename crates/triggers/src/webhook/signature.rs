//! Keys, decoding of signatures, and their comparison in constant time.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512};

use super::error::Rejection;

/// The hash of an HMAC. SHA-1 is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC-SHA256.
    Sha256,
    /// HMAC-SHA512.
    Sha512,
}

/// The key of a webhook. Its bytes never appear in logs.
#[derive(Clone)]
pub(super) struct Key(pub(super) Vec<u8>);

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(…)")
    }
}

/// The proof of a request.
pub(super) struct Signed<'a> {
    proof: Proof<'a>,
    /// The time of the signature, in seconds since 1970.
    pub(super) seconds: Option<u64>,
}

enum Proof<'a> {
    /// Signatures, of which one suffices, over the concatenated content.
    Hmac(Algorithm, Vec<Vec<u8>>, Vec<&'a [u8]>),
    /// The secret itself.
    Token(&'a [u8]),
}

impl<'a> Signed<'a> {
    pub(super) fn hmac(
        algorithm: Algorithm,
        signatures: Vec<Vec<u8>>,
        content: Vec<&'a [u8]>,
        seconds: Option<u64>,
    ) -> Self {
        Self { proof: Proof::Hmac(algorithm, signatures, content), seconds }
    }

    pub(super) fn token(token: &'a [u8]) -> Self {
        Self { proof: Proof::Token(token), seconds: None }
    }

    /// Returns whether the proof was made with this key.
    pub(super) fn is_made_by(&self, key: &Key) -> bool {
        match &self.proof {
            Proof::Hmac(Algorithm::Sha256, signatures, content) => matches::<Hmac<Sha256>>(key, signatures, content),
            Proof::Hmac(Algorithm::Sha512, signatures, content) => matches::<Hmac<Sha512>>(key, signatures, content),
            // Comparing the codes of both texts takes the same time for every length of the secret.
            Proof::Token(token) => {
                let code = mac::<Hmac<Sha256>>(key, &[&key.0]).finalize().into_bytes();
                mac::<Hmac<Sha256>>(key, &[token]).verify_slice(&code).is_ok()
            }
        }
    }
}

fn matches<M: Mac + KeyInit + Clone>(key: &Key, signatures: &[Vec<u8>], content: &[&[u8]]) -> bool {
    let mac = mac::<M>(key, content);
    signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
}

fn mac<M: Mac + KeyInit>(key: &Key, content: &[&[u8]]) -> M {
    let mut mac = <M as KeyInit>::new_from_slice(&key.0).expect("an HMAC takes keys of every length");
    content.iter().for_each(|part| mac.update(part));
    mac
}

/// Signs content with HMAC-SHA256, in base64.
pub(super) fn signature(key: &Key, content: &[&[u8]]) -> String {
    STANDARD.encode(mac::<Hmac<Sha256>>(key, content).finalize().into_bytes())
}

/// Parses a time in seconds since 1970: decimal digits only.
pub(super) fn seconds(header: &str, text: &str) -> Result<u64, Rejection> {
    let is_number = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or_else(|| Rejection::MalformedHeader(header.into()))
}

pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
}
