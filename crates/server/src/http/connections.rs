//! Limits of connections per address, organization and token, and the choice of connections to close when a limit is
//! reached.
//!
//! A connection is unproven until a request on it authenticates. It then counts for the organization and the token of
//! that credential. Each address, organization and token has a share. A connection beyond a share closes the connection
//! of the same share that has been idle for longest. Proven connections never use up all connections, so that an
//! operator, another organization or a readiness probe always gets one: a new connection without a free place closes an
//! unproven one.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::http::problem::{Code, Problem};

/// Divisor: the fraction of all connections that one address may have unproven and without an open request.
const IDLE_SHARES: usize = 8;

/// Divisor: the fraction of all connections that one address may have unproven.
const ADDRESS_SHARES: usize = 4;

/// Lower bound of the share of an address: a browser opens six connections at once.
const SHARE_MIN: usize = 8;

/// Divisor: the fraction of all connections that one token may have. One organization may have half of them, so that a
/// single token leaves connections to the other members.
const TOKEN_SHARES: usize = 4;

/// Connections that proven ones leave free. Authentication takes milliseconds, so that a few serve many clients.
const RESERVE: usize = 16;

/// The connections of a node.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    table: Mutex<Table>,
}

/// One open connection. Dropping it removes it from its shares.
#[derive(Debug)]
pub(crate) struct Connection {
    of: Arc<Connections>,
    number: u64,
    /// Notified when the connection is to be closed in favor of another one.
    pub(crate) closed: Arc<Notify>,
}

/// Response extension: the caller was authenticated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admitted;

/// The organization and the token of an authenticated request.
#[derive(Debug, Clone)]
pub(crate) struct Holder<'a> {
    pub organization: &'a str,
    pub token: &'a str,
    /// True for operators, and for requests that end work or revoke access: they are never refused. Beyond its share,
    /// their connection stays unproven.
    pub is_exempt: bool,
}

/// A share of the connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Share {
    Address(IpAddr),
    Organization(String),
    Token(String),
}

/// The connections of a share by number; idle ones are ordered by the tick at which they became idle.
#[derive(Debug, Default)]
struct Members {
    busy: BTreeSet<u64>,
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Row {
    address: IpAddr,
    /// True for trusted proxies, which serve many clients: their address has no share, and a connection is proven only
    /// while a request is open.
    is_proxy: bool,
    shares: Vec<Share>,
    idle_since: Option<u64>,
    closed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    /// Counter of connection numbers and of ticks; only their order matters.
    next: u64,
    rows: HashMap<u64, Row>,
    shares: HashMap<Share, Members>,
    proven: usize,
}

impl Connections {
    /// Shares of the given number of connections.
    pub(crate) fn of(max: usize) -> Self {
        Self { max, table: Mutex::default() }
    }

    /// Registers a new connection, and closes another one if its address is over its share.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr, is_proxy: bool) -> Connection {
        let closed = Arc::new(Notify::new());
        let mut table = self.table();
        let (number, idle_since) = (table.tick(), Some(table.tick()));
        let shares = vec![Share::Address(address)];
        table.put(number, Row { address, is_proxy, shares, idle_since, closed: closed.clone() });
        self.bound(&mut table, number, address, is_proxy);
        drop(table);
        Connection { of: self.clone(), number, closed }
    }

    /// Closes an unproven connection of the address with the most connections.
    pub(crate) fn make_room(&self) {
        let mut table = self.table();
        let of_address = table.shares.iter().filter(|(share, _)| matches!(share, Share::Address(_)));
        let largest = of_address.max_by_key(|(_, members)| members.count());
        if let Some(number) = largest.and_then(|(_, members)| members.oldest_beside(0)) {
            table.close(number);
        }
    }

    /// Enforces the share of an address by closing another connection than the given one.
    fn bound(&self, table: &mut Table, number: u64, address: IpAddr, is_proxy: bool) {
        let Some(members) = table.shares.get(&Share::Address(address)).filter(|_| !is_proxy) else { return };
        let is_over = members.idle.len() > (self.max / IDLE_SHARES).max(SHARE_MIN)
            || members.count() > (self.max / ADDRESS_SHARES).max(SHARE_MIN);
        if let Some(number) = members.oldest_beside(number).filter(|_| is_over) {
            table.close(number);
        }
    }

    /// True if both shares have room for one more proven connection, if need be after closing an idle one.
    fn has_room(&self, table: &mut Table, organization: &Share, token: &Share) -> bool {
        // The bound is the number of free connections: one organization gets a half, two get a third each.
        let free = self.max.saturating_sub(RESERVE + table.proven);
        let is_over = |(share, most): (&Share, usize)| table.count(share) >= most;
        let bounds = [(token, self.max / TOKEN_SHARES), (organization, free)];
        let Some((share, _)) = bounds.into_iter().find(|bound| is_over(*bound)) else { return true };
        let idle = table.shares.get(share).and_then(|members| members.idle.values().next().copied());
        idle.map(|number| table.close(number)).is_some()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// A request starts on an idle connection.
    pub(crate) fn busy(&self) {
        self.of.table().change(self.number, |row| row.idle_since = None);
    }

    /// The last open request has ended.
    pub(crate) fn idle(&self) {
        let mut table = self.of.table();
        let now = table.tick();
        table.change(self.number, |row| {
            row.idle_since = Some(now);
            if row.is_proxy {
                row.shares = vec![Share::Address(row.address)];
            }
        });
        if let Some((address, is_proxy)) = table.rows.get(&self.number).map(|row| (row.address, row.is_proxy)) {
            self.of.bound(&mut table, self.number, address, is_proxy);
        }
    }

    /// The connection has ended. Requests that are still being processed do not count for it.
    pub(crate) fn end(&self) {
        self.of.table().take(self.number);
    }

    /// A request was authenticated: the connection counts for its organization and its token from now on.
    ///
    /// # Errors
    /// Fails with 503 if one of the two shares is used up and none of its connections is idle.
    pub(crate) fn prove(&self, holder: &Holder<'_>) -> Result<(), Problem> {
        let mut table = self.of.table();
        let Some(row) = table.rows.get(&self.number) else { return Ok(()) };
        let is_proven = row.shares.len() > 1;
        let is_same = matches!(row.shares.as_slice(), [Share::Organization(organization), Share::Token(token)]
            if organization == holder.organization && token == holder.token);
        // Requests of several callers share a proxy's connection: it counts for the first open one.
        if is_same || row.is_proxy && is_proven {
            return Ok(());
        }
        let (organization, token) =
            (Share::Organization(holder.organization.into()), Share::Token(holder.token.into()));
        let address = vec![Share::Address(row.address)];
        table.change(self.number, |row| row.shares = address);
        let is_first = !table.shares.contains_key(&organization);
        if self.of.has_room(&mut table, &organization, &token) {
            table.change(self.number, |row| row.shares = vec![organization, token]);
            return Ok(());
        }
        if is_first || holder.is_exempt { Ok(()) } else { Err(full()) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end();
    }
}

fn full() -> Problem {
    let message = "This organization or token has its maximum number of connections, and none of them is idle: end \
                   some requests or event streams, or send more over one connection (HTTP/2).";
    Problem::new(Code::Unavailable, message)
}

impl Members {
    fn add(&mut self, number: u64, idle_since: Option<u64>) {
        match idle_since {
            Some(since) => {
                self.idle.insert(since, number);
            }
            None => {
                self.busy.insert(number);
            }
        }
    }

    fn count(&self) -> usize {
        self.busy.len() + self.idle.len()
    }

    /// The connection that was idle for longest, otherwise the oldest one.
    fn oldest_beside(&self, number: u64) -> Option<u64> {
        self.idle.values().chain(&self.busy).copied().find(|other| *other != number)
    }
}

impl Table {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn count(&self, share: &Share) -> usize {
        self.shares.get(share).map_or(0, Members::count)
    }

    fn put(&mut self, number: u64, row: Row) {
        for share in &row.shares {
            match self.shares.get_mut(share) {
                Some(members) => members.add(number, row.idle_since),
                None => self.shares.entry(share.clone()).or_default().add(number, row.idle_since),
            }
        }
        self.proven += usize::from(row.shares.len() > 1);
        self.rows.insert(number, row);
    }

    fn take(&mut self, number: u64) -> Option<Row> {
        let row = self.rows.remove(&number)?;
        for share in &row.shares {
            let Some(members) = self.shares.get_mut(share) else { continue };
            members.busy.remove(&number);
            if let Some(since) = row.idle_since {
                members.idle.remove(&since);
            }
            if members.count() == 0 {
                self.shares.remove(share);
            }
        }
        self.proven -= usize::from(row.shares.len() > 1);
        Some(row)
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Row)) {
        if let Some(mut row) = self.take(number) {
            change(&mut row);
            self.put(number, row);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(row) = self.take(number) {
            row.closed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn holder<'a>(organization: &'a str, token: &'a str) -> Holder<'a> {
        Holder { organization, token, is_exempt: false }
    }

    impl Connection {
        fn is_open(&self) -> bool {
            self.of.table().rows.contains_key(&self.number)
        }

        /// True if no request is open on it.
        pub(crate) fn is_idle(&self) -> bool {
            self.of.table().rows[&self.number].idle_since.is_some()
        }

        pub(crate) fn has_ended(&self) -> bool {
            !self.is_open()
        }
    }

    /// Opens as many connections as a token gets, each with an open request.
    fn opened(all: &Arc<Connections>, organization: &str, token: &str) -> Vec<Connection> {
        let mut opened = Vec::new();
        loop {
            let next = all.add(address(9), true);
            next.busy();
            let _ = next.prove(&holder(organization, token));
            if !all.table().rows[&next.number].shares.contains(&Share::Token(token.into())) {
                return opened;
            }
            opened.push(next);
        }
    }

    #[test]
    fn an_address_over_its_share_closes_its_oldest_idle_connection() {
        let all = Arc::new(Connections::of(144));
        let opened: Vec<_> = (0..18).map(|_| all.add(address(1), false)).collect();
        let other = all.add(address(2), false);
        assert!(opened.iter().all(Connection::is_open), "an eighth is not too many");
        let next = all.add(address(1), false);
        assert!(!opened[0].is_open() && opened[1..].iter().chain([&other, &next]).all(Connection::is_open));
        // An open request counts for the larger share.
        opened[1].busy();
        let another = all.add(address(1), false);
        assert!(opened[1..].iter().all(Connection::is_open));
        opened[1].idle();
        assert!(!opened[2].is_open() && opened[1].is_open(), "it is idle again, and for the shortest time");
        drop((opened, other, next, another));
        let table = all.table();
        assert!(table.shares.is_empty() && table.rows.is_empty(), "ended connections leave nothing behind");
    }

    #[test]
    fn open_requests_without_a_credential_have_a_share_too() {
        let all = Arc::new(Connections::of(144));
        let add = |last| {
            let one = all.add(address(last), false);
            one.busy();
            one
        };
        let (other, opened): (_, Vec<_>) = (add(2), (0..36).map(|_| add(1)).collect());
        assert!(opened.iter().all(Connection::is_open));
        let next = add(1);
        assert!(!opened[0].is_open() && opened[1..].iter().chain([&other, &next]).all(Connection::is_open));
        let proxied: Vec<_> = (0..144).map(|_| all.add(address(3), true)).collect();
        assert!(proxied.iter().all(Connection::is_open), "a proxy speaks for many");
    }

    #[test]
    fn an_organization_gets_half_and_a_token_a_quarter_of_connections() {
        let all = Arc::new(Connections::of(144));
        let one = opened(&all, "acme", "t1");
        assert_eq!(one.len(), 36, "a quarter");
        let two = opened(&all, "acme", "t2");
        assert_eq!(one.len() + two.len(), 64, "half of those beside the reserve");
        assert!(opened(&all, "acme", "t3").is_empty());
        let others = opened(&all, "globex", "t4");
        assert_eq!(others.len(), 32, "half of what is left");
        // However many organizations use all that they can, another one still gets a connection, and so does an
        // operator.
        let _more: Vec<_> = (0..9).map(|number| opened(&all, &format!("o{number}"), &format!("u{number}"))).collect();
        let last = all.add(address(1), false);
        assert!(all.table().proven <= 144 - RESERVE);
        assert_eq!(last.prove(&holder("late", "t5")), Ok(()));
        assert_eq!(last.prove(&Holder { is_exempt: true, ..holder("acme", "t1") }), Ok(()));
        assert_eq!(last.prove(&holder("acme", "t1")).unwrap_err().code, Code::Unavailable);
        // Closing an idle connection makes room.
        one[3].of.table().change(one[3].number, |row| row.idle_since = Some(1));
        assert_eq!(last.prove(&holder("acme", "t1")), Ok(()));
        assert!(!one[3].is_open());
    }

    #[test]
    fn an_authenticated_connection_stays_authenticated() {
        let all = Arc::new(Connections::of(64));
        let one = all.add(address(1), false);
        one.busy();
        one.prove(&holder("acme", "t1")).unwrap();
        // A second request, which needed no credential, ends.
        one.idle();
        let _many: Vec<_> = (0..40).map(|_| all.add(address(1), false)).collect();
        assert!(one.is_open());
    }

    #[test]
    fn a_new_connection_replaces_an_unauthenticated_one() {
        let all = Arc::new(Connections::of(64));
        let proven = all.add(address(1), false);
        proven.prove(&holder("acme", "t1")).unwrap();
        let many: Vec<_> = (0..8).map(|_| all.add(address(2), false)).collect();
        let few: Vec<_> = (0..3).map(|_| all.add(address(3), false)).collect();
        all.make_room();
        assert!(!many[0].is_open() && many[1..].iter().chain(&few).chain([&proven]).all(Connection::is_open));
    }

    #[test]
    fn a_connection_of_a_proxy_counts_while_a_request_is_open() {
        let all = Arc::new(Connections::of(64));
        let one = all.add(address(1), true);
        one.busy();
        one.prove(&holder("acme", "t1")).unwrap();
        one.prove(&holder("globex", "t2")).unwrap();
        let has = |name: &str| all.table().shares.contains_key(&Share::Organization(name.into()));
        assert!(has("acme") && !has("globex"));
        one.idle();
        assert!(!has("acme"));
        one.busy();
        one.prove(&holder("globex", "t2")).unwrap();
        assert!(has("globex"));
    }
}
