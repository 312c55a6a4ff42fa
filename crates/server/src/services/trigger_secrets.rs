//! Secrets of webhooks, encrypted with a key that is derived from an encryption key: the store alone verifies and signs
//! nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    http::problem::{Code, Problem, Result},
    services::{
        encryption_keys::{EncryptionKeys, Key},
        sealing,
    },
};

/// Domain separator for deriving the key from an encryption key.
const PURPOSE: &[u8] = b"mainspring webhook secrets 1";

/// The secrets of a webhook.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    /// The secrets that are valid now: during a rotation the new and the old one.
    pub secrets: Vec<String>,
    /// The required headers with their values.
    pub headers: BTreeMap<String, String>,
}

/// Encrypts the secrets of a trigger; `None` if there are none. `owner` names organization and trigger, so that a
/// copied row cannot be opened as that of another trigger.
pub(crate) fn seal(secrets: &Secrets, key: &Key, owner: (&str, &str)) -> Result<Option<String>> {
    if *secrets == Secrets::default() {
        return Ok(None);
    }
    let failed = || Problem::new(Code::InternalError, "The secrets of this webhook cannot be encrypted.");
    let bytes = serde_json::to_vec(secrets).map_err(|_| failed())?;
    sealing::seal(&bytes, key, PURPOSE, &[owner.0, owner.1]).map(Some).ok_or_else(failed)
}

/// Decrypts the secrets of a trigger.
pub(crate) fn open(sealed: Option<&str>, keys: &EncryptionKeys, owner: (&str, &str)) -> Result<Secrets> {
    let Some(sealed) = sealed else { return Ok(Secrets::default()) };
    let opened = || {
        let bytes = sealing::open(sealed, keys, PURPOSE, &[owner.0, owner.1])?;
        serde_json::from_slice(&bytes).ok()
    };
    opened().ok_or_else(|| {
        let message = "The secrets of this webhook were encrypted with a key that this node does not have. Copy the key \
                       file of another node, or set them again.";
        Problem::new(Code::InternalError, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_open_with_the_key_and_for_their_trigger_only() {
        let (keys, other) = (EncryptionKeys::of_installation([1; 32]), EncryptionKeys::of_installation([2; 32]));
        let key = keys.all().unwrap().remove(0);
        let headers = BTreeMap::from([("x-api-key".to_string(), "k1".to_string())]);
        let secrets = Secrets { secrets: vec!["s3cret".into()], headers };
        let sealed = seal(&secrets, &key, ("acme", "t1")).unwrap().unwrap();
        assert!(!sealed.contains("s3cret"));
        let opens = |keys: &EncryptionKeys, owner| open(Some(&sealed), keys, owner).ok();
        assert!(opens(&keys, ("acme", "t1")) == Some(secrets));
        assert!(opens(&other, ("acme", "t1")).is_none() && opens(&keys, ("acme", "t2")).is_none());
        assert!(opens(&keys, ("acme\0t1", "")).is_none(), "the parts are separated");
        assert!(seal(&Secrets::default(), &key, ("acme", "t1")).unwrap().is_none());
        assert!(open(None, &keys, ("acme", "t1")).unwrap() == Secrets::default());
    }
}
