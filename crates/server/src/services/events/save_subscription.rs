//! Saves subscriptions to events. A change also writes the state, in one transaction.

use base64::{Engine, prelude::BASE64_STANDARD};
use mainspring_kernel::value::Value;
use mainspring_store::{Change, ReadLimit, Removal};
use mainspring_triggers::limits::{
    FAILED_DELIVERIES_MAX, ROTATION_MS, SUBSCRIPTION_KEY_BYTES_MAX, SUBSCRIPTION_KEY_BYTES_MIN,
    SUBSCRIPTION_WORKFLOWS_MAX, SUBSCRIPTIONS_PER_ORGANIZATION_MAX,
};
use serde::Deserialize;
use url::Url;
use utoipa::ToSchema;

use super::{delivery::seal_secret, endpoint_url::check_endpoint, event_types::check_patterns};
use crate::{
    app::App,
    auth::{caller::Caller, token::random},
    http::{
        body::{Tag, check_seen, double_option, not_null},
        problem::{Code, Problem, Result},
        timestamps,
    },
    resources::{
        EventSubscription, FailedEvent, PreviousSecret, SubscriptionState,
        repository::{Listing, Repository, Stored, entry, with_retries},
    },
    services::workflow_names::resolve,
};

/// Attempts of a change that conflicts with concurrent ones.
const TRIES: usize = 5;

/// Characters of the display name.
const NAME_MAX: usize = 200;

/// The form of secrets (Standard Webhooks).
const SECRET_PREFIX: &str = "whsec_";

/// Bytes of a generated key.
const KEY_BYTES: usize = 32;

/// Fields of the request that creates a subscription.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewSubscription {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// Address of the endpoint: `https://` or `http://`. Private addresses are refused unless the operator allows them.
    #[schema(max_length = 2000)]
    pub url: String,
    /// Types of events: `workflow.execution.finished`, or prefixes such as `workflow.step.*`.
    #[schema(min_items = 1, max_items = 32)]
    pub types: Vec<String>,
    /// Ids or slugs of workflows; null (default) for all executions of the organization.
    #[schema(min_items = 1, max_items = 100)]
    pub workflows: Option<Vec<String>>,
    /// True (default) if events are sent.
    pub enabled: Option<bool>,
    /// The secret of signatures: `whsec_` and 24 to 64 bytes in base64. By default the server generates one.
    pub secret: Option<String>,
}

/// Fields of a subscription to change. Omitted fields keep their values, and null is refused except for `workflows`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SubscriptionDraft {
    /// Display name.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// Address of the endpoint.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = String, required = false, max_length = 2000)]
    pub url: Option<String>,
    /// Types of events.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 32)]
    pub types: Option<Vec<String>>,
    /// Ids or slugs of workflows; null for all executions of the organization.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<Vec<String>>)]
    pub workflows: Option<Option<Vec<String>>>,
    /// True if events are sent. True also ends a pause and sends the events that wait; false drops them.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = bool, required = false)]
    pub enabled: Option<bool>,
}

/// A stored subscription with its state.
pub(crate) struct SubscriptionWithState {
    pub stored: Stored<EventSubscription>,
    pub state: SubscriptionState,
}

/// Reads a subscription of an organization; a missing one is a 404.
pub(crate) fn read(app: &App, organization: &str, id: &str) -> Result<SubscriptionWithState> {
    let repository = Repository::of(app.catalogue(), organization);
    with_state(repository, repository.require::<EventSubscription>(id)?)
}

/// Reads the state of a subscription.
pub(crate) fn with_state(
    repository: Repository<'_>,
    stored: Stored<EventSubscription>,
) -> Result<SubscriptionWithState> {
    let state = repository.get::<SubscriptionState>(&stored.id)?.map(|state| state.body).unwrap_or_default();
    Ok(SubscriptionWithState { stored, state })
}

/// Creates a subscription under a random id. Returns the secret as well if it was generated.
pub(crate) fn create(
    app: &App,
    caller: &Caller,
    new: &NewSubscription,
) -> Result<(SubscriptionWithState, Option<String>)> {
    check_name(&new.name)?;
    check_url(&new.url)?;
    check_patterns(&new.types)?;
    let (secret, generated) = match &new.secret {
        Some(secret) => (check_secret(secret)?.to_string(), None),
        None => {
            let secret = new_secret()?;
            (secret.clone(), Some(secret))
        }
    };
    let repository = Repository::of(app.catalogue(), &caller.organization);
    // Unique in the store: the queue of events has no organizations.
    let id = format!("evs-{}", random(16)?);
    let created = with_retries(app.catalogue(), TRIES, || {
        check_count(repository)?;
        let now = app.now_ms();
        let body = EventSubscription {
            name: new.name.clone(),
            url: new.url.clone(),
            types: new.types.clone(),
            workflows: workflow_ids(repository, caller, new.workflows.as_deref())?,
            enabled: new.enabled.unwrap_or(true),
            overflowed_at: None,
            secret: seal_secret(app, &secret, (&caller.organization, &id))?,
            previous: None,
            created_by: caller.user.clone(),
            created_at: now,
            updated_at: now,
        };
        let state = SubscriptionState::default();
        let puts = vec![repository.put(&id, &body, 0)?, repository.put(&id, &state, 0)?];
        let audit = vec![entry(caller, "event_subscription.create", &id, detail(&body))];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        let stored = Stored { id: id.clone(), version: 1, body };
        Ok((change, SubscriptionWithState { stored, state }))
    })?;
    Ok((created, generated))
}

/// Changes fields of a subscription. Enabling it ends a pause, and makes the events that wait due at once with all their
/// attempts; disabling it empties its queue.
pub(crate) fn update(
    app: &App,
    caller: &Caller,
    id: &str,
    draft: &SubscriptionDraft,
    seen: Option<Tag>,
) -> Result<SubscriptionWithState> {
    draft.name.as_deref().map_or(Ok(()), check_name)?;
    draft.url.as_deref().map_or(Ok(()), check_url)?;
    draft.types.as_deref().map_or(Ok(()), check_patterns)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let action = match draft {
        SubscriptionDraft { name: None, url: None, types: None, workflows: None, enabled: Some(enabled) } => {
            if *enabled { "event_subscription.enable" } else { "event_subscription.disable" }
        }
        _ => "event_subscription.update",
    };
    let after = with_retries(app.catalogue(), TRIES, || {
        let stored = repository.require::<EventSubscription>(id)?;
        check_seen(seen, Some(stored.tag()))?;
        let state = repository.get::<SubscriptionState>(id)?;
        let (state_version, mut state) =
            state.map_or((0, SubscriptionState::default()), |state| (state.version, state.body));
        let SubscriptionDraft { name, url, types, workflows, enabled } = draft.clone();
        let mut body = stored.body.clone();
        body.name = name.unwrap_or(body.name);
        body.url = url.unwrap_or(body.url);
        body.types = types.unwrap_or(body.types);
        if let Some(workflows) = workflows {
            body.workflows = workflow_ids(repository, caller, workflows.as_deref())?;
        }
        if let Some(enabled) = enabled {
            (body.enabled, body.overflowed_at) = (enabled, None);
            state = SubscriptionState { last_failure: state.last_failure, ..SubscriptionState::default() };
        }
        body.updated_at = app.now_ms();
        let puts = vec![repository.put(id, &body, stored.version)?, repository.put(id, &state, state_version)?];
        let audit = vec![entry(caller, action, id, detail(&body))];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        let stored = Stored { id: id.into(), version: stored.version + 1, body };
        Ok((change, SubscriptionWithState { stored, state }))
    })?;
    let queue = app.engine.store().event_queue();
    match draft.enabled {
        Some(true) => queue.retry_events(id)?,
        Some(false) => queue.remove_events(id)?,
        None => {}
    }
    Ok(after)
}

/// Replaces the secret by a generated one, and returns it. Deliveries are signed with both for a day. A further rotation in
/// this time is refused unless it is forced, since it ends the validity of the first secret.
pub(crate) fn rotate_secret(
    app: &App,
    caller: &Caller,
    id: &str,
    is_forced: bool,
) -> Result<(SubscriptionWithState, String)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let secret = new_secret()?;
    let rotated = with_retries(app.catalogue(), TRIES, || {
        let stored = repository.require::<EventSubscription>(id)?;
        let mut body = stored.body.clone();
        if !is_forced {
            check_previous(&body, app.now_ms())?;
        }
        let sealed = seal_secret(app, &secret, (&caller.organization, id))?;
        let until = app.now_ms().saturating_add(ROTATION_MS);
        body.previous = Some(PreviousSecret { secret: std::mem::replace(&mut body.secret, sealed), until });
        body.updated_at = app.now_ms();
        let puts = vec![repository.put(id, &body, stored.version)?];
        let audit = vec![entry(caller, "event_subscription.rotate_secret", id, Value::Null)];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        Ok((change, Stored { id: id.into(), version: stored.version + 1, body }))
    })?;
    Ok((with_state(repository, rotated)?, secret))
}

/// Refuses a rotation while the previous secret is valid.
fn check_previous(body: &EventSubscription, now_ms: u64) -> Result<()> {
    match &body.previous {
        Some(previous) if previous.until > now_ms => {
            let until = timestamps::text(previous.until);
            let message = format!(
                "The secret before the last rotation is valid until {until}, and a further rotation ends this at once. Rotate \
                 later, or send `force: true`."
            );
            Err(Problem::new(Code::Conflict, message))
        }
        _ => Ok(()),
    }
}

/// Deletes a subscription with its queue and its failed deliveries.
pub(crate) fn delete(app: &App, caller: &Caller, id: &str, seen: Option<Tag>) -> Result<()> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    with_retries(app.catalogue(), TRIES, || {
        let stored = repository.require::<EventSubscription>(id)?;
        check_seen(seen, Some(stored.tag()))?;
        let mut removals = vec![repository.removal(&stored)];
        if let Some(state) = repository.get::<SubscriptionState>(id)? {
            removals.push(Removal { expected: None, ..repository.removal(&state) });
        }
        let name = Some(("subscription", id.to_string()));
        let listing = Listing { name, most: ReadLimit::of(FAILED_DELIVERIES_MAX), ..Listing::default() };
        for failed in repository.list::<FailedEvent>(listing)?.rows {
            removals.push(repository.removal(&failed));
        }
        let audit = vec![entry(caller, "event_subscription.delete", id, Value::Null)];
        Ok((Change { removals, audit, sealing: *app.engine.key(), ..Change::default() }, ()))
    })?;
    Ok(app.engine.store().event_queue().remove_events(id)?)
}

/// The audit entry names the host, since the rest of a URL can contain secrets.
fn detail(body: &EventSubscription) -> Value {
    let host = Url::parse(&body.url).ok().and_then(|url| url.host_str().map(str::to_string));
    Value::map([("host", host.as_deref().into())])
}

fn check_name(name: &str) -> Result<()> {
    match name.chars().count() {
        1..=NAME_MAX => Ok(()),
        count => Err(Problem::field("name", format!("use 1 to {NAME_MAX} characters, not {count}"))),
    }
}

fn check_url(text: &str) -> Result<()> {
    check_endpoint(text).map_err(|why| Problem::field("url", why))
}

fn check_secret(secret: &str) -> Result<&str> {
    let key = secret.strip_prefix(SECRET_PREFIX).and_then(|text| BASE64_STANDARD.decode(text).ok());
    let has_length = |key: &Vec<u8>| (SUBSCRIPTION_KEY_BYTES_MIN..=SUBSCRIPTION_KEY_BYTES_MAX).contains(&key.len());
    if key.filter(has_length).is_some() {
        return Ok(secret);
    }
    let message = format!(
        "write `{SECRET_PREFIX}` and {SUBSCRIPTION_KEY_BYTES_MIN} to {SUBSCRIPTION_KEY_BYTES_MAX} bytes in base64, or leave \
         it out: the server generates one"
    );
    Err(Problem::field("secret", message))
}

fn new_secret() -> Result<String> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| {
        Problem::new(Code::InternalError, format!("The system provides no random numbers: {error}."))
    })?;
    Ok(format!("{SECRET_PREFIX}{}", BASE64_STANDARD.encode(key)))
}

fn check_count(repository: Repository<'_>) -> Result<()> {
    let listing = Listing { most: ReadLimit::of(SUBSCRIPTIONS_PER_ORGANIZATION_MAX), ..Listing::default() };
    if repository.list::<EventSubscription>(listing)?.rows.len() < SUBSCRIPTIONS_PER_ORGANIZATION_MAX {
        return Ok(());
    }
    let message =
        format!("The organization has {SUBSCRIPTIONS_PER_ORGANIZATION_MAX} event subscriptions. Delete one first.");
    Err(Problem::new(Code::Conflict, message))
}

/// The ids of workflows by their ids or slugs.
fn workflow_ids(repository: Repository<'_>, caller: &Caller, names: Option<&[String]>) -> Result<Option<Vec<String>>> {
    let Some(names) = names else { return Ok(None) };
    if !(1..=SUBSCRIPTION_WORKFLOWS_MAX).contains(&names.len()) {
        let message = format!("name 1 to {SUBSCRIPTION_WORKFLOWS_MAX} workflows, or null for all");
        return Err(Problem::field("workflows", message));
    }
    let id_of = |name: &String| match resolve(repository, &caller.user, name)? {
        Some(workflow) => Ok(workflow.id),
        None => Err(Problem::field("workflows", format!("there is no workflow `{name}`"))),
    };
    names.iter().map(id_of).collect::<Result<_>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_secret_is_accepted_and_a_short_one_is_not() {
        let secret = new_secret().unwrap();
        assert!(check_secret(&secret).is_ok());
        assert_ne!(secret, new_secret().unwrap());
        let short = format!("{SECRET_PREFIX}{}", BASE64_STANDARD.encode([1; SUBSCRIPTION_KEY_BYTES_MIN - 1]));
        for wrong in ["", "whsec_", "s3cret", &short, &secret[SECRET_PREFIX.len()..]] {
            assert!(check_secret(wrong).is_err(), "{wrong}");
        }
    }
}
