//! Sign-in through OpenID Connect. The provider authenticates people; roles and permissions stay local.
//!
//! The flow is the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636). [`Provider`] redirects the
//! browser to the provider and exchanges the code that it returns with. `login_cookie` is the cookie that recognizes the
//! returning browser, `id_token` verifies the ID token, and `login` maps its claims to a member.

mod fetch;
mod id_token;
mod login;
mod login_cookie;
mod provider;
mod settings;
mod signature;

pub use fetch::{Fetch, Fetched, Fetching, Request};
pub(crate) use login::log_in;
pub use provider::Provider;
pub(crate) use provider::{Callback, provider_reason};
pub use settings::{InvalidSetting, Settings, default_of};
