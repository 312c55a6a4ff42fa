//! API tokens as text: `msp_ID_SECRET`. The id finds the row, the secret is compared with a hash of it.

use mainspring_kernel::hash::{Hash, hex};

use crate::problem::{Code, Problem};

/// What every token begins with, so that scanners for leaked secrets find it.
pub const TOKEN_PREFIX: &str = "msp_";

/// What the value of a cookie begins with: `mss_ID_SECRET`, with the id of the token that it stands for.
const COOKIE_PREFIX: &str = "mss_";

/// Bytes of the id and of the secret: what cannot be guessed is the secret.
const ID_BYTES: usize = 9;
const SECRET_BYTES: usize = 32;

/// A token's text in its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    /// Names the row.
    pub id: String,
    secret: String,
}

impl TokenText {
    /// A fresh one.
    pub fn new() -> Result<Self, Problem> {
        Ok(Self { id: random(ID_BYTES)?, secret: random(SECRET_BYTES)? })
    }

    /// A fresh secret for a cookie that stands for a token.
    pub(crate) fn for_cookie(token: &str) -> Result<Self, Problem> {
        Ok(Self { id: token.into(), secret: random(SECRET_BYTES)? })
    }

    /// The parts of a text, if it looks like a token.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with(TOKEN_PREFIX, text)
    }

    /// The parts of a cookie's value, if it looks like one of ours.
    pub(crate) fn parse_cookie(text: &str) -> Option<Self> {
        Self::parse_with(COOKIE_PREFIX, text)
    }

    fn parse_with(prefix: &str, text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(prefix)?.split_once('_')?;
        let is_hex =
            |part: &str, bytes: usize| part.len() == bytes * 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_hex(id, ID_BYTES) && is_hex(secret, SECRET_BYTES)).then(|| Self { id: id.into(), secret: secret.into() })
    }

    /// What is shown once to whoever it is made for.
    pub fn reveal(&self) -> String {
        format!("{TOKEN_PREFIX}{}_{}", self.id, self.secret)
    }

    /// The value of a cookie.
    pub(crate) fn reveal_cookie(&self) -> String {
        format!("{COOKIE_PREFIX}{}_{}", self.id, self.secret)
    }

    /// What is kept of the secret. The secret has 256 random bits: a slow hash would protect nothing more.
    pub fn hash(&self) -> Hash {
        Hash::of(self.secret.as_bytes())
    }

    /// Whether the secret is the one that a hash was made of.
    pub fn fits(&self, hash: &Hash) -> bool {
        self.hash().equals_in_constant_time(hash)
    }
}

/// Random digits, two for each byte.
pub(crate) fn random(bytes: usize) -> Result<String, Problem> {
    let mut entropy = vec![0; bytes];
    getrandom::fill(&mut entropy)
        .map_err(|error| Problem::new(Code::InternalError, format!("The system gives no randomness: {error}.")))?;
    Ok(hex(&entropy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_only_its_own_secret_fits() {
        let token = TokenText::new().unwrap();
        let read = TokenText::parse(&token.reveal()).unwrap();
        assert!(read == token && read.fits(&token.hash()));
        let other = TokenText::new().unwrap();
        assert!(other.id != token.id && !other.fits(&token.hash()));
        for text in ["", "msp_", "msp_a_b", "wrf_rt_0", &token.reveal()[1..], &format!("{}0", token.reveal())] {
            assert!(TokenText::parse(text).is_none(), "{text}");
        }
    }
}
