//! One delivery: a signed request to the endpoint of a subscription, and its result.

use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    failure::Failure,
    hash::Hash,
    key::ExecutionKey,
    secret::SecretUses,
    value::{Map, Value},
};
use mainspring_triggers::webhook::{ConfigurationError, standard_signatures};
use tracing::warn;

use super::{
    cloud_event::{CloudEvent, MEDIA_TYPE},
    hops,
};
use crate::{
    app::App,
    http::problem::{Code, Problem, Result},
    resources::{EventSubscription, repository::Stored},
    services::{
        encryption_keys::{EncryptionKeys, Key},
        sealing,
    },
};

/// Domain separator for deriving the key from an encryption key.
const PURPOSE: &[u8] = b"mainspring event subscription secrets 1";

/// Most bytes of a response, which is read and dropped.
const RESPONSE_BYTES_MAX: u64 = 1024 * 1024;

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// The endpoint has answered with this success status.
    Accepted(u16),
    /// It has not.
    Failed(DeliveryFailure),
}

/// The reason of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryFailure {
    /// Error code of an `http` step, as `http_status:503`, or the reason why no request was sent.
    pub error: String,
    /// The delay that the endpoint requests, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl DeliveryFailure {
    pub(crate) fn new(error: &str) -> Self {
        Self { error: error.into(), retry_after_ms: None }
    }

    /// True if the endpoint wants no more deliveries: 410 (Standard Webhooks).
    pub(crate) fn is_gone(&self) -> bool {
        self.error == "http_status:410"
    }
}

/// Encrypts the secret of a subscription. The owner is part of the encryption, so that a copied row cannot be opened as
/// that of another subscription.
pub(crate) fn seal_secret(app: &App, secret: &str, owner: (&str, &str)) -> Result<String> {
    let sealed = sealing::seal(secret.as_bytes(), &app.sealer()?.primary, PURPOSE, &[owner.0, owner.1]);
    sealed.ok_or_else(|| Problem::new(Code::InternalError, "The secret of this subscription cannot be encrypted."))
}

/// Encrypts a stored secret with another key. `None` if it cannot be decrypted.
pub(crate) fn seal_again(sealed: &str, keys: &EncryptionKeys, key: &Key, owner: (&str, &str)) -> Option<String> {
    let bytes = sealing::open(sealed, keys, PURPOSE, &[owner.0, owner.1])?;
    sealing::seal(&bytes, key, PURPOSE, &[owner.0, owner.1])
}

/// The secrets that are valid at a time: the present one, and the previous one for a time after its rotation. `None` if the
/// present one cannot be decrypted. A previous one that cannot be is left out: the rotation was the repair.
fn secrets(app: &App, organization: &str, of: &Stored<EventSubscription>, now_ms: u64) -> Option<Vec<String>> {
    let open = |sealed: &str| {
        let bytes = sealing::open(sealed, &app.settings.encryption_keys, PURPOSE, &[organization, &of.id])?;
        String::from_utf8(bytes).ok()
    };
    let previous = of.body.previous.iter().filter(|previous| previous.until > now_ms);
    let mut secrets = vec![open(&of.body.secret)?];
    secrets.extend(previous.filter_map(|previous| open(&previous.secret)));
    Some(secrets)
}

/// A request to an endpoint.
pub(crate) struct Outgoing<'a> {
    /// The organization whose address rules apply.
    pub organization: &'a str,
    /// The address of the endpoint.
    pub url: &'a str,
    /// The valid secrets, each of the form `whsec_…`.
    pub secrets: &'a [&'a str],
    /// Id of the subscription or of the trigger, for messages.
    pub sender: &'a str,
    pub event: &'a CloudEvent,
}

/// Sends an event to a subscription once. A secret that cannot sign is a failed attempt, so that it is counted and shown.
pub(crate) async fn send(
    app: &App,
    organization: &str,
    to: &Stored<EventSubscription>,
    event: &CloudEvent,
) -> Delivered {
    let Some(secrets) = secrets(app, organization, to, app.now_ms()) else {
        return Delivered::Failed(DeliveryFailure::new("subscription_secret_unreadable"));
    };
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let request = Outgoing { organization, url: &to.body.url, secrets: &secrets, sender: &to.id, event };
    post(app, &request).await.unwrap_or_else(|error| {
        warn!(subscription = to.id, error = error.to_string(), "the secret of a subscription cannot sign");
        Delivered::Failed(DeliveryFailure::new("subscription_secret_invalid"))
    })
}

/// Sends a signed request once. The error is that of a secret that cannot sign.
pub(crate) async fn post(app: &App, outgoing: &Outgoing<'_>) -> Result<Delivered, ConfigurationError> {
    let Outgoing { organization, url, secrets, sender, event } = *outgoing;
    let now_ms = app.now_ms();
    let seconds = now_ms / 1000;
    let signature = standard_signatures(secrets, &event.id, seconds, event.body.as_bytes())?;
    let mut headers = Map::from(
        [
            ("content-type", MEDIA_TYPE.into()),
            ("webhook-id", event.id.as_str().into()),
            ("webhook-timestamp", seconds.to_string().as_str().into()),
            ("webhook-signature", signature.as_str().into()),
        ]
        .map(|(name, value): (&str, Value)| (name.to_string(), value)),
    );
    if event.hops > 0 {
        headers.insert(hops::HEADER.into(), event.hops.to_string().as_str().into());
    }
    let params = Value::map([
        ("method", "POST".into()),
        ("url", url.into()),
        ("headers", Value::Map(headers)),
        ("body", event.body.as_str().into()),
        ("followRedirects", false.into()),
        ("idempotencyHeader", false.into()),
        ("maxResponseBytes", RESPONSE_BYTES_MAX.into()),
    ]);
    let attempt = Attempt {
        execution: ExecutionKey([0; 16]),
        root: ExecutionKey([0; 16]),
        execution_id: String::new(),
        organization: Some(organization.into()),
        workflow_id: None,
        step: sender.into(),
        number: 1,
        effect: "http".into(),
        params,
        intent: Hash::of(event.id.as_bytes()),
        flags: AttemptFlags::default(),
        handed_out_at: now_ms,
        workspace: None,
        secrets: SecretUses::default(),
        progress: None,
    };
    Ok(match app.settings.outgoing.webhooks.send(&attempt).await {
        Some(outcome) => of_outcome(&outcome),
        None => Delivered::Failed(DeliveryFailure::new("http_timeout")),
    })
}

fn of_outcome(outcome: &Outcome) -> Delivered {
    match outcome {
        Outcome::Done(answer) => {
            let status = answer.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
            Delivered::Accepted(status.unwrap_or_default())
        }
        Outcome::Failed(Failure { code, details, .. }) => Delivered::Failed(DeliveryFailure {
            error: code.clone(),
            retry_after_ms: details.get("retryAfterMs").and_then(Value::as_u64),
        }),
        _ => Delivered::Failed(DeliveryFailure::new("http_connection_lost")),
    }
}
