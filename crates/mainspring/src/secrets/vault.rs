//! A client of HashiCorp Vault and OpenBao: reads fields of secrets of the KV engine, version 2.
//!
//! No error contains a part of an answer, since answers contain values.

pub(super) mod location;
pub(super) mod settings;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT},
};
use mainspring_effects::secrets::{SecretError, SecretValue};
use mainspring_kernel::{
    json::{compact, value},
    value::Value,
};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};
use tokio_rustls::rustls::ClientConfig;
use url::{Position, Url};

use self::{
    location::Location,
    settings::{Login, VaultSettings},
};
use super::local;
use crate::{
    client::connect::{Secrecy, connect},
    tls,
};

/// The time for one secret, a login included. A step waits for it.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which a value is used again. A changed value is used after it, and Vault is not asked for each step of
/// a loop.
const CACHE_TIME: Duration = Duration::from_secs(30);

/// Most bytes of an answer: Vault's own bound on an entry with the integrated storage is of this size.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Concurrent requests. Further steps wait within their time.
const REQUESTS_MAX: usize = 8;

/// The time for which the token of a login without an end is used.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(3600);

/// A server, with the values and the login of the last seconds.
pub(super) struct Vault {
    settings: VaultSettings,
    tls: Arc<ClientConfig>,
    requests: Semaphore,
    values: Mutex<BTreeMap<Location, Kept>>,
    /// The token of the last login. The lock is held during a login, so there is one at a time.
    login: Mutex<Option<Kept>>,
}

/// A value with the end of its use.
struct Kept {
    value: SecretValue,
    until: Instant,
}

impl Kept {
    fn current(kept: Option<&Self>) -> Option<SecretValue> {
        kept.filter(|kept| Instant::now() < kept.until).map(|kept| kept.value.clone())
    }
}

/// The answer to a request.
struct Answer {
    status: u16,
    /// Null if the body is no JSON.
    body: Value,
}

impl Vault {
    /// A client of the server of the settings. The error begins with the setting.
    pub(super) fn new(settings: VaultSettings) -> Result<Self, String> {
        let tls = match &settings.authorities {
            Some(file) => tls::trusting_also(file).map_err(|why| format!("vault.caCert: {}: {why}", file.display()))?,
            None => tls::trusting().map_err(|error| error.failure.message)?,
        };
        let (values, login) = (Mutex::new(BTreeMap::new()), Mutex::new(None));
        Ok(Self { settings, tls, requests: Semaphore::new(REQUESTS_MAX), values, login })
    }

    /// The address, for messages.
    pub(super) fn address(&self) -> String {
        self.settings.address.as_str().trim_end_matches('/').to_owned()
    }

    /// The variable that holds a credential, if one does.
    pub(super) fn variable(&self) -> Option<&str> {
        self.settings.variable()
    }

    /// Reads a value. One that was read in the last [`CACHE_TIME`] is returned again; failures are not kept.
    pub(super) async fn read(&self, location: &Location) -> Result<SecretValue, SecretError> {
        match timeout(READ_TIMEOUT, self.read_within(location)).await {
            Ok(read) => read,
            Err(_) => Err(self.unavailable(&format!("does not answer within {} s", READ_TIMEOUT.as_secs()))),
        }
    }

    /// Checks that the server is initialized and unsealed.
    pub(super) async fn check(&self) -> Result<(), SecretError> {
        let mut url = self.url(["sys", "health"].into_iter());
        url.set_query(Some("standbyok=true&perfstandbyok=true"));
        let answer = match timeout(READ_TIMEOUT, self.send(&url, None, None)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(self.unavailable(&format!("does not answer within {} s", READ_TIMEOUT.as_secs()))),
        };
        match answer.status {
            200 => Ok(()),
            501 => Err(self.unavailable("is not initialized")),
            status => Err(self.failed(status, "its health")),
        }
    }

    async fn read_within(&self, location: &Location) -> Result<SecretValue, SecretError> {
        if let Some(value) = Kept::current(self.values.lock().await.get(location)) {
            return Ok(value);
        }
        let _slot = self.requests.acquire().await.map_err(|_| self.unavailable("is no longer asked"))?;
        // Another step may have read it during the wait.
        if let Some(value) = Kept::current(self.values.lock().await.get(location)) {
            return Ok(value);
        }
        let mut url = self.url(location.segments());
        if let Some(version) = location.version {
            url.set_query(Some(&format!("version={version}")));
        }
        let (token, is_kept) = self.token(None).await?;
        let mut answer = self.send(&url, Some(&token), None).await?;
        if answer.status == 403 && is_kept {
            // The token of the last login was revoked, or has reached its number of uses.
            let (token, _) = self.token(Some(&token)).await?;
            answer = self.send(&url, Some(&token), None).await?;
        }
        let value = self.value_in(&answer, location)?;
        let kept = Kept { value: value.clone(), until: Instant::now() + CACHE_TIME };
        self.values.lock().await.insert(location.clone(), kept);
        Ok(value)
    }

    /// The token for requests, and true if it is that of an earlier login. `refused` is not returned again.
    async fn token(&self, refused: Option<&SecretValue>) -> Result<(SecretValue, bool), SecretError> {
        let (mount, source) = match &self.settings.login {
            Login::Token(source) => return Ok((local::value_of(source).await?, false)),
            Login::AppRole { mount, secret_id, .. } => (mount, secret_id),
            Login::Kubernetes { mount, token, .. } => (mount, token),
        };
        let mut login = self.login.lock().await;
        if let Some(token) = Kept::current(login.as_ref()).filter(|token| Some(token) != refused) {
            return Ok((token, true));
        }
        let proof = local::value_of(source).await?;
        let body = match &self.settings.login {
            Login::Kubernetes { role, .. } => [("role", Value::from(role.as_str())), ("jwt", proof.expose().into())],
            Login::AppRole { role_id, .. } => {
                [("role_id", Value::from(role_id.as_str())), ("secret_id", proof.expose().into())]
            }
            Login::Token(_) => return Ok((proof, false)),
        };
        let url = self.url(["auth"].into_iter().chain(mount.split('/')).chain(["login"]));
        let answer = self.send(&url, None, Some(compact(&Value::map(body)))).await?;
        if answer.status != 200 {
            return Err(match answer.status {
                400 | 403 => {
                    self.not_permitted(&format!("refuses the login at auth/{mount}: check role and credential"))
                }
                status => self.failed(status, &format!("the login at auth/{mount}")),
            });
        }
        let token = answer.body.get("auth").and_then(|auth| auth.get("client_token")).and_then(Value::as_text);
        let token = token.and_then(|token| SecretValue::new(token).ok());
        let token = token.ok_or_else(|| self.unavailable("answers a login without a token"))?;
        let seconds = answer.body.get("auth").and_then(|auth| auth.get("lease_duration")).and_then(Value::as_u64);
        // A token is replaced before its end, which a request in progress would otherwise meet.
        let lease = seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds / 4 * 3));
        let until = Instant::now() + lease.map_or(LOGIN_TIME_MAX, |lease| lease.min(LOGIN_TIME_MAX));
        *login = Some(Kept { value: token.clone(), until });
        Ok((token, false))
    }

    /// Returns the value in the answer to a read.
    fn value_in(&self, answer: &Answer, location: &Location) -> Result<SecretValue, SecretError> {
        let missing = |why: &str| SecretError::Missing(format!("{location} at {}: {why}", self.address()));
        let data = answer.body.get("data");
        if answer.status != 200 {
            let metadata = data.and_then(|data| data.get("metadata"));
            let is_destroyed = metadata.and_then(|metadata| metadata.get("destroyed")) == Some(&Value::Bool(true));
            return Err(match (answer.status, metadata) {
                (404, Some(_)) if is_destroyed => missing("this version is destroyed; write or name another one"),
                (404, Some(_)) => {
                    missing("this version is deleted; write or name another one, or `vault kv undelete` it")
                }
                (404, None) => missing("there is no such secret; check path, mount, version and namespace"),
                (403, _) => self.not_permitted(&format!(
                    "refuses to read {location}: the token has ended, or its policy lacks `read` of {}",
                    location.segments().collect::<Vec<_>>().join("/")
                )),
                (status, _) => self.failed(status, &format!("the request for {location}")),
            });
        }
        let fields = data.and_then(|data| data.get("data")).and_then(Value::as_map);
        let fields =
            fields.ok_or_else(|| missing("the answer is not that of a KV engine of version 2; check `mount`"))?;
        match fields.get(&location.field) {
            Some(Value::Text(text)) => SecretValue::new(text).map_err(|why| missing(&why)),
            Some(other) => Err(missing(&format!("the field is {}, not text", other.kind()))),
            None => Err(missing("the secret has no such field")),
        }
    }

    /// Sends a request: with a body it is a POST, otherwise a GET.
    async fn send(&self, url: &Url, token: Option<&SecretValue>, body: Option<String>) -> Result<Answer, SecretError> {
        let failed = |why: String| self.unavailable(&format!("is not reached: {why}"));
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(443);
        let secrecy = if url.scheme() == "https" { Secrecy::Tls(&self.tls) } else { Secrecy::Here("without TLS") };
        let mut sender = connect(host, port, secrecy).await.map_err(failed)?;
        let mut request = Request::builder()
            .method(if body.is_some() { Method::POST } else { Method::GET })
            .uri(&url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")))
            // Vault's agents refuse requests without it, as protection against forged ones.
            .header("X-Vault-Request", "true");
        if let Some(token) = token {
            let token = HeaderValue::from_str(token.expose());
            let mut token = token.map_err(|_| self.not_permitted("gets no token: it has characters that none has"))?;
            token.set_sensitive(true);
            request = request.header("X-Vault-Token", token);
        }
        if let Some(namespace) = &self.settings.namespace {
            request = request.header("X-Vault-Namespace", namespace);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        let request = request.body(body).map_err(|_| failed("the request cannot be written".into()))?;
        let answer = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|_| self.unavailable("sends an answer that breaks off or is too large"))?;
        Ok(Answer { status, body: value(&body.to_bytes()).unwrap_or_default() })
    }

    fn url<'a>(&self, segments: impl Iterator<Item = &'a str>) -> Url {
        let mut url = self.settings.address.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("v1").extend(segments);
        }
        url
    }

    /// The error for a status that is no answer to a request.
    fn failed(&self, status: u16, request: &str) -> SecretError {
        match status {
            503 => self.unavailable("is sealed or in maintenance (503): unseal it"),
            429 => self.unavailable("has too many requests (429)"),
            300..400 => self.unavailable(&format!(
                "redirects {request} ({status}): name the active node or the load balancer in `vault.address`"
            )),
            472 | 473 => self.unavailable(&format!("is a standby that does not answer {request} ({status})")),
            status => self.unavailable(&format!("answers {request} with the status {status}")),
        }
    }

    fn unavailable(&self, why: &str) -> SecretError {
        SecretError::Unavailable(format!("Vault at {} {why}", self.address()))
    }

    fn not_permitted(&self, why: &str) -> SecretError {
        SecretError::NotPermitted(format!("Vault at {} {why}", self.address()))
    }
}
