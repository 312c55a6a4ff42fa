//! How a provider is asked: one request, one answer, both small. Who does it is given from outside.

use std::{future::Future, pin::Pin};

use url::Url;

/// Bytes of an answer at the most. Keys and their certificates are the largest.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// How long one answer may take, from the connection to its last byte.
pub(super) const PATIENCE_MS: u64 = 5_000;

/// A request to a provider. It is sent once, nothing is followed, and plain http goes to this machine alone.
#[derive(Clone)]
pub struct Request {
    /// Where to.
    pub url: Url,
    /// What `Authorization` says, if it says something.
    pub authorization: Option<String>,
    /// A form to post; `None` to get.
    pub form: Option<String>,
    /// Bytes of the answer at the most.
    pub bytes_max: usize,
    /// How long all of it may take.
    pub patience_ms: u64,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer that is being waited for. The error is a sentence without secrets.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + 'a>>;

/// Who asks providers.
pub trait Fetch: Send + Sync {
    /// Sends a request.
    fn fetch(&self, request: Request) -> Fetching<'_>;
}
