//! Browser sessions: sign-in with a token, session cookies, and protection against cross-site requests.
//!
//! A cookie has a secret of its own, and the token's row stores its hash. The session ends with the token, with the
//! member, at its expiry, or at sign-out. The cookie grants exactly the rights of the token.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, header::COOKIE};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::Change;
use url::{Origin, Url};

use crate::{
    app::App,
    auth::{
        caller::Caller,
        middleware::{Credential, Lookup, look_up, valid_caller},
        refusals::{RefusedRequest, record},
        token::TokenText,
    },
    http::problem::{Code, Problem, Result},
    resources::{
        SignIn, Token,
        repository::{Repository, apply, entry},
    },
};

/// Lifetime of a session: a working day.
pub(crate) const SIGN_IN_MS: u64 = 12 * 60 * 60 * 1000;

/// Most sessions of one token. A new one replaces the oldest.
pub(crate) const SIGN_INS_MAX: usize = 20;

/// Attempts of a change that conflicts with concurrent changes of the same token.
pub(crate) const TRIES: usize = 8;

/// Name of the cookie over TLS. The prefix makes browsers bind it to this host.
const SECURE_NAME: &str = "__Host-mainspring";
const PLAIN_NAME: &str = "mainspring";

/// Name of the cookie of a pending sign-in through the provider.
const SECURE_LOGIN_COOKIE: &str = "__Host-mainspring-oidc";
const PLAIN_LOGIN_COOKIE: &str = "mainspring-oidc";

/// Result of a sign-in.
pub(crate) struct NewSession {
    pub caller: Caller,
    /// Value of `Set-Cookie`.
    pub cookie: String,
    /// Expiry in milliseconds since 1970.
    pub expires_at: u64,
}

/// Creates a session from a token that was typed into the form; `from` is the client address.
pub(crate) fn sign_in(app: &App, token: &str, from: IpAddr) -> Result<NewSession> {
    let refused = || Problem::new(Code::Unauthorized, "This token is not known, or has ended.");
    let text = TokenText::parse(token.trim()).ok_or_else(refused)?;
    let caller = match look_up(app, &Credential::Bearer(text))? {
        Lookup::Valid(caller) => *caller,
        Lookup::Unknown => return Err(refused()),
        Lookup::Ended(owner) => {
            let (action, target) = ("session.refused", "sign-in".to_string());
            let code = Code::Unauthorized;
            record(app, &RefusedRequest { owner, action, target, code, from: Some(from), reason: None });
            return Err(refused());
        }
    };
    let (now, secret) = (now_ms(), TokenText::for_cookie(&caller.token)?);
    let expires_at = caller.expires_at.into_iter().chain([now + SIGN_IN_MS]).min().unwrap_or(now);
    let begun = SignIn { hash: secret.hash().hex(), created_at: now, expires_at };
    change(app, &caller, "session.create", |token| {
        token.sign_ins.retain(|one| one.expires_at > now);
        let too_many = (token.sign_ins.len() + 1).saturating_sub(SIGN_INS_MAX);
        token.sign_ins.drain(..too_many);
        token.sign_ins.push(begun.clone());
    })?;
    let cookie = set_cookie(&app.settings.base, &secret.reveal_cookie(), (expires_at - now) / 1000);
    Ok(NewSession { caller, cookie, expires_at })
}

/// Ends the session of a cookie, if there is one. Returns the value of `Set-Cookie` that deletes it.
pub(crate) fn sign_out(app: &App, cookie: Option<TokenText>) -> Result<String> {
    let credential = cookie.map(Credential::Cookie);
    if let Some(caller) = credential.map(|cookie| valid_caller(app, &cookie)).transpose()?.flatten() {
        let ended = caller.sign_in.clone().unwrap_or_default();
        change(app, &caller, "session.delete", |token| token.sign_ins.retain(|one| one.hash != ended))?;
    }
    Ok(set_cookie(&app.settings.base, "", 0))
}

/// Changes the caller's token, repeated after conflicts, such as an update of its last use. A token that was created by
/// a sign-in is deleted with its last session.
fn change(app: &App, caller: &Caller, action: &str, act: impl Fn(&mut Token)) -> Result<()> {
    let installation = Repository::of(app.catalogue(), "");
    for _ in 0..TRIES {
        let mut stored = installation.require::<Token>(&caller.token)?;
        act(&mut stored.body);
        let audit = vec![entry(caller, action, &stored.id, Value::Null)];
        let mut change = Change { audit, sealing: *app.engine.key(), ..Change::default() };
        if stored.body.signed_in_by.is_some() && stored.body.sign_ins.is_empty() {
            change.removals.push(installation.removal(&stored));
        } else {
            change.puts.push(installation.put(&stored.id, &stored.body, stored.version)?);
        }
        if apply(app.catalogue(), &change)?.is_ok() {
            return Ok(());
        }
    }
    Err(Problem::concurrent_change())
}

/// Name of the session cookie, and true if it requires TLS.
fn name(base: &str) -> (&'static str, bool) {
    if base.starts_with("https:") { (SECURE_NAME, true) } else { (PLAIN_NAME, false) }
}

pub(crate) fn set_cookie(base: &str, value: &str, seconds: u64) -> String {
    let (name, is_secure) = name(base);
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

fn login_cookie_name(base: &str) -> &'static str {
    if name(base).1 { SECURE_LOGIN_COOKIE } else { PLAIN_LOGIN_COOKIE }
}

/// The cookie of a pending sign-in. It must be `Lax`, because the provider's redirect comes from another site. It does
/// not authenticate.
pub(crate) fn set_login_cookie(base: &str, value: &str, seconds: u64) -> String {
    let (name, secure) = (login_cookie_name(base), if name(base).1 { "; Secure" } else { "" });
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

/// Value of the cookie of a pending sign-in.
pub(crate) fn login_cookie(base: &str, headers: &HeaderMap) -> Option<String> {
    of_name(headers, login_cookie_name(base)).map(Into::into)
}

/// The session cookie of a request, if it is well-formed.
pub(crate) fn cookie(base: &str, headers: &HeaderMap) -> Option<TokenText> {
    TokenText::parse_cookie(of_name(headers, name(base).0)?)
}

fn of_name<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    cookies.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The origin of an external base URL; `None` for addresses without one.
pub fn origin(address: &str) -> Option<Origin> {
    let origin = Url::parse(address).ok()?.origin();
    origin.is_tuple().then_some(origin)
}

/// True for methods that change nothing.
pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Rejects cross-site requests (CSRF). Browsers attach cookies on their own, but name the source of a request in
/// `Sec-Fetch-Site` and `Origin` (RFC 6454). A request with neither passes only if `must_name_source` is false.
pub(crate) fn check_origin(base: &str, headers: &HeaderMap, must_name_source: bool) -> Result<()> {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_string());
    let (site, from) = (header("sec-fetch-site"), header("origin"));
    let is_ours = |from: &String| origin(from).is_some() && origin(from) == origin(base);
    let names_source = site.is_some() || from.is_some();
    if site.is_none_or(|site| site == "same-origin")
        && from.as_ref().is_none_or(is_ours)
        && (names_source || !must_name_source)
    {
        return Ok(());
    }
    let message = format!(
        "With a cookie, what changes something must come from {base} itself, and say so (`Origin`): reach the server \
         there, set its base URL (--base-url) to where you reach it, or send a token as `Authorization: Bearer`."
    );
    Err(Problem::new(Code::Forbidden, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_what_comes_from_the_base_url_is_ours() {
        let base = "https://flows.example.com";
        let is = |pairs: &[(&'static str, &'static str)]| check_origin(base, &headers(pairs), true).is_ok();
        assert!(is(&[("origin", "https://flows.example.com")]));
        assert!(is(&[("origin", "https://FLOWS.example.com:443")]));
        assert!(is(&[("sec-fetch-site", "same-origin")]));
        for other in [
            "http://flows.example.com",
            "https://flows.example.com:8443",
            "https://example.com",
            "https://flows.example.com.evil.example",
            "null",
            "",
        ] {
            assert!(!is(&[("origin", other)]), "{other}");
            assert!(!is(&[("origin", other), ("sec-fetch-site", "same-origin")]), "{other}");
        }
        for other in ["same-site", "cross-site", "none"] {
            assert!(!is(&[("sec-fetch-site", other)]), "{other}");
            assert!(!is(&[("sec-fetch-site", other), ("origin", "https://flows.example.com")]), "{other}");
        }
        assert!(!is(&[]) && check_origin(base, &headers(&[]), false).is_ok());
    }

    #[test]
    fn the_cookie_is_for_this_host_and_for_no_script() {
        let secure = set_cookie("https://a.example", "mss_1", 60);
        assert_eq!(secure, "__Host-mainspring=mss_1; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure");
        assert_eq!(set_cookie("http://a", "x", 1), "mainspring=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=1");
        let text = TokenText::for_cookie("0123456789abcdef01").unwrap();
        let line = format!("a=b; mainspring={}", text.reveal_cookie());
        let of = |base: &str| cookie(base, &[("cookie".parse().unwrap(), line.parse().unwrap())].into_iter().collect());
        assert!(of("http://a").is_some_and(|read| read == text));
        assert!(of("https://a").is_none(), "one that came without TLS is not taken where there is TLS");
    }
}
