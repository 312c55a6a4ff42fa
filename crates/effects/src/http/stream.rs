//! A client for protocols over HTTP whose responses are streams. It connects as the executor of `http` steps does: to
//! addresses that were checked, and without redirects.

use std::fmt;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION},
};
use mainspring_kernel::failure::Failure;

use super::{
    HttpOptions,
    connect::{Connection, Connector},
    error::RequestError,
    expected_status::ExpectedStatus,
    redirect_loop::broken,
    request::Request,
    url::{Shown, Target},
};

/// Sends requests and returns responses as streams.
pub struct StreamClient(Connector);

impl fmt::Debug for StreamClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("StreamClient").field(&self.0.allow).finish()
    }
}

/// A request of a [`StreamClient`]. With a body it is a POST, otherwise a GET.
#[derive(Debug, Clone, Copy)]
pub struct StreamRequest<'a> {
    /// The absolute URL.
    pub url: &'a str,
    /// The organization whose addresses are permitted; `None` for the command line.
    pub organization: Option<&'a str>,
    /// Names in lowercase, and values.
    pub headers: &'a [(&'static str, &'a str)],
    /// Sent as it is, with its length.
    pub body: Option<&'a [u8]>,
}

/// A response whose body is read in parts. Dropping it closes the connection.
pub struct StreamResponse {
    /// The status code of HTTP.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: Option<String>,
    /// The value of `Location`.
    pub location: Option<String>,
    url: Shown,
    body: Incoming,
    _connection: Connection,
}

impl StreamClient {
    /// Makes a client.
    pub fn new(options: HttpOptions) -> Self {
        let HttpOptions { allow, trust, resolver, connect_timeout, .. } = options;
        Self(Connector { allow, resolver, tls: trust.into_config(), timeout: connect_timeout })
    }

    /// Sends a request, and waits for the head of its response.
    pub async fn send(&self, request: StreamRequest<'_>) -> Result<StreamResponse, Failure> {
        self.exchange(request).await.map_err(Failure::from)
    }

    async fn exchange(&self, request: StreamRequest<'_>) -> Result<StreamResponse, RequestError> {
        let target = Target::parse(request.url).map_err(|why| RequestError::parameter("url", why))?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|_| RequestError::parameter(*name, "is no value of a header"))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let url = target.shown();
        let message = Request {
            method: if request.body.is_some() { Method::POST } else { Method::GET },
            target,
            headers,
            body: request.body.map(Bytes::copy_from_slice),
            expect: ExpectedStatus::of(None)?,
            follows_redirects: false,
            response_bytes_max: 0,
        };
        let mut connection = self.0.connect(&message.target, request.organization).await?;
        let response = connection.send(&message).await.map_err(|error| broken(url.clone(), &error))?;
        let (parts, body) = response.into_parts();
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(ToString::to_string);
        let (content_type, location) = (text(CONTENT_TYPE), text(LOCATION));
        Ok(StreamResponse {
            status: StatusCode::as_u16(&parts.status),
            content_type,
            location,
            url,
            body,
            _connection: connection,
        })
    }
}

impl StreamResponse {
    /// Returns the next bytes of the body; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| Failure::from(broken(self.url.clone(), &error)))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
