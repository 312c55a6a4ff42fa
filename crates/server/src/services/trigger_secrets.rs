//! Secrets of webhooks, encrypted with a key that is derived from the installation's key: the store alone verifies and
//! signs nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    http::problem::{Code, Problem, Result},
    services::sealing,
};

/// Domain separator for deriving the key from the installation's key.
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
pub(crate) fn seal(secrets: &Secrets, key: &[u8; 32], owner: (&str, &str)) -> Result<Option<String>> {
    if *secrets == Secrets::default() {
        return Ok(None);
    }
    let failed = || Problem::new(Code::InternalError, "The secrets of this webhook cannot be encrypted.");
    let bytes = serde_json::to_vec(secrets).map_err(|_| failed())?;
    sealing::seal(&bytes, key, PURPOSE, &[owner.0, owner.1]).map(Some).ok_or_else(failed)
}

/// Decrypts the secrets of a trigger.
pub(crate) fn open(sealed: Option<&str>, key: &[u8; 32], owner: (&str, &str)) -> Result<Secrets> {
    let Some(sealed) = sealed else { return Ok(Secrets::default()) };
    let opened = || {
        let bytes = sealing::open(sealed, key, PURPOSE, &[owner.0, owner.1])?;
        serde_json::from_slice(&bytes).ok()
    };
    opened().ok_or_else(|| {
        let message = "The secrets of this webhook were encrypted with another key. Set them again.";
        Problem::new(Code::InternalError, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_open_with_the_key_and_for_their_trigger_only() {
        let (key, other) = ([1; 32], [2; 32]);
        let headers = BTreeMap::from([("x-api-key".to_string(), "k1".to_string())]);
        let secrets = Secrets { secrets: vec!["s3cret".into()], headers };
        let sealed = seal(&secrets, &key, ("acme", "t1")).unwrap().unwrap();
        assert!(!sealed.contains("s3cret"));
        let opens = |key: &[u8; 32], owner| open(Some(&sealed), key, owner).ok();
        assert!(opens(&key, ("acme", "t1")) == Some(secrets));
        assert!(opens(&other, ("acme", "t1")).is_none() && opens(&key, ("acme", "t2")).is_none());
        assert!(opens(&key, ("acme\0t1", "")).is_none(), "the parts are separated");
        assert!(seal(&Secrets::default(), &key, ("acme", "t1")).unwrap().is_none());
        assert!(open(None, &key, ("acme", "t1")).unwrap() == Secrets::default());
    }
}
