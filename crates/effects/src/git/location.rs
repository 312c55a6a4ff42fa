//! Addresses of repositories, and the hosts that the operator permits.

use std::fmt;

use url::Url;

use super::limits::{HOSTS_MAX, URL_BYTES_MAX};

/// Scheme, host and port of a permitted host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(Url);

/// The address of a repository at a permitted host, without a credential, a query and a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    url: String,
    full_name: String,
}

impl Host {
    /// Reads a host as the settings name it: `github.com`, `git.example.com:8443`, or with `https://` or `http://`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let full = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let wrong = || format!("`{}` is no host like github.com or https://git.example.com:8443", text.escape_debug());
        let url = Url::parse(&full).map_err(|_| wrong())?;
        let is_origin = matches!(url.scheme(), "https" | "http")
            && url.host().is_some()
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        if is_origin { Ok(Self(url)) } else { Err(wrong()) }
    }

    /// Reads the list of hosts of the settings.
    pub fn parse_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, String> {
        let hosts: Vec<Self> = texts.into_iter().map(Self::parse).collect::<Result<_, _>>()?;
        match hosts.len() {
            0 => Err("name at least one host, such as github.com".into()),
            count if count > HOSTS_MAX => Err(format!("at most {HOSTS_MAX} hosts")),
            _ => Ok(hosts),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Location {
    /// The repository of a URL. The error is a sentence.
    pub fn of_url(text: &str, hosts: &[Host]) -> Result<Self, String> {
        if text.len() > URL_BYTES_MAX || text.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
            return Err(format!("it must have at most {URL_BYTES_MAX} bytes, and no white space"));
        }
        let url = Url::parse(text).map_err(|_| "it is no URL like https://github.com/acme/app.git".to_string())?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(format!("repositories are read over https, not `{}`", url.scheme().escape_debug()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it contains a user or a password: write `credential: {secret: NAME}`".into());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it must not have a query or a fragment".into());
        }
        if !hosts.iter().any(|host| host.0.origin() == url.origin()) {
            let shown: Vec<String> = hosts.iter().map(|host| format!("`{host}`")).collect();
            return Err(format!(
                "its host is not permitted; the operator of this server permits {} (`repositories.hosts` in the settings file)",
                shown.join(", ")
            ));
        }
        let path = url.path().trim_end_matches('/');
        let full_name = path.trim_start_matches('/');
        let full_name = full_name.strip_suffix(".git").unwrap_or(full_name).to_owned();
        let is_name = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~-+".contains(&byte))
        };
        if !full_name.split('/').all(is_name) {
            return Err("its path must be names of letters, digits and . _ ~ - + with a slash between them".into());
        }
        Ok(Self { url: format!("{}{path}", url.origin().ascii_serialization()), full_name })
    }

    /// The repository of a full name such as `acme/app`, at the first permitted host.
    pub fn of_full_name(name: &str, hosts: &[Host]) -> Result<Self, String> {
        let Some(host) = hosts.first() else { return Err("no host is permitted".into()) };
        if !name.contains('/') || name.contains("..") || name.starts_with('/') {
            return Err("it must be a name like acme/app".into());
        }
        let suffix = if name.ends_with(".git") { "" } else { ".git" };
        Self::of_url(&format!("{host}/{name}{suffix}"), hosts)
    }

    /// Scheme, host, port if it is not the default, and path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The path without a leading slash and `.git`.
    pub fn full_name(&self) -> &str {
        &self.full_name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_origins() {
        for text in ["github.com", "https://git.example.com:8443", "http://127.0.0.1:8080", "[::1]:3000"] {
            assert!(Host::parse(text).is_ok(), "{text}");
        }
        for text in ["", "ssh://github.com", "https://u:p@github.com", "github.com/acme", "https://a/?b", "a b"] {
            assert!(Host::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn locations_are_at_permitted_hosts() {
        let hosts = Host::parse_all(["github.com", "http://127.0.0.1:8080"]).unwrap();
        for (text, expected) in [
            ("https://github.com/acme/app.git", Ok("acme/app")),
            ("https://GitHub.com:443/acme/app/", Ok("acme/app")),
            ("http://127.0.0.1:8080/a/b/c.git", Ok("a/b/c")),
            ("http://github.com/acme/app", Err("not permitted")),
            ("https://github.com.evil.test/acme/app", Err("not permitted")),
            ("https://github.com@evil.test/acme/app", Err("user or a password")),
            ("https://x:y@github.com/acme/app", Err("user or a password")),
            ("ssh://git@github.com/acme/app", Err("over https")),
            ("file:///srv/app.git", Err("over https")),
            ("ext::sh -c id", Err("white space")),
            ("ext::sh", Err("over https")),
            ("git@github.com:acme/app", Err("no URL")),
            ("-uupload", Err("no URL")),
            ("https://github.com/acme/app?a=b", Err("query")),
            ("https://github.com/acme/%2e%2e/app", Ok("app")),
            ("https://github.com/acme/a%0ab", Err("path")),
            ("https://github.com/", Err("path")),
        ] {
            let found = Location::of_url(text, &hosts);
            match (&found, expected) {
                (Ok(location), Ok(name)) => assert_eq!(location.full_name(), name, "{text}"),
                (Err(why), Err(word)) => assert!(why.contains(word), "{text}: {why}"),
                _ => panic!("{text}: {found:?}"),
            }
        }
        let named = Location::of_full_name("acme/app", &hosts).unwrap();
        assert_eq!((named.url(), named.full_name()), ("https://github.com/acme/app.git", "acme/app"));
        for text in ["acme", "/acme/app", "acme/../app", "acme/app?x", "@evil.test/app", ""] {
            assert!(Location::of_full_name(text, &hosts).is_err(), "{text}");
        }
    }
}
