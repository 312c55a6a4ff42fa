//! A server behind TLS: the command line talks to one whose certificate it can check, and to no other.

use std::{fs, sync::Arc, thread};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

use super::{
    commands::{Caller, assert_refused},
    process::Server,
    support::call,
};

/// Speaks TLS before a server, in the name of `localhost`: the address, and the certificate in PEM.
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

#[test]
fn a_certificate_is_checked_by_those_who_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (url, certificate) = before(&server.address);
    let caller = Caller::owner(&server);
    let file = caller.folder().join("authority.pem");
    fs::write(&file, certificate).unwrap();
    let there = |authorities: Option<&std::path::Path>| {
        let mut command = caller.command(&["workflows", "--server", &url]);
        command.envs(authorities.map(|file| ("SSL_CERT_FILE", file)));
        call(command, b"")
    };
    assert_refused(&there(None), 40, &["TLS: invalid peer certificate"]);
    let said = there(Some(&file));
    assert_eq!((said.exit, said.stdout.as_str()), (Some(0), "none\n"), "{said:?}");
    fs::write(&file, "nothing").unwrap();
    assert_refused(&there(Some(&file)), 10, &["SSL_CERT_FILE", "no certificate"]);
}
