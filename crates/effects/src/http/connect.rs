//! Connections to checked addresses. Each hop has its own connection, which is not reused: a request is sent once,
//! directly, and only to addresses that were checked.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Response, Uri,
    body::Incoming,
    client::conn::{http1, http2},
    header::{CONTENT_LENGTH, HOST, HeaderValue},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, rustls, rustls::pki_types::ServerName};

use super::{
    allowlist::{Allowlist, Permitted, without_root},
    connection_task::Tasks,
    error::RequestError,
    happy_eyeballs::first_connected,
    limits::HEAD_BUFFER_BYTES,
    request::Request,
    resolve::{Resolver, addresses},
    url::Target,
};

pub(super) struct Connector {
    /// The exceptions of each organization to the public internet.
    pub(super) allow: Allowlist,
    /// Resolves host names.
    pub(super) resolver: Arc<dyn Resolver>,
    /// The TLS configuration.
    pub(super) tls: Arc<rustls::ClientConfig>,
    /// Bounds resolving, connecting and the TLS handshake together.
    pub(super) timeout: Duration,
}

/// A connection that is ready for one request. Dropping it closes it.
pub(super) struct Connection {
    sender: Sender,
    _tasks: Tasks,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connector {
    /// Connects to a target on behalf of an organization; `None` stands for the command line.
    pub(super) async fn connect(
        &self,
        target: &Target,
        organization: Option<&str>,
    ) -> Result<Connection, RequestError> {
        let permitted = self.allow.of(organization);
        match timeout(self.timeout, self.connect_in_time(target, permitted)).await {
            Ok(Err(refusal)) => Err(refusal.of_organization(organization)),
            Ok(connection) => connection,
            Err(_) => Err(RequestError::ConnectTimeout(target.shown())),
        }
    }

    async fn connect_in_time(&self, target: &Target, permitted: &Permitted) -> Result<Connection, RequestError> {
        let addresses = addresses(target, self.resolver.as_ref(), permitted).await?;
        let not_connected = |error| RequestError::NotConnected(target.shown(), error);
        let stream = first_connected(&addresses, TcpStream::connect).await.map_err(not_connected)?;
        stream.set_nodelay(true).map_err(not_connected)?;
        let made = if target.is_secure() {
            let stream = TlsConnector::from(self.tls.clone())
                .connect(server_name(target)?, stream)
                .await
                .map_err(|error| tls_failed(target, error))?;
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Connection::http2(stream).await,
                _ => Connection::http1(stream).await,
            }
        } else {
            Connection::http1(stream).await
        };
        made.map_err(|error| not_connected(io::Error::other(error)))
    }
}

impl Connection {
    async fn http1(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> hyper::Result<Self> {
        let mut builder = http1::Builder::new();
        let (sender, connection) = builder.max_buf_size(HEAD_BUFFER_BYTES).handshake(TokioIo::new(stream)).await?;
        let tasks = Tasks::default();
        tasks.spawner().execute(connection);
        Ok(Self { sender: Sender::Http1(sender), _tasks: tasks })
    }

    async fn http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> hyper::Result<Self> {
        let tasks = Tasks::default();
        let mut builder = http2::Builder::new(tasks.spawner());
        let list_bytes_max = u32::try_from(HEAD_BUFFER_BYTES).unwrap_or(u32::MAX);
        let (sender, connection) = builder.max_header_list_size(list_bytes_max).handshake(TokioIo::new(stream)).await?;
        tasks.spawner().execute(connection);
        Ok(Self { sender: Sender::Http2(sender), _tasks: tasks })
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(&mut self, request: &Request) -> hyper::Result<Response<Incoming>> {
        let mut message = hyper::Request::new(Full::new(request.body.clone().unwrap_or_default()));
        *message.method_mut() = request.method.clone();
        *message.headers_mut() = request.headers.clone();
        if request.body.is_none() && matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
            // Some servers reject, or wait for, a method with a body unless an absent body has the length 0 (RFC 9110,
            // 8.6).
            message.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let uri = request.target.uri();
        match &mut self.sender {
            Sender::Http1(sender) => {
                let (host, path) = (uri.authority().map(|host| host.as_str()), uri.path_and_query().cloned());
                if let Some(Ok(host)) = host.map(HeaderValue::from_str) {
                    message.headers_mut().insert(HOST, host);
                }
                *message.uri_mut() = path.map(Uri::from).unwrap_or_default();
                sender.ready().await?;
                sender.send_request(message).await
            }
            Sender::Http2(sender) => {
                *message.uri_mut() = uri.clone();
                sender.ready().await?;
                sender.send_request(message).await
            }
        }
    }
}

/// Returns the name that the certificate must be valid for.
fn server_name(target: &Target) -> Result<ServerName<'static>, RequestError> {
    let host = target.url().host_str().unwrap_or_default();
    let host = without_root(host).trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned())
        .map_err(|_| RequestError::TlsFailed(target.shown(), "no certificate can be for such a host".into()))
}

/// A certificate error is not retried; a broken connection is.
fn tls_failed(target: &Target, error: io::Error) -> RequestError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(why) => RequestError::TlsFailed(target.shown(), why.to_string()),
        None => RequestError::NotConnected(target.shown(), error),
    }
}
