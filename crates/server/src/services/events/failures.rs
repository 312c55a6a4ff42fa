//! Failures of deliveries: the state of a subscription, its pause, and the list of failed deliveries.

use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditEntry, Change, EventCursor, ReadLimit};
use mainspring_triggers::{
    limits::{
        FAILED_DELIVERIES_MAX, FAILING_BEFORE_PAUSE_MS, FAILURES_BEFORE_PAUSE, FAILURES_BEFORE_SLOWDOWN,
        RETRY_ATTEMPTS_MIN, RETRY_LONGEST_MS, RETRY_WITHIN_MS,
    },
    webhook::retry_delay_ms,
};

use super::{cloud_event::CloudEvent, delivery::DeliveryFailure, journal_events::JournalEvent};
use crate::{
    app::App,
    auth::token::random,
    http::problem::Result,
    resources::{
        EventSubscription, FailedEvent, LastFailure, Stopped, SubscriptionState,
        repository::{Listing, Repository, apply, with_retries},
    },
};

/// Attempts of a write that conflicts with one of another task.
const TRIES: usize = 20;

/// The actor of a pause in the audit log. No member can have this name.
const SENDER: &str = "(events)";

/// The attempts of a delivery after one that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempted {
    pub attempts: u32,
    /// The time of the first failed attempt, in milliseconds since 1970.
    pub failing_since: u64,
    /// The time of the next attempt, in milliseconds since 1970.
    pub due_at: u64,
    /// True if the time for retries has passed.
    pub is_over: bool,
}

impl Attempted {
    /// Adds a failed attempt to those before. The key spreads the delays of deliveries that failed together.
    pub(crate) fn after(
        key: &str,
        (attempts, failing_since): (u32, Option<u64>),
        failure: &DeliveryFailure,
        now_ms: u64,
    ) -> Self {
        let (attempts, failing_since) = (attempts.saturating_add(1), failing_since.unwrap_or(now_ms).min(now_ms));
        let delay_ms = retry_delay_ms(key, attempts);
        let delay_ms = delay_ms.max(failure.retry_after_ms.unwrap_or(0).min(RETRY_LONGEST_MS));
        let due_at = now_ms.saturating_add(delay_ms);
        let is_over = attempts >= RETRY_ATTEMPTS_MIN && due_at > failing_since.saturating_add(RETRY_WITHIN_MS);
        Self { attempts, failing_since, due_at, is_over }
    }
}

/// The cursor after a failed attempt, and true if the time for retries has passed.
pub(crate) fn after_failure(read: &EventCursor, failure: &DeliveryFailure, now_ms: u64) -> (EventCursor, bool) {
    let key = format!("{}:{}", read.subscription, read.execution);
    let before = (read.attempts, read.failing_since);
    let Attempted { attempts, failing_since, due_at, is_over } = Attempted::after(&key, before, failure, now_ms);
    (EventCursor { attempts, due_at, failing_since: Some(failing_since), ..read.clone() }, is_over)
}

/// Adds a failed attempt to the state of a subscription. True if nothing more is to be sent now: it is paused, or it waits.
pub(crate) fn record_failure(
    app: &App,
    (organization, subscription): (&str, &str),
    event: &str,
    failure: &DeliveryFailure,
) -> Result<bool> {
    let (repository, now_ms) = (Repository::of(app.catalogue(), organization), app.now_ms());
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let Some(mut stored) = repository.get::<SubscriptionState>(subscription)? else {
            return Ok((Change::default(), true));
        };
        let state = &mut stored.body;
        let was_paused = state.paused.is_some();
        fail(state, subscription, event, failure, now_ms);
        let audit = state.paused.iter().filter(|_| !was_paused);
        let audit = audit.map(|paused| pause_entry(organization, subscription, paused)).collect();
        let stops = state.paused.is_some() || state.not_before > now_ms;
        let puts = vec![repository.put(subscription, &stored.body, stored.version)?];
        Ok((Change { puts, audit, sealing: *app.engine.key(), ..Change::default() }, stops))
    })
}

fn fail(state: &mut SubscriptionState, subscription: &str, event: &str, failure: &DeliveryFailure, now_ms: u64) {
    state.failures = state.failures.saturating_add(1);
    let since = *state.failing_since.get_or_insert(now_ms);
    state.last_failure = Some(LastFailure { at: now_ms, event: event.into(), error: failure.error.clone() });
    if state.failures >= FAILURES_BEFORE_SLOWDOWN {
        let slowed = state.failures - FAILURES_BEFORE_SLOWDOWN + 1;
        state.not_before = now_ms.saturating_add(retry_delay_ms(subscription, slowed));
    }
    if state.paused.is_some() {
        return;
    }
    let error = &failure.error;
    let reason = if failure.is_gone() {
        Some(("gone", "the endpoint answered 410 Gone: it wants no more deliveries".to_string()))
    } else if state.failures >= FAILURES_BEFORE_PAUSE && now_ms.saturating_sub(since) >= FAILING_BEFORE_PAUSE_MS {
        Some(("failing", format!("{} attempts in a row failed, the last with {error}", state.failures)))
    } else {
        None
    };
    state.paused = reason.map(|(code, reason)| stopped(code, &reason, now_ms));
}

fn stopped(code: &str, reason: &str, at: u64) -> Stopped {
    let message =
        format!("{reason}. Events wait: repair the endpoint, try it with a test delivery, and enable it again.");
    Stopped { code: code.into(), message, at }
}

fn pause_entry(organization: &str, subscription: &str, paused: &Stopped) -> AuditEntry {
    AuditEntry {
        organization: organization.into(),
        at: paused.at,
        actor: SENDER.into(),
        action: "event_subscription.pause".into(),
        target: subscription.into(),
        detail: cbor::encode(&Value::map([("code", paused.code.as_str().into())])),
    }
}

/// Forgets the failures of a subscription after a success. A member has to end a pause.
pub(crate) fn record_success(app: &App, (organization, subscription): (&str, &str)) -> Result<()> {
    let repository = Repository::of(app.catalogue(), organization);
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let Some(mut stored) = repository.get::<SubscriptionState>(subscription)? else {
            return Ok((Change::default(), ()));
        };
        (stored.body.failures, stored.body.failing_since, stored.body.not_before) = (0, None, 0);
        let puts = vec![repository.put(subscription, &stored.body, stored.version)?];
        Ok((Change { puts, ..Change::default() }, ()))
    })
}

/// Adds an event to the list of failed deliveries. False if the list is full; then the subscription is paused, and the
/// event stays in the queue.
pub(crate) fn give_up(
    app: &App,
    at: &EventCursor,
    event: &JournalEvent,
    (sent, execution_id): (&CloudEvent, &str),
    error: &str,
) -> Result<bool> {
    let repository = Repository::of(app.catalogue(), &at.organization);
    let (subscription, now_ms) = (at.subscription.as_str(), app.now_ms());
    if repository.get::<EventSubscription>(subscription)?.is_none() {
        // It was deleted with its list.
        return Ok(true);
    }
    let name = Some(("subscription", subscription.to_string()));
    let listing = Listing { name, most: ReadLimit::of(FAILED_DELIVERIES_MAX), ..Listing::default() };
    if repository.list::<FailedEvent>(listing)?.rows.len() >= FAILED_DELIVERIES_MAX {
        let reason = format!("{FAILED_DELIVERIES_MAX} failed deliveries are listed: send or remove them first");
        pause(app, (&at.organization, subscription), "failed_deliveries_full", &reason)?;
        return Ok(false);
    }
    let failed = FailedEvent {
        subscription: subscription.into(),
        event: sent.id.clone(),
        event_type: sent.event_type.clone(),
        execution: at.execution.to_string(),
        execution_id: execution_id.into(),
        position: (event.sequence, event.index),
        attempts: at.attempts,
        failing_since: at.failing_since.unwrap_or(now_ms),
        failed_at: now_ms,
        error: error.into(),
    };
    let id = format!("{now_ms:015}-{}", random(4)?);
    let puts = vec![repository.put(&id, &failed, 0)?];
    Ok(apply(app.engine.store().catalogue(), &Change { puts, ..Change::default() })?.is_ok())
}

fn pause(app: &App, (organization, subscription): (&str, &str), code: &str, reason: &str) -> Result<()> {
    let (repository, now_ms) = (Repository::of(app.catalogue(), organization), app.now_ms());
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let stored = repository.get::<SubscriptionState>(subscription)?;
        let Some(mut stored) = stored.filter(|stored| stored.body.paused.is_none()) else {
            return Ok((Change::default(), ()));
        };
        let paused = stopped(code, reason, now_ms);
        let audit = vec![pause_entry(organization, subscription, &paused)];
        stored.body.paused = Some(paused);
        let puts = vec![repository.put(subscription, &stored.body, stored.version)?];
        Ok((Change { puts, audit, sealing: *app.engine.key(), ..Change::default() }, ()))
    })
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::key::ExecutionKey;

    use super::*;

    fn failure(error: &str) -> DeliveryFailure {
        DeliveryFailure { error: error.into(), retry_after_ms: None }
    }

    fn cursor() -> EventCursor {
        EventCursor {
            subscription: "s".into(),
            execution: ExecutionKey([1; 16]),
            organization: "acme".into(),
            sequence: 3,
            position: 1,
            newest: 4,
            due_at: 0,
            attempts: 0,
            failing_since: None,
        }
    }

    #[test]
    fn an_event_is_abandoned_after_a_day_of_retries() {
        let (mut at, mut now_ms, mut attempts) = (cursor(), 1_000_000, 0);
        loop {
            let (next, is_over) = after_failure(&at, &failure("http_status:500"), now_ms);
            attempts += 1;
            assert_eq!((next.attempts, next.failing_since), (attempts, Some(1_000_000)));
            assert_eq!((next.sequence, next.position, next.newest), (3, 1, 4), "the event stays");
            assert!(next.due_at > now_ms);
            if is_over {
                break;
            }
            (now_ms, at) = (next.due_at, next);
        }
        assert!((20..50).contains(&attempts), "{attempts}");
        assert!(now_ms <= 1_000_000 + RETRY_WITHIN_MS && now_ms > 1_000_000 + RETRY_WITHIN_MS - 2 * RETRY_LONGEST_MS);
        // A pause of a week does not use up the attempts.
        let late = EventCursor { attempts: 2, failing_since: Some(0), ..cursor() };
        assert!(!after_failure(&late, &failure("http_status:500"), 7 * RETRY_WITHIN_MS).1);
    }

    #[test]
    fn an_endpoint_may_ask_for_a_longer_delay_within_the_bound() {
        let asked = |ms| DeliveryFailure { retry_after_ms: Some(ms), ..failure("http_status:429") };
        assert_eq!(after_failure(&cursor(), &asked(600_000), 10).0.due_at, 600_010);
        assert_eq!(after_failure(&cursor(), &asked(u64::MAX), 10).0.due_at, 10 + RETRY_LONGEST_MS);
        assert!(after_failure(&cursor(), &asked(0), 10).0.due_at >= 4_000);
    }

    #[test]
    fn a_subscription_is_slowed_then_paused_by_attempts_and_time() {
        let mut state = SubscriptionState::default();
        let mut count = |now_ms: u64| {
            fail(&mut state, "s", "e", &failure("http_connect_failed"), now_ms);
            (state.not_before > now_ms, state.paused.clone().map(|paused| paused.code))
        };
        let quick: Vec<_> = (0..30).map(|_| count(1_000)).collect();
        let slow = FAILURES_BEFORE_SLOWDOWN as usize;
        assert!(quick[..slow - 1].iter().all(|(waits, _)| !waits) && quick[slow - 1..].iter().all(|(waits, _)| *waits));
        assert!(quick.iter().all(|(_, paused)| paused.is_none()), "30 failures at once are one outage");
        assert_eq!(count(1_000 + FAILING_BEFORE_PAUSE_MS - 1).1, None);
        assert_eq!(count(1_000 + FAILING_BEFORE_PAUSE_MS).1.as_deref(), Some("failing"));
        let mut few = SubscriptionState::default();
        fail(&mut few, "s", "e", &failure("x"), 0);
        fail(&mut few, "s", "e", &failure("x"), 10 * FAILING_BEFORE_PAUSE_MS);
        assert_eq!(few.paused, None, "two failures are too few");
        fail(&mut few, "s", "e", &failure("http_status:410"), 0);
        assert_eq!(few.paused.unwrap().code, "gone");
    }
}
