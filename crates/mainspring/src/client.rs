//! The HTTP client of a server: addresses, credentials, requests, event streams and errors.
//!
//! Responses are untrusted input: sizes are bounded, types are checked, and text is escaped before it reaches a
//! terminal. Unknown fields are ignored, since a newer server may send them. Only requests that are safe to repeat are
//! retried.

pub(crate) mod address;
pub(crate) mod connect;
mod connection;
pub(crate) mod credentials;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod execution;
pub(crate) mod oidc_fetch;
pub(crate) mod response;
pub(crate) mod target;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::Incoming,
    header::{HeaderValue, LOCATION, RETRY_AFTER},
};
use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};
use tokio::time::{sleep, timeout};

pub(crate) use self::error::ClientError;
use self::{
    address::Address,
    connection::{ClientRequest, Endpoint},
};
use crate::{error::CliError, tls};

/// Timeouts of a response's head and of its body.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of a response for which the server asks a language model: three calls of two minutes, and some room.
const MODEL_TIMEOUT: Duration = Duration::from_secs(420);

/// The wait of a long poll at the server, and the timeout of its request, which is longer.
const WAIT_MS: u64 = 30_000;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a response. The largest are list pages, which end soon after 8 MiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Attempts of a request that may be retried, and the pause before each.
const ATTEMPTS_MAX: u32 = 6;
const PAUSES_MS: [u64; ATTEMPTS_MAX as usize] = [0, 0, 200, 500, 1_000, 2_000];

/// Retries after `429 Too Many Requests`, and the largest `Retry-After` in seconds that is waited for.
const RATE_LIMITED_MAX: u32 = 5;
const RETRY_AFTER_SECONDS_MAX: u64 = 30;

#[derive(Clone)]
pub(crate) struct Client {
    endpoint: Endpoint,
}

/// Returns whether a request may be sent again after its response was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The request changes nothing, or its idempotency key lets the server recognize it.
    May,
    /// The first request may have been processed, and a second one would be processed again.
    MustNot,
}

impl Client {
    /// A client with a token. Plain HTTP to another machine is an error unless `plain_http` allows it.
    pub(crate) fn new(address: Address, token: &str, plain_http: bool) -> Result<Self, CliError> {
        if address.is_plain() && !address.is_loopback() && !plain_http {
            let message = format!(
                "{address} is another machine, and plain http exposes the token on the network: use https, or set --plain-http (MAINSPRING_PLAIN_HTTP=true) on a trusted network"
            );
            return Err(CliError::contract("plain_http", message));
        }
        let mut credential = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            CliError::contract(
                "no_token",
                "the token has characters that no token has; `mainspring login` stores another",
            )
        })?;
        credential.set_sensitive(true);
        let tls = if address.is_plain() { tls::trusting_mozilla() } else { tls::trusting()? };
        Ok(Self { endpoint: Endpoint { address, credential, plain_http, tls } })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.endpoint.address
    }

    /// Sends a GET request, with retries.
    pub(crate) async fn get(&self, route: &str) -> Result<Value, ClientError> {
        self.send(Method::GET, route, None, HEAD_TIMEOUT, Repeat::May).await
    }

    /// Sends a GET request once, and returns status, headers and body of any response.
    pub(crate) async fn get_once(&self, route: &str) -> Result<(StatusCode, HeaderMap, Bytes), ClientError> {
        let answer = self.endpoint.send(&outgoing(Method::GET, route, None, HEAD_TIMEOUT)).await?;
        let headers = answer.headers().clone();
        let (status, body) = self.read(answer).await?;
        Ok((status, headers, body))
    }

    /// Sends a POST request, with retries if `repeat` allows them.
    pub(crate) async fn post(&self, route: &str, body: &Value, repeat: Repeat) -> Result<Value, ClientError> {
        self.send(Method::POST, route, Some(body), HEAD_TIMEOUT, repeat).await
    }

    /// Sends a POST request once, and waits for as long as a language model of the server may take.
    pub(crate) async fn post_to_model(&self, route: &str, body: &Value) -> Result<Value, ClientError> {
        self.send(Method::POST, route, Some(body), MODEL_TIMEOUT, Repeat::MustNot).await
    }

    /// Sends a PUT request, which may be repeated.
    pub(crate) async fn put(&self, route: &str, body: &Value) -> Result<Value, ClientError> {
        self.send(Method::PUT, route, Some(body), HEAD_TIMEOUT, Repeat::May).await
    }

    /// Sends a PATCH request, which may be repeated.
    pub(crate) async fn patch(&self, route: &str, body: &Value) -> Result<Value, ClientError> {
        self.send(Method::PATCH, route, Some(body), HEAD_TIMEOUT, Repeat::May).await
    }

    /// Sends a DELETE request once.
    pub(crate) async fn delete(&self, route: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, route, None, HEAD_TIMEOUT, Repeat::MustNot).await.map(drop)
    }

    /// Long-polls an execution: returns it once it has settled, or unsettled after [`WAIT_MS`].
    pub(crate) async fn wait(&self, id: &str) -> Result<Value, ClientError> {
        let route = address::route(&["api", "executions", id, "wait"], &[("timeoutMs", &WAIT_MS.to_string())]);
        self.send(Method::GET, &route, None, WAIT_TIMEOUT, Repeat::May).await
    }

    /// Opens an event stream after the last event that was received.
    pub(crate) async fn stream(&self, route: &str, last: Option<&str>) -> Result<Response<Incoming>, ClientError> {
        let mut outgoing = outgoing(Method::GET, route, None, HEAD_TIMEOUT);
        outgoing.headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            outgoing.headers.insert("last-event-id", last);
        }
        let answer = self.endpoint.send(&outgoing).await?;
        if !answer.status().is_success() {
            let (status, body) = self.read(answer).await?;
            return Err(self.error_of(status, None, &body));
        }
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().unwrap_or_default().trim() != "text/event-stream" {
            return Err(self.invalid_response("it sends no stream of events"));
        }
        Ok(answer)
    }

    /// The error for a response that does not follow the API.
    pub(crate) fn invalid_response(&self, what: &str) -> ClientError {
        ClientError::invalid_response(self.address(), what)
    }

    async fn send(
        &self,
        method: Method,
        route: &str,
        body: Option<&Value>,
        timeout: Duration,
        repeat: Repeat,
    ) -> Result<Value, ClientError> {
        let outgoing = outgoing(method, route, body, timeout);
        let (mut attempts, mut rate_limited) = (1, 0);
        loop {
            let error = match self.send_once(&outgoing).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(RateLimited { seconds, error })) if rate_limited < RATE_LIMITED_MAX => {
                    rate_limited += 1;
                    sleep(Duration::from_secs(seconds.ok_or(error)?)).await;
                    continue;
                }
                Ok(Err(RateLimited { error, .. })) | Err(error) => error,
            };
            // A server that refuses the first connection is reported at once. A server that was reachable before
            // may be restarting.
            let never_there = attempts == 1 && error.kind == error::Kind::Unreachable;
            if repeat == Repeat::MustNot || never_there || !error.is_transient() || attempts >= ATTEMPTS_MAX {
                return Err(error);
            }
            sleep(Duration::from_millis(PAUSES_MS[attempts as usize])).await;
            attempts += 1;
        }
    }

    async fn send_once(&self, outgoing: &ClientRequest) -> Result<Result<Value, RateLimited>, ClientError> {
        let answer = self.endpoint.send(outgoing).await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let (_, body) = self.read(answer).await?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            let error = self.error_of(status, None, &body);
            return Ok(Err(RateLimited { seconds: retry_after(&headers), error }));
        }
        if !status.is_success() {
            return Err(self.error_of(status, headers.get(LOCATION), &body));
        }
        if status == StatusCode::NO_CONTENT {
            return Ok(Ok(Value::Null));
        }
        json::value(&body).map(Ok).map_err(|error| self.invalid_response(&format!("its response is not JSON: {error}")))
    }

    async fn read(&self, answer: Response<Incoming>) -> Result<(StatusCode, Bytes), ClientError> {
        let status = answer.status();
        let broken = |why: &str| ClientError::broken(self.address(), why);
        let read = timeout(BODY_TIMEOUT, Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect()).await;
        let read = read.map_err(|_| broken("its response takes too long"))?.map_err(|error| {
            let is_long = error.is::<http_body_util::LengthLimitError>();
            let long = format!("its answer has more than {ANSWER_BYTES_MAX} bytes");
            if is_long { self.invalid_response(&long) } else { broken(&error.to_string()) }
        })?;
        Ok((status, read.to_bytes()))
    }

    /// The error for a response without success.
    fn error_of(&self, status: StatusCode, location: Option<&HeaderValue>, body: &[u8]) -> ClientError {
        if status.is_redirection() {
            let to = location.and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            let what = format!("it answers {} and points to {to}; if that is the server, name it so", status.as_u16());
            return self.invalid_response(&what);
        }
        let body = json::value(body).ok();
        ClientError::of_response(self.address(), status.as_u16(), body.as_ref())
    }
}

/// A response `429 Too Many Requests`.
struct RateLimited {
    /// Seconds to wait; `None` if the server asks for too many.
    seconds: Option<u64>,
    error: ClientError,
}

/// Seconds to wait by `Retry-After`: 1 without the header, `None` if it is invalid or above the bound.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let Some(given) = headers.get(RETRY_AFTER) else { return Some(1) };
    given.to_str().ok()?.trim().parse().ok().filter(|seconds| *seconds <= RETRY_AFTER_SECONDS_MAX)
}

fn outgoing(method: Method, route: &str, body: Option<&Value>, timeout: Duration) -> ClientRequest {
    let body = body.map(|body| Bytes::from(compact(body))).unwrap_or_default();
    ClientRequest { method, route: route.to_string(), headers: HeaderMap::new(), body, timeout }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the seconds to wait after a response with this `Retry-After`.
    fn check(given: Option<&str>, seconds: Option<u64>) {
        let headers = given.map(|given| (RETRY_AFTER, HeaderValue::from_str(given).unwrap()));
        assert_eq!(retry_after(&headers.into_iter().collect()), seconds, "{given:?}");
    }

    #[test]
    fn retry_after_is_honored_within_a_bound() {
        check(None, Some(1));
        check(Some("0"), Some(0));
        check(Some("2"), Some(2));
        check(Some(" 30 "), Some(30));
        for unbearable in ["31", "3600", "18446744073709551616", "-1", "2.5", "", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            check(Some(unbearable), None);
        }
    }
}
