//! External agents, which a command of the installation runs: an `agent` step with `runner`. A run is one attempt.

use alloc::{string::String, vec::Vec};

use super::{EffectClass, Plan, Work};
use crate::{template::Template, value::Value};

/// The kind of the effect. It differs from that of a model call, so that an older release does not send the goal to a model.
pub const RUNNER_EFFECT: &str = "agent_runner";

/// The parameter with the verdicts for the permission requests of an agent, by kind of tool. The policy of an execution
/// sets it; without it a person is asked about each request.
pub const PERMISSIONS: &str = "permissions";

/// The parameter with the JSON Schema of the final answer.
pub const ANSWER_SCHEMA: &str = "answerSchema";

/// The kinds of tools in permission requests (Agent Client Protocol, `ToolKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Deletes files.
    Delete,
    /// Moves files.
    Move,
    /// Searches.
    Search,
    /// Runs a command.
    Execute,
    /// Plans, without an effect.
    Think,
    /// Loads data from elsewhere.
    Fetch,
    /// Changes the mode of the agent, perhaps to one that asks less.
    SwitchMode,
    /// Any other, and each that is not known.
    Other,
}

impl ToolKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Edit,
        Self::Delete,
        Self::Move,
        Self::Search,
        Self::Execute,
        Self::Think,
        Self::Fetch,
        Self::SwitchMode,
        Self::Other,
    ];

    /// Returns the kind as the protocol and the names in rules write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "other",
        }
    }

    /// Parses a kind. A word that is not known is the most careful kind.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == word).unwrap_or(Self::Other)
    }

    /// Returns the side-effect class. `None` if the kind says nothing about it.
    pub fn class(self) -> Option<EffectClass> {
        match self {
            Self::Read | Self::Search | Self::Think | Self::Fetch => Some(EffectClass::Read),
            Self::Edit | Self::Move => Some(EffectClass::Write),
            Self::Delete => Some(EffectClass::Destructive),
            Self::Execute => Some(EffectClass::Execute),
            Self::SwitchMode | Self::Other => None,
        }
    }
}

impl Work {
    /// Returns the name of the external agent that it runs.
    pub fn runner(&self) -> Option<&str> {
        match self {
            Self::Effect { effect, params } if effect == RUNNER_EFFECT => {
                Some(crate::flow::literal(params, "runner").unwrap_or_default())
            }
            _ => None,
        }
    }

    /// Sets a literal parameter of an effect.
    pub(crate) fn set_param(&mut self, name: &str, value: Value) {
        let Self::Effect { params, .. } = self else { return };
        let mut fields: Vec<(String, Template)> = match core::mem::replace(params, Template::Literal(Value::Null)) {
            Template::Map(fields) => fields,
            Template::Literal(Value::Map(map)) => {
                map.into_iter().map(|(key, value)| (key, Template::Literal(value))).collect()
            }
            _ => Vec::new(),
        };
        fields.retain(|(key, _)| key != name);
        fields.push((name.into(), Template::Literal(value)));
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        *params = Template::Map(fields).normalized();
    }
}

impl Plan {
    /// True if a step runs an external agent.
    pub fn has_runners(&self) -> bool {
        self.steps.iter().any(|step| step.work.runner().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_the_protocol() {
        for kind in ToolKind::ALL {
            assert_eq!(ToolKind::parse(kind.name()), kind);
        }
        for word in ["", "READ", "sudo", "read "] {
            assert_eq!(ToolKind::parse(word), ToolKind::Other, "{word:?}");
        }
    }
}
