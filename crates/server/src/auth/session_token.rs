//! Tokens of the sessions of executions: `msw_EXECUTION_PROOF`. The proof is derived from the installation's key and is not
//! stored, so that each attempt of an execution gets the same token on every node, and nothing remains to be revoked when
//! the execution has ended.

use mainspring_kernel::{
    hash::{Hash, hex, unhex},
    key::ExecutionKey,
};

/// Prefix of the tokens, by which secret scanners find leaked ones.
const PREFIX: &str = "msw_";

/// Domain separator for deriving the proof from the installation's key.
const PURPOSE: &[u8] = b"mainspring session token 1";

/// The token of the session of an execution. Its `Debug` form does not show the proof.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionToken {
    execution: ExecutionKey,
    proof: Hash,
}

impl SessionToken {
    /// Derives the token of an execution.
    pub(crate) fn of(key: &[u8; 32], execution: ExecutionKey) -> Self {
        Self { execution, proof: Hash::keyed(key, &[PURPOSE, &execution.0]) }
    }

    /// Parses a token; `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (execution, proof) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let (mut execution_bytes, mut proof_bytes) = ([0; 16], [0; 32]);
        let is_read = unhex(execution, &mut execution_bytes) && unhex(proof, &mut proof_bytes);
        let token = Self { execution: ExecutionKey(execution_bytes), proof: Hash(proof_bytes) };
        // Only one spelling is a token, since caches and rate limits compare texts.
        (is_read && token.reveal() == text).then_some(token)
    }

    /// The token as text.
    pub(crate) fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", hex(&self.execution.0), self.proof.hex())
    }

    /// Id of the session, which is the id of the credential.
    pub(crate) fn session_id(&self) -> String {
        self.execution.session_id()
    }

    pub(crate) fn execution(&self) -> ExecutionKey {
        self.execution
    }

    /// True if the proof is that of the execution under the installation's key.
    pub(crate) fn is_genuine(&self, key: &[u8; 32]) -> bool {
        Self::of(key, self.execution).proof.equals_in_constant_time(&self.proof)
    }
}

impl std::fmt::Debug for SessionToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SessionToken({})", self.execution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_belongs_to_one_execution_and_one_key() {
        let (key, execution) = ([1; 32], ExecutionKey([0xab; 16]));
        let token = SessionToken::of(&key, execution);
        let text = token.reveal();
        assert_eq!(SessionToken::parse(&text), Some(token));
        assert!(token.is_genuine(&key) && !token.is_genuine(&[2; 32]));
        let other = SessionToken { execution: ExecutionKey([0xac; 16]), ..token };
        assert!(!other.is_genuine(&key));
        assert!(!format!("{token:?}").contains(&token.proof.hex()));
        for wrong in ["", "msw_", &text[1..], &text[..text.len() - 1], &format!("{text}0"), &text.to_uppercase()] {
            assert_eq!(SessionToken::parse(wrong), None, "{wrong}");
        }
        let shouted = text.replace("ab", "AB");
        assert_eq!(SessionToken::parse(&shouted), None);
    }
}
