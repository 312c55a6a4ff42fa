//! Sign-in through OpenID Connect. The provider authenticates people; roles and permissions stay local.
//!
//! The flow is the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636). [`Provider`] redirects the
//! browser to the provider and exchanges the code that it returns with. `login_cookie` is the cookie that recognizes the
//! returning browser, `id_token` verifies the ID token, and `login` maps its claims to a member.

mod fetch;
mod id_token;
pub(crate) mod login;
mod login_cookie;
pub(crate) mod provider;
pub(crate) mod settings;
mod signature;

pub use fetch::{Fetch, Fetched, Fetching, Request};
pub use provider::Provider;
pub use settings::{InvalidSetting, Settings, default_of};
