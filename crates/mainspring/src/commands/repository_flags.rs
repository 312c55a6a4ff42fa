//! The flags that name the repository of executions at a server.

use clap::Args;
use mainspring_kernel::value::Value;

/// The repository of one execution.
#[derive(Debug, Args)]
pub(super) struct StartRepository {
    /// With a server: the repository whose files the scripts work on, by its URL, or as OWNER/NAME at the first host of the
    /// server
    #[arg(long, value_name = "REPOSITORY")]
    repository: Option<String>,
    /// With a server: the branch, tag or commit [default: that of the workflow, else the default branch]
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
}

/// The repository of the executions of a trigger.
#[derive(Debug, Args)]
pub(super) struct TriggerRepository {
    /// The repository of its executions, by its URL, or as OWNER/NAME at the first host of the server
    #[arg(long, value_name = "REPOSITORY", conflicts_with = "prompt")]
    repository: Option<String>,
    /// The branch, tag or commit [default: the default branch]
    #[arg(long = "ref", value_name = "REF", conflicts_with = "prompt")]
    reference: Option<String>,
    /// The path of the ref or commit in the event: `$.after`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["reference", "prompt"])]
    ref_from: Option<String>,
    /// The secret with which the repository is read
    #[arg(long, value_name = "SECRET", requires = "repository")]
    credential: Option<String>,
}

/// The fields of an address or a name.
fn located(repository: Option<&str>) -> Option<(&'static str, Value)> {
    let key = |text: &str| if text.contains("://") { "url" } else { "fullName" };
    repository.map(|text| (key(text), Value::from(text)))
}

fn object(fields: impl IntoIterator<Item = Option<(&'static str, Value)>>) -> Option<Value> {
    let given: Vec<_> = fields.into_iter().flatten().collect();
    (!given.is_empty()).then(|| Value::map(given))
}

fn field(key: &'static str, text: Option<&str>) -> Option<(&'static str, Value)> {
    text.map(|text| (key, Value::from(text)))
}

impl StartRepository {
    /// The object `repository` of a request; `None` without flags.
    pub(super) fn value(&self) -> Option<Value> {
        object([located(self.repository.as_deref()), field("ref", self.reference.as_deref())])
    }
}

impl TriggerRepository {
    /// The object `repository` of a trigger; `None` without flags.
    pub(super) fn value(&self) -> Option<Value> {
        let credential = self.credential.as_deref();
        object([
            located(self.repository.as_deref()),
            field("ref", self.reference.as_deref()),
            field("refFrom", self.ref_from.as_deref()),
            credential.map(|secret| ("credential", Value::map([("secret", Value::from(secret))]))),
        ])
    }
}
