//! The operator's exceptions to the public internet, by organization: ranges of addresses and host names.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use ipnet::IpNet;
use url::Host;

/// The environment variable with the operator's exceptions to the public internet, in the form that [`Allowlist`] parses.
/// The code that builds an [`Http`](super::Http) reads it; error messages here name it.
pub const ALLOW_VARIABLE: &str = "MAINSPRING_HTTP_ALLOW";

/// The organization of entries and executions that name none, as those of the command line.
pub const DEFAULT_ORGANIZATION: &str = "default";

/// Maximum characters of an organization's id, the same as in the server.
const ORGANIZATION_CHARS_MAX: usize = 128;

/// Exceptions to the rule that only public addresses are connected to, by organization. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowlist(BTreeMap<String, Permitted>);

/// The exceptions of one organization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Permitted(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// The entry as written, without the organization.
    text: String,
    what: What,
    /// The only allowed port, or `None` for every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// Addresses, under any name.
    Range(IpNet),
    /// The host name in the URL, with any address.
    Name(String),
}

/// An entry that cannot be parsed, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowError {
    entry: String,
    help: &'static str,
}

impl fmt::Display for AllowError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the entry `{}` cannot be read: {}", self.entry.escape_debug(), self.help)
    }
}

impl std::error::Error for AllowError {}

/// Parses a list separated by commas or white space: `10.0.0.0/8`, `127.0.0.1:8080`, `[::1]:8080`, `fd00::/8`,
/// `build.internal`, `build.internal:8443`. An entry may start with its organization: `acme=10.0.0.0/8`.
impl FromStr for Allowlist {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let entries = text.split(|letter: char| letter == ',' || letter.is_whitespace());
        let mut allow = Self::default();
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let (organization, rest) = entry.split_once('=').unwrap_or((DEFAULT_ORGANIZATION, entry));
            let error = |help| AllowError { entry: entry.to_owned(), help };
            if !is_organization(organization) {
                return Err(error("before `=` stands the id of an organization, as in acme=10.0.0.0/8"));
            }
            let parsed = Entry::parse(rest).map_err(error)?;
            allow.0.entry(organization.to_owned()).or_default().0.push(parsed);
        }
        Ok(allow)
    }
}

/// Applies the server's rule for ids.
fn is_organization(id: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._:@+-".contains(letter);
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id.len() <= ORGANIZATION_CHARS_MAX
        && id.chars().all(fits)
}

impl Allowlist {
    /// Returns the exceptions of an organization; `None` stands for an execution of the command line.
    pub(super) fn of(&self, organization: Option<&str>) -> &Permitted {
        static NOTHING: Permitted = Permitted(Vec::new());
        self.0.get(organization.unwrap_or(DEFAULT_ORGANIZATION)).unwrap_or(&NOTHING)
    }

    /// Lists the organizations with exceptions, and the exceptions of each as written.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.0.iter().map(|(organization, permitted)| {
            (organization.as_str(), permitted.0.iter().map(|entry| entry.text.as_str()).collect())
        })
    }
}

impl Permitted {
    /// Returns whether an address is allowed as such.
    pub(super) fn holds_address(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|entry| match &entry.what {
            What::Range(range) => entry.takes_port(address.port()) && range.contains(&address.ip()),
            What::Name(_) => false,
        })
    }

    /// Returns whether a host is allowed with any address.
    pub(super) fn holds_name(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|entry| match &entry.what {
            What::Range(_) => false,
            What::Name(name) => entry.takes_port(port) && name == without_root(host),
        })
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let of = |what, port| Self { text: text.to_owned(), what, port };
        if let Ok(range) = text.parse::<IpNet>() {
            return match range.trunc() == range {
                true => Ok(of(What::Range(range), None)),
                false => Err("a range begins at its first address, as 10.0.0.0/8 and not 10.1.2.3/8"),
            };
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(of(What::Range(IpNet::from(address.ip())), Some(address.port())));
        }
        let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = unbracketed.parse::<IpAddr>() {
            return Ok(of(What::Range(IpNet::from(address)), None));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => match port.parse::<u16>() {
                Ok(port) if port > 0 => (host, Some(port)),
                _ => return Err("a port is a number from 1 to 65535"),
            },
            None => (text, None),
        };
        let help = "write a range as 10.0.0.0/8, and a name as build.internal or build.internal:8443, without scheme, path or wildcard";
        match Host::parse(host) {
            Ok(Host::Domain(name)) if !name.contains('*') && !without_root(&name).is_empty() => {
                Ok(of(What::Name(without_root(&name).to_owned()), port))
            }
            // URLs accept `127.1` as an address. A reader of the list would not recognize it, so it is an error here.
            Ok(_) | Err(_) => Err(help),
        }
    }

    fn takes_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

/// Returns a name without the dot of the DNS root, which makes no difference to its meaning.
pub(super) fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_addresses() {
        let allow: Allowlist = "10.0.0.0/8, 127.0.0.1:8080 ::1\n[fd00::1]:443,[fd00::2],192.0.2.7".parse().unwrap();
        let allow = allow.of(None);
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
        assert_eq!(" ,\n".parse(), Ok(Allowlist::default()));
    }

    #[test]
    fn names() {
        let allow: Allowlist = "Build.Internal,api.test:8443,müller.test,dotted.test.".parse().unwrap();
        let allow = allow.of(None);
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
    fn an_entry_is_for_one_organization() {
        let allow: Allowlist = "10.0.0.0/8 acme=127.0.0.1:7499,acme=build.test,default=[::1]:80".parse().unwrap();
        let check = |organization: Option<&str>, address: &str, expected: bool| {
            let holds = allow.of(organization).holds_address(address.parse().unwrap());
            assert_eq!(holds, expected, "{organization:?} {address}");
        };
        for of_default in [None, Some("default")] {
            check(of_default, "10.0.0.1:1", true);
            check(of_default, "[::1]:80", true);
            check(of_default, "127.0.0.1:7499", false);
        }
        check(Some("acme"), "127.0.0.1:7499", true);
        check(Some("acme"), "10.0.0.1:1", false);
        check(Some("acme"), "[::1]:80", false);
        for other in ["globex", "", "Acme", "acme="] {
            check(Some(other), "10.0.0.1:1", false);
            check(Some(other), "127.0.0.1:7499", false);
        }
        assert!(allow.of(Some("acme")).holds_name("build.test", 1));
        assert!(!allow.of(None).holds_name("build.test", 1));
        let entries: Vec<_> = allow.entries().collect();
        assert_eq!(
            entries,
            [("acme", vec!["127.0.0.1:7499", "build.test"]), ("default", vec!["10.0.0.0/8", "[::1]:80"])]
        );
    }

    #[test]
    fn invalid_entries_are_named() {
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
            "=10.0.0.0/8",
            "acme=",
            "acme=10.1.2.3/8",
            "acme=default=10.0.0.0/8",
            "a/b=10.0.0.0/8",
            "-a=10.0.0.0/8",
            "*=10.0.0.0/8",
        ] {
            let error = format!("localhost,{wrong}").parse::<Allowlist>().expect_err(wrong);
            assert!(error.to_string().starts_with(&format!("the entry `{wrong}` cannot")), "{error}");
        }
    }
}
