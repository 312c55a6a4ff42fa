//! Reasons why a request has no usable response, each with its class, its code and a remedy.

use std::io;

use mainspring_kernel::failure::{Class, Failure};

use super::{
    allowlist::{ALLOW_VARIABLE, DEFAULT_ORGANIZATION},
    limits::HEARSAY_CHARS_MAX,
    url::Shown,
};

/// A reason why a request has no usable response. No message contains a header, a query or a body, since they may be
/// secret.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The parameters of the step are invalid.
    ParameterInvalid {
        /// The parameter, as `headers.Accept`.
        key: String,
        /// The error and its remedy.
        why: String,
    },
    /// No address of the host may be connected to.
    AddressRefused {
        /// The URL of the request.
        url: Shown,
        /// A description of the use of the address.
        special_use: &'static str,
        /// The entry that would allow it: host and port, with the organization in front unless it is `default`.
        entry: String,
    },
    /// The name has no address, or the lookup failed.
    NameUnknown(Shown, io::Error),
    /// No address accepted a connection.
    NotConnected(Shown, io::Error),
    /// Resolving, connecting and the TLS handshake took too long.
    ConnectTimeout(Shown),
    /// The certificate is not valid for the host, or the server supports no common TLS version.
    TlsFailed(Shown, String),
    /// The connection broke before the response was complete.
    ConnectionLost(Shown, String),
    /// The response is not valid HTTP.
    ResponseInvalid(Shown, String),
    /// The response is larger than a bound.
    ResponseTooLarge {
        /// The URL of the response.
        url: Shown,
        /// The part that is too large, as `its body`.
        part: &'static str,
        /// The bound.
        bytes_max: usize,
    },
    /// A redirect without a valid target.
    RedirectInvalid(Shown, &'static str),
    /// A redirect from HTTPS to HTTP.
    RedirectInsecure(Shown),
    /// More redirects than are followed.
    RedirectsTooMany(Shown),
}

impl RequestError {
    /// Makes the error of a parameter.
    pub(super) fn parameter(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::ParameterInvalid { key: key.into(), why: why.into() }
    }

    /// Adds the organization to the entry that would allow the address.
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

impl From<RequestError> for Failure {
    fn from(refusal: RequestError) -> Self {
        let (class, code, message) = match refusal {
            RequestError::ParameterInvalid { key, why } => {
                (Class::Invalid, "http_parameter_invalid", format!("`{}`: {why}", key.escape_debug()))
            }
            RequestError::AddressRefused { url, special_use, entry } => {
                let help = format!(
                    "use a public address, or have the operator of this node allow it with {ALLOW_VARIABLE}={entry}"
                );
                (Class::Policy, "http_address_refused", format!("{url} leads to {special_use}: {help}"))
            }
            RequestError::NameUnknown(url, error) => {
                (Class::Unavailable, "http_dns_failed", format!("{url}: no address was found for the host ({error})"))
            }
            RequestError::NotConnected(url, error) => (
                Class::Unavailable,
                "http_connect_failed",
                format!("{url}: no connection ({error}); nothing was sent there"),
            ),
            RequestError::ConnectTimeout(url) => (
                Class::Timeout,
                "http_connect_timeout",
                format!("{url}: no connection in time; nothing was sent there"),
            ),
            RequestError::TlsFailed(url, why) => (
                Class::Failed,
                "http_tls_failed",
                format!("{url}: no trusted connection ({}); nothing was sent there", short(&why)),
            ),
            RequestError::ConnectionLost(url, why) => {
                let message =
                    format!("{url}: the connection broke ({}); the request may have been received", short(&why));
                (Class::Unavailable, "http_connection_lost", message)
            }
            RequestError::ResponseInvalid(url, why) => (
                Class::Invalid,
                "http_response_invalid",
                format!("{url} answered what cannot be read ({})", short(&why)),
            ),
            RequestError::ResponseTooLarge { url, part, bytes_max } => {
                let help = "ask for less, or raise `maxResponseBytes` if it is below";
                let message = format!("{url}: {part} takes more than {bytes_max} bytes: {help}");
                (Class::Policy, "http_response_too_large", message)
            }
            RequestError::RedirectInvalid(url, why) => {
                (Class::Invalid, "http_redirect_invalid", format!("{url} answered a redirect that {why}"))
            }
            RequestError::RedirectInsecure(url) => {
                let help = "ask the server's operator, or use the address it leads to";
                let message = format!("{url} redirects from https to http, which is not followed: {help}");
                (Class::Policy, "http_redirect_insecure", message)
            }
            RequestError::RedirectsTooMany(url) => {
                let help = "look where they lead with `followRedirects: false`";
                (Class::Failed, "http_redirects_too_many", format!("{url}: too many redirects; {help}"))
            }
        };
        Failure::new(class, code, message)
    }
}

/// Shortens foreign text: a certificate may have thousands of names.
fn short(why: &str) -> String {
    why.chars().take(HEARSAY_CHARS_MAX).collect()
}
