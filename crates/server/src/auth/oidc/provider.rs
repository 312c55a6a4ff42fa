//! Client of the OpenID Connect provider: discovery document, key set, and exchange of codes.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use jsonwebtoken::jwk::Jwk;
use mainspring_engine::{
    clock::now_ms,
    fair::{Bounds, FairPermit, FairSemaphore},
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{
    fetch::{ANSWER_BYTES_MAX, Fetch, Request, TIMEOUT_MS},
    id_token::{self, Claims, Expected, Refused},
    login_cookie::{LOGIN_COOKIE_S, LoginCookie},
    settings::{Settings, is_safe},
};
use crate::http::{
    problem::{Code, Problem, Result},
    rate_limit::{Clock, clock},
};

/// Lifetime of the cached discovery document.
const METADATA_LASTS_US: u64 = 60 * 60 * 1_000_000;

/// Most sign-ins that wait for the provider at a time. Further ones fail at once, because a slow provider would not
/// serve them any sooner.
const WAITING_MAX: usize = 64;

/// Most sign-ins of one address that wait for the provider. Sign-ins need no credential, and one address must leave
/// room to the others.
const WAITING_OF_ADDRESS_MAX: usize = 16;

/// The provider. The discovery document is cached for an hour, the key set until a token names an unknown key.
pub struct Provider {
    settings: Settings,
    fetch: Arc<dyn Fetch>,
    clock: Clock,
    metadata: Mutex<Option<(u64, Arc<Metadata>)>>,
    keys: Mutex<Option<Arc<Vec<Jwk>>>>,
    room: FairSemaphore<IpAddr>,
}

/// The used part of the discovery document (OpenID Connect Discovery 1.0, 3).
#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    issuer: String,
    #[serde(deserialize_with = "address")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "address")]
    token_endpoint: Url,
    #[serde(deserialize_with = "address")]
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Url, D::Error> {
    let text = String::deserialize(from)?;
    Url::parse(&text).map_err(|_| D::Error::custom("one of its addresses is none"))
}

/// A started sign-in.
pub(crate) struct Redirect {
    /// Address of the redirect.
    pub(crate) location: String,
    /// Value of the login cookie, and its lifetime in seconds.
    pub(crate) cookie: (String, u64),
}

/// Query and cookie of a returning browser.
#[derive(Debug, Clone)]
pub(crate) struct Callback {
    /// Value of the login cookie.
    pub(crate) cookie: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    /// The issuer, if the provider sends it (RFC 9207).
    pub(crate) issuer: Option<String>,
}

/// Omits secrets.
impl fmt::Debug for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Provider").field(&self.settings).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Value of `component` in the details of a provider's error, by which [`provider_reason`] recognizes it.
const COMPONENT: &str = "oidc";

/// Reports a failure of the provider. Sign-ins need no credential: the browser gets a general text, and the log and the
/// audit log get the cause, which may contain hosts, certificates and settings.
fn provider_fails(what: &str, why: &str) -> Problem {
    unavailable().because(format!("OpenID Connect provider, {what}: {why}"))
}

/// The response to a sign-in while the provider fails or is misconfigured.
pub(super) fn unavailable() -> Problem {
    let message = "Signing in is not possible now: the OpenID Connect provider is not available. Try again later, \
                   or sign in with a token. An admin finds the reason in the audit log, and an operator in the log of the \
                   server.";
    Problem::new(Code::Unavailable, message).with(serde_json::json!({ "component": COMPONENT }))
}

/// The cause of a provider's error; `None` for all other errors.
pub(crate) fn provider_reason(problem: &Problem) -> Option<&str> {
    let is_of_provider = problem.details.get("component").and_then(Value::as_str) == Some(COMPONENT);
    problem.reason.as_deref().filter(|_| is_of_provider)
}

impl Provider {
    /// Builds a client that sends its requests through `fetch`. The first sign-in sends the first request.
    pub fn new(settings: Settings, fetch: Arc<dyn Fetch>) -> Self {
        let bounds = Bounds { per_key: WAITING_OF_ADDRESS_MAX, ..Bounds::of(WAITING_MAX) };
        let (clock, room) = (clock(), FairSemaphore::new(bounds));
        Self { settings, fetch, clock, metadata: Mutex::default(), keys: Mutex::default(), room }
    }

    /// Fetches the discovery document and the key set, as the first sign-in would. Returns the number of keys, or the
    /// failure.
    pub async fn check(&self) -> Result<usize, String> {
        let keys = async { self.fresh_keys(&*self.metadata().await?).await };
        keys.await.map(|keys| keys.len()).map_err(|problem| problem.reason.unwrap_or(problem.message))
    }

    /// Settings of the provider.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts a sign-in: redirects the browser to the provider, with `callback` as the return address and `next` as the
    /// page afterwards.
    pub(crate) async fn begin(&self, callback: &str, next: &str, key: &[u8; 32], from: IpAddr) -> Result<Redirect> {
        let _room = self.room(from)?;
        let metadata = self.metadata().await?;
        let Settings { issuer, client_id, scopes, .. } = &self.settings;
        let cookie = LoginCookie::new(next, issuer, client_id, now_ms())?;
        let mut location = metadata.authorization_endpoint.clone();
        location
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", callback)
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &cookie.state)
            .append_pair("nonce", &cookie.nonce)
            .append_pair("code_challenge", &cookie.challenge())
            .append_pair("code_challenge_method", "S256");
        Ok(Redirect { location: location.into(), cookie: (cookie.sealed(key)?, LOGIN_COOKIE_S) })
    }

    /// Completes a sign-in: returns the verified claims and the page to show.
    pub(crate) async fn end(
        &self,
        callback: &str,
        returned: Callback,
        key: &[u8; 32],
        from: IpAddr,
    ) -> Result<(Claims, String)> {
        let Settings { issuer, client_id, .. } = &self.settings;
        let of_us = |cookie: &LoginCookie| cookie.of.0 == *issuer && cookie.of.1 == *client_id;
        let cookie = returned.cookie.and_then(|text| LoginCookie::open(&text, key, now_ms())).filter(of_us);
        let unknown = "No sign-in of this browser is pending: it has expired or already ended. Sign in again.";
        let cookie = cookie.ok_or_else(|| Problem::new(Code::ValidationError, unknown))?;
        // Checked before the state, because some providers send errors without one. Nothing is trusted here.
        if let Some(error) = returned.error {
            let message =
                format!("The provider rejected the sign-in ({}). Sign in again, or ask the provider.", word(&error));
            return Err(Problem::new(Code::Forbidden, message));
        }
        if !returned.state.is_some_and(|state| cookie.is_of(&state)) {
            let message = "The response does not belong to the last sign-in of this browser (`state`). Sign in again.";
            return Err(Problem::new(Code::ValidationError, message));
        }
        if returned.issuer.is_some_and(|said| said != *issuer) {
            let message = "The response is from another provider (`iss`). Sign in again.";
            return Err(Problem::new(Code::ValidationError, message));
        }
        let none = || Problem::new(Code::ValidationError, "The answer has no code. Sign in again.");
        let code = returned.code.filter(|code| !code.is_empty()).ok_or_else(none)?;
        let _room = self.room(from)?;
        let metadata = self.metadata().await?;
        let token = self.redeem(&metadata, callback, &code, &cookie.verifier).await?;
        let expected = Expected { issuer, client_id, nonce: &cookie.nonce, now_s: now_ms() / 1000 };
        Ok((self.verified(&metadata, &token, &expected).await?, cookie.next))
    }

    fn room(&self, from: IpAddr) -> Result<FairPermit<IpAddr>> {
        let message = "Too many sign-ins wait for the OpenID Connect provider. Try again in a second.";
        self.room.try_acquire(from).ok_or_else(|| Problem::new(Code::Unavailable, message))
    }

    /// The discovery document, from the cache or from the provider.
    async fn metadata(&self) -> Result<Arc<Metadata>> {
        let now = (self.clock)();
        let kept = lock(&self.metadata).clone().filter(|(until, _)| now < *until);
        if let Some((_, metadata)) = kept {
            return Ok(metadata);
        }
        let what = "its description";
        let failed = |why: String| provider_fails(what, &why);
        let url = Url::parse(&self.settings.discovery()).map_err(|error| failed(error.to_string()))?;
        let document = self.json(what, url).await?;
        let metadata: Metadata = serde_json::from_value(document).map_err(|error| failed(error.to_string()))?;
        if metadata.issuer != self.settings.issuer {
            let why = format!("it calls itself `{}`; set `oidcIssuer` to exactly that", shown(&metadata.issuer));
            return Err(failed(why));
        }
        for url in [&metadata.authorization_endpoint, &metadata.token_endpoint, &metadata.jwks_uri] {
            if !is_safe(url) {
                return Err(failed(format!("`{}` is not https", shown(url.as_str()))));
            }
        }
        let metadata = Arc::new(metadata);
        *lock(&self.metadata) = Some((now + METADATA_LASTS_US, metadata.clone()));
        Ok(metadata)
    }

    /// Fetches the key set and caches it.
    async fn fresh_keys(&self, metadata: &Metadata) -> Result<Arc<Vec<Jwk>>> {
        let what = "its keys";
        let document = self.json(what, metadata.jwks_uri.clone()).await?;
        let keys = id_token::keys(&document).ok_or_else(|| provider_fails(what, "they are not a list of keys"))?;
        let keys = Arc::new(keys);
        *lock(&self.keys) = Some(keys.clone());
        Ok(keys)
    }

    /// Verifies a token. An unknown key id causes one refresh of the key set.
    async fn verified(&self, metadata: &Metadata, token: &str, expected: &Expected<'_>) -> Result<Claims> {
        let kept = lock(&self.keys).clone();
        let mut checked = match &kept {
            Some(keys) => id_token::verify(token, keys, expected),
            None => Err(Refused::UnknownKey),
        };
        if checked == Err(Refused::UnknownKey) {
            checked = id_token::verify(token, &self.fresh_keys(metadata).await?, expected);
        }
        checked.map_err(|refused| {
            let why = match refused {
                Refused::No(why) => why,
                Refused::UnknownKey => "its key is not among those that the provider publishes",
            };
            tracing::warn!(why, "an ID token was refused");
            Problem::new(Code::Unauthorized, format!("The provider's ID token is not accepted: {why}."))
        })
    }

    /// Exchanges a code for an ID token (OpenID Connect Core 1.0, 3.1.3).
    async fn redeem(&self, metadata: &Metadata, callback: &str, code: &str, verifier: &str) -> Result<String> {
        let what = "the exchange of its code";
        let request = self.redemption(metadata, callback, code, verifier);
        let answer = self.fetch.fetch(request).await.map_err(|why| provider_fails(what, &why))?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        match (answer.status, text("error"), text("id_token")) {
            (200, _, Some(token)) => Ok(token.into()),
            (200, ..) => Err(provider_fails(what, "its response contains no ID token")),
            (_, Some("invalid_grant"), _) => {
                let message = "The provider does not accept this code any more. Sign in again.";
                Err(Problem::new(Code::Unauthorized, message))
            }
            (_, Some("invalid_client"), _) => {
                Err(provider_fails(what, "it refuses this server's client id and secret; compare them with its own"))
            }
            (status, error, _) => {
                let error = error.map(|error| format!(" and `{}`", word(error))).unwrap_or_default();
                Err(provider_fails(what, &format!("it answers {status}{error}")))
            }
        }
    }

    /// The request of the exchange. The client secret is in a header if the provider supports it (RFC 6749, 2.3.1).
    fn redemption(&self, metadata: &Metadata, callback: &str, code: &str, verifier: &str) -> Request {
        let Settings { client_id, client_secret, .. } = &self.settings;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", callback)
            .append_pair("code_verifier", verifier);
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        let is_basic = methods.is_none_or(|known| known.iter().any(|one| one == "client_secret_basic"));
        let authorization = is_basic.then(|| {
            let encoded = |text: &String| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(client_secret))))
        });
        if !is_basic {
            form.append_pair("client_id", client_id).append_pair("client_secret", client_secret);
        }
        let (url, form) = (metadata.token_endpoint.clone(), Some(form.finish()));
        Request { url, authorization, form, bytes_max: ANSWER_BYTES_MAX, timeout_ms: TIMEOUT_MS }
    }

    async fn json(&self, what: &str, url: Url) -> Result<Value> {
        let (bytes_max, timeout_ms) = (ANSWER_BYTES_MAX, TIMEOUT_MS);
        let request = Request { url, authorization: None, form: None, bytes_max, timeout_ms };
        let answer = self.fetch.fetch(request).await.map_err(|why| provider_fails(what, &why))?;
        if answer.status != 200 {
            return Err(provider_fails(what, &format!("it answers {}", answer.status)));
        }
        serde_json::from_slice(&answer.body).map_err(|_| provider_fails(what, "it is not JSON"))
    }
}

/// An error code with the syntax of RFC 6749; other texts are replaced, because they are not trusted.
fn word(error: &str) -> &str {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    if error.len() <= 64 && error.bytes().all(fits) { error } else { "an error of its own" }
}

/// The first 200 printable characters of a provider's text.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::oidc::Fetching;

    /// A provider that never answers.
    struct Silent;

    impl Fetch for Silent {
        fn fetch(&self, _: Request) -> Fetching<'_> {
            Box::pin(std::future::pending())
        }
    }

    fn settings() -> Settings {
        let of = |name: &str| match name {
            "oidcIssuer" => Some("https://id.example.com".into()),
            "oidcClientId" | "oidcClientSecret" => Some("x".into()),
            _ => None,
        };
        Settings::of(of).unwrap().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn sign_ins_are_limited_per_address() {
        let provider = Arc::new(Provider::new(settings(), Arc::new(Silent)));
        let begin = |last: u8| {
            let provider = provider.clone();
            tokio::spawn(
                async move { provider.begin("/", "/", &[0; 32], IpAddr::from([192, 0, 2, last])).await.is_ok() },
            )
        };
        let waiting: Vec<_> = (0..200).map(|_| begin(1)).collect();
        while waiting.iter().filter(|sign_in| sign_in.is_finished()).count() < 200 - WAITING_OF_ADDRESS_MAX {
            tokio::task::yield_now().await;
        }
        assert_eq!(provider.room.count_of(&IpAddr::from([192, 0, 2, 1])), WAITING_OF_ADDRESS_MAX);
        let other = IpAddr::from([192, 0, 2, 2]);
        assert!(provider.room(other).is_ok(), "another address was turned away");
    }

    #[test]
    fn causes_of_provider_errors_are_only_logged() {
        let problem = provider_fails("its keys", "10.0.0.7:443: connection refused");
        assert!(
            !problem.message.contains("10.0.0.7") && problem.full_message().contains("its keys: 10.0.0.7"),
            "{problem:?}"
        );
        assert!(provider_reason(&problem).is_some_and(|reason| reason.contains("10.0.0.7")));
        let other = Problem::new(Code::Unavailable, "m").because("the store");
        assert_eq!(provider_reason(&other), None);
    }
}
