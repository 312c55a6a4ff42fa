//! Request slots: bound the threads that requests occupy with work on the store and the sandbox.
//!
//! Slots are shared fairly by organization: requests of one organization queue behind each other and not in front of
//! others. Within an organization, each member has a bound too. Sign-ins, decisions, cancels, revocations and readiness
//! have reserved slots, because an operator needs them to end an overload. Compiling also needs a permit, since the
//! client controls its cost.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::Method;
use mainspring_engine::fair::{Bounds, FairPermit, FairSemaphore};
use tokio::time::timeout;

use crate::http::problem::{Code, Problem, Result};

/// Requests that use the store or the sandbox at a time. Each occupies a thread with its own memory. Threads beyond
/// these belong to the engine.
pub(crate) const SLOTS_MAX: usize = ORDINARY_MAX + RESERVED_MAX;

/// Slots for routes that are not in [`RESERVED`].
const ORDINARY_MAX: usize = 48;

/// Ordinary slots of one organization: six busy organizations fill all of them, and a seventh waits for at most one
/// request.
const ORDINARY_PER_KEY_MAX: usize = 8;

/// Slots for [`RESERVED`] routes and for authentication, which take milliseconds.
const RESERVED_MAX: usize = 16;

/// Reserved slots of one organization, or of one address before authentication.
const RESERVED_PER_KEY_MAX: usize = 4;

/// Ordinary slots of one member, so that a busy member leaves some to the rest of the organization.
const ORDINARY_PER_MEMBER_MAX: usize = 6;

/// Reserved slots of one member, so that a busy member cannot delay an owner who revokes credentials.
const RESERVED_PER_MEMBER_MAX: usize = 2;

const _: () = assert!(
    ORDINARY_PER_MEMBER_MAX < ORDINARY_PER_KEY_MAX
        && RESERVED_PER_MEMBER_MAX < RESERVED_PER_KEY_MAX
        && COMPILING_PER_MEMBER_MAX < COMPILING_PER_KEY_MAX
);

/// Compiling requests at a time. The sandbox also shares its workers by organization.
const COMPILING_MAX: usize = 16;

/// Compiling requests of one organization: the second one prepares while the first waits for its worker.
const COMPILING_PER_KEY_MAX: usize = 2;

/// Compiling requests of one member, so that a member cannot use both permits of an organization.
const COMPILING_PER_MEMBER_MAX: usize = 1;

/// Requests in all queues. Each is a connection or a stream with a few KiB of memory.
const WAITING_MAX: usize = 16_384;

/// Requests of one organization in a queue: as many as the watchers of one member, which may all reconnect at once
/// after a restart.
const WAITING_PER_KEY_MAX: usize = 4_096;

/// Requests of one member in its queue: half of the bound of an organization.
const WAITING_PER_MEMBER_MAX: usize = WAITING_PER_KEY_MAX / 2;

/// Longest wait for a slot. Clients give up after about 30 s, and a response with `Retry-After` is better than a closed
/// connection.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Routes with reserved slots, by method and path of the OpenAPI description: they end work or revoke access. Public
/// routes use the reserved slots of their address.
pub(crate) const RESERVED: [(Method, &str); 8] = [
    (Method::POST, "/api/executions/{id}/approve"),
    (Method::POST, "/api/executions/{id}/cancel"),
    (Method::POST, "/api/approvals/{id}/decide"),
    (Method::POST, "/approve/{id}"),
    (Method::GET, "/api/tokens"),
    (Method::DELETE, "/api/tokens/{id}"),
    (Method::DELETE, "/api/members/{id}"),
    (Method::PUT, "/api/members/{id}"),
];

/// Routes that compile definitions from the request or from the store.
pub(crate) const COMPILING: [(Method, &str); 19] = [
    (Method::POST, "/api/definitions/validate"),
    (Method::POST, "/api/definitions/plan"),
    (Method::POST, "/api/definitions/drawing"),
    (Method::GET, "/api/workflows/{id}/drawing"),
    (Method::POST, "/api/workflows/sync"),
    (Method::POST, "/api/workflows/sync-all"),
    (Method::PUT, "/api/workflows/{id}"),
    (Method::POST, "/api/workflows/{id}/proposals"),
    (Method::POST, "/api/workflows/{id}/proposals/write"),
    (Method::GET, "/api/workflows/{id}/proposals/{proposalId}"),
    (Method::GET, "/api/workflows/{id}/proposals/{proposalId}/migration"),
    (Method::POST, "/api/workflows/{id}/proposals/{proposalId}/shadow"),
    (Method::POST, "/api/workflows/{id}/proposals/{proposalId}/review"),
    (Method::POST, "/api/workflows/{id}/proposals/{proposalId}/apply"),
    (Method::POST, "/api/workflows/{id}/rollouts/{rolloutId}/promote"),
    (Method::POST, "/api/workflows/{id}/rollback"),
    (Method::POST, "/api/scenarios/run"),
    (Method::PUT, "/api/workflows/{id}/scenarios"),
    (Method::POST, "/api/workflows/{id}/scenarios/run"),
];

/// Prefix of the keys of addresses. Ids of organizations contain no slash.
const ADDRESS: &str = "address/";

/// Key of health probes.
const HEALTH: &str = "health/";

/// Kind of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All other requests.
    Ordinary,
    /// Requests that must not wait behind an overload.
    Reserved,
    /// Requests that compile a definition: a permit to compile, and an ordinary slot.
    Compiling,
}

/// The kind of slot of a request, and the account that it is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub kind: Kind,
    /// Id of the organization; `address/…` for unauthenticated requests.
    pub key: String,
    /// Id of the member; empty for unauthenticated requests.
    pub member: String,
}

impl Account {
    /// The account of an authenticated request.
    pub(crate) fn of(method: &Method, path: &str, organization: &str, member: &str) -> Self {
        let is_in = |routes: &[(Method, &str)]| routes.iter().any(|(m, p)| m == method && *p == path);
        let kind = match (is_in(&RESERVED), is_in(&COMPILING)) {
            (true, _) => Kind::Reserved,
            (false, true) => Kind::Compiling,
            (false, false) => Kind::Ordinary,
        };
        Self { kind, key: organization.into(), member: member.into() }
    }

    /// The account of an unauthenticated request. The rate limit of its address applies in addition.
    pub(crate) fn anonymous(address: impl std::fmt::Display) -> Self {
        Self { kind: Kind::Reserved, key: format!("{ADDRESS}{address}"), member: String::new() }
    }

    /// The account of health probes, shared by all load balancers.
    pub(crate) fn health() -> Self {
        Self { kind: Kind::Reserved, key: HEALTH.into(), member: String::new() }
    }

    /// True for unauthenticated requests.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.key.starts_with(ADDRESS)
    }

    /// True for health probes and for the server itself, which have no budget.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.key.is_empty() || self.key == HEALTH
    }
}

tokio::task_local! {
    static ACCOUNT: Arc<Account>;
}

/// Runs a future on an account; slots are charged to it.
pub(crate) async fn on_account<F: Future>(account: impl Into<Arc<Account>>, future: F) -> F::Output {
    ACCOUNT.scope(account.into(), future).await
}

/// The account of the current task, or that of the server itself. Spawned tasks do not inherit an account and must be
/// wrapped in [`on_account`].
pub(crate) fn current() -> Arc<Account> {
    let own = || Account { kind: Kind::Ordinary, key: String::new(), member: String::new() };
    ACCOUNT.try_with(Arc::clone).unwrap_or_else(|_| own().into())
}

/// The slots of a server.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    ordinary: FairSemaphore<String>,
    reserved: FairSemaphore<String>,
    compiling: FairSemaphore<String>,
    ordinary_of_members: OfMembers,
    reserved_of_members: OfMembers,
    compiling_of_members: OfMembers,
    queues: Queues,
}

/// Permits per member, by organization and member. They bound each member, and not all of them together.
type OfMembers = FairSemaphore<(String, String)>;

/// A taken slot. Dropping it releases the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    _slot: FairPermit<String>,
    _compiling: Option<FairPermit<String>>,
    _member: Option<FairPermit<(String, String)>>,
}

impl Default for Slots {
    fn default() -> Self {
        let of =
            |permits, per_key| Bounds { permits, per_key, waiting: WAITING_MAX, waiting_per_key: WAITING_PER_KEY_MAX };
        // More permits than members can hold, and no queue bounds, because `Queues` has them.
        let of_members = |per_key| FairSemaphore::new(Bounds { per_key, ..Bounds::of(usize::MAX / 2) });
        Self {
            ordinary: FairSemaphore::new(of(ORDINARY_MAX, ORDINARY_PER_KEY_MAX)),
            reserved: FairSemaphore::new(of(RESERVED_MAX, RESERVED_PER_KEY_MAX)),
            compiling: FairSemaphore::new(of(COMPILING_MAX, COMPILING_PER_KEY_MAX)),
            ordinary_of_members: of_members(ORDINARY_PER_MEMBER_MAX),
            reserved_of_members: of_members(RESERVED_PER_MEMBER_MAX),
            compiling_of_members: of_members(COMPILING_PER_MEMBER_MAX),
            queues: Queues::default(),
        }
    }
}

/// Lengths of the queues for permits of members: per member, per organization, and in total.
#[derive(Debug, Clone, Default)]
struct Queues(Arc<Mutex<HashMap<Queue, usize>>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Queue {
    Member(String, String),
    Organization(String),
    All,
}

/// A place in the queues. Dropping it releases the place.
#[derive(Debug)]
struct Waiting {
    queues: Queues,
    of: [Queue; 3],
}

impl Queue {
    fn length_max(&self) -> usize {
        match self {
            Self::Member(..) => WAITING_PER_MEMBER_MAX,
            Self::Organization(_) => WAITING_PER_KEY_MAX,
            Self::All => WAITING_MAX,
        }
    }
}

impl Queues {
    fn enter(&self, account: &Account) -> Result<Waiting> {
        let (key, member) = (account.key.clone(), account.member.clone());
        let of = [Queue::Member(key.clone(), member), Queue::Organization(key), Queue::All];
        let mut lengths = self.lengths();
        if of.iter().any(|queue| lengths.get(queue).is_some_and(|length| *length >= queue.length_max())) {
            return Err(busy());
        }
        of.iter().for_each(|queue| *lengths.entry(queue.clone()).or_default() += 1);
        drop(lengths);
        Ok(Waiting { queues: self.clone(), of })
    }

    fn lengths(&self) -> MutexGuard<'_, HashMap<Queue, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut lengths = self.queues.lengths();
        for queue in &self.of {
            let Some(length) = lengths.get_mut(queue) else { continue };
            *length -= 1;
            if *length == 0 {
                lengths.remove(queue);
            }
        }
    }
}

impl Slots {
    /// Waits for a slot for the current task.
    ///
    /// # Errors
    /// Fails with 503 if the queue is full, or after [`WAIT_MAX`].
    pub(crate) async fn take(&self) -> Result<Slot> {
        let account = current();
        let acquired = async {
            let _member = self.of_member(&account).await?;
            let _compiling = match account.kind {
                Kind::Compiling => Some(of(&self.compiling, account.key.clone()).await?),
                Kind::Ordinary | Kind::Reserved => None,
            };
            let slots = if account.kind == Kind::Reserved { &self.reserved } else { &self.ordinary };
            Ok(Slot { _slot: of(slots, account.key.clone()).await?, _compiling, _member })
        };
        timeout(WAIT_MAX, acquired).await.unwrap_or_else(|_| Err(busy()))
    }

    /// Waits for the permit of the account's member, which comes first: a waiting request holds nothing that others
    /// need.
    async fn of_member(&self, account: &Account) -> Result<Option<FairPermit<(String, String)>>> {
        if account.member.is_empty() {
            return Ok(None);
        }
        let permits = match account.kind {
            Kind::Ordinary => &self.ordinary_of_members,
            Kind::Reserved => &self.reserved_of_members,
            Kind::Compiling => &self.compiling_of_members,
        };
        let member = (account.key.clone(), account.member.clone());
        if let Some(permit) = permits.try_acquire(member.clone()) {
            return Ok(Some(permit));
        }
        let _waiting = self.queues.enter(account)?;
        of(permits, member).await.map(Some)
    }
}

async fn of<K: Ord + Clone + Unpin>(slots: &FairSemaphore<K>, key: K) -> Result<FairPermit<K>> {
    Ok(slots.acquire(key).map_err(|_| busy())?.await)
}

/// The error if no slot is free in time.
pub(crate) fn busy() -> Problem {
    let message = "Too many requests of this organization or address are being worked on: try again in a second.";
    Problem::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{auth::policy::PERMISSION_EXTENSION, routes::description};

    async fn take(slots: &Slots, kind: Kind, key: &str) -> Result<Slot> {
        on_account(Account { kind, key: key.into(), member: String::new() }, slots.take()).await
    }

    /// Takes as many slots as a key gets at once.
    async fn all(slots: &Slots, kind: Kind, key: &str) -> Vec<Slot> {
        let mut slots_taken = Vec::new();
        while let Ok(slot) = take(slots, kind, key).await {
            slots_taken.push(slot);
        }
        slots_taken
    }

    #[test]
    fn every_route_of_a_table_exists() {
        let description = description();
        for (method, path) in RESERVED.iter().chain(&COMPILING) {
            let item = description.paths.paths.get(*path).unwrap_or_else(|| panic!("{path} is not a route"));
            let operation = match *method {
                Method::GET => &item.get,
                Method::POST => &item.post,
                Method::PUT => &item.put,
                _ => &item.delete,
            };
            let operation = operation.as_ref().unwrap_or_else(|| panic!("{method} {path} is not a route"));
            let permission = operation.extensions.as_ref().and_then(|all| all.get(PERMISSION_EXTENSION)?.as_str());
            assert!(permission.is_some_and(|name| name != "public"), "{method} {path} has the slots of its address");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_leaves_slots_to_others() {
        let slots = Slots::default();
        let mut compiling = Vec::new();
        for (member, count) in [("vic", 1), ("ada", 1), ("bob", 0)] {
            let account = Account { kind: Kind::Compiling, key: "acme".into(), member: member.into() };
            let mut own = Vec::new();
            while let Ok(slot) = on_account(account.clone(), slots.take()).await {
                own.push(slot);
            }
            assert_eq!(own.len(), count, "{member}");
            compiling.extend(own);
        }
        assert_eq!(compiling.len(), COMPILING_PER_KEY_MAX);
        let ordinary = all(&slots, Kind::Ordinary, "acme").await;
        assert_eq!(compiling.len() + ordinary.len(), ORDINARY_PER_KEY_MAX);
        for (kind, key) in [
            (Kind::Reserved, "acme"),
            (Kind::Reserved, "address/192.0.2.1"),
            (Kind::Ordinary, "globex"),
            (Kind::Compiling, "globex"),
        ] {
            assert!(take(&slots, kind, key).await.is_ok(), "{kind:?} {key} waits");
        }
        assert_eq!(all(&slots, Kind::Reserved, "acme").await.len(), RESERVED_PER_KEY_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_has_bounded_slots_and_a_bounded_queue() {
        let slots = Slots::default();
        let account = |kind: Kind, member: &str| Account { kind, key: "acme".into(), member: member.into() };
        let take = |kind, member: &str| on_account(account(kind, member), slots.take());
        let bounds = [(Kind::Ordinary, ORDINARY_PER_MEMBER_MAX), (Kind::Reserved, RESERVED_PER_MEMBER_MAX)];
        for (kind, most) in bounds {
            let mut slots_taken = Vec::new();
            while let Ok(slot) = take(kind, "vic").await {
                slots_taken.push(slot);
            }
            assert_eq!(slots_taken.len(), most, "{kind:?}");
            let queue: Vec<_> = (0..WAITING_PER_MEMBER_MAX)
                .map(|_| {
                    let (slots, account) = (slots.clone(), account(kind, "vic"));
                    tokio::spawn(on_account(account, async move { slots.take().await.is_ok() }))
                })
                .collect();
            while slots.queues.lengths().get(&Queue::All).is_none_or(|all| *all < WAITING_PER_MEMBER_MAX) {
                tokio::task::yield_now().await;
            }
            let began = tokio::time::Instant::now();
            assert!(take(kind, "vic").await.is_err(), "{kind:?}");
            assert!(take(kind, "ada").await.is_ok(), "{kind:?}: an owner waits behind a member");
            assert_eq!(began.elapsed(), Duration::ZERO);
            queue.iter().for_each(|one| one.abort());
            drop(slots_taken);
            while slots.queues.lengths().contains_key(&Queue::All) {
                tokio::task::yield_now().await;
            }
        }
        assert!(slots.queues.lengths().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_slot_fails_with_503_after_ten_seconds() {
        let slots = Slots::default();
        let slots_taken = all(&slots, Kind::Ordinary, "acme").await;
        let began = tokio::time::Instant::now();
        let refused = take(&slots, Kind::Ordinary, "acme").await.err().map(|problem| problem.code);
        assert_eq!((refused, began.elapsed()), (Some(Code::Unavailable), WAIT_MAX));
        let (slot, ()) = tokio::join!(take(&slots, Kind::Ordinary, "acme"), async { drop(slots_taken) });
        assert!(slot.is_ok(), "a slot that is given back serves the next");
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_of_an_organization_is_bounded() {
        let slots = Slots::default();
        let _slots_taken = all(&slots, Kind::Ordinary, "acme").await;
        let account = || Account { kind: Kind::Ordinary, key: "acme".into(), member: String::new() };
        let waiting: Vec<_> = (0..WAITING_PER_KEY_MAX)
            .map(|_| {
                let slots = slots.clone();
                tokio::spawn(on_account(account(), async move { slots.take().await.is_ok() }))
            })
            .collect();
        while slots.ordinary.waiting() < WAITING_PER_KEY_MAX {
            tokio::task::yield_now().await;
        }
        let began = tokio::time::Instant::now();
        assert!(take(&slots, Kind::Ordinary, "acme").await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO, "one too many is answered at once");
        assert!(take(&slots, Kind::Ordinary, "globex").await.is_ok());
        waiting.iter().for_each(|one| one.abort());
    }
}
