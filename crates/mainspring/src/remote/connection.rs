//! One request on one connection. Nothing is followed, and nothing is sent twice.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Response,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, pki_types::ServerName},
};

use super::{Trouble, address::Address};

/// The time of connecting, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A request, but for whom it is sent to and by whom.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The method.
    pub(crate) method: Method,
    /// The route, as [`super::address::route`] makes it.
    pub(crate) route: String,
    /// Headers beside those of every request.
    pub(crate) headers: HeaderMap,
    /// The body, in JSON; empty for none.
    pub(crate) body: Bytes,
    /// How long the head of the answer may take.
    pub(crate) patience: Duration,
}

/// Who asks, and where.
#[derive(Clone)]
pub(crate) struct Line {
    /// The server.
    pub(crate) address: Address,
    /// `Bearer …`.
    pub(crate) credential: HeaderValue,
    /// Whether the credential may go over plain HTTP to another machine.
    pub(crate) plain_http: bool,
    /// Whom the other end is checked by.
    pub(crate) tls: Arc<ClientConfig>,
}

impl Line {
    /// Sends a request; the answer's body is still to be read.
    pub(crate) async fn send(&self, asked: &Asked) -> Result<Response<Incoming>, Trouble> {
        let request = self.request(asked)?;
        let unreachable = |why: String| Trouble::unreachable(&self.address, &why);
        let connecting = timeout(CONNECT_TIMEOUT, self.connect()).await;
        let mut sender = connecting.map_err(|_| unreachable("it takes too long".into()))?.map_err(unreachable)?;
        let broken = |why: String| Trouble::broken(&self.address, &why);
        let answer = timeout(asked.patience, sender.send_request(request)).await;
        answer.map_err(|_| broken("it takes too long".into()))?.map_err(|error| broken(reason(&error)))
    }

    fn request(&self, asked: &Asked) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut request = Request::builder()
            .method(asked.method.clone())
            .uri(self.address.target(&asked.route))
            .header(HOST, self.address.authority())
            .header(AUTHORIZATION, &self.credential)
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")));
        if !asked.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in &asked.headers {
            request = request.header(name, value);
        }
        let made = request.body(Full::new(asked.body.clone()));
        made.map_err(|error| Trouble::unreachable(&self.address, &error.to_string()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = TcpStream::connect((self.address.host(), self.address.port())).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        if self.address.is_plain() {
            self.check_peer(&stream)?;
            return shake(stream).await;
        }
        let name = ServerName::try_from(self.address.host().to_string()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
        shake(stream.map_err(|error| format!("TLS: {error}"))?).await
    }

    /// A name that is kept for this machine may lead elsewhere all the same, where somebody has set it up so.
    fn check_peer(&self, stream: &TcpStream) -> Result<(), String> {
        let peer = stream.peer_addr().map_err(|error| error.to_string())?;
        if self.plain_http || peer.ip().is_loopback() {
            return Ok(());
        }
        Err(format!(
            "it is at {peer}, which is another machine, and no token is sent there over plain http without --plain-http"
        ))
    }
}

async fn shake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(sender)
}

/// What hyper says, and why.
fn reason(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{error}{cause}")
}
