//! The configured models: `models`, a map from names to models.
//!
//! ```yaml
//! models:
//!   claude: {provider: anthropic, model: claude-sonnet-4-5, apiKey: {env: ANTHROPIC_API_KEY}, default: true}
//!   local: {provider: openai, model: llama3.2, baseUrl: "http://127.0.0.1:11434/v1"}
//!   scripted: {provider: anthropic, model: scripted-1, script: answers.yaml}
//! ```

use std::{fmt, fs, path::PathBuf};

use mainspring_effects::http::DEFAULT_ORGANIZATION;
use mainspring_kernel::{
    secret::SecretReference,
    value::{Map, Number, Value},
};
use url::Url;

use crate::{
    error::ModelError,
    limits::{KEY_BYTES_MAX, MODELS_MAX, ORGANIZATIONS_MAX},
    provider::Provider,
};

/// One configured model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The name by which steps refer to it.
    pub name: String,
    /// The format of its requests.
    pub provider: Provider,
    /// The model as the provider names it.
    pub model: String,
    /// The address before the path of a request, without a slash at the end.
    pub base_url: String,
    /// The script that answers in place of a provider. The executor serves it on this machine.
    pub script: Option<PathBuf>,
    /// The source of its key, if it needs one.
    pub api_key: Option<KeySource>,
    /// True if steps without `model` use it.
    pub is_default: bool,
    /// The organizations that may use it; `None` for all of them. The command line is the organization `default`.
    pub organizations: Option<Vec<String>>,
    /// Maximum tokens of an answer, unless the step says otherwise.
    pub max_tokens: Option<u64>,
    /// The temperature, unless the step says otherwise.
    pub temperature: Temperature,
    /// True if answers are asked for as streams, so that people can watch them grow.
    pub streams: bool,
}

/// The source of a key. The key itself is read for each call and never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Env(String),
    /// A file with the key as its only content.
    File(PathBuf),
    /// A secret of the settings file.
    Secret(SecretReference),
}

/// The temperature of a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Temperature {
    /// The temperature that is sent; 0 by default.
    Value(Number),
    /// None is sent, for models that accept none.
    Omitted,
}

/// The reason why a configuration is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The place in the configuration, such as `models.claude.provider`.
    pub path: String,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}; {}", self.path, self.message, self.help)
    }
}

impl std::error::Error for ConfigError {}

const KEYS: [&str; 10] = [
    "apiKey",
    "baseUrl",
    "default",
    "maxTokens",
    "model",
    "organizations",
    "provider",
    "script",
    "stream",
    "temperature",
];

/// Reads the value of `models`. All errors are returned, in the order of the configuration. A single model is the
/// default.
pub fn models(value: &Value) -> Result<Vec<ModelConfig>, Vec<ConfigError>> {
    let Some(map) = value.as_map() else {
        let help = "write a map from names to models, such as `claude: {provider: anthropic, model: MODEL}`";
        return Err(vec![error("models", format!("this is {}, not a map", value.kind()), help)]);
    };
    if map.len() > MODELS_MAX {
        let message = format!("{} models are more than {MODELS_MAX}", map.len());
        return Err(vec![error("models", message, "remove models that no workflow uses")]);
    }
    let mut errors = Vec::new();
    let mut models: Vec<ModelConfig> = Vec::new();
    for (name, value) in map {
        let mut reader = Reader { path: format!("models.{name}"), errors: &mut errors };
        models.extend(reader.model(name, value));
    }
    let defaults: Vec<_> = models.iter().filter(|model| model.is_default).map(|model| model.name.clone()).collect();
    if defaults.len() > 1 {
        let message = format!("{} are all marked as the default", defaults.join(", "));
        errors.push(error("models", message, "keep `default: true` at one of them"));
    }
    if let ([only], true) = (models.as_mut_slice(), map.len() == 1) {
        only.is_default = true;
    }
    if errors.is_empty() { Ok(models) } else { Err(errors) }
}

impl ModelConfig {
    /// True if the organization may use the model; `None` stands for the command line.
    pub fn serves(&self, organization: Option<&str>) -> bool {
        let organization = organization.unwrap_or(DEFAULT_ORGANIZATION);
        self.organizations.as_ref().is_none_or(|served| served.iter().any(|one| one == organization))
    }

    /// Returns the host and the port, in the form of an exception of the address filter.
    pub fn allow_entry(&self) -> Option<String> {
        let url = Url::parse(&self.base_url).ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    }

    /// Returns the secret that holds the key, if there is one.
    pub fn secret(&self) -> Option<&SecretReference> {
        match &self.api_key {
            Some(KeySource::Secret(reference)) => Some(reference),
            _ => None,
        }
    }

    /// Reads the key from a variable or a file. `None` if the model needs none, or if a [secret](Self::secret) holds it.
    pub fn key(&self) -> Result<Option<String>, ModelError> {
        let missing = |why: String| ModelError::KeyMissing(format!("the key of the model `{}`: {why}", self.name));
        let (key, source) = match &self.api_key {
            None | Some(KeySource::Secret(_)) => return Ok(None),
            Some(KeySource::Env(name)) => {
                let key = std::env::var(name).map_err(|_| missing(format!("the variable `{name}` is not set")))?;
                (key, format!("the variable `{name}`"))
            }
            Some(KeySource::File(path)) => {
                let shown = path.display();
                let is_small = fs::metadata(path).map(|file| file.is_file() && file.len() <= KEY_BYTES_MAX as u64);
                match is_small {
                    Ok(true) => {}
                    Ok(false) => return Err(missing(format!("`{shown}` is not a file of a key"))),
                    Err(error) => return Err(missing(format!("`{shown}` cannot be read: {error}"))),
                }
                let key =
                    fs::read_to_string(path).map_err(|error| missing(format!("`{shown}` cannot be read: {error}")))?;
                (key, format!("`{shown}`"))
            }
        };
        self.checked_key(&key, &source).map(Some)
    }

    /// Checks the text of a key from a source.
    pub(crate) fn checked_key(&self, key: &str, source: &str) -> Result<String, ModelError> {
        let key = key.trim();
        match key.len() {
            1..=KEY_BYTES_MAX if key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key.to_owned()),
            _ => {
                let why = format!("{source} holds no key: a key is one word of ASCII characters");
                Err(ModelError::KeyMissing(format!("the key of the model `{}`: {why}", self.name)))
            }
        }
    }
}

/// Returns the model of a name, or the default one without a name. An organization sees only the models that it may use.
pub fn find<'a>(
    models: &'a [ModelConfig],
    name: Option<&str>,
    organization: Option<&str>,
) -> Result<&'a ModelConfig, ModelError> {
    let visible = || models.iter().filter(|model| model.serves(organization));
    let names = || visible().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ");
    match name {
        _ if visible().next().is_none() && models.is_empty() => {
            let help =
                "no model is configured: add `models: {NAME: {provider: PROVIDER, model: MODEL}}` to config.yaml";
            Err(ModelError::Unknown(help.into()))
        }
        _ if visible().next().is_none() => {
            let organization = organization.unwrap_or(DEFAULT_ORGANIZATION);
            Err(ModelError::Unknown(format!(
                "no model serves the organization `{organization}`: the operator of the server adds it to `organizations` of a \
                 model in config.yaml"
            )))
        }
        Some(name) => visible()
            .find(|model| model.name == name)
            .ok_or_else(|| ModelError::Unknown(format!("no model is named `{name}`; there are {}", names()))),
        None => visible().find(|model| model.is_default).ok_or_else(|| {
            let help = format!("name one of them as `model`, or mark one with `default: true`: {}", names());
            ModelError::Unknown(format!("none of the configured models is the default; {help}"))
        }),
    }
}

fn error(path: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> ConfigError {
    ConfigError { path: path.into(), message: message.into(), help: help.into() }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

struct Reader<'a> {
    path: String,
    errors: &'a mut Vec<ConfigError>,
}

impl Reader<'_> {
    fn refuse(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let path = if key.is_empty() { self.path.clone() } else { format!("{}.{key}", self.path) };
        self.errors.push(error(path, message, help));
    }

    fn model(&mut self, name: &str, value: &Value) -> Option<ModelConfig> {
        let errors_before = self.errors.len();
        if !is_name(name) {
            self.refuse("", "this is not a name of a model", "use 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        let Some(map) = value.as_map() else {
            self.refuse("", format!("this is {}, not a map", value.kind()), "write `{provider: …, model: …}`");
            return None;
        };
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.refuse(key, "this key is not known", format!("the keys are {}", KEYS.join(", ")));
        }
        let provider = self.text(map, "provider").and_then(|word| {
            let found = Provider::parse(&word);
            if found.is_none() {
                let names = Provider::ALL.map(Provider::name).join(", ");
                self.refuse("provider", format!("no provider is named `{word}`"), format!("there are {names}"));
            }
            found
        });
        let model = self.text(map, "model");
        let base_url = self.base_url(map);
        let script = map.get("script").and_then(|_| self.text(map, "script")).map(PathBuf::from);
        for key in ["baseUrl", "apiKey"].into_iter().filter(|key| script.is_some() && map.contains_key(*key)) {
            self.refuse(key, "a model with `script` has no address and no key", "remove it, or remove `script`");
        }
        let api_key = map.get("apiKey").and_then(|value| self.key(value));
        let (is_default, streams) = (self.flag(map, "default"), self.flag(map, "stream"));
        let max_tokens = map.get("maxTokens").and_then(|value| match value.as_u64() {
            Some(tokens @ 1..=1_000_000) => Some(tokens),
            _ => {
                self.refuse("maxTokens", "this is not a number of tokens", "write a whole number from 1 to 1000000");
                None
            }
        });
        let temperature = self.temperature(map);
        let organizations = map.get("organizations").and_then(|value| self.organizations(value));
        let provider = provider?;
        Some(ModelConfig {
            name: name.into(),
            base_url: base_url.unwrap_or_else(|| provider.base_url().into()),
            provider,
            model: model?,
            script,
            api_key,
            is_default,
            organizations,
            max_tokens,
            temperature,
            streams,
        })
        .filter(|_| self.errors.len() == errors_before)
    }

    fn flag(&mut self, map: &Map, key: &str) -> bool {
        match map.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.refuse(key, format!("this is {}, not a boolean", other.kind()), "write true or false");
                false
            }
        }
    }

    fn temperature(&mut self, map: &Map) -> Temperature {
        let zero = Temperature::Value(Number::double(0.0).unwrap_or_else(|| unreachable!("0 is a number")));
        match map.get("temperature") {
            None => zero,
            Some(Value::Bool(false)) => Temperature::Omitted,
            Some(Value::Number(number)) if (0.0..=2.0).contains(&number.as_double()) => Temperature::Value(*number),
            Some(_) => {
                let help = "write a number from 0 to 2, or false for models that accept none";
                self.refuse("temperature", "this is not a temperature", help);
                zero
            }
        }
    }

    fn organizations(&mut self, value: &Value) -> Option<Vec<String>> {
        let list = value.as_list().filter(|list| (1..=ORGANIZATIONS_MAX).contains(&list.len()));
        let names: Option<Vec<String>> =
            list.and_then(|list| list.iter().map(|name| name.as_text().map(ToOwned::to_owned)).collect());
        if names.is_none() {
            let help =
                format!("write `[ID]`, the ids of 1 to {ORGANIZATIONS_MAX} organizations, or leave it out for all");
            self.refuse("organizations", "this is not a list of organizations", help);
        }
        names
    }

    fn base_url(&mut self, map: &Map) -> Option<String> {
        map.get("baseUrl")?;
        let text = self.text(map, "baseUrl")?;
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let is_plain = |url: &Url| {
            url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none()
        };
        if !url.as_ref().is_some_and(is_plain) {
            let help = "write `https://host/path`, without a query and without a password";
            self.refuse("baseUrl", "this is not an address of HTTP", help);
        }
        Some(text.trim_end_matches('/').to_owned())
    }

    fn key(&mut self, value: &Value) -> Option<KeySource> {
        let help =
            "write `{env: NAME}`, `{file: PATH}` or `{secret: NAME}`; a key does not stand in the configuration itself";
        match SecretReference::read(value) {
            Some(Ok(reference)) if reference.prefix.is_empty() => return Some(KeySource::Secret(reference)),
            Some(_) => {
                self.refuse("apiKey", "this is not a reference to a secret", "write `{secret: NAME}`");
                return None;
            }
            None => {}
        }
        let one = value.as_map().filter(|map| map.len() == 1).and_then(|map| map.iter().next());
        match one.map(|(source, value)| (source.as_str(), value.as_text().filter(|text| !text.is_empty()))) {
            Some(("env", Some(name))) => Some(KeySource::Env(name.into())),
            Some(("file", Some(path))) => Some(KeySource::File(path.into())),
            _ => {
                self.refuse("apiKey", "this is not the source of a key", help);
                None
            }
        }
    }

    fn text(&mut self, map: &Map, key: &str) -> Option<String> {
        match map.get(key) {
            Some(Value::Text(text)) if !text.trim().is_empty() && !text.chars().any(char::is_control) => {
                Some(text.trim().to_owned())
            }
            other => {
                let kind = other.map_or("missing", Value::kind);
                self.refuse(key, format!("this is {kind}, not a text of one line"), "give its value as text");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<ModelConfig>, Vec<String>> {
        models(&json::value(text.as_bytes()).unwrap())
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_model_has_the_address_of_its_provider_unless_given() {
        let found = read(r#"{"a": {"provider": "anthropic", "model": "m", "apiKey": {"env": "K"}}}"#).unwrap();
        assert_eq!((found[0].base_url.as_str(), found[0].is_default), ("https://api.anthropic.com", true));
        assert_eq!(found[0].api_key, Some(KeySource::Env("K".into())));
        let found =
            read(r#"{"a": {"provider": "openai", "model": "m", "baseUrl": "http://127.0.0.1:1/v1/"}}"#).unwrap();
        assert_eq!(found[0].base_url, "http://127.0.0.1:1/v1");
        assert_eq!(found[0].allow_entry().as_deref(), Some("127.0.0.1:1"));
        let found = read(r#"{"a": {"provider": "openai", "model": "m", "apiKey": {"secret": "K"}}}"#).unwrap();
        assert_eq!(found[0].secret().unwrap().name, "K");
    }

    #[test]
    fn a_script_takes_the_place_of_an_address() {
        let found = read(r#"{"a": {"provider": "openai", "model": "m", "script": "answers.yaml"}}"#).unwrap();
        assert_eq!(found[0].script, Some("answers.yaml".into()));
        let wrong = r#"{"a": {"provider": "openai", "model": "m", "script": "s", "apiKey": {"env": "K"}}}"#;
        assert!(read(wrong).unwrap_err()[0].contains("models.a.apiKey: a model with `script`"));
    }

    #[test]
    fn errors_name_their_place() {
        let check = |text: &str, expected: &str| {
            let errors = read(text).unwrap_err();
            assert!(errors.iter().any(|error| error.contains(expected)), "{text}: {errors:?}");
        };
        check("[]", "models: this is");
        check(r#"{"a b": {"provider": "gemini", "model": "m"}}"#, "models.a b: this is not a name");
        check(r#"{"a": {"model": "m"}}"#, "models.a.provider: this is missing");
        check(r#"{"a": {"provider": "x", "model": "m"}}"#, "models.a.provider: no provider is named `x`");
        check(r#"{"a": {"provider": "gemini", "model": "m", "url": "x"}}"#, "models.a.url: this key is not known");
        check(r#"{"a": {"provider": "gemini", "model": "m", "apiKey": "sk-1"}}"#, "models.a.apiKey: this is not the");
        check(r#"{"a": {"provider": "gemini", "model": "m", "apiKey": {"env": "A", "file": "B"}}}"#, "models.a.apiKey");
        check(
            r#"{"a": {"provider": "gemini", "model": "m", "apiKey": {"secret": "a b"}}}"#,
            "not a reference to a sec",
        );
        check(r#"{"a": {"provider": "gemini", "model": "m", "baseUrl": "ftp://x"}}"#, "models.a.baseUrl");
        check(r#"{"a": {"provider": "gemini", "model": "m", "baseUrl": "http://u:p@x"}}"#, "models.a.baseUrl");
        check(r#"{"a": {"provider": "gemini", "model": "m", "temperature": 3}}"#, "models.a.temperature");
        check(r#"{"a": {"provider": "gemini", "model": "m", "stream": "yes"}}"#, "models.a.stream: this is");
        let two = r#"{"a": {"provider": "gemini", "model": "m", "default": true},
                      "b": {"provider": "gemini", "model": "m", "default": true}}"#;
        check(two, "a, b are all marked as the default");
    }

    #[test]
    fn the_default_is_used_without_a_name() {
        let two = r#"{"a": {"provider": "gemini", "model": "m"}, "b": {"provider": "gemini", "model": "n"}}"#;
        let two = read(two).unwrap();
        assert_eq!(find(&two, Some("b"), None).unwrap().model, "n");
        assert!(
            matches!(find(&two, None, None), Err(ModelError::Unknown(why)) if why.contains("none of the configured models is the default"))
        );
        assert!(matches!(find(&two, Some("c"), None), Err(ModelError::Unknown(why)) if why.contains("there are a, b")));
        assert!(
            matches!(find(&[], None, None), Err(ModelError::Unknown(why)) if why.contains("no model is configured"))
        );
    }

    #[test]
    fn an_organization_sees_the_models_that_serve_it() {
        let two = r#"{"a": {"provider": "gemini", "model": "m", "organizations": ["acme"], "default": true},
                      "b": {"provider": "gemini", "model": "n", "organizations": ["default"]}}"#;
        let two = read(two).unwrap();
        assert_eq!(find(&two, None, Some("acme")).unwrap().name, "a");
        assert_eq!(find(&two, Some("b"), None).unwrap().name, "b");
        assert!(
            matches!(find(&two, Some("b"), Some("acme")), Err(ModelError::Unknown(why)) if why.ends_with("there are a"))
        );
        assert!(matches!(find(&two, Some("a"), Some("other")), Err(ModelError::Unknown(why)) if !why.contains("`a`")));
        let wrong = read(r#"{"a": {"provider": "gemini", "model": "m", "organizations": []}}"#).unwrap_err();
        assert!(wrong[0].contains("models.a.organizations: this is not a list"), "{wrong:?}");
    }
}
