//! Tokens of the sessions of executions: `msw_EXECUTION_PROOF`. The proof is derived from the installation's key and is not
//! stored, so that each attempt of an execution gets the same token on every node, and nothing remains to be revoked when
//! the execution has ended.

use mainspring_kernel::{
    hash::{Hash, hex, unhex},
    key::ExecutionKey,
};
use mainspring_store::{ExecutionRow, is_final};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        credential_lookup::Lookup,
        refusals::CredentialOwner,
    },
    http::problem::Result,
    resources::{
        Member,
        repository::{Repository, Stored},
    },
};

/// Prefix of the tokens, by which secret scanners find leaked ones.
const PREFIX: &str = "msw_";

/// Domain separator for deriving the proof from the installation's key.
const PURPOSE: &[u8] = b"mainspring session token 1";

/// Most by which the clock of the node that started an execution may be behind that of the node that added its member.
const CLOCKS_MS: u64 = 10_000;

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

    fn is_genuine(&self, key: &[u8; 32]) -> bool {
        Self::of(key, self.execution).proof.equals_in_constant_time(&self.proof)
    }
}

impl std::fmt::Debug for SessionToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SessionToken({})", self.execution)
    }
}

/// Looks up the token of a session. It is valid until its execution has ended.
pub(crate) fn look_up_session(app: &App, token: &SessionToken) -> Result<Lookup> {
    if !token.is_genuine(app.engine.key()) {
        return Ok(Lookup::Unknown);
    }
    match app.engine.store().execution(token.execution)? {
        None => Ok(Lookup::Unknown),
        Some(row) => caller_of(app, &row),
    }
}

/// The caller of a session with the current role of its member; `None` if its execution has ended or its member is gone.
pub(crate) fn current_session_caller(app: &App, execution: ExecutionKey) -> Result<Option<Caller>> {
    let Some(row) = app.engine.store().execution(execution)? else { return Ok(None) };
    Ok(match caller_of(app, &row)? {
        Lookup::Valid(caller) => Some(*caller),
        Lookup::Ended(_) | Lookup::Unknown => None,
    })
}

/// True if the member of that id existed when the execution was started: an id may be given to another person later.
fn was_member(created_at: u64, started_at: u64) -> bool {
    created_at <= started_at.saturating_add(CLOCKS_MS)
}

fn caller_of(app: &App, row: &ExecutionRow) -> Result<Lookup> {
    let (Some(organization), Some(user)) = (row.organization.clone(), row.initiator_user_id.clone()) else {
        return Ok(Lookup::Unknown);
    };
    let token = row.key.session_id();
    let member = Repository::of(app.catalogue(), &organization).get::<Member>(&user)?;
    let is_current = |member: &Stored<Member>| was_member(member.body.created_at, row.started_at);
    let Some(member) = member.filter(|member| !is_final(&row.status) && is_current(member)) else {
        return Ok(Lookup::Ended(CredentialOwner { organization, user, token }));
    };
    Ok(Lookup::Valid(Box::new(Caller {
        organization,
        user,
        role: member.body.role,
        kind: Kind::Session { execution: row.id.clone() },
        token,
        sign_in: None,
        scopes: Vec::new(),
        is_operator: false,
        made_by: None,
        known_to: None,
        expires_at: None,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_who_was_added_later_is_another_person() {
        assert!(was_member(1_000, 1_000) && was_member(11_000, 1_000) && was_member(0, 1_000));
        assert!(!was_member(11_001, 1_000));
    }

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
