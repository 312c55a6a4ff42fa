//! Parses the address of a server, and builds routes from it.

use std::{fmt, net::IpAddr};

use url::{Host, Url};

use crate::error::CliError;

/// A base URL: `http` or `https`, a host, and optionally a port and a path prefix. It contains no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    url: Url,
}

impl Address {
    /// Parses an address. An error does not repeat the text, since it may contain a password.
    pub(crate) fn parse(text: &str) -> Result<Self, CliError> {
        let refused = |why: &str| CliError::bad_input("bad_server", format!("the server's address {why}"));
        let form = "must be an URL like https://mainspring.example.com or http://127.0.0.1:7300";
        let mut url = Url::parse(text.trim()).map_err(|_| refused(form))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(refused(form));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(
                "has a user or a password in it; a token is read from MAINSPRING_TOKEN, or stored by `mainspring login`",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused("must end with its path: no `?` and no `#`"));
        }
        let path = url.path().trim_end_matches('/').to_string();
        url.set_path(&path);
        Ok(Self { url })
    }

    /// True if the transport is not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// True if the address is this machine: a loopback address, or a name reserved for it (RFC 6761, section 6.3).
    pub(crate) fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
            Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
            None => false,
        }
    }

    /// The host. An IPv6 address has no brackets.
    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// The port, or the default port of the scheme.
    pub(crate) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// Host and port, as in the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        &self.url[url::Position::BeforeHost..url::Position::AfterPort]
    }

    /// The request target of a route: the path prefix and the route.
    pub(crate) fn target(&self, route: &str) -> String {
        format!("{}{route}", self.url.path().trim_end_matches('/'))
    }
}

/// The stored and displayed form, without a trailing slash.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

/// Builds a route from path segments and query parameters. Each is percent-encoded, so none can change the path.
pub(crate) fn route(parts: &[&str], query: &[(&str, &str)]) -> String {
    let mut route: String = parts.iter().map(|part| format!("/{}", part_encoded(part))).collect();
    for (place, (name, value)) in query.iter().enumerate() {
        let sign = if place == 0 { '?' } else { '&' };
        route.push_str(&format!("{sign}{}={}", encoded(name), encoded(value)));
    }
    route
}

/// Encodes the dots of `.` and `..` too: proxies normalize such segments as relative paths.
fn part_encoded(part: &str) -> String {
    if part.bytes().all(|byte| byte == b'.') { part.replace('.', "%2E") } else { encoded(part) }
}

fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) { out.push(byte.into()) } else { out.push_str(&format!("%{byte:02X}")) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_spelling() {
        for (text, shown, host, port, target, loopback) in [
            ("http://127.0.0.1:7300", "http://127.0.0.1:7300", "127.0.0.1", 7300, "/api/me", true),
            ("HTTP://LocalHost:80/", "http://localhost", "localhost", 80, "/api/me", true),
            ("http://[::1]:7300/", "http://[::1]:7300", "::1", 7300, "/api/me", true),
            (
                "https://flows.example.com/m/",
                "https://flows.example.com/m",
                "flows.example.com",
                443,
                "/m/api/me",
                false,
            ),
            (
                "http://127.0.0.1.example.com",
                "http://127.0.0.1.example.com",
                "127.0.0.1.example.com",
                80,
                "/api/me",
                false,
            ),
            ("http://0177.1:1", "http://127.0.0.1:1", "127.0.0.1", 1, "/api/me", true),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!((address.host(), address.port(), address.target("/api/me").as_str()), (host, port, target));
            assert_eq!(address.is_loopback(), loopback, "{text}");
            assert_eq!(Address::parse(shown).unwrap(), address, "what is shown is read back");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_and_not_echoed() {
        for text in
            ["", "localhost:7300", "ftp://a", "http://", "http://u:hunter2@h", "http://h/?hunter2", "http://h/#a"]
        {
            let error = Address::parse(text).unwrap_err();
            assert!(error.failure.message.starts_with("the server's address"), "{text}");
            assert!(!error.failure.message.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn path_segments_are_encoded() {
        for (part, expected) in
            [("a-1.b_~", "/a-1.b_~"), ("..", "/%2E%2E"), ("a/b?c#d%", "/a%2Fb%3Fc%23d%25"), ("é", "/%C3%A9")]
        {
            assert_eq!(route(&[part], &[]), expected);
        }
        assert_eq!(route(&["api", "x"], &[("a", "1&b"), ("c", "d e")]), "/api/x?a=1%26b&c=d%20e");
    }
}
