//! Values of secrets: read just before an effect, given to it alone, and redacted from its outcome.

mod limits;
mod redact;

use std::{fmt, pin::Pin, sync::Arc};

use mainspring_kernel::{
    effect::Attempt,
    failure::{Class, Failure},
    secret::{PlacedSecret, SecretReference},
    value::{Map, Value},
};

pub use limits::{SECRET_BYTES_MAX, SECRET_BYTES_MIN};
pub use redact::Redactor;

/// The value of a secret. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Arc<str>);

/// The result of [`SecretSource::read`].
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<SecretValue, SecretError>> + Send + 'a>>;

/// The part of a node that reads secrets.
pub trait SecretSource: Send + Sync {
    /// Reads the value of a secret for a use, and records the use. The value is checked with [`SecretValue::new`].
    fn read<'a>(&'a self, name: &'a str, by: &'a SecretUser) -> Reading<'a>;
}

/// A use of a secret, for permissions and the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUser {
    /// The organization of the execution. `None` for the command line.
    pub organization: Option<String>,
    /// The part that needs the value.
    pub purpose: Purpose,
}

/// The part that needs the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A step of a workflow.
    Step {
        /// The workflow; see [`SecretUses::workflow`](mainspring_kernel::secret::SecretUses::workflow).
        workflow: Option<String>,
        /// Public id of the execution.
        execution_id: String,
        /// Name of the step instance.
        step: String,
        /// Number of the attempt.
        attempt: u32,
    },
    /// The start of an execution, which resolves the ref of its repository.
    Start {
        /// Id of the workflow.
        workflow: Option<String>,
    },
    /// A part of the settings file, such as `mcpServers.github`. Only secrets of the same file are used.
    Settings(String),
}

/// The reason why a secret cannot be used. No variant holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretError {
    /// There is no secret of this name, or it has no usable value. The text is the reason.
    Missing(String),
    /// The workflow or the organization may not use it.
    NotPermitted(String),
    /// Its source does not answer at present.
    Unavailable(String),
}

impl SecretValue {
    /// Checks a value. The error is the reason, without the value.
    pub fn new(value: &str) -> Result<Self, String> {
        match value.len() {
            0 => Err("its value is empty".into()),
            bytes if bytes < SECRET_BYTES_MIN => Err(format!(
                "its value has fewer than {SECRET_BYTES_MIN} bytes, and so short a value cannot be redacted from outputs"
            )),
            bytes if bytes > SECRET_BYTES_MAX => Err(format!("its value has more than {SECRET_BYTES_MAX} bytes")),
            _ if value.contains('\0') => Err("its value has a null character".into()),
            _ if value.trim().len() < SECRET_BYTES_MIN => Err("its value is mostly white space".into()),
            _ => Ok(Self(value.into())),
        }
    }

    /// Returns the value. Nothing that is recorded, logged or shown may contain it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretValue(***)")
    }
}

impl SecretError {
    /// Returns the class for retry policies and the code for programs.
    pub fn kind(&self) -> (Class, &'static str) {
        match self {
            Self::Missing(_) => (Class::Invalid, "secret_missing"),
            Self::NotPermitted(_) => (Class::Policy, "secret_not_permitted"),
            Self::Unavailable(_) => (Class::Unavailable, "secret_unavailable"),
        }
    }

    /// Returns the failure of a step.
    pub fn to_failure(&self, step: &str, name: &str) -> Failure {
        let (class, code) = self.kind();
        Failure::new(class, code, format!("step `{step}`: the secret `{name}` cannot be used: {self}"))
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Missing(why) | Self::NotPermitted(why) | Self::Unavailable(why)) = self;
        out.write_str(why)
    }
}

impl std::error::Error for SecretError {}

/// Reads the value that a reference stands for, with its prefix.
pub async fn read_reference(
    source: Option<&Arc<dyn SecretSource>>,
    reference: &SecretReference,
    by: &SecretUser,
) -> Result<(SecretValue, String), SecretError> {
    let Some(source) = source else {
        let why = "no secrets are configured: add `secrets: {NAME: {env: VARIABLE}}` to the settings file";
        return Err(SecretError::Missing(why.into()));
    };
    let value = source.read(&reference.name, by).await?;
    let text = format!("{}{}", reference.prefix, value.expose());
    Ok((value, text))
}

/// An attempt whose secrets have been read.
pub(crate) struct Resolved {
    /// The attempt with the values in its parameters.
    pub(crate) attempt: Attempt,
    /// Removes them from the outcome.
    pub(crate) redactor: Redactor,
}

/// Reads the secrets of an attempt. The first error ends it before anything has started.
pub(crate) async fn resolve(source: Option<&Arc<dyn SecretSource>>, attempt: &Attempt) -> Result<Resolved, Failure> {
    let by = SecretUser {
        organization: attempt.organization.clone(),
        purpose: Purpose::Step {
            workflow: attempt.secrets.workflow.clone(),
            execution_id: attempt.execution_id.clone(),
            step: attempt.step.clone(),
            attempt: attempt.number,
        },
    };
    let (mut resolved, mut values) = (attempt.clone(), Vec::new());
    let Value::Map(params) = &mut resolved.params else { return Err(misplaced(attempt)) };
    // The values replace the names. An executor that finds names refuses the parameters.
    params.remove(mainspring_kernel::secret::SECRETS);
    for PlacedSecret { parameter, key, reference } in &attempt.secrets.references {
        let read = read_reference(source, reference, &by).await;
        let (value, text) = read.map_err(|error| error.to_failure(&attempt.step, &reference.name))?;
        let place = params.entry(parameter.clone()).or_insert_with(|| Value::Map(Map::new()));
        let Value::Map(place) = place else { return Err(misplaced(attempt)) };
        place.insert(key.clone(), text.into());
        values.push(value);
    }
    Ok(Resolved { attempt: resolved, redactor: Redactor::new(values) })
}

/// The failure of an attempt whose parameters cannot hold its secrets.
fn misplaced(attempt: &Attempt) -> Failure {
    let message = format!("step `{}`: a parameter with a secret is not an object: correct the step", attempt.step);
    Failure::new(Class::Invalid, "secret_missing", message)
}
