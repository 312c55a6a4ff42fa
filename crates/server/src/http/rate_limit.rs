//! Rate limits of requests: one token bucket per credential, and one per client address for unauthenticated requests.
//!
//! A bucket is one number, as in the Generic Cell Rate Algorithm (ATM Forum, TM 4.0): the time at which it is full
//! again. Full buckets are not stored, so that idle clients cost nothing. At most [`BUCKETS_MAX`] of a kind exist, and
//! further clients share one. The library for this, `governor`, has no such bound, and would add a dozen crates for one
//! line of arithmetic.

use std::{
    collections::HashMap,
    hash::Hash as Key,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use axum::http::HeaderMap;
use ipnet::IpNet;
use mainspring_kernel::hash::Hash;

use crate::http::problem::{Code, Problem, Result};

/// Capacity of a bucket, in seconds of its rate: a page of a console or a batch of starts sends its requests at once.
pub const BURST_SECONDS: u64 = 10;

/// Highest rate. Above it, the cost of a request is less than a microsecond, the unit of the buckets.
pub const PER_SECOND_MAX: u32 = 100_000;

/// Most buckets of one kind: some megabytes, and more than one node has callers.
const BUCKETS_MAX: usize = 65_536;

/// Microseconds for which a credential counts as recently valid.
const RECENTLY_VALID_US: u64 = 600 * SECOND_US;

const SECOND_US: u64 = 1_000_000;

/// Rate limits, and the proxies whose forwarded addresses are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates {
    /// Requests per second of one credential; 0 for no limit.
    pub per_token: u32,
    /// Unauthenticated requests per second of one address; 0 for no limit.
    pub per_address: u32,
    /// Proxies whose `X-Forwarded-For` is trusted. Other senders could claim any address.
    pub trusted_proxies: Vec<IpNet>,
}

impl Default for Rates {
    /// 1,000 per second and credential suffice for a busy system that starts work, and one node can serve several of
    /// them. 10 per second and address make guessing slow, and suffice for an office behind one address.
    fn default() -> Self {
        Self { per_token: 1_000, per_address: 10, trusted_proxies: Vec::new() }
    }
}

/// Monotonic microseconds since an arbitrary time.
pub(crate) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock of the process.
pub(crate) fn clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX))
}

/// State of a bucket after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Capacity of the bucket, in requests.
    pub limit: u64,
    /// Requests left.
    pub remaining: u64,
    /// Seconds until the bucket is full again.
    pub reset_s: u64,
    /// Seconds until the next request is allowed; 0 if this one is.
    pub wait_s: u64,
}

impl Verdict {
    /// No limit.
    pub(crate) const NONE: Self = Self { limit: 0, remaining: 0, reset_s: 0, wait_s: 0 };

    /// Returns an error beside the verdict if the request is over the limit. `subject` names the limited subject.
    pub(crate) fn checked(self, subject: &str) -> (Self, Result<()>) {
        let refused = || {
            let message = format!("Too many requests {subject}: there is room for the next in {} s.", self.wait_s);
            Problem::new(Code::RateLimited, message).with(serde_json::json!({ "retryAfterSeconds": self.wait_s }))
        };
        (self, if self.wait_s == 0 { Ok(()) } else { Err(refused()) })
    }

    /// Adds the rate limit headers (draft-ietf-httpapi-ratelimit-headers-07) and `Retry-After` (RFC 9110).
    pub(crate) fn set_headers(&self, headers: &mut HeaderMap) {
        if self.limit == 0 {
            return;
        }
        let fields = [
            ("ratelimit-limit", self.limit),
            ("ratelimit-remaining", self.remaining),
            ("ratelimit-reset", self.reset_s),
        ];
        let wait = (self.wait_s > 0).then_some(("retry-after", self.wait_s));
        fields.into_iter().chain(wait).for_each(|(name, value)| drop(headers.insert(name, value.into())));
    }
}

/// The rate limits of a node.
pub(crate) struct Limiter {
    rates: Rates,
    clock: Clock,
    callers: Mutex<Buckets<String>>,
    anonymous: Mutex<Buckets<IpAddr>>,
    recently_valid: Mutex<Bounded<Hash>>,
}

impl Limiter {
    /// Starts with full buckets.
    pub(crate) fn new(rates: Rates, clock: Clock) -> Self {
        let (callers, anonymous) = (Buckets::new(rates.per_token), Buckets::new(rates.per_address));
        let recently_valid = Mutex::new(Bounded::default());
        Self { rates, clock, callers: Mutex::new(callers), anonymous: Mutex::new(anonymous), recently_valid }
    }

    /// Charges a request to its credential.
    pub(crate) fn caller(&self, token: &str) -> Verdict {
        lock(&self.callers).take(token.to_string(), (self.clock)())
    }

    /// Charges a request to its address, if it is unauthenticated or before its credential is looked up.
    pub(crate) fn anonymous(&self, address: IpAddr) -> Verdict {
        lock(&self.anonymous).take(address, (self.clock)())
    }

    /// Records that a credential from an address is valid, and refunds the charge to the address.
    pub(crate) fn record_valid(&self, address: IpAddr, credential: Hash, was_charged: bool) {
        let now = (self.clock)();
        if was_charged {
            lock(&self.anonymous).refund(&address, now);
        }
        lock(&self.recently_valid).set(credential, now + RECENTLY_VALID_US, now);
    }

    /// Refunds a charge to an address, for a request that proved in another way that it is welcome.
    pub(crate) fn refund_anonymous(&self, address: IpAddr) {
        lock(&self.anonymous).refund(&address, (self.clock)());
    }

    /// True if a credential was valid recently. It is looked up even if its address is over the limit; otherwise a
    /// guessing client could lock out all others behind the same address.
    pub(crate) fn was_valid(&self, credential: &Hash) -> bool {
        lock(&self.recently_valid).get(credential) > (self.clock)()
    }

    /// Removes a credential that is no longer valid.
    pub(crate) fn forget(&self, credential: &Hash) {
        lock(&self.recently_valid).until.remove(credential);
    }

    /// True if a peer is a trusted proxy.
    pub(crate) fn is_proxy(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.rates.trusted_proxies.iter().any(|net| net.contains(&peer))
    }

    /// The client address of a request: the peer, or the address that trusted proxies forward.
    pub(crate) fn address<'a>(&self, peer: IpAddr, forwarded: impl IntoIterator<Item = &'a str>) -> IpAddr {
        let is_trusted = |address: &IpAddr| self.rates.trusted_proxies.iter().any(|net| net.contains(address));
        let mut address = peer.to_canonical();
        let hops: Vec<&str> = forwarded.into_iter().flat_map(|line| line.split(',')).collect();
        // From the last entry backward: each proxy appends the address of its client.
        for hop in hops.iter().rev() {
            if !is_trusted(&address) {
                break;
            }
            let Ok(before) = hop.trim().parse::<IpAddr>() else { break };
            address = before.to_canonical();
        }
        client_network(address)
    }
}

/// Parses the address of a proxy or a range of them: `192.0.2.1`, `10.0.0.0/8`.
pub fn proxy(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.to_canonical().into()))
}

/// Groups IPv6 addresses by /64, since one client owns all addresses of it.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Buckets of one rate.
struct Buckets<K> {
    /// Microseconds that one request costs; 0 for no limit.
    step_us: u64,
    /// Capacity of a bucket in microseconds.
    window_us: u64,
    /// Time at which each bucket is full again.
    full_at: Bounded<K>,
    /// Time at which the bucket shared by further clients is full again.
    shared_full_at: u64,
}

impl<K: Key + Eq> Buckets<K> {
    fn new(per_second: u32) -> Self {
        let step_us = if per_second == 0 { 0 } else { SECOND_US / u64::from(per_second.min(PER_SECOND_MAX)) };
        Self { step_us, window_us: BURST_SECONDS * SECOND_US, full_at: Bounded::default(), shared_full_at: 0 }
    }

    fn take(&mut self, key: K, now: u64) -> Verdict {
        let Self { step_us, window_us, .. } = *self;
        if step_us == 0 {
            return Verdict::NONE;
        }
        let shares = !self.full_at.has_room(&key, now);
        let full_at = if shares { self.shared_full_at } else { self.full_at.get(&key) }.max(now);
        let after = full_at + step_us;
        let verdict = |full_at: u64, wait_us: u64| Verdict {
            limit: window_us / step_us,
            remaining: window_us.saturating_sub(full_at - now) / step_us,
            reset_s: (full_at - now).div_ceil(SECOND_US),
            wait_s: wait_us.div_ceil(SECOND_US),
        };
        if after > now + window_us {
            return verdict(full_at, after - now - window_us);
        }
        if shares {
            self.shared_full_at = after;
        } else {
            self.full_at.set(key, after, now);
        }
        verdict(after, 0)
    }

    fn refund(&mut self, key: &K, now: u64) {
        if let Some(full_at) = self.full_at.until.get_mut(key) {
            *full_at = full_at.saturating_sub(self.step_us).max(now);
        }
    }
}

/// At most [`BUCKETS_MAX`] times by key. Times in the past are removed.
struct Bounded<K> {
    until: HashMap<K, u64>,
    swept_at: u64,
}

impl<K> Default for Bounded<K> {
    fn default() -> Self {
        Self { until: HashMap::new(), swept_at: 0 }
    }
}

impl<K: Key + Eq> Bounded<K> {
    /// The time of a key; 0 if there is none.
    fn get(&self, key: &K) -> u64 {
        self.until.get(key).copied().unwrap_or(0)
    }

    /// True if a key is stored or can be added.
    fn has_room(&mut self, key: &K, now: u64) -> bool {
        let is_full = self.until.len() >= BUCKETS_MAX;
        let sweep_us = if is_full { SECOND_US } else { BURST_SECONDS * SECOND_US };
        // Sweeps at most once per interval, independent of the number of requests.
        if now.saturating_sub(self.swept_at) >= sweep_us {
            self.until.retain(|_, until| *until > now);
            self.swept_at = now;
        }
        self.until.len() < BUCKETS_MAX || self.until.contains_key(key)
    }

    fn set(&mut self, key: K, until: u64, now: u64) {
        if self.has_room(&key, now) {
            self.until.insert(key, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Case {
        limiter: Limiter,
        now: Arc<AtomicU64>,
    }

    fn case(per_token: u32, per_address: u32) -> Case {
        let now = Arc::new(AtomicU64::new(0));
        let clock = now.clone();
        let rates = Rates { per_token, per_address, trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()] };
        let limiter = Limiter::new(rates, Arc::new(move || clock.load(Ordering::Relaxed)));
        Case { limiter, now }
    }

    impl Case {
        fn wait(&self, ms: u64) {
            self.now.fetch_add(ms * 1000, Ordering::Relaxed);
        }

        fn accepted(&self, token: &str, requests: u64) -> u64 {
            (0..requests).filter(|_| self.limiter.caller(token).wait_s == 0).count() as u64
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_key_has_a_burst_and_then_the_rate() {
        let case = case(5, 0);
        assert_eq!(case.accepted("ada", 1000), 5 * BURST_SECONDS);
        assert_eq!(case.accepted("bob", 3), 3);
        let refused = case.limiter.caller("ada");
        assert_eq!(refused, Verdict { limit: 50, remaining: 0, reset_s: 10, wait_s: 1 });
        case.wait(199);
        assert_eq!(case.accepted("ada", 10), 0);
        case.wait(1);
        assert_eq!(case.accepted("ada", 10), 1);
        case.wait(2_000);
        assert_eq!(case.accepted("ada", 100), 10);
        case.wait(3_600_000);
        assert_eq!(case.accepted("ada", 1000), 50, "however long it was idle, a bucket has one burst");
    }

    #[test]
    fn a_request_is_accepted_after_the_announced_wait() {
        for per_second in [1, 3, 7, 100, PER_SECOND_MAX] {
            let case = case(per_second, 0);
            let more_than_a_burst = 0..=u64::from(per_second) * BURST_SECONDS;
            let refused = more_than_a_burst.map(|_| case.limiter.caller("ada")).last().unwrap();
            assert!(refused.wait_s > 0, "{per_second}: {refused:?}");
            case.wait(refused.wait_s * 1000);
            assert_eq!(case.limiter.caller("ada").wait_s, 0, "{per_second}: {refused:?}");
        }
    }

    #[test]
    fn a_rate_of_zero_limits_nothing() {
        let case = case(0, 0);
        assert_eq!(case.accepted("ada", 100_000), 100_000);
        assert!(lock(&case.limiter.callers).full_at.until.is_empty());
    }

    #[test]
    fn idle_buckets_are_removed_and_their_number_is_bounded() {
        let case = case(1, 1);
        for number in 0..3 * BUCKETS_MAX as u32 {
            case.limiter.anonymous(IpAddr::from(number.to_be_bytes()));
        }
        let kept = || lock(&case.limiter.anonymous).full_at.until.len();
        assert_eq!(kept(), BUCKETS_MAX);
        // Further addresses share one empty bucket: the flood makes no room for itself.
        assert!(case.limiter.anonymous(address("203.0.113.9")).wait_s > 0);
        assert_eq!(case.limiter.anonymous(address("0.0.0.1")).wait_s, 0, "a stored bucket is still available");
        case.wait(20_000);
        case.limiter.anonymous(address("203.0.113.9"));
        assert_eq!(kept(), 1);
    }

    #[test]
    fn valid_credentials_are_refunded_and_remembered() {
        let (case, here, credential) = (case(1, 1), address("192.0.2.1"), Hash::of(b"ada"));
        for _ in 0..100 {
            assert_eq!(case.limiter.anonymous(here).wait_s, 0);
            case.limiter.record_valid(here, credential, true);
        }
        assert_eq!((0..100).filter(|_| case.limiter.anonymous(here).wait_s == 0).count() as u64, BURST_SECONDS);
        assert!(case.limiter.was_valid(&credential) && !case.limiter.was_valid(&Hash::of(b"guess")));
        case.limiter.forget(&credential);
        assert!(!case.limiter.was_valid(&credential));
        case.limiter.record_valid(here, credential, true);
        case.wait(600_000);
        assert!(!case.limiter.was_valid(&credential));
    }

    #[test]
    fn only_charges_are_refunded() {
        let (case, here, credential) = (case(1, 1), address("192.0.2.1"), Hash::of(b"ada"));
        let room = || (0..100).filter(|_| case.limiter.anonymous(here).wait_s == 0).count() as u64;
        assert_eq!(room(), BURST_SECONDS);
        // A cached credential has spent nothing of its address, so that guessing from there stays slow.
        for _ in 0..50 {
            case.limiter.record_valid(here, credential, false);
        }
        assert_eq!(room(), 0);
        // A refused request has spent nothing either.
        case.wait(1_000);
        assert_eq!(room(), 1);
    }

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        let case = case(1, 1);
        let of =
            |peer: &str, forwarded: &[&str]| case.limiter.address(address(peer), forwarded.iter().copied()).to_string();
        assert_eq!(of("192.0.2.1", &["198.51.100.1"]), "192.0.2.1", "anybody can send the header");
        assert_eq!(of("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(
            of("10.0.0.1", &["203.0.113.7, 198.51.100.1"]),
            "198.51.100.1",
            "what it adds itself is on the left"
        );
        assert_eq!(of("10.0.0.1", &["203.0.113.7, 198.51.100.1", "10.0.0.2"]), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &["198.51.100.1, unknown"]), "10.0.0.1");
        assert_eq!(of("::ffff:10.0.0.1", &["::ffff:198.51.100.1"]), "198.51.100.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6", &[]), "2001:db8:1:2::");
    }
}
