//! Errors of executions in lists, read from the end of their journals only.

use mainspring_kernel::{
    failure::Failure,
    frame::Frame,
    record::{Ending, Record},
    value::Value,
};
use mainspring_store::{ExecutionRow, ReadLimit, Store};

use crate::http::problem::Result;

/// Frames and bytes at the end of a journal in which the error is searched. It is in the last frame, unless running
/// steps had to stop first.
const LAST: ReadLimit = ReadLimit { rows: 8, bytes: 512 * 1024 };

/// The error of a failed or cancelled execution as `{code, class, message, details}`, otherwise null; and about the
/// number of bytes that were read. Class and message are null if the error is not in the last frames.
pub(crate) fn error(store: &dyn Store, row: &ExecutionRow) -> Result<(Value, usize)> {
    let Some(code) = row.error.as_deref().filter(|_| row.completed_at.is_some()) else { return Ok((Value::Null, 0)) };
    if row.status == "cancelled" {
        return Ok((Failure::of_cancel(code).to_value(), 0));
    }
    let unknown = || Value::map([("code", code.into()), ("class", Value::Null), ("message", Value::Null)]);
    let Some(head) = store.head(row.key)? else { return Ok((unknown(), 0)) };
    let first = (head.head.sequence + 1).saturating_sub(LAST.rows as u64);
    let stored = store.frames(row.key, first, LAST)?;
    let bytes = stored.iter().map(mainspring_kernel::stored_frame::StoredFrame::byte_count).sum();
    // Unreadable frames do not fail the list; reading the execution itself reports them.
    let frames = stored.iter().rev().filter_map(|stored| Frame::read(stored).ok());
    let failure = frames.into_iter().find_map(|(frame, _)| frame.records.iter().rev().find_map(of_record));
    let is_it = |failure: &Failure| failure.code == code;
    Ok((failure.filter(is_it).map_or_else(unknown, |failure| failure.to_value()), bytes))
}

fn of_record(record: &Record) -> Option<Failure> {
    match record {
        Record::EndingBegun { ending: Ending::Failed { fault, .. }, .. } => Some(fault.failure()),
        _ => None,
    }
}
