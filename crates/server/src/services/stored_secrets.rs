//! The secrets of organizations: encrypted in the store, set by members, and read for the steps of workflows.

use std::{fmt, sync::Arc};

use mainspring_effects::secrets::{Purpose, SecretError, SecretValue};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, key::ExecutionKey, secret::SESSION_TOKEN, value::Value};
use mainspring_store::{AuditEntry, Catalogue, Change, Store};

use crate::{
    auth::{caller::Caller, session_token::SessionToken},
    http::problem::{Code, Problem, Result},
    resources::{
        Secret, Workflow,
        repository::{Repository, Stored, entry, with_retries},
    },
    services::{
        encryption_keys::{EncryptionKeys, Key},
        sealing,
    },
};

/// Domain separator for deriving the key from an encryption key.
const PURPOSE: &[u8] = b"mainspring secrets 1";

/// Most secrets of an organization: enough for a few per workflow, and few enough to list in one response.
pub(crate) const SECRETS_MAX: usize = 1_000;

/// Most workflows that a secret names.
pub(crate) const WORKFLOWS_MAX: usize = 100;

/// The actor of a use in the audit log. No member can have this name.
const EXECUTION: &str = "(execution)";

/// Reads the secrets of a store.
pub struct StoredSecrets {
    store: Arc<dyn Store>,
    keys: Arc<EncryptionKeys>,
}

impl fmt::Debug for StoredSecrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("StoredSecrets")
    }
}

impl StoredSecrets {
    /// The secrets of a store, under these keys.
    pub fn new(store: Arc<dyn Store>, keys: Arc<EncryptionKeys>) -> Self {
        Self { store, keys }
    }

    /// Reads the secret of an organization for a step. `None` if the organization has no secret of this name. The use is
    /// recorded before the value is returned. Blocks.
    pub fn read(
        &self,
        organization: &str,
        name: &str,
        purpose: &Purpose,
    ) -> std::result::Result<Option<SecretValue>, SecretError> {
        let unavailable = |problem: Problem| SecretError::Unavailable(problem.full_message());
        let catalogue = self.store.catalogue();
        let found = Repository::of(catalogue, organization).get::<Secret>(name).map_err(unavailable)?;
        let Some(Stored { body: secret, .. }) = found else { return Ok(None) };
        let (Purpose::Step { workflow, .. } | Purpose::Start { workflow }) = purpose else { return Ok(None) };
        if !permits(secret.workflows.as_deref(), workflow.as_deref()) {
            let why = "its workflow is not among those that may use it: an admin adds it with `mainspring secret set`";
            return Err(SecretError::NotPermitted(why.into()));
        }
        if let (Some(_), Some(workflow)) = (&secret.workflows, workflow) {
            let found = Repository::of(catalogue, organization).get::<Workflow>(workflow).map_err(unavailable)?;
            // Members choose ids, and that of a deleted workflow can be chosen again.
            if found.is_none_or(|found| found.body.created_at > secret.updated_at) {
                let why =
                    "the workflow that may use it was deleted, and this one is another: an admin sets the secret again";
                return Err(SecretError::NotPermitted(why.into()));
            }
        }
        let value = open(&secret, &self.keys, organization, name)?;
        self.record(organization, name, purpose)?;
        Ok(Some(value))
    }

    /// Derives the token of the session of an execution for one of its steps. The use is recorded before the token is
    /// returned. Blocks.
    pub fn session_token(
        &self,
        organization: &str,
        purpose: &Purpose,
    ) -> std::result::Result<SecretValue, SecretError> {
        let Purpose::Step { execution_id, .. } = purpose else {
            return Err(SecretError::NotPermitted("the settings file has no session: use a secret".into()));
        };
        // The key is in the journal of the execution, and the column with its id has no seal.
        let found = match ExecutionKey::parse(execution_id) {
            Some(key) => self.store.execution(key),
            None => self.store.execution_by_id(execution_id),
        };
        let row = found.map_err(|error| SecretError::Unavailable(error.to_string()))?;
        let row = row.filter(|row| row.organization.as_deref() == Some(organization));
        let row = row.ok_or_else(|| SecretError::Missing("its execution is not in the store".into()))?;
        self.record(organization, SESSION_TOKEN, purpose)?;
        SecretValue::new(&SessionToken::of(self.keys.installation(), row.key).reveal()).map_err(SecretError::Missing)
    }

    /// Adds the use of a secret to the audit log of an organization. Blocks.
    pub fn record(&self, organization: &str, name: &str, purpose: &Purpose) -> std::result::Result<(), SecretError> {
        let (target, detail) = match purpose {
            Purpose::Step { workflow, execution_id, step, attempt } => {
                let detail = Value::map([
                    ("execution", Value::from(execution_id.as_str())),
                    ("step", step.as_str().into()),
                    ("attempt", (*attempt).into()),
                    ("workflow", workflow.as_deref().into()),
                ]);
                (name, detail)
            }
            Purpose::Start { workflow } => (name, Value::map([("startOf", Value::from(workflow.as_deref()))])),
            Purpose::Settings(part) => (name, Value::map([("settings", Value::from(part.as_str()))])),
        };
        let audit = AuditEntry {
            organization: organization.into(),
            at: now_ms(),
            actor: EXECUTION.into(),
            action: "secret.use".into(),
            target: target.into(),
            detail: cbor::encode(&detail),
        };
        let change = Change { audit: vec![audit], sealing: *self.keys.installation(), ..Change::default() };
        let failed = |error| SecretError::Unavailable(format!("its use cannot be recorded in the audit log: {error}"));
        self.store.catalogue().change(&change).map(drop).map_err(failed)
    }
}

/// True if a workflow may use a secret. An execution without a workflow in the catalogue uses only secrets of all.
fn permits(workflows: Option<&[String]>, workflow: Option<&str>) -> bool {
    workflows.is_none_or(|permitted| workflow.is_some_and(|workflow| permitted.iter().any(|one| one == workflow)))
}

/// Encrypts the value of a secret with another key. `None` if it cannot be decrypted.
pub(crate) fn seal_again(
    secret: &Secret,
    keys: &EncryptionKeys,
    key: &Key,
    (organization, name): (&str, &str),
) -> Option<String> {
    let bytes = sealing::open(&secret.sealed, keys, PURPOSE, &[organization, name])?;
    sealing::seal(&bytes, key, PURPOSE, &[organization, name])
}

fn open(
    secret: &Secret,
    keys: &EncryptionKeys,
    organization: &str,
    name: &str,
) -> std::result::Result<SecretValue, SecretError> {
    let missing = |why: &str| SecretError::Missing(why.into());
    if keys.find(&secret.key_id).is_none() {
        return Err(SecretError::Missing(format!(
            "it was encrypted with the key {}, which is not in the key file of this node: copy that of another node, or \
             set it again",
            secret.key_id
        )));
    }
    let bytes = sealing::open(&secret.sealed, keys, PURPOSE, &[organization, name]);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| missing("its stored form was changed outside of Mainspring: set it again"))?;
    SecretValue::new(&text).map_err(SecretError::Missing)
}

/// A secret to set.
pub(crate) struct NewSecret<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a SecretValue,
    /// Ids of the workflows that may use it, each with the time of its creation; `None` for all.
    pub(crate) workflows: Option<Vec<(String, u64)>>,
}

/// Sets a secret: creates it or replaces its value and its workflows. Returns it, and true if it is new.
pub(crate) fn set(
    catalogue: &dyn Catalogue,
    keys: &EncryptionKeys,
    caller: &Caller,
    new: &NewSecret<'_>,
) -> Result<(Stored<Secret>, bool)> {
    let failed = || Problem::new(Code::InternalError, "The secret cannot be encrypted.");
    let repository = Repository::of(catalogue, &caller.organization);
    with_retries(catalogue, crate::http::request_slots::SLOTS_MAX, || {
        let earlier = repository.get::<Secret>(new.name)?;
        let now = now_ms();
        if earlier.is_none() && repository.all::<Secret>(None).take(SECRETS_MAX).count() == SECRETS_MAX {
            let message = format!("The organization has {SECRETS_MAX} secrets: remove unused ones.");
            return Err(Problem::new(Code::Conflict, message));
        }
        let (bytes, primary) = (new.value.expose().as_bytes(), keys.primary(catalogue)?);
        // Clocks of nodes differ, and no workflow is newer than the secret that names it.
        let updated_at = new.workflows.iter().flatten().fold(now, |at, (_, created_at)| at.max(*created_at));
        let body = Secret {
            sealed: sealing::seal(bytes, &primary, PURPOSE, &[&caller.organization, new.name]).ok_or_else(failed)?,
            key_id: primary.id,
            workflows: new.workflows.as_ref().map(|named| named.iter().map(|(id, _)| id.clone()).collect()),
            set_by: caller.user.clone(),
            created_at: earlier.as_ref().map_or(now, |earlier| earlier.body.created_at),
            updated_at,
        };
        let version = earlier.as_ref().map_or(0, |earlier| earlier.version);
        let workflows = body.workflows.iter().flatten().map(|id| Value::from(id.as_str())).collect::<Vec<_>>();
        let detail =
            Value::map([("workflows", if body.workflows.is_some() { workflows.into() } else { "all".into() })]);
        let change = Change {
            puts: vec![repository.put(new.name, &body, version)?],
            audit: vec![entry(caller, "secret.set", new.name, detail)],
            sealing: *keys.installation(),
            ..Change::default()
        };
        Ok((change, (Stored { id: new.name.into(), version: version + 1, body }, version == 0)))
    })
}

/// Removes a secret. Steps that use it fail from then on.
pub(crate) fn remove(catalogue: &dyn Catalogue, key: &[u8; 32], caller: &Caller, name: &str) -> Result<()> {
    let repository = Repository::of(catalogue, &caller.organization);
    with_retries(catalogue, crate::http::request_slots::SLOTS_MAX, || {
        let stored = repository.require::<Secret>(name)?;
        let change = Change {
            removals: vec![repository.removal(&stored)],
            audit: vec![entry(caller, "secret.remove", name, Value::Map(Default::default()))],
            sealing: *key,
            ..Change::default()
        };
        Ok((change, ()))
    })
}

#[cfg(test)]
mod tests {
    use mainspring_store::memory::MemoryStore;

    use super::*;
    use crate::{http::body::Data, services::encryption_keys::key_id};

    const KEY: [u8; 32] = [7; 32];

    fn keys() -> Arc<EncryptionKeys> {
        Arc::new(EncryptionKeys::of_installation(KEY))
    }

    fn store_with(workflows: Option<Vec<String>>) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let secret = Secret {
            sealed: sealing::seal(b"planted-value", &keys().all().unwrap()[0], PURPOSE, &["acme", "API"]).unwrap(),
            key_id: key_id(&KEY),
            workflows,
            set_by: "ada".into(),
            created_at: 1,
            updated_at: 1,
        };
        let catalogue = store.catalogue();
        let repository = Repository::of(catalogue, "acme");
        let puts = vec![
            repository.put("API", &secret, 0).unwrap(),
            repository.put("w1", &workflow(1), 0).unwrap(),
            repository.put("new", &workflow(2), 0).unwrap(),
        ];
        catalogue.change(&Change { puts, sealing: KEY, ..Change::default() }).unwrap();
        store
    }

    fn workflow(created_at: u64) -> Workflow {
        Workflow {
            user: "ada".into(),
            slug: None,
            name: "w".into(),
            description: None,
            version: "1.0.0".into(),
            data: Data::default(),
            hash: "sha256:1".into(),
            enabled: true,
            tags: Vec::new(),
            created_at,
            updated_at: created_at,
            revision: 1,
            drain: None,
            rollout: None,
            repository: None,
        }
    }

    fn by(workflow: Option<&str>) -> Purpose {
        let workflow = workflow.map(Into::into);
        Purpose::Step { workflow, execution_id: "e1".into(), step: "call".into(), attempt: 2 }
    }

    #[test]
    fn a_secret_is_read_by_its_workflows_alone_and_each_use_is_recorded() {
        let store = store_with(Some(vec!["w1".into()]));
        let secrets = StoredSecrets::new(store.clone(), keys());
        let value = secrets.read("acme", "API", &by(Some("w1"))).unwrap().unwrap();
        assert_eq!(value.expose(), "planted-value");
        for workflow in [None, Some("w2")] {
            let refused = secrets.read("acme", "API", &by(workflow));
            assert!(matches!(refused, Err(SecretError::NotPermitted(_))), "{workflow:?} {refused:?}");
        }
        assert_eq!(secrets.read("other", "API", &by(Some("w1"))), Ok(None), "another organization");
        assert_eq!(secrets.read("acme", "OTHER", &by(Some("w1"))), Ok(None));
        let rows = store.catalogue().audit("acme", 0, mainspring_store::ReadLimit::of(10)).unwrap();
        assert_eq!(rows.len(), 1, "refused uses read nothing");
        assert_eq!((rows[0].entry.action.as_str(), rows[0].entry.target.as_str()), ("secret.use", "API"));
        let detail = cbor::decode(&rows[0].entry.detail).unwrap();
        assert_eq!(detail.get("attempt"), Some(&Value::from(2_u32)));
    }

    /// A workflow that is newer than the secret has the id of a deleted one.
    #[test]
    fn a_later_workflow_of_the_same_id_gets_no_secret() {
        for (named, expected) in [(None, [true; 4]), (Some(["w1", "new", "gone"]), [true, false, false, false])] {
            let store = store_with(named.map(|ids| ids.map(String::from).into()));
            let secrets = StoredSecrets::new(store, keys());
            let found = ["w1", "new", "gone", "other"].map(|id| secrets.read("acme", "API", &by(Some(id))).is_ok());
            assert_eq!(found, expected, "{named:?}");
        }
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let value = SecretValue::new("planted-value").unwrap();
        let in_an_hour = now_ms() + 3_600_000;
        let new = NewSecret { name: "API", value: &value, workflows: Some(vec![("w1".into(), in_an_hour)]) };
        let (stored, _) = set(store.catalogue(), &keys(), &Caller::example("acme", "ada"), &new).unwrap();
        assert_eq!(stored.body.updated_at, in_an_hour, "set by a node whose clock is behind");
    }

    #[test]
    fn a_secret_opens_with_its_key_and_under_its_name_only() {
        let store = store_with(None);
        let other_key = StoredSecrets::new(store.clone(), Arc::new(EncryptionKeys::of_installation([8; 32]))).read(
            "acme",
            "API",
            &by(None),
        );
        assert!(matches!(other_key, Err(SecretError::Missing(_))), "{other_key:?}");
        let catalogue = store.catalogue();
        let copied = Repository::of(catalogue, "acme").require::<Secret>("API").unwrap();
        let put = Repository::of(catalogue, "evil").put("API", &copied.body, 0).unwrap();
        catalogue.change(&Change { puts: vec![put], sealing: KEY, ..Change::default() }).unwrap();
        let copied = StoredSecrets::new(store, keys()).read("evil", "API", &by(None));
        assert!(matches!(copied, Err(SecretError::Missing(_))), "{copied:?}");
    }
}
