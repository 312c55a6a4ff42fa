//! What happens in an execution, event by event, for as many as want to see it.
//!
//! One task for each execution that is watched puts its events into a ring that all watchers read. What has left the ring
//! is in the journal, where every event has the same place: a watcher that comes back says the last one it has seen.

mod pump;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use mainspring_kernel::key::ExecutionKey;
use tokio::sync::watch;

use crate::{
    app::App,
    problem::{Answer, Code, Problem},
    slots::{current, on_account},
};

/// Events of an execution that are kept for those who read along.
const RING: usize = 1024;

/// The place of an event: which frame, and which of its events, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    sequence: u64,
    index: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.sequence, self.index)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (sequence, index) = text.split_once('.').ok_or(())?;
        Ok(Self { sequence: sequence.parse().map_err(drop)?, index: index.parse().map_err(drop)? })
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// Where it stands in the journal.
    pub place: Place,
    /// What it is, as `step.started`.
    pub kind: String,
    /// All of it, as JSON, for everybody who watches.
    pub data: String,
    /// What opens the gate, where it tells of one.
    pub opens: Option<Opens>,
}

/// What opens a gate, and whom the gate names: it is told to those who may decide there, each watcher looked at for
/// itself. It is in this process's memory alone.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Opens {
    /// The resume token.
    pub token: String,
    /// Who may decide; empty for the owner and the admins.
    pub approvers: Vec<String>,
}

impl fmt::Debug for Opens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Opens").field("approvers", &self.approvers).finish_non_exhaustive()
    }
}

/// What a watcher finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// The event after the last one.
    Told(Arc<Told>),
    /// It has left the ring: the journal has it.
    Behind,
    /// There is none yet.
    None,
    /// There will be none: the execution has ended.
    Over,
}

/// The events of one execution.
#[derive(Debug)]
pub(crate) struct Feed {
    log: Mutex<Log>,
    grown: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    ring: VecDeque<Arc<Told>>,
    /// The last event that has left the ring.
    dropped: Option<Place>,
    is_over: bool,
}

impl Feed {
    fn new() -> Self {
        Self { log: Mutex::default(), grown: watch::Sender::new(0) }
    }

    /// What stands after a place; after none, the first.
    pub(crate) fn next(&self, after: Option<Place>) -> Next {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.dropped.is_some_and(|dropped| after.is_none_or(|after| after < dropped)) {
            return Next::Behind;
        }
        let index = log.ring.partition_point(|told| after.is_some_and(|after| told.place <= after));
        match log.ring.get(index) {
            Some(told) => Next::Told(told.clone()),
            None if log.is_over => Next::Over,
            None => Next::None,
        }
    }

    /// Somebody who wants to know when there is more.
    pub(crate) fn reader(&self) -> Reader {
        Reader(self.grown.subscribe())
    }

    fn push(&self, told: impl IntoIterator<Item = Told>, is_over: bool) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.ring.extend(told.into_iter().map(Arc::new));
        while log.ring.len() > RING {
            log.dropped = log.ring.pop_front().map(|told| told.place);
        }
        log.is_over = is_over;
        drop(log);
        self.grown.send_modify(|count| *count += 1);
    }
}

/// Somebody who wants to know when there is more.
pub(crate) struct Reader(watch::Receiver<u64>);

impl Reader {
    /// Waits until something has happened since the last look. False if nothing will any more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The feeds that somebody reads.
#[derive(Debug)]
pub(crate) struct Feeds {
    feeds: Mutex<BTreeMap<ExecutionKey, Weak<Feed>>>,
    /// How many watch by which token.
    watching: Arc<Mutex<HashMap<String, usize>>>,
    watchers_max: usize,
}

/// Watchers by one token at a time, however many connections there are.
const WATCHERS_MAX: usize = 4096;

/// The part of all connections that the watchers of one token may take: 1 of so many, half of what the token has.
const WATCHERS_SHARES: usize = 8;

impl Feeds {
    /// No feeds yet, at a server with so many connections.
    pub(crate) fn of_connections(connections_max: usize) -> Self {
        let watchers_max = (connections_max / WATCHERS_SHARES).clamp(1, WATCHERS_MAX);
        Self { feeds: Mutex::default(), watching: Arc::default(), watchers_max }
    }

    /// The feed of an execution; it lives as long as somebody has it.
    pub(crate) fn of(&self, app: &App, key: ExecutionKey) -> Arc<Feed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::new());
        feeds.insert(key, Arc::downgrade(&feed));
        tokio::spawn(on_account(current(), pump::run(app.clone(), key, Arc::downgrade(&feed))));
        feed
    }

    /// A watcher's place among those of its token.
    pub(crate) fn place(&self, token: &str) -> Answer<Watching> {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let count = watching.entry(token.to_string()).or_default();
        if *count >= self.watchers_max {
            let most = self.watchers_max;
            let message =
                format!("This credential watches {most} executions already: end some of these event streams.");
            return Err(Problem::new(Code::RateLimited, message));
        }
        *count += 1;
        Ok(Watching { all: self.watching.clone(), token: token.to_string() })
    }
}

/// A watcher's place, until it is dropped.
pub(crate) struct Watching {
    all: Arc<Mutex<HashMap<String, usize>>>,
    token: String,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.token);
            }
        }
    }
}

pub(crate) use pump::catch_up;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sequence: u64, index: u32) -> Told {
        Told { place: Place { sequence, index }, kind: "k".into(), data: "{}".into(), opens: None }
    }

    #[test]
    fn a_watcher_goes_on_where_it_was_and_learns_when_it_is_behind() {
        let feed = Feed::new();
        assert_eq!(feed.next(None), Next::None);
        feed.push([told(0, 0), told(0, 1), told(2, 0)], false);
        let place = |text: &str| Some(text.parse::<Place>().unwrap());
        assert_eq!(feed.next(None), Next::Told(Arc::new(told(0, 0))));
        assert_eq!(feed.next(place("0.0")), Next::Told(Arc::new(told(0, 1))));
        assert_eq!(feed.next(place("1.7")), Next::Told(Arc::new(told(2, 0))));
        assert_eq!(feed.next(place("2.0")), Next::None);
        feed.push((3..3 + RING as u64).map(|sequence| told(sequence, 0)), true);
        assert_eq!(feed.next(place("1.7")), Next::Behind);
        assert_eq!(feed.next(None), Next::Behind);
        assert_eq!(feed.next(place("2.0")), Next::Told(Arc::new(told(3, 0))), "the last that has left was seen");
        assert_eq!(feed.next(place(&format!("{}.0", 2 + RING))), Next::Over);
    }

    #[test]
    fn the_watchers_of_one_token_leave_connections_to_others() {
        assert_eq!(Feeds::of_connections(usize::MAX).watchers_max, WATCHERS_MAX);
        let feeds = Feeds::of_connections(384);
        let mut held: Vec<_> = (0..48).map(|_| feeds.place("t1").unwrap()).collect();
        assert_eq!(feeds.place("t1").err().unwrap().code, Code::RateLimited);
        let other = feeds.place("t2").unwrap();
        held.pop();
        held.push(feeds.place("t1").unwrap());
        drop((held, other));
        assert!(feeds.watching.lock().unwrap().is_empty(), "nothing is kept of those who have gone");
    }

    #[test]
    fn places_are_read_back_and_nothing_else_is() {
        assert_eq!("12.3".parse::<Place>().unwrap().to_string(), "12.3");
        for wrong in ["", "12", "12.", ".3", "a.b", "-1.0", "1.2.3"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
