//! Conversion of columns.

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use tokio_postgres::{Row, types::FromSql};

use super::error::Fault;
use crate::{Origin, sql::natural};

/// Reads a column of any type. A column of another type was not written by this program.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Fault> {
    row.try_get(at).map_err(|error| unreadable(row, at, &error.to_string()))
}

fn unreadable(row: &Row, at: usize, why: &str) -> Fault {
    let name = row.columns().get(at).map_or("", |column| column.name());
    Fault::Damaged(format!(
        "the column {name} of a row cannot be read: {why}; compare with the latest backup (of pg_dump or pg_basebackup)"
    ))
}

/// Reads bytes of a fixed length.
fn fixed<const LENGTH: usize>(row: &Row, at: usize) -> Result<[u8; LENGTH], Fault> {
    let bytes: &[u8] = column(row, at)?;
    bytes.try_into().map_err(|_| unreadable(row, at, &format!("it has {} bytes and not {LENGTH}", bytes.len())))
}

pub(super) fn key(row: &Row, at: usize) -> Result<ExecutionKey, Fault> {
    fixed(row, at).map(ExecutionKey)
}

pub(super) fn optional_key(row: &Row, at: usize) -> Result<Option<ExecutionKey>, Fault> {
    match column::<Option<&[u8]>>(row, at)? {
        None => Ok(None),
        Some(_) => key(row, at).map(Some),
    }
}

pub(super) fn hash(row: &Row, at: usize) -> Result<Hash, Fault> {
    fixed(row, at).map(Hash)
}

pub(super) fn optional_hash(row: &Row, at: usize) -> Result<Option<Hash>, Fault> {
    match column::<Option<&[u8]>>(row, at)? {
        None => Ok(None),
        Some(_) => hash(row, at).map(Some),
    }
}

pub(super) fn number(row: &Row, at: usize) -> Result<u64, Fault> {
    column(row, at).map(natural)
}

pub(super) fn optional_number(row: &Row, at: usize) -> Result<Option<u64>, Fault> {
    Ok(column::<Option<i64>>(row, at)?.map(natural))
}

/// Reads a number that was written with 32 bits.
pub(super) fn small_number(row: &Row, at: usize) -> Result<u32, Fault> {
    u32::try_from(number(row, at)?).map_err(|_| unreadable(row, at, "it is too large"))
}

/// Reads a text, which is stored as bytes.
pub(super) fn word(row: &Row, at: usize) -> Result<String, Fault> {
    optional_word(row, at)?.ok_or_else(|| unreadable(row, at, "it is missing"))
}

pub(super) fn optional_word(row: &Row, at: usize) -> Result<Option<String>, Fault> {
    let bytes: Option<Vec<u8>> = column(row, at)?;
    bytes.map(String::from_utf8).transpose().map_err(|_| unreadable(row, at, "it is not UTF-8"))
}

/// Returns the key by which a text is searched.
pub(super) fn word_key(word: &str) -> Hash {
    Hash::of(word.as_bytes())
}

/// Returns the key by which the start of an execution is searched. Missing parts differ from every present text, and no
/// two origins have the same key.
pub(super) fn start_key(of: &Origin<'_>, idempotency_key: &str) -> Hash {
    let length = |word: Option<&str>| word.map_or([0xff; 8], |word| (word.len() as u64).to_be_bytes());
    let bytes = |word: Option<&'_ str>| word.unwrap_or_default().as_bytes().to_vec();
    let Origin { organization, workflow_id, workflow } = *of;
    let named = workflow_id.or(workflow);
    let by_name = [&length(named)[..], &bytes(named), idempotency_key.as_bytes()];
    if organization.is_none() && workflow_id.is_none() {
        // The encoding of format 1. No text is long enough for its length to start like the other encoding.
        return Hash::of_parts(&by_name);
    }
    let kind = [0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, u8::from(workflow_id.is_some())];
    let of_whom = [&kind[..], &length(organization), &bytes(organization)];
    Hash::of_parts(&[&of_whom[..], &by_name[..]].concat())
}

/// Returns the key by which a name is searched, unique for each pair.
pub(super) fn name_key(field: &str, value: &str) -> Hash {
    Hash::of_parts(&[&(field.len() as u64).to_be_bytes(), field.as_bytes(), value.as_bytes()])
}
