//! Cookies of browser sessions and of pending sign-ins through a provider.

use axum::http::{HeaderMap, header::COOKIE};

use crate::auth::token::TokenText;

/// Name of the cookie over TLS. The prefix makes browsers bind it to this host.
const SECURE_NAME: &str = "__Host-mainspring";
const PLAIN_NAME: &str = "mainspring";

/// Name of the cookie of a pending sign-in through the provider.
const SECURE_LOGIN_COOKIE: &str = "__Host-mainspring-oidc";
const PLAIN_LOGIN_COOKIE: &str = "mainspring-oidc";

/// Name of the session cookie, and true if it requires TLS.
fn name(base: &str) -> (&'static str, bool) {
    if base.starts_with("https:") { (SECURE_NAME, true) } else { (PLAIN_NAME, false) }
}

/// Value of `Set-Cookie` for a session.
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
pub(crate) fn session_cookie(base: &str, headers: &HeaderMap) -> Option<TokenText> {
    TokenText::parse_cookie(of_name(headers, name(base).0)?)
}

fn of_name<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    cookies.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_host_only_and_http_only() {
        let secure = set_cookie("https://a.example", "mss_1", 60);
        assert_eq!(secure, "__Host-mainspring=mss_1; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure");
        assert_eq!(set_cookie("http://a", "x", 1), "mainspring=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=1");
        let text = TokenText::for_cookie("0123456789abcdef01").unwrap();
        let line = format!("a=b; mainspring={}", text.reveal_cookie());
        let of = |base: &str| {
            session_cookie(base, &[("cookie".parse().unwrap(), line.parse().unwrap())].into_iter().collect())
        };
        assert!(of("http://a").is_some_and(|read| read == text));
        assert!(of("https://a").is_none(), "one that came without TLS is not taken where there is TLS");
    }
}
