//! Pages of lists: they end by count and by bytes, and a cursor says where the next one begins. It is a position, nobody's
//! to make up: what is added behind it is seen, and nothing before it again.

use mainspring_store::{Most, READ_BYTES};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::{Answer, Problem};

/// Things on one page of a list at the most.
pub(crate) const PAGE_MAX: usize = 200;

/// Things on a page if nobody says otherwise.
const PAGE_DEFAULT: usize = 50;

/// Bytes of content that end a page: so much is read from the store at a time. 200 of the largest definitions would be
/// 800 MiB, held in memory for each of those who ask. The thing that reaches it goes out whole, so that one always does, and
/// a client that takes a few times as much of an answer takes every page.
pub(crate) const PAGE_BYTES: usize = READ_BYTES;

/// A page that is being filled.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// What is on it.
    pub rows: Vec<T>,
    bytes: usize,
    most: Most,
}

impl<T> Page<T> {
    /// An empty one that takes so much.
    pub(crate) fn new(most: Most) -> Self {
        Self { rows: Vec::new(), bytes: 0, most }
    }

    /// Whether it takes no more. A page that does has seen the end of its list.
    pub(crate) fn is_full(&self) -> bool {
        self.most.is_met(self.rows.len(), self.bytes)
    }

    /// How many rows it takes yet, if they are small.
    pub(crate) fn room(&self) -> usize {
        self.most.rows.saturating_sub(self.rows.len())
    }

    /// Puts a row on it with what it weighs, if there is room.
    pub(crate) fn add(&mut self, row: T, bytes: usize) {
        if !self.is_full() {
            self.rows.push(row);
            self.bytes += bytes;
        }
    }

    /// What the next page is asked for with: the place of the last row, if there may be another behind it.
    pub(crate) fn next_cursor(&self, place: impl Fn(&T) -> String) -> Option<String> {
        self.rows.last().filter(|_| self.is_full()).map(place)
    }
}

/// Which page of a list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
    /// `nextCursor` of the page before.
    pub cursor: Option<String>,
}

/// What a request says about its page.
pub(crate) fn most(asked: Option<usize>) -> Answer<Most> {
    most_of(asked, PAGE_DEFAULT)
}

/// The same, with another number for who says nothing.
pub(crate) fn most_of(asked: Option<usize>, default: usize) -> Answer<Most> {
    let rows = match asked {
        None => default,
        Some(limit @ 1..=PAGE_MAX) => limit,
        Some(limit) => {
            return Err(Problem::field("limit", format!("it must be from 1 to {PAGE_MAX}, not {limit}")));
        }
    };
    Ok(Most { rows, bytes: PAGE_BYTES })
}

/// A cursor that is a number.
pub(crate) fn number(cursor: Option<&str>) -> Answer<Option<u64>> {
    let unknown = |_| Problem::field("cursor", "it is not the `nextCursor` of an answer");
    cursor.map(|text| text.parse().map_err(unknown)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_by_count_or_by_bytes_and_one_thing_is_always_on_it() {
        let check = |rows: usize, bytes: usize, weights: &[usize], wanted: usize, next: Option<&str>| {
            let mut page = Page::new(Most { rows, bytes });
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
