//! Interface for requests to the provider: small requests and small responses. The implementation is injected.

use std::{future::Future, pin::Pin};

use url::Url;

/// Most bytes of a response. Key sets with certificates are the largest.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Milliseconds for one response, from connecting to the last byte.
pub(super) const TIMEOUT_MS: u64 = 5_000;

/// A request to the provider. It is sent once, redirects are not followed, and plain HTTP is limited to loopback
/// addresses.
#[derive(Clone)]
pub struct Request {
    /// Address of the endpoint.
    pub url: Url,
    /// Value of `Authorization`, if any.
    pub authorization: Option<String>,
    /// Form to send with `POST`; `None` for `GET`.
    pub form: Option<String>,
    /// Most bytes of the response.
    pub bytes_max: usize,
    /// Milliseconds for the whole request.
    pub timeout_ms: u64,
}

/// A response of the provider.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// HTTP status.
    pub status: u16,
    /// Body of at most `Request::bytes_max` bytes.
    pub body: Vec<u8>,
}

/// A pending response. The error is a sentence without secrets.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + 'a>>;

/// Sends requests to providers.
pub trait Fetch: Send + Sync {
    /// Sends a request.
    fn fetch(&self, request: Request) -> Fetching<'_>;
}
