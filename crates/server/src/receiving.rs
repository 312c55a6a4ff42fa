//! Bodies of requests, read whole before their route is called, within bounds of bytes and time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::{Body, HttpBody};
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    problem::{Answer, Code, Problem},
    slots::{Account, busy},
};

/// Bytes of a body: a definition of the largest size with room for what is around it.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a body that may come from anybody: what signs in is short. Bodies of this size have shares of their own, so that
/// a decision or a revocation never waits for large ones.
const SMALL_BYTES_MAX: usize = 16 * 1024;

/// Bytes beyond these that are read and thrown away.
const SURPLUS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a body may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(60);

/// The same for a body that may come from anybody.
const STRANGERS_PATIENCE: Duration = Duration::from_secs(10);

/// How long a body waits until bodies of others have been worked on.
const PLACE_PATIENCE: Duration = Duration::from_secs(10);

/// The unit in which bytes are counted: a permit of a semaphore.
const UNIT_BYTES: usize = 1024;

/// The bytes of bodies that are in memory: what each share has left, as long as somebody holds some of it or waits for that.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    shares: Mutex<HashMap<Share, Arc<Semaphore>>>,
}

/// A part of the memory for bodies: for large and small ones of callers, and for those of strangers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Share {
    Large,
    LargeOfOrganization(String),
    LargeOfMember(String, String),
    Small,
    SmallOfOrganization(String),
    SmallOfMember(String, String),
    Strangers,
    Address(String),
}

/// The bytes of one body, until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Share {
    /// The shares that a body of so many bytes is counted in, each within the next.
    fn of(account: &Account, bytes: usize) -> [Self; 3] {
        let (key, member) = (account.key.clone(), account.member.clone());
        if account.is_anonymous() || account.is_uncounted() {
            return [Self::Address(key), Self::Strangers, Self::Small];
        }
        match bytes <= SMALL_BYTES_MAX {
            true => [Self::SmallOfMember(key.clone(), member), Self::SmallOfOrganization(key), Self::Small],
            false => [Self::LargeOfMember(key.clone(), member), Self::LargeOfOrganization(key), Self::Large],
        }
    }

    /// Bytes of the share. Read as JSON they take a multiple.
    fn bytes_max(&self) -> usize {
        match self {
            Self::Large => 128 * 1024 * 1024,
            // Two of the largest, of different members.
            Self::LargeOfOrganization(_) => 2 * BODY_BYTES_MAX,
            Self::LargeOfMember(..) => BODY_BYTES_MAX,
            Self::Small => 32 * 1024 * 1024,
            // Four members who send bodies that do not come leave room to no fifth; each has sixteen of the size.
            Self::SmallOfOrganization(_) => 64 * SMALL_BYTES_MAX,
            Self::SmallOfMember(..) | Self::Address(_) => 16 * SMALL_BYTES_MAX,
            Self::Strangers => 16 * 1024 * 1024,
        }
    }
}

/// The room of a request's body, which is given back when its request is over, or before by whoever only waits from then on.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyRoom(Arc<Mutex<Option<HeldBytes>>>);

impl BodyRoom {
    /// Of a body that was read.
    pub(crate) fn of(held: Option<HeldBytes>) -> Self {
        Self(Arc::new(Mutex::new(held)))
    }

    /// Gives it back. Nothing of the body is in memory any more.
    pub(crate) fn give_back(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Bodies {
    /// Room for a body of so many bytes.
    ///
    /// # Errors
    /// Fails with 503 after [`PLACE_PATIENCE`].
    async fn room(&self, account: &Account, bytes: usize) -> Answer<HeldBytes> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let asked = async {
            let mut _permits = Vec::new();
            // First the narrowest: what waits there holds nothing of what others need.
            for share in Share::of(account, bytes) {
                _permits.push(self.share(share).acquire_many_owned(units).await.map_err(|_| busy())?);
            }
            Ok(HeldBytes { _permits })
        };
        timeout(PLACE_PATIENCE, asked).await.unwrap_or_else(|_| Err(busy()))
    }

    fn share(&self, share: Share) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        // Permits and requests that wait each hold a reference.
        shares.retain(|_, own| Arc::strong_count(own) > 1);
        let units = share.bytes_max() / UNIT_BYTES;
        shares.entry(share).or_insert_with(|| Arc::new(Semaphore::new(units))).clone()
    }
}

/// All of a request's body, with the room that it takes: to be held until it is worked on.
pub(crate) async fn receive(bodies: &Bodies, body: Body, account: &Account) -> Answer<(Body, Option<HeldBytes>)> {
    let (bytes_max, patience) = match account.is_anonymous() {
        true => (SMALL_BYTES_MAX, STRANGERS_PATIENCE),
        false => (BODY_BYTES_MAX, BODY_PATIENCE),
    };
    let announced = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(bytes_max);
    let held = match announced.min(bytes_max) {
        0 => None,
        bytes => Some(bodies.room(account, bytes).await?),
    };
    Ok((whole(body, bytes_max, patience).await?, held))
}

/// All of a body, from whoever sends it in time: what is only begun holds no place for ever.
async fn whole(body: Body, bytes_max: usize, patience: Duration) -> Answer<Body> {
    let read = timeout(patience, read(body, bytes_max)).await.map_err(|_| {
        let message = format!("The body has not come within {} s: send it again.", patience.as_secs());
        Problem::new(Code::RequestTimeout, message)
    })?;
    read.map(Body::from)
}

async fn read(mut body: Body, bytes_max: usize) -> Answer<Vec<u8>> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    // Whoever sends a little too much hears why: an answer in the midst of it is heard by few.
    let is_bearable = |count: usize| count <= bytes_max + SURPLUS_BYTES_MAX;
    let mut goes_on = is_bearable(usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX));
    while goes_on && let Some(frame) = body.frame().await {
        let broke_off = |error| Problem::new(Code::ValidationError, format!("The body broke off: {error}."));
        let Ok(data) = frame.map_err(broke_off)?.into_data() else { continue };
        count += data.len();
        goes_on = is_bearable(count);
        if count <= bytes_max {
            bytes.extend_from_slice(&data);
        }
    }
    if goes_on && count <= bytes_max {
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

    fn code(answer: Answer<Body>) -> Code {
        answer.map(drop).expect_err("a body that is not whole").code
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_whole_and_in_time_or_not_at_all() {
        let patience = Duration::from_secs(9);
        let body = whole(Body::from("abc"), 3, patience).await.unwrap();
        assert_eq!(to_bytes(body, 9).await.unwrap(), "abc");
        assert_eq!(code(whole(Body::from("abcd"), 3, patience).await), Code::PayloadTooLarge);
        let pieces = |pieces: [&'static str; 2]| iter(pieces.map(|piece| Ok::<_, io::Error>(Bytes::from(piece))));
        // Of a stream, nobody knows before how long it is.
        let long = Body::from_stream(pieces(["ab", "cd"]));
        assert_eq!(code(whole(long, 3, patience).await), Code::PayloadTooLarge);
        let begun = pieces(["ab", "cd"]).chain(pending::<Result<Bytes, io::Error>>());
        assert_eq!(code(whole(Body::from_stream(begun), 9, patience).await), Code::RequestTimeout);
        let broken = iter([Ok(Bytes::from("ab")), Err(io::Error::other("gone"))]);
        assert_eq!(code(whole(Body::from_stream(broken), 9, patience).await), Code::ValidationError);
        let none = Body::from_stream(pending::<Result<Bytes, Infallible>>());
        assert_eq!(code(whole(none, 9, patience).await), Code::RequestTimeout);
    }

    fn member(id: &str) -> Account {
        Account::of(&Method::POST, "/", "acme", id)
    }

    #[tokio::test(start_paused = true)]
    async fn anonymous_bodies_end_at_sixteen_kib_and_those_of_callers_at_four_mib() {
        let bodies = Bodies::default();
        for (account, bytes_max) in [(Account::anonymous("192.0.2.1"), 16 * 1024), (member("ada"), BODY_BYTES_MAX)] {
            let of = |bytes: usize| receive(&bodies, Body::from(vec![b'a'; bytes]), &account);
            assert!(of(bytes_max).await.is_ok(), "{account:?}");
            let refused = of(bytes_max + 1).await.map(drop).unwrap_err();
            assert_eq!(refused.code, Code::PayloadTooLarge, "{account:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_of_a_member_wait_for_each_other_and_for_nobody_else() {
        let bodies = Bodies::default();
        let large = || Body::from(vec![b'a'; BODY_BYTES_MAX]);
        let (ada, bob, eve) = (member("ada"), member("bob"), member("eve"));
        let one = receive(&bodies, large(), &ada).await.unwrap();
        let refused = receive(&bodies, large(), &ada).await.map(drop).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        // A stream may become as long as any.
        let stream = || Body::from_stream(iter([Ok::<_, io::Error>(Bytes::from("ab"))]));
        assert!(receive(&bodies, stream(), &ada).await.is_err());
        let two = receive(&bodies, large(), &bob).await.unwrap();
        assert!(receive(&bodies, large(), &eve).await.is_err(), "two of an organization");
        assert!(receive(&bodies, Body::from(vec![b'a'; SMALL_BYTES_MAX]), &ada).await.is_ok());
        let globex = Account::of(&Method::POST, "/", "globex", "ada");
        assert!(receive(&bodies, large(), &globex).await.is_ok());
        let (next, ()) = tokio::join!(receive(&bodies, large(), &ada), async { drop(one) });
        assert!(next.is_ok());
        drop((next, two));
        drop(bodies.share(Share::Strangers));
        assert_eq!(bodies.shares.lock().unwrap().len(), 1, "nothing is kept of those who have gone");
    }

    /// As many small bodies of an account as there is room for.
    async fn small(bodies: &Bodies, account: &Account) -> Vec<HeldBytes> {
        let mut held = Vec::new();
        while let Ok((_, Some(more))) = receive(bodies, Body::from(vec![b'a'; SMALL_BYTES_MAX]), account).await {
            held.push(more);
        }
        held
    }

    #[tokio::test(start_paused = true)]
    async fn small_bodies_count_for_their_member_and_those_of_strangers_for_their_address() {
        let bodies = Bodies::default();
        let mut held = Vec::new();
        for (id, count) in [("u1", 16), ("u2", 16), ("u3", 16), ("u4", 16), ("u5", 0)] {
            let own = small(&bodies, &member(id)).await;
            assert_eq!(own.len(), count, "{id}");
            held.push(own);
        }
        let mut strangers = Vec::new();
        for number in 0..70 {
            let own = small(&bodies, &Account::anonymous(format!("192.0.2.{number}"))).await;
            assert_eq!(own.len(), if number < 64 { 16 } else { 0 }, "{number}");
            strangers.push(own);
        }
        assert_eq!(small(&bodies, &Account::of(&Method::POST, "/", "globex", "ada")).await.len(), 16);
        let nothing = receive(&bodies, Body::empty(), &member("u5")).await;
        assert!(nothing.is_ok_and(|(_, held)| held.is_none()), "what has no body waits for none");
    }
}
