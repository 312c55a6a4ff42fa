//! The idempotency keys under which triggers start executions, so that a repetition finds the first execution.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

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

/// Returns the key of a webhook delivery: by its id, otherwise by the SHA-256 of signature and body in hexadecimal.
pub fn delivery_key(trigger: &str, delivery: Option<&str>, signature: &str, body: &[u8]) -> String {
    if let Some(delivery) = delivery {
        return format!("webhook:{trigger}:{delivery}");
    }
    let hash = Sha256::new().chain_update(signature).chain_update(body).finalize();
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("webhook:{trigger}:{hex}")
}

#[cfg(test)]
mod tests {
    use super::{delivery_key, schedule_key};

    #[test]
    fn ticks_of_one_utc_minute_have_one_key() {
        let key = |tick_ms| schedule_key("t1", tick_ms).unwrap();
        assert_eq!(key(1_771_929_002_000), "schedule:t1:2026-02-24T10:30");
        assert_eq!(key(1_771_929_002_000), key(1_771_929_041_000));
        assert_eq!(key(1_771_929_060_000), "schedule:t1:2026-02-24T10:31");
        assert_eq!(schedule_key("t1", u64::MAX), None);
    }

    #[test]
    fn deliveries_without_an_id_are_keyed_by_signature_and_body() {
        assert_eq!(delivery_key("t1", Some("d-1"), "s", b"body"), "webhook:t1:d-1");
        let key = |signature, body: &[u8]| delivery_key("t1", None, signature, body);
        assert_eq!(key("s", b"body"), key("s", b"body"));
        assert_ne!(key("s", b"body"), key("s", b"bodz"));
        assert_ne!(key("s", b"body"), key("t", b"body"));
    }
}
