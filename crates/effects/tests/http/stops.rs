//! Canceled requests, and requests of an earlier process.

use std::{future::pending, time::Duration};

use super::{
    server::{Reply, Server, response},
    *,
};
use mainspring_effects::{Adopted, AttemptName};
use tokio::{io::AsyncReadExt, net::TcpListener};

/// Never resolves a name.
struct Silent;

impl Resolver for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(pending())
    }
}

#[track_caller]
fn assert_stopped(outcome: Outcome, may_be_received: bool) {
    match outcome {
        Outcome::Stopped(details) => {
            assert_eq!(at(&details, "mayBeReceived"), &Value::from(may_be_received));
            assert_eq!(at(&details, "status"), &Value::Null);
        }
        other => panic!("not stopped: {other:?}"),
    }
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_a_response() {
    for begin in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf",
        "HTTP/1.1 500 Any\r\n\r\nhalf",
    ] {
        let mut server = Server::start(|_| Reply::Begun(begin.into())).await;
        let (cancel_handle, stop) = CancelHandle::pair();
        let attempt = attempt(&server.url("/"), []);
        let work = tokio::spawn(async move { http_to("127.0.0.1").perform(&attempt, stop).await });
        server.response_started().await;
        cancel_handle.cancel();
        assert_stopped(work.await.unwrap(), true);
        server.closed().await;
    }
}

#[tokio::test]
async fn nothing_is_sent_after_the_stop() {
    let server = Server::with(response(200, &[], "")).await;
    let (cancel_handle, stop) = CancelHandle::pair();
    cancel_handle.cancel();
    assert_stopped(http_to("127.0.0.1").perform(&attempt(&server.url("/"), []), stop.clone()).await, false);
    assert_eq!(server.unread_requests(), 0);
    // Not even a lookup is made.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let http = Http::new(HttpOptions { resolver: resolver.clone(), ..HttpOptions::default() });
    assert_stopped(http.perform(&attempt("http://a.test/", []), stop).await, false);
    assert_eq!(resolver.left_count(), 2);
}

/// A server that stops reading does not keep the connection of a canceled request open.
#[tokio::test]
async fn no_redirect_is_followed_after_the_stop() {
    const BODY_BYTES: usize = 64 * 1024 * 1024;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let attempt = attempt(&url, [("method", "POST".into()), ("body", "x".repeat(BODY_BYTES).into())]);
    let (cancel_handle, stop) = CancelHandle::pair();
    let work = tokio::spawn(async move { http_to("127.0.0.1").perform(&attempt, stop).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.read_exact(&mut [0; 1000]).await.unwrap();
    cancel_handle.cancel();
    assert_stopped(work.await.unwrap(), true);
    let mut rest = Vec::new();
    // Reading from a connection that was reset may fail.
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.len() < BODY_BYTES / 2, "{} bytes were sent", rest.len());
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_a_lookup() {
    let options = || HttpOptions { resolver: Arc::new(Silent), ..HttpOptions::default() };
    let (cancel_handle, stop) = CancelHandle::pair();
    let work = tokio::spawn(async move { Http::new(options()).perform(&attempt("http://a.test/", []), stop).await });
    tokio::task::yield_now().await;
    cancel_handle.cancel();
    assert_stopped(work.await.unwrap(), false);
    let hasty = Http::new(HttpOptions { connect_timeout: Duration::from_millis(1), ..options() });
    let outcome = perform(&hasty, &attempt("http://a.test/", [])).await;
    assert_failed(outcome, "http_connect_timeout", Class::Timeout);
}

#[tokio::test]
async fn an_attempt_of_an_earlier_process_may_have_been_sent() {
    let (http, attempt) = (http_to(""), attempt("http://a.test/", []));
    assert_eq!(http.adopt(&attempt).await, Adopted::Interrupted);
    http.forget(AttemptName::from(&attempt));
    assert_eq!(http.adopt(&attempt).await, Adopted::Interrupted);
}
