//! Bodies: JSON that is refused where it is not what the route takes, and values on their way in and out.

use std::fmt;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use mainspring_kernel::{json, value::Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

use crate::problem::{Answer, Code, Problem};

/// A JSON body. Fields that the type does not know are refused by the type.
#[derive(Debug, Clone)]
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let headers = request.headers().clone();
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            let code = if rejection.status().as_u16() == 413 { Code::PayloadTooLarge } else { Code::ValidationError };
            Problem::new(code, rejection.body_text())
        })?;
        read(&headers, &bytes).map(Self)
    }
}

/// Reads a body; one that is empty is read as an empty object.
fn read<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, Problem> {
    if bytes.is_empty() {
        return parse(b"{}");
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" && !essence.ends_with("+json") {
        let message = "The body must be JSON: send it with `Content-Type: application/json`.";
        return Err(Problem::new(Code::UnsupportedMediaType, message));
    }
    parse(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let place = serde_json::json!({ "line": error.line(), "column": error.column() });
        Problem::new(Code::ValidationError, format!("The body cannot be read: {error}.")).with(place)
    })
}

/// A value of the kernel inside of JSON. It is read and written by the kernel's own hand, so that its limits hold and its
/// numbers stay what they are.
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

/// A value as it goes out, so that how much there is of it is known before.
#[derive(Debug, Clone)]
pub(crate) struct Written(Box<RawValue>);

impl Written {
    /// A value, written.
    pub(crate) fn of(value: &Value) -> Answer<Self> {
        let broken = |error| Problem::new(Code::InternalError, format!("A value cannot be written: {error}."));
        RawValue::from_string(json::compact(value)).map(Self).map_err(broken)
    }

    /// Bytes of it.
    pub(crate) fn byte_count(&self) -> usize {
        self.0.get().len()
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Reads a field that may be null and may be left out, which says something else: `Some(None)` and `None`.
pub(crate) fn stated<'de, T: Deserialize<'de>, D: Deserializer<'de>>(field: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// A thing with the tag that `If-Match` takes.
#[derive(Debug, Clone)]
pub struct Tagged<T> {
    /// The thing.
    pub body: T,
    /// Its tag.
    pub tag: Tag,
}

/// Which state of a thing. Versions begin anew where a thing is deleted and made again under the same name: since when it is
/// there tells the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    version: u64,
    created_at: u64,
}

impl Tag {
    /// Of a version of a thing, and the time at which it was made, in milliseconds.
    pub fn new(version: u64, created_at: u64) -> Self {
        Self { version, created_at }
    }

    fn read(text: &str) -> Option<Self> {
        let (version, created_at) = text.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
        let tag = Self { version: version.parse().ok()?, created_at: u64::from_str_radix(created_at, 16).ok()? };
        // One thing has one tag, and no other text is it.
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

/// What the caller has seen, if it says so: one strong tag. `*` is whichever there is.
pub fn if_match(headers: &HeaderMap) -> Result<Option<Tag>, Problem> {
    let Some(given) = headers.get("if-match") else { return Ok(None) };
    let text = given.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let unknown = || Problem::new(Code::PreconditionFailed, "If-Match must be the ETag of an earlier answer.");
    Tag::read(text).map(Some).ok_or_else(unknown)
}

/// Refuses a condition where there is no one thing that it could be about.
pub(crate) fn no_if_match(headers: &HeaderMap) -> Answer<()> {
    let message = "there is no ETag of all workflows together: leave it out, or save them one by one";
    if headers.contains_key("if-match") { Err(Problem::field("If-Match", message)) } else { Ok(()) }
}

/// Refuses an edit of what is not as the caller has seen it; `None` is what is not there.
pub(crate) fn check_seen(seen: Option<Tag>, tag: Option<Tag>) -> Answer<()> {
    if seen.is_none() || seen == tag { Ok(()) } else { Err(Problem::stale()) }
}
