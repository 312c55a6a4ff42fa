//! The change of the encryption key: the newest key of the key file becomes the primary one, and stored values are encrypted
//! again, one row at a time. Each step leaves every value readable, since no key is removed here, and the work can be
//! interrupted and repeated.

use std::collections::BTreeMap;

use mainspring_kernel::value::Value;
use mainspring_store::{Change, Put};

use super::{
    encryption_keys::{EncryptionKeys, Key},
    events::delivery,
    sealing, stored_secrets, trigger_secrets,
};
use crate::{
    app::App,
    auth::caller::Caller,
    http::problem::{Code, Problem, Result},
    resources::{
        EventSubscription, Organization, PRIMARY_KEY, PrimaryKey, Secret, Trigger, TriggerConfig,
        repository::{Repository, Stored, apply, entry},
    },
};

/// A key with the values that are encrypted with it.
pub(crate) struct KeyUse {
    pub id: String,
    /// True if new values are encrypted with it.
    pub is_primary: bool,
    pub is_installation: bool,
    /// True if this node has it.
    pub is_known: bool,
    /// Number of stored values under it.
    pub values: u64,
}

/// The result of one step.
pub(crate) struct Step {
    /// Id of the primary key.
    pub primary: String,
    /// Number of rows that this step has encrypted again.
    pub rows: usize,
    /// Number of rows that cannot be decrypted by this node, and stay as they are.
    pub unreadable: usize,
    /// True if no other row is left.
    pub is_done: bool,
}

/// A row with encrypted values, of an organization.
enum Row {
    Secret(Stored<Secret>),
    Trigger(Box<Stored<Trigger>>),
    Subscription(Stored<EventSubscription>),
}

/// A row as it is under the primary key.
enum Again {
    /// It is so already.
    Same,
    Changed(Put),
    /// It cannot be decrypted.
    Unreadable,
}

/// The keys of this node and of stored values, in the order of the file, with unknown ones at the end.
pub(crate) fn uses(app: &App) -> Result<(Vec<KeyUse>, Option<PrimaryKey>)> {
    let keys = &*app.settings.encryption_keys;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    each_row(app, &mut |_, row| {
        for sealed in row.sealed() {
            *counts.entry(sealing::id_of(sealed, keys)).or_default() += 1;
        }
        Ok(true)
    })?;
    let chosen = Repository::of(app.catalogue(), "").get::<PrimaryKey>(PRIMARY_KEY)?.map(|stored| stored.body);
    let all = keys.all()?;
    let primary = chosen.as_ref().map_or_else(|| all[0].id.clone(), |chosen| chosen.key_id.clone());
    let mut uses: Vec<KeyUse> = Vec::new();
    for Key { id, is_installation, .. } in all {
        let values = counts.remove(&id).unwrap_or_default();
        uses.push(KeyUse { is_primary: id == primary, is_installation, is_known: true, values, id });
    }
    if !uses.iter().any(|one| one.is_primary) {
        counts.entry(primary.clone()).or_default();
    }
    uses.extend(counts.into_iter().map(|(id, values)| KeyUse {
        is_primary: id == primary,
        is_installation: false,
        is_known: false,
        values,
        id,
    }));
    Ok((uses, chosen))
}

/// Makes the newest key of the file the primary one, and encrypts up to `rows_max` rows again.
pub(crate) fn rotate(app: &App, caller: &Caller, rows_max: usize) -> Result<Step> {
    let primary = activate(app, caller)?;
    let mut step = Step { primary: primary.id.clone(), rows: 0, unreadable: 0, is_done: true };
    each_row(app, &mut |organization, row| {
        match row.again(app, organization, &primary)? {
            Again::Same => {}
            Again::Unreadable => step.unreadable += 1,
            Again::Changed(_) if step.rows == rows_max => step.is_done = false,
            Again::Changed(put) => {
                let change = Change { puts: vec![put], sealing: *app.engine.key(), ..Change::default() };
                match apply(app.catalogue(), &change)? {
                    Ok(()) => step.rows += 1,
                    // The row has changed since it was read. The next step finds its new state.
                    Err(_) => step.is_done = false,
                }
            }
        }
        Ok(step.is_done)
    })?;
    Ok(step)
}

/// Makes the newest key of the file the primary one.
fn activate(app: &App, caller: &Caller) -> Result<Key> {
    let all = app.settings.encryption_keys.all()?;
    let newest = all.last().cloned().ok_or_else(Problem::concurrent_change)?;
    let repository = Repository::of(app.catalogue(), "");
    let before = repository.get::<PrimaryKey>(PRIMARY_KEY)?;
    let present = before.as_ref().map_or(&all[0].id, |stored| &stored.body.key_id);
    if *present == newest.id {
        return Ok(newest);
    }
    if newest.is_installation {
        let message = "The key file of this node has no encryption key, and the store names one: copy the key file of \
                       a node that has it.";
        return Err(Problem::new(Code::Conflict, message));
    }
    if all.iter().all(|key| key.id != *present) {
        let message = format!("The key file of this node lacks the primary key {present}: copy that of another node.");
        return Err(Problem::new(Code::Conflict, message));
    }
    let version = before.as_ref().map_or(0, |stored| stored.version);
    let chosen =
        PrimaryKey { key_id: newest.id.clone(), activated_by: caller.user.clone(), activated_at: app.now_ms() };
    let detail = Value::map([("from", Value::from(present.as_str())), ("to", newest.id.as_str().into())]);
    let change = Change {
        puts: vec![repository.put(PRIMARY_KEY, &chosen, version)?],
        audit: vec![entry(caller, "installation.rotate_key", &newest.id, detail)],
        sealing: *app.engine.key(),
        ..Change::default()
    };
    apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
    Ok(newest)
}

/// Calls a function for each row until it returns false.
fn each_row(app: &App, visit: &mut dyn FnMut(&str, Row) -> Result<bool>) -> Result<()> {
    for organization in Repository::of(app.catalogue(), "").all::<Organization>(None) {
        let id = organization?.id;
        let repository = Repository::of(app.catalogue(), &id);
        let secrets = repository.all::<Secret>(None).map(|row| row.map(Row::Secret));
        let triggers = repository.all::<Trigger>(None).map(|row| row.map(|row| Row::Trigger(Box::new(row))));
        let subscriptions = repository.all::<EventSubscription>(None).map(|row| row.map(Row::Subscription));
        for row in secrets.chain(triggers).chain(subscriptions) {
            if !visit(&id, row?)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl Row {
    /// The encrypted values.
    fn sealed(&self) -> Vec<&str> {
        match self {
            Self::Secret(stored) => vec![&stored.body.sealed],
            Self::Trigger(stored) => match &stored.body.config {
                TriggerConfig::Webhook(webhook) => webhook.sealed.iter().map(String::as_str).collect(),
                _ => Vec::new(),
            },
            Self::Subscription(stored) => {
                let previous = stored.body.previous.iter().map(|previous| previous.secret.as_str());
                [stored.body.secret.as_str()].into_iter().chain(previous).collect()
            }
        }
    }

    /// The row under the primary key.
    fn again(self, app: &App, organization: &str, primary: &Key) -> Result<Again> {
        let keys: &EncryptionKeys = &app.settings.encryption_keys;
        if self.sealed().iter().all(|sealed| sealing::id_of(sealed, keys) == primary.id) {
            return Ok(Again::Same);
        }
        let repository = Repository::of(app.catalogue(), organization);
        let put = match self {
            Self::Secret(Stored { id, version, mut body }) => {
                let again = stored_secrets::seal_again(&body, keys, primary, (organization, &id));
                let Some(sealed) = again else { return Ok(Again::Unreadable) };
                (body.sealed, body.key_id) = (sealed, primary.id.clone());
                repository.put(&id, &body, version)?
            }
            Self::Trigger(stored) => {
                let Stored { id, version, mut body } = *stored;
                let TriggerConfig::Webhook(webhook) = &mut body.config else { return Ok(Again::Same) };
                let Ok(secrets) = trigger_secrets::open(webhook.sealed.as_deref(), keys, (organization, &id)) else {
                    return Ok(Again::Unreadable);
                };
                webhook.sealed = trigger_secrets::seal(&secrets, primary, (organization, &id))?;
                repository.put(&id, &body, version)?
            }
            Self::Subscription(Stored { id, version, mut body }) => {
                let again = |sealed: &str| delivery::seal_again(sealed, keys, primary, (organization, &id));
                let Some(secret) = again(&body.secret) else { return Ok(Again::Unreadable) };
                body.secret = secret;
                // A previous secret that cannot be decrypted is not used for signatures either.
                body.previous = body.previous.and_then(|mut previous| {
                    previous.secret = again(&previous.secret)?;
                    Some(previous)
                });
                repository.put(&id, &body, version)?
            }
        };
        Ok(Again::Changed(put))
    }
}
