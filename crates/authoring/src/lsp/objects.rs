//! The object of the language that an entry of an outline is: the definition, a step, an edge, a condition.

use mainspring_kernel::definition::{Notation, keys};

use super::outline::{Entry, Outline};
use crate::language::{Key, Language, OBJECTS};

/// Keys whose value is a condition, or a list of them.
const CONDITIONS: [&str; 8] = ["when", "condition", "while", "until", "bail", "all", "any", "not"];

/// Keys whose source never refers.
const SOURCES: [&str; 3] = ["code", "transform", "transformCode"];

/// An object with keys of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Object {
    /// The whole definition.
    Root,
    /// A step, with its type. Empty if it has none yet.
    Step(String),
    /// A step of a dataflow with an action.
    Action(&'static str),
    /// Data with `ref`, `variable`, `all`, `any` or `not`.
    Condition,
    /// Another object, by its name in [`OBJECTS`].
    Other(&'static str),
}

/// Returns the notation of a text.
pub(super) fn notation(outline: &Outline) -> Notation {
    let has = |key: &str| outline.field(None, key).is_some();
    if has("nodes") || has("edges") && !has("steps") {
        return Notation::Graph;
    }
    let is_action = |entry: &Entry| {
        entry.key.as_deref() == Some("action") && entry.parent.is_some_and(|step| is_outermost(outline, step))
    };
    if outline.entries.iter().any(is_action) { Notation::Dataflow } else { Notation::Sequence }
}

fn is_outermost(outline: &Outline, step: usize) -> bool {
    let list = outline.entries[step].parent;
    list.is_some_and(|list| outline.entries[list].parent.is_none())
}

/// True if a text is a definition: other YAML files get no diagnostics.
pub(super) fn is_definition(outline: &Outline) -> bool {
    ["steps", "nodes"].iter().any(|key| outline.field(None, key).is_some())
}

/// True for an item of a list of steps.
pub(super) fn is_step(outline: &Outline, entry: usize) -> bool {
    let item = &outline.entries[entry];
    if item.key.is_some() {
        return false;
    }
    let Some(list) = item.parent else { return false };
    let Some(key) = outline.entries[list].key.as_deref() else { return false };
    match outline.entries[list].parent {
        None => ["steps", "nodes", "finally"].contains(&key),
        Some(owner) => ["steps", "then", "else"].contains(&key) && is_step(outline, owner),
    }
}

/// Returns the object whose keys are inside of an entry; `None` for data of the author.
pub(super) fn object(outline: &Outline, entry: Option<usize>) -> Option<Object> {
    let Some(at) = entry else { return Some(Object::Root) };
    if is_step(outline, at) {
        let text = |key: &str| outline.field(entry, key).and_then(|entry| entry.scalar.clone());
        if let Some((action, _)) = outline.inside(entry).find(|(_, field)| field.key.as_deref() == Some("action")) {
            let kinds = keys::actions();
            let kind = kinds.iter().find(|(key, _)| outline.field(Some(action), key).is_some());
            return Some(Object::Action(kind.map_or("tool", |(_, kind)| kind)));
        }
        return Some(Object::Step(text("type").unwrap_or_default()));
    }
    let owner = outline.entries[at].parent;
    let key = outline.key_of(entry)?;
    if CONDITIONS.contains(&key) {
        // Conditions occur in steps, edges and other conditions.
        let around = if outline.entries[at].key.is_some() { owner } else { outline.entries[owner?].parent };
        return object(outline, around).filter(|around| !matches!(around, Object::Root)).map(|_| Object::Condition);
    }
    // Items of `edges` and fields of `variables` are objects, though what is around them is none.
    let is_in = |list: &str| {
        let around = owner.map(|owner| &outline.entries[owner]);
        around.is_some_and(|around| around.parent.is_none() && around.key.as_deref() == Some(list))
    };
    if is_in("edges") && outline.entries[at].key.is_none() {
        return Some(Object::Other("edge"));
    }
    if is_in("variables") {
        return Some(Object::Other("variable"));
    }
    let of_owner = object(outline, owner);
    match (key, of_owner?) {
        ("constraints" | "policy", Object::Root) => {
            OBJECTS.iter().find(|known| known.name == key).map(|known| Object::Other(known.name))
        }
        ("retry" | "retryPolicy", Object::Step(_) | Object::Action(_)) => Some(Object::Other("retry")),
        ("config" | "forEach" | "action", Object::Step(_) | Object::Action(_)) => {
            OBJECTS.iter().find(|known| known.name == key).map(|known| Object::Other(known.name))
        }
        ("retryableErrors", Object::Other("retry")) => Some(Object::Other("retryableErrors")),
        _ => None,
    }
}

/// Returns the keys of an object.
pub(super) fn keys_of(language: &Language, notation: Notation, object: &Object) -> Vec<Key> {
    match object {
        Object::Root => language.root(notation),
        Object::Step(step_type) if keys::step_types().any(|known| known == step_type) => {
            language.step(notation, step_type)
        }
        // The keys of every step, among them `type`.
        Object::Step(_) => {
            let mut keys = language.step(notation, "return");
            keys.retain(|key| key.name != "input");
            keys.sort_by_key(|key| key.name != "type");
            keys
        }
        Object::Action(step_type) => language.step_with_action(step_type),
        Object::Condition => language.condition(),
        Object::Other(name) => {
            let object = OBJECTS.into_iter().find(|known| known.name == *name);
            object.map(|object| language.object(object)).unwrap_or_default()
        }
    }
}

/// A step of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepName<'o> {
    pub(super) name: &'o str,
    /// The entry of its id.
    pub(super) entry: &'o Entry,
    /// The type; empty for a step with an action.
    pub(super) step_type: &'o str,
}

/// Returns all steps with an id, in the order of the text, in one pass.
pub(super) fn steps(outline: &Outline) -> Vec<StepName<'_>> {
    let id_key = if notation(outline) == Notation::Dataflow { "name" } else { "id" };
    let mut types = vec![""; outline.entries.len()];
    for entry in &outline.entries {
        if let (Some("type"), Some(step), Some(text)) = (entry.key.as_deref(), entry.parent, entry.scalar.as_deref()) {
            types[step] = text;
        }
    }
    let names = outline.entries.iter().filter(|entry| entry.key.as_deref() == Some(id_key));
    let named = names.filter_map(|entry| {
        let step = entry.parent.filter(|step| is_step(outline, *step))?;
        Some(StepName { name: entry.scalar.as_deref()?, entry, step_type: types[step] })
    });
    named.collect()
}

/// True if an entry or one around it is source of a function or a schema, where nothing refers.
pub(super) fn never_refers(entry: &Entry) -> bool {
    entry.key.as_deref().is_some_and(|key| SOURCES.contains(&key))
}

/// True if the value of an entry is the name of a step: in `needs`, and in `from` and `to` of an edge.
pub(super) fn names_a_step(outline: &Outline, at: usize) -> bool {
    let entry = &outline.entries[at];
    match entry.key.as_deref() {
        Some("from" | "to") => object(outline, entry.parent) == Some(Object::Other("edge")),
        None => {
            let list = entry.parent.filter(|list| outline.entries[*list].key.as_deref() == Some("needs"));
            list.is_some_and(|list| outline.entries[list].parent.is_some_and(|step| is_step(outline, step)))
        }
        Some(_) => false,
    }
}
