//! The three notations of definitions: how to recognize them, and the keys in which they differ.

use super::fields::Fields;
use crate::value::Value;

/// A notation of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `steps` with a `type` each, run one after another.
    Sequence,
    /// `steps` with an `action`, ordered by the references between them.
    Dataflow,
    /// `nodes` and `edges`.
    Graph,
}

/// The order of the outermost steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderWord {
    Sequence,
    Dataflow,
    Edges,
}

impl OrderWord {
    pub(super) const ALL: [(&'static str, Self); 3] =
        [("sequence", Self::Sequence), ("dataflow", Self::Dataflow), ("edges", Self::Edges)];
}

impl Notation {
    /// All notations.
    pub const ALL: [Self; 3] = [Self::Sequence, Self::Dataflow, Self::Graph];

    /// Returns the name of the notation, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequence => "sequence",
            Self::Dataflow => "dataflow",
            Self::Graph => "graph",
        }
    }

    /// Recognizes the notation of a definition by its keys.
    pub fn of(definition: &Value) -> Self {
        let has = |key| definition.get(key).is_some();
        if has("nodes") || has("edges") && !has("steps") {
            return Self::Graph;
        }
        let steps = definition.get("steps").and_then(Value::as_list).unwrap_or_default();
        let has_action = steps.iter().any(|step| step.get("action").is_some());
        if has_action { Self::Dataflow } else { Self::Sequence }
    }

    /// Returns the key of the list of steps.
    pub(super) fn list_key(self) -> &'static str {
        match self {
            Self::Sequence | Self::Dataflow => "steps",
            Self::Graph => "nodes",
        }
    }

    /// Returns the key that identifies a step in references.
    pub(super) fn id_key(self) -> &'static str {
        match self {
            Self::Sequence | Self::Graph => "id",
            Self::Dataflow => "name",
        }
    }

    /// Returns the first segment of the path that serves as the id of a step without one.
    pub(super) fn id_path(self) -> &'static str {
        match self {
            Self::Sequence | Self::Dataflow => "step",
            Self::Graph => "node",
        }
    }

    pub(super) fn default_order(self) -> OrderWord {
        match self {
            Self::Sequence => OrderWord::Sequence,
            Self::Dataflow => OrderWord::Dataflow,
            Self::Graph => OrderWord::Edges,
        }
    }

    /// Returns the key that sets the type of a step, and the type. The key is `action` only in a dataflow.
    pub(super) fn kind_name<'a>(self, fields: &Fields<'a>) -> Option<(&'static str, &'a str)> {
        let action = fields.get("action").filter(|_| self == Self::Dataflow);
        let Some(action) = action else {
            return fields.get("type").and_then(Value::as_text).map(|name| ("type", name));
        };
        ACTIONS.iter().find(|(key, _)| action.get(key).is_some()).map(|(_, kind)| ("action", *kind))
    }
}

/// The keys of an action with the step type that each stands for.
pub(super) const ACTIONS: [(&str, &str); 3] = [("toolName", "tool"), ("code", "code"), ("return", "return")];
