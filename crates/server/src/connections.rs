//! Which connections stay open: a share for each address, and a clock for those on which nothing happens.
//!
//! A connection is unproven until a credential was let in on it. One address has an eighth of all places for unproven
//! connections on which no request is open; the oldest of them is closed for a new one, so that whoever opens many closes
//! their own. Requests without a credential have a rate and a short time.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

/// The part of all places that one address has for unproven connections: 1 of so many.
const SHARES: usize = 8;

/// Unproven connections of an address at the least: a browser opens six at once.
const SHARE_MIN: usize = 8;

/// How long a connection may be open before the head of its first request has come: a client that connects has something to
/// ask, and round trips take seconds at most.
pub(crate) const FIRST_HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be open on which no request is being answered. PINGs of HTTP/2 do not count.
pub(crate) const IDLE_PATIENCE: Duration = Duration::from_secs(60);

/// Requests that one HTTP/2 connection has open at a time: more than browsers ask for (RFC 9113, 6.5.2, recommends 100 at
/// the least).
pub(crate) const STREAMS_MAX: u32 = 128;

/// Unproven connections by address, the oldest first: number, and how each is told to close.
type Unproven = HashMap<IpAddr, VecDeque<(u64, Arc<Notify>)>>;

/// The unproven connections of a node.
#[derive(Debug)]
pub(crate) struct Shares {
    per_address: usize,
    numbers: AtomicU64,
    unproven: Mutex<Unproven>,
}

/// An unproven connection, until it is proven or dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Shares>,
    address: IpAddr,
    number: u64,
    /// Is notified when the connection is to be closed for another one.
    pub(crate) closed: Arc<Notify>,
}

impl Shares {
    /// Shares of so many places.
    pub(crate) fn of(places: usize) -> Self {
        let per_address = (places / SHARES).max(SHARE_MIN);
        Self { per_address, numbers: AtomicU64::new(0), unproven: Mutex::default() }
    }

    /// Counts a new connection, and closes the oldest of its address if there are too many.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr) -> Share {
        let (number, closed) = (self.numbers.fetch_add(1, Ordering::Relaxed), Arc::new(Notify::new()));
        self.push(address, number, &closed);
        Share { of: self.clone(), address, number, closed }
    }

    fn push(&self, address: IpAddr, number: u64, closed: &Arc<Notify>) {
        let mut unproven = self.unproven();
        let own = unproven.entry(address).or_default();
        // Several requests of one connection of HTTP/2 may end.
        if own.iter().any(|(of, _)| *of == number) {
            return;
        }
        own.push_back((number, closed.clone()));
        if own.len() > self.per_address
            && let Some((_, oldest)) = own.pop_front()
        {
            oldest.notify_one();
        }
    }

    fn unproven(&self) -> MutexGuard<'_, Unproven> {
        self.unproven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// The connection waits for another request, and is as unproven as before.
    pub(crate) fn come_back(&self) {
        self.of.push(self.address, self.number, &self.closed);
    }

    /// The connection is proven, or a request is open on it.
    pub(crate) fn leave(&self) {
        let mut unproven = self.of.unproven();
        let Some(own) = unproven.get_mut(&self.address) else { return };
        own.retain(|(number, _)| *number != self.number);
        if own.is_empty() {
            unproven.remove(&self.address);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Marks a response to a caller whose credential was let in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admitted;

/// How many requests are open on a connection, and whether there has been one.
#[derive(Debug)]
pub(crate) struct Clock(watch::Sender<(bool, usize)>);

impl Clock {
    /// Nothing has been asked yet.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new((false, 0)))
    }

    /// A request begins; it ends when the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Open {
        self.0.send_modify(|(has_asked, open)| (*has_asked, *open) = (true, *open + 1));
        Open(self.clone())
    }

    /// Returns when nothing has been open for too long.
    pub(crate) async fn idle(&self) {
        let mut seen = self.0.subscribe();
        loop {
            let (has_asked, open) = *seen.borrow_and_update();
            let patience = if has_asked { IDLE_PATIENCE } else { FIRST_HEAD_PATIENCE };
            if open > 0 {
                let _ = seen.changed().await;
            } else if timeout(patience, seen.changed()).await.is_err() {
                return;
            }
        }
    }
}

/// A request that is open.
#[derive(Debug)]
pub(crate) struct Open(Arc<Clock>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.send_modify(|(_, open)| *open = open.saturating_sub(1));
    }
}

/// The body of a response, which keeps its request open until it has been sent.
pub(crate) struct Sending {
    body: Body,
    _open: Open,
}

impl Sending {
    /// A body, and the request that it answers.
    pub(crate) fn of(body: Body, open: Open) -> Self {
        Self { body, _open: open }
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_opens_too_many_closes_its_oldest() {
        let shares = Arc::new(Shares::of(144));
        let held: Vec<_> = (0..18).map(|_| shares.add(address(1))).collect();
        let other = shares.add(address(2));
        let is_closed = async |share: &Share| timeout(Duration::from_secs(1), share.closed.notified()).await.is_ok();
        assert!(!is_closed(&held[0]).await, "an eighth is not too many");
        let next = shares.add(address(1));
        assert!(is_closed(&held[0]).await);
        for share in held[1..].iter().chain([&other, &next]) {
            assert!(!is_closed(share).await);
        }
        // What is proven does not count.
        held[1].leave();
        let another = shares.add(address(1));
        assert!(!is_closed(&held[2]).await);
        held[1].come_back();
        assert!(is_closed(&held[2]).await);
        drop((held, other, next, another));
        assert!(shares.unproven().is_empty(), "nothing is kept of those who have gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_its_last_request_and_not_amid_one() {
        let clock = Arc::new(Clock::new());
        let (second, idle) = (Duration::from_secs(1), |clock: &Arc<Clock>| {
            let clock = clock.clone();
            tokio::spawn(async move { clock.idle().await })
        });
        let mut first = idle(&clock);
        assert!(timeout(FIRST_HEAD_PATIENCE - second, &mut first).await.is_err());
        assert!(timeout(second * 2, first).await.is_ok(), "no head has come");
        let (open, other) = (clock.begin(), clock.begin());
        let mut asked = idle(&clock);
        drop(other);
        assert!(timeout(IDLE_PATIENCE * 9, &mut asked).await.is_err(), "a request is open");
        drop(open);
        assert!(timeout(IDLE_PATIENCE - second, &mut asked).await.is_err());
        assert!(timeout(second * 2, asked).await.is_ok());
    }
}
