//! Connects to the fastest of several addresses, with a head start for earlier ones (Happy Eyeballs, RFC 8305).

use std::{io, net::SocketAddr};

use tokio::{task::JoinSet, time::sleep};

use super::limits::NEXT_ADDRESS_AFTER;

/// Returns the first connection that succeeds. Each address gets a head start before the next one is tried in parallel,
/// so that an address which drops packets does not use up the whole time. A failure starts the next try at once.
pub(super) async fn first_connected<T, F>(addresses: &[SocketAddr], connect: impl Fn(SocketAddr) -> F) -> io::Result<T>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>> + Send + 'static,
{
    let (mut waiting, mut tries) = (addresses.iter().copied(), JoinSet::new());
    let mut last_error = io::Error::other("there is no address");
    loop {
        match waiting.next() {
            Some(address) => drop(tries.spawn(connect(address))),
            None if tries.is_empty() => return Err(last_error),
            None => {}
        }
        tokio::select! {
            Some(ended) = tries.join_next() => match ended {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last_error = error,
                Err(error) => last_error = io::Error::other(error),
            },
            () = sleep(NEXT_ADDRESS_AFTER), if waiting.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::{Instant, timeout};

    /// The result of a try after some milliseconds.
    #[derive(Clone, Copy)]
    enum Try {
        Connects(u64),
        Fails(u64),
    }
    use Try::{Connects, Fails};

    const NEVER: u64 = 3_600_000;

    /// Returns the index of the winning try, if any, and the milliseconds of virtual time until then.
    async fn race(tries: &'static [Try]) -> (Option<u16>, u128) {
        let addresses: Vec<SocketAddr> = (0..).take(tries.len()).map(|port| ([192, 0, 2, 1], port).into()).collect();
        let begun = Instant::now();
        let connect = |address: SocketAddr| async move {
            let (delay_ms, ended) = match tries[usize::from(address.port())] {
                Connects(delay_ms) => (delay_ms, Ok(address.port())),
                Fails(delay_ms) => (delay_ms, Err(io::ErrorKind::ConnectionRefused.into())),
            };
            // A timeout advances the paused clock of these tests.
            let _ = timeout(Duration::from_millis(delay_ms), std::future::pending::<()>()).await;
            ended
        };
        (first_connected(&addresses, connect).await.ok(), begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_that_answers_wins() {
        assert_eq!(race(&[]).await, (None, 0));
        assert_eq!(race(&[Connects(10), Connects(0)]).await, (Some(0), 10));
        assert_eq!(race(&[Connects(NEVER), Connects(10)]).await, (Some(1), 260));
        assert_eq!(race(&[Connects(300), Connects(100)]).await, (Some(0), 300));
        assert_eq!(race(&[Connects(NEVER), Connects(NEVER), Connects(0)]).await, (Some(2), 500));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_address_starts_the_next_and_ends_no_other() {
        assert_eq!(race(&[Fails(0), Fails(10), Connects(10)]).await, (Some(2), 20));
        assert_eq!(race(&[Fails(300), Connects(100)]).await, (Some(1), 350));
        assert_eq!(race(&[Fails(300), Fails(100)]).await, (None, 350));
        assert_eq!(race(&[Fails(0), Fails(0)]).await, (None, 0));
    }
}
