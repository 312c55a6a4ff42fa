//! Properties of a part alone, for the stores that convert numbers with [`integer`].

use crate::{Part, sql::integer};

/// Returns whether the frames follow the expected head without gaps, up to the new head.
pub(crate) fn follows(part: &Part) -> bool {
    let first = part.expected.map_or(0, |expected| expected.sequence.saturating_add(1));
    let in_order = part.frames.iter().zip(first..).all(|(frame, sequence)| frame.sequence == sequence);
    in_order && part.frames.last().is_none_or(|frame| frame.sequence == part.head.sequence)
}

/// Returns whether this part ends the execution.
pub(crate) fn is_end(part: &Part) -> bool {
    part.change.as_ref().is_some_and(|change| change.completed_at.is_some())
        || part.row.as_ref().is_some_and(|row| part.expected.is_none() && row.completed_at.is_some())
}

/// Returns the next wake-up; an execution that ends has none.
pub(crate) fn wake_at(part: &Part) -> Option<i64> {
    part.wake_at.filter(|_| !is_end(part)).map(integer)
}
