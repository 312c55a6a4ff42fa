//! Event feeds of executions, shared by all watchers of an execution.
//!
//! One task per watched execution puts its events into a ring buffer that all watchers read. Evicted events are read
//! from the journal, where every event has the same position: a reconnecting watcher sends the position of the last
//! event it has seen.

pub(crate) mod fill;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use mainspring_kernel::key::ExecutionKey;
use tokio::sync::watch;

use crate::{
    auth::caller::Caller,
    http::{
        problem::{Code, Problem, Result},
        request_slots::current,
    },
};

/// Most events in the ring of an execution.
const RING: usize = 1024;

/// Most bytes of these: some of the largest outputs. A watcher that is further behind reads the journal.
const RING_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of the rings of one organization beyond which each of its rings keeps less.
const RINGS_OF_ORGANIZATION_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of all rings of a node beyond which the rings of the largest organizations keep less.
const RINGS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that an organization may keep even if all rings together exceed their bound.
const RINGS_OF_ORGANIZATION_BYTES_MIN: usize = 4 * 1024 * 1024;

/// Maximum bytes of a ring while its organization exceeds its bound.
const CROWDED_RING_BYTES_MAX: usize = 16 * 1024;

/// Position of an event: the sequence number of its frame, and its index in the frame, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventPosition {
    sequence: u64,
    index: u32,
}

impl fmt::Display for EventPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.sequence, self.index)
    }
}

impl FromStr for EventPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (sequence, index) = text.split_once('.').ok_or(())?;
        Ok(Self { sequence: sequence.parse().map_err(drop)?, index: index.parse().map_err(drop)? })
    }
}

/// An event, encoded for streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// Position in the journal.
    pub position: EventPosition,
    /// Type, as `step.started`.
    pub kind: String,
    /// The event as JSON, without data that only some watchers may see.
    pub data: String,
    /// The resume token, for events that open a gate.
    pub opens: Option<OpenedGate>,
}

/// The resume token of a gate and the approvers whom the gate names. Each watcher gets the token only if they may
/// decide there. It exists in memory only.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OpenedGate {
    pub token: String,
    /// The named approvers; empty for the owner and the admins.
    pub approvers: Vec<String>,
    /// True if only admins may decide.
    pub is_for_admins: bool,
}

impl fmt::Debug for OpenedGate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenedGate").field("approvers", &self.approvers).finish_non_exhaustive()
    }
}

/// The result of reading a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next event.
    Event(Arc<StreamEvent>),
    /// The next event was evicted from the ring; the journal has it.
    Behind,
    /// No event yet.
    None,
    /// The execution has ended; no more events follow.
    Over,
}

/// The events of one execution.
#[derive(Debug)]
pub(crate) struct Feed {
    log: Mutex<Log>,
    grown: watch::Sender<u64>,
    /// Bytes in all rings.
    all: Arc<Rings>,
    /// The organization of the execution.
    organization: String,
}

/// Bytes in all rings of a node.
#[derive(Debug, Default)]
struct Rings(Mutex<RingBytes>);

#[derive(Debug, Default)]
struct RingBytes {
    all: usize,
    by_organization: HashMap<String, usize>,
}

impl Rings {
    /// Counts bytes of an organization. True if its rings must keep less.
    fn add(&self, organization: &str, bytes: usize) -> bool {
        let mut rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rings.all += bytes;
        let all = rings.all;
        let own = rings.by_organization.entry(organization.to_string()).or_default();
        *own += bytes;
        *own > RINGS_OF_ORGANIZATION_BYTES_MAX || all > RINGS_BYTES_MAX && *own > RINGS_OF_ORGANIZATION_BYTES_MIN
    }

    fn remove(&self, organization: &str, bytes: usize) {
        let mut rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rings.all = rings.all.saturating_sub(bytes);
        let Some(own) = rings.by_organization.get_mut(organization) else { return };
        *own = own.saturating_sub(bytes);
        if *own == 0 {
            rings.by_organization.remove(organization);
        }
    }
}

#[derive(Debug, Default)]
struct Log {
    ring: VecDeque<Arc<StreamEvent>>,
    /// Bytes of the events in the ring.
    bytes: usize,
    /// The last evicted event.
    evicted: Option<EventPosition>,
    is_over: bool,
}

impl Feed {
    /// A feed that adds its bytes to the shared count.
    fn new(all: Arc<Rings>, organization: String) -> Self {
        Self { log: Mutex::default(), grown: watch::Sender::new(0), all, organization }
    }

    /// The event after a position; the first one without a position.
    pub(crate) fn next(&self, after: Option<EventPosition>) -> Next {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.evicted.is_some_and(|evicted| after.is_none_or(|after| after < evicted)) {
            return Next::Behind;
        }
        let index = log.ring.partition_point(|event| after.is_some_and(|after| event.position <= after));
        match log.ring.get(index) {
            Some(event) => Next::Event(event.clone()),
            None if log.is_over => Next::Over,
            None => Next::None,
        }
    }

    /// Subscribes to growth of the feed.
    pub(crate) fn reader(&self) -> Reader {
        Reader(self.grown.subscribe())
    }

    fn push(&self, event: impl IntoIterator<Item = StreamEvent>, is_over: bool) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        for event in event {
            log.bytes += event.data.len();
            let is_crowded = self.all.add(&self.organization, event.data.len());
            log.ring.push_back(Arc::new(event));
            let bytes_max = if is_crowded { CROWDED_RING_BYTES_MAX } else { RING_BYTES_MAX };
            while log.ring.len() > RING || log.bytes > bytes_max && log.ring.len() > 1 {
                let Some(oldest) = log.ring.pop_front() else { break };
                log.evicted = Some(oldest.position);
                log.bytes -= oldest.data.len();
                self.all.remove(&self.organization, oldest.data.len());
            }
        }
        log.is_over = is_over;
        drop(log);
        self.grown.send_modify(|count| *count += 1);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let log = self.log.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.all.remove(&self.organization, log.bytes);
    }
}

/// Waits for growth of a feed.
pub(crate) struct Reader(watch::Receiver<u64>);

impl Reader {
    /// Waits until the feed has grown since the last call. False if it will not grow any more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The feeds of all watched executions.
#[derive(Debug)]
pub(crate) struct Feeds {
    feeds: Mutex<BTreeMap<ExecutionKey, Weak<Feed>>>,
    /// Number of watchers, by member and by organization.
    watchers: Arc<Mutex<HashMap<Watcher, usize>>>,
    /// Most watchers per member.
    watchers_max: usize,
    /// Bytes in all rings.
    bytes: Arc<Rings>,
}

/// Key of a watcher count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Watcher {
    Member(String, String),
    Organization(String),
}

/// Upper bound of the watchers of one member over all tokens, however many connections the server has.
const WATCHERS_MAX: usize = 4096;

/// Divisor: the fraction of all connections that the watchers of one member may use, half of the share of a token.
const WATCHERS_SHARES: usize = 8;

/// Watchers of an organization in multiples of those of a member: less than the half of all connections that an
/// organization may have.
const WATCHERS_OF_ORGANIZATION: usize = 3;

impl Feeds {
    /// An empty set, with bounds for the given number of connections.
    pub(crate) fn of_connections(connections_max: usize) -> Self {
        let watchers_max = (connections_max / WATCHERS_SHARES).clamp(1, WATCHERS_MAX);
        Self { feeds: Mutex::default(), watchers: Arc::default(), watchers_max, bytes: Arc::default() }
    }

    /// The feed of an execution, and true if it is new and must be filled. It counts for the organization of the current
    /// account, and exists as long as a watcher holds it.
    fn open(&self, key: ExecutionKey) -> (Arc<Feed>, bool) {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade) {
            return (feed, false);
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::new(self.bytes.clone(), current().key.clone()));
        feeds.insert(key, Arc::downgrade(&feed));
        (feed, true)
    }

    /// Reserves a place among the watchers of a member and of an organization.
    pub(crate) fn register(&self, caller: &Caller) -> Result<WatcherPermit> {
        let (organization, user) = (caller.organization.clone(), caller.user.clone());
        let own = [
            (Watcher::Member(organization.clone(), user), "member", self.watchers_max),
            (Watcher::Organization(organization), "organization", self.watchers_max * WATCHERS_OF_ORGANIZATION),
        ];
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        for (watcher, kind, most) in &own {
            if watchers.get(watcher).is_some_and(|count| count >= most) {
                let message = format!(
                    "This {kind} watches {most} executions already: end some of these event streams, or wait for fewer \
                     executions at a time."
                );
                return Err(Problem::new(Code::RateLimited, message));
            }
        }
        let of = own.map(|(watcher, ..)| watcher);
        of.iter().for_each(|watcher| *watchers.entry(watcher.clone()).or_default() += 1);
        Ok(WatcherPermit { all: self.watchers.clone(), of })
    }
}

/// A reserved place among the watchers. Dropping it releases the place.
pub(crate) struct WatcherPermit {
    all: Arc<Mutex<HashMap<Watcher, usize>>>,
    of: [Watcher; 2],
}

impl Drop for WatcherPermit {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for watcher in &self.of {
            let Some(count) = all.get_mut(watcher) else { continue };
            *count -= 1;
            if *count == 0 {
                all.remove(watcher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: u64, index: u32) -> StreamEvent {
        StreamEvent { position: EventPosition { sequence, index }, kind: "k".into(), data: "{}".into(), opens: None }
    }

    #[test]
    fn a_watcher_resumes_at_its_position_or_learns_of_evicted_events() {
        let feed = Feed::new(Arc::default(), "acme".into());
        assert_eq!(feed.next(None), Next::None);
        feed.push([event(0, 0), event(0, 1), event(2, 0)], false);
        let position = |text: &str| Some(text.parse::<EventPosition>().unwrap());
        assert_eq!(feed.next(None), Next::Event(Arc::new(event(0, 0))));
        assert_eq!(feed.next(position("0.0")), Next::Event(Arc::new(event(0, 1))));
        assert_eq!(feed.next(position("1.7")), Next::Event(Arc::new(event(2, 0))));
        assert_eq!(feed.next(position("2.0")), Next::None);
        feed.push((3..3 + RING as u64).map(|sequence| event(sequence, 0)), true);
        assert_eq!(feed.next(position("1.7")), Next::Behind);
        assert_eq!(feed.next(None), Next::Behind);
        assert_eq!(feed.next(position("2.0")), Next::Event(Arc::new(event(3, 0))), "the last that has left was seen");
        assert_eq!(feed.next(position(&format!("{}.0", 2 + RING))), Next::Over);
    }

    #[test]
    fn watchers_per_member_and_organization_are_bounded() {
        assert_eq!(Feeds::of_connections(usize::MAX).watchers_max, WATCHERS_MAX);
        let feeds = Feeds::of_connections(384);
        let of = |organization: &str, user: &str, token: &str| {
            feeds.register(&Caller { token: token.into(), ..Caller::example(organization, user) })
        };
        let code = |placed: Result<WatcherPermit>| placed.err().map(|problem| problem.code);
        let mut permits: Vec<_> = (0..48).map(|number| of("acme", "vic", &format!("t{number}")).unwrap()).collect();
        assert_eq!(code(of("acme", "vic", "new")), Some(Code::RateLimited), "whichever token it is");
        for user in ["u1", "u2"] {
            permits.extend((0..48).map(|_| of("acme", user, "t").unwrap()));
        }
        assert_eq!(code(of("acme", "ada", "t")), Some(Code::RateLimited), "three members fill an organization");
        let other = of("globex", "vic", "t").unwrap();
        permits.pop();
        permits.push(of("acme", "ada", "t").unwrap());
        drop((permits, other));
        assert!(feeds.watchers.lock().unwrap().is_empty(), "nothing is kept of those who have gone");
    }

    #[test]
    fn the_bytes_of_a_ring_are_bounded() {
        let of = |sequence: u64, bytes: usize| StreamEvent { data: "x".repeat(bytes), ..event(sequence, 0) };
        let (all, kept) = (Arc::<Rings>::default(), |feed: &Feed| feed.log.lock().unwrap().bytes);
        let (new, count) = (|name: &str| Feed::new(all.clone(), name.into()), || all.0.lock().unwrap().all);
        let feed = new("acme");
        feed.push((0..9).map(|sequence| of(sequence, RING_BYTES_MAX / 4)), false);
        assert_eq!((kept(&feed), count()), (RING_BYTES_MAX, RING_BYTES_MAX));
        assert_eq!(feed.next(None), Next::Behind);
        feed.push([of(9, RING_BYTES_MAX + 1)], false);
        assert_eq!(kept(&feed), RING_BYTES_MAX + 1, "the last one is kept whatever it has");
        drop(feed);
        // An organization with many rings keeps less in each, and other organizations keep theirs.
        let fill = |feed: &Feed| feed.push((0..64).map(|sequence| of(sequence, CROWDED_RING_BYTES_MAX / 2)), false);
        let full = |name: &str| {
            let feed = new(name);
            fill(&feed);
            feed
        };
        let many: Vec<_> = (0..500).map(|_| full("acme")).collect();
        assert!(count() <= RINGS_OF_ORGANIZATION_BYTES_MAX + 500 * CROWDED_RING_BYTES_MAX, "{}", count());
        let other = full("globex");
        assert_eq!(kept(&other), 64 * CROWDED_RING_BYTES_MAX / 2);
        let more: Vec<_> = (0..200).map(|number| full(&format!("o{}", number % 8))).collect();
        assert!(count() > RINGS_BYTES_MAX - RING_BYTES_MAX, "all together have as many as they may");
        let small = full("initech");
        assert_eq!(kept(&small), 64 * CROWDED_RING_BYTES_MAX / 2, "an organization with few rings keeps them");
        let crowded: Vec<_> = (0..20).map(|_| full("initech")).collect();
        assert!(crowded.iter().any(|feed| kept(feed) == CROWDED_RING_BYTES_MAX));
        drop((many, more, other, small, crowded));
        assert_eq!(count(), 0, "rings that are gone have no bytes");
        assert!(all.0.lock().unwrap().by_organization.is_empty());
    }

    #[test]
    fn only_positions_are_parsed() {
        assert_eq!("12.3".parse::<EventPosition>().unwrap().to_string(), "12.3");
        for wrong in ["", "12", "12.", ".3", "a.b", "-1.0", "1.2.3"] {
            assert!(wrong.parse::<EventPosition>().is_err(), "{wrong}");
        }
    }
}
