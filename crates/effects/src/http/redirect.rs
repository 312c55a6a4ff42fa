//! The next request after a redirect, by the Fetch standard ("HTTP-redirect fetch"), with stricter rules where the
//! standard would reveal more than necessary to another origin.

use hyper::{
    Method, StatusCode,
    header::{HeaderMap, LOCATION},
};

use super::{error::RequestError, headers, request::Request};

/// Returns the request to which a response redirects, or `None` if the response is final.
pub(super) fn next(request: &Request, status: StatusCode, answer: &HeaderMap) -> Result<Option<Request>, RequestError> {
    let Some(location) = answer.get(LOCATION).filter(|_| request.follows_redirects && is_redirect(status)) else {
        return Ok(None);
    };
    let invalid = |why| RequestError::RedirectInvalid(request.target.shown(), why);
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| invalid("is no text"))?;
    let target = request.target.join(location).map_err(invalid)?;
    if request.target.is_secure() && !target.is_secure() {
        return Err(RequestError::RedirectInsecure(request.target.shown()));
    }
    let mut next = Request { target, ..request.clone() };
    if becomes_get(status, &request.method) {
        next.method = Method::GET;
        next.body = None;
        headers::drop_of_body(&mut next.headers);
    }
    if next.target.origin() != request.target.origin() {
        headers::keep_following(&mut next.headers);
    }
    Ok(Some(next))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        301 | 302 => method == Method::POST,
        303 => !matches!(*method, Method::GET | Method::HEAD),
        _ => false,
    }
}
