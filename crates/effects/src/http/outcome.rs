//! Builds the outcome of a response: its result, or the failure for its status.

use std::time::{Duration, SystemTime};

use hyper::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};
use mainspring_kernel::{
    cbor,
    effect::Outcome,
    failure::{Class, Failure},
    limits::OUTPUT_BYTES_MAX,
    value::{Map, Value},
};

use super::{
    body,
    error::RequestError,
    headers,
    limits::{FAILURE_HEAD_BYTES_MAX, HEAD_BYTES_MAX},
    retry_after::retry_after_ms,
    url::Shown,
};

/// The final response of a request.
#[derive(Debug)]
pub(super) struct FinalResponse {
    /// The URL that responded.
    pub(super) url: Shown,
    pub(super) status: StatusCode,
    /// The headers, without those of the coding if the body was decoded.
    pub(super) headers: HeaderMap,
    /// The decoded body.
    pub(super) body: Vec<u8>,
    /// True if part of the body is missing.
    pub(super) is_cut: bool,
    /// The number of redirects that were followed.
    pub(super) redirects: u32,
}

impl FinalResponse {
    /// Builds the outcome of a response that counts as success.
    pub(super) fn done(&self, duration: Duration) -> Result<Outcome, RequestError> {
        let content_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mut result = self.to_map(HEAD_BYTES_MAX, body::to_value(content_type, &self.body));
        result.insert("url".into(), self.url.to_string().into());
        result.insert("durationMs".into(), milliseconds(duration));
        result.insert("redirects".into(), self.redirects.into());
        let result = Value::Map(result);
        // A body may be larger as a value than as text: a number of three characters becomes nine bytes.
        match cbor::byte_count(&result) > OUTPUT_BYTES_MAX {
            true => {
                let (url, part) = (self.url.clone(), "the answer as a value");
                Err(RequestError::ResponseTooLarge { url, part, bytes_max: OUTPUT_BYTES_MAX })
            }
            false => Ok(Outcome::Done(result)),
        }
    }

    /// Builds the failure of a response that does not count as success.
    pub(super) fn failed(&self, now: SystemTime) -> Failure {
        let body = match self.is_cut {
            true => body::cut_to_value(&self.body),
            false => {
                let content_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                body::to_value(content_type, &self.body)
            }
        };
        let mut details = self.to_map(FAILURE_HEAD_BYTES_MAX, body);
        let class = class_of(self.status);
        if let Some(delay_ms) = retry_after_ms(&self.headers, now).filter(|_| class.is_retryable()) {
            details.insert("retryAfterMs".into(), delay_ms.into());
        }
        let reason = self.status.canonical_reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let code = self.status.as_u16();
        let message = format!("{} answered {code}{reason}", self.url);
        Failure::new(class, format!("http_status:{code}"), message).with_details(Value::Map(details))
    }

    /// Builds `{status, headers, body}`, with `truncated` if some of it is missing.
    fn to_map(&self, head_bytes_max: usize, body: Value) -> Map {
        let (headers, is_whole) = headers::to_value(&self.headers, head_bytes_max);
        let mut map = Map::new();
        map.insert("status".into(), u32::from(self.status.as_u16()).into());
        map.insert("headers".into(), headers);
        map.insert("body".into(), body);
        if self.is_cut || !is_whole {
            map.insert("truncated".into(), true.into());
        }
        map
    }
}

/// Maps a status to the class that decides about retries.
fn class_of(status: StatusCode) -> Class {
    match status.as_u16() {
        408 => Class::Timeout,
        425 => Class::Transient,
        429 => Class::RateLimited,
        503 => Class::Unavailable,
        500..600 => Class::Transient,
        _ => Class::Failed,
    }
}

/// Converts a duration to the form of results.
pub(super) fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}
