//! Protection against cross-site requests (CSRF).

use axum::http::{HeaderMap, Method};
use url::{Origin, Url};

use crate::http::problem::{Code, Problem, Result};

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
/// `Sec-Fetch-Site` and `Origin` (RFC 6454). A request with neither passes if `must_name_source` is false, or if its
/// `Referer` is of the base URL: over plain HTTP from another machine, browsers send neither for a GET of their origin.
pub(crate) fn check_origin(base: &str, headers: &HeaderMap, must_name_source: bool) -> Result<()> {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_string());
    let (site, from) = (header("sec-fetch-site"), header("origin"));
    let is_ours = |from: &String| origin(from).is_some() && origin(from) == origin(base);
    let names_source = site.is_some() || from.is_some() || header("referer").as_ref().is_some_and(is_ours);
    if site.is_none_or(|site| site == "same-origin")
        && from.as_ref().is_none_or(is_ours)
        && (names_source || !must_name_source)
    {
        return Ok(());
    }
    let message = format!(
        "With a cookie, a changing request must come from {base}, with its `Origin`: reach the server \
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
    fn only_requests_from_the_base_url_are_same_origin() {
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
        assert!(is(&[("referer", "https://flows.example.com/installation?section=audit")]));
        for other in ["https://example.com/", "https://flows.example.com.evil.example/", "/installation", ""] {
            assert!(!is(&[("referer", other)]), "{other}");
        }
        let ours = ("referer", "https://flows.example.com/");
        assert!(!is(&[ours, ("origin", "https://example.com")]) && !is(&[ours, ("sec-fetch-site", "cross-site")]));
        assert!(!is(&[]) && check_origin(base, &headers(&[]), false).is_ok());
    }
}
