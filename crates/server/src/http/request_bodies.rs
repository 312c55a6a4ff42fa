//! Receives request bodies completely before their handler runs, within bounds of memory and time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::{Body, HttpBody};
use http_body_util::BodyExt;
use mainspring_triggers::limits::WEBHOOK_BODY_BYTES_MAX;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::http::{
    problem::{Code, Problem, Result},
    request_slots::{Account, busy},
};

/// Most bytes of a body: a definition of the largest size and its envelope.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most bytes of an unauthenticated body; sign-ins are short. Bodies up to this size have shares of their own, so that
/// a decision or a revocation never waits for large bodies.
const SMALL_BYTES_MAX: usize = 16 * 1024;

// A delivery of the largest size fits into the share of its address.
const _: () = assert!(WEBHOOK_BODY_BYTES_MAX <= 16 * SMALL_BYTES_MAX);

/// Bytes beyond the bound that are read and discarded, so that the client reads the error.
const SURPLUS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Longest time in which a body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The same for unauthenticated requests.
const ANONYMOUS_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for memory that other bodies occupy.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes per semaphore permit.
const UNIT_BYTES: usize = 1024;

/// Memory of request bodies: the free permits of each share. A share exists while a request holds or awaits permits of
/// it.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    shares: Mutex<HashMap<Share, Arc<Semaphore>>>,
}

/// A share of the memory: large and small bodies of callers, and bodies of unauthenticated requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Share {
    Large,
    LargeOfOrganization(String),
    LargeOfMember(String, String),
    Small,
    SmallOfOrganization(String),
    SmallOfMember(String, String),
    Anonymous,
    Address(String),
}

/// Memory of one body. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Share {
    /// The shares that a body of this size is charged to, from the narrowest to the widest.
    fn of(account: &Account, bytes: usize) -> [Self; 3] {
        let (key, member) = (account.key.clone(), account.member.clone());
        if account.is_anonymous() || account.is_uncounted() {
            return [Self::Address(key), Self::Anonymous, Self::Small];
        }
        match bytes <= SMALL_BYTES_MAX {
            true => [Self::SmallOfMember(key.clone(), member), Self::SmallOfOrganization(key), Self::Small],
            false => [Self::LargeOfMember(key.clone(), member), Self::LargeOfOrganization(key), Self::Large],
        }
    }

    /// Bytes of the share. Parsed JSON takes a multiple of them.
    fn bytes_max(&self) -> usize {
        match self {
            Self::Large => 128 * 1024 * 1024,
            // Two bodies of the largest size, of different members.
            Self::LargeOfOrganization(_) => 2 * BODY_BYTES_MAX,
            Self::LargeOfMember(..) => BODY_BYTES_MAX,
            Self::Small => 32 * 1024 * 1024,
            // Four members with stalled uploads can use up the share; each may have sixteen bodies.
            Self::SmallOfOrganization(_) => 64 * SMALL_BYTES_MAX,
            Self::SmallOfMember(..) | Self::Address(_) => 16 * SMALL_BYTES_MAX,
            Self::Anonymous => 16 * 1024 * 1024,
        }
    }
}

/// Memory of a request's body. It is released when the request ends, or earlier by a handler that only waits from then
/// on.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyMemory(Arc<Mutex<Option<BodyReservation>>>);

impl BodyMemory {
    /// Memory of a received body.
    pub(crate) fn of(reservation: Option<BodyReservation>) -> Self {
        Self(Arc::new(Mutex::new(reservation)))
    }

    /// Releases the memory. The body must no longer be in use.
    pub(crate) fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Bodies {
    /// Reserves memory for a body of the given size.
    ///
    /// # Errors
    /// Fails with 503 after [`MEMORY_TIMEOUT`].
    async fn room(&self, account: &Account, bytes: usize) -> Result<BodyReservation> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let acquired = async {
            let mut _permits = Vec::new();
            // The narrowest share first: a request that waits there holds nothing of the shares of others.
            for share in Share::of(account, bytes) {
                _permits.push(self.share(share).acquire_many_owned(units).await.map_err(|_| busy())?);
            }
            Ok(BodyReservation { _permits })
        };
        timeout(MEMORY_TIMEOUT, acquired).await.unwrap_or_else(|_| Err(busy()))
    }

    fn share(&self, share: Share) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        // Permits and waiting requests each hold a reference.
        shares.retain(|_, own| Arc::strong_count(own) > 1);
        let units = share.bytes_max() / UNIT_BYTES;
        shares.entry(share).or_insert_with(|| Arc::new(Semaphore::new(units))).clone()
    }
}

/// Receives a body and reserves its memory until the handler is done with it.
pub(crate) async fn receive(
    bodies: &Bodies,
    body: Body,
    account: &Account,
    is_webhook: bool,
) -> Result<(Body, Option<BodyReservation>)> {
    let (bytes_max, time_limit) = match account.is_anonymous() {
        true if is_webhook => (WEBHOOK_BODY_BYTES_MAX, ANONYMOUS_BODY_TIMEOUT),
        true => (SMALL_BYTES_MAX, ANONYMOUS_BODY_TIMEOUT),
        false => (BODY_BYTES_MAX, BODY_TIMEOUT),
    };
    let announced = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(bytes_max);
    let reservation = match announced.min(bytes_max) {
        0 => None,
        bytes => Some(bodies.room(account, bytes).await?),
    };
    Ok((whole(body, bytes_max, time_limit).await?, reservation))
}

/// Reads a body within the time limit, so that a stalled upload does not hold memory forever.
async fn whole(body: Body, bytes_max: usize, time_limit: Duration) -> Result<Body> {
    let read = timeout(time_limit, read(body, bytes_max)).await.map_err(|_| {
        let message = format!("The body did not arrive within {} s: send it again.", time_limit.as_secs());
        Problem::new(Code::RequestTimeout, message)
    })?;
    read.map(Body::from)
}

async fn read(mut body: Body, bytes_max: usize) -> Result<Vec<u8>> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    // A body slightly over the bound is read to its end, because few clients read a response while they send.
    let is_read = |count: usize| count <= bytes_max + SURPLUS_BYTES_MAX;
    let mut continues = is_read(usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX));
    while continues && let Some(frame) = body.frame().await {
        let broke_off = |error| Problem::new(Code::ValidationError, format!("The body broke off: {error}."));
        let Ok(data) = frame.map_err(broke_off)?.into_data() else { continue };
        count += data.len();
        continues = is_read(count);
        if count <= bytes_max {
            bytes.extend_from_slice(&data);
        }
    }
    if continues && count <= bytes_max {
        return Ok(bytes);
    }
    Err(Problem::new(Code::PayloadTooLarge, format!("The body is larger than {} KiB.", bytes_max / 1024)))
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, io};

    use axum::{
        body::{Bytes, to_bytes},
        http::Method,
    };
    use tokio_stream::{StreamExt, iter, pending};

    use super::*;

    fn code(answer: Result<Body>) -> Code {
        answer.map(drop).expect_err("a body that is not whole").code
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_received_completely_and_in_time() {
        let time_limit = Duration::from_secs(9);
        let body = whole(Body::from("abc"), 3, time_limit).await.unwrap();
        assert_eq!(to_bytes(body, 9).await.unwrap(), "abc");
        assert_eq!(code(whole(Body::from("abcd"), 3, time_limit).await), Code::PayloadTooLarge);
        let pieces = |pieces: [&'static str; 2]| iter(pieces.map(|piece| Ok::<_, io::Error>(Bytes::from(piece))));
        // A stream has no known length.
        let long = Body::from_stream(pieces(["ab", "cd"]));
        assert_eq!(code(whole(long, 3, time_limit).await), Code::PayloadTooLarge);
        let partial = pieces(["ab", "cd"]).chain(pending::<Result<Bytes, io::Error>>());
        assert_eq!(code(whole(Body::from_stream(partial), 9, time_limit).await), Code::RequestTimeout);
        let broken = iter([Ok(Bytes::from("ab")), Err(io::Error::other("gone"))]);
        assert_eq!(code(whole(Body::from_stream(broken), 9, time_limit).await), Code::ValidationError);
        let none = Body::from_stream(pending::<Result<Bytes, Infallible>>());
        assert_eq!(code(whole(none, 9, time_limit).await), Code::RequestTimeout);
    }

    fn member(id: &str) -> Account {
        Account::of(&Method::POST, "/", "acme", id)
    }

    #[tokio::test(start_paused = true)]
    async fn body_limits_are_16_kib_anonymous_and_4_mib_authenticated() {
        let bodies = Bodies::default();
        for (account, bytes_max) in [(Account::anonymous("192.0.2.1"), 16 * 1024), (member("ada"), BODY_BYTES_MAX)] {
            let of = |bytes: usize| receive(&bodies, Body::from(vec![b'a'; bytes]), &account, false);
            assert!(of(bytes_max).await.is_ok(), "{account:?}");
            let refused = of(bytes_max + 1).await.map(drop).unwrap_err();
            assert_eq!(refused.code, Code::PayloadTooLarge, "{account:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_wait_for_those_of_their_member_and_organization_only() {
        let bodies = Bodies::default();
        let large = || Body::from(vec![b'a'; BODY_BYTES_MAX]);
        let (ada, bob, eve) = (member("ada"), member("bob"), member("eve"));
        let one = receive(&bodies, large(), &ada, false).await.unwrap();
        let refused = receive(&bodies, large(), &ada, false).await.map(drop).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        // A stream may reach any length up to the bound.
        let stream = || Body::from_stream(iter([Ok::<_, io::Error>(Bytes::from("ab"))]));
        assert!(receive(&bodies, stream(), &ada, false).await.is_err());
        let two = receive(&bodies, large(), &bob, false).await.unwrap();
        assert!(receive(&bodies, large(), &eve, false).await.is_err(), "two of an organization");
        assert!(receive(&bodies, Body::from(vec![b'a'; SMALL_BYTES_MAX]), &ada, false).await.is_ok());
        let globex = Account::of(&Method::POST, "/", "globex", "ada");
        assert!(receive(&bodies, large(), &globex, false).await.is_ok());
        let (next, ()) = tokio::join!(receive(&bodies, large(), &ada, false), async { drop(one) });
        assert!(next.is_ok());
        drop((next, two));
        drop(bodies.share(Share::Anonymous));
        assert_eq!(bodies.shares.lock().unwrap().len(), 1, "released shares are removed");
    }

    /// Reserves as many small bodies as an account may have.
    async fn small(bodies: &Bodies, account: &Account) -> Vec<BodyReservation> {
        let mut reserved = Vec::new();
        while let Ok((_, Some(more))) = receive(bodies, Body::from(vec![b'a'; SMALL_BYTES_MAX]), account, false).await {
            reserved.push(more);
        }
        reserved
    }

    #[tokio::test(start_paused = true)]
    async fn small_bodies_count_for_their_member_or_address() {
        let bodies = Bodies::default();
        let mut reserved = Vec::new();
        for (id, count) in [("u1", 16), ("u2", 16), ("u3", 16), ("u4", 16), ("u5", 0)] {
            let own = small(&bodies, &member(id)).await;
            assert_eq!(own.len(), count, "{id}");
            reserved.push(own);
        }
        let mut anonymous = Vec::new();
        for number in 0..70 {
            let own = small(&bodies, &Account::anonymous(format!("192.0.2.{number}"))).await;
            assert_eq!(own.len(), if number < 64 { 16 } else { 0 }, "{number}");
            anonymous.push(own);
        }
        assert_eq!(small(&bodies, &Account::of(&Method::POST, "/", "globex", "ada")).await.len(), 16);
        let nothing = receive(&bodies, Body::empty(), &member("u5"), false).await;
        assert!(nothing.is_ok_and(|(_, reserved)| reserved.is_none()), "a request without a body reserves nothing");
    }
}
