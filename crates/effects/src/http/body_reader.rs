//! Readers of bodies that are used while they arrive.

use hyper::header::{CONTENT_TYPE, HeaderMap};

use super::decode::Coding;

/// Reads the body of a response while it arrives.
pub trait BodyReader: Send {
    /// Returns true for a content type that it reads, without parameters and in small letters. The body of another response
    /// is part of the outcome.
    fn reads(&mut self, content_type: &str) -> bool;

    /// Reads the next bytes. False if no more are needed; the connection is then closed.
    fn read(&mut self, bytes: &[u8]) -> bool;
}

/// Returns true if the reader reads a body with these headers. A compressed body is not read.
pub(super) fn reads(reader: &mut dyn BodyReader, headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Coding::of(headers) == Some(Coding::Identity) && reader.reads(&essence)
}
