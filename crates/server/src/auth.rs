//! Authentication and authorization: callers and their permissions, tokens, browser sessions, and OpenID Connect.

pub(crate) mod authenticate;
pub mod caller;
pub(crate) mod cookie;
pub(crate) mod credential;
pub(crate) mod credential_cache;
pub(crate) mod credential_lookup;
pub mod cross_site;
pub(crate) mod execution_access;
pub(crate) mod execution_origins;
pub(crate) mod middleware;
pub mod oidc;
pub mod permission;
pub(crate) mod policy;
pub(crate) mod refusal_log;
pub(crate) mod refusals;
pub(crate) mod session;
pub(crate) mod session_token;
pub(crate) mod sign_in_codes;
pub mod token;
