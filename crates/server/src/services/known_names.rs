//! Names that definitions may use: the models, tool servers, agents and secrets of the settings file.

use mainspring_kernel::definition::{Missing, Outside, nearest};

/// The names of a settings file. A kind of which it has none is not checked, because an installation may be configured
/// after its workflows are saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// The names of `models`.
    pub models: Vec<ServedName>,
    /// The names of `mcpServers`.
    pub tool_servers: Vec<ServedName>,
    /// The names of `secrets`, those with their values in a vault included.
    pub secrets: Vec<ServedName>,
    /// The names of `agents`.
    pub runners: Vec<ServedName>,
    /// The name of the model that steps without `model` use.
    pub default_model: Option<String>,
    /// The names of the models that have a price.
    pub priced: Vec<String>,
}

/// A name with those who may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedName {
    /// As the settings file has it.
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
            Outside::Model | Outside::Price => &self.models,
            Outside::ToolServer => &self.tool_servers,
            Outside::Runner => &self.runners,
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
            Outside::Runner => "agents",
            Outside::Price => return self.missing_price(name, organization, place),
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

    /// The reason for which the cost of a model cannot be limited; `None` if it has a price, or is unknown itself. An empty
    /// name is that of the default model.
    fn missing_price(&self, name: &str, organization: Option<&str>, place: &str) -> Option<Missing> {
        let name = if name.is_empty() { self.default_model.as_deref()? } else { name };
        let is_known = self.of(Outside::Model, organization).any(|known| known == name);
        if !is_known || self.priced.iter().any(|priced| priced == name) {
            return None;
        }
        let remedy = format!(
            "its calls would fail: add `{name}: {{input: PRICE, output: PRICE}}` to `prices.models` in the settings, or limit `tokens`"
        );
        Some(Missing { place: place.into(), nearest: None, remedy })
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
        check(Outside::Runner, "coder", None, None);
    }

    #[test]
    fn a_known_model_without_a_price_is_reported() {
        let known = KnownNames {
            models: vec!["cheap".into(), "local".into()],
            default_model: Some("local".into()),
            priced: vec!["cheap".into()],
            ..KnownNames::default()
        };
        let check = |known: &KnownNames, name, expected: Option<&str>| {
            let missing = known.missing(Outside::Price, name, Some("acme"), "here");
            let names = |missing: &Missing, model: &str| missing.remedy.contains(&format!("add `{model}: {{input"));
            assert_eq!(missing.is_some(), expected.is_some(), "{name}");
            assert!(missing.iter().zip(expected).all(|(missing, model)| names(missing, model)), "{missing:?}");
        };
        check(&known, "cheap", None);
        check(&known, "local", Some("local"));
        check(&known, "", Some("local"));
        check(&known, "other", None);
        check(&KnownNames::default(), "", None);
    }
}
