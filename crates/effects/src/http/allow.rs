//! What an operator allows beyond the public internet: ranges of addresses and names of hosts.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use ipnet::IpNet;
use url::Host;

/// Exceptions from the rule that only public addresses are connected to. Empty unless somebody says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow(Vec<Entry>);

/// One exception.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    what: What,
    /// Only this port; every port if there is none.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// Addresses, whatever name leads there.
    Range(IpNet),
    /// A host by the name in the URL, wherever it leads.
    Name(String),
}

/// Which entry of a list cannot be read, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowError {
    entry: String,
    mend: &'static str,
}

impl fmt::Display for AllowError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is no range of addresses and no host: {}", self.entry.escape_debug(), self.mend)
    }
}

impl std::error::Error for AllowError {}

/// Reads a list whose entries are divided by commas or spaces: `10.0.0.0/8`, `127.0.0.1:8080`, `[::1]:8080`, `fd00::/8`,
/// `build.internal`, `build.internal:8443`.
impl FromStr for Allow {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let entries = text.split(|letter: char| letter == ',' || letter.is_whitespace());
        entries.filter(|entry| !entry.is_empty()).map(Entry::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Allow {
    /// Whether an address is allowed for its own sake.
    pub(super) fn holds_address(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|entry| match &entry.what {
            What::Range(range) => entry.takes_port(address.port()) && range.contains(&address.ip()),
            What::Name(_) => false,
        })
    }

    /// Whether a host is allowed wherever its name leads.
    pub(super) fn holds_name(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|entry| match &entry.what {
            What::Range(_) => false,
            What::Name(name) => entry.takes_port(port) && name == without_root(host),
        })
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, AllowError> {
        let error = |mend| AllowError { entry: text.to_owned(), mend };
        if let Ok(range) = text.parse::<IpNet>() {
            return match range.trunc() == range {
                true => Ok(Self { what: What::Range(range), port: None }),
                false => Err(error("a range begins at its first address, as 10.0.0.0/8 and not 10.1.2.3/8")),
            };
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { what: What::Range(IpNet::from(address.ip())), port: Some(address.port()) });
        }
        let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = unbracketed.parse::<IpAddr>() {
            return Ok(Self { what: What::Range(IpNet::from(address)), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => match port.parse::<u16>() {
                Ok(port) if port > 0 => (host, Some(port)),
                _ => return Err(error("a port is a number from 1 to 65535")),
            },
            None => (text, None),
        };
        let mend = "write a name as build.internal or build.internal:8443, without scheme, path or wildcard";
        match Host::parse(host) {
            Ok(Host::Domain(name)) if !name.contains('*') && !without_root(&name).is_empty() => {
                Ok(Self { what: What::Name(without_root(&name).to_owned()), port })
            }
            // `127.1` is an address for URLs; here it would be one that nobody reads as such.
            Ok(_) | Err(_) => Err(error(mend)),
        }
    }

    fn takes_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

/// A name without the dot that stands for the root of all names: both lead to the same place.
pub(super) fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_addresses() {
        let allow: Allow = "10.0.0.0/8, 127.0.0.1:8080 ::1\n[fd00::1]:443,[fd00::2],192.0.2.7".parse().unwrap();
        let check = |address: &str, expected: bool| {
            assert_eq!(allow.holds_address(address.parse().unwrap()), expected, "{address}");
        };
        check("10.0.0.0:1", true);
        check("10.255.255.255:65535", true);
        check("11.0.0.0:1", false);
        check("127.0.0.1:8080", true);
        check("127.0.0.1:8081", false);
        check("127.0.0.2:8080", false);
        check("[::1]:5", true);
        check("[::ffff:10.0.0.1]:5", false);
        check("[fd00::1]:443", true);
        check("[fd00::1]:80", false);
        check("[fd00::2]:80", true);
        check("192.0.2.7:80", true);
        assert!(!allow.holds_name("10.0.0.1", 80));
        assert_eq!(" ,\n".parse(), Ok(Allow::default()));
    }

    #[test]
    fn names() {
        let allow: Allow = "Build.Internal,api.test:8443,müller.test,dotted.test.".parse().unwrap();
        let check = |host: &str, port: u16, expected: bool| {
            assert_eq!(allow.holds_name(host, port), expected, "{host}:{port}");
        };
        check("build.internal", 1, true);
        check("build.internal.", 1, true);
        check("x.build.internal", 1, false);
        check("internal", 1, false);
        check("api.test", 8443, true);
        check("api.test", 443, false);
        check("xn--mller-kva.test", 80, true);
        check("dotted.test", 80, true);
        assert!(!allow.holds_address("127.0.0.1:1".parse().unwrap()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for wrong in [
            "10.1.2.3/8",
            "10.0.0.0/33",
            "a:0",
            "a:x",
            "a:70000",
            "*.test",
            "http://a",
            "a/b",
            "[::1",
            ".",
            "127.1",
            ":80",
        ] {
            let error = format!("localhost,{wrong}").parse::<Allow>().expect_err(wrong);
            assert!(error.to_string().starts_with(&format!("`{wrong}` is no range")), "{error}");
        }
    }
}
