//! The cookie that recognizes a browser when it returns from the provider. It is encrypted with a key derived from the
//! installation's key, so that every node can read it and clients cannot.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use mainspring_kernel::hash::Hash;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use crate::{
    auth::token::random,
    http::problem::{Code, Problem, Result},
};

/// Domain separator for deriving the cookie key from the installation's key.
const PURPOSE: &[u8] = b"mainspring oidc binding 1";

/// Seconds that a sign-in at the provider may take.
pub(super) const LOGIN_COOKIE_S: u64 = 600;

/// Bytes of entropy of each random text.
const RANDOM_BYTES: usize = 32;

/// A pending sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoginCookie {
    /// Must be returned in the redirect.
    pub(super) state: String,
    /// Must be in the ID token.
    pub(super) nonce: String,
    /// PKCE code verifier (RFC 7636).
    pub(super) verifier: String,
    /// Page to show after the sign-in.
    pub(super) next: String,
    /// Issuer of the provider, and this server's client id there.
    pub(super) of: (String, String),
    /// Milliseconds since 1970.
    pub(super) expires_at: u64,
}

impl LoginCookie {
    /// Generates a pending sign-in.
    pub(super) fn new(next: &str, issuer: &str, client_id: &str, now: u64) -> Result<Self> {
        let [state, nonce, verifier] = [random(RANDOM_BYTES)?, random(RANDOM_BYTES)?, random(RANDOM_BYTES)?];
        let (of, expires_at) = ((issuer.into(), client_id.into()), now + LOGIN_COOKIE_S * 1000);
        Ok(Self { state, nonce, verifier, next: next.into(), of, expires_at })
    }

    /// PKCE code challenge of the verifier.
    pub(super) fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, self.verifier.as_bytes()))
    }

    /// Encrypts it as the value of a cookie.
    pub(super) fn sealed(&self, key: &[u8; 32]) -> Result<String> {
        let failed = || Problem::new(Code::InternalError, "The cookie of this sign-in cannot be sealed.");
        let mut bytes = serde_json::to_vec(self).map_err(|_| failed())?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| failed())?;
        let with = Nonce::assume_unique_for_key(nonce);
        sealing(key).seal_in_place_append_tag(with, Aad::from(PURPOSE), &mut bytes).map_err(|_| failed())?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &bytes].concat()))
    }

    /// Decrypts the value of a cookie; `None` if it was not written by this installation or has expired.
    pub(super) fn open(text: &str, key: &[u8; 32], now: u64) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let with = Nonce::assume_unique_for_key(*nonce);
        let opened = sealing(key).open_in_place(with, Aad::from(PURPOSE), &mut sealed).ok()?;
        serde_json::from_slice::<Self>(opened).ok().filter(|cookie| now < cookie.expires_at)
    }

    /// True if the browser returned with the expected state.
    pub(super) fn is_of(&self, state: &str) -> bool {
        Hash::of(self.state.as_bytes()).equals_in_constant_time(&Hash::of(state.as_bytes()))
    }
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
    fn a_cookie_is_decrypted_with_the_key_until_it_expires() {
        let (key, other) = ([1; 32], [2; 32]);
        let cookie = LoginCookie::new("/", "https://id.example", "flows", 1_000).unwrap();
        let sealed = cookie.sealed(&key).unwrap();
        assert_eq!(LoginCookie::open(&sealed, &key, 1_000).as_ref(), Some(&cookie));
        assert!(!sealed.contains(&cookie.verifier) && sealed != cookie.sealed(&key).unwrap());
        assert_eq!(LoginCookie::open(&sealed, &other, 1_000), None);
        assert_eq!(LoginCookie::open(&sealed, &key, cookie.expires_at), None, "it has ended");
        for place in 0..sealed.len() {
            let changed = if &sealed[place..=place] == "A" { "B" } else { "A" };
            let changed = format!("{}{changed}{}", &sealed[..place], &sealed[place + 1..]);
            assert!(LoginCookie::open(&changed, &key, 1_000).is_none_or(|read| read == cookie), "at {place}");
        }
        assert_eq!(LoginCookie::open("", &key, 1_000), None);
        assert!(cookie.is_of(&cookie.state) && !cookie.is_of(&cookie.nonce) && !cookie.is_of(""));
    }

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        let mut cookie = LoginCookie::new("/", "i", "c", 0).unwrap();
        cookie.verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into();
        assert_eq!(cookie.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "RFC 7636, appendix B");
    }
}
