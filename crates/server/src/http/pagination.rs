//! Pagination: pages are bounded by count and by bytes, and a cursor names the position of the next one. Rows that are
//! added behind a cursor are seen, and rows before it are not repeated.

use mainspring_store::{READ_BYTES, ReadLimit};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::problem::{Problem, Result};

/// Most rows of a page.
pub(crate) const PAGE_MAX: usize = 200;

/// Rows of a page if the request names no limit.
const PAGE_DEFAULT: usize = 50;

/// Bytes of content that end a page, and the bytes that one read of the store returns. 200 definitions of the largest
/// size would take 800 MiB of memory per request. The row that reaches the bound is still included, so that every page
/// makes progress.
pub(crate) const PAGE_BYTES: usize = READ_BYTES;

/// A page under construction.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// Rows of the page.
    pub rows: Vec<T>,
    bytes: usize,
    most: ReadLimit,
}

impl<T> Page<T> {
    /// An empty page with these bounds.
    pub(crate) fn new(most: ReadLimit) -> Self {
        Self { rows: Vec::new(), bytes: 0, most }
    }

    /// True if the page accepts no more rows. A page that is not full is the last one.
    pub(crate) fn is_full(&self) -> bool {
        self.most.is_reached(self.rows.len(), self.bytes)
    }

    /// Number of rows that it still accepts, if they are small.
    pub(crate) fn room(&self) -> usize {
        self.most.rows.saturating_sub(self.rows.len())
    }

    /// Adds a row of the given size, unless the page is full.
    pub(crate) fn add(&mut self, row: T, bytes: usize) {
        if !self.is_full() {
            self.rows.push(row);
            self.bytes += bytes;
        }
    }

    /// Cursor of the next page: the position of the last row, if more may follow.
    pub(crate) fn next_cursor(&self, cursor_of: impl Fn(&T) -> String) -> Option<String> {
        self.rows.last().filter(|_| self.is_full()).map(cursor_of)
    }
}

/// Position and size of a page.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
    /// `nextCursor` of the previous page.
    pub cursor: Option<String>,
}

/// Bounds of the requested page.
pub(crate) fn most(requested: Option<usize>) -> Result<ReadLimit> {
    most_of(requested, PAGE_DEFAULT)
}

/// As [`most`], with another default.
pub(crate) fn most_of(requested: Option<usize>, default: usize) -> Result<ReadLimit> {
    let rows = match requested {
        None => default,
        Some(limit @ 1..=PAGE_MAX) => limit,
        Some(limit) => {
            return Err(Problem::field("limit", format!("it must be from 1 to {PAGE_MAX}, not {limit}")));
        }
    };
    Ok(ReadLimit { rows, bytes: PAGE_BYTES })
}

/// Parses a numeric cursor.
pub(crate) fn number(cursor: Option<&str>) -> Result<Option<u64>> {
    let unknown = |_| Problem::field("cursor", "it is not the `nextCursor` of an answer");
    cursor.map(|text| text.parse().map_err(unknown)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_by_count_or_by_bytes_and_has_at_least_one_row() {
        let check = |rows: usize, bytes: usize, weights: &[usize], wanted: usize, next: Option<&str>| {
            let mut page = Page::new(ReadLimit { rows, bytes });
            weights.iter().enumerate().for_each(|(place, weight)| page.add(place, *weight));
            let found = (page.rows.len(), page.next_cursor(ToString::to_string));
            assert_eq!(found, (wanted, next.map(Into::into)), "{rows} rows, {bytes} bytes of {weights:?}");
        };
        check(3, 10, &[], 0, None);
        check(3, 10, &[1, 1], 2, None);
        check(3, 10, &[1, 1, 1], 3, Some("2"));
        check(3, 10, &[1, 1, 1, 1], 3, Some("2"));
        check(3, 10, &[5, 5, 1], 2, Some("1"));
        check(3, 10, &[5, 4, 100], 3, Some("2"));
        check(3, 10, &[100, 1], 1, Some("0"));
        check(3, 10, &[100], 1, Some("0"));
    }
}
