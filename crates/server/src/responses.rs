//! Responses in memory: they are made whole, and stay until the other end has taken them.
//!
//! An organization whose responses are not taken gets no further ones made. The bound is looked at before the work on a
//! request begins, as its response is known only afterwards: the requests that are being worked on can go beyond it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::body::Bytes;
use tokio::sync::Notify;

use crate::problem::{Code, Problem};

/// Bytes of responses that one organization may leave untaken before its next request waits: four pages of the largest size.
const ORGANIZATION_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The same of one address without a credential: what anybody may ask for has some hundred KiB.
const ADDRESS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of responses in memory, of all. Beyond it, only those wait that have some already.
const TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The responses in memory.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    accounts: Mutex<Accounts>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Accounts {
    total: usize,
    /// Bytes by organization, or by `address/…`.
    of: HashMap<String, usize>,
}

/// The bytes of one response, until it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct HeldResponse {
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    shared: Arc<Shared>,
    key: String,
    bytes: usize,
}

impl Responses {
    /// Whether an organization or an address may have another response made.
    pub(crate) fn has_room(&self, key: &str) -> bool {
        let max = if key.starts_with("address/") { ADDRESS_BYTES_MAX } else { ORGANIZATION_BYTES_MAX };
        let accounts = self.shared.accounts();
        let own = accounts.of.get(key).copied().unwrap_or(0);
        own < max && (own == 0 || accounts.total < TOTAL_BYTES_MAX)
    }

    /// Waits until an organization or an address may have another response made.
    pub(crate) async fn room(&self, key: &str) {
        loop {
            let freed = self.shared.freed.notified();
            tokio::pin!(freed);
            // Before the look, so that nothing that is freed after it is missed.
            freed.as_mut().enable();
            if self.has_room(key) {
                return;
            }
            freed.await;
        }
    }

    /// A part of a streamed response, which is counted until it is dropped.
    pub(crate) fn held(&self, key: &str, bytes: Vec<u8>) -> Bytes {
        let _held = self.hold(key, bytes.len());
        Bytes::from_owner(Part { bytes, _held })
    }

    /// Counts a response that was made.
    pub(crate) fn hold(&self, key: &str, bytes: usize) -> HeldResponse {
        let mut accounts = self.shared.accounts();
        accounts.total += bytes;
        *accounts.of.entry(key.to_string()).or_default() += bytes;
        drop(accounts);
        HeldResponse { _held: Arc::new(Held { shared: self.shared.clone(), key: key.to_string(), bytes }) }
    }
}

/// A part of a streamed response.
struct Part {
    bytes: Vec<u8>,
    _held: HeldResponse,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Shared {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut accounts = self.shared.accounts();
        accounts.total -= self.bytes;
        if let Some(own) = accounts.of.get_mut(&self.key) {
            *own -= self.bytes;
            if *own == 0 {
                accounts.of.remove(&self.key);
            }
        }
        drop(accounts);
        self.shared.freed.notify_waiters();
    }
}

/// The answer where responses are not taken in time.
pub(crate) fn untaken() -> Problem {
    let message = "Responses of this organization or address that were not read yet take all the memory they may: read \
                   them, or ask for smaller pages (`limit`), and try again.";
    Problem::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_leaves_responses_untaken_waits_and_nobody_else_does() {
        let responses = Responses::default();
        let own: Vec<_> = (0..4).map(|_| responses.hold("acme", ORGANIZATION_BYTES_MAX / 4)).collect();
        let is_free = |key: &str| responses.has_room(key);
        assert!(!is_free("acme") && is_free("globex"));
        let stranger = responses.hold("address/192.0.2.1", ADDRESS_BYTES_MAX);
        assert!(!is_free("address/192.0.2.1") && is_free("address/192.0.2.2"));
        let many: Vec<_> = (0..8).map(|n| responses.hold(&format!("o{n}"), ORGANIZATION_BYTES_MAX - 1)).collect();
        assert!(!is_free("o1") && is_free("new"), "the first response of an organization is always made");
        drop(many);
        let ((), ()) = tokio::join!(responses.room("acme"), async { drop(own) });
        drop(stranger);
        let part = responses.held("acme", vec![7; 9]);
        assert_eq!((part.len(), responses.shared.accounts().of["acme"]), (9, 9));
        drop(part);
        let accounts = responses.shared.accounts();
        assert!(accounts.total == 0 && accounts.of.is_empty(), "nothing is kept of those who have gone");
    }
}
