//! A semaphore whose permits are shared fairly between keys, such as organizations.
//!
//! A plain semaphore is first come, first served: a busy key holds every permit, and all others wait behind its queue.
//! Here the free permits set the bound: a key gets another permit only while it holds fewer than are free. A single key
//! therefore gets at most half (rounded up), two keys a third each, and a new key finds a free permit until about
//! log2(permits) keys hold all they can get. This is the dynamic threshold by which switches share a packet buffer
//! (Choudhury and Hahne, 1998), with a factor of one. Waiting keys take turns, one permit a turn.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use tokio::sync::oneshot;

/// A semaphore that is shared fairly by key. Clones share the permits.
///
/// Waiting is first come, first served within a key, and in turns between keys. A waiting key without a permit is
/// served after at most as many releases as other keys wait.
#[derive(Debug)]
pub struct FairSemaphore<K: Ord + Clone> {
    shared: Arc<Mutex<Shared<K>>>,
}

impl<K: Ord + Clone> Clone for FairSemaphore<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

/// The number of permits, and the bounds of the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Permits in total, at least 1.
    pub permits: usize,
    /// Permits of one key, in addition to the bound set by the free permits. At least 1.
    pub per_key: usize,
    /// Waiting requests of all keys.
    pub waiting: usize,
    /// Waiting requests of one key.
    pub waiting_per_key: usize,
}

impl Bounds {
    /// Permits without further bounds by key or of the queue: for callers that are bounded themselves.
    pub const fn of(permits: usize) -> Self {
        Self { permits, per_key: usize::MAX, waiting: usize::MAX, waiting_per_key: usize::MAX }
    }
}

/// The queue is full: the request is refused, and can be repeated later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl fmt::Display for QueueFull {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("too many requests wait already: try again later")
    }
}

impl std::error::Error for QueueFull {}

/// A permit. Dropping it serves the next request.
#[derive(Debug)]
pub struct FairPermit<K: Ord + Clone> {
    shared: Arc<Mutex<Shared<K>>>,
    key: K,
}

/// A waiting request. Dropping it leaves the queue, or returns the permit if it was granted already.
#[derive(Debug)]
pub struct Acquire<K: Ord + Clone> {
    shared: Arc<Mutex<Shared<K>>>,
    /// Key and number of the request. `None` once it is a permit.
    waits: Option<(K, u64)>,
    granted: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Shared<K> {
    bounds: Bounds,
    held: usize,
    waiting: usize,
    requests: u64,
    /// Keys that hold a permit or wait for one, and no others.
    keys: BTreeMap<K, Entry>,
    /// Waiting keys, in the order of their turns.
    turns: VecDeque<K>,
}

#[derive(Debug, Default)]
struct Entry {
    held: usize,
    /// Waiting requests by number, so that the oldest is first and any can leave.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

impl<K: Ord + Clone> FairSemaphore<K> {
    /// A semaphore with all permits free. 0 permits count as 1, since no request could be served otherwise.
    pub fn new(bounds: Bounds) -> Self {
        let bounds = Bounds { permits: bounds.permits.max(1), per_key: bounds.per_key.max(1), ..bounds };
        let (keys, turns) = (BTreeMap::new(), VecDeque::new());
        let shared = Shared { bounds, held: 0, waiting: 0, requests: 0, keys, turns };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Returns a permit if the key may have one and none of its requests waits.
    pub fn try_acquire(&self, key: K) -> Option<FairPermit<K>> {
        let mut shared = lock(&self.shared);
        let waits = shared.keys.get(&key).is_some_and(|entry| !entry.waiting.is_empty());
        if waits || !shared.may_have(&key) {
            return None;
        }
        shared.grant(&key);
        drop(shared);
        Some(FairPermit { shared: self.shared.clone(), key })
    }

    /// Requests a permit. Its position in the queue is taken now, and not at the first poll.
    ///
    /// # Errors
    /// Fails at once if the queue of the key, or of all keys, is full.
    pub fn acquire(&self, key: K) -> Result<Acquire<K>, QueueFull> {
        let (sender, granted) = oneshot::channel();
        let mut shared = lock(&self.shared);
        let waiting_of_key = shared.keys.get(&key).map_or(0, |entry| entry.waiting.len());
        if waiting_of_key == 0 && shared.may_have(&key) {
            shared.grant(&key);
            let _ = sender.send(());
        } else {
            if shared.waiting >= shared.bounds.waiting || waiting_of_key >= shared.bounds.waiting_per_key {
                return Err(QueueFull);
            }
            if waiting_of_key == 0 {
                shared.turns.push_back(key.clone());
            }
            shared.waiting += 1;
            let number = shared.requests;
            shared.keys.entry(key.clone()).or_default().waiting.insert(number, sender);
        }
        let number = shared.requests;
        shared.requests += 1;
        drop(shared);
        Ok(Acquire { shared: self.shared.clone(), waits: Some((key, number)), granted })
    }

    /// The number of free permits.
    pub fn free(&self) -> usize {
        lock(&self.shared).free()
    }

    /// Changes the number of permits. Surplus permits are removed as they are returned.
    pub fn resize(&self, permits: usize) {
        let mut shared = lock(&self.shared);
        shared.bounds.permits = permits.max(1);
        let served = shared.serve();
        drop(shared);
        answer(served);
    }

    /// The number of permits of a key.
    pub fn count_of(&self, key: &K) -> usize {
        lock(&self.shared).keys.get(key).map_or(0, |entry| entry.held)
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        lock(&self.shared).waiting
    }
}

impl<K: Ord + Clone> Shared<K> {
    fn free(&self) -> usize {
        self.bounds.permits.saturating_sub(self.held)
    }

    /// True if a key may have another permit.
    fn may_have(&self, key: &K) -> bool {
        let held = self.keys.get(key).map_or(0, |entry| entry.held);
        held < self.free() && held < self.bounds.per_key
    }

    fn grant(&mut self, key: &K) {
        self.held += 1;
        self.keys.entry(key.clone()).or_default().held += 1;
    }

    /// Grants all possible permits, in turns. The senders are used after the lock is released.
    fn serve(&mut self) -> Vec<oneshot::Sender<()>> {
        let mut served = Vec::new();
        // A key without a permit may always have a free one, so the search skips at most as many keys as there are
        // permits.
        while let Some(place) = self.turns.iter().position(|key| self.may_have(key)) {
            let Some(key) = self.turns.remove(place) else { break };
            self.grant(&key);
            let Some(entry) = self.keys.get_mut(&key) else { break };
            served.extend(entry.waiting.pop_first().map(|(_, sender)| sender));
            self.waiting -= 1;
            if !entry.waiting.is_empty() {
                self.turns.push_back(key);
            }
        }
        served
    }

    fn release(&mut self, key: &K) -> Vec<oneshot::Sender<()>> {
        self.held -= 1;
        if let Some(entry) = self.keys.get_mut(key) {
            entry.held -= 1;
        }
        let served = self.serve();
        self.forget(key);
        served
    }

    /// Removes a request from its queue. False if it left the queue already.
    fn withdraw(&mut self, key: &K, number: u64) -> bool {
        let Some(entry) = self.keys.get_mut(key) else { return false };
        if entry.waiting.remove(&number).is_none() {
            return false;
        }
        self.waiting -= 1;
        if entry.waiting.is_empty() {
            self.turns.retain(|waiting| waiting != key);
        }
        self.forget(key);
        true
    }

    fn forget(&mut self, key: &K) {
        if self.keys.get(key).is_some_and(|entry| entry.held == 0 && entry.waiting.is_empty()) {
            self.keys.remove(key);
        }
    }
}

impl<K: Ord + Clone> Drop for FairPermit<K> {
    fn drop(&mut self) {
        let served = lock(&self.shared).release(&self.key);
        answer(served);
    }
}

impl<K: Ord + Clone> Drop for Acquire<K> {
    fn drop(&mut self) {
        let Some((key, number)) = self.waits.take() else { return };
        let mut shared = lock(&self.shared);
        let served = if shared.withdraw(&key, number) { Vec::new() } else { shared.release(&key) };
        drop(shared);
        answer(served);
    }
}

impl<K: Ord + Clone + Unpin> Future for Acquire<K> {
    type Output = FairPermit<K>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FairPermit<K>> {
        let this = &mut *self;
        match Pin::new(&mut this.granted).poll(context) {
            Poll::Ready(Ok(())) => match this.waits.take() {
                Some((key, _)) => Poll::Ready(FairPermit { shared: this.shared.clone(), key }),
                None => Poll::Pending,
            },
            // The sender is in the queue that this request shares, so it is not dropped before it has sent.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

fn answer(served: Vec<oneshot::Sender<()>>) {
    for sender in served {
        // A request that was dropped in the meantime returns its permit itself.
        let _ = sender.send(());
    }
}

fn lock<K>(shared: &Mutex<Shared<K>>) -> MutexGuard<'_, Shared<K>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
