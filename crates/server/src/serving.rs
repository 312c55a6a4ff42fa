//! Serves the routes on a listener until asked to stop, to as many as it can and to nobody who only holds a place.

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
use tokio_io_timeout::TimeoutStream;

use crate::{
    App,
    connections::{Admitted, Clock, IDLE_PATIENCE, STREAMS_MAX, Sending, Share, Shares},
    rate::one_of_many,
    routes::router,
};

/// How long requests that are on their way may take when the server is asked to stop. Watchers come back by themselves.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// How long whoever is answered may take nothing of it.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);

/// How often somebody who speaks HTTP/2 is asked whether they are there still.
const ALIVE_LOOK: Duration = Duration::from_secs(30);

/// After an error of accepting, as where there are no file descriptors left.
const BREATH: Duration = Duration::from_millis(200);

/// Answers requests until `stop`; then no new ones, and those that are on their way for a while. The engine is drained by
/// whoever runs it.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(app.settings.connections_max));
    let shares = Arc::new(Shares::of(app.settings.connections_max));
    let limiting = app.clone();
    let (watched, served) = (GracefulShutdown::new(), Served { builder: builder(), routes: router(app) });
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
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
        let share = (!is_proxy).then(|| shares.add(one_of_many(peer.ip().to_canonical())));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            served.connection(stream, peer, watcher, share).await;
            drop(place);
        });
    }
    drop(listener);
    // Those that take longer are dropped, with this runtime at the latest.
    let _ = timeout(LAST_REQUESTS, watched.shutdown()).await;
    Ok(())
}

/// The next connection, when there is a place for it. Until then it waits where the system keeps it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_PATIENCE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(ALIVE_LOOK).max_concurrent_streams(STREAMS_MAX);
    builder
}

/// What connections are served with.
#[derive(Clone)]
struct Served {
    builder: Builder<TokioExecutor>,
    routes: Router,
}

impl Served {
    /// Serves a connection to its end: that of its client, of its time, or of its share.
    async fn connection<S>(self, stream: S, peer: SocketAddr, watcher: Watcher, share: Option<Share>)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut stream = Box::pin(TimeoutStream::new(stream));
        stream.as_mut().set_write_timeout_pinned(Some(WRITE_PATIENCE));
        let (clock, share, routes) = (Arc::new(Clock::new()), share.map(Arc::new), self.routes);
        let service = {
            let (clock, share) = (clock.clone(), share.clone());
            hyper::service::service_fn(move |request| {
                answer(routes.clone(), peer, clock.clone(), share.clone(), request)
            })
        };
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let closed = async {
            match &share {
                Some(share) => share.closed.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An error is the other end's: it has gone, or does not speak HTTP.
            _ = watcher.watch(connection) => {}
            () = clock.idle() => {}
            () = closed => {}
        }
    }
}

async fn answer(
    routes: Router,
    peer: SocketAddr,
    clock: Arc<Clock>,
    share: Option<Arc<Share>>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let open = clock.begin();
    share.iter().for_each(|share| share.leave());
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    let response = TowerToHyperService::new(routes).call(request).await?;
    if response.extensions().get::<Admitted>().is_none() {
        share.iter().for_each(|share| share.come_back());
    }
    Ok(response.map(|body| Body::new(Sending::of(body, open))))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
        net::TcpStream,
        task::{JoinHandle, yield_now},
    };

    use super::*;
    use crate::connections::FIRST_HEAD_PATIENCE;

    /// A connection to a server of one route that is not asked to stop, and its end there.
    fn connected(routes: Router) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(64);
        let served = Served { builder: builder(), routes };
        let (peer, watched) = (SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), GracefulShutdown::new());
        let serving = async move {
            served.connection(theirs, peer, watched.watcher(), None).await;
            drop(watched);
        };
        (ours, tokio::spawn(serving))
    }

    fn routes() -> Router {
        Router::new().route("/", get(|| async { "a".repeat(10_000) }))
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
    async fn who_does_not_read_is_let_go() {
        let (mut ours, mut served) = connected(routes());
        ours.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let second = Duration::from_secs(1);
        assert!(timeout(WRITE_PATIENCE - second, &mut served).await.is_err(), "who is slow has no time");
        assert!(timeout(second * 2, served).await.is_ok(), "whoever reads nothing holds a connection");
    }

    #[tokio::test]
    async fn there_are_so_many_connections_and_no_more() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, places) = (listener.local_addr().unwrap(), Arc::new(Semaphore::new(1)));
        let _clients = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        let (.., place) = accept(&listener, &places).await.unwrap();
        let next = tokio::spawn(async move { accept(&listener, &places).await.map(drop) });
        for _ in 0..10 {
            yield_now().await;
        }
        assert!(!next.is_finished(), "the second has no place yet");
        drop(place);
        next.await.unwrap().unwrap();
    }
}
