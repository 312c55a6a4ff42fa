//! The HTTP client for requests to an OpenID Connect provider. Each request has its own connection, and sizes and
//! times are bounded.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request,
    client::conn::http1::SendRequest,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT},
};
use mainspring_server::auth::oidc::{Fetch, Fetched, Fetching, Request as OutgoingRequest};
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;
use url::{Position, Url};

use crate::{
    client::connect::{Secrecy, connect},
    error::CliError,
    tls,
};

/// A client with its trusted certificate authorities.
pub(crate) struct Fetcher {
    tls: Arc<ClientConfig>,
}

impl Fetcher {
    /// A client that trusts the same authorities as all other clients of this process.
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self { tls: tls::trusting()? })
    }

    async fn send(&self, outgoing: &OutgoingRequest) -> Result<Fetched, String> {
        let mut sender = self.connect(&outgoing.url).await?;
        let method = if outgoing.form.is_some() { Method::POST } else { Method::GET };
        let mut request = Request::builder()
            .method(method)
            .uri(&outgoing.url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &outgoing.url[Position::BeforeHost..Position::AfterPort])
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")));
        if let Some(authorization) = &outgoing.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if outgoing.form.is_some() {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let body = Full::new(Bytes::from(outgoing.form.clone().unwrap_or_default()));
        let request = request.body(body).map_err(|_| "the request cannot be written".to_string())?;
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), outgoing.bytes_max).collect().await;
        let body = body.map_err(|error| format!("its answer breaks off, or is too large ({error})"))?;
        Ok(Fetched { status, body: body.to_bytes().into() })
    }

    async fn connect(&self, url: &Url) -> Result<SendRequest<Full<Bytes>>, String> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(443);
        let is_secret = url.scheme() == "https";
        connect(host, port, if is_secret { Secrecy::Tls(&self.tls) } else { Secrecy::Here("without TLS") }).await
    }
}

impl Fetch for Fetcher {
    fn fetch(&self, request: OutgoingRequest) -> Fetching<'_> {
        Box::pin(async move {
            let bound = Duration::from_millis(request.timeout_ms);
            let done = timeout(bound, self.send(&request)).await;
            done.map_err(|_| format!("it takes longer than {} s", bound.as_secs()))?
        })
    }
}
