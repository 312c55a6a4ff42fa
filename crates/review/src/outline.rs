//! The steps of a plan as a tree for comparison: stored fields by name, hashes of content, paths into the definition.
//!
//! The fields are those of the plan's stored form, which is the same for all notations and spellings. A step with
//! `forEach` is one node.

use std::collections::BTreeMap;

use mainspring_kernel::{
    definition::Compiled,
    document::{Path, Segment},
    hash::Hash,
    json,
    reference::{RESERVED_NAMES, is_name},
    value::{Map, Value},
};

/// Keys of the stored form that hold inner steps.
const BRANCHES: [&str; 3] = ["then", "else", "steps"];

/// The key of the stored form that holds the steps which run at the end, and their branch.
pub(crate) const FINALLY: &str = "finally";

/// Keys of the stored form of a model call that an author writes at its agent.
const CALL_KEYS: [&str; 4] = ["retry", "timeoutMs", "onInterrupted", "keyPer"];

/// The key of the body of a `forEach` step in the stored form.
const BODY: &str = "body";

/// A version of a workflow as a tree of steps.
pub(crate) struct Outline<'c> {
    /// The definition with all ids.
    pub normalised: &'c Value,
    /// Fields of the stored plan, without its steps.
    pub root: Map,
    /// The steps in written order.
    pub nodes: Vec<Node>,
    /// The outermost steps.
    pub outermost: Vec<usize>,
    /// The number of steps after which an execution fails if the definition sets none.
    pub max_steps_default: u64,
}

/// A step as it was written.
pub(crate) struct Node {
    /// The id, or the path for a step without one.
    pub id: String,
    /// True if the definition gives the id. Other ids change when a step is inserted before.
    pub is_named: bool,
    /// The path in the definition.
    pub path: Path,
    /// The step that contains it.
    pub parent: Option<usize>,
    /// The branch of that step; empty for an outermost step, [`FINALLY`] for a step that runs at the end.
    pub branch: &'static str,
    /// The own fields in the stored form, without inner steps, edges and the id.
    pub fields: Map,
    /// The incoming edges.
    pub edges: Vec<EdgeIn>,
    /// The inner steps of each branch.
    pub branches: Vec<(&'static str, Vec<usize>)>,
    /// Hash of the fields; references to steps count without the name of the step.
    pub own_hash: Hash,
    /// Hash of the fields and of all inner steps.
    pub deep_hash: Hash,
}

/// An incoming edge of an outermost step.
#[derive(Clone, PartialEq)]
pub(crate) struct EdgeIn {
    /// The index of the source.
    pub from: usize,
    /// `on_success`, `on_failure`, `always`, `skip`, or `ended` for references and `needs`.
    pub kind: String,
    /// The condition in the stored form.
    pub condition: Option<Value>,
}

impl Node {
    /// Returns the step type; for an effect its name.
    pub(crate) fn kind(&self) -> &str {
        match self.text("type") {
            "effect" => self.text("effect"),
            kind => kind,
        }
    }

    /// Returns a field as text; empty if it is absent.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_text).unwrap_or_default()
    }

    /// Returns a parameter of an effect.
    pub(crate) fn param(&self, name: &str) -> Option<&Value> {
        self.fields.get("params").and_then(|params| params.get(name))
    }

    /// True for a step that calls: effects and subworkflows.
    pub(crate) fn goes_out(&self) -> bool {
        matches!(self.text("type"), "effect" | "subworkflow")
    }

    /// True for an approval.
    pub(crate) fn is_gate(&self) -> bool {
        self.text("type") == "approval"
    }
}

impl<'c> Outline<'c> {
    /// Reads a compiled definition.
    pub(crate) fn of(compiled: &'c Compiled) -> Self {
        let mut root = match compiled.plan.to_value() {
            Value::Map(map) => map,
            _ => Map::new(),
        };
        let steps = root.remove("steps").unwrap_or(Value::Null);
        let mut reader = Reader { compiled, nodes: Vec::new(), number: 0 };
        let outermost = reader.block(&steps, None, "");
        let finally = root.remove(FINALLY).unwrap_or(Value::Null);
        reader.block(&finally, None, FINALLY);
        let mut nodes = reader.nodes;
        let places = outermost.clone();
        for node in &mut nodes {
            for edge in &mut node.edges {
                edge.from = places.get(edge.from).copied().unwrap_or_default();
            }
        }
        deep_hashes(&mut nodes);
        let max_steps_default = u64::from(compiled.plan.max_steps_default());
        Self { normalised: &compiled.normalised, root, nodes, outermost, max_steps_default }
    }

    /// Returns the path of the first of these keys that the definition has at a step, otherwise the path of the step.
    pub(crate) fn path_of(&self, node: &Node, keys: &[&str]) -> Path {
        let present = |key: &&&str| self.at(&node.path).is_some_and(|step| step.get(key).is_some());
        keys.iter().find(present).map_or_else(|| node.path.clone(), |key| node.path.key(key))
    }

    /// Returns the part of the definition at a path.
    pub(crate) fn at(&self, path: &Path) -> Option<&'c Value> {
        path.segments().iter().try_fold(self.normalised, |value, segment| match (value, segment) {
            (Value::Map(map), Segment::Key(key)) => map.get(&**key),
            (Value::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// True if the outermost steps run one after another.
    pub(crate) fn is_sequence(&self) -> bool {
        !self.root.contains_key("order")
    }
}

struct Reader<'c> {
    compiled: &'c Compiled,
    nodes: Vec<Node>,
    number: usize,
}

impl Reader<'_> {
    fn block(&mut self, steps: &Value, parent: Option<usize>, branch: &'static str) -> Vec<usize> {
        steps.as_list().unwrap_or_default().iter().map(|step| self.step(step, parent, branch)).collect()
    }

    fn step(&mut self, step: &Value, parent: Option<usize>, branch: &'static str) -> usize {
        let mut fields = step.as_map().cloned().unwrap_or_default();
        let path = self.compiled.paths.get(self.number).cloned().unwrap_or_default();
        self.number += 1;
        if let Some(Value::List(mut body)) = fields.remove(BODY) {
            self.number += 1;
            fields.remove("type");
            if let Some(Value::Map(body)) = body.pop() {
                for (key, value) in body {
                    fields.entry(key).or_insert(value);
                }
            }
        }
        self.number += fold_agent(&mut fields);
        let id = fields.remove("id").and_then(|id| id.as_text().map(String::from)).unwrap_or_default();
        let edges = fields.remove("edges").map(|edges| read_edges(&edges)).unwrap_or_default();
        let inner: Vec<(&'static str, Value)> =
            BRANCHES.into_iter().filter_map(|key| Some((key, fields.remove(key)?))).collect();
        let own_hash = Hash::of(json::canonical(&nameless(&Value::Map(fields.clone()))).as_bytes());
        let own = self.nodes.len();
        let is_named = is_name(&id);
        let deep_hash = own_hash;
        let branches = Vec::new();
        self.nodes.push(Node { id, is_named, path, parent, branch, fields, edges, branches, own_hash, deep_hash });
        for (key, steps) in inner {
            let children = self.block(&steps, Some(own), key);
            self.nodes[own].branches.push((key, children));
        }
        own
    }
}

/// Makes one effect of an agent, whose plan is a loop over a model call and its tool calls. Returns the number of steps
/// inside it.
fn fold_agent(fields: &mut Map) -> usize {
    let Some(Value::Map(agent)) = fields.remove("turns") else { return 0 };
    let inside = fields.remove("steps").unwrap_or_default();
    let mut params = Map::new();
    for (key, value) in agent {
        match (key.as_str(), value) {
            ("settings", Value::Map(settings)) => params.extend(settings),
            (_, value) => drop(params.insert(key, value)),
        }
    }
    let model = inside.as_list().and_then(<[Value]>::first).and_then(Value::as_map).cloned().unwrap_or_default();
    for (key, value) in model.into_iter().filter(|(key, _)| CALL_KEYS.contains(&key.as_str())) {
        fields.entry(key).or_insert(value);
    }
    fields.insert("type".into(), "effect".into());
    fields.insert("effect".into(), "agent".into());
    fields.insert("params".into(), params.into());
    count(&inside)
}

/// Returns the number of steps in a list and inside of them.
fn count(steps: &Value) -> usize {
    let steps = steps.as_list().unwrap_or_default();
    steps.iter().map(|step| 1 + BRANCHES.iter().filter_map(|key| step.get(key)).map(count).sum::<usize>()).sum()
}

fn read_edges(edges: &Value) -> Vec<EdgeIn> {
    let read = |edge: &Value| EdgeIn {
        from: edge.get("from").and_then(Value::as_u64).unwrap_or_default() as usize,
        kind: edge.get("kind").and_then(Value::as_text).unwrap_or("ended").into(),
        condition: edge.get("condition").cloned(),
    };
    edges.as_list().unwrap_or_default().iter().map(read).collect()
}

/// Children have higher indexes than their parents, so one pass from the end sees them first.
fn deep_hashes(nodes: &mut [Node]) {
    for own in (0..nodes.len()).rev() {
        let mut parts = vec![nodes[own].own_hash.hex()];
        for (key, children) in &nodes[own].branches {
            parts.push((*key).into());
            parts.extend(children.iter().map(|child| nodes[*child].deep_hash.hex()));
        }
        nodes[own].deep_hash = Hash::of(parts.join(" ").as_bytes());
    }
}

/// Returns a stored value in which references to steps have no step name.
fn nameless(value: &Value) -> Value {
    with_names(value, &|name| (!RESERVED_NAMES.contains(&name)).then(|| "*".into()))
}

/// Returns a stored value in which references to renamed steps have the new names.
pub(crate) fn renamed(value: &Value, names: &BTreeMap<String, String>) -> Value {
    if names.is_empty() { value.clone() } else { with_names(value, &|name| names.get(name).cloned()) }
}

/// Replaces the names in references of a stored value: `@name.path` and, in texts, `~…@{name.path}…`.
fn with_names(value: &Value, to: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::Text(text) if text.starts_with('@') => format!("@{}", with_name(&text[1..], to)).into(),
        Value::Text(text) if text.starts_with('~') => {
            let mut parts = text.split("@{");
            let first = parts.next().unwrap_or_default().to_string();
            parts.fold(first, |all, part| format!("{all}@{{{}", with_name(part, to))).into()
        }
        Value::List(items) => items.iter().map(|item| with_names(item, to)).collect::<Vec<_>>().into(),
        Value::Map(map) => map.iter().map(|(key, field)| (key.clone(), with_names(field, to))).collect::<Map>().into(),
        other => other.clone(),
    }
}

fn with_name(text: &str, to: &dyn Fn(&str) -> Option<String>) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    to(&text[..end]).map_or_else(|| text.to_string(), |name| name + &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_references_are_replaced() {
        let names = BTreeMap::from([("a".to_string(), "b".to_string())]);
        for (text, expected) in [
            ("@a.x", "@b.x"),
            ("@a", "@b"),
            ("@ab.x", "@ab.x"),
            ("~to @{a.x}, @@a and @{c}", "~to @{b.x}, @@a and @{c}"),
            ("=@a", "=@a"),
            ("a", "a"),
        ] {
            assert_eq!(renamed(&text.into(), &names), Value::from(expected), "{text}");
        }
    }
}
