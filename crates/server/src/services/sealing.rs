//! Encryption of values in the store, with keys that are derived from the encryption keys: the store alone opens
//! nothing. ChaCha20-Poly1305 (RFC 8439) with a random nonce, and the owner of a value as additional data, so that a
//! copied row cannot be opened as that of another owner.
//!
//! A stored value is `ID.BASE64` with the id of its key. One under the installation's key has no id, as all had before
//! there were other keys.

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::encryption_keys::{EncryptionKeys, Key, key_id};

/// Encrypts bytes for an owner: parts of its name, none of which contains a null character. `None` if the system has no
/// randomness.
pub(crate) fn seal(bytes: &[u8], key: &Key, purpose: &[u8], owner: &[&str]) -> Option<String> {
    let mut bytes = bytes.to_vec();
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).ok()?;
    let with = Nonce::assume_unique_for_key(nonce);
    let own = derived(&key.bytes, purpose);
    own.seal_in_place_append_tag(with, Aad::from(bound_to(purpose, owner)), &mut bytes).ok()?;
    let sealed = BASE64_STANDARD_NO_PAD.encode([&nonce[..], &bytes].concat());
    Some(if key.is_installation { sealed } else { format!("{}.{sealed}", key.id) })
}

/// Decrypts bytes of an owner. `None` if this node does not have the key, or if they were encrypted for another purpose or
/// for another owner.
pub(crate) fn open(sealed: &str, keys: &EncryptionKeys, purpose: &[u8], owner: &[&str]) -> Option<Vec<u8>> {
    let (key, sealed) = match sealed.split_once('.') {
        None => (*keys.installation(), sealed),
        Some((id, sealed)) => (keys.find(id)?.bytes, sealed),
    };
    let bytes = BASE64_STANDARD_NO_PAD.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
    let mut sealed = sealed.to_vec();
    let with = Nonce::assume_unique_for_key(*nonce);
    let opened = derived(&key, purpose).open_in_place(with, Aad::from(bound_to(purpose, owner)), &mut sealed).ok()?;
    Some(opened.to_vec())
}

/// The id of the key of a stored value.
pub(crate) fn id_of(sealed: &str, keys: &EncryptionKeys) -> String {
    sealed.split_once('.').map_or_else(|| key_id(keys.installation()), |(id, _)| id.into())
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
