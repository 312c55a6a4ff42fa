//! A minimal HTTP server for scrapers: `GET /metrics`.
//!
//! The number of connections and the time of each are bounded. A connection serves one request.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore};

/// Concurrent connections. Further ones wait in the listen backlog of the operating system.
const CONNECTIONS_MAX: usize = 32;

/// Timeouts of the request head and of the whole connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The content type of the text format.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The pause after `accept` failed, as with too many open files.
const AFTER_AN_ERROR: Duration = Duration::from_millis(100);

/// Serves scrapers forever.
pub(super) async fn serve(listener: TcpListener, render: impl Fn() -> String + Send + Sync + 'static) {
    let (render, places) = (Arc::new(render), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(AFTER_AN_ERROR).await;
            continue;
        };
        let render = render.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(request.method(), request.uri().path(), &*render);
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
            let connection = server.serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop(place);
        });
    }
}

fn answer(method: &Method, path: &str, render: &dyn Fn() -> String) -> Response<Full<Bytes>> {
    let of = |status: StatusCode, body: String| {
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, TEXT);
        response
    };
    match (method, path) {
        (&Method::GET, "/metrics") => of(StatusCode::OK, render()),
        (_, "/metrics") => {
            let mut response = of(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".into());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            response
        }
        _ => of(StatusCode::NOT_FOUND, "the metrics are at /metrics\n".into()),
    }
}
