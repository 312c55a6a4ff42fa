//! Random definitions in which every reference is right: of each value the author knows the type, and a reference follows it.

use std::collections::BTreeMap;

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use crate::numbers::Numbers;

/// The type of a value.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Text,
    Whole,
    Truth,
    Object(Vec<(String, Type)>),
    List(Box<Type>),
    /// Nothing is declared, so every path is right.
    Open,
    /// One of several types. No path continues below it.
    Mixed,
}

/// A reference of a definition.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// The name at its start: a step, `input`, `vars`, `item`.
    pub(crate) root: String,
    pub(crate) path: Vec<Part>,
    /// True in a condition on a variable, which has no `@vars.` before the name.
    pub(crate) is_bare: bool,
}

/// A part of a path.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// `.name` or `[0]`.
    pub(crate) text: String,
    /// The names that are beside it; `None` if nothing is declared there.
    pub(crate) known: Option<Vec<String>>,
}

/// A definition with its references.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The definition as JSON, with `«n»` for reference n.
    text: String,
    pub(crate) references: Vec<Written>,
    /// Ids of all steps.
    pub(crate) names: Vec<String>,
    /// The schemas of the outputs of other workflows, by name: what the inspector knows.
    pub(crate) outside: BTreeMap<String, Value>,
}

impl Written {
    pub(crate) fn text(&self) -> String {
        let path: String = self.path.iter().map(|part| part.text.as_str()).collect();
        match self.is_bare {
            true => path.trim_start_matches('.').to_string(),
            false => format!("@{}{path}", self.root),
        }
    }
}

impl Definition {
    /// Returns the definition, with another text for one of its references.
    pub(crate) fn value(&self, instead: Option<(usize, &str)>) -> Value {
        let mut text = self.text.clone();
        for (number, reference) in self.references.iter().enumerate() {
            let written = match instead {
                Some((at, other)) if at == number => other.to_string(),
                _ => reference.text(),
            };
            text = text.replace(&format!("«{number}»"), &written);
        }
        json::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).value
    }
}

/// Names of steps, of properties and of variables.
const STEPS: [&str; 24] = [
    "fetch",
    "build",
    "report",
    "collect",
    "review",
    "deploy",
    "measure",
    "publish",
    "summary",
    "classify",
    "archive",
    "notify",
    "resolve",
    "checkout",
    "invoice",
    "customer",
    "translate",
    "verify",
    "schedule",
    "import_rows",
    "run_tests",
    "load-data",
    "rank",
    "merge",
];
const PROPERTIES: [&str; 30] = [
    "title", "total", "amount", "currency", "address", "city", "street", "lines", "owner", "email", "score", "ready",
    "items", "branch", "commit", "version", "region", "quantity", "price", "label", "priority", "summary", "created",
    "category", "language", "duration", "attempts", "payload", "reviewer", "message",
];
const VARIABLES: [&str; 8] =
    ["region", "threshold", "recipient", "dryRun", "environment", "language", "limit", "token"];

/// The author of one definition.
pub(crate) struct Author {
    numbers: Numbers,
    references: Vec<Written>,
    names: Vec<String>,
    /// The values that a reference can name here, each with its type.
    scope: Vec<(String, Type)>,
    variables: Vec<(String, Type)>,
    outside: BTreeMap<String, Value>,
    /// The key that names a step.
    id_key: &'static str,
    left: usize,
}

impl Author {
    pub(crate) fn write(numbers: Numbers) -> Definition {
        let (references, names, scope, variables) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let outside = BTreeMap::new();
        let mut author = Self { numbers, references, names, scope, variables, outside, id_key: "id", left: 14 };
        let root = author.root();
        let text = json::compact(&Value::Map(root));
        Definition { text, references: author.references, names: author.names, outside: author.outside }
    }

    fn root(&mut self) -> Map {
        let input = self.object(2);
        let mut root = map([("inputSchema", schema(&input, self.numbers.chance(70)))]);
        self.scope.push(("input".into(), input));
        let mut declared = Map::new();
        for _ in 0..1 + self.numbers.below(4) {
            let name = *self.numbers.pick(&VARIABLES);
            let (kind, word, default) = match self.numbers.below(3) {
                0 => (Type::Whole, "integer", Value::from(3u64)),
                1 => (Type::Truth, "boolean", true.into()),
                _ => (Type::Text, "string", "north".into()),
            };
            if !declared.contains_key(name) {
                declared.insert(name.into(), Value::map([("type", word.into()), ("default", default)]));
                self.variables.push((name.into(), kind));
            }
        }
        self.scope.push(("vars".into(), Type::Object(self.variables.clone())));
        root.insert("variables".into(), declared.into());
        let count = 2 + self.numbers.below(6);
        let notation = self.numbers.below(3);
        self.id_key = if notation == 1 { "name" } else { "id" };
        let steps = self.steps(count, 0, notation == 1);
        if notation == 2 {
            let id = |step: &Value| step.get("id").cloned().unwrap_or_default();
            let edge = |pair: &[Value]| Value::map([("from", id(&pair[0])), ("to", id(&pair[1]))]);
            let edges: Vec<Value> = steps.windows(2).map(edge).collect();
            root.insert("nodes".into(), steps.into());
            root.insert("edges".into(), edges.into());
        } else {
            root.insert("steps".into(), steps.into());
        }
        if self.numbers.chance(60) {
            root.insert("output".into(), self.data(1));
        }
        if notation != 1 && self.numbers.chance(30) {
            let finally = self.steps(1, 2, false);
            root.insert("finally".into(), finally.into());
        }
        root
    }

    /// Generates steps that run one after another. In a dataflow the first one has an action, and the name is the id.
    fn steps(&mut self, count: usize, depth: usize, is_dataflow: bool) -> Vec<Value> {
        let mut steps = Vec::new();
        for at in 0..count {
            let (id, mut step, output) = match is_dataflow && at == 0 {
                true => {
                    let output = Type::Object(vec![("title".into(), Type::Text), ("total".into(), Type::Whole)]);
                    let action = ("action", Value::map([("toolName", "SEARCH".into())]));
                    (self.name(), map([action, ("outputSchema", schema(&output, true))]), output)
                }
                false => self.step(depth),
            };
            step.insert(self.id_key.into(), id.as_str().into());
            self.scope.push((id, output));
            if is_dataflow && at > 0 {
                let before = steps.last().and_then(|step: &Value| step.get("name")).cloned().unwrap_or_default();
                step.insert("needs".into(), vec![before].into());
            }
            steps.push(Value::Map(step));
        }
        steps
    }

    fn name(&mut self) -> String {
        let word = *self.numbers.pick(&STEPS);
        let name = match self.names.iter().any(|name| name == word) {
            true => format!("{word}_{}", self.names.len()),
            false => word.to_string(),
        };
        self.names.push(name.clone());
        name
    }

    /// Generates a step, and returns it with its id and the type of its output.
    fn step(&mut self, depth: usize) -> (String, Map, Type) {
        self.left = self.left.saturating_sub(1);
        let id = self.name();
        let is_leaf = depth > 1 || self.left == 0;
        // The condition is read before the steps inside have run.
        let when = (depth == 0 && self.numbers.chance(25)).then(|| self.condition(1));
        let (mut step, output) = match self.numbers.below(if is_leaf { 9 } else { 14 }) {
            0 | 1 => self.bash(),
            2 => (map([("type", "http".into()), ("url", self.text("https://example.com/"))]), response()),
            3 => self.tool(),
            4 | 5 => self.code(),
            6 => self.agent(),
            7 => self.subworkflow(),
            8 => (map([("type", "approval".into()), ("prompt", self.text("Is "))]), decision()),
            9 => self.parallel(depth),
            10 => self.conditional(depth),
            11 => self.until(depth),
            _ => self.each(depth),
        };
        step.extend(when.map(|when| ("when".to_string(), when)));
        (id, step, output)
    }

    fn bash(&mut self) -> (Map, Type) {
        let mut step = map([("type", "bash".into())]);
        let scalar = self.scalar();
        match self.numbers.chance(50) {
            true => step.insert("command".into(), format!("echo {scalar}").into()),
            false => {
                step.insert("env".into(), Value::map([("VALUE", scalar.into())]));
                step.insert("command".into(), "echo \"$VALUE\"".into())
            }
        };
        (step, script())
    }

    fn tool(&mut self) -> (Map, Type) {
        let mut step = map([("type", "tool".into()), ("arguments", self.record())]);
        if self.numbers.chance(15) {
            step.insert("tool".into(), "OPEN".into());
            return (step, Type::Open);
        }
        let output = self.object(2);
        step.insert("tool".into(), "SEARCH".into());
        step.insert("outputSchema".into(), schema(&output, self.numbers.chance(70)));
        (step, output)
    }

    fn code(&mut self) -> (Map, Type) {
        let output = self.object(2);
        let source = format!("export default (input) => input // {}", json::compact(&schema(&output, true)));
        let mut step = map([("type", "code".into()), ("code", source.as_str().into()), ("input", self.data(2))]);
        if self.numbers.chance(40) {
            step.insert("code".into(), "export default (input) => input".into());
            step.insert("outputSchema".into(), schema(&output, self.numbers.chance(70)));
        }
        (step, output)
    }

    fn agent(&mut self) -> (Map, Type) {
        let answer = self.object(1);
        let step = map([
            ("type", "agent".into()),
            ("goal", self.text("Look at ")),
            ("context", self.data(1)),
            ("outputSchema", schema(&answer, true)),
        ]);
        let fields = [("text", Type::Text), ("value", answer), ("usage", Type::Open), ("turns", Type::Open)];
        (step, object(fields.into_iter().chain([("stopReason", Type::Text)])))
    }

    fn subworkflow(&mut self) -> (Map, Type) {
        let mut step = map([("type", "subworkflow".into()), ("input", self.data(2))]);
        if self.numbers.chance(20) {
            step.insert("workflow".into(), "CHILD".into());
            step.insert("wait".into(), false.into());
            return (step, object([("executionId", Type::Text)]));
        }
        let output = self.object(2);
        step.insert("workflow".into(), self.child(&output));
        (step, output)
    }

    /// Returns the name of a workflow whose output is known.
    fn child(&mut self, output: &Type) -> Value {
        let name = format!("CHILD_{}", self.outside.len());
        self.outside.insert(name.clone(), schema(output, true));
        name.into()
    }

    fn parallel(&mut self, depth: usize) -> (Map, Type) {
        let (before, mut steps, mut outputs, mut all) = (self.scope.clone(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 + self.numbers.below(2) {
            self.scope.clone_from(&before);
            let (id, mut step, output) = self.step(depth + 1);
            step.insert(self.id_key.into(), id.as_str().into());
            outputs.push((id.clone(), output.clone()));
            all.extend(self.scope.drain(before.len()..));
            all.push((id, output));
            steps.push(Value::Map(step));
        }
        self.scope = before;
        self.scope.extend(all);
        (map([("type", "parallel".into()), ("steps", steps.into())]), Type::Object(outputs))
    }

    fn conditional(&mut self, depth: usize) -> (Map, Type) {
        let condition = self.condition(1);
        let before = self.scope.clone();
        let then = self.steps(1, depth + 1, false);
        let of_then = self.scope[before.len()..].to_vec();
        self.scope.clone_from(&before);
        let otherwise = self.steps(1, depth + 1, false);
        self.scope.splice(before.len()..before.len(), of_then.clone());
        // A path that one of the branches has is right. Both end with an object or a list.
        let output = of_then.last().map_or(Type::Open, |(_, output)| output.clone());
        let other = self.scope.last().map_or(Type::Open, |(_, output)| output.clone());
        let step = [("condition", condition), ("then", then.into()), ("else", otherwise.into())];
        let mut step: Map = map(step);
        step.insert("type".into(), "conditional".into());
        (step, either(output, other))
    }

    fn until(&mut self, depth: usize) -> (Map, Type) {
        let before = self.scope.len();
        let count = 1 + self.numbers.below(2);
        let steps = self.steps(count, depth + 1, false);
        // The condition reads the last round.
        let condition = self.condition(0);
        let output = self.scope.last().map_or(Type::Open, |(_, output)| output.clone());
        self.scope.truncate(before);
        let index = Value::map([("ref", "@index".into()), ("gte", 2u64.into())]);
        let until = Value::map([("any", Value::List([condition, index].into()))]);
        (map([("type", "loop".into()), ("until", until), ("steps", steps.into())]), output)
    }

    /// Generates a loop over a list: a step with `forEach`, or a `loop`.
    fn each(&mut self, depth: usize) -> (Map, Type) {
        let Some((list, item)) = self.list() else { return self.bash() };
        let before = self.scope.len();
        let each = Value::map([("ref", list.into())]);
        let outer = self.scope.iter().position(|(name, _)| name == "item").map(|at| self.scope.remove(at));
        let before = before - usize::from(outer.is_some());
        self.scope.push(("item".into(), item));
        let (mut step, output) = match self.numbers.chance(50) {
            true => {
                let count = 1 + self.numbers.below(2);
                let steps = self.steps(count, depth + 1, false);
                let output = self.scope.last().map_or(Type::Open, |(_, output)| output.clone());
                (map([("type", "loop".into()), ("steps", steps.into())]), output)
            }
            false => match self.numbers.below(3) {
                0 => self.bash(),
                1 => self.code(),
                _ => self.tool(),
            },
        };
        step.insert("forEach".into(), each);
        self.scope.truncate(before);
        self.scope.extend(outer);
        (step, Type::List(Box::new(output)))
    }

    /// Returns a reference to a list, and the type of its items.
    fn list(&mut self) -> Option<(String, Type)> {
        let mut lists = Vec::new();
        for (name, kind) in &self.scope {
            lists_in(kind, &mut Vec::new(), &mut |path, item| {
                lists.push((Written { root: name.clone(), path: path.to_vec(), is_bare: false }, item.clone()));
            });
        }
        if lists.is_empty() {
            return None;
        }
        let (written, item) = lists.swap_remove(self.numbers.below(lists.len()));
        Some((self.keep(written), item))
    }

    fn keep(&mut self, written: Written) -> String {
        self.references.push(written);
        format!("«{}»", self.references.len() - 1)
    }

    /// Writes a reference, and returns its place and the type of its value.
    fn reference(&mut self, is_scalar: bool) -> (String, Type) {
        for _ in 0..20 {
            let (root, mut kind) = self.numbers.pick(&self.scope).clone();
            let mut path = Vec::new();
            // Any path below an open value is right, so one in five continues below it.
            while path.len() < 6 && (path.is_empty() && root == "vars" || is_scalar || self.numbers.chance(80)) {
                kind = match kind {
                    Type::Object(fields) if !fields.is_empty() => {
                        let known = fields.iter().map(|(name, _)| name.clone()).collect();
                        let (name, kind) = self.numbers.pick(&fields).clone();
                        path.push(Part { text: format!(".{name}"), known: Some(known) });
                        kind
                    }
                    Type::List(item) => {
                        path.push(Part { text: "[0]".into(), known: None });
                        *item
                    }
                    Type::Open if self.numbers.chance(20) => {
                        path.push(Part { text: ".anything".into(), known: None });
                        Type::Open
                    }
                    other => {
                        kind = other;
                        break;
                    }
                };
            }
            let is_whole_input = path.is_empty() && is_scalar;
            let is_fine = !is_scalar || matches!(kind, Type::Text | Type::Whole | Type::Truth);
            if is_fine && !is_whole_input {
                return (self.keep(Written { root, path, is_bare: false }), kind);
            }
        }
        let (name, kind) = self.numbers.pick(&self.variables).clone();
        let known = self.variables.iter().map(|(name, _)| name.clone()).collect();
        let path = vec![Part { text: format!(".{name}"), known: Some(known) }];
        (self.keep(Written { root: "vars".into(), path, is_bare: false }), kind)
    }

    /// Writes a reference to a text, a number or a truth value.
    fn scalar(&mut self) -> String {
        self.reference(true).0
    }

    fn text(&mut self, before: &str) -> Value {
        format!("{before}{} and so on", self.scalar()).into()
    }

    fn data(&mut self, depth: usize) -> Value {
        match self.numbers.below(if depth == 0 { 3 } else { 5 }) {
            0 => self.text("about "),
            1 | 2 => self.reference(false).0.into(),
            3 => vec![self.data(depth - 1), 7u64.into()].into(),
            _ => self.record(),
        }
    }

    fn record(&mut self) -> Value {
        Value::map([("first", self.data(0)), ("second", self.reference(false).0.into())])
    }

    fn condition(&mut self, depth: usize) -> Value {
        let key = *self.numbers.pick(&["all", "any"]);
        match self.numbers.below(if depth == 0 { 3 } else { 5 }) {
            0 if !self.variables.is_empty() => {
                let (name, kind) = self.numbers.pick(&self.variables).clone();
                let known = self.variables.iter().map(|(name, _)| name.clone()).collect();
                let path = vec![Part { text: format!(".{name}"), known: Some(known) }];
                let written = self.keep(Written { root: "vars".into(), path, is_bare: true });
                let mut condition = map([("variable", written.into())]);
                if self.numbers.chance(50) {
                    condition.insert("equals".into(), literal(&kind));
                }
                Value::Map(condition)
            }
            3 => Value::map([("not", self.condition(depth - 1))]),
            4 => Value::map([(key, vec![self.condition(depth - 1), self.condition(depth - 1)].into())]),
            _ => {
                let (written, kind) = self.reference(true);
                let last = self.references.last().and_then(|kept| kept.path.last());
                let is_exit_code = last.is_some_and(|part| part.text == ".exitCode");
                let test = match (self.numbers.below(3), &kind) {
                    // An exit code that a later step reads is 0, so a comparison with another number never holds.
                    _ if is_exit_code => ("exists", true.into()),
                    (0, _) => ("exists", true.into()),
                    (1, Type::Whole) => ("gt", Value::from(2u64)),
                    _ => ("neq", literal(&kind)),
                };
                Value::map([("ref", written.into()), test])
            }
        }
    }

    fn object(&mut self, depth: usize) -> Type {
        let mut fields: Vec<(String, Type)> = Vec::new();
        for _ in 0..2 + self.numbers.below(4) {
            let name = *self.numbers.pick(&PROPERTIES);
            if fields.iter().all(|(known, _)| known != name) {
                let kind = self.kind(depth);
                fields.push((name.into(), kind));
            }
        }
        Type::Object(fields)
    }

    fn kind(&mut self, depth: usize) -> Type {
        match self.numbers.below(if depth == 0 { 4 } else { 8 }) {
            0 | 1 => Type::Text,
            2 => Type::Whole,
            3 => Type::Truth,
            4 | 5 => self.object(depth - 1),
            6 => Type::List(Box::new(self.object(depth - 1))),
            _ => Type::List(Box::new(Type::Text)),
        }
    }
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Map {
    fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Type)>) -> Type {
    Type::Object(fields.into_iter().map(|(name, kind)| (name.to_string(), kind)).collect())
}

fn script() -> Type {
    let kinds =
        [("stdout", Type::Text), ("stderr", Type::Text), ("exitCode", Type::Whole), ("durationMs", Type::Whole)];
    object(kinds.into_iter().chain([("truncated", Type::Truth)]))
}

fn response() -> Type {
    let kinds = [("status", Type::Whole), ("headers", Type::Open), ("body", Type::Open), ("url", Type::Text)];
    let rest = [("durationMs", Type::Whole), ("redirects", Type::Whole), ("truncated", Type::Truth)];
    object(kinds.into_iter().chain(rest))
}

fn decision() -> Type {
    object([("decision", Type::Text), ("by", Type::List(Box::new(Type::Open))), ("at", Type::Text)])
}

/// Returns the type of one of two values: the paths of both are right.
fn either(one: Type, other: Type) -> Type {
    match (one, other) {
        (Type::Object(mut fields), Type::Object(others)) => {
            for (name, kind) in others {
                match fields.iter().position(|(known, _)| *known == name) {
                    Some(at) => fields[at].1 = either(fields[at].1.clone(), kind),
                    None => fields.push((name, kind)),
                }
            }
            Type::Object(fields)
        }
        (Type::List(one), Type::List(other)) => Type::List(Box::new(either(*one, *other))),
        (Type::Text, Type::Text) => Type::Text,
        (Type::Whole, Type::Whole) => Type::Whole,
        (Type::Truth, Type::Truth) => Type::Truth,
        (Type::Open, _) | (_, Type::Open) => Type::Open,
        _ => Type::Mixed,
    }
}

/// Returns a JSON Schema. A closed one has no other properties; an open one does not say.
fn schema(kind: &Type, is_closed: bool) -> Value {
    let of = |kind: &str| Value::map([("type", kind.into())]);
    match kind {
        Type::Text => of("string"),
        Type::Whole => of("integer"),
        Type::Truth => of("boolean"),
        Type::Open | Type::Mixed => true.into(),
        Type::List(item) => Value::map([("type", "array".into()), ("items", schema(item, is_closed))]),
        Type::Object(fields) => {
            let properties = fields.iter().map(|(name, kind)| (name.as_str(), schema(kind, is_closed)));
            let required: Vec<Value> = fields.iter().map(|(name, _)| name.as_str().into()).collect();
            let parts =
                [("type", "object".into()), ("properties", Value::map(properties)), ("required", required.into())];
            let closed = is_closed.then_some(("additionalProperties", Value::from(false)));
            Value::map(parts.into_iter().chain(closed))
        }
    }
}

fn literal(kind: &Type) -> Value {
    match kind {
        Type::Whole => 3u64.into(),
        Type::Truth => true.into(),
        _ => "north".into(),
    }
}

/// Calls `found` for each list in a type, with its path and the type of its items.
fn lists_in(kind: &Type, path: &mut Vec<Part>, found: &mut dyn FnMut(&[Part], &Type)) {
    match kind {
        Type::List(item) => found(path, item),
        Type::Object(fields) => {
            for (name, kind) in fields {
                let known = fields.iter().map(|(name, _)| name.clone()).collect();
                path.push(Part { text: format!(".{name}"), known: Some(known) });
                lists_in(kind, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}
