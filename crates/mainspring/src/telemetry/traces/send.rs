//! Sends requests to one collector, one at a time on one connection.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request, StatusCode, Uri,
    client::conn::http1::SendRequest,
    header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT},
};
use tokio_rustls::rustls::ClientConfig;
use url::Url;

use super::Settings;
use crate::client::connect::{Secrecy, connect};

/// Timeout of a request, connecting included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a response. Collectors send a few bytes, and a longer response is discarded.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A rejected or failed request.
#[derive(Debug)]
pub(super) struct Unsent {
    /// True if the error is transient.
    pub(super) is_transient: bool,
    /// The reason as text.
    pub(super) why: String,
}

pub(super) struct Collector {
    endpoint: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    trust: Arc<ClientConfig>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Collector {
    pub(super) fn new(settings: &Settings) -> Self {
        let Settings { endpoint, headers, trust, .. } = settings.clone();
        Self { endpoint, headers, trust, connection: None }
    }

    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Sends a request and waits for the response.
    pub(super) async fn post(&mut self, body: Bytes) -> Result<(), Unsent> {
        // The connection is taken: if the request fails or times out, it is dropped and so closed.
        let connection = self.connection.take().filter(|connection| !connection.is_closed());
        match tokio::time::timeout(TIMEOUT, self.exchange(connection, body)).await {
            Ok(Ok(connection)) => {
                self.connection = Some(connection);
                Ok(())
            }
            Ok(Err(unsent)) => Err(unsent),
            Err(_) => Err(passing(format!("no answer within {} s", TIMEOUT.as_secs()))),
        }
    }

    async fn exchange(
        &self,
        connection: Option<SendRequest<Full<Bytes>>>,
        body: Bytes,
    ) -> Result<SendRequest<Full<Bytes>>, Unsent> {
        let mut connection = match connection {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await.map_err(passing)?;
        let answer = connection.send_request(self.request(body)?).await.map_err(passing)?;
        let status = answer.status();
        let read = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        read.map_err(|error| passing(error.to_string()))?;
        if status.is_success() {
            return Ok(connection);
        }
        // OTLP allows retries for these status codes only.
        let is_transient = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(Unsent { is_transient, why: format!("the collector answers {status}") })
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, Unsent> {
        let never = |error: &dyn std::fmt::Display| Unsent { is_transient: false, why: error.to_string() };
        let target = &self.endpoint[url::Position::BeforePath..url::Position::AfterQuery];
        let authority = &self.endpoint[url::Position::BeforeHost..url::Position::AfterPort];
        let mut request = Request::post(target.parse::<Uri>().map_err(|error| never(&error))?)
            .header(HOST, authority)
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body)).map_err(|error| never(&error))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Unsent> {
        let host = self.endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.endpoint.port_or_known_default().unwrap_or(4318);
        let is_plain = self.endpoint.scheme() == "http";
        connect(host, port, if is_plain { Secrecy::Plain } else { Secrecy::Tls(&self.trust) }).await.map_err(passing)
    }
}

fn passing(error: impl std::fmt::Display) -> Unsent {
    Unsent { is_transient: true, why: error.to_string() }
}
