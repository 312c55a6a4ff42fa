//! Serves the routes on a listener until asked to stop.

use std::{
    future::{Future, IntoFuture},
    io,
    net::SocketAddr,
    time::Duration,
};

use tokio::net::TcpListener;

use crate::{App, routes::router};

/// How long requests that are on their way may take when the server is asked to stop. Watchers come back by themselves.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Answers requests until `stop`; then no new ones, and those that are on their way for a while. The engine is drained by
/// whoever runs it.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let (stopping, mut stopped) = tokio::sync::watch::channel(false);
    let asked = async move {
        stop.await;
        let _ = stopping.send(true);
    };
    let service = router(app).into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, service).with_graceful_shutdown(asked);
    tokio::select! {
        served = served.into_future() => served,
        () = async {
            // A sender that is gone has sent before: the server has ended by itself.
            let _ = stopped.wait_for(|is_asked| *is_asked).await;
            tokio::time::sleep(LAST_REQUESTS).await;
        } => Ok(()),
    }
}
