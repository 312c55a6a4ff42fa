//! Why there is no answer that counts, each reason with its class, its code and its mend.

use std::io;

use mainspring_kernel::failure::{Class, Failure};

use super::{ALLOW_VARIABLE, allow::DEFAULT_ORGANIZATION, limits::HEARSAY_CHARS_MAX, target::Shown};

/// A reason why a request brought no answer, or none that may be used. No message shows a header, a query or a body: they
/// may be secret.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The step's parameters do not make a request.
    ParameterInvalid {
        /// Which parameter, as `headers.Accept`.
        key: String,
        /// What is wrong and how to mend it.
        why: String,
    },
    /// Every address of the host is one that may not be connected to.
    AddressRefused {
        /// Where the request should have gone.
        url: Shown,
        /// What the address is.
        special_use: &'static str,
        /// What would allow it: host and port, with the organization before it unless it is `default`.
        entry: String,
    },
    /// The name has no address, or nobody could be asked.
    NameUnknown(Shown, io::Error),
    /// No address took a connection.
    NotConnected(Shown, io::Error),
    /// Finding, connecting and TLS took too long.
    ConnectTimeout(Shown),
    /// Whoever answers there is not whom we wanted, or speaks no TLS that we know.
    TlsFailed(Shown, String),
    /// The connection broke before the answer was complete.
    ConnectionLost(Shown, String),
    /// What came is no HTTP.
    ResponseInvalid(Shown, String),
    /// The answer is larger than what is kept.
    ResponseTooLarge {
        /// Who answered.
        url: Shown,
        /// What of it is too large, as `its body`.
        part: &'static str,
        /// The bound.
        bytes_max: usize,
    },
    /// A redirect that leads nowhere.
    RedirectInvalid(Shown, &'static str),
    /// A redirect from HTTPS to HTTP.
    RedirectInsecure(Shown),
    /// More redirects than are followed.
    RedirectsTooMany(Shown),
}

impl Refusal {
    /// A parameter that is not as it should be.
    pub(super) fn parameter(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::ParameterInvalid { key: key.into(), why: why.into() }
    }

    /// Names the organization for which an entry would have to be.
    pub(super) fn of_organization(self, organization: Option<&str>) -> Self {
        match (self, organization) {
            (Self::AddressRefused { url, special_use, entry }, Some(organization))
                if organization != DEFAULT_ORGANIZATION =>
            {
                Self::AddressRefused { url, special_use, entry: format!("{organization}={entry}") }
            }
            (other, _) => other,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (class, code, message) = match refusal {
            Refusal::ParameterInvalid { key, why } => {
                (Class::Invalid, "http_parameter_invalid", format!("`{}`: {why}", key.escape_debug()))
            }
            Refusal::AddressRefused { url, special_use, entry } => {
                let mend = format!(
                    "use a public address, or have the operator of this node allow it with {ALLOW_VARIABLE}={entry}"
                );
                (Class::Policy, "http_address_refused", format!("{url} leads to {special_use}: {mend}"))
            }
            Refusal::NameUnknown(url, error) => {
                (Class::Unavailable, "http_dns_failed", format!("{url}: no address was found for the host ({error})"))
            }
            Refusal::NotConnected(url, error) => (
                Class::Unavailable,
                "http_connect_failed",
                format!("{url}: no connection ({error}); nothing was sent there"),
            ),
            Refusal::ConnectTimeout(url) => (
                Class::Timeout,
                "http_connect_timeout",
                format!("{url}: no connection in time; nothing was sent there"),
            ),
            Refusal::TlsFailed(url, why) => (
                Class::Failed,
                "http_tls_failed",
                format!("{url}: no trusted connection ({}); nothing was sent there", short(&why)),
            ),
            Refusal::ConnectionLost(url, why) => {
                let message =
                    format!("{url}: the connection broke ({}); the request may have been received", short(&why));
                (Class::Unavailable, "http_connection_lost", message)
            }
            Refusal::ResponseInvalid(url, why) => (
                Class::Invalid,
                "http_response_invalid",
                format!("{url} answered what cannot be read ({})", short(&why)),
            ),
            Refusal::ResponseTooLarge { url, part, bytes_max } => {
                let mend = "ask for less, or raise `maxResponseBytes` if it is below";
                let message = format!("{url}: {part} takes more than {bytes_max} bytes: {mend}");
                (Class::Policy, "http_response_too_large", message)
            }
            Refusal::RedirectInvalid(url, why) => {
                (Class::Invalid, "http_redirect_invalid", format!("{url} answered a redirect that {why}"))
            }
            Refusal::RedirectInsecure(url) => {
                let mend = "ask the server's operator, or use the address it leads to";
                let message = format!("{url} redirects from https to http, which is not followed: {mend}");
                (Class::Policy, "http_redirect_insecure", message)
            }
            Refusal::RedirectsTooMany(url) => {
                let mend = "look where they lead with `followRedirects: false`";
                (Class::Failed, "http_redirects_too_many", format!("{url}: too many redirects; {mend}"))
            }
        };
        Failure::new(class, code, message)
    }
}

/// The beginning of what somebody else has said: a certificate may have thousands of names.
fn short(why: &str) -> String {
    why.chars().take(HEARSAY_CHARS_MAX).collect()
}
