//! Reports of refused requests: log lines, audit entries, and a metric. Lines and entries are limited, so that refused
//! clients cannot flood logs that others read; the metric counts all.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use axum::http::StatusCode;
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditEntry, Catalogue, Change};
use metrics::{Counter, counter, describe_counter};

use crate::{
    auth::caller::Caller,
    http::{
        problem::{Code, STATUSES},
        rate_limit::Clock,
        request_slots::Account,
    },
    resources::repository::apply,
};

/// Counter of refused requests.
const METRIC: &str = "mainspring_requests_refused_total";

/// Key under which log lines are limited: the token if it is genuine, otherwise the address. Ids of unverified tokens
/// are not used, because the client chooses them.
pub(crate) fn line_key(owner: Option<&CredentialOwner>, from: IpAddr) -> LineKey {
    match owner {
        Some(owner) => LineKey::Known(format!("token/{}", owner.token)),
        None => LineKey::Address(from.to_string()),
    }
}

/// The key of a request that was answered with 500 or 503: its account and status.
pub(crate) fn failure_key(account: &Account, status: StatusCode) -> LineKey {
    let key = format!("failed/{status}/{}", account.key);
    if account.is_anonymous() { LineKey::Address(key) } else { LineKey::Known(key) }
}

/// Log lines per minute and key: enough to recognize an attempt.
const LINES_PER_MINUTE: u32 = 10;

/// Keys with a limit of their own; further ones share a limit.
const KEYS_MAX: usize = 4_096;

const MINUTE_US: u64 = 60_000_000;

/// Audit entries about one token per [`INTERVAL_US`].
const ENTRIES_OF_TOKEN: u32 = 3;

/// Audit entries about one member with all tokens, so that creating tokens does not hide other members' entries.
const ENTRIES_OF_MEMBER: u32 = 6;

/// Audit entries about one organization: enough for five members at a time, and at most some dozens per hour in a log
/// that is kept permanently.
const ENTRIES_OF_ORGANIZATION: u32 = 30;

const _: () = assert!(ENTRIES_OF_TOKEN < ENTRIES_OF_MEMBER && 4 * ENTRIES_OF_MEMBER < ENTRIES_OF_ORGANIZATION);

const INTERVAL_US: u64 = 10 * MINUTE_US;

/// Organizations with an interval of their own; further ones share one. Expired intervals make room.
const ORGANIZATIONS_MAX: usize = 4_096;

/// Limits and counters: log lines per minute and key, audit entries per organization, and metrics by error code.
pub(crate) struct Refusals {
    clock: Clock,
    minute: Mutex<Minute>,
    intervals: Mutex<HashMap<String, AuditInterval>>,
    counters: [Counter; STATUSES.len()],
}

/// Audit entries of an organization in the current interval, and refusals since the last entry.
#[derive(Default)]
struct AuditInterval {
    began_us: u64,
    entries: u32,
    of_tokens: HashMap<String, u32>,
    of_members: HashMap<String, u32>,
    suppressed: u64,
}

impl AuditInterval {
    /// Counts one more entry if token, member and organization have room. The maps never have more keys than there are
    /// entries.
    fn take(&mut self, owner: &CredentialOwner) -> bool {
        let of = |counts: &HashMap<String, u32>, key: &str| counts.get(key).copied().unwrap_or(0);
        let has_room = self.entries < ENTRIES_OF_ORGANIZATION
            && of(&self.of_members, &owner.user) < ENTRIES_OF_MEMBER
            && of(&self.of_tokens, &owner.token) < ENTRIES_OF_TOKEN;
        if has_room {
            self.entries += 1;
            *self.of_members.entry(owner.user.clone()).or_default() += 1;
            *self.of_tokens.entry(owner.token.clone()).or_default() += 1;
        }
        has_room
    }
}

/// Owner of the credential of a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CredentialOwner {
    /// Id of the organization.
    pub(crate) organization: String,
    /// Id of the member.
    pub(crate) user: String,
    /// Id of the credential.
    pub(crate) token: String,
}

impl From<&Caller> for CredentialOwner {
    fn from(caller: &Caller) -> Self {
        let Caller { organization, user, token, .. } = caller.clone();
        Self { organization, user, token }
    }
}

/// A refused request, as it is recorded in the audit log.
#[derive(Debug, Clone)]
pub(crate) struct RefusedRequest {
    /// Organization and member of the credential.
    pub(crate) owner: CredentialOwner,
    /// `session.refused`, `access.refused` or `session.failed`.
    pub(crate) action: &'static str,
    /// Method and route.
    pub(crate) target: String,
    pub(crate) code: Code,
    /// Address of the client.
    pub(crate) from: Option<IpAddr>,
    /// The cause, if it adds to the code.
    pub(crate) reason: Option<String>,
}

#[derive(Default)]
struct Minute {
    began_us: u64,
    /// Lines per address. A client may have any number of addresses.
    of_addresses: HashMap<String, u32>,
    /// Lines per known credential and per account. A flood from many addresses does not use up their keys.
    of_known: HashMap<String, u32>,
}

/// Key under which log lines are limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineKey {
    /// The address of an unauthenticated client.
    Address(String),
    /// A known credential, or the account of a failed request.
    Known(String),
}

impl Refusals {
    /// Starts with empty limits.
    pub(crate) fn new(clock: Clock) -> Self {
        describe_counter!(METRIC, "Requests that were answered with an error, by its code.");
        let counters = STATUSES.map(|(code, _)| counter!(METRIC, "code" => code.label()));
        Self { clock, minute: Mutex::default(), intervals: Mutex::default(), counters }
    }

    /// Counts an error response.
    pub(crate) fn count(&self, code: Code) {
        if let Some(place) = STATUSES.iter().position(|(known, _)| *known == code) {
            self.counters[place].increment(1);
        }
    }

    /// `Some` if one more refusal gets an audit entry, with the number of refusals without an entry since the last one.
    fn entry(&self, owner: &CredentialOwner) -> Option<u64> {
        let (now, organization) = ((self.clock)(), owner.organization.as_str());
        let mut intervals = self.intervals.lock().unwrap_or_else(PoisonError::into_inner);
        if intervals.len() >= ORGANIZATIONS_MAX && !intervals.contains_key(organization) {
            intervals.retain(|_, interval| now.saturating_sub(interval.began_us) < INTERVAL_US);
        }
        let has_room = intervals.len() < ORGANIZATIONS_MAX || intervals.contains_key(organization);
        let interval = intervals.entry(if has_room { organization } else { "" }.to_string()).or_default();
        if interval.entries == 0 || now.saturating_sub(interval.began_us) >= INTERVAL_US {
            *interval = AuditInterval { began_us: now, suppressed: interval.suppressed, ..AuditInterval::default() };
        }
        if interval.take(owner) {
            return Some(std::mem::take(&mut interval.suppressed));
        }
        interval.suppressed = interval.suppressed.saturating_add(1);
        None
    }

    /// Counts a failed entry as a refusal without an entry.
    fn not_written(&self, organization: &str, suppressed: u64) {
        let mut intervals = self.intervals.lock().unwrap_or_else(PoisonError::into_inner);
        let key = if intervals.contains_key(organization) { organization } else { "" };
        if let Some(interval) = intervals.get_mut(key) {
            interval.suppressed = interval.suppressed.saturating_add(suppressed).saturating_add(1);
        }
    }

    /// Adds a refused request to the audit log of its organization, within the limits. Blocks.
    pub(crate) fn record(&self, catalogue: &dyn Catalogue, sealing: &[u8; 32], refused: &RefusedRequest) {
        let RefusedRequest { owner, action, target, code, from, reason } = refused;
        let Some(suppressed) = self.entry(owner) else { return };
        let mut detail = vec![
            ("by", Value::from(owner.token.as_str())),
            ("code", code.label().as_str().into()),
            ("address", from.map(|from| from.to_string()).into()),
        ];
        detail.extend(reason.as_deref().map(|reason| ("reason", reason.into())));
        detail.extend((suppressed > 0).then_some(("suppressed", suppressed.into())));
        let entry = AuditEntry {
            organization: owner.organization.clone(),
            at: now_ms(),
            actor: owner.user.clone(),
            action: (*action).into(),
            target: target.clone(),
            detail: cbor::encode(&Value::map(detail)),
        };
        let change = Change { audit: vec![entry], sealing: *sealing, ..Change::default() };
        if !matches!(apply(catalogue, &change), Ok(Ok(_))) {
            self.not_written(&owner.organization, suppressed);
        }
    }

    /// `Some` if one more refusal is logged; `Some(true)` for the last line of a minute.
    pub(crate) fn line(&self, key: &LineKey) -> Option<bool> {
        let now = (self.clock)();
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(minute.began_us) >= MINUTE_US {
            *minute = Minute { began_us: now, ..Minute::default() };
        }
        let (lines, key) = match key {
            LineKey::Address(key) => (&mut minute.of_addresses, key.as_str()),
            LineKey::Known(key) => (&mut minute.of_known, key.as_str()),
        };
        let has_room = lines.len() < KEYS_MAX || lines.contains_key(key);
        let count = lines.entry(if has_room { key } else { "" }.to_string()).or_default();
        *count = count.saturating_add(1);
        (*count <= LINES_PER_MINUTE).then_some(*count == LINES_PER_MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    #[test]
    fn log_lines_are_limited_per_key_and_in_total() {
        let now = Arc::new(AtomicU64::new(0));
        let clock = now.clone();
        let refusals = Refusals::new(Arc::new(move || clock.load(Ordering::Relaxed)));
        let of = |key: &str| LineKey::Address(key.into());
        let lines = |key: &str, count: usize| (0..count).filter(|_| refusals.line(&of(key)).is_some()).count();
        assert_eq!((lines("a", 100), lines("b", 3)), (10, 3));
        now.store(MINUTE_US, Ordering::Relaxed);
        let lines_logged: Vec<_> = (0..11).map(|_| refusals.line(&of("a"))).collect();
        assert_eq!((lines_logged[0], lines_logged[9], lines_logged[10]), (Some(false), Some(true), None));
        let flood: usize = (0..3 * KEYS_MAX).map(|number| lines(&format!("x{number}"), 1)).sum();
        assert!(flood < KEYS_MAX + LINES_PER_MINUTE as usize, "{flood}");
        assert_eq!(refusals.minute.lock().unwrap().of_addresses.len(), KEYS_MAX + 1);
        let known = |number: u32| refusals.line(&LineKey::Known(format!("token/{number}")));
        assert!((0..100).all(|number| known(number).is_some()), "a flood from addresses hides known credentials");
    }

    #[test]
    fn audit_entries_are_limited_and_the_next_one_counts_the_suppressed() {
        let now = Arc::new(AtomicU64::new(0));
        let clock = now.clone();
        let refusals = Refusals::new(Arc::new(move || clock.load(Ordering::Relaxed)));
        let entries = |organization: &str, user: &str, token: &str, count: usize| {
            let owner = CredentialOwner { organization: organization.into(), user: user.into(), token: token.into() };
            (0..count).filter_map(|_| refusals.entry(&owner)).collect::<Vec<_>>()
        };
        // Three of a token, six of its member, and room for other members.
        assert_eq!(entries("a", "vic", "t1", 100), [0; 3]);
        assert_eq!((entries("a", "vic", "t2", 100), entries("a", "vic", "t3", 9)), (vec![97, 0, 0], vec![]));
        assert_eq!((entries("a", "eve", "t4", 1), entries("b", "vic", "t1", 2)), (vec![106], vec![0; 2]));
        let others = (0..100).map(|number| entries("a", &format!("u{number}"), &format!("x{number}"), 1).len());
        assert_eq!(others.sum::<usize>(), 30 - 7);
        now.store(INTERVAL_US - 1, Ordering::Relaxed);
        assert!(entries("a", "new", "new", 1).is_empty());
        now.store(INTERVAL_US, Ordering::Relaxed);
        assert_eq!((entries("a", "vic", "t1", 2), entries("b", "vic", "t1", 1)), (vec![78, 0], vec![0]));
        let interval = |refusals: &Refusals| refusals.intervals.lock().unwrap()["a"].of_tokens.len();
        assert_eq!(interval(&refusals), 1, "the previous interval leaves nothing behind");
        refusals.not_written("a", 5);
        assert_eq!(entries("a", "vic", "t1", 1), [6], "a failed entry counts as suppressed");
        for number in 0..2 * ORGANIZATIONS_MAX {
            entries(&format!("x{number}"), "u", "t", 1);
        }
        assert_eq!(refusals.intervals.lock().unwrap().len(), ORGANIZATIONS_MAX + 1);
        now.store(3 * INTERVAL_US, Ordering::Relaxed);
        for number in 0..100 {
            assert_eq!(
                entries(&format!("late{number}"), "u", "t", 3).len(),
                3,
                "organizations of before take the room"
            );
        }
        assert_eq!(refusals.intervals.lock().unwrap().len(), 100);
    }

    #[test]
    fn log_lines_of_known_credentials_are_limited_by_token() {
        let (from, owner) = (IpAddr::from([192, 0, 2, 1]), |token: &str| CredentialOwner {
            organization: "a".into(),
            user: "vic".into(),
            token: token.into(),
        });
        let [one, two] = ["t1", "t2"].map(|token| line_key(Some(&owner(token)), from));
        assert!(one != two && one == line_key(Some(&owner("t1")), IpAddr::from([192, 0, 2, 2])));
        assert_eq!(line_key(None, from), LineKey::Address("192.0.2.1".into()));
    }

    #[test]
    fn errors_are_counted_by_code() {
        let recorder = metrics_util::debugging::DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            let refusals = Refusals::new(Arc::new(|| 0));
            [Code::Forbidden, Code::Forbidden, Code::RateLimited].into_iter().for_each(|code| refusals.count(code));
        });
        let mut counted: Vec<String> = Vec::new();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
            assert_eq!((key.key().name(), labels.len()), (METRIC, 1));
            if value != metrics_util::debugging::DebugValue::Counter(0) {
                counted.push(format!("{} {value:?}", labels[0]));
            }
        }
        counted.sort();
        assert_eq!(counted, ["forbidden Counter(2)", "rate_limited Counter(1)"]);
    }
}
