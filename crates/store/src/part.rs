//! What follows from a part alone, for every store that keeps numbers as [`integer`] does.

use crate::{Part, number::integer};

/// Whether the frames follow the expected head one by one, up to the new head.
pub(crate) fn follows(part: &Part) -> bool {
    let first = part.expected.map_or(0, |expected| expected.sequence.saturating_add(1));
    let in_order = part.frames.iter().zip(first..).all(|(frame, sequence)| frame.sequence == sequence);
    in_order && part.frames.last().is_none_or(|frame| frame.sequence == part.head.sequence)
}

/// Whether the execution has ended with this part.
pub(crate) fn is_end(part: &Part) -> bool {
    part.change.as_ref().is_some_and(|change| change.completed_at.is_some())
        || part.row.as_ref().is_some_and(|row| part.expected.is_none() && row.completed_at.is_some())
}

/// When to look again, of which nothing is left at an end.
pub(crate) fn wake_at(part: &Part) -> Option<i64> {
    part.wake_at.filter(|_| !is_end(part)).map(integer)
}
