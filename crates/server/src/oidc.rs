//! Sign-in through OpenID Connect. The provider authenticates people; roles and permissions stay local.
//!
//! The flow is the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636). [`Provider`] redirects the
//! browser to the provider and exchanges the code that it returns with. `binding` is the cookie that recognizes the
//! returning browser, `id_token` verifies the ID token, and `entering` maps its claims to a member.

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
pub(crate) use provider::{Returned, provider_reason};
pub use settings::{Settings, Wrong, usual};
