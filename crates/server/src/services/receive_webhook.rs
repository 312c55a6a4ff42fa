//! Webhook deliveries: finds the trigger, verifies the request over its raw bytes, recognizes repeated deliveries, and
//! starts the execution before the response.

use std::net::IpAddr;

use axum::{
    body::Bytes,
    http::{HeaderMap, Method},
};
use mainspring_kernel::value::{Map, Value};
use mainspring_store::{ExecutionRow, Origin};
use mainspring_triggers::{
    idempotency::{delivery_key, verified_key},
    limits::{DELIVERY_ID_BYTES_MAX, HOPS_MAX, REPEATED_WITHIN_MS},
    webhook::{Encoding, HmacScheme, Scheme, SignedContent, Verified, Verifier},
};

use crate::{
    app::App,
    http::{
        problem::{Code, Problem, Result},
        request_slots::{Account, Kind, on_account},
    },
    resources::{
        Respond, RunOutcome, Trigger, TriggerConfig, WebhookConfig, WebhookPath,
        repository::{Repository, Stored},
    },
    services::{
        events::hops,
        fire_trigger::{Fired, Firing, fire, log_run},
        handshakes::handshake,
        run_log::RunEntry,
        trigger_config::verifier,
        trigger_event::{Event, MappedEvent, read_body, read_headers, read_pairs},
        trigger_secrets::{Secrets, open},
    },
};

/// Headers that name a delivery, in the order of precedence. Only those of a signed scheme are covered by a signature.
const DELIVERY_HEADERS: [&str; 4] = ["webhook-id", "x-github-delivery", "x-delivery-id", "idempotency-key"];

/// Headers in which a webhook without a configured scheme finds the HMAC-SHA256 of the body, in hexadecimal.
const DEFAULT_SIGNATURE_HEADERS: [&str; 2] = ["x-signature", "x-hub-signature-256"];

/// Bytes of a delivery, counted once for each path of the mapping, that are read without a request slot: about a
/// millisecond.
const INLINE_COST_MAX: usize = 128 * 1024;

/// A request to a webhook.
pub(crate) struct Delivery {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) from: IpAddr,
}

/// The answer to a verified delivery.
pub(crate) enum Answer {
    /// It has started an execution, or an earlier delivery has.
    Received(Box<Received>),
    /// The sender tries the address, and expects this body.
    Acknowledged(Value),
}

/// An accepted delivery.
pub(crate) struct Received {
    pub(crate) fired: Fired,
    /// Longest wait for the output; `None` to respond at once.
    pub(crate) wait_ms: Option<u64>,
}

/// A refused delivery.
pub(crate) struct Refused {
    pub(crate) problem: Problem,
    /// The accepted method, if the delivery had another.
    pub(crate) allow: Option<String>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { problem, allow: None }
    }
}

/// The trigger of a path.
struct Target {
    organization: String,
    trigger: Stored<Trigger>,
    webhook: WebhookConfig,
    secrets: Secrets,
}

/// Receives a delivery. The start is durable when this returns.
pub(crate) async fn receive(app: &App, delivery: Delivery) -> Result<Answer, Refused> {
    let path = delivery.path.clone();
    let target = app.run_short(move |app| target(app, &path)).await?;
    if delivery.method.as_str() != target.webhook.method {
        let message = format!("This webhook takes {}, not {}.", target.webhook.method, delivery.method);
        let problem = Problem::new(Code::MethodNotAllowed, message);
        return Err(Refused { problem, allow: Some(target.webhook.method) });
    }
    let now = app.now_ms();
    let trigger = (target.organization.clone(), target.trigger.id.clone());
    let verified = match verify(&target, &delivery, now) {
        Ok(verified) => verified,
        Err(problem) => {
            if app.pending_runs.logs_unverified(&trigger, now) {
                log_run(app, &trigger.0, &trigger.1, refused(now, None, &problem));
            }
            return Err(problem.into());
        }
    };
    let is_proven = target.secrets != Secrets::default();
    if is_proven {
        // The sender does not pay for others behind its address, and pays at the trigger instead.
        app.limiter.refund_anonymous(delivery.from);
        app.limiter.caller(&format!("trigger/{}", target.trigger.id)).checked("to this webhook").1?;
    }
    let id = delivery_id(&delivery.headers, verified.as_ref())?;
    if let Some(handshake) = handshake(target.webhook.signature.as_ref(), &delivery.headers, &delivery.body) {
        log_run(app, &trigger.0, &trigger.1, acknowledged(now, id, handshake.name));
        return Ok(Answer::Acknowledged(handshake.answer));
    }
    let wait_ms = (target.webhook.respond == Respond::Wait).then_some(target.webhook.wait_ms);
    let account = account_of(&target.organization);
    let started = start(app, &target, delivery, (id.as_deref(), verified.as_ref()), now);
    match on_account(account, started).await {
        Ok((fired, mapped)) => {
            let (outcome, status) =
                if fired.existed { (RunOutcome::Duplicate, 200) } else { (RunOutcome::Started, 202) };
            let entry = RunEntry {
                at: now,
                source: "webhook",
                outcome,
                status: Some(status),
                execution: Some(fired.execution_id.clone()),
                delivery: id,
                reason: mapped.missing_text(),
            };
            log_run(app, &trigger.0, &trigger.1, entry);
            Ok(Answer::Received(Box::new(Received { fired, wait_ms })))
        }
        Err(problem) => {
            log_run(app, &trigger.0, &trigger.1, refused(now, id, &problem));
            Err(problem.into())
        }
    }
}

/// The account of work for a delivery: that of the organization. The slots of the sender's address are few, and for
/// requests that take milliseconds.
pub(crate) fn account_of(organization: &str) -> Account {
    Account { kind: Kind::Ordinary, key: organization.into(), member: String::new() }
}

fn acknowledged(at: u64, delivery: Option<String>, handshake: &str) -> RunEntry {
    RunEntry {
        at,
        source: "webhook",
        outcome: RunOutcome::Skipped,
        status: Some(200),
        execution: None,
        delivery,
        reason: Some(format!("The sender tried the address (`{handshake}`), which starts nothing.")),
    }
}

fn refused(at: u64, delivery: Option<String>, problem: &Problem) -> RunEntry {
    RunEntry {
        at,
        source: "webhook",
        outcome: RunOutcome::Refused,
        status: Some(problem.code.status().as_u16()),
        execution: None,
        delivery,
        reason: Some(problem.message.clone()),
    }
}

/// Finds the trigger of a path.
fn target(app: &App, path: &str) -> Result<Target> {
    let unknown = || Problem::not_found("webhook");
    // Longer texts are no path, and too long for a key of the store.
    if path.len() > mainspring_triggers::limits::WEBHOOK_PATH_BYTES_MAX {
        return Err(unknown());
    }
    let owner = Repository::of(app.catalogue(), "").get::<WebhookPath>(path)?.ok_or_else(unknown)?.body;
    let trigger = Repository::of(app.catalogue(), &owner.organization).get::<Trigger>(&owner.trigger)?;
    let trigger = trigger.ok_or_else(unknown)?;
    let TriggerConfig::Webhook(webhook) = trigger.body.config.clone() else { return Err(unknown()) };
    let secrets = open(webhook.sealed.as_deref(), &app.settings.encryption_keys, (&owner.organization, &trigger.id))?;
    Ok(Target { organization: owner.organization, trigger, webhook, secrets })
}

/// Verifies the required headers and the signature. `None` for a webhook without a secret.
fn verify(target: &Target, delivery: &Delivery, now_ms: u64) -> Result<Option<Verified>> {
    let Secrets { secrets, headers: required } = &target.secrets;
    let text = |value: &axum::http::HeaderValue| value.to_str().ok().map(ToString::to_string);
    let headers: Vec<(&str, String)> =
        delivery.headers.iter().filter_map(|(name, value)| Some((name.as_str(), text(value)?))).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let refused = |why: &dyn std::fmt::Display| {
        Problem::new(
            Code::Unauthorized,
            format!("The delivery was not verified: {why}. Check the secret at the sender."),
        )
    };
    for (name, value) in required {
        let verifier = Verifier::new(Scheme::Token(name.clone()), &[value]).map_err(|error| refused(&error))?;
        verifier.verify(&headers, &delivery.body, now_ms).map_err(|rejection| refused(&rejection))?;
    }
    if secrets.is_empty() {
        return Ok(None);
    }
    let verifier = match &target.webhook.signature {
        Some(signature) => verifier(signature, secrets)?,
        None => default_verifier(&headers, secrets)?,
    };
    verifier.verify(&headers, &delivery.body, now_ms).map(Some).map_err(|rejection| refused(&rejection))
}

/// The default scheme: both headers sign the same content, the body.
fn default_verifier(headers: &[(&str, &str)], secrets: &[String]) -> Result<Verifier> {
    let value = |header: &str| headers.iter().find(|(name, _)| *name == header).map(|(_, value)| *value);
    let header = DEFAULT_SIGNATURE_HEADERS.into_iter().find(|header| value(header).is_some());
    let header = header.unwrap_or(DEFAULT_SIGNATURE_HEADERS[0]);
    let prefix = if value(header).is_some_and(|value| value.starts_with("sha256=")) { "sha256=" } else { "" };
    let scheme = HmacScheme {
        header: header.into(),
        prefix: prefix.into(),
        encoding: Encoding::Hex,
        algorithm: mainspring_triggers::webhook::Algorithm::Sha256,
        timestamp_header: None,
        content: SignedContent::body(),
    };
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    Verifier::new(Scheme::Hmac(scheme), &secrets).map_err(|error| Problem::new(Code::InternalError, error.to_string()))
}

/// The id that the sender gave a delivery: the one that its signature covers, otherwise that of a header.
fn delivery_id(headers: &HeaderMap, verified: Option<&Verified>) -> Result<Option<String>> {
    let fits = |id: &str| (1..=DELIVERY_ID_BYTES_MAX).contains(&id.len());
    let refused = |name: &str| {
        Problem::field(name, format!("send it once, with 1 to {DELIVERY_ID_BYTES_MAX} visible characters"))
    };
    let signed = verified.and_then(|verified| verified.delivery.as_ref()).filter(|delivery| delivery.is_signed);
    if let Some(signed) = signed {
        return if fits(&signed.id) { Ok(Some(signed.id.clone())) } else { Err(refused("the id of the delivery")) };
    }
    let Some(name) = DELIVERY_HEADERS.into_iter().find(|name| headers.contains_key(*name)) else { return Ok(None) };
    let is_single = headers.get_all(name).iter().count() == 1;
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.filter(|id| is_single && fits(id)).map(|id| Some(id.to_string())).ok_or_else(|| refused(name))
}

/// Maps the event and starts the execution.
async fn start(
    app: &App,
    target: &Target,
    delivery: Delivery,
    identity: (Option<&str>, Option<&Verified>),
    now: u64,
) -> Result<(Fired, MappedEvent)> {
    if !target.trigger.body.enabled {
        return Err(Problem::new(Code::TriggerDisabled, "This webhook is disabled and starts nothing."));
    }
    let hops = hops::of_headers(&delivery.headers);
    if hops > HOPS_MAX {
        let message = format!(
            "{HOPS_MAX} webhooks with events of executions led to this one, so it starts nothing: a subscription sends the \
             events of executions that its own events start. Restrict its workflows."
        );
        return Err(Problem::new(Code::Conflict, message));
    }
    let (event, mapped) = read_event(app, target, &delivery).await?;
    let idempotency_key = key_of(app, target, &delivery, identity, now).await?;
    let mut metadata = Map::from(
        [
            ("deliveryId", identity.0.into()),
            ("method", delivery.method.as_str().into()),
            ("path", delivery.path.as_str().into()),
            ("event", event),
            ("missing", mapped.missing_value()),
        ]
        .map(|(key, value): (&str, Value)| (key.to_string(), value)),
    );
    if hops > 0 {
        metadata.insert(hops::FIELD.into(), hops.into());
    }
    let variables = mapped.variables.clone();
    let firing = Firing { source: "webhook", idempotency_key, metadata, variables };
    Ok((fire(app, &target.organization, &target.trigger, firing).await?, mapped))
}

/// Reads the event of a delivery and applies the mapping. The sender decides how long that takes, so only small work runs
/// here, and all other work with a request slot.
async fn read_event(app: &App, target: &Target, delivery: &Delivery) -> Result<(Value, MappedEvent)> {
    let Delivery { query, headers, body, .. } = delivery;
    let (query, headers, body) = (query.clone(), headers.clone(), body.clone());
    let (webhook, paths) = (target.webhook.clone(), target.trigger.body.variable_mapping.clone());
    let cost = (body.len() + query.len()).saturating_mul(1 + paths.len());
    let work = move || {
        let event = Event {
            body: read_body(&headers, &body)?,
            query: read_pairs(query.as_bytes()),
            headers: read_headers(&headers, &webhook),
        };
        let mapped = event.map(&paths)?;
        Ok((event.to_value(), mapped))
    };
    if cost <= INLINE_COST_MAX { work() } else { app.run(move |_| work()).await }
}

/// The key under which a delivery starts an execution once. A signed id names a delivery, and so does an id at a webhook
/// without a secret. All others are recognized by their content for 24 hours: a captured request must not start a second
/// execution under another id.
async fn key_of(
    app: &App,
    target: &Target,
    delivery: &Delivery,
    (id, verified): (Option<&str>, Option<&Verified>),
    now: u64,
) -> Result<String> {
    let trigger = target.trigger.id.as_str();
    let (query, body) = (delivery.query.as_str(), &delivery.body);
    let (key, is_named) = match verified {
        Some(verified) => (
            verified_key(trigger, verified, body),
            verified.delivery.as_ref().is_some_and(|delivery| delivery.is_signed),
        ),
        None => (delivery_key(trigger, id, query, body), id.is_some()),
    };
    if is_named {
        return Ok(key);
    }
    let organization = target.organization.clone();
    let workflow = target.trigger.body.workflow.clone().unwrap_or_default();
    app.run_short(move |app| unrepeated_key(app, (&organization, &workflow), key, now)).await
}

/// The key of a delivery without an id: that of a delivery in the last 24 hours, or a new one. Keys are kept as long as
/// executions, so a later delivery with the same content has the day in its key.
fn unrepeated_key(app: &App, (organization, workflow): (&str, &str), key: String, now: u64) -> Result<String> {
    let of = Origin { organization: Some(organization), workflow_id: Some(workflow), workflow: None };
    let earlier = |key: &str| app.engine.store().execution_by_idempotency_key(&of, key);
    let is_recent = |row: &ExecutionRow| now.saturating_sub(row.started_at) < REPEATED_WITHIN_MS;
    match earlier(&key)? {
        None => return Ok(key),
        Some(row) if is_recent(&row) => return Ok(key),
        Some(_) => {}
    }
    let day = now / REPEATED_WITHIN_MS;
    let of_day = |day: u64| format!("{key}:{day}");
    let yesterday = of_day(day.saturating_sub(1));
    let is_repeated = earlier(&yesterday)?.as_ref().is_some_and(is_recent);
    Ok(if is_repeated { yesterday } else { of_day(day) })
}
