//! Conversion to the numbers of databases: signed, 64 bits.

/// Converts to a signed number; 2^63-1 for anything larger.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts back. Columns that are read this way are never negative.
pub(crate) fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
