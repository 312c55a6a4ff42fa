//! Signing in with a browser: a token is shown once, and a cookie stands for it until it ends.
//!
//! The cookie has a secret of its own, of which the token's row keeps the hash: it ends with the token, with the member,
//! at its time, or when somebody signs out. It carries what the token carries, and lets in nowhere else.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, header::COOKIE};
use mainspring_engine::engine::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::Change;
use url::{Origin, Url};

use crate::{
    app::App,
    door::{Credential, Found, caller_of, find},
    identity::{Caller, TokenText},
    nouns::{SignIn, Token},
    problem::{Answer, Code, Problem},
    refusals::{Refused, record},
    shelf::{Shelf, entry, make},
};

/// How long a sign-in lasts: a working day.
pub(crate) const SIGN_IN_MS: u64 = 12 * 60 * 60 * 1000;

/// Sign-ins of one token at a time. The oldest goes for a new one.
pub(crate) const SIGN_INS_MAX: usize = 20;

/// How often a change is tried again that another one of the same token was quicker than.
pub(crate) const TRIES: usize = 8;

/// What the cookie is called where the server is reached by TLS: browsers then take it from this host alone.
const SECURE_NAME: &str = "__Host-mainspring";
const PLAIN_NAME: &str = "mainspring";

/// The same for the cookie of a sign-in that is on its way to a provider and back.
const SECURE_BINDING: &str = "__Host-mainspring-oidc";
const PLAIN_BINDING: &str = "mainspring-oidc";

/// A sign-in that has just begun.
pub(crate) struct Begun {
    /// Who has signed in.
    pub caller: Caller,
    /// What `Set-Cookie` says.
    pub cookie: String,
    /// When it ends.
    pub expires_at: u64,
}

/// Begins one from an address, with a token as it is typed.
pub(crate) fn sign_in(app: &App, token: &str, from: IpAddr) -> Answer<Begun> {
    let refused = || Problem::new(Code::Unauthorized, "This token is not known, or has ended.");
    let text = TokenText::parse(token.trim()).ok_or_else(refused)?;
    let caller = match find(app, &Credential::Bearer(text))? {
        Found::In(caller) => *caller,
        Found::Nobody => return Err(refused()),
        Found::Ended(whose) => {
            let (action, target) = ("session.refused", "sign-in".to_string());
            record(app, &Refused { whose, action, target, code: Code::Unauthorized, from: Some(from) });
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
    Ok(Begun { caller, cookie, expires_at })
}

/// Ends the sign-in of a cookie, if it is one. What `Set-Cookie` says then.
pub(crate) fn sign_out(app: &App, cookie: Option<TokenText>) -> Answer<String> {
    let credential = cookie.map(Credential::Cookie);
    if let Some(caller) = credential.map(|cookie| caller_of(app, &cookie)).transpose()?.flatten() {
        let ended = caller.sign_in.clone().unwrap_or_default();
        change(app, &caller, "session.delete", |token| token.sign_ins.retain(|one| one.hash != ended))?;
    }
    Ok(set_cookie(&app.settings.base, "", 0))
}

/// Changes the caller's token, also while its last use is written down. One that was made for a sign-in goes with it.
fn change(app: &App, caller: &Caller, action: &str, act: impl Fn(&mut Token)) -> Answer<()> {
    let installation = Shelf::of(app.catalogue(), "");
    for _ in 0..TRIES {
        let mut held = installation.must::<Token>(&caller.token)?;
        act(&mut held.body);
        let audit = vec![entry(caller, action, &held.id, Value::Null)];
        let mut change = Change { audit, sealing: *app.engine.key(), ..Change::default() };
        if held.body.signed_in_by.is_some() && held.body.sign_ins.is_empty() {
            change.removals.push(installation.removal(&held));
        } else {
            change.puts.push(installation.put(&held.id, &held.body, held.version)?);
        }
        if make(app.catalogue(), &change)?.is_ok() {
            return Ok(());
        }
    }
    Err(Problem::raced())
}

/// What the cookie is called, and whether it is for TLS alone.
fn name(base: &str) -> (&'static str, bool) {
    if base.starts_with("https:") { (SECURE_NAME, true) } else { (PLAIN_NAME, false) }
}

pub(crate) fn set_cookie(base: &str, value: &str, seconds: u64) -> String {
    let (name, is_secure) = name(base);
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

fn binding_name(base: &str) -> &'static str {
    if name(base).1 { SECURE_BINDING } else { PLAIN_BINDING }
}

/// The cookie by which a browser is known again that comes back from a provider. It is another site that sends it here, by
/// a link, and so it has to be `Lax`. It lets nobody in.
pub(crate) fn set_binding(base: &str, value: &str, seconds: u64) -> String {
    let (name, secure) = (binding_name(base), if name(base).1 { "; Secure" } else { "" });
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

/// The value of that cookie, if a request has one.
pub(crate) fn binding_cookie(base: &str, headers: &HeaderMap) -> Option<String> {
    of_name(headers, binding_name(base)).map(Into::into)
}

/// The cookie of a request, if it has the form of one.
pub(crate) fn cookie(base: &str, headers: &HeaderMap) -> Option<TokenText> {
    TokenText::parse_cookie(of_name(headers, name(base).0)?)
}

fn of_name<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    cookies.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The origin of an address that people reach the server by; `None` for what is no address of a site.
pub fn origin(address: &str) -> Option<Origin> {
    let origin = Url::parse(address).ok()?.origin();
    origin.is_tuple().then_some(origin)
}

/// Whether a method changes nothing.
pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Refuses what another site has made a browser send: browsers send cookies by themselves, and say from where the request
/// comes (`Sec-Fetch-Site`, and `Origin`, RFC 6454). What says nothing is let through only where it need not be a browser.
pub(crate) fn check_origin(base: &str, headers: &HeaderMap, must_say: bool) -> Answer<()> {
    let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_string());
    let (site, from) = (said("sec-fetch-site"), said("origin"));
    let is_ours = |from: &String| origin(from).is_some() && origin(from) == origin(base);
    let is_said = site.is_some() || from.is_some();
    if site.is_none_or(|site| site == "same-origin") && from.as_ref().is_none_or(is_ours) && (is_said || !must_say) {
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
