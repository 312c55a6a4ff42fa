//! The credential of a request: a token in `Authorization`, of a member or of the session of an execution, or a session
//! cookie.

use axum::http::{HeaderMap, header::AUTHORIZATION};
use mainspring_kernel::hash::Hash;

use crate::auth::{cookie::session_cookie, session_token::SessionToken, token::TokenText};

/// A well-formed credential. It may be unknown or no longer valid.
#[derive(Clone)]
pub(crate) enum Credential {
    /// A token.
    Bearer(TokenText),
    /// A session cookie, which is bound to a token.
    Cookie(TokenText),
    /// The token of the session of an execution.
    Session(SessionToken),
}

impl Credential {
    /// Reads the credential of a request to the server with this base URL. A token in `Authorization` takes precedence
    /// over cookies.
    pub(crate) fn of(base: &str, headers: &HeaderMap) -> Option<Self> {
        let Some(given) = headers.get(AUTHORIZATION) else {
            return session_cookie(base, headers).map(Self::Cookie);
        };
        let (scheme, text) = given.to_str().ok()?.split_once(' ')?;
        let text = Some(text.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
        TokenText::parse(text).map(Self::Bearer).or_else(|| SessionToken::parse(text).map(Self::Session))
    }

    /// Id of the token, or of the session.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Bearer(text) | Self::Cookie(text) => text.id.clone(),
            Self::Session(token) => token.session_id(),
        }
    }

    /// Hash of the credential, under which caches remember it without the secret.
    pub(crate) fn digest(&self) -> Hash {
        match self {
            Self::Bearer(text) => Hash::of(text.reveal().as_bytes()),
            Self::Cookie(text) => Hash::of(text.reveal_cookie().as_bytes()),
            Self::Session(token) => Hash::of(token.reveal().as_bytes()),
        }
    }
}
