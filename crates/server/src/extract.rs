//! What stands in a request's line, refused in our own words where it cannot be read.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};

/// The query of a request. What the type does not know is refused by the type.
#[derive(Debug, Clone)]
pub(crate) struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let refused = |why: String| Problem::new(Code::ValidationError, format!("The query cannot be read: {why}."));
        query.map(|Query(query)| Self(query)).map_err(|rejection| refused(rejection.body_text()))
    }
}

/// The names in a request's path.
#[derive(Debug, Clone)]
pub(crate) struct Named<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        // What is no text names nothing.
        path.map(|Path(path)| Self(path)).map_err(|_| Problem::new(Code::NotFound, "There is no such thing."))
    }
}
