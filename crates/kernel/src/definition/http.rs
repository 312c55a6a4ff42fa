//! Reads `http` steps. Checks everything that is known before references have values; the executor checks the rest.

use alloc::{format, string::String, vec::Vec};

use super::{
    fields::Fields,
    help::Help,
    keys::METHODS,
    references::Reader,
    secrets::secrets_param,
    step_work::{effect, literal},
};
use crate::{
    diagnostic::{self, quoted},
    limits::RESPONSE_BYTES_MAX,
    plan::Work,
    reference::is_whole,
    secret::SECRETS,
    template::Template,
    value::Value,
};

impl Reader<'_, '_> {
    pub(super) fn http(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let method = self.method(fields);
        let url = self.url(fields);
        for key in ["query", "headers"] {
            if let Some(value) = fields.get(key).filter(|value| value.as_map().is_none() && !is_whole(value)) {
                self.report.wrong_kind(&fields.path.key(key), key, "an object or a reference to one", value);
            }
        }
        let (query, secrets_of_query) = self.field_with_secrets(fields, "query");
        let (headers, secrets_of_headers) = self.field_with_secrets(fields, "headers");
        let body = self.field(fields, "body");
        let follow = self.report.bool(fields, "followRedirects").map(literal);
        let max_bytes = self.report.whole(fields, "maxResponseBytes", 1..=RESPONSE_BYTES_MAX).map(literal);
        let expect = self.expect(fields).map(literal);
        let header = fields.get("idempotencyHeader").and_then(|value| match value {
            Value::Text(_) => self.report.filled_text(fields, "idempotencyHeader").map(literal),
            Value::Null | Value::Bool(false) => Some(literal(false)),
            other => {
                let path = fields.path.key("idempotencyHeader");
                self.report.wrong_kind(&path, "idempotencyHeader", "the name of a header, or false for none", other);
                None
            }
        });
        let params = [
            ("method", Some(literal(method?))),
            ("url", Some(url?)),
            ("query", query),
            ("headers", headers),
            ("body", body),
            ("expect", expect),
            ("followRedirects", follow),
            ("maxResponseBytes", max_bytes),
            ("idempotencyHeader", header),
            (SECRETS, secrets_param([("query", secrets_of_query), ("headers", secrets_of_headers)])),
        ];
        Some(effect("http", params))
    }

    fn method(&mut self, fields: &Fields<'_>) -> Option<String> {
        if !fields.has("method") {
            return Some("GET".into());
        }
        let written = self.report.filled_text(fields, "method")?;
        let method = written.to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            self.report.unknown_word(&fields.path.key("method"), "method", written, METHODS.into_iter());
            return None;
        }
        Some(method)
    }

    fn url(&mut self, fields: &Fields<'_>) -> Option<Template> {
        if !fields.has("url") {
            self.report.missing(
                fields,
                "url",
                "say where the request goes, as in: write `url: \"https://example.com\"`",
            );
        }
        let text = self.report.filled_text(fields, "url")?;
        let refers_at_once = text.starts_with('@') && !text.starts_with("@@");
        if !refers_at_once && !text.starts_with("http://") && !text.starts_with("https://") {
            let message = format!("`url` must begin with http:// or https://, not {}", quoted(text));
            let help = match text.split_once("://") {
                Some((scheme, _)) => format!("requests do not go by {}", quoted(scheme)).into(),
                None => Help::value(&fields.path.key("url"), format!("https://{text}").as_str()),
            };
            self.report.error(diagnostic::WRONG_VALUE, &fields.path.key("url"), message, help);
        }
        self.field(fields, "url")
    }

    /// Reads a list of status codes (100 to 599) and classes such as `2xx`.
    fn expect(&mut self, fields: &Fields<'_>) -> Option<Vec<Value>> {
        let items = self.report.list(fields, "expect")?;
        let path = fields.path.key("expect");
        for (at, item) in items.iter().enumerate() {
            let is_code = item.as_u64().is_some_and(|code| (100..600).contains(&code));
            let is_class = item.as_text().is_some_and(|text| ["1xx", "2xx", "3xx", "4xx", "5xx"].contains(&text));
            if !is_code && !is_class {
                let message = "`expect` is a list of status codes and classes";
                self.report.error(diagnostic::WRONG_VALUE, &path.index(at), message, "write 200 or \"2xx\"");
            }
        }
        Some(items.to_vec())
    }
}
