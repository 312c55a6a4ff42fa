//! Sends one request on a new connection. It follows no redirect and retries nothing.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Response,
    body::Incoming,
    client::conn::http1::SendRequest,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT},
};
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::{address::Address, error::ClientError};
use crate::client::connect::{Secrecy, connect};

/// Timeout of connecting, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A request without the server and the credential.
#[derive(Debug, Clone)]
pub(crate) struct ClientRequest {
    pub(crate) method: Method,
    /// The route, built by [`super::address::route`].
    pub(crate) route: String,
    /// Headers beyond those of every request.
    pub(crate) headers: HeaderMap,
    /// The JSON body; empty for none.
    pub(crate) body: Bytes,
    /// The timeout of the response's head.
    pub(crate) timeout: Duration,
}

/// A server, with the credential for it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    /// The value of the `Authorization` header: `Bearer …`.
    pub(crate) credential: HeaderValue,
    /// True if the credential may be sent over plain HTTP to another machine.
    pub(crate) plain_http: bool,
    /// The trusted certificate authorities.
    pub(crate) tls: Arc<ClientConfig>,
}

impl Endpoint {
    /// Sends a request and returns the head of the response. The body is still to be read.
    pub(crate) async fn send(&self, outgoing: &ClientRequest) -> Result<Response<Incoming>, ClientError> {
        let request = self.request(outgoing)?;
        let unreachable = |why: String| ClientError::unreachable(&self.address, &why);
        let connecting = timeout(CONNECT_TIMEOUT, self.connect()).await;
        let mut sender = connecting.map_err(|_| unreachable("it takes too long".into()))?.map_err(unreachable)?;
        let broken = |why: String| ClientError::broken(&self.address, &why);
        let answer = timeout(outgoing.timeout, sender.send_request(request)).await;
        answer.map_err(|_| broken("it takes too long".into()))?.map_err(|error| broken(reason(&error)))
    }

    fn request(&self, outgoing: &ClientRequest) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::builder()
            .method(outgoing.method.clone())
            .uri(self.address.target(&outgoing.route))
            .header(HOST, self.address.authority())
            .header(AUTHORIZATION, &self.credential)
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")));
        if !outgoing.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in &outgoing.headers {
            request = request.header(name, value);
        }
        let made = request.body(Full::new(outgoing.body.clone()));
        made.map_err(|error| ClientError::unreachable(&self.address, &error.to_string()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let secrecy = match (self.address.is_plain(), self.plain_http) {
            (false, _) => Secrecy::Tls(&self.tls),
            (true, true) => Secrecy::Plain,
            (true, false) => Secrecy::Here("and no token is sent there over plain http without --plain-http"),
        };
        connect(self.address.host(), self.address.port(), secrecy).await
    }
}

/// The message of a hyper error with its cause.
fn reason(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{error}{cause}")
}
