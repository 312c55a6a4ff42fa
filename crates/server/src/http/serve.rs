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
    app::App,
    http::{
        connections::Connections,
        open_requests::{ConnectionTimer, IDLE_TIMEOUT, ResponseBody, STREAMS_MAX},
        rate_limit::client_network,
        response_memory::ResponseReservation,
    },
    routes::router,
};

/// Time for open requests at shutdown. Watchers of event streams reconnect on their own.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

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
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Pause after a failed accept, as when file descriptors are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves requests until `stop` resolves, and then lets open ones finish for some seconds. Draining the engine is left
/// to the caller.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let permits = ConnectionPermits::of(app.settings.connections_max);
    let limiting = app.clone();
    let (watched, served) = (GracefulShutdown::new(), Served { builder: builder(), routes: router(app) });
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = permits.accept(&listener) => accepted,
        };
        let (stream, peer, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (served, watcher) = (served.clone(), watched.watcher());
        let is_proxy = limiting.limiter.is_proxy(peer.ip());
        let connection = permits.connections.add(client_network(peer.ip().to_canonical()), is_proxy);
        let timer = Arc::new(ConnectionTimer::new(Some(connection), is_proxy));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            served.connection(stream, peer, watcher, timer).await;
            drop(permit);
        });
    }
    drop(listener);
    // Slower requests end with the runtime.
    let _ = timeout(SHUTDOWN_TIMEOUT, watched.shutdown()).await;
    Ok(())
}

/// The permits for connections.
struct ConnectionPermits {
    free: Arc<Semaphore>,
    connections: Arc<Connections>,
}

impl ConnectionPermits {
    fn of(max: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max)), connections: Arc::new(Connections::of(max)) }
    }

    /// Accepts a connection. Without a free permit, another connection is closed first.
    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let (stream, peer) = listener.accept().await?;
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok((stream, peer, permit));
        }
        self.connections.make_room();
        let permit = self.free.clone().acquire_owned().await.map_err(io::Error::other)?;
        Ok((stream, peer, permit))
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(BUFFER_BYTES);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(PING_INTERVAL);
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
    /// Serves a connection until the client closes it, a timeout closes it, or its permit is needed for another one.
    async fn connection<S>(self, stream: S, peer: SocketAddr, watcher: Watcher, timer: Arc<ConnectionTimer>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let routes = self.routes;
        let service = {
            let timer = timer.clone();
            hyper::service::service_fn(move |request| answer(routes.clone(), peer, timer.clone(), request))
        };
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let closed = async {
            match timer.connection() {
                Some(connection) => connection.closed.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Errors are the client's: it disconnected or does not speak HTTP.
            _ = watcher.watch(connection) => {}
            () = timer.expired() => {}
            () = closed => {}
        }
        timer.connection().iter().for_each(|connection| connection.end());
    }
}

async fn answer(
    routes: Router,
    peer: SocketAddr,
    timer: Arc<ConnectionTimer>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let open = timer.admit().await;
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    request.extensions_mut().insert(timer);
    let mut response = TowerToHyperService::new(routes).call(request).await?;
    let reservation = response.extensions_mut().remove::<ResponseReservation>();
    Ok(response.map(|body| Body::new(ResponseBody::of(body, open, reservation))))
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
    use crate::http::open_requests::{FIRST_REQUEST_TIMEOUT, WRITE_TIMEOUT};

    /// A connection to a server with one route, and the task that serves it.
    fn connected(routes: Router) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(64);
        let served = Served { builder: builder(), routes };
        let (peer, watched) = (SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), GracefulShutdown::new());
        let timer = Arc::new(ConnectionTimer::new(None, false));
        let serving = async move {
            served.connection(theirs, peer, watched.watcher(), timer).await;
            drop(watched);
        };
        (ours, tokio::spawn(serving))
    }

    const RESPONSE_BYTES: usize = 5_000_000;

    fn routes() -> Router {
        Router::new().route("/", get(|| async { "a".repeat(RESPONSE_BYTES) }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_closed() {
        for sent_head in ["", "P", "PRI * HTTP", "GET / HTTP/1.1\r\nhost: a"] {
            let (mut ours, mut served) = connected(routes());
            ours.write_all(sent_head.as_bytes()).await.unwrap();
            let second = Duration::from_secs(1);
            assert!(timeout(FIRST_REQUEST_TIMEOUT - second, &mut served).await.is_err(), "{sent_head:?} has no time");
            assert!(timeout(second * 2, served).await.is_ok(), "{sent_head:?} holds a connection");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_request_keeps_its_connection() {
        let slow = || async {
            sleep(IDLE_TIMEOUT * 3).await;
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
    async fn a_client_that_reads_nothing_is_disconnected() {
        let (mut ours, mut served) = connected(routes());
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let second = Duration::from_secs(1);
        assert!(timeout(WRITE_TIMEOUT - second, &mut served).await.is_err(), "a slow client has no time");
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
        assert!(began.elapsed() > IDLE_TIMEOUT * 3, "{:?} is not slow", began.elapsed());
        assert!(all > RESPONSE_BYTES, "{all} of {RESPONSE_BYTES}");
        served.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_http_2_client_that_opens_no_window_is_disconnected() {
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
        assert!(timeout(WRITE_TIMEOUT - second, &mut served).await.is_err(), "a slow client has no time");
        assert!(timeout(second * 2, served).await.is_ok(), "a client without a window holds a connection");
        drop((client, responses));
        let _ = answering.await;
    }

    #[tokio::test(start_paused = true)]
    async fn unread_bodies_are_buffered_up_to_a_small_window() {
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
        let is_idle = |timer: &ConnectionTimer| timer.connection().unwrap().is_idle().to_string();
        let handler = move |timer: axum::Extension<Arc<ConnectionTimer>>| async move { is_idle(&timer) };
        let served = Served { builder: builder(), routes: Router::new().route("/", get(handler)) };
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let connection = ConnectionPermits::of(64).connections.add(peer.ip(), false);
        let timer = Arc::new(ConnectionTimer::new(Some(connection), false));
        let (watched, (mut ours, theirs)) = (GracefulShutdown::new(), tokio::io::duplex(1024));
        let serving = tokio::spawn(served.connection(theirs, peer, watched.watcher(), timer.clone()));
        assert_eq!(is_idle(&timer), "true");
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        ours.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("false"), "{answer}");
        serving.await.unwrap();
        assert!(timer.connection().unwrap().has_ended());
    }

    #[tokio::test]
    async fn a_new_connection_replaces_an_unauthenticated_one() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, permits) = (listener.local_addr().unwrap(), ConnectionPermits::of(1));
        let _clients = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        let (_, peer, permit) = permits.accept(&listener).await.unwrap();
        let first = permits.connections.add(peer.ip(), false);
        let next = tokio::spawn(async move { permits.accept(&listener).await.map(drop) });
        first.closed.notified().await;
        assert!(!next.is_finished(), "the first has its permit still");
        drop(permit);
        next.await.unwrap().unwrap();
    }
}
