//! Extractors for the query and the path of a request, which reject invalid values with an error in this API's format.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::http::problem::{Code, Problem};

/// Messages of the parser of numbers, each with one for people.
const NUMBER_ERRORS: [(&str, &str); 4] = [
    ("invalid digit found in string", "it must be a whole number, such as 1000"),
    ("cannot parse integer from empty string", "it must be a whole number, such as 1000"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

/// Query parameters. The type rejects unknown ones (`deny_unknown_fields`).
#[derive(Debug, Clone)]
pub(crate) struct QueryParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let refused = |why: String| {
            let why = NUMBER_ERRORS.iter().fold(why, |why, (rust, words)| why.replace(rust, words));
            Problem::new(Code::ValidationError, format!("The query cannot be read: {why}."))
        };
        query.map(|Query(query)| Self(query)).map_err(|rejection| refused(rejection.body_text()))
    }
}

/// Path parameters.
#[derive(Debug, Clone)]
pub(crate) struct PathParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        // A path parameter that cannot be decoded names no resource.
        path.map(|Path(path)| Self(path))
            .map_err(|_| Problem::new(Code::NotFound, "The path cannot be decoded: there is no such resource."))
    }
}
