//! The executor of `http` steps: one request, sent once, to addresses that were checked.
//!
//! A step may name any host, and its author need not be trusted by the operator of the node. So the executor resolves
//! the host itself, rejects addresses outside of the public internet, and connects to the addresses that it checked;
//! every redirect repeats this. Proxies of the environment are ignored, since a proxy would connect to unchecked
//! addresses. The executor has no connection pool and no retries, so a request is sent only once for each attempt in
//! the journal.
//!
//! Every request carries an idempotency key that is the same for all attempts, so that a server can recognize a
//! repetition.

mod access;
mod allowlist;
mod body;
mod body_reader;
mod connect;
mod connection_task;
mod decode;
mod error;
mod expected_status;
mod happy_eyeballs;
mod headers;
mod ip_filter;
mod limits;
mod outcome;
mod redirect;
mod redirect_loop;
mod request;
mod resolve;
mod retry_after;
mod stream;
mod tls_roots;
mod url;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    value::Value,
};

use crate::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use connect::Connector;
use error::RequestError;
use outcome::milliseconds;
use redirect_loop::{Progress, exchange};
use request::Request;

pub use access::permitted_addresses;
pub use allowlist::{ALLOW_VARIABLE, AllowError, Allowlist, DEFAULT_ORGANIZATION};
pub use body_reader::BodyReader;
pub use limits::{CONNECT_TIMEOUT_DEFAULT, REDIRECTS_MAX, RESPONSE_BYTES_DEFAULT, RESPONSE_BYTES_MAX};
pub use resolve::{Resolver, SystemResolver};
pub use stream::{StreamClient, StreamRequest, StreamResponse};
pub use tls_roots::TlsRoots;

/// The settings of an [`Http`].
#[derive(Clone)]
pub struct HttpOptions {
    /// The exceptions of each organization to the public internet.
    pub allow: Allowlist,
    /// The trusted certificate authorities.
    pub trust: TlsRoots,
    /// Resolves host names.
    pub resolver: Arc<dyn Resolver>,
    /// The time to connect one hop; usually [`CONNECT_TIMEOUT_DEFAULT`].
    pub connect_timeout: Duration,
    /// True if requests carry the trace context (`traceparent`), unless the step sets it.
    pub traces: bool,
}

/// Allows the public internet only.
impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allow: Allowlist::default(),
            trust: TlsRoots::default(),
            resolver: Arc::new(SystemResolver),
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
            traces: false,
        }
    }
}

/// Performs the attempts of `http` steps.
pub struct Http {
    connector: Connector,
    traces: bool,
}

impl fmt::Debug for Http {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http").field("allow", &self.connector.allow).finish_non_exhaustive()
    }
}

impl Http {
    /// Makes an executor.
    pub fn new(options: HttpOptions) -> Self {
        let HttpOptions { allow, trust, resolver, connect_timeout, traces } = options;
        Self { connector: Connector { allow, resolver, tls: trust.into_config(), timeout: connect_timeout }, traces }
    }

    /// Performs an attempt as [`perform`](Executor::perform) does. A reader gets the body of a response that counts as success
    /// while it arrives, and the outcome then has none.
    pub async fn perform_reading(
        &self,
        attempt: &Attempt,
        stop: CancelSignal,
        reader: Option<&mut dyn BodyReader>,
    ) -> Outcome {
        self.run(attempt, stop, reader).await.unwrap_or_else(|refusal| Outcome::Failed(refusal.into()))
    }

    async fn run(
        &self,
        attempt: &Attempt,
        mut stop: CancelSignal,
        reader: Option<&mut dyn BodyReader>,
    ) -> Result<Outcome, RequestError> {
        let (begun, mut progress) = (Instant::now(), Progress::default());
        if stop.is_requested() {
            return Ok(stopped(&progress, begun.elapsed()));
        }
        let mut request = Request::of(attempt)?;
        if self.traces {
            request.tell_trace(attempt);
        }
        let organization = attempt.organization.as_deref();
        // In this order: a response that arrived before the cancellation is the outcome.
        let answer = tokio::select! {
            biased;
            answer = exchange(&self.connector, organization, request.clone(), &mut progress, reader) => Some(answer?),
            () = stop.requested() => None,
        };
        let duration = begun.elapsed();
        match answer {
            None => Ok(stopped(&progress, duration)),
            Some(answer) if request.expect.holds(answer.status) => answer.done(duration),
            Some(answer) => Ok(Outcome::Failed(answer.failed(SystemTime::now()))),
        }
    }
}

/// The outcome of a canceled request: `{status, durationMs, redirects, mayBeReceived}`.
fn stopped(progress: &Progress, duration: Duration) -> Outcome {
    Outcome::Stopped(Value::map([
        ("status", Value::Null),
        ("durationMs", milliseconds(duration)),
        ("redirects", progress.redirects.into()),
        ("mayBeReceived", progress.may_be_received.into()),
    ]))
}

impl Executor for Http {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "http"
    }

    /// The result is `{status, headers, body, url, durationMs, redirects}`.
    ///
    /// Failures: `http_status:N` (details `{status, headers, body}`, `truncated` if they are not complete,
    /// `retryAfterMs` if the server sent it), `http_parameter_invalid`, `http_response_invalid`,
    /// `http_redirect_invalid` (`invalid`), `http_address_refused`, `http_redirect_insecure`, `http_response_too_large`
    /// (`policy`), `http_dns_failed`, `http_connect_failed`, `http_connection_lost` (`unavailable`),
    /// `http_connect_timeout` (`timeout`), `http_tls_failed`, `http_redirects_too_many` (`failed`).
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(self.perform_reading(attempt, stop, None))
    }

    /// A request is not recorded before it is sent, and no protocol tells whether a server has received it. So every
    /// attempt of an earlier process may have been sent.
    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
