//! Slots for requests that use the store or the sandbox: each holds a thread while it works.
//!
//! Slots are shared fairly by organization, so that one organization's requests wait behind each other and not before those
//! of others. Credentials, decisions, cancels, revocations and readiness have slots of their own: they are how an operator
//! ends an overload, and must not wait behind it. Compiling asks for a third kind of permit first, because it is the one kind
//! of request whose cost its sender chooses.

use std::{future::Future, time::Duration};

use axum::http::Method;
use mainspring_engine::fair::{Bounds, FairPermit, FairSemaphore};
use tokio::time::timeout;

use crate::problem::{Answer, Code, Problem};

/// Requests that use the store or the sandbox at a time: each holds a thread, with memory of its own. The engine has the
/// threads beyond these for itself, whatever is asked.
pub(crate) const SLOTS_MAX: usize = ORDINARY_MAX + RESERVED_MAX;

/// Slots for everything that is not in [`RESERVED`].
const ORDINARY_MAX: usize = 48;

/// Ordinary slots of one organization: six busy organizations fill all of them, and a seventh waits for one request at most.
const ORDINARY_PER_KEY_MAX: usize = 8;

/// Slots for [`RESERVED`] requests and credentials. These take milliseconds each.
const RESERVED_MAX: usize = 16;

/// Reserved slots of one organization, or of one address before its credential is known.
const RESERVED_PER_KEY_MAX: usize = 4;

/// Requests that compile at a time. The sandbox shares its workers by organization itself.
const COMPILING_MAX: usize = 16;

/// Compiling requests of one organization: a second one prepares while the first waits for its worker.
const COMPILING_PER_KEY_MAX: usize = 2;

/// Compiling requests of one member, so that one member does not have both of its organization.
const COMPILING_PER_MEMBER_MAX: usize = 1;

/// Requests that wait for a slot, of all organizations. Each is a connection or a stream with a few KiB of memory.
const WAITING_MAX: usize = 16_384;

/// Requests that wait for a slot, of one organization: as many as one credential may have watchers, which may all come at the
/// same moment after a restart.
const WAITING_PER_KEY_MAX: usize = 4_096;

/// How long a request waits for a slot: clients give up after some 30 s, and an answer that says when to come again is worth
/// more than a connection that ends.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Routes with reserved slots, as method and path of the description: they end work or take access away. Public routes have
/// reserved slots anyway, those of their address.
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

/// Routes that compile what is sent to them.
pub(crate) const COMPILING: [(Method, &str); 5] = [
    (Method::POST, "/api/definitions/validate"),
    (Method::POST, "/api/definitions/plan"),
    (Method::POST, "/api/workflows/sync"),
    (Method::POST, "/api/workflows/sync-all"),
    (Method::PUT, "/api/workflows/{id}"),
];

/// The beginning of the keys of addresses. No id of an organization has a slash.
const ADDRESS: &str = "address/";

/// The key of health.
const HEALTH: &str = "health/";

/// The kinds of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Everything else.
    Ordinary,
    /// What must not wait behind an overload.
    Reserved,
    /// What compiles a definition of the request: an ordinary slot, and a permit to compile before it.
    Compiling,
}

/// Which slots a request takes, and on whose account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// The kind of slots.
    pub kind: Kind,
    /// The organization, or `address/…` where there is no credential.
    pub key: String,
    /// The member whose credential it is; empty where there is none.
    pub member: String,
}

impl Account {
    /// For a request with a credential of a member of an organization.
    pub(crate) fn of(method: &Method, path: &str, organization: &str, member: &str) -> Self {
        let is_in = |routes: &[(Method, &str)]| routes.iter().any(|(m, p)| m == method && *p == path);
        let kind = match (is_in(&RESERVED), is_in(&COMPILING)) {
            (true, _) => Kind::Reserved,
            (false, true) => Kind::Compiling,
            (false, false) => Kind::Ordinary,
        };
        Self { kind, key: organization.into(), member: member.into() }
    }

    /// For what is asked without a credential, or before it is known whose it is. The address has a rate of its own.
    pub(crate) fn anonymous(address: impl std::fmt::Display) -> Self {
        Self { kind: Kind::Reserved, key: format!("{ADDRESS}{address}"), member: String::new() }
    }

    /// For readiness: load balancers share one account, whatever they ask from.
    pub(crate) fn health() -> Self {
        Self { kind: Kind::Reserved, key: HEALTH.into(), member: String::new() }
    }

    /// Whether there is no credential.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.key.starts_with(ADDRESS)
    }

    /// Whether it is the account of health, or of the server itself, which are in no budget.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.key.is_empty() || self.key == HEALTH
    }
}

tokio::task_local! {
    static ACCOUNT: Account;
}

/// Runs a future on an account: what it asks of the slots is taken from there.
pub(crate) async fn on_account<F: Future>(account: Account, future: F) -> F::Output {
    ACCOUNT.scope(account, future).await
}

/// The account of the current task; that of the server itself where none is set. For tasks that a request starts, which
/// have none by themselves.
pub(crate) fn current() -> Account {
    let own = || Account { kind: Kind::Ordinary, key: String::new(), member: String::new() };
    ACCOUNT.try_with(Account::clone).unwrap_or_else(|_| own())
}

/// The slots of a server.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    ordinary: FairSemaphore<String>,
    reserved: FairSemaphore<String>,
    compiling: FairSemaphore<String>,
    compiling_of_members: FairSemaphore<(String, String)>,
}

/// What a request holds while it works.
#[derive(Debug)]
pub(crate) struct Slot {
    _slot: FairPermit<String>,
    _compiling: Option<Compiling>,
}

/// The permits to compile of a member and of its organization.
#[derive(Debug)]
struct Compiling {
    _member: FairPermit<(String, String)>,
    _organization: FairPermit<String>,
}

impl Default for Slots {
    fn default() -> Self {
        let of =
            |permits, per_key| Bounds { permits, per_key, waiting: WAITING_MAX, waiting_per_key: WAITING_PER_KEY_MAX };
        Self {
            ordinary: FairSemaphore::new(of(ORDINARY_MAX, ORDINARY_PER_KEY_MAX)),
            reserved: FairSemaphore::new(of(RESERVED_MAX, RESERVED_PER_KEY_MAX)),
            compiling: FairSemaphore::new(of(COMPILING_MAX, COMPILING_PER_KEY_MAX)),
            // As many members as there can be: these permits bound each of them and not all together.
            compiling_of_members: FairSemaphore::new(of(2 * WAITING_MAX, COMPILING_PER_MEMBER_MAX)),
        }
    }
}

impl Slots {
    /// A slot for the current task.
    ///
    /// # Errors
    /// Fails with 503 if too many requests wait already, or after [`WAIT_MAX`].
    pub(crate) async fn take(&self) -> Answer<Slot> {
        let account = current();
        let asked = async {
            let _compiling = match account.kind {
                Kind::Compiling => {
                    let member = (account.key.clone(), account.member.clone());
                    let _member = of(&self.compiling_of_members, member).await?;
                    Some(Compiling { _member, _organization: of(&self.compiling, account.key.clone()).await? })
                }
                Kind::Ordinary | Kind::Reserved => None,
            };
            let slots = if account.kind == Kind::Reserved { &self.reserved } else { &self.ordinary };
            Ok(Slot { _slot: of(slots, account.key.clone()).await?, _compiling })
        };
        timeout(WAIT_MAX, asked).await.unwrap_or_else(|_| Err(busy()))
    }
}

async fn of<K: Ord + Clone + Unpin>(slots: &FairSemaphore<K>, key: K) -> Answer<FairPermit<K>> {
    Ok(slots.acquire(key).map_err(|_| busy())?.await)
}

/// The answer where there is no slot in time.
pub(crate) fn busy() -> Problem {
    let message = "Too many requests of this organization or address are being worked on: try again in a moment.";
    Problem::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{door::EXTENSION, routes::description};

    async fn take(slots: &Slots, kind: Kind, key: &str) -> Answer<Slot> {
        on_account(Account { kind, key: key.into(), member: String::new() }, slots.take()).await
    }

    /// As many slots as a key gets at once.
    async fn all(slots: &Slots, kind: Kind, key: &str) -> Vec<Slot> {
        let mut held = Vec::new();
        while let Ok(slot) = take(slots, kind, key).await {
            held.push(slot);
        }
        held
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
            let asks_for = operation.extensions.as_ref().and_then(|all| all.get(EXTENSION)?.as_str());
            assert!(asks_for.is_some_and(|name| name != "public"), "{method} {path} has the slots of its address");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_organization_leaves_slots_to_others_and_the_reserved_ones_to_decisions() {
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
    async fn a_request_waits_ten_seconds_and_is_told_to_come_again() {
        let slots = Slots::default();
        let held = all(&slots, Kind::Ordinary, "acme").await;
        let began = tokio::time::Instant::now();
        let refused = take(&slots, Kind::Ordinary, "acme").await.err().map(|problem| problem.code);
        assert_eq!((refused, began.elapsed()), (Some(Code::Unavailable), WAIT_MAX));
        let (slot, ()) = tokio::join!(take(&slots, Kind::Ordinary, "acme"), async { drop(held) });
        assert!(slot.is_ok(), "a slot that is given back serves the next");
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_of_one_organization_has_an_end() {
        let slots = Slots::default();
        let _held = all(&slots, Kind::Ordinary, "acme").await;
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
