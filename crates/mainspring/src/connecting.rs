//! A connection to somebody's HTTP server, with TLS or, where that is allowed, without.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, pki_types::ServerName},
};

/// Who may read along on the way.
pub(crate) enum Secrecy<'a> {
    /// Nobody: the other end proves who it is.
    Tls(&'a Arc<ClientConfig>),
    /// Whoever is between, wherever that is.
    Plain,
    /// Nobody, as it is at this machine; else it is refused, and this is what is said then.
    Here(&'static str),
}

/// Connects, and is ready for requests. The host is a name or an address without brackets.
pub(crate) async fn connect(host: &str, port: u16, secrecy: Secrecy<'_>) -> Result<SendRequest<Full<Bytes>>, String> {
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    match secrecy {
        Secrecy::Tls(config) => {
            let name = ServerName::try_from(host.to_string()).map_err(|error| error.to_string())?;
            let stream = TlsConnector::from(config.clone()).connect(name, stream).await;
            shake(stream.map_err(|error| format!("TLS: {error}"))?).await
        }
        Secrecy::Plain => shake(stream).await,
        Secrecy::Here(otherwise) => {
            let peer: SocketAddr = stream.peer_addr().map_err(|error| error.to_string())?;
            // A name that is kept for this machine may lead elsewhere, where somebody has set it up so.
            if !peer.ip().is_loopback() {
                return Err(format!("it is at {peer}, which is another machine, {otherwise}"));
            }
            shake(stream).await
        }
    }
}

async fn shake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(sender)
}
