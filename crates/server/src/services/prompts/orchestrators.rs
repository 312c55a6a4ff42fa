//! The endpoints to which prompts are sent, one for each organization: `orchestrators` in the settings file.
//!
//! ```yaml
//! orchestrators:
//!   default: {url: "https://agents.example.com/prompts", secret: {secret: ORCHESTRATOR}}
//! ```

use std::{collections::BTreeMap, fmt, sync::Arc};

use mainspring_effects::secrets::{Purpose, SecretError, SecretSource, SecretUser};
use mainspring_kernel::{
    secret::{SESSION_TOKEN, SecretReference},
    value::{Map, Value},
};

use crate::services::events::endpoint_url::check_endpoint;

/// Organizations that can have an endpoint. The settings are read as a whole.
const ENDPOINTS_MAX: usize = 10_000;

/// The endpoints of a server, with the source of their secrets.
#[derive(Clone, Default)]
pub struct Orchestrators {
    endpoints: Arc<BTreeMap<String, Endpoint>>,
    secrets: Option<Arc<dyn SecretSource>>,
}

impl fmt::Debug for Orchestrators {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Orchestrators").field(&self.endpoints).finish()
    }
}

/// The endpoint of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub url: String,
    /// The name of the secret of its signatures.
    secret: String,
}

impl Orchestrators {
    /// Reads the setting `orchestrators`; null is none. The errors are all mistakes with their places.
    pub fn read(setting: &Value) -> Result<Self, Vec<String>> {
        let map = match setting {
            Value::Null => return Ok(Self::default()),
            Value::Map(map) if map.len() <= ENDPOINTS_MAX => map,
            Value::Map(_) => return Err(vec![format!("orchestrators: at most {ENDPOINTS_MAX} organizations")]),
            other => {
                let kind = other.kind();
                return Err(vec![format!("orchestrators: it must map organizations to endpoints, and is {kind}")]);
            }
        };
        let (mut endpoints, mut errors) = (BTreeMap::new(), Vec::new());
        for (organization, value) in map {
            match endpoint(value) {
                Ok(endpoint) => drop(endpoints.insert(organization.clone(), endpoint)),
                Err(found) => errors.extend(found.iter().map(|why| format!("orchestrators.{organization}: {why}"))),
            }
        }
        match errors.is_empty() {
            true => Ok(Self { endpoints: Arc::new(endpoints), secrets: None }),
            false => Err(errors),
        }
    }

    /// Sets the source of the secrets.
    pub fn with_secrets(self, secrets: Arc<dyn SecretSource>) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// The endpoint of an organization.
    pub(crate) fn of(&self, organization: &str) -> Option<&Endpoint> {
        self.endpoints.get(organization)
    }

    /// Reads the secret of the endpoint of an organization. The use is recorded in the audit log.
    pub(crate) async fn secret_of(&self, organization: &str, endpoint: &Endpoint) -> Result<String, SecretError> {
        let Some(secrets) = &self.secrets else {
            return Err(SecretError::Missing("this server has no secrets".into()));
        };
        let purpose = Purpose::Settings(format!("orchestrators.{organization}"));
        let by = SecretUser { organization: Some(organization.into()), purpose };
        Ok(secrets.read(&endpoint.secret, &by).await?.expose().to_string())
    }
}

fn endpoint(value: &Value) -> Result<Endpoint, Vec<String>> {
    let Some(map) = value.as_map() else {
        return Err(vec!["write `{url: \"https://…\", secret: {secret: NAME}}`".into()]);
    };
    let unknown = map.keys().filter(|key| !["url", "secret"].contains(&key.as_str()));
    let mut errors: Vec<String> = unknown.map(|key| format!("`{key}` is unknown; there are `url`, `secret`")).collect();
    let url = url_of(map).map_err(|why| errors.push(why)).ok();
    let secret = secret_of(map).map_err(|why| errors.push(why)).ok();
    match (url, secret) {
        (Some(url), Some(secret)) if errors.is_empty() => Ok(Endpoint { url, secret }),
        _ => Err(errors),
    }
}

fn url_of(map: &Map) -> Result<String, String> {
    let url = map.get("url").and_then(Value::as_text).ok_or("url: it is missing: write `https://host/path`")?;
    check_endpoint(url).map_err(|why| format!("url: {why}"))?;
    Ok(url.into())
}

fn secret_of(map: &Map) -> Result<String, String> {
    let form = "secret: write `{secret: NAME}`; the signatures need one";
    let reference = map.get("secret").and_then(SecretReference::read).ok_or(form)?;
    let reference = reference.map_err(|wrong| format!("secret: {}", wrong.explain().0))?;
    match reference {
        SecretReference { name, prefix } if prefix.is_empty() && name != SESSION_TOKEN => Ok(name),
        _ => Err(form.into()),
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    fn read(text: &str) -> Result<Orchestrators, Vec<String>> {
        Orchestrators::read(&json::data(text.as_bytes()).unwrap())
    }

    #[test]
    fn each_organization_has_its_endpoint() {
        let found = read(r#"{"acme": {"url": "https://a.example.com/p", "secret": {"secret": "KEY"}}}"#).unwrap();
        let endpoint = Endpoint { url: "https://a.example.com/p".into(), secret: "KEY".into() };
        assert_eq!((found.of("acme"), found.of("globex")), (Some(&endpoint), None));
        assert!(Orchestrators::read(&Value::Null).unwrap().of("acme").is_none());
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        for (text, expected) in [
            (r#"[]"#, "orchestrators: it must map"),
            (r#"{"acme": "https://a"}"#, "orchestrators.acme: write"),
            (r#"{"acme": {"secret": {"secret": "KEY"}}}"#, "orchestrators.acme: url: it is missing"),
            (r#"{"acme": {"url": "ftp://a/", "secret": {"secret": "KEY"}}}"#, "acme: url: use `https://`"),
            (r#"{"acme": {"url": "https://u:p@a/", "secret": {"secret": "KEY"}}}"#, "acme: url: it contains a user"),
            (r#"{"acme": {"url": "https://a/"}}"#, "acme: secret: write"),
            (r#"{"acme": {"url": "https://a/", "secret": "whsec_abc"}}"#, "acme: secret: write"),
            (r#"{"acme": {"url": "https://a/", "secret": {"secret": "a b"}}}"#, "acme: secret: this is not the name"),
            (r#"{"acme": {"url": "https://a/", "secret": {"secret": "K", "prefix": "x"}}}"#, "acme: secret: write"),
            (r#"{"acme": {"url": "https://a/", "secret": {"secret": "session:token"}}}"#, "acme: secret: write"),
            (r#"{"acme": {"url": "https://a/", "secret": {"secret": "K"}, "color": 1}}"#, "`color` is unknown"),
        ] {
            let errors = read(text).map(drop).unwrap_err();
            assert!(errors.len() == 1 && errors[0].contains(expected), "{text}: {errors:?}");
        }
        let both = read(r#"{"a": {}, "b": {}}"#).map(drop).unwrap_err();
        assert_eq!(both.len(), 4, "all mistakes are named: {both:?}");
    }
}
