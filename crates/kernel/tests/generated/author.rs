//! Random definitions in all three notations. Most of them are valid, with references to steps that have ended for
//! certain; some contain a mistake.

use mainspring_kernel::{
    definition::Notation,
    value::{Map, Value},
};

use super::numbers::Numbers;

/// The generator of one definition.
#[derive(Debug)]
pub(crate) struct Author {
    numbers: Numbers,
    notation: Notation,
    /// The number of steps that may still be generated.
    left: usize,
    /// Names of the steps that have ended for certain at this point.
    ended: Vec<String>,
    /// All names so far.
    named: Vec<String>,
    /// True if references may use any name, even an invalid one.
    is_careless: bool,
    /// The number of enclosing loops over items, and of all enclosing loops.
    items: usize,
    loops: usize,
    /// True if the definition contains a `return` or a `bail`.
    ends_early: bool,
    /// True for the steps of `finally`.
    is_cleanup: bool,
}

/// A definition and its properties.
#[derive(Debug)]
pub(crate) struct Written {
    pub definition: Value,
    /// True if an execution may end before all steps have run.
    pub ends_early: bool,
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Map {
    fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// Step types, repeated according to their weight.
const KINDS: [&str; 30] = [
    "tool",
    "tool",
    "tool",
    "tool",
    "tool",
    "tool",
    "tool",
    "bash",
    "http",
    "agent",
    "agent_message",
    "code",
    "code",
    "code",
    "code",
    "subworkflow",
    "subworkflow",
    "conditional",
    "conditional",
    "conditional",
    "parallel",
    "parallel",
    "parallel",
    "loop",
    "loop",
    "loop",
    "approval",
    "sleep",
    "signal",
    "return",
];

/// Error classes and codes for retry policies.
const CLASSES: [&str; 6] = ["transient", "rate_limited", "timeout", "unavailable", "failed", "code:c1"];

impl Author {
    pub(crate) fn write(mut numbers: Numbers) -> Written {
        let notation = *numbers.pick(&Notation::ALL);
        let (left, is_careless) = (1 + numbers.below(24), numbers.chance(10));
        let (ended, named) = (Vec::new(), Vec::new());
        let mut author = Self {
            numbers,
            notation,
            left,
            ended,
            named,
            is_careless,
            items: 0,
            loops: 0,
            ends_early: false,
            is_cleanup: false,
        };
        let definition = author.definition();
        Written { definition, ends_early: author.ends_early }
    }

    fn definition(&mut self) -> Value {
        let mut root = match self.notation {
            Notation::Sequence => self.sequence(),
            Notation::Dataflow => self.dataflow(),
            Notation::Graph => self.graph(),
        };
        if self.numbers.chance(40) {
            root.insert("constraints".into(), self.constraints());
        }
        if self.numbers.chance(25) {
            root.insert("policy".into(), self.policy());
        }
        if self.numbers.chance(10) {
            root.insert("inputSchema".into(), Value::Map(map([("type", "object".into())])));
        }
        if self.numbers.chance(10) {
            root.insert("output".into(), self.data(2));
        }
        if self.numbers.chance(30) {
            (self.left, self.is_cleanup) = (6, true);
            root.insert("finally".into(), self.block(1, 4));
            if self.numbers.chance(30) {
                root.insert("finallyTimeoutMs".into(), (1 + self.numbers.below(60_000) as u64).into());
            }
        }
        Value::Map(root)
    }

    fn constraints(&mut self) -> Value {
        let mut constraints = Map::new();
        let bounds = [("maxSteps", 60), ("maxParallel", 4), ("maxCalls", 30), ("timeoutMs", 60_000)];
        for (key, bound) in bounds {
            if self.numbers.chance(25) {
                constraints.insert(key.into(), (1 + self.numbers.below(bound) as u64).into());
            }
        }
        Value::Map(constraints)
    }

    fn policy(&mut self) -> Value {
        let mut policy = map([("failOpen", self.numbers.chance(30).into())]);
        for key in ["maxNodeFailures", "maxRetriesExhausted"] {
            if self.numbers.chance(30) {
                policy.insert(key.into(), (1 + self.numbers.below(3) as u64).into());
            }
        }
        Value::Map(policy)
    }

    fn sequence(&mut self) -> Map {
        map([("steps", self.block(0, 6))])
    }

    /// Generates steps with backward references only, then shuffles them.
    fn dataflow(&mut self) -> Map {
        let mut steps = Vec::new();
        while steps.len() < 10 && (self.left > 0 || steps.is_empty()) {
            let mut step = self.step(0);
            if steps.is_empty() {
                step.remove("type");
                for key in STEP_KEYS {
                    step.remove(key);
                }
                step.insert("action".into(), Value::Map(map([("toolName", "T".into())])));
            }
            if self.numbers.chance(15) && !steps.is_empty() {
                step.insert("needs".into(), vec![self.root_name(&steps)].into());
            }
            steps.push(Value::Map(step));
        }
        self.shuffle(&mut steps);
        map([("steps", steps.into())])
    }

    fn root_name(&mut self, steps: &[Value]) -> Value {
        let key = self.id_key();
        let at = self.numbers.below(steps.len());
        steps[at].get(key).cloned().unwrap_or_default()
    }

    fn shuffle(&mut self, steps: &mut [Value]) {
        for at in (1..steps.len()).rev() {
            let other = self.numbers.below(at + 1);
            steps.swap(at, other);
        }
    }

    /// Generates nodes with edges from earlier ones. A node may refer to its predecessors.
    fn graph(&mut self) -> Map {
        let (mut nodes, mut edges): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        // The names that have ended when each node has ended, inner steps included.
        let mut behind: Vec<Vec<String>> = Vec::new();
        while nodes.len() < 10 && (self.left > 0 || nodes.is_empty()) {
            let mut sources: Vec<usize> = (0..nodes.len()).filter(|_| self.numbers.chance(30)).collect();
            sources.truncate(3);
            self.ended = sources.iter().flat_map(|source| behind[*source].clone()).collect();
            let mut new: Vec<(usize, Map)> = Vec::new();
            for source in sources {
                let mut edge = map([("from", self.id_of(&nodes[source]))]);
                if self.numbers.chance(60) {
                    edge.insert(
                        "when".into(),
                        (*self.numbers.pick(&["on_success", "on_failure", "always", "skip"])).into(),
                    );
                }
                let is_failure = edge.get("when").and_then(Value::as_text) == Some("on_failure");
                if self.numbers.chance(25) && !is_failure {
                    edge.insert("condition".into(), self.condition(2));
                }
                new.push((source, edge));
            }
            let node = self.step(0);
            let id = node.get(self.id_key()).cloned().unwrap_or_default();
            for (_, mut edge) in new {
                edge.insert("to".into(), id.clone());
                edges.push(Value::Map(edge));
            }
            behind.push(self.ended.clone());
            nodes.push(Value::Map(node));
        }
        if self.is_careless && self.numbers.chance(30) {
            let (from, to) = (self.root_name(&nodes), self.root_name(&nodes));
            edges.push(Value::Map(map([("from", from), ("to", to)])));
        }
        self.shuffle(&mut nodes);
        map([("nodes", nodes.into()), ("edges", edges.into())])
    }

    fn id_of(&self, step: &Value) -> Value {
        step.get(self.id_key()).cloned().unwrap_or_default()
    }

    fn id_key(&self) -> &'static str {
        if self.notation == Notation::Dataflow { "name" } else { "id" }
    }

    /// Generates a sequential block.
    fn block(&mut self, depth: usize, most: usize) -> Value {
        let mut steps = Vec::new();
        let most = 1 + self.numbers.below(most);
        while steps.is_empty() || (steps.len() < most && self.left > 0) {
            steps.push(Value::Map(self.step(depth)));
        }
        steps.into()
    }

    /// Generates parallel branches. A branch may not refer to another one; later steps may refer to all of them.
    fn branches(&mut self, depth: usize) -> Value {
        let before = self.ended.clone();
        let (mut after, mut steps) = (before.clone(), Vec::new());
        for _ in 0..1 + self.numbers.below(4) {
            self.ended = before.clone();
            steps.push(Value::Map(self.step(depth)));
            after.extend(self.ended.iter().skip(before.len()).cloned());
        }
        self.ended = after;
        steps.into()
    }

    /// Generates a step and adds its name to `ended`.
    fn step(&mut self, depth: usize) -> Map {
        self.left = self.left.saturating_sub(1);
        let mut kind = *self.numbers.pick(&KINDS);
        if matches!(kind, "conditional" | "parallel" | "loop") && (depth > 3 || self.left == 0) {
            kind = "tool";
        }
        if self.is_cleanup && kind == "return" {
            kind = "tool";
        }
        let mut step = Map::new();
        let id = format!("s{}", self.named.len());
        self.named.push(id.clone());
        let is_each = kind != "loop"
            && kind != "return"
            && kind != "conditional"
            && kind != "parallel"
            && self.numbers.chance(12);
        if self.numbers.chance(20) {
            step.insert("when".into(), self.condition(2));
        }
        if is_each {
            step.insert("forEach".into(), self.for_each());
            self.items += 1;
            self.loops += 1;
        }
        self.modifiers(kind, &mut step, is_each);
        if self.notation == Notation::Dataflow && matches!(kind, "tool" | "code" | "return") && self.numbers.chance(70)
        {
            self.action(kind, &mut step);
        } else {
            step.insert("type".into(), kind.into());
            self.keys(kind, depth, &mut step);
        }
        if is_each {
            self.items -= 1;
            self.loops -= 1;
        }
        if self.numbers.chance(6) && !self.is_cleanup && kind != "return" && !matches!(kind, "conditional" | "parallel")
        {
            self.ends_early = true;
            let bail = if self.numbers.chance(30) { true.into() } else { self.about(&format!("@{id}")) };
            step.insert("bail".into(), bail);
        }
        step.insert(self.id_key().into(), id.as_str().into());
        self.ended.push(id);
        step
    }

    fn modifiers(&mut self, kind: &str, step: &mut Map, is_each: bool) {
        if self.numbers.chance(20) {
            let word = *self.numbers.pick(&["continue", "continue", "fail"]);
            step.insert("onError".into(), word.into());
        }
        if self.numbers.chance(15) && !self.is_cleanup && (self.loops == 0 || self.numbers.chance(20)) {
            let name = if self.is_careless { self.numbers.below(3) } else { self.named.len() };
            step.insert("outputVariable".into(), format!("v{name}").into());
        }
        if self.numbers.chance(20) {
            step.insert("priority".into(), (self.numbers.below(5) as u64).into());
        }
        let does_work =
            !matches!(kind, "conditional" | "parallel" | "loop" | "approval" | "sleep" | "signal" | "return");
        if !does_work {
            if kind == "signal" && self.numbers.chance(50) {
                step.insert("timeoutMs".into(), (1 + self.numbers.below(9000) as u64).into());
            }
            return;
        }
        if self.numbers.chance(50) {
            step.insert("retry".into(), self.retry());
        }
        if self.numbers.chance(30) && !is_each {
            step.insert("timeoutMs".into(), (1 + self.numbers.below(9000) as u64).into());
        }
        if self.numbers.chance(30) {
            step.insert("onInterrupted".into(), (*self.numbers.pick(&["retry", "ask", "fail"])).into());
        }
        if self.numbers.chance(15) {
            step.insert("outputSchema".into(), true.into());
        }
        if self.numbers.chance(15) && kind != "code" {
            step.insert("transform".into(), "export default function (r) { return r }".into());
        }
        if self.numbers.chance(10) && !matches!(kind, "code" | "subworkflow") {
            step.insert("keyPer".into(), "attempt".into());
        }
    }

    fn retry(&mut self) -> Value {
        let mut retry = map([("maxAttempts", (1 + self.numbers.below(3) as u64).into())]);
        if self.numbers.chance(60) {
            retry.insert("initialDelayMs".into(), (self.numbers.below(3) as u64 * 1500).into());
            retry.insert("backoff".into(), (*self.numbers.pick(&["fixed", "linear", "exponential"])).into());
        }
        if self.numbers.chance(20) {
            retry.insert("jitter".into(), 0.5.into_value());
        }
        for key in ["retryOn", "neverOn"] {
            if self.numbers.chance(20) {
                retry.insert(key.into(), vec![Value::from(*self.numbers.pick(&CLASSES))].into());
            }
        }
        Value::Map(retry)
    }

    /// Adds an `action`, which the dataflow notation has instead of a type.
    fn action(&mut self, kind: &str, step: &mut Map) {
        let action = match kind {
            "tool" => ("toolName", "T".into()),
            "code" => ("code", SOURCE.into()),
            _ => ("return", true.into()),
        };
        self.ends_early |= kind == "return";
        step.insert("action".into(), Value::Map(map([action])));
        step.insert("input".into(), if kind == "tool" { self.object(2) } else { self.data(2) });
    }

    /// Adds the keys of a step type.
    fn keys(&mut self, kind: &str, depth: usize, step: &mut Map) {
        let mut put = |key: &str, value: Value| drop(step.insert(key.into(), value));
        match kind {
            "tool" => {
                put("tool", "T".into());
                put("arguments", self.object(2));
            }
            "bash" => {
                put("command", "echo hi".into());
                put("env", Value::Map(map([("V", self.data(0))])));
            }
            "http" => put("url", "https://example.com/x".into()),
            "agent" => put("goal", self.text()),
            "agent_message" => put("content", self.text()),
            "code" => {
                put("code", SOURCE.into());
                put("input", self.data(2));
            }
            "subworkflow" => {
                put(
                    "workflow",
                    (*self.numbers.pick(&["child", "child", "child", "child", "child", "child", "child", "nobody"]))
                        .into(),
                );
                put("input", self.data(2));
                if self.numbers.chance(30) {
                    put("wait", false.into());
                }
            }
            "conditional" => {
                put("condition", self.condition(2));
                let has_then = self.numbers.chance(80);
                if has_then {
                    put("then", self.block(depth + 1, 3));
                }
                if !has_then || self.numbers.chance(50) {
                    put("else", self.block(depth + 1, 3));
                }
            }
            "parallel" => put("steps", self.branches(depth + 1)),
            "loop" => self.round_and_round(depth, step),
            "approval" => {
                put("items", self.data(1));
                put("onTimeout", (*self.numbers.pick(&["approve", "deny"])).into());
                if self.numbers.chance(30) {
                    put("approvers", vec![Value::from("ann"), "bob".into()].into());
                    put("count", 2u64.into());
                }
            }
            "sleep" if self.numbers.chance(20) => put("until", "2026-01-01T00:00:09Z".into()),
            "sleep" => put("durationMs", (self.numbers.below(9000) as u64).into()),
            "signal" => put("signal", (*self.numbers.pick(&["go", "stop"])).into()),
            _ => {
                self.ends_early = true;
                put("input", self.data(2));
            }
        }
    }

    fn round_and_round(&mut self, depth: usize, step: &mut Map) {
        let form = *self.numbers.pick(&["forEach", "forEach", "while", "until"]);
        let (ended, items) = (self.ended.len(), self.items);
        if form == "forEach" {
            step.insert("forEach".into(), self.for_each());
            self.items += 1;
        } else {
            step.insert("maxRounds".into(), (1 + self.numbers.below(4) as u64).into());
        }
        self.loops += 1;
        step.insert("steps".into(), self.block(depth + 1, 3));
        if form != "forEach" {
            // The condition of a loop may refer to its inner steps, but not to those of an inner loop.
            let inside = &self.ended[ended..];
            let mut condition = match self.numbers.below(4) {
                0 => self.condition(1),
                1 => Value::Map(map([("ref", "@index".into()), ("lt", 2u64.into())])),
                _ => {
                    let name = inside.get(self.numbers.below(inside.len())).cloned();
                    self.about(&name.map_or("@index".into(), |name| format!("@{name}")))
                }
            };
            if self.numbers.chance(20) {
                condition = Value::Map(map([("not", condition)]));
            }
            step.insert(form.into(), condition);
        }
        self.loops -= 1;
        self.items = items;
        self.ended.truncate(ended);
    }

    fn for_each(&mut self) -> Value {
        let list = match self.numbers.below(10) {
            0 => "@input.none".into(),
            1 if self.items > 0 => "@item.list".into(),
            2 => self.reference(".list"),
            3 if self.numbers.chance(30) => self.reference(""),
            _ => "@input.list".into(),
        };
        let mut each = map([("ref", list.into())]);
        if self.numbers.chance(60) {
            each.insert("concurrency".into(), (1 + self.numbers.below(4) as u64).into());
        }
        Value::Map(each)
    }

    /// Returns a reference to a step or to the input.
    fn reference(&mut self, path: &str) -> String {
        let names = if self.is_careless { &self.named } else { &self.ended };
        if self.is_careless && self.numbers.chance(5) {
            return format!("@nobody{path}");
        }
        match names.len() {
            0 => format!("@input{path}"),
            length => format!("@{}{path}", names[self.numbers.below(length)]),
        }
    }

    fn anything(&mut self) -> String {
        match self.numbers.below(12) {
            0 => "@input.list[1]".into(),
            1 => "@ctx.now".into(),
            2 => "@vars.on".into(),
            3 if self.items > 0 => "@item".into(),
            4 if self.loops > 0 => "@index".into(),
            5 if self.numbers.chance(30) => self.reference(".ok"),
            6 if self.numbers.chance(30) => self.reference(".list"),
            7 if self.numbers.chance(15) => self.reference(".nowhere"),
            _ => self.reference(""),
        }
    }

    fn text(&mut self) -> Value {
        format!("about {} and so on", self.anything()).into()
    }

    fn data(&mut self, depth: usize) -> Value {
        match self.numbers.below(if depth == 0 { 4 } else { 7 }) {
            0 => (self.numbers.below(9) as u64).into(),
            1 | 2 => self.anything().into(),
            3 => self.text(),
            4 => vec![self.data(depth - 1), self.data(depth - 1)].into(),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        Value::Map(map([("a", self.data(depth.min(1))), ("b", self.data(0))]))
    }

    fn condition(&mut self, depth: usize) -> Value {
        let key = *self.numbers.pick(&["all", "any"]);
        match self.numbers.below(if depth == 0 { 6 } else { 8 }) {
            0 => self.numbers.chance(70).into(),
            1 => Value::Map(map([("variable", "on".into())])),
            2 => Value::Map(map([("ref", "@input.list".into())])),
            3..=5 => {
                let about = self.anything();
                self.about(&about)
            }
            6 => Value::Map(map([("not", self.condition(depth - 1))])),
            _ => Value::Map(map([(key, vec![self.condition(depth - 1), self.condition(depth - 1)].into())])),
        }
    }

    /// Returns a condition about a reference.
    fn about(&mut self, reference: &str) -> Value {
        let mut about = map([("ref", reference.into())]);
        match self.numbers.below(6) {
            0 => drop(about.insert("eq".into(), self.numbers.chance(50).into())),
            1 => drop(about.insert("exists".into(), self.numbers.chance(50).into())),
            2 => drop(about.insert("gt".into(), (self.numbers.below(4) as u64).into())),
            3 => drop(about.insert("neq".into(), Value::Null)),
            _ => {}
        }
        Value::Map(about)
    }
}

const SOURCE: &str = "export default function (input) { return input }";

/// The keys that a step with an `action` does not have.
const STEP_KEYS: [&str; 28] = [
    "tool",
    "arguments",
    "command",
    "env",
    "url",
    "goal",
    "content",
    "code",
    "input",
    "workflow",
    "wait",
    "condition",
    "then",
    "else",
    "steps",
    "forEach",
    "while",
    "until",
    "maxRounds",
    "items",
    "onTimeout",
    "approvers",
    "count",
    "durationMs",
    "signal",
    "timeoutMs",
    "keyPer",
    "transform",
];

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for f64 {
    fn into_value(self) -> Value {
        mainspring_kernel::value::Number::double(self).map_or(Value::Null, Value::Number)
    }
}
