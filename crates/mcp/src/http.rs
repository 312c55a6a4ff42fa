//! Connections to servers over streamable HTTP.
//!
//! Requests go to addresses that the rule of `http` steps permits, never through a proxy, and follow no redirect.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use mainspring_effects::http::{Allowlist, Resolver, TlsRoots, permitted_addresses};
use reqwest::{
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderName, HeaderValue},
    redirect,
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        StreamableHttpClientTransport,
        common::client_side_sse::{BoxedSseResponse, ExponentialBackoff},
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
            StreamableHttpResponseLimits,
        },
    },
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};
use tokio_rustls::rustls::ClientConfig;

use crate::{
    error::{ToolError, quoted},
    limits::{
        CALLS_MAX, MESSAGE_BYTES_MAX, QUEUED_MESSAGES_MAX, QUOTED_BYTES_MAX, RESUMES_MAX, STREAM_BURST, STREAM_INTERVAL,
    },
};

/// The way to servers over HTTP.
#[derive(Clone)]
pub struct HttpAccess {
    /// The exceptions of each organization to the public internet.
    pub allow: Allowlist,
    /// The trusted certificate authorities.
    pub trust: TlsRoots,
    /// Resolves host names.
    pub resolver: Arc<dyn Resolver>,
    /// The time to connect.
    pub connect_timeout: Duration,
}

/// Resolves the one host of a client to its permitted addresses, for each new connection.
struct Permitted {
    access: HttpAccess,
    url: String,
    organization: Option<String>,
}

impl Resolve for Permitted {
    fn resolve(&self, _: Name) -> Resolving {
        let Self { access, url, organization } = self;
        let (access, url, organization) = (access.clone(), url.clone(), organization.clone());
        Box::pin(async move {
            let addresses = access.addresses(&url, organization.as_deref()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl HttpAccess {
    async fn addresses(&self, url: &str, organization: Option<&str>) -> Result<Vec<SocketAddr>, String> {
        let found = permitted_addresses(url, organization, &self.allow, self.resolver.as_ref()).await;
        found.map_err(|failure| failure.message)
    }

    /// Returns a transport to a server. The error is a sentence.
    pub(crate) async fn transport(
        &self,
        url: &str,
        given: &BTreeMap<String, String>,
        organization: Option<&str>,
    ) -> Result<StreamableHttpClientTransport<Paced>, String> {
        // A host that is an address is connected to without a lookup, so it is checked here.
        self.addresses(url, organization).await?;
        let resolver =
            Permitted { access: self.clone(), url: url.to_owned(), organization: organization.map(Into::into) };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(ClientConfig::clone(&self.trust.to_client_config()))
            .dns_resolver(Arc::new(resolver))
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(self.connect_timeout)
            .build()
            .map_err(|error| error.to_string())?;
        let mut settings = StreamableHttpClientTransportConfig::with_uri(url)
            .max_concurrent_requests(CALLS_MAX)
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            .max_json_response_size(MESSAGE_BYTES_MAX)
            .max_error_response_size(QUOTED_BYTES_MAX)
            .custom_headers(headers(given)?);
        // A stream that ends before the answer is resumed by its last event; the call itself is not sent again.
        let mut retry = ExponentialBackoff::default();
        retry.max_times = Some(RESUMES_MAX);
        settings.retry_config = Arc::new(retry);
        settings.channel_buffer_capacity = QUEUED_MESSAGES_MAX;
        Ok(StreamableHttpClientTransport::with_client(Paced { client, pace: Arc::default() }, settings))
    }
}

/// The time of the next request for a stream of events.
#[derive(Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// Returns once a request may be sent: [`STREAM_BURST`] at once, and one in each [`STREAM_INTERVAL`] after them.
    async fn turn(&self) {
        let mut next = self.0.lock().await;
        let due = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
        if let Some(start) = due.checked_sub(STREAM_INTERVAL * (STREAM_BURST - 1)) {
            sleep_until(start).await;
        }
        *next = Some(due + STREAM_INTERVAL);
    }
}

/// A client that paces its requests for streams of events. `rmcp` takes the pause between two of them from the server,
/// and does not count those that succeed.
#[derive(Clone)]
pub(crate) struct Paced {
    client: reqwest::Client,
    pace: Arc<Pace>,
}

type HttpResult<T> = Result<T, StreamableHttpError<reqwest::Error>>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Paced {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> HttpResult<StreamableHttpPostResponse> {
        self.client.post_message(uri, message, session, token, headers).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> HttpResult<StreamableHttpPostResponse> {
        self.client.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> HttpResult<()> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> HttpResult<BoxedSseResponse> {
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, MESSAGE_BYTES_MAX).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> HttpResult<BoxedSseResponse> {
        self.pace.turn().await;
        let client = &self.client;
        client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, event_bytes_max).await
    }
}

fn headers(given: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HashMap::new();
    for (name, value) in given {
        let parsed =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("the header `{name}` is not valid"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| format!("the value of `{name}` is not valid"))?;
        // Any header may carry a credential.
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// Translates an error of the transport. `None` if it is not one of HTTP.
pub(crate) fn http_error(server: &str, error: &(dyn Error + 'static)) -> Option<ToolError> {
    let server = server.to_owned();
    Some(match error.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::HttpStatus(status) => ToolError::HttpStatus {
            server,
            status: status.status,
            retry_after_ms: status.retry_after.as_deref().and_then(seconds_ms),
        },
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            ToolError::NotAuthorized(server)
        }
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) if status.as_u16() == 401 || status.as_u16() == 403 => ToolError::NotAuthorized(server),
            _ if error.is_connect() => ToolError::NotConnected(server, quoted(&deepest(error))),
            _ => ToolError::ConnectionLost(server, quoted(&deepest(error))),
        },
        // The library gives these statuses only as text.
        StreamableHttpError::UnexpectedServerResponse(text)
            if text.starts_with("HTTP 401") || text.starts_with("HTTP 403") =>
        {
            ToolError::NotAuthorized(server)
        }
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().map_or_else(|| "no type".to_owned(), quoted);
            ToolError::InvalidAnswer(server, format!("its content is {kind}, neither JSON nor a stream of events"))
        }
        StreamableHttpError::Deserialize(error) => ToolError::InvalidAnswer(server, quoted(&error.to_string())),
        StreamableHttpError::ResponseBodyTooLarge { max_size } => {
            ToolError::InvalidAnswer(server, format!("it has more than {max_size} bytes"))
        }
        other => ToolError::ConnectionLost(server, quoted(&other.to_string())),
    })
}

/// Reads `Retry-After` as seconds. A date would need the clock of the server, which is not known here.
fn seconds_ms(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1_000))
}

/// Returns the text of the innermost cause, which names the address or the certificate.
fn deepest(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_for_streams_are_paced_after_a_burst() {
        let (pace, begun) = (Pace::default(), Instant::now());
        let mut seconds = Vec::new();
        for _ in 0..STREAM_BURST + 3 {
            pace.turn().await;
            seconds.push(begun.elapsed().as_secs());
        }
        assert_eq!(seconds, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        tokio::time::advance(Duration::from_secs(60)).await;
        pace.turn().await;
        assert_eq!(begun.elapsed().as_secs(), 63, "the burst is there again");
    }
}
