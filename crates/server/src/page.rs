//! Pages of lists: a cursor says where the next one begins, and is nobody's to make up.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    problem::{Answer, Problem},
    shelf::{PAGE_DEFAULT, PAGE_MAX},
};

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
pub(crate) fn limit(asked: Option<usize>) -> Answer<usize> {
    match asked {
        None => Ok(PAGE_DEFAULT),
        Some(limit @ 1..=PAGE_MAX) => Ok(limit),
        Some(limit) => Err(Problem::field("limit", format!("it must be from 1 to {PAGE_MAX}, not {limit}"))),
    }
}

/// A cursor of the last thing of a page, if the page is full.
pub(crate) fn cursor<T>(page: &[T], limit: usize, id: impl Fn(&T) -> String) -> Option<String> {
    page.last().filter(|_| page.len() >= limit).map(id)
}

/// A cursor that is a number.
pub(crate) fn number(cursor: Option<&str>) -> Answer<Option<u64>> {
    let unknown = |_| Problem::field("cursor", "it is not the `nextCursor` of an answer");
    cursor.map(|text| text.parse().map_err(unknown)).transpose()
}
