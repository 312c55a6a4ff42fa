//! Timestamps of the API: milliseconds inside, RFC 3339 outside.

use mainspring_kernel::time::{parse_rfc3339, rfc3339};

use crate::http::problem::{Problem, Result};

/// Formats milliseconds since 1970 as `2026-02-07T12:00:00.000Z`.
pub(crate) fn text(ms: u64) -> String {
    rfc3339(ms)
}

/// Parses a timestamp in a request field.
pub(crate) fn read(field: &str, text: &str) -> Result<u64> {
    parse_rfc3339(text).ok_or_else(|| Problem::field(field, "it must be a time like 2026-02-07T12:00:00Z"))
}
