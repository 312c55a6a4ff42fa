//! Names that definitions may use: the models, tool servers and secrets of the settings file.

use mainspring_kernel::definition::{Missing, Outside, nearest};

/// The names of a settings file. A kind of which it has none is not checked, because an installation may be configured
/// after its workflows are saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// The names of `models`.
    pub models: Vec<ServedName>,
    /// The names of `mcpServers`.
    pub tool_servers: Vec<ServedName>,
    /// The names of `secrets`.
    pub secrets: Vec<ServedName>,
}

/// A name with those who may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedName {
    /// The name.
    pub name: String,
    /// The organizations that may use it; `None` for all.
    pub organizations: Option<Vec<String>>,
}

impl From<&str> for ServedName {
    fn from(name: &str) -> Self {
        Self { name: name.into(), organizations: None }
    }
}

impl KnownNames {
    /// The names of a kind that an organization may use; without an organization, those of the command line, which are all.
    pub fn of<'n>(&'n self, what: Outside, organization: Option<&'n str>) -> impl Iterator<Item = &'n str> {
        let all: &[ServedName] = match what {
            Outside::Workflow => &[],
            Outside::Secret => &self.secrets,
            Outside::Model => &self.models,
            Outside::ToolServer => &self.tool_servers,
        };
        let serves = move |known: &&ServedName| match (&known.organizations, organization) {
            (Some(served), Some(organization)) => served.iter().any(|one| one == organization),
            _ => true,
        };
        all.iter().filter(serves).map(|known| known.name.as_str())
    }

    /// The reason for which a name is unknown in `place`; `None` if it is known, or if there are no names of its kind.
    pub fn missing(&self, what: Outside, name: &str, organization: Option<&str>, place: &str) -> Option<Missing> {
        let key = match what {
            Outside::Workflow => return None,
            Outside::Secret => "secrets",
            Outside::Model => "models",
            Outside::ToolServer => "mcpServers",
        };
        let names = || self.of(what, organization);
        if names().next().is_none() || names().any(|known| known == name) {
            return None;
        }
        Some(Missing {
            place: place.into(),
            nearest: nearest(name, names()).map(Into::into),
            remedy: format!("add it to `{key}` in the settings, or correct the name"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_names_is_not_checked() {
        let served = ServedName { name: "claude".into(), organizations: Some(vec!["acme".into()]) };
        let known = KnownNames { models: vec![served, "local".into()], ..KnownNames::default() };
        let check = |what, name, organization, expected: Option<Option<&str>>| {
            let missing = known.missing(what, name, organization, "here");
            assert_eq!(missing.as_ref().map(|missing| missing.nearest.as_deref()), expected, "{name}");
        };
        check(Outside::Model, "claude", Some("acme"), None);
        check(Outside::Model, "claude", None, None);
        check(Outside::Model, "cluade", Some("acme"), Some(Some("claude")));
        check(Outside::Model, "claude", Some("other"), Some(None));
        check(Outside::Secret, "KEY", Some("acme"), None);
        check(Outside::ToolServer, "files", None, None);
    }
}
