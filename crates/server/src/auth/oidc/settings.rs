//! Settings of the OpenID Connect provider. Incomplete or contradictory ones are rejected with a help text.

use std::fmt;

use url::{Host, Url};

use crate::{auth::permission::Role, services::bootstrap};

/// The provider, this server's registration there, and the rules for who may sign in.
#[derive(Clone)]
pub struct Settings {
    /// Issuer, exactly as the provider spells it.
    pub issuer: String,
    pub(super) client_id: String,
    pub(super) client_secret: String,
    pub(super) scopes: Vec<String>,
    pub(super) claim: String,
    pub(crate) organization: String,
    pub(super) first_role: Option<Role>,
    pub(super) email_domains: Vec<String>,
}

/// Omits secrets.
impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settings").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// A setting that cannot be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting {
    /// Name of the setting.
    pub name: &'static str,
    /// Error and help.
    pub why: String,
}

/// Default claim for member ids. Accepted only if the provider has verified it.
pub(super) const EMAIL: &str = "email";

/// All settings beside the issuer. They have no effect without it.
const OTHERS: [&str; 7] = [
    "oidcClientId",
    "oidcClientSecret",
    "oidcScopes",
    "oidcClaim",
    "oidcOrganization",
    "oidcFirstRole",
    "oidcEmailDomains",
];

/// Claims that describe the token and not a person.
const CLAIMS_OF_TOKENS: [&str; 12] =
    ["iss", "aud", "azp", "exp", "iat", "nbf", "nonce", "jti", "sid", "acr", "at_hash", "email_verified"];

/// Default value of a setting.
pub fn default_of(name: &str) -> Option<&'static str> {
    match name {
        "oidcScopes" => Some("openid email profile"),
        "oidcClaim" => Some(EMAIL),
        "oidcOrganization" => Some(bootstrap::ORGANIZATION),
        "oidcFirstRole" => Some("none"),
        _ => None,
    }
}

impl Settings {
    /// Reads the settings by name; `None` without a provider.
    pub fn of(given: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, InvalidSetting> {
        let Some(issuer) = given("oidcIssuer") else {
            let alone = OTHERS.into_iter().find(|name| given(name).is_some());
            return match alone {
                Some(name) => Err(wrong(name, "it has no effect without `oidcIssuer`: set that, or remove this")),
                None => Ok(None),
            };
        };
        let value = |name: &str| given(name).or_else(|| default_of(name).map(Into::into)).unwrap_or_default();
        let required = |name: &'static str, help: &str| {
            given(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| wrong(name, help))
        };
        check_issuer(&issuer)?;
        let settings = Self {
            issuer,
            client_id: required("oidcClientId", "it is missing: the provider gives it when you register this server")?,
            client_secret: required(
                "oidcClientSecret",
                "it is missing: set MAINSPRING_OIDC_CLIENT_SECRET, or name a file that has it with `oidcClientSecretFile`",
            )?,
            scopes: scopes(&value("oidcScopes"))?,
            claim: claim(value("oidcClaim"))?,
            organization: value("oidcOrganization"),
            first_role: first_role(&value("oidcFirstRole"))?,
            email_domains: email_domains(&value("oidcEmailDomains"))?,
        };
        bootstrap::check_id("oidcOrganization", &settings.organization)
            .map_err(|problem| InvalidSetting { name: "oidcOrganization", why: problem.message })?;
        if settings.requires_email() && !settings.scopes.iter().any(|scope| scope == EMAIL) {
            return Err(wrong(
                "oidcScopes",
                "without the scope `email` there is no e-mail address to identify users: add it",
            ));
        }
        Ok(Some(settings))
    }

    /// Role of users who are not members yet; `None` to reject them.
    pub fn first_role(&self) -> Option<Role> {
        self.first_role
    }

    /// True if the e-mail claim is used and must be verified.
    pub(super) fn requires_email(&self) -> bool {
        self.claim == EMAIL || !self.email_domains.is_empty()
    }

    /// Address of the discovery document (OpenID Connect Discovery 1.0, 4).
    pub(super) fn discovery(&self) -> String {
        format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'))
    }

    /// Host name of the provider, for display.
    pub(crate) fn host(&self) -> String {
        Url::parse(&self.issuer).ok().and_then(|url| url.host_str().map(Into::into)).unwrap_or_default()
    }
}

fn wrong(name: &'static str, why: impl Into<String>) -> InvalidSetting {
    InvalidSetting { name, why: why.into() }
}

/// True if secrets may be sent to an address: over TLS, or on this machine.
pub(super) fn is_safe(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    !has_user && url.host().is_some() && (url.scheme() == "https" || url.scheme() == "http" && is_here)
}

fn check_issuer(issuer: &str) -> Result<(), InvalidSetting> {
    let url =
        Url::parse(issuer).map_err(|_| wrong("oidcIssuer", "it is not an address like https://login.example.com"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("oidcIssuer", "it must end with its path: no `?` and no `#`"));
    }
    if !is_safe(&url) {
        return Err(wrong(
            "oidcIssuer",
            "it must be https://… without a user or password in it; plain http is allowed only for this machine (127.0.0.1)",
        ));
    }
    Ok(())
}

/// Scopes in the syntax of RFC 6749, 3.3; commas are accepted as separators too.
fn scopes(text: &str) -> Result<Vec<String>, InvalidSetting> {
    let parts = text.split([' ', ',']).map(str::trim).filter(|scope| !scope.is_empty());
    let scopes: Vec<String> = parts.map(Into::into).collect();
    let fits = |scope: &String| scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    if !scopes.iter().all(fits) {
        return Err(wrong("oidcScopes", "it must be names with spaces between them, like `openid email profile`"));
    }
    if !scopes.iter().any(|scope| scope == "openid") {
        return Err(wrong("oidcScopes", "`openid` must be among them: without it there is no ID token"));
    }
    Ok(scopes)
}

fn claim(claim: String) -> Result<String, InvalidSetting> {
    let fits = |byte: u8| byte.is_ascii_graphic();
    if claim.is_empty() || !claim.bytes().all(fits) || CLAIMS_OF_TOKENS.contains(&claim.as_str()) {
        let why = format!("`{claim}` names nobody: use `email`, `sub`, or another claim that is one person's for ever");
        return Err(wrong("oidcClaim", why));
    }
    Ok(claim)
}

fn first_role(text: &str) -> Result<Option<Role>, InvalidSetting> {
    match text {
        "none" => Ok(None),
        "viewer" => Ok(Some(Role::Viewer)),
        "member" => Ok(Some(Role::Member)),
        other => Err(wrong(
            "oidcFirstRole",
            format!("`{other}` is given to nobody by a provider: there are `none`, `viewer` and `member`"),
        )),
    }
}

fn email_domains(text: &str) -> Result<Vec<String>, InvalidSetting> {
    let parts = text.split([' ', ',']).map(str::trim).filter(|domain| !domain.is_empty());
    let domains: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    match domains.iter().find(|domain| !domain.split('.').all(is_label)) {
        Some(other) => Err(wrong("oidcEmailDomains", format!("`{other}` is no domain like example.com"))),
        None => Ok(domains),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: [(&str, &str); 3] =
        [("oidcIssuer", "https://id.example.com"), ("oidcClientId", "flows"), ("oidcClientSecret", "s3cret")];

    /// Reads valid settings with some of them replaced; an empty text removes a setting.
    fn with(changes: &[(&str, &str)]) -> Result<Option<Settings>, InvalidSetting> {
        let all = |name: &str| {
            let mut known = changes.iter().chain(&GIVEN);
            let found = known.find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            found.filter(|value| !value.is_empty())
        };
        Settings::of(all)
    }

    #[test]
    fn complete_settings_are_accepted_and_debug_output_has_no_secret() {
        let settings = with(&[]).unwrap().unwrap();
        assert_eq!((settings.claim.as_str(), settings.organization.as_str()), ("email", "default"));
        assert_eq!((settings.scopes.join(" ").as_str(), settings.first_role), ("openid email profile", None));
        assert!(!format!("{settings:?}").contains("s3cret"));
        assert!(Settings::of(|_| None).unwrap().is_none());
        for issuer in ["http://127.0.0.1:9000/realms/a/", "http://[::1]:1", "http://localhost:1", "https://a.example/b"]
        {
            assert!(with(&[("oidcIssuer", issuer)]).is_ok(), "{issuer}");
        }
        let slash = with(&[("oidcIssuer", "https://a.example/")]).unwrap().unwrap();
        assert_eq!(slash.discovery(), "https://a.example/.well-known/openid-configuration");
        let domains = with(&[("oidcEmailDomains", "Example.com, b.example")]).unwrap().unwrap().email_domains;
        assert_eq!(domains, ["example.com", "b.example"]);
    }

    #[test]
    fn incomplete_or_contradictory_settings_are_rejected_by_name() {
        for (changes, name) in [
            (vec![("oidcIssuer", "")], "oidcClientId"),
            (vec![("oidcClientId", "")], "oidcClientId"),
            (vec![("oidcClientSecret", "")], "oidcClientSecret"),
            (vec![("oidcClientSecret", " ")], "oidcClientSecret"),
            (vec![("oidcIssuer", "id.example.com")], "oidcIssuer"),
            (vec![("oidcIssuer", "http://id.example.com")], "oidcIssuer"),
            (vec![("oidcIssuer", "http://127.0.0.1.example.com")], "oidcIssuer"),
            (vec![("oidcIssuer", "ftp://id.example.com")], "oidcIssuer"),
            (vec![("oidcIssuer", "https://ada:pw@id.example.com")], "oidcIssuer"),
            (vec![("oidcIssuer", "https://id.example.com?a=b")], "oidcIssuer"),
            (vec![("oidcScopes", "email")], "oidcScopes"),
            (vec![("oidcScopes", "openid \"email\"")], "oidcScopes"),
            (vec![("oidcScopes", "openid")], "oidcScopes"),
            (vec![("oidcScopes", "openid"), ("oidcClaim", "sub"), ("oidcEmailDomains", "a.example")], "oidcScopes"),
            (vec![("oidcClaim", "iss")], "oidcClaim"),
            (vec![("oidcClaim", "a b")], "oidcClaim"),
            (vec![("oidcOrganization", "a b")], "oidcOrganization"),
            (vec![("oidcFirstRole", "admin")], "oidcFirstRole"),
            (vec![("oidcFirstRole", "owner")], "oidcFirstRole"),
            (vec![("oidcFirstRole", "agent")], "oidcFirstRole"),
            (vec![("oidcEmailDomains", "ada@a.example")], "oidcEmailDomains"),
            (vec![("oidcEmailDomains", "*.example")], "oidcEmailDomains"),
        ] {
            assert_eq!(with(&changes).map_err(|wrong| wrong.name).unwrap_err(), name, "{changes:?}");
        }
    }
}
