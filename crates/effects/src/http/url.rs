//! The URL of a request: validation, and the form for messages.

use std::fmt;

use hyper::Uri;
use url::{Origin, Url};

use super::limits::URL_BYTES_MAX;

/// An absolute HTTP or HTTPS URL with a host and without user information and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    url: Url,
    /// The same URL in the type that is sent.
    uri: Uri,
}

/// A target without its query, for messages and results: a query may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown(String);

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Target {
    /// Parses the URL of a step. The error says what is wrong and how to correct it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        // The URL standard drops some of these silently. Here they are most likely a value that should be encoded.
        if text.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
            return Err("contains white space or a control character: encode it, as %20, or give it in `query`");
        }
        match Url::parse(text) {
            Ok(url) => Self::checked(url),
            Err(url::ParseError::RelativeUrlWithoutBase) => Err("is not absolute: begin with https:// and the host"),
            Err(_) => Err("is no URL: write it as https://host/path"),
        }
    }

    /// Resolves a `Location` against this URL (RFC 9110, 10.2.2).
    pub(super) fn join(&self, location: &str) -> Result<Self, &'static str> {
        self.url.join(location).map_err(|_| "is no URL").and_then(Self::checked)
    }

    fn checked(mut url: Url) -> Result<Self, &'static str> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err("is neither http nor https");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("holds a user or a password: send them as the header `Authorization`");
        }
        if url.host().is_none() {
            return Err("has no host");
        }
        if url.port() == Some(0) {
            return Err("has the port 0, which is not a valid port");
        }
        url.set_fragment(None);
        if url.as_str().len() > URL_BYTES_MAX {
            return Err("is longer than 8 KiB: send the data as a body");
        }
        match url.as_str().parse() {
            Ok(uri) => Ok(Self { url, uri }),
            Err(_) => Err("holds characters that cannot be sent: encode them, as %22"),
        }
    }

    /// Adds names and values to the query, in the encoding of forms.
    pub(super) fn with_query(mut self, pairs: &[(String, String)]) -> Result<Self, &'static str> {
        if !pairs.is_empty() {
            self.url.query_pairs_mut().extend_pairs(pairs);
        }
        Self::checked(self.url)
    }

    /// Returns the URL with its query.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the URL in the type that is sent.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns whether the connection uses TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the port, by default that of the scheme.
    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Returns scheme, host and port (RFC 6454), which decide whether a redirect keeps credentials.
    pub(super) fn origin(&self) -> Origin {
        self.url.origin()
    }

    /// See [`Shown`].
    pub(super) fn shown(&self) -> Shown {
        Shown(self.url[..url::Position::AfterPath].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_are_read() {
        for (text, url) in [
            ("https://Example.com", "https://example.com/"),
            ("HTTP://example.com:80/a?b=c#d", "http://example.com/a?b=c"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://017700000001/", "http://127.0.0.1/"),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://[::FFFF:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/"),
            ("http://１２７.0.0.1/", "http://127.0.0.1/"),
            ("http://good.test\\@evil.test/", "http://good.test/@evil.test/"),
        ] {
            assert_eq!(Target::parse(text).unwrap().url().as_str(), url, "{text}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for (text, why) in [
            ("", "not absolute"),
            ("/path", "not absolute"),
            ("example.com/a", "not absolute"),
            ("ftp://example.com", "neither"),
            ("file:///etc/passwd", "neither"),
            ("data:text/plain,x", "neither"),
            ("http://user@example.com", "user or a password"),
            ("http://:secret@example.com", "user or a password"),
            ("http://", "no URL"),
            ("http://a b/", "white space"),
            ("http://a/\nb", "white space"),
            ("http://a\t.test/", "white space"),
            ("http://[fe80::1%25eth0]/", "no URL"),
            ("http://256.1.1.1/", "no URL"),
            ("http://a:99999/", "no URL"),
            ("http://a:0/", "port 0"),
        ] {
            let error = Target::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(Target::parse(&format!("http://a/{}", "x".repeat(URL_BYTES_MAX))).unwrap_err().contains("8 KiB"));
    }

    #[test]
    fn queries_are_appended_and_never_displayed() {
        let target = Target::parse("https://a.test/p?x=1#f").unwrap();
        let pairs = [("k&".to_owned(), "ä =+".to_owned()), (String::new(), String::new())];
        let target = target.with_query(&pairs).unwrap();
        assert_eq!(target.uri().path_and_query().unwrap(), "/p?x=1&k%26=%C3%A4+%3D%2B&=");
        assert_eq!(target.shown().to_string(), "https://a.test/p");
        assert_eq!(Target::parse("http://a/").unwrap().with_query(&[]).unwrap().url().as_str(), "http://a/");
        let long = [("k".to_owned(), "ä".repeat(URL_BYTES_MAX / 3))];
        assert!(Target::parse("http://a/").unwrap().with_query(&long).is_err());
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails_without_a_panic(text in ".{0,40}|https?://.{0,40}", location in ".{0,40}|(https?:)?//.{0,40}") {
            for base in [text.as_str(), "https://a.test/p?q"] {
                let Ok(target) = Target::parse(base) else { continue };
                prop_assert!(!target.shown().to_string().contains(['?', '#', '@']) || target.url().path().contains('@'));
                if let Ok(joined) = target.join(&location) {
                    prop_assert!(matches!(joined.url().scheme(), "http" | "https") && joined.url().host().is_some());
                    prop_assert!(joined.url().username().is_empty() && joined.url().password().is_none());
                }
            }
        }
    }

    #[test]
    fn redirect_locations_are_resolved() {
        let target = Target::parse("https://a.test:8443/p/q?x=1").unwrap();
        for (location, url) in [
            ("/r", "https://a.test:8443/r"),
            ("r?y", "https://a.test:8443/p/r?y"),
            ("//b.test/", "https://b.test/"),
            ("http://2852039166/#x", "http://169.254.169.254/"),
        ] {
            assert_eq!(target.join(location).unwrap().url().as_str(), url, "{location}");
        }
        for location in ["ftp://b.test/", "https://u:p@b.test/", "http://", "javascript:alert(1)"] {
            assert!(target.join(location).is_err(), "{location}");
        }
    }
}
