//! Text form of API tokens: `msp_ID_SECRET`. The id finds the stored row; the secret is compared with a hash in it.

use mainspring_kernel::hash::{Hash, hex};

use crate::http::problem::{Code, Problem};

/// Prefix of every token, by which secret scanners find leaked ones.
pub const TOKEN_PREFIX: &str = "msp_";

/// Prefix of session cookies: `mss_ID_SECRET`, with the id of the token that the cookie is bound to.
const COOKIE_PREFIX: &str = "mss_";

/// Bytes of the id and of the secret. Only the secret must be unguessable.
const ID_BYTES: usize = 9;
const SECRET_BYTES: usize = 32;

/// A parsed token.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    /// Id of the stored row.
    pub id: String,
    secret: String,
}

impl TokenText {
    /// Generates a token.
    pub fn new() -> Result<Self, Problem> {
        Ok(Self { id: random(ID_BYTES)?, secret: random(SECRET_BYTES)? })
    }

    /// Generates the secret of a session cookie that is bound to a token.
    pub(crate) fn for_cookie(token: &str) -> Result<Self, Problem> {
        Ok(Self { id: token.into(), secret: random(SECRET_BYTES)? })
    }

    /// Parses a token; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with(TOKEN_PREFIX, text)
    }

    /// Parses the value of a session cookie; `None` if it is malformed.
    pub(crate) fn parse_cookie(text: &str) -> Option<Self> {
        Self::parse_with(COOKIE_PREFIX, text)
    }

    fn parse_with(prefix: &str, text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(prefix)?.split_once('_')?;
        let is_hex =
            |part: &str, bytes: usize| part.len() == bytes * 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_hex(id, ID_BYTES) && is_hex(secret, SECRET_BYTES)).then(|| Self { id: id.into(), secret: secret.into() })
    }

    /// The token as text, for its only display.
    pub fn reveal(&self) -> String {
        format!("{TOKEN_PREFIX}{}_{}", self.id, self.secret)
    }

    /// The value of the session cookie.
    pub(crate) fn reveal_cookie(&self) -> String {
        format!("{COOKIE_PREFIX}{}_{}", self.id, self.secret)
    }

    /// Hash of the secret, as it is stored. A slow hash would add nothing to 256 random bits.
    pub fn hash(&self) -> Hash {
        Hash::of(self.secret.as_bytes())
    }

    /// True if a hash is that of the secret.
    pub fn fits(&self, hash: &Hash) -> bool {
        self.hash().equals_in_constant_time(hash)
    }
}

/// Random bytes in hexadecimal.
pub(crate) fn random(bytes: usize) -> Result<String, Problem> {
    let mut entropy = vec![0; bytes];
    getrandom::fill(&mut entropy).map_err(|error| {
        Problem::new(Code::InternalError, format!("The system provides no random numbers: {error}."))
    })?;
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
