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
    slots::busy,
};

/// Bytes of a body: a definition of the largest size with room for what is around it.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a body that may come from anybody: what signs in is short. Bodies of this size need no place in [`Bodies`], so
/// that a decision or a revocation never waits for one.
const STRANGERS_BYTES_MAX: usize = 16 * 1024;

/// Bytes beyond these that are read and thrown away.
const SURPLUS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a body may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(60);

/// The same for a body that may come from anybody.
const STRANGERS_PATIENCE: Duration = Duration::from_secs(10);

/// How long a body waits until bodies of others have been worked on.
const PLACE_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of bodies in memory, of one organization: two of the largest. Read as JSON they take a multiple.
const ORGANIZATION_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of bodies in memory, of all organizations.
const TOTAL_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The unit in which bytes are counted: a permit of a semaphore.
const UNIT_BYTES: usize = 1024;

/// The bytes of bodies that are in memory.
#[derive(Debug)]
pub(crate) struct Bodies {
    total: Arc<Semaphore>,
    /// Organizations that have bodies in memory, or wait for that.
    organizations: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The bytes of one body, until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    _own: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
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

impl Default for Bodies {
    fn default() -> Self {
        Self { total: Arc::new(Semaphore::new(TOTAL_BYTES_MAX / UNIT_BYTES)), organizations: Mutex::default() }
    }
}

impl Bodies {
    /// Room for a body of an organization.
    ///
    /// # Errors
    /// Fails with 503 after [`PLACE_PATIENCE`].
    async fn room(&self, organization: &str, bytes: usize) -> Answer<HeldBytes> {
        let units = u32::try_from(bytes.min(BODY_BYTES_MAX).div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let own = self.organization(organization);
        let asked = async {
            // First the organization's: what waits there holds nothing of what others need.
            let _own = own.acquire_many_owned(units).await.map_err(|_| busy())?;
            let _total = self.total.clone().acquire_many_owned(units).await.map_err(|_| busy())?;
            Ok(HeldBytes { _own, _total })
        };
        timeout(PLACE_PATIENCE, asked).await.unwrap_or_else(|_| Err(busy()))
    }

    fn organization(&self, organization: &str) -> Arc<Semaphore> {
        let mut organizations = self.organizations.lock().unwrap_or_else(PoisonError::into_inner);
        // Permits and requests that wait each hold a reference.
        organizations.retain(|_, own| Arc::strong_count(own) > 1);
        let new = || Arc::new(Semaphore::new(ORGANIZATION_BYTES_MAX / UNIT_BYTES));
        organizations.entry(organization.to_string()).or_insert_with(new).clone()
    }
}

/// All of a request's body, with the room that it takes: to be held until it is worked on. `whose` is the organization of a
/// known caller.
pub(crate) async fn receive(bodies: &Bodies, body: Body, whose: Option<&str>) -> Answer<(Body, Option<HeldBytes>)> {
    let Some(organization) = whose else {
        return Ok((whole(body, STRANGERS_BYTES_MAX, STRANGERS_PATIENCE).await?, None));
    };
    let announced = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(BODY_BYTES_MAX);
    let held = match announced {
        0..=STRANGERS_BYTES_MAX => None,
        bytes => Some(bodies.room(organization, bytes).await?),
    };
    Ok((whole(body, BODY_BYTES_MAX, BODY_PATIENCE).await?, held))
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

    use axum::body::{Bytes, to_bytes};
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

    #[tokio::test(start_paused = true)]
    async fn anonymous_bodies_end_at_sixteen_kib_and_those_of_callers_at_four_mib() {
        let bodies = Bodies::default();
        for (whose, bytes_max) in [(None, 16 * 1024), (Some("acme"), BODY_BYTES_MAX)] {
            let of = |bytes: usize| receive(&bodies, Body::from(vec![b'a'; bytes]), whose);
            assert!(of(bytes_max).await.is_ok(), "{whose:?}");
            let refused = of(bytes_max + 1).await.map(drop).unwrap_err();
            assert_eq!(refused.code, Code::PayloadTooLarge, "{whose:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_of_one_organization_wait_for_each_other_and_for_nobody_else() {
        let bodies = Bodies::default();
        let large = || Body::from(vec![b'a'; BODY_BYTES_MAX]);
        let one = receive(&bodies, large(), Some("acme")).await.unwrap();
        let two = receive(&bodies, large(), Some("acme")).await.unwrap();
        let refused = receive(&bodies, large(), Some("acme")).await.map(drop).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        // A stream may become as long as any.
        let stream = || Body::from_stream(iter([Ok::<_, io::Error>(Bytes::from("ab"))]));
        assert!(receive(&bodies, stream(), Some("acme")).await.is_err());
        assert!(receive(&bodies, Body::from(vec![b'a'; STRANGERS_BYTES_MAX]), Some("acme")).await.is_ok());
        assert!(receive(&bodies, large(), Some("globex")).await.is_ok());
        let (next, ()) = tokio::join!(receive(&bodies, large(), Some("acme")), async { drop(one) });
        assert!(next.is_ok());
        drop((next, two));
        assert_eq!(bodies.total.available_permits(), TOTAL_BYTES_MAX / UNIT_BYTES);
        drop(bodies.organization("other"));
        assert_eq!(bodies.organizations.lock().unwrap().len(), 1, "nothing is kept of those who have gone");
    }
}
