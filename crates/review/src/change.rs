//! The difference of two versions by meaning: steps, their fields, edges, and the fields of the plan.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    document::Path,
    json,
    value::{Map, Value},
};

use crate::{
    limits::SHOWN_BYTES_MAX,
    matching::Pairs,
    outline::{EdgeIn, Node, Outline, renamed},
};

/// Kinds of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A step is new.
    StepAdded,
    /// A step was removed.
    StepRemoved,
    /// A step has another id and the same content.
    StepRenamed,
    /// A step is in another block, or at another place in its sequence.
    StepMoved,
    /// A field of a step was added, removed or changed.
    StepChanged,
    /// An edge is new.
    EdgeAdded,
    /// An edge was removed.
    EdgeRemoved,
    /// The condition of an edge is another.
    EdgeChanged,
    /// A limit in `constraints` is another.
    LimitChanged,
    /// A bound of tolerated failures in `policy` is another.
    PolicyChanged,
    /// Another field of the definition was added, removed or changed.
    WorkflowChanged,
}

impl ChangeKind {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::StepAdded => "step_added",
            Self::StepRemoved => "step_removed",
            Self::StepRenamed => "step_renamed",
            Self::StepMoved => "step_moved",
            Self::StepChanged => "step_changed",
            Self::EdgeAdded => "edge_added",
            Self::EdgeRemoved => "edge_removed",
            Self::EdgeChanged => "edge_changed",
            Self::LimitChanged => "limit_changed",
            Self::PolicyChanged => "policy_changed",
            Self::WorkflowChanged => "workflow_changed",
        }
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Category of the difference.
    pub kind: ChangeKind,
    /// The place in the new definition, or in the old one for a part that is gone.
    pub path: Path,
    /// The id of the step, or of the target of an edge.
    pub step: Option<String>,
    /// The field, as plans store it.
    pub field: Option<String>,
    /// The value in the old version.
    pub before: Option<Value>,
    /// The value in the new version.
    pub after: Option<Value>,
}

impl Change {
    /// Returns `{kind, path, step, field, before, after}` without the absent fields. Long values are shortened.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("kind".into(), self.kind.name().into());
        map.insert("path".into(), self.path.to_string().into());
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.into(), value);
            }
        };
        put("step", self.step.as_deref().map(Value::from));
        put("field", self.field.as_deref().map(Value::from));
        put("before", self.before.as_ref().map(shortened));
        put("after", self.after.as_ref().map(shortened));
        Value::Map(map)
    }
}

fn shortened(value: &Value) -> Value {
    let text = match value {
        Value::Text(text) => text.clone(),
        other => json::compact(other),
    };
    if text.len() <= SHOWN_BYTES_MAX {
        return value.clone();
    }
    let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}… ({} bytes)", &text[..end], text.len()).into()
}

/// A field that two steps have differently.
pub(crate) struct FieldChange {
    /// The name, without `params.`.
    pub name: String,
    /// The old value, with the new names of renamed steps.
    pub before: Option<Value>,
    /// The new value.
    pub after: Option<Value>,
}

/// Returns the fields that differ between an old and a new step. Parameters of effects count as fields.
pub(crate) fn fields(pairs: &Pairs, old: &Node, new: &Node) -> Vec<FieldChange> {
    let (before, after) = (flat(&old.fields), flat(&new.fields));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| {
        let before = before.get(name).map(|value| renamed(value, &pairs.names));
        let after = after.get(name).map(|value| (*value).clone());
        (before != after).then(|| FieldChange { name: name.clone(), before, after })
    };
    names.into_iter().filter_map(change).collect()
}

fn flat(fields: &Map) -> BTreeMap<String, &Value> {
    let mut found: BTreeMap<String, &Value> = BTreeMap::new();
    for (name, value) in fields {
        match value {
            Value::Map(params) if name == "params" => {
                found.extend(params.iter().map(|(name, value)| (name.clone(), value)));
            }
            _ => {
                found.insert(name.clone(), value);
            }
        }
    }
    found
}

/// Returns all differences: the plan's fields, then the steps of the new version in order, then the removed steps.
pub(crate) fn changes(old: &Outline<'_>, new: &Outline<'_>, pairs: &Pairs) -> Vec<Change> {
    let mut found = root(old, new, pairs);
    let moved = moved(old, new, pairs);
    for (index, node) in new.nodes.iter().enumerate() {
        let change = |kind| of_step(kind, node);
        let Some(before) = pairs.to_old[index].map(|before| &old.nodes[before]) else {
            found.push(Change { after: Some(node.fields.clone().into()), ..change(ChangeKind::StepAdded) });
            edges(&[], &node.edges, new, node, &mut found);
            continue;
        };
        if before.id != node.id && (before.is_named || node.is_named) {
            let (before, after) = (Some(before.id.as_str().into()), Some(node.id.as_str().into()));
            found.push(Change { before, after, ..change(ChangeKind::StepRenamed) });
        }
        if moved.contains(&index) {
            let (before, after) = (Some(before.path.to_string().into()), Some(node.path.to_string().into()));
            found.push(Change { before, after, ..change(ChangeKind::StepMoved) });
        }
        for field in fields(pairs, before, node) {
            let FieldChange { name, before, after } = field;
            found.push(Change { field: Some(name), before, after, ..change(ChangeKind::StepChanged) });
        }
        edges(&translated(&before.edges, pairs), &node.edges, new, node, &mut found);
    }
    for (index, node) in old.nodes.iter().enumerate().filter(|(index, _)| pairs.to_new[*index].is_none()) {
        debug_assert!(pairs.to_new[index].is_none());
        found.push(Change { before: Some(node.fields.clone().into()), ..of_step(ChangeKind::StepRemoved, node) });
    }
    found
}

fn of_step(kind: ChangeKind, node: &Node) -> Change {
    let (path, step) = (node.path.clone(), Some(node.id.clone()));
    Change { kind, path, step, field: None, before: None, after: None }
}

/// Returns edges with the indexes of the new steps; edges of steps that are gone have none and are left out.
pub(crate) fn translated(edges: &[EdgeIn], pairs: &Pairs) -> Vec<EdgeIn> {
    let translate = |edge: &EdgeIn| {
        let condition = edge.condition.as_ref().map(|condition| renamed(condition, &pairs.names));
        Some(EdgeIn { from: pairs.to_new[edge.from]?, kind: edge.kind.clone(), condition })
    };
    edges.iter().filter_map(translate).collect()
}

fn edges(before: &[EdgeIn], after: &[EdgeIn], new: &Outline<'_>, target: &Node, found: &mut Vec<Change>) {
    let show = |edge: &EdgeIn| {
        let mut map = Map::new();
        map.insert("from".into(), new.nodes[edge.from].id.as_str().into());
        map.insert("when".into(), edge.kind.as_str().into());
        if let Some(condition) = &edge.condition {
            map.insert("condition".into(), condition.clone());
        }
        Some(Value::Map(map))
    };
    let same = |one: &EdgeIn, other: &EdgeIn| one.from == other.from && one.kind == other.kind;
    for edge in after {
        match before.iter().find(|known| same(known, edge)) {
            None => found.push(Change { after: show(edge), ..of_step(ChangeKind::EdgeAdded, target) }),
            Some(known) if known != edge => {
                let (before, after) = (show(known), show(edge));
                found.push(Change { before, after, ..of_step(ChangeKind::EdgeChanged, target) });
            }
            Some(_) => {}
        }
    }
    for edge in before.iter().filter(|edge| !after.iter().any(|known| same(known, edge))) {
        found.push(Change { before: show(edge), ..of_step(ChangeKind::EdgeRemoved, target) });
    }
}

fn root(old: &Outline<'_>, new: &Outline<'_>, pairs: &Pairs) -> Vec<Change> {
    let mut found = Vec::new();
    let keys: BTreeSet<&String> = old.root.keys().chain(new.root.keys()).collect();
    for key in keys.into_iter().filter(|key| !matches!(key.as_str(), "format" | "workflowHash")) {
        let kind = match key.as_str() {
            "constraints" => ChangeKind::LimitChanged,
            "policy" => ChangeKind::PolicyChanged,
            _ => ChangeKind::WorkflowChanged,
        };
        let (before, after) = (old.root.get(key).map(|value| renamed(value, &pairs.names)), new.root.get(key).cloned());
        if kind == ChangeKind::WorkflowChanged {
            if before != after {
                let path = Path::root().key(key);
                found.push(Change { kind, path, step: None, field: Some(key.clone()), before, after });
            }
            continue;
        }
        let parts = |value: &Option<Value>| value.as_ref().and_then(Value::as_map).cloned().unwrap_or_default();
        let (before, after) = (parts(&before), parts(&after));
        let fields: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for field in fields {
            let (before, after) = (before.get(field).cloned(), after.get(field).cloned());
            if before != after {
                let path = Path::root().key(key).key(field);
                found.push(Change { kind, path, step: None, field: Some(field.clone()), before, after });
            }
        }
    }
    found
}

/// Returns the new steps that are in another block than before, or at another place of their sequence.
pub(crate) fn moved(old: &Outline<'_>, new: &Outline<'_>, pairs: &Pairs) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (before, after) in pairs.matched() {
        let (before, node) = (&old.nodes[before], &new.nodes[after]);
        let parent = before.parent.map(|parent| pairs.to_new[parent]);
        if parent != node.parent.map(Some) || before.branch != node.branch {
            found.insert(after);
        }
    }
    let mut places: Vec<usize> = vec![0; old.nodes.len()];
    let inner = old.nodes.iter().flat_map(|node| node.branches.iter().map(|(_, children)| children));
    for block in inner.chain([&old.outermost]) {
        block.iter().enumerate().for_each(|(place, step)| places[*step] = place);
    }
    let sequences = new.nodes.iter().filter(|node| node.text("type") != "parallel");
    let inner = sequences.flat_map(|node| node.branches.iter().map(|(_, children)| children));
    let outermost = (new.is_sequence() && old.is_sequence()).then_some(&new.outermost);
    for block in inner.chain(outermost) {
        let kept: Vec<(usize, usize)> = block
            .iter()
            .filter(|step| !found.contains(*step))
            .filter_map(|step| Some((*step, places[pairs.to_old[*step]?])))
            .collect();
        let in_order = longest_increasing(&kept.iter().map(|(_, place)| *place).collect::<Vec<_>>());
        let out_of_order = kept.iter().enumerate().filter(|(at, _)| !in_order.contains(at)).map(|(_, (step, _))| *step);
        found.extend(out_of_order);
    }
    found
}

/// Returns the positions of a longest increasing subsequence.
fn longest_increasing(numbers: &[usize]) -> BTreeSet<usize> {
    // `ends[n]` is the position of the smallest last number of a subsequence of length n + 1.
    let (mut ends, mut previous): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), vec![None; numbers.len()]);
    for (at, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        previous[at] = length.checked_sub(1).map(|before| ends[before]);
        if length == ends.len() { ends.push(at) } else { ends[length] = at }
    }
    let mut found = BTreeSet::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        found.insert(at);
        next = previous[at];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_increasing_subsequence() {
        for (numbers, expected) in [
            (vec![], 0),
            (vec![3, 1, 2], 2),
            (vec![0, 1, 2, 3], 4),
            (vec![3, 2, 1, 0], 1),
            (vec![5, 0, 6, 1, 2, 7, 3], 4),
        ] {
            let found = longest_increasing(&numbers);
            let picked: Vec<usize> = found.iter().map(|at| numbers[*at]).collect();
            assert!(picked.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}: {picked:?}");
            assert_eq!(picked.len(), expected, "{numbers:?}");
        }
    }
}
