//! The three notations: what tells them apart, and the few words in which they differ.

use super::report::Fields;
use crate::value::Value;

/// A way of writing a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `steps` with types, one after another.
    Sequence,
    /// `steps` with actions, ordered by what they refer to.
    Dataflow,
    /// `nodes` and `edges`.
    Graph,
}

/// How the steps of a definition are ordered, unless they stand inside another step.
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
    /// Every notation.
    pub const ALL: [Self; 3] = [Self::Sequence, Self::Dataflow, Self::Graph];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequence => "sequence",
            Self::Dataflow => "dataflow",
            Self::Graph => "graph",
        }
    }

    /// The notation of a definition, by its shape.
    pub fn of(definition: &Value) -> Self {
        let has = |key| definition.get(key).is_some();
        if has("nodes") || has("edges") && !has("steps") {
            return Self::Graph;
        }
        let steps = definition.get("steps").and_then(Value::as_list).unwrap_or_default();
        let has_action = steps.iter().any(|step| step.get("action").is_some());
        if has_action { Self::Dataflow } else { Self::Sequence }
    }

    /// The key of the list of steps.
    pub(super) fn list_key(self) -> &'static str {
        match self {
            Self::Sequence | Self::Dataflow => "steps",
            Self::Graph => "nodes",
        }
    }

    /// The key of a step's name in references.
    pub(super) fn id_key(self) -> &'static str {
        match self {
            Self::Sequence | Self::Graph => "id",
            Self::Dataflow => "name",
        }
    }

    /// How the path of a step without a name begins.
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

    /// The key that says what a step does, and the type that it names: `action` in the dataflow notation.
    pub(super) fn kind_name<'a>(self, fields: &Fields<'a>) -> Option<(&'static str, &'a str)> {
        let action = fields.get("action").filter(|_| self == Self::Dataflow);
        let Some(action) = action else {
            return fields.get("type").and_then(Value::as_text).map(|name| ("type", name));
        };
        ACTIONS.iter().find(|(key, _)| action.get(key).is_some()).map(|(_, kind)| ("action", *kind))
    }
}

/// The keys of an action and the types of steps that they stand for.
pub(super) const ACTIONS: [(&str, &str); 3] = [("toolName", "tool"), ("code", "code"), ("return", "return")];
