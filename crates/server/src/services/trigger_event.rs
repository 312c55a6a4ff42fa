//! The event of a trigger: what a webhook received, in the form in which mappings and metadata have it.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header::CONTENT_TYPE};
use mainspring_kernel::{
    json,
    value::{Map, Value},
};
use mainspring_triggers::limits::{EVENT_HEADER_BYTES_MAX, EVENT_HEADERS_MAX};
use url::form_urlencoded;

use crate::{
    http::problem::{Code, Problem, Result},
    resources::{SignatureConfig, WebhookConfig},
    services::trigger_config::parse_mapping,
};

/// Parts of names of headers whose value is a credential or proves one. Such headers never reach a journal.
const CREDENTIAL_PARTS: [&str; 12] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "signature",
    "api-key",
    "apikey",
    "access-key",
    "hmac",
    "password",
    "credential",
    "session",
];

/// The content of a delivery, a tick or a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) body: Value,
    pub(crate) query: Map,
    pub(crate) headers: Map,
}

/// The variables that an event gives, and the paths without a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MappedEvent {
    pub(crate) variables: Map,
    pub(crate) missing: Vec<MissingVariable>,
}

/// A variable whose path has no value in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingVariable {
    pub(crate) variable: String,
    pub(crate) path: String,
    pub(crate) reason: String,
}

impl Event {
    /// The form that is stored with the execution.
    pub(crate) fn to_value(&self) -> Value {
        Value::map([
            ("body", self.body.clone()),
            ("query", self.query.clone().into()),
            ("headers", self.headers.clone().into()),
        ])
    }

    /// Reads the stored form; `None` if it was erased.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        let map = |key: &str| value.get(key).and_then(Value::as_map).cloned();
        Some(Self { body: value.get("body")?.clone(), query: map("query")?, headers: map("headers")? })
    }

    /// The value in which paths are looked up: the fields of the body, and `body`, `query` and `headers`, which take
    /// precedence over fields of the same name.
    fn root(&self) -> Value {
        let mut root = self.body.as_map().cloned().unwrap_or_default();
        root.extend(self.to_value().as_map().cloned().unwrap_or_default());
        Value::Map(root)
    }

    /// Applies a mapping.
    pub(crate) fn map(&self, paths: &BTreeMap<String, String>) -> Result<MappedEvent> {
        let mapping = parse_mapping(paths)?;
        let unfit = |error| Problem::field("body", format!("its values cannot be mapped: {error}"));
        let root = serde_json::from_str(&json::compact(&self.root())).map_err(unfit)?;
        let too_large = |error| Problem::field("variableMapping", error);
        let mapped = mapping.apply(&root).map_err(too_large)?;
        let mut variables = Map::new();
        for (name, value) in mapped.variables {
            let value =
                json::data(value.to_string().as_bytes()).map_err(|error| Problem::field("body", error.message))?;
            variables.insert(name, value);
        }
        let missing = mapped.missing.into_iter().map(|missing| MissingVariable {
            variable: missing.variable,
            path: missing.path,
            reason: missing.reason,
        });
        Ok(MappedEvent { variables, missing: missing.collect() })
    }
}

impl MappedEvent {
    /// The paths without a value, for the metadata of the execution.
    pub(crate) fn missing_value(&self) -> Value {
        let one = |missing: &MissingVariable| {
            let MissingVariable { variable, path, reason } = missing;
            Value::map([("variable", variable.as_str()), ("path", path), ("reason", reason)].map(text))
        };
        Value::List(self.missing.iter().map(one).collect())
    }

    /// The paths without a value as a sentence; `None` if there are none.
    pub(crate) fn missing_text(&self) -> Option<String> {
        let one = |missing: &MissingVariable| format!("`{}` ({}): {}", missing.variable, missing.path, missing.reason);
        let all: Vec<String> = self.missing.iter().map(one).collect();
        (!all.is_empty()).then(|| format!("variables without a value: {}", all.join("; ")))
    }
}

fn text((key, text): (&'static str, &str)) -> (&'static str, Value) {
    (key, text.into())
}

/// Reads the body of a delivery: JSON, or a form. An empty body is null.
pub(crate) fn read_body(headers: &HeaderMap, bytes: &[u8]) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/x-www-form-urlencoded" => Ok(Value::Map(read_pairs(bytes))),
        "" | "text/plain" | "application/json" => read_json(bytes),
        other if other.ends_with("+json") => read_json(bytes),
        other => {
            let message = format!("A delivery must be JSON or a form, not `{other}`. Set its `Content-Type`.");
            Err(Problem::new(Code::UnsupportedMediaType, message))
        }
    }
}

fn read_json(bytes: &[u8]) -> Result<Value> {
    json::data(bytes).map_err(|error| {
        let place = serde_json::json!({ "line": error.place.line, "column": error.place.column });
        Problem::new(Code::ValidationError, format!("The body is not JSON: {}.", error.message)).with(place)
    })
}

/// Reads the pairs of a query or a form. A name that occurs several times has the list of its values.
pub(crate) fn read_pairs(bytes: &[u8]) -> Map {
    let mut pairs = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let value = Value::from(&*value);
        match pairs.get_mut(&*name) {
            None => drop(pairs.insert(name.into_owned(), value)),
            Some(Value::List(values)) => values.push(value),
            Some(first) => *first = Value::List(vec![std::mem::take(first), value]),
        }
    }
    pairs
}

/// The headers of a delivery that its event has: none with a credential, a signature or a secret, no long ones, and a
/// bounded number.
pub(crate) fn read_headers(headers: &HeaderMap, webhook: &WebhookConfig) -> Map {
    let own = webhook.signature.as_ref().map(|SignatureConfig { header, .. }| header).and_then(Option::as_deref);
    let is_kept = |name: &str| {
        !CREDENTIAL_PARTS.iter().any(|part| name.contains(part))
            && own.is_none_or(|own| !own.eq_ignore_ascii_case(name))
            && !webhook.header_names.iter().any(|required| required == name)
    };
    let kept = headers.keys().filter(|name| is_kept(name.as_str())).take(EVENT_HEADERS_MAX);
    let value = |name: &axum::http::HeaderName| headers.get(name)?.to_str().ok();
    let pairs = kept.filter_map(|name| Some((name.as_str().to_string(), value(name)?)));
    pairs.filter(|(_, value)| value.len() <= EVENT_HEADER_BYTES_MAX).map(|(name, value)| (name, value.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Respond;

    fn event(body: &str, query: &str) -> Event {
        let query = read_pairs(query.as_bytes());
        Event { body: json::data(body.as_bytes()).unwrap(), query, headers: Map::new() }
    }

    fn mapped(event: &Event, paths: &[(&str, &str)]) -> MappedEvent {
        event.map(&paths.iter().map(|(name, path)| (name.to_string(), path.to_string())).collect()).unwrap()
    }

    #[test]
    fn paths_reach_fields_of_the_body_the_query_and_reserved_names() {
        let event = event(r#"{"pr": {"number": 7}, "items": [{"id": "i0"}], "query": "own"}"#, "env=prod&tag=a&tag=b");
        let paths = [
            ("n", "$.pr.number"),
            ("first", "$.items.0.id"),
            ("env", "$.query.env"),
            ("tags", "$.query.tag"),
            ("own", "$.body.query"),
            ("miss", "$.a.b"),
        ];
        let MappedEvent { variables, missing } = mapped(&event, &paths);
        assert_eq!(
            json::compact(&Value::Map(variables)),
            r#"{"env":"prod","first":"i0","n":7,"own":"own","tags":["a","b"]}"#
        );
        assert_eq!(missing.len(), 1);
        assert_eq!((missing[0].variable.as_str(), missing[0].reason.as_str()), ("miss", "`$` has no key `a`"));
    }

    #[test]
    fn bodies_are_json_or_forms() {
        let read = |kind: &str, body: &str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
            read_body(&headers, body.as_bytes()).map(|value| json::compact(&value)).map_err(|problem| problem.code)
        };
        assert_eq!(read("application/json; charset=utf-8", "[1]").as_deref(), Ok("[1]"));
        assert_eq!(read("application/cloudevents+json", "null").as_deref(), Ok("null"));
        assert_eq!(read("application/x-www-form-urlencoded", "a=1&b=%20").as_deref(), Ok(r#"{"a":"1","b":" "}"#));
        assert_eq!(read("application/json", ""), Ok("null".into()));
        assert_eq!(read("application/json", "not json"), Err(Code::ValidationError));
        assert_eq!(read("image/png", "x"), Err(Code::UnsupportedMediaType));
    }

    #[test]
    fn headers_with_credentials_stay_out_of_events() {
        let names = [
            "x-github-event",
            "authorization",
            "x-hub-signature-256",
            "x-gitlab-token",
            "x-shopify-hmac-sha256",
            "cookie",
            "x-mine",
        ];
        let headers: HeaderMap = names.map(|name| (name.parse().unwrap(), "v".parse().unwrap())).into_iter().collect();
        let webhook = WebhookConfig {
            path: "p".into(),
            method: "POST".into(),
            signature: None,
            sealed: None,
            secret_count: 0,
            header_names: vec!["x-mine".into()],
            respond: Respond::Accepted,
            wait_ms: 0,
        };
        assert_eq!(read_headers(&headers, &webhook).into_keys().collect::<Vec<_>>(), ["x-github-event"]);
    }
}
