//! Opens HTTP/1.1 connections to other servers, with or without TLS.

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

/// The transport security that a connection needs.
pub(crate) enum Secrecy<'a> {
    /// TLS. The server proves its name by a certificate.
    Tls(&'a Arc<ClientConfig>),
    /// Plain HTTP to any address. Everyone on the network path can read the traffic.
    Plain,
    /// Plain HTTP to a loopback address only. The text completes the error message for any other address.
    Here(&'static str),
}

/// Connects and completes the handshakes, so that requests can be sent. The host is a name, or an IP address
/// without brackets.
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
            // Local configuration can resolve a name such as `localhost` to an address of another machine.
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
