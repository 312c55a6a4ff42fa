//! The idempotency keys under which triggers start executions, so that a repetition finds the first execution.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::webhook::{Delivery, Verified};

/// Returns the UTC minute of a tick, as `2026-02-24T10:30`; `None` after the year 9999.
pub fn tick_bucket(tick_ms: u64) -> Option<String> {
    let tick = Timestamp::from_millisecond(i64::try_from(tick_ms).ok()?).ok()?;
    let utc = jiff::tz::Offset::UTC.to_datetime(tick);
    let (date, time) = (utc.date(), utc.time());
    Some(format!("{date}T{:02}:{:02}", time.hour(), time.minute()))
}

/// Returns the key of a tick of a schedule; `None` after the year 9999. Nodes that find the same tick get the same key.
pub fn schedule_key(trigger: &str, tick_ms: u64) -> Option<String> {
    Some(format!("schedule:{trigger}:{}", tick_bucket(tick_ms)?))
}

/// Returns the key of a delivery that no signature proves: by its id, otherwise by the SHA-256 of query and body in
/// hexadecimal.
pub fn delivery_key(trigger: &str, delivery: Option<&str>, query: &str, body: &[u8]) -> String {
    match delivery {
        Some(delivery) => format!("webhook:{trigger}:{delivery}"),
        None => content_key(trigger, &[query.as_bytes(), body]),
    }
}

/// Returns the key of a verified delivery: by its id if the signature covers the id, otherwise by the body and the time of the
/// signature, if it has one. The secret is not part of the key, since a sender that changes it may repeat a delivery. Nor is
/// the query, which no signature covers: a captured request could be repeated with another one.
pub fn verified_key(trigger: &str, verified: &Verified, body: &[u8]) -> String {
    match (&verified.delivery, verified.signed_at_ms) {
        (Some(Delivery { id, is_signed: true }), _) => format!("webhook:{trigger}:{id}"),
        (_, Some(signed_at_ms)) => content_key(trigger, &[b"signed at", &signed_at_ms.to_be_bytes(), body]),
        // As the key of a delivery without a query and a signature.
        (_, None) => content_key(trigger, &[b"", body]),
    }
}

/// Hashes each part with its length, so that no byte can move from one part to the next.
fn content_key(trigger: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("webhook:{trigger}:{hex}")
}

#[cfg(test)]
mod tests {
    use super::{delivery_key, schedule_key, verified_key};
    use crate::webhook::{Delivery, Verified};

    #[test]
    fn ticks_of_one_utc_minute_have_one_key() {
        let key = |tick_ms| schedule_key("t1", tick_ms).unwrap();
        assert_eq!(key(1_771_929_002_000), "schedule:t1:2026-02-24T10:30");
        assert_eq!(key(1_771_929_002_000), key(1_771_929_041_000));
        assert_eq!(key(1_771_929_060_000), "schedule:t1:2026-02-24T10:31");
        assert_eq!(schedule_key("t1", u64::MAX), None);
    }

    #[test]
    fn deliveries_without_an_id_are_keyed_by_query_and_body() {
        assert_eq!(delivery_key("t1", Some("d-1"), "s", b"body"), "webhook:t1:d-1");
        let key = |query, body: &[u8]| delivery_key("t1", None, query, body);
        assert_eq!(key("s", b"body"), key("s", b"body"));
        assert_ne!(key("s", b"body"), key("s", b"bodz"));
        assert_ne!(key("s", b"body"), key("t", b"body"));
        assert_ne!(key("sb", b"ody"), key("s", b"body"));
    }

    #[test]
    fn verified_deliveries_are_keyed_by_an_id_only_if_it_is_signed() {
        let key = |delivery: Option<(&str, bool)>, signed_at_ms: Option<u64>, body: &[u8]| {
            let delivery = delivery.map(|(id, is_signed)| Delivery { id: id.into(), is_signed });
            verified_key("t1", &Verified { secret: 0, signed_at_ms, delivery }, body)
        };
        assert_eq!(key(Some(("d-1", true)), Some(1), b"body"), "webhook:t1:d-1");
        assert_eq!(key(Some(("d-1", false)), None, b"body"), key(Some(("d-2", false)), None, b"body"));
        assert_eq!(key(Some(("d-1", false)), None, b"body"), key(None, None, b"body"));
        assert_ne!(key(None, None, b"body"), key(None, None, b"bodz"));
        assert_ne!(key(None, Some(1), b"body"), key(None, Some(2), b"body"));
        assert_ne!(key(None, Some(1), b"body"), key(None, None, b"body"));
    }
}
