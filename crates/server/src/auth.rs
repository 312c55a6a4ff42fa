//! Authentication and authorization: callers and their permissions, tokens, browser sessions, and OpenID Connect.

pub mod caller;
pub(crate) mod credential_cache;
pub(crate) mod middleware;
pub mod oidc;
pub mod permission;
pub(crate) mod refusals;
pub mod session;
pub mod token;
