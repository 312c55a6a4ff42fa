//! Memory of responses. Handlers build responses completely, and they stay in memory until the client has read them.
//!
//! Members share a budget per organization, and unauthenticated addresses share one. The size of a response is known
//! only after the work. Therefore a request of an account over its budget waits before its work starts, and a large
//! response that does not fit afterwards is replaced by a 503.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::body::Bytes;
use tokio::sync::Notify;

use crate::http::{
    problem::{Code, Problem},
    request_slots::Account,
};

/// Bytes of responses of one member: two pages of the largest size, and a quarter of its organization's share, so that
/// one stalled reader leaves most of it to the other members.
const MEMBER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of responses of one organization.
const ORGANIZATION_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of responses of all organizations. Beyond that, only organizations with responses in memory wait.
const ORGANIZATIONS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of responses of one unauthenticated address. Public responses have some KiB.
const ADDRESS_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of responses of all unauthenticated addresses.
const ANONYMOUS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of a response that is never withheld: the caller of a change must learn its result, and a new secret is shown
/// only once.
const SMALL_BYTES_MAX: usize = 64 * 1024;

const _: () =
    assert!(4 * MEMBER_BYTES_MAX <= ORGANIZATION_BYTES_MAX && 4 * ORGANIZATION_BYTES_MAX <= ORGANIZATIONS_BYTES_MAX);

/// The responses in memory.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    accounts: Mutex<HashMap<Share, usize>>,
    freed: Notify,
}

/// A share of the memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Share {
    Organizations,
    Organization(String),
    Member(String, String),
    Anonymous,
    Address(String),
}

/// Memory of one response. Dropping the last clone releases it.
#[derive(Debug, Clone)]
pub(crate) struct ResponseReservation {
    _reserved: Arc<Reserved>,
}

/// Response extension: the body is static and takes no memory of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Static;

#[derive(Debug)]
struct Reserved {
    shared: Arc<Shared>,
    shares: Vec<Share>,
    bytes: usize,
}

impl Share {
    /// The shares of an account, from the narrowest to the widest. Health probes and the server itself have none: their
    /// responses are small and must not be refused.
    fn of(account: &Account) -> Vec<Self> {
        let Account { key, member, .. } = account;
        if account.is_uncounted() {
            return Vec::new();
        }
        if account.is_anonymous() {
            return vec![Self::Address(key.clone()), Self::Anonymous];
        }
        let member = Self::Member(key.clone(), member.clone());
        vec![member, Self::Organization(key.clone()), Self::Organizations]
    }

    fn bytes_max(&self) -> usize {
        match self {
            Self::Organizations => ORGANIZATIONS_BYTES_MAX,
            Self::Organization(_) => ORGANIZATION_BYTES_MAX,
            Self::Member(..) => MEMBER_BYTES_MAX,
            Self::Anonymous => ANONYMOUS_BYTES_MAX,
            Self::Address(_) => ADDRESS_BYTES_MAX,
        }
    }
}

fn used(accounts: &HashMap<Share, usize>, share: &Share) -> usize {
    accounts.get(share).copied().unwrap_or(0)
}

/// True if the work on another request may start. An empty share is not blocked by the next wider one, so that the
/// first response of a member, an organization or an address is always possible.
fn may_begin(accounts: &HashMap<Share, usize>, shares: &[Share]) -> bool {
    let mut is_first = false;
    shares.iter().all(|share| {
        let own = used(accounts, share);
        let may = is_first || own < share.bytes_max();
        is_first = own == 0;
        may
    })
}

/// True if a response of this size may be sent.
fn fits(accounts: &HashMap<Share, usize>, shares: &[Share], bytes: usize) -> bool {
    bytes <= SMALL_BYTES_MAX || is_within(accounts, shares, bytes)
}

/// True if this many more bytes fit into the shares.
fn is_within(accounts: &HashMap<Share, usize>, shares: &[Share], bytes: usize) -> bool {
    let mut is_first = false;
    let is_within = |share: &Share| {
        let own = used(accounts, share);
        let is_within = own == 0 || own + bytes <= share.bytes_max();
        // The share of all organizations never blocks an organization that uses nothing of it.
        let is_within = is_within || is_first && *share == Share::Organizations;
        is_first = own == 0;
        is_within
    };
    shares.iter().all(is_within)
}

impl Responses {
    /// True if the work on another request of an account may start.
    pub(crate) fn has_room(&self, account: &Account) -> bool {
        may_begin(&self.shared.accounts(), &Share::of(account))
    }

    /// Waits until the work on another request of an account may start.
    pub(crate) async fn room(&self, account: &Account) {
        let shares = Share::of(account);
        self.shared.until(|accounts| may_begin(accounts, &shares)).await;
    }

    /// Waits until a response of this size may be sent to an account.
    pub(crate) async fn room_for(&self, account: &Account, bytes: usize) {
        let shares = Share::of(account);
        self.shared.until(|accounts| fits(accounts, &shares, bytes)).await;
    }

    /// A part of a streamed response, counted until it is dropped. Returns the bytes if there is no room.
    pub(crate) fn part(&self, account: &Account, bytes: Vec<u8>) -> Result<Bytes, Vec<u8>> {
        match self.reserve(account, bytes.len()) {
            Some(_reserved) => Ok(Bytes::from_owner(Part { bytes, _reserved })),
            None => Err(bytes),
        }
    }

    /// Counts a finished response; `None` if there is no room.
    pub(crate) fn reserve(&self, account: &Account, bytes: usize) -> Option<ResponseReservation> {
        self.reserve_if(account, bytes, fits)
    }

    /// Counts events for a watcher; `None` if there is no room, independent of their size.
    pub(crate) fn reserve_events(&self, account: &Account, bytes: usize) -> Option<ResponseReservation> {
        self.reserve_if(account, bytes, is_within)
    }

    /// Waits for room for events.
    pub(crate) async fn room_for_events(&self, account: &Account, bytes: usize) {
        let shares = Share::of(account);
        self.shared.until(|accounts| is_within(accounts, &shares, bytes)).await;
    }

    fn reserve_if(
        &self,
        account: &Account,
        bytes: usize,
        may: impl Fn(&HashMap<Share, usize>, &[Share], usize) -> bool,
    ) -> Option<ResponseReservation> {
        let (mut accounts, shares) = (self.shared.accounts(), Share::of(account));
        if !may(&accounts, &shares, bytes) {
            return None;
        }
        for share in &shares {
            *accounts.entry(share.clone()).or_default() += bytes;
        }
        drop(accounts);
        Some(ResponseReservation { _reserved: Arc::new(Reserved { shared: self.shared.clone(), shares, bytes }) })
    }
}

/// A part of a streamed response.
struct Part {
    bytes: Vec<u8>,
    _reserved: ResponseReservation,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Shared {
    fn accounts(&self) -> MutexGuard<'_, HashMap<Share, usize>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until(&self, is_so: impl Fn(&HashMap<Share, usize>) -> bool) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the check, so that no release after it is missed.
            freed.as_mut().enable();
            if is_so(&self.accounts()) {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut accounts = self.shared.accounts();
        for share in &self.shares {
            let Some(own) = accounts.get_mut(share) else { continue };
            *own -= self.bytes;
            if *own == 0 {
                accounts.remove(share);
            }
        }
        drop(accounts);
        self.shared.freed.notify_waiters();
    }
}

/// The error for clients that do not read their responses.
pub(crate) fn responses_unread() -> Problem {
    let message = "Responses to this member or address that were not read yet use all of their memory: read them, or \
                   request smaller pages (`limit`), and try again.";
    Problem::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    fn member(organization: &str, member: &str) -> Account {
        Account::of(&Method::GET, "/", organization, member)
    }

    fn address(number: usize) -> Account {
        Account::anonymous(format!("192.0.2.{number}"))
    }

    #[test]
    fn shares_leave_room_to_others() {
        let responses = Responses::default();
        let (one, two) = (member("acme", "vic"), member("acme", "ada"));
        let first = responses.reserve(&one, MEMBER_BYTES_MAX - 1).unwrap();
        assert!(responses.has_room(&one), "a byte is left");
        assert!(responses.reserve(&one, SMALL_BYTES_MAX + 1).is_none(), "and that is too little");
        let small = responses.reserve(&one, SMALL_BYTES_MAX).unwrap();
        assert!(!responses.has_room(&one) && responses.has_room(&two));
        drop(small);
        let more = ["u1", "u2", "u3"].map(|id| responses.reserve(&member("acme", id), MEMBER_BYTES_MAX).unwrap());
        // The organization has no room left: only small responses of its members are sent.
        assert!(responses.has_room(&two) && responses.reserve(&two, SMALL_BYTES_MAX + 1).is_none());
        let small_response = responses.reserve(&two, SMALL_BYTES_MAX).unwrap();
        assert!(!responses.has_room(&two), "the first response is the only one");
        assert!(responses.has_room(&member("globex", "ada")));
        drop((first, more, small_response));
        assert!(responses.shared.accounts().is_empty(), "released shares are removed");
    }

    #[test]
    fn the_first_response_of_an_organization_is_always_made() {
        let responses = Responses::default();
        let one =
            |number: usize, id: &str| responses.reserve(&member(&format!("o{number}"), id), MEMBER_BYTES_MAX).unwrap();
        let _many: Vec<_> = (0..4).flat_map(|number| ["a", "b", "c", "d"].map(|id| one(number, id))).collect();
        let new = member("new", "ada");
        let reserved = responses.reserve(&new, MEMBER_BYTES_MAX / 2);
        assert!(reserved.is_some() && !responses.has_room(&new));
        assert!(responses.reserve(&member("new", "bob"), MEMBER_BYTES_MAX / 2).is_none());
    }

    #[test]
    fn anonymous_responses_have_a_share_of_their_own_and_health_has_none() {
        let responses = Responses::default();
        let of = |number| responses.reserve(&address(number), ADDRESS_BYTES_MAX);
        let reserved: Vec<_> = (0..200).filter_map(of).collect();
        assert_eq!(reserved.len(), ANONYMOUS_BYTES_MAX / ADDRESS_BYTES_MAX);
        assert!(!responses.has_room(&address(0)) && responses.has_room(&address(201)));
        let first = responses.reserve(&address(201), 1);
        assert!(first.is_some() && !responses.has_room(&address(201)));
        assert!(responses.reserve(&member("acme", "ada"), MEMBER_BYTES_MAX).is_some());
        let before = responses.shared.accounts().clone();
        let health = responses.reserve(&Account::health(), 10 * ORGANIZATIONS_BYTES_MAX);
        assert!(health.is_some() && responses.has_room(&Account::health()));
        assert_eq!(*responses.shared.accounts(), before, "health is in no share");
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_with_unread_responses_waits_until_they_are_read() {
        let (responses, account) = (Responses::default(), member("acme", "ada"));
        let part = responses.part(&account, vec![7; MEMBER_BYTES_MAX]).unwrap();
        assert!(responses.part(&account, vec![7; SMALL_BYTES_MAX + 1]).is_err());
        assert!(responses.reserve_events(&account, 1).is_none(), "events have a bound however small they are");
        let taken = async {
            tokio::task::yield_now().await;
            drop(part);
        };
        let ((), (), (), ()) = tokio::join!(
            responses.room(&account),
            responses.room_for(&account, MEMBER_BYTES_MAX),
            responses.room_for_events(&account, MEMBER_BYTES_MAX),
            taken
        );
        assert!(responses.has_room(&account));
    }
}
