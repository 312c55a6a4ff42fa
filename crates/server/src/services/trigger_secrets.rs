//! Secrets of webhooks, encrypted with a key that is derived from the installation's key: the store alone verifies and
//! signs nothing.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use crate::http::problem::{Code, Problem, Result};

/// Domain separator for deriving the key from the installation's key.
const PURPOSE: &[u8] = b"mainspring webhook secrets 1";

/// The secrets of a webhook.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    /// The secrets that are valid now: during a rotation the new and the old one.
    pub secrets: Vec<String>,
    /// The required headers with their values.
    pub headers: BTreeMap<String, String>,
}

/// Encrypts the secrets of a trigger; `None` if there are none. `owner` names organization and trigger, so that a
/// copied row cannot be opened as that of another trigger.
pub(crate) fn seal(secrets: &Secrets, key: &[u8; 32], owner: (&str, &str)) -> Result<Option<String>> {
    if *secrets == Secrets::default() {
        return Ok(None);
    }
    let failed = || Problem::new(Code::InternalError, "The secrets of this webhook cannot be encrypted.");
    let mut bytes = serde_json::to_vec(secrets).map_err(|_| failed())?;
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|_| failed())?;
    let with = Nonce::assume_unique_for_key(nonce);
    sealing(key).seal_in_place_append_tag(with, Aad::from(bound_to(owner)), &mut bytes).map_err(|_| failed())?;
    Ok(Some(BASE64_STANDARD_NO_PAD.encode([&nonce[..], &bytes].concat())))
}

/// Decrypts the secrets of a trigger.
pub(crate) fn open(sealed: Option<&str>, key: &[u8; 32], owner: (&str, &str)) -> Result<Secrets> {
    let Some(sealed) = sealed else { return Ok(Secrets::default()) };
    let opened = || {
        let bytes = BASE64_STANDARD_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let with = Nonce::assume_unique_for_key(*nonce);
        let opened = sealing(key).open_in_place(with, Aad::from(bound_to(owner)), &mut sealed).ok()?;
        serde_json::from_slice(opened).ok()
    };
    opened().ok_or_else(|| {
        let message = "The secrets of this webhook were encrypted with another key. Set them again.";
        Problem::new(Code::InternalError, message)
    })
}

fn bound_to((organization, trigger): (&str, &str)) -> Vec<u8> {
    [PURPOSE, b"\0", organization.as_bytes(), b"\0", trigger.as_bytes()].concat()
}

fn sealing(key: &[u8; 32]) -> LessSafeKey {
    let own = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key), PURPOSE);
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, own.as_ref());
    LessSafeKey::new(unbound.expect("HMAC-SHA256 gives as many bytes as ChaCha20 takes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_open_with_the_key_and_for_their_trigger_only() {
        let (key, other) = ([1; 32], [2; 32]);
        let headers = BTreeMap::from([("x-api-key".to_string(), "k1".to_string())]);
        let secrets = Secrets { secrets: vec!["s3cret".into()], headers };
        let sealed = seal(&secrets, &key, ("acme", "t1")).unwrap().unwrap();
        assert!(!sealed.contains("s3cret"));
        let opens = |key: &[u8; 32], owner| open(Some(&sealed), key, owner).ok();
        assert!(opens(&key, ("acme", "t1")) == Some(secrets));
        assert!(opens(&other, ("acme", "t1")).is_none() && opens(&key, ("acme", "t2")).is_none());
        assert!(opens(&key, ("acme\0t1", "")).is_none(), "the parts are separated");
        assert!(seal(&Secrets::default(), &key, ("acme", "t1")).unwrap().is_none());
        assert!(open(None, &key, ("acme", "t1")).unwrap() == Secrets::default());
    }
}
