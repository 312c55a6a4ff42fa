//! One-time codes for a browser that a command of this process opens: `mainspring dev` and `mainspring up --open`.
//!
//! A code is in the fragment of the opened address, which no browser sends to a server. It is exchanged for a session
//! once, within [`CODE_MS`]. Codes are in memory only, so no other process can issue one.

use std::sync::{Mutex, PoisonError};

use mainspring_kernel::hash::Hash;

use crate::{
    auth::token::random,
    http::problem::{Code, Problem, Result},
};

/// Lifetime of a code in milliseconds: a browser may start slowly.
const CODE_MS: u64 = 2 * 60 * 1000;

/// Most unused codes. A new one replaces the oldest.
const CODES_MAX: usize = 8;

/// Bytes of a code. Guessing one is not feasible.
const CODE_BYTES: usize = 32;

/// The unused codes of this process.
#[derive(Default)]
pub(crate) struct SignInCodes(Mutex<Vec<Issued>>);

/// An unused code.
struct Issued {
    hash: Hash,
    /// The token that the code stands for.
    token: String,
    expires_at_ms: u64,
}

impl SignInCodes {
    /// Issues a code for a token.
    pub(crate) fn issue(&self, token: String, now_ms: u64) -> Result<String> {
        let code = random(CODE_BYTES)?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|issued| now_ms < issued.expires_at_ms);
        let too_many = (codes.len() + 1).saturating_sub(CODES_MAX);
        codes.drain(..too_many);
        codes.push(Issued { hash: Hash::of(code.as_bytes()), token, expires_at_ms: now_ms + CODE_MS });
        Ok(code)
    }

    /// Returns the token of a code. The code is used up.
    pub(crate) fn redeem(&self, code: &str, now_ms: u64) -> Result<String> {
        let given = Hash::of(code.as_bytes());
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|issued| now_ms < issued.expires_at_ms);
        let at = codes.iter().position(|issued| issued.hash.equals_in_constant_time(&given));
        let message = "This code is not known, or was used before. Start the command again that printed the address.";
        at.map(|at| codes.swap_remove(at).token).ok_or_else(|| Problem::new(Code::Unauthorized, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_redeemed_once_and_in_time() {
        let codes = SignInCodes::default();
        let first = codes.issue("one".into(), 0).unwrap();
        let second = codes.issue("two".into(), 1).unwrap();
        assert!(codes.redeem("guess", 2).is_err());
        assert_eq!(codes.redeem(&first, CODE_MS - 1).unwrap(), "one");
        assert!(codes.redeem(&first, CODE_MS - 1).is_err(), "a used code was accepted");
        assert!(codes.redeem(&second, CODE_MS + 1).is_err(), "an expired code was accepted");
    }

    #[test]
    fn the_oldest_codes_make_room() {
        let codes = SignInCodes::default();
        let issued: Vec<_> = (0..=CODES_MAX).map(|at| codes.issue(at.to_string(), 0).unwrap()).collect();
        assert!(codes.redeem(&issued[0], 1).is_err());
        assert_eq!(codes.redeem(&issued[1], 1).unwrap(), "1");
    }
}
