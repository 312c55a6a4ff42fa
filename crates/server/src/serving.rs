//! Accepts connections, serves the routes on them until shutdown, and closes connections that make no progress.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo, response::Response};
use hyper::{Request, body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto::Builder,
        graceful::{GracefulShutdown, Watcher},
    },
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use crate::{
    App,
    connections::Connections,
    rate::one_of_many,
    responses::HeldResponse,
    routes::router,
    sending::{Clock, IDLE_PATIENCE, STREAMS_MAX, Sending},
};

/// Time for open requests at shutdown. Watchers of event streams reconnect on their own.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Bytes buffered per request beside the body: some round trips of a fast link.
const BUFFER_BYTES: usize = 64 * 1024;

/// HTTP/2 flow-control window per stream: bytes of a request body that are buffered before a handler reads it. This is
/// the default of RFC 9113, 6.9.2. The memory budget of bodies does not count these bytes, and with hyper's 1 MiB a
/// quarter of all connections could fill gigabytes.
const STREAM_WINDOW_BYTES: u32 = 65_535;

/// HTTP/2 flow-control window per connection: twice that of a stream, so that one upload does not stop the requests
/// beside it. A body of 4 MiB then takes 6 s at a latency of 100 ms.
const CONNECTION_WINDOW_BYTES: u32 = 2 * STREAM_WINDOW_BYTES;

/// Interval of HTTP/2 PINGs.
const ALIVE_LOOK: Duration = Duration::from_secs(30);

/// Pause after a failed accept, as when file descriptors are exhausted.
const BREATH: Duration = Duration::from_millis(200);

/// Serves requests until `stop` resolves, and then lets open ones finish for some seconds. Draining the engine is left
/// to the caller.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let places = Places::of(app.settings.connections_max);
    let limiting = app.clone();
    let (watched, served) = (GracefulShutdown::new(), Served { builder: builder(), routes: router(app) });
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = places.accept(&listener) => accepted,
        };
        let (stream, peer, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                sleep(BREATH).await;
                continue;
            }
        };
        let (served, watcher) = (served.clone(), watched.watcher());
        let is_proxy = limiting.limiter.is_proxy(peer.ip());
        let connection = places.connections.add(one_of_many(peer.ip().to_canonical()), is_proxy);
        let clock = Arc::new(Clock::new(Some(connection), is_proxy));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            served.connection(stream, peer, watcher, clock).await;
            drop(place);
        });
    }
    drop(listener);
    // Slower requests end with the runtime.
    let _ = timeout(LAST_REQUESTS, watched.shutdown()).await;
    Ok(())
}

/// The places for connections.
struct Places {
    free: Arc<Semaphore>,
    connections: Arc<Connections>,
}

impl Places {
    fn of(max: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max)), connections: Arc::new(Connections::of(max)) }
    }

    /// Accepts a connection. Without a free place, another connection is closed first.
    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let (stream, peer) = listener.accept().await?;
        if let Ok(place) = self.free.clone().try_acquire_owned() {
            return Ok((stream, peer, place));
        }
        self.connections.make_room();
        let place = self.free.clone().acquire_owned().await.map_err(io::Error::other)?;
        Ok((stream, peer, place))
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_PATIENCE).max_buf_size(BUFFER_BYTES);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(ALIVE_LOOK);
    http2.max_concurrent_streams(STREAMS_MAX).max_send_buf_size(BUFFER_BYTES);
    http2.initial_stream_window_size(STREAM_WINDOW_BYTES).initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder
}

/// Shared parts of all connections.
#[derive(Clone)]
struct Served {
    builder: Builder<TokioExecutor>,
    routes: Router,
}

impl Served {
    /// Serves a connection until the client closes it, a timeout closes it, or its place is needed for another one.
    async fn connection<S>(self, stream: S, peer: SocketAddr, watcher: Watcher, clock: Arc<Clock>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let routes = self.routes;
        let service = {
            let clock = clock.clone();
            hyper::service::service_fn(move |request| answer(routes.clone(), peer, clock.clone(), request))
        };
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let closed = async {
            match clock.connection() {
                Some(connection) => connection.closed.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Errors are the client's: it disconnected or does not speak HTTP.
            _ = watcher.watch(connection) => {}
            () = clock.expired() => {}
            () = closed => {}
        }
        clock.connection().iter().for_each(|connection| connection.end());
    }
}

async fn answer(
    routes: Router,
    peer: SocketAddr,
    clock: Arc<Clock>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let open = clock.admit().await;
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    request.extensions_mut().insert(clock);
    let mut response = TowerToHyperService::new(routes).call(request).await?;
    let held = response.extensions_mut().remove::<HeldResponse>();
    Ok(response.map(|body| Body::new(Sending::of(body, open, held))))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::{body::Bytes, routing::get};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
        net::TcpStream,
        task::JoinHandle,
    };

    use super::*;
    use crate::sending::{FIRST_HEAD_PATIENCE, WRITE_PATIENCE};

    /// A connection to a server with one route, and the task that serves it.
    fn connected(routes: Router) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(64);
        let served = Served { builder: builder(), routes };
        let (peer, watched) = (SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), GracefulShutdown::new());
        let clock = Arc::new(Clock::new(None, false));
        let serving = async move {
            served.connection(theirs, peer, watched.watcher(), clock).await;
            drop(watched);
        };
        (ours, tokio::spawn(serving))
    }

    const RESPONSE_BYTES: usize = 5_000_000;

    fn routes() -> Router {
        Router::new().route("/", get(|| async { "a".repeat(RESPONSE_BYTES) }))
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_ask_is_let_go() {
        for begun in ["", "P", "PRI * HTTP", "GET / HTTP/1.1\r\nhost: a"] {
            let (mut ours, mut served) = connected(routes());
            ours.write_all(begun.as_bytes()).await.unwrap();
            let second = Duration::from_secs(1);
            assert!(timeout(FIRST_HEAD_PATIENCE - second, &mut served).await.is_err(), "{begun:?} has no time");
            assert!(timeout(second * 2, served).await.is_ok(), "{begun:?} holds a connection");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_asked_may_wait_for_an_answer() {
        let slow = || async {
            sleep(IDLE_PATIENCE * 3).await;
            "at last"
        };
        let (mut ours, served) = connected(Router::new().route("/", get(slow)));
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        ours.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("at last"), "{answer}");
        served.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_let_go() {
        let (mut ours, mut served) = connected(routes());
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let second = Duration::from_secs(1);
        assert!(timeout(WRITE_PATIENCE - second, &mut served).await.is_err(), "a slow client has no time");
        assert!(timeout(second * 2, served).await.is_ok(), "a client that reads nothing holds a connection");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_all_of_it() {
        let (mut ours, served) = connected(routes());
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let (mut all, mut piece, began) = (0, [0; 1_000], tokio::time::Instant::now());
        loop {
            match ours.read(&mut piece).await.unwrap() {
                0 => break,
                count => all += count,
            }
            sleep(Duration::from_millis(40)).await;
        }
        assert!(began.elapsed() > IDLE_PATIENCE * 3, "{:?} is not slow", began.elapsed());
        assert!(all > RESPONSE_BYTES, "{all} of {RESPONSE_BYTES}");
        served.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_http_2_that_opens_no_window_is_let_go() {
        let (ours, mut served) = connected(routes());
        let opened = h2::client::Builder::new().initial_window_size(0).handshake::<_, Bytes>(ours).await;
        let (mut client, connection) = opened.unwrap();
        // The client answers PINGs throughout.
        let answering = tokio::spawn(connection);
        let mut responses = Vec::new();
        for _ in 0..3 {
            client = client.ready().await.unwrap();
            let request = Request::get("http://a/").body(()).unwrap();
            let (response, _) = client.send_request(request, true).unwrap();
            responses.push(response.await.unwrap());
        }
        let second = Duration::from_secs(1);
        assert!(timeout(WRITE_PATIENCE - second, &mut served).await.is_err(), "a slow client has no time");
        assert!(timeout(second * 2, served).await.is_ok(), "a client without a window holds a connection");
        drop((client, responses));
        let _ = answering.await;
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_nobody_reads_are_buffered_up_to_a_small_window() {
        let unread = |request: Request<Body>| async move {
            std::future::pending::<()>().await;
            drop(request);
        };
        let (ours, served) = connected(Router::new().route("/", axum::routing::post(unread)));
        let (mut client, connection) = h2::client::handshake::<_>(ours).await.unwrap();
        let answering = tokio::spawn(connection);
        let (mut sent, mut open) = (0, Vec::new());
        for _ in 0..4 {
            client = client.ready().await.unwrap();
            let (response, mut body) =
                client.send_request(Request::post("http://a/").body(()).unwrap(), false).unwrap();
            let second = Duration::from_secs(1);
            loop {
                body.reserve_capacity(16 * 1024);
                let granted = timeout(second, std::future::poll_fn(|context| body.poll_capacity(context))).await;
                let Ok(Some(Ok(bytes))) = granted else { break };
                body.send_data(Bytes::from(vec![0; bytes]), false).unwrap();
                sent += bytes;
            }
            open.push((response, body));
        }
        assert_eq!(sent, CONNECTION_WINDOW_BYTES as usize);
        drop((open, client));
        answering.abort();
        served.abort();
    }

    #[tokio::test]
    async fn a_connection_is_busy_from_its_request_to_the_end_of_the_response() {
        let is_idle = |clock: &Clock| clock.connection().unwrap().is_idle().to_string();
        let asked = move |clock: axum::Extension<Arc<Clock>>| async move { is_idle(&clock) };
        let served = Served { builder: builder(), routes: Router::new().route("/", get(asked)) };
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let connection = Places::of(64).connections.add(peer.ip(), false);
        let clock = Arc::new(Clock::new(Some(connection), false));
        let (watched, (mut ours, theirs)) = (GracefulShutdown::new(), tokio::io::duplex(1024));
        let serving = tokio::spawn(served.connection(theirs, peer, watched.watcher(), clock.clone()));
        assert_eq!(is_idle(&clock), "true");
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        ours.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("false"), "{answer}");
        serving.await.unwrap();
        assert!(clock.connection().unwrap().has_ended());
    }

    #[tokio::test]
    async fn a_new_connection_takes_the_place_of_an_unproven_one() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, places) = (listener.local_addr().unwrap(), Places::of(1));
        let _clients = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        let (_, peer, place) = places.accept(&listener).await.unwrap();
        let first = places.connections.add(peer.ip(), false);
        let next = tokio::spawn(async move { places.accept(&listener).await.map(drop) });
        first.closed.notified().await;
        assert!(!next.is_finished(), "the first has its place still");
        drop(place);
        next.await.unwrap().unwrap();
    }
}
