//! A repository as an execution pins it at its start, in the form that the trigger in its journal has.

use mainspring_kernel::value::Value;

use super::{
    limits::URL_BYTES_MAX,
    location::{Host, Location},
    refs::{as_commit, check_ref},
    remote::USER_DEFAULT,
};

/// The secret with which a repository is read. It names the value, and never has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Name of the secret.
    pub secret: String,
    /// User of the basic authentication.
    pub user: Option<String>,
}

impl Credential {
    /// The user that is sent.
    pub(super) fn user(&self) -> &str {
        self.user.as_deref().unwrap_or(USER_DEFAULT)
    }
}

/// A repository with the commit that all steps of an execution see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// Its address.
    pub location: Location,
    /// Full name of the ref, or the commit if that was asked for.
    pub reference: String,
    /// Forty hexadecimal digits.
    pub commit: String,
    /// User and secret; `None` for a public repository.
    pub credential: Option<Credential>,
}

impl Pinned {
    /// `{sourceRepoFullName, ref, commitSha, url, credential}`.
    pub fn to_value(&self) -> Value {
        let credential = self.credential.as_ref().map(|credential| {
            let user = credential.user.as_deref().map(|user| ("user", Value::from(user)));
            Value::map([("secret", Value::from(credential.secret.as_str()))].into_iter().chain(user))
        });
        let fields = [
            ("sourceRepoFullName", self.location.full_name().into()),
            ("ref", self.reference.as_str().into()),
            ("commitSha", self.commit.as_str().into()),
            ("url", self.location.url().into()),
        ];
        Value::map(fields.into_iter().chain(credential.map(|credential| ("credential", credential))))
    }

    /// Reads the form of [`Pinned::to_value`], and checks the host again: this node may permit others. The error is a
    /// sentence.
    pub fn of_value(value: &Value, hosts: &[Host]) -> Result<Self, String> {
        let text = |key: &str| {
            let found = value.get(key).and_then(Value::as_text).filter(|text| text.len() <= URL_BYTES_MAX);
            found.ok_or_else(|| format!("its `{key}` cannot be read"))
        };
        let location = Location::of_url(text("url")?, hosts)?;
        let reference = text("ref")?.to_owned();
        check_ref(&reference)?;
        let commit = as_commit(text("commitSha")?).ok_or("its `commitSha` is no commit")?;
        let credential = value.get("credential").map(|credential| {
            let text = |key: &str| credential.get(key).and_then(Value::as_text).map(ToString::to_string);
            text("secret").map(|secret| Credential { secret, user: text("user") })
        });
        let credential =
            credential.map(|credential| credential.ok_or("its `credential` cannot be read")).transpose()?;
        Ok(Self { location, reference, commit, credential })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_repository_is_read_as_it_was_written() {
        let hosts = Host::parse_all(["github.com"]).unwrap();
        let location = Location::of_full_name("acme/app", &hosts).unwrap();
        for credential in [
            None,
            Some(Credential { secret: "K".into(), user: None }),
            Some(Credential { secret: "K".into(), user: Some("u".into()) }),
        ] {
            let pinned = Pinned {
                location: location.clone(),
                reference: "refs/heads/main".into(),
                commit: "a".repeat(40),
                credential,
            };
            assert_eq!(Pinned::of_value(&pinned.to_value(), &hosts), Ok(pinned.clone()));
            let others = Host::parse_all(["gitlab.com"]).unwrap();
            assert!(Pinned::of_value(&pinned.to_value(), &others).is_err_and(|why| why.contains("not permitted")));
        }
    }
}
