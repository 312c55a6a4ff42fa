//! Request and response bodies: strict JSON, kernel values, and the ETag conditions of resources.

use std::fmt;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use mainspring_kernel::{json, value::Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

use crate::http::problem::{Code, Problem, Result};

/// Extractor of a JSON body. The type rejects unknown fields (`deny_unknown_fields`).
#[derive(Debug, Clone)]
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let kind = request.headers().get(CONTENT_TYPE).cloned();
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            let code = if rejection.status().as_u16() == 413 { Code::PayloadTooLarge } else { Code::ValidationError };
            Problem::new(code, rejection.body_text())
        })?;
        read(kind.as_ref(), &bytes).map(Self)
    }
}

/// Reads a body; an empty one counts as an empty object.
fn read<T: DeserializeOwned>(kind: Option<&HeaderValue>, bytes: &[u8]) -> Result<T> {
    if bytes.is_empty() {
        return parse(b"{}");
    }
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" && !essence.ends_with("+json") {
        let message = "The body must be JSON: send it with `Content-Type: application/json`.";
        return Err(Problem::new(Code::UnsupportedMediaType, message));
    }
    parse(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let place = serde_json::json!({ "line": error.line(), "column": error.column() });
        Problem::new(Code::ValidationError, format!("The body cannot be read: {error}.")).with(place)
    })
}

/// A kernel value inside of JSON. The kernel's own parser and writer convert it, so that its limits hold and numbers
/// keep their exact form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Data(pub Value);

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(json::compact(&self.0)).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        json::data(raw.get().as_bytes()).map(Self).map_err(|found| D::Error::custom(found.message))
    }
}

/// The text of a document that comes as text or as a value.
pub(crate) fn data_text(data: &Data) -> Vec<u8> {
    match &data.0 {
        Value::Text(text) => text.as_bytes().to_vec(),
        value => json::compact(value).into_bytes(),
    }
}

/// A value that is already serialized, so that its size is known before the response is built.
#[derive(Debug, Clone)]
pub(crate) struct RawJson(Box<RawValue>);

impl RawJson {
    /// Serializes a value.
    pub(crate) fn of(value: &Value) -> Result<Self> {
        let broken = |error| Problem::new(Code::InternalError, format!("A value cannot be written: {error}."));
        RawValue::from_string(json::compact(value)).map(Self).map_err(broken)
    }

    /// Length in bytes.
    pub(crate) fn byte_count(&self) -> usize {
        self.0.get().len()
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Reads an optional field, and distinguishes null (`Some(None)`) from an absent field (`None`).
pub(crate) fn double_option<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// Reads an optional field for which null has no meaning, and refuses null.
pub(crate) fn not_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(field: D) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

/// A resource with its ETag.
#[derive(Debug, Clone)]
pub struct Tagged<T> {
    /// The resource.
    pub body: T,
    /// Its ETag.
    pub tag: Tag,
}

/// The ETag of one state of a resource. Version numbers restart when a resource is deleted and created again under the
/// same name; the time of creation distinguishes the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    version: u64,
    created_at: u64,
}

impl Tag {
    /// Builds a tag from a version and the time of creation in milliseconds since 1970.
    pub fn new(version: u64, created_at: u64) -> Self {
        Self { version, created_at }
    }

    fn read(text: &str) -> Option<Self> {
        let (version, created_at) = text.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
        let tag = Self { version: version.parse().ok()?, created_at: u64::from_str_radix(created_at, 16).ok()? };
        // Each state has exactly one spelling; others are rejected.
        (tag.to_string() == text).then_some(tag)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}-{:x}\"", self.version, self.created_at)
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        ([("etag", self.tag.to_string())], axum::Json(self.body)).into_response()
    }
}

/// The tag in `If-Match`, if there is one. Accepts a single strong tag; `*` matches any state.
pub fn if_match(headers: &HeaderMap) -> Result<Option<Tag>> {
    let Some(given) = headers.get("if-match") else { return Ok(None) };
    let text = given.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let unknown = || Problem::new(Code::PreconditionFailed, "If-Match must be the ETag of an earlier answer.");
    Tag::read(text).map(Some).ok_or_else(unknown)
}

/// Rejects `If-Match` on requests that concern several resources.
pub(crate) fn no_if_match(headers: &HeaderMap) -> Result<()> {
    let message = "several workflows have no common ETag: leave it out, or save them one by one";
    if headers.contains_key("if-match") { Err(Problem::field("If-Match", message)) } else { Ok(()) }
}

/// Rejects a change if the resource is not in the state that the caller has seen; a missing resource has no tag.
pub(crate) fn check_seen(seen: Option<Tag>, tag: Option<Tag>) -> Result<()> {
    if seen.is_none() || seen == tag { Ok(()) } else { Err(Problem::stale()) }
}

/// The schema of a definition in a request.
pub(crate) fn object_or_text() -> Schema {
    definition_of([Type::Object, Type::String])
}

/// The schema of a definition that a request may leave out.
pub(crate) fn object_text_or_null() -> Schema {
    definition_of([Type::Object, Type::String, Type::Null])
}

fn definition_of<const N: usize>(kinds: [Type; N]) -> Schema {
    let kinds = SchemaType::from_iter(kinds);
    let said = "Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. \
        `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it.";
    ObjectBuilder::new().schema_type(kinds).description(Some(said)).into()
}
