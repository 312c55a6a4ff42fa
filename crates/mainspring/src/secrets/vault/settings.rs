//! The value of `vault` in a settings file.
//!
//! ```yaml
//! vault:
//!   address: https://vault.example.com:8200
//!   token: {file: /run/secrets/vault-token}
//! ```

use std::path::PathBuf;

use mainspring_kernel::value::{Map, Value};
use url::Url;

use super::location::path;
use crate::secrets::config::LocalSource;

/// The file in which Kubernetes gives a pod the token of its service account.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

const HELP: &str = "write `vault: {address: URL, token: {env: VARIABLE}}`";

/// A server and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VaultSettings {
    /// The address, without `v1`.
    pub(super) address: Url,
    /// The origin of the token of requests.
    pub(super) login: Login,
    /// The namespace, as in Vault Enterprise and OpenBao.
    pub(super) namespace: Option<String>,
    /// A PEM file with certificate authorities of the server.
    pub(super) authorities: Option<PathBuf>,
}

/// The origin of the token of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Login {
    /// A token that is given. It is read again for each request, so it can be replaced.
    Token(LocalSource),
    /// A login with role and secret id.
    AppRole { mount: String, role_id: String, secret_id: LocalSource },
    /// A login with the service account of a pod.
    Kubernetes { mount: String, role: String, token: LocalSource },
}

impl VaultSettings {
    /// Reads the value; null has none. The error begins with its place.
    pub(crate) fn read(value: &Value) -> Result<Option<Self>, String> {
        let map = match value {
            Value::Null => return Ok(None),
            Value::Map(map) => map,
            other => return Err(format!("vault: this is {}, not a map; {HELP}", other.kind())),
        };
        Self::of(map).map(Some).map_err(|why| format!("vault{why}"))
    }

    fn of(map: &Map) -> Result<Self, String> {
        let logins = ["token", "approle", "kubernetes"];
        known(map, &[&["address", "namespace", "caCert"], &logins[..]].concat())?;
        let given: Vec<&str> = logins.into_iter().filter(|key| map.contains_key(*key)).collect();
        let login = match given.as_slice() {
            ["token"] => LocalSource::read(&map["token"]).map(Login::Token),
            ["approle"] => app_role(&map["approle"]),
            ["kubernetes"] => kubernetes(&map["kubernetes"]),
            _ => return Err(format!(": it has one of {}; {HELP}", logins.join(", "))),
        };
        let login = login.map_err(|why| format!(".{}{why}", given[0]))?;
        let namespace = match map.get("namespace") {
            None => None,
            Some(_) => match text(map, "namespace")? {
                name if name.bytes().all(|byte| byte.is_ascii_graphic()) => Some(name),
                _ => return Err(".namespace: this is not the path of a namespace".into()),
            },
        };
        let authorities = match map.contains_key("caCert") {
            true => Some(text(map, "caCert")?.into()),
            false => None,
        };
        Ok(Self { address: address(&text(map, "address")?)?, login, namespace, authorities })
    }

    /// The variable that holds a credential, if one does.
    pub(crate) fn variable(&self) -> Option<&str> {
        match &self.login {
            Login::Token(source)
            | Login::AppRole { secret_id: source, .. }
            | Login::Kubernetes { token: source, .. } => source.variable(),
        }
    }
}

fn address(text: &str) -> Result<Url, String> {
    let refused = ".address: this is not an address such as https://vault.example.com:8200";
    let url = Url::parse(text).map_err(|_| refused.to_owned())?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_base = is_plain && url.query().is_none() && url.fragment().is_none() && url.host_str().is_some();
    if is_base && ["http", "https"].contains(&url.scheme()) { Ok(url) } else { Err(refused.into()) }
}

fn app_role(value: &Value) -> Result<Login, String> {
    let help = "write `approle: {roleId: ID, secretId: {file: PATH}}`";
    let map = value.as_map().ok_or_else(|| format!(": this is {}, not a map; {help}", value.kind()))?;
    known(map, &["roleId", "secretId", "mount"])?;
    let secret_id = map.get("secretId").ok_or_else(|| format!(".secretId: it is missing; {help}"))?;
    let secret_id = LocalSource::read(secret_id).map_err(|why| format!(".secretId{why}"))?;
    Ok(Login::AppRole { mount: mount(map, "approle")?, role_id: text(map, "roleId")?, secret_id })
}

fn kubernetes(value: &Value) -> Result<Login, String> {
    let help = "write `kubernetes: {role: ROLE}`";
    let map = value.as_map().ok_or_else(|| format!(": this is {}, not a map; {help}", value.kind()))?;
    known(map, &["role", "token", "mount"])?;
    let token = match map.get("token") {
        None => LocalSource::File(SERVICE_ACCOUNT_TOKEN.into()),
        Some(token) => LocalSource::read(token).map_err(|why| format!(".token{why}"))?,
    };
    Ok(Login::Kubernetes { mount: mount(map, "kubernetes")?, role: text(map, "role")?, token })
}

fn mount(map: &Map, default: &str) -> Result<String, String> {
    let Some(given) = map.get("mount") else { return Ok(default.into()) };
    given.as_text().and_then(path).ok_or_else(|| ".mount: this is not the path of a mount".into())
}

fn text(map: &Map, key: &str) -> Result<String, String> {
    let text = map.get(key).and_then(Value::as_text).filter(|text| !text.trim().is_empty() && !text.contains('\0'));
    text.map(Into::into).ok_or_else(|| format!(".{key}: this is missing, or is not a text; {HELP}"))
}

fn known(map: &Map, keys: &[&str]) -> Result<(), String> {
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(unknown) => Err(format!(".{unknown}: this key is not known; there are {}", keys.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    fn read(text: &str) -> Result<Option<VaultSettings>, String> {
        VaultSettings::read(&json::value(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_server_has_an_address_and_one_login_method() {
        assert_eq!(read("null"), Ok(None));
        let given = read(r#"{"address": "https://v:8200/x", "token": {"env": "T"}, "namespace": "a/b"}"#);
        assert_eq!(given.unwrap().unwrap().variable(), Some("T"));
        let pod = read(r#"{"address": "https://v", "kubernetes": {"role": "r"}}"#).unwrap().unwrap();
        let file = LocalSource::File(SERVICE_ACCOUNT_TOKEN.into());
        assert_eq!(pod.login, Login::Kubernetes { mount: "kubernetes".into(), role: "r".into(), token: file });
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let check = |text: &str, expected: &str| {
            let why = read(text).unwrap_err();
            assert!(why.starts_with(expected), "{text}: {why}");
        };
        check("[]", "vault: this is");
        check(r#"{"address": "https://v"}"#, "vault: it has one of");
        check(r#"{"address": "https://v", "token": "s.root"}"#, "vault.token: this is text, not the source");
        check(r#"{"address": "ftp://v", "token": {"env": "T"}}"#, "vault.address: this is not");
        check(r#"{"address": "https://u:p@v", "token": {"env": "T"}}"#, "vault.address: this is not");
        check(r#"{"token": {"env": "T"}}"#, "vault.address: this is missing");
        check(r#"{"address": "https://v", "token": {"vault": {}}}"#, "vault.token.vault: this key is not known");
        check(r#"{"address": "https://v", "approle": {"roleId": "r"}}"#, "vault.approle.secretId: it is missing");
        check(r#"{"address": "https://v", "kubernetes": {"role": "r", "mount": "../x"}}"#, "vault.kubernetes.mount");
        check(r#"{"address": "https://v", "token": {"env": "T"}, "namespace": "a\r\nb"}"#, "vault.namespace");
        check(r#"{"address": "https://v", "token": {"env": "T"}, "skipVerify": true}"#, "vault.skipVerify");
    }
}
