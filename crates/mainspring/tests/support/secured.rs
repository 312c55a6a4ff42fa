//! A TLS proxy for servers without TLS.

use std::{sync::Arc, thread};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

/// Starts a TLS proxy for `localhost` before a server. Returns its URL and its certificate in PEM.
pub(crate) fn before(server: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (acceptor, server) = (TlsAcceptor::from(Arc::new(config)), server.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        runtime.block_on(async {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, server) = (acceptor.clone(), server.clone());
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    copy_bidirectional(&mut stream, &mut TcpStream::connect(server).await?).await
                });
            }
        })
    });
    (address, made.cert.pem())
}
