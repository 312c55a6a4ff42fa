//! TLS and HTTP/2, with a certificate made by the test.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response, Version,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mainspring_effects::http::TlsRoots;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

use super::*;

/// A TLS server named `localhost` that echoes requests, with these protocols on offer.
struct Secure {
    port: u16,
    pem: String,
    /// Requests for `/never` that have arrived.
    waiting: mpsc::UnboundedReceiver<()>,
    /// Connections that have ended.
    ended: mpsc::UnboundedReceiver<()>,
}

impl Secure {
    async fn start(protocols: &[&str]) -> Self {
        let (acceptor, pem) = acceptor(protocols);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((waiting_sender, waiting), (ended_sender, ended)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust the certificate closes the connection.
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let (waiting, ended) = (waiting_sender.clone(), ended_sender.clone());
                let service = service_fn(move |request| echo(request, waiting.clone()));
                let stream = TokioIo::new(stream);
                tokio::spawn(async move {
                    let _ = match is_http2 {
                        true => http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await,
                        false => http1::Builder::new().serve_connection(stream, service).await,
                    };
                    let _ = ended.send(());
                });
            }
        });
        Self { port, pem, waiting, ended }
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.port)
    }

    fn trusting(&self) -> Http {
        trusting(&self.pem)
    }
}

/// Makes the TLS acceptor of `localhost` with these protocols, and its certificate.
fn acceptor(protocols: &[&str]) -> (TlsAcceptor, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (vec![certified.cert.der().clone()], certified.signing_key.serialize_der());
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::Pkcs8(key.into())).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), certified.cert.pem())
}

/// Makes an executor that trusts this certificate.
fn trusting(pem: &str) -> Http {
    let trust = TlsRoots::default().with_authorities(pem).unwrap();
    Http::new(HttpOptions { allow: "127.0.0.0/8".parse().unwrap(), trust, ..HttpOptions::default() })
}

/// Responds with version, target and authority; with a redirect to the target after `/to?`; with a header of the size
/// after `/large?`; never to `/never`.
async fn echo(
    request: Request<Incoming>,
    waiting: mpsc::UnboundedSender<()>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/never" {
        let _ = waiting.send(());
        std::future::pending::<()>().await;
    }
    if let Some(location) = request.uri().query().filter(|_| request.uri().path() == "/to") {
        let response = Response::builder().status(302).header("location", location);
        return Ok(response.body(Full::default()).unwrap());
    }
    if let Some(length) = request.uri().query().filter(|_| request.uri().path() == "/large") {
        let response = Response::builder().header("x-large", "x".repeat(length.parse().unwrap()));
        return Ok(response.body(Full::default()).unwrap());
    }
    let version = if request.version() == Version::HTTP_2 { "2" } else { "1.1" };
    let host = request.headers().get("host").map(|host| host.to_str().unwrap().to_owned());
    let authority = request.uri().authority().map(ToString::to_string).or(host).unwrap();
    let path = request.uri().path_and_query().unwrap();
    Ok(Response::new(Full::new(format!("{version} {} {authority} {path}", request.method()).into())))
}

#[tokio::test]
async fn both_http_versions_are_supported() {
    for (protocols, version) in [(&["h2", "http/1.1"][..], "2"), (&["http/1.1"], "1.1"), (&[], "1.1")] {
        let server = Secure::start(protocols).await;
        let params = [("method", "POST".into()), ("body", "x".into())];
        let result = done(perform(&server.trusting(), &attempt(&server.url("localhost", "/p?q"), params)).await);
        let expected = format!("{version} POST localhost:{} /p?q", server.port);
        assert_eq!(at(&result, "body"), &Value::from(expected));
    }
}

#[tokio::test]
async fn an_untrusted_server_gets_no_request() {
    let server = Secure::start(&["h2"]).await;
    let fails = async |http: &Http, host: &str| {
        let outcome = perform(http, &attempt(&server.url(host, "/"), [])).await;
        assert_failed(outcome, "http_tls_failed", Class::Failed).message
    };
    let message = fails(&http_to("127.0.0.1"), "localhost").await;
    assert!(message.contains("nothing was sent"), "{message}");
    // The certificate is for the name and not for the address.
    fails(&server.trusting(), "127.0.0.1").await;
}

#[tokio::test]
async fn a_server_without_tls_gets_no_request() {
    let server = server::Server::with("SSH-2.0-OpenSSH_9.2\r\n").await;
    let url = server.url("/").replace("http:", "https:");
    assert_failed(run(&url, []).await, "http_tls_failed", Class::Failed);
}

#[tokio::test]
async fn redirects_from_https_to_http_are_refused() {
    let (server, plain) = (Secure::start(&["h2"]).await, server::Server::with("").await);
    let url = server.url("localhost", &format!("/to?{}", plain.url("/")));
    assert_failed(perform(&server.trusting(), &attempt(&url, [])).await, "http_redirect_insecure", Class::Policy);
    assert_eq!(plain.unread_requests(), 0);
    let url = server.url("localhost", &format!("/to?{}", server.url("localhost", "/end")));
    done(perform(&server.trusting(), &attempt(&url, [])).await);
}

#[tokio::test]
async fn redirects_from_http_to_https_are_followed() {
    let server = Secure::start(&["h2"]).await;
    let plain = server::Server::with(server::redirect(301, &server.url("localhost", "/end"))).await;
    let result = done(perform(&server.trusting(), &attempt(&plain.url("/"), [])).await);
    assert_eq!(at(&result, "url"), &Value::from(server.url("localhost", "/end")));
}

#[tokio::test]
async fn a_stop_closes_the_http2_connection() {
    let mut server = Secure::start(&["h2"]).await;
    let (cancel_handle, stop) = CancelHandle::pair();
    let (http, attempt) = (server.trusting(), attempt(&server.url("localhost", "/never"), []));
    let work = tokio::spawn(async move { http.perform(&attempt, stop).await });
    server.waiting.recv().await.unwrap();
    cancel_handle.cancel();
    match work.await.unwrap() {
        Outcome::Stopped(details) => assert_eq!(at(&details, "mayBeReceived"), &Value::from(true)),
        other => panic!("{other:?}"),
    }
    server.ended.recv().await.unwrap();
}

#[tokio::test]
async fn response_headers_of_http2_are_bounded() {
    let server = Secure::start(&["h2"]).await;
    let large = |length: usize| attempt(&server.url("localhost", &format!("/large?{length}")), []);
    done(perform(&server.trusting(), &large(20_000)).await);
    let outcome = perform(&server.trusting(), &large(30_000)).await;
    assert_failed(outcome, "http_response_too_large", Class::Policy);
}
