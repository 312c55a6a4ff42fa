//! Numbers as databases keep them: with a sign, in 64 bits.

/// A number as a database keeps it; one above 2^63-1 as that, the largest there is.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number as it was before. No column that is read this way is ever negative.
pub(crate) fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
