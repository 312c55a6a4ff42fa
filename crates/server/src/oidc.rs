//! Signing in by OpenID Connect: who people are says a provider, what they may says this server.
//!
//! It is the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636): [`Provider`] sends a browser to the
//! provider and takes what it comes back with to the provider itself; `binding` is the cookie by which the browser is known
//! again, `id_token` what is checked of the answer, `entering` which member that is.

mod binding;
mod entering;
mod fetch;
mod id_token;
mod provider;
mod settings;
mod signature;

pub(crate) use entering::enter;
pub use fetch::{Fetch, Fetched, Fetching, Request};
pub use provider::Provider;
pub(crate) use provider::Returned;
pub use settings::{Settings, Wrong, usual};
