//! Encryption of values in the store, with keys that are derived from the installation's key: the store alone opens
//! nothing. ChaCha20-Poly1305 (RFC 8439) with a random nonce, and the owner of a value as additional data, so that a
//! copied row cannot be opened as that of another owner.

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Encrypts bytes for an owner: parts of its name, none of which contains a null character. `None` if the system has no
/// randomness.
pub(crate) fn seal(bytes: &[u8], key: &[u8; 32], purpose: &[u8], owner: &[&str]) -> Option<String> {
    let mut bytes = bytes.to_vec();
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).ok()?;
    let with = Nonce::assume_unique_for_key(nonce);
    derived(key, purpose).seal_in_place_append_tag(with, Aad::from(bound_to(purpose, owner)), &mut bytes).ok()?;
    Some(BASE64_STANDARD_NO_PAD.encode([&nonce[..], &bytes].concat()))
}

/// Decrypts bytes of an owner. `None` if they were encrypted with another key, for another purpose or for another owner.
pub(crate) fn open(sealed: &str, key: &[u8; 32], purpose: &[u8], owner: &[&str]) -> Option<Vec<u8>> {
    let bytes = BASE64_STANDARD_NO_PAD.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
    let mut sealed = sealed.to_vec();
    let with = Nonce::assume_unique_for_key(*nonce);
    let opened = derived(key, purpose).open_in_place(with, Aad::from(bound_to(purpose, owner)), &mut sealed).ok()?;
    Some(opened.to_vec())
}

fn bound_to(purpose: &[u8], owner: &[&str]) -> Vec<u8> {
    let mut bound = purpose.to_vec();
    for part in owner {
        bound.push(0);
        bound.extend_from_slice(part.as_bytes());
    }
    bound
}

fn derived(key: &[u8; 32], purpose: &[u8]) -> LessSafeKey {
    let own = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key), purpose);
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, own.as_ref());
    LessSafeKey::new(unbound.expect("HMAC-SHA256 gives as many bytes as ChaCha20 takes"))
}
