//! The executor of `http` steps: one request, sent once, to addresses that were looked at.
//!
//! A step may name any host, and its author is not always who runs this node. So the addresses of a host are found by us,
//! compared with a table of what is not the public internet, and connected to as they were found; every redirect begins
//! this anew. Proxies of the environment are not used: they would connect for us, to where we have not looked. Nothing is
//! sent a second time behind the journal's back: there is no pool of connections and no retry here.
//!
//! The author's own guard against work that is done twice is the key that goes with every request, the same over all
//! attempts.

mod address;
mod allow;
mod body;
mod connect;
mod decode;
mod exchange;
mod expect;
mod headers;
mod limits;
mod race;
mod redirect;
mod refusal;
mod report;
mod request;
mod resolve;
mod retry_after;
mod target;
mod tasks;
mod trust;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    value::Value,
};

use crate::{Adopted, AttemptName, Executor, Stop, Work};
use connect::Connector;
use exchange::{Progress, exchange};
use refusal::Refusal;
use report::milliseconds;
use request::Request;

pub use allow::{Allow, AllowError, DEFAULT_ORGANIZATION};
pub use limits::{CONNECT_TIMEOUT_DEFAULT, REDIRECTS_MAX, RESPONSE_BYTES_DEFAULT, RESPONSE_BYTES_MAX};
pub use resolve::{Resolver, SystemResolver};
pub use trust::Trust;

/// The variable of the environment in which an operator says what may be reached besides the public internet: entries as
/// [`Allow`] reads them. It is read by whoever builds an [`Http`], and named in refusals here.
pub const ALLOW_VARIABLE: &str = "MAINSPRING_HTTP_ALLOW";

/// How an [`Http`] works.
#[derive(Clone)]
pub struct HttpOptions {
    /// What each organization may connect to besides the public internet.
    pub allow: Allow,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// Who finds the addresses of hosts.
    pub resolver: Arc<dyn Resolver>,
    /// The time of one hop until it is connected; usually [`CONNECT_TIMEOUT_DEFAULT`].
    pub connect_timeout: Duration,
    /// Whether a request says which trace it belongs to (`traceparent`), unless its step says it.
    pub traces: bool,
}

/// The public internet only.
impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allow: Allow::default(),
            trust: Trust::default(),
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
    /// An executor.
    pub fn new(options: HttpOptions) -> Self {
        let HttpOptions { allow, trust, resolver, connect_timeout, traces } = options;
        Self { connector: Connector { allow, resolver, tls: trust.into_config(), timeout: connect_timeout }, traces }
    }

    async fn run(&self, attempt: &Attempt, mut stop: Stop) -> Result<Outcome, Refusal> {
        let (begun, mut progress) = (Instant::now(), Progress::default());
        if stop.is_requested() {
            return Ok(stopped(&progress, begun.elapsed()));
        }
        let mut request = Request::of(attempt)?;
        if self.traces {
            request.tell_trace(attempt);
        }
        let organization = attempt.organization.as_deref();
        // In this order: an answer that was there before we were asked to stop is the outcome.
        let answer = tokio::select! {
            biased;
            answer = exchange(&self.connector, organization, request.clone(), &mut progress) => Some(answer?),
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

/// What is known of a request that was stopped: `{status, durationMs, redirects, mayBeReceived}`.
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

    /// The result is `{status, headers, body, url, durationMs, redirects}`. Failures: `http_status:N` (details `{status,
    /// headers, body}`, `truncated` if they are not whole, `retryAfterMs` if the server says so), `http_parameter_invalid`,
    /// `http_response_invalid`, `http_redirect_invalid` (`invalid`), `http_address_refused`, `http_redirect_insecure`,
    /// `http_response_too_large` (`policy`), `http_dns_failed`, `http_connect_failed`, `http_connection_lost`
    /// (`unavailable`), `http_connect_timeout` (`timeout`), `http_tls_failed`, `http_redirects_too_many` (`failed`).
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: Stop) -> Work<'a, Outcome> {
        Box::pin(async move {
            match self.run(attempt, stop).await {
                Ok(outcome) => outcome,
                Err(refusal) => Outcome::Failed(refusal.into()),
            }
        })
    }

    /// Nothing is written down before a request is sent, and no server can be asked whether it has received one. So an
    /// attempt that an earlier process had may have been sent, always.
    fn adopt<'a>(&'a self, _: &'a Attempt) -> Work<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
