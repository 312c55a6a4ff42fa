//! Converts a definition from one notation to another. The result compiles to the same plan.
//!
//! The notations have the same steps. They differ in some keys (`steps` or `nodes`, `id` or `name`, `type` or
//! `action`), which are renamed here, and in the defaults for order, retries and output. A default that the target
//! notation does not share is written out, and a value that equals the target's default is left out. If the target
//! notation cannot express something, the conversion fails and reports all such places at once. The result is compiled
//! and compared with the original plan before it is returned.

use alloc::{
    collections::BTreeSet,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    compile,
    notation::{Notation, OrderWord},
};
use crate::{
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path},
    fix::Fix,
    json,
    plan::{Output, Plan},
    value::{Map, Value},
};
use outputs::Unsayable;

mod outputs;
mod policies;
mod steps;
pub mod text;

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The definition in the target notation.
    pub definition: Value,
    /// Renamed steps as pairs of old and new name. Only steps without an id of their own are renamed.
    pub renamed: Vec<(String, String)>,
}

/// Converts a definition. If the target notation cannot express a part, returns a diagnostic for every such part. If
/// the definition does not compile, returns the diagnostics of the compiler. Deterministic: the result depends on the
/// arguments alone.
pub fn convert(document: &Document, to: Notation) -> Result<Converted, Vec<Diagnostic>> {
    let plan = compile(document)?.plan;
    let from = Notation::of(&document.value);
    let Some(root) = document.value.as_map().filter(|_| from != to) else {
        return Ok(Converted { definition: document.value.clone(), renamed: Vec::new() });
    };
    let ids = plan.steps.iter().map(|step| step.id.clone()).collect();
    let mut converter = Converter { from, to, document, plan: &plan, ids, found: Vec::new() };
    let definition = Value::Map(converter.root(root));
    let Converter { ids, found, .. } = converter;
    if !found.is_empty() {
        return Err(found);
    }
    check(&plan, &ids, &definition)?;
    let renamed = plan.steps.iter().zip(ids).filter(|(step, id)| step.id != *id);
    let renamed: BTreeSet<_> = renamed.map(|(step, id)| (step.id.clone(), id)).collect();
    Ok(Converted { definition, renamed: renamed.into_iter().collect() })
}

/// Returns the normal form of a plan. Default outputs become explicit, listed retry delays become a formula if one
/// gives the same delays, and delays are dropped if there is only one attempt. Two plans with the same normal form
/// behave alike.
pub fn normal(plan: &Plan) -> Plan {
    let mut normal = plan.clone();
    normal.workflow_hash = crate::hash::Hash::default();
    normal.steps.iter_mut().for_each(|step| step.retry = policies::normal(&step.retry));
    normal.output = match &plan.output {
        Output::Variables => {
            outputs::of_variables(plan).map_or(Output::Variables, |gives| Output::Given(gives.template(plan)))
        }
        Output::Ends => outputs::of_ends(plan).map_or(Output::Ends, |gives| Output::Given(gives.template(plan))),
        given @ Output::Given(_) => given.clone(),
    };
    normal
}

/// Compares the plan of the result with the original plan. A bug in the conversion must not change the meaning of a
/// definition silently.
fn check(plan: &Plan, ids: &[String], definition: &Value) -> Result<(), Vec<Diagnostic>> {
    let mut expected = plan.clone();
    expected.steps.iter_mut().zip(ids).for_each(|(step, id)| step.id.clone_from(id));
    let compiled = compile(&Document::placeless(definition.clone()));
    let says = match &compiled {
        Ok(compiled) if normal(&compiled.plan) == normal(&expected) => return Ok(()),
        Ok(_) => "another plan comes of it".to_string(),
        Err(found) => format!("it does not compile: {}", found.first().map_or("", |first| first.message.as_str())),
    };
    let (severity, code, path) = (Severity::Error, diagnostic::NOT_IN_BUILD, Path::root());
    let message = format!("the definition was not converted rightly: {says}");
    let help = "this is a mistake of the conversion; report it with the definition".to_string();
    Err([Diagnostic { severity, code, path, place: None, message, help, fix: Fix::default() }].into())
}

struct Converter<'a> {
    from: Notation,
    to: Notation,
    document: &'a Document,
    plan: &'a Plan,
    /// The names of the steps by number. Holds the old name until the step is converted.
    ids: Vec<String>,
    found: Vec<Diagnostic>,
}

impl Converter<'_> {
    fn refuse(&mut self, code: &'static str, path: &Path, message: String, help: &str) {
        let (severity, place, path) = (Severity::Error, self.document.place(path), path.clone());
        let (help, fix) = (help.to_string(), Fix::default());
        self.found.push(Diagnostic { severity, code, path, place, message, help, fix });
    }

    fn root(&mut self, root: &Map) -> Map {
        let path = Path::root().key(self.from.list_key());
        self.rename(root);
        let steps = root.get(self.from.list_key()).and_then(Value::as_list).unwrap_or_default();
        let steps = self.steps(steps, 0, &path);
        if self.to == Notation::Dataflow && !steps.iter().any(|step| step.get("action").is_some()) {
            let message = "a dataflow is recognized by the `action` of an outer step, and none of these is a tool, a shell \
                           step, code or a return";
            let help = "write `order: dataflow` where it is, if the order is meant";
            self.refuse(diagnostic::MISSING_KEY, &path, message.into(), help);
        }
        let mut converted = Map::new();
        for (key, value) in root {
            match key.as_str() {
                "steps" | "nodes" | "order" | "output" | "edges" | "finally" => {}
                "workflowId" => drop(converted.insert("name".into(), value.clone())),
                "planVersion" => {
                    let version = value.as_text().map_or_else(|| json::compact(value), String::from);
                    converted.insert("version".into(), version.into());
                }
                _ => drop(converted.insert(key.clone(), value.clone())),
            }
        }
        converted.insert(self.to.list_key().into(), steps.into());
        if let (Some(Value::List(steps)), Some(finally)) = (root.get("finally"), self.plan.finally) {
            let steps = self.steps(steps, finally.block, &Path::root().key("finally"));
            converted.insert("finally".into(), steps.into());
        }
        let order = root.get("order").and_then(Value::as_text).unwrap_or(order_of(self.from));
        if order != order_of(self.to) {
            converted.insert("order".into(), order.into());
        }
        if let Some(Value::List(edges)) = root.get("edges") {
            let edges: Vec<Value> = edges.iter().map(|edge| self.edge(edge)).collect();
            converted.insert("edges".into(), edges.into());
        }
        if let Some(output) = self.output(root) {
            converted.insert("output".into(), output);
        }
        converted
    }

    fn edge(&self, edge: &Value) -> Value {
        let ends = edge.as_map().into_iter().flatten().map(|(key, value)| match key.as_str() {
            "from" | "to" => (key.clone(), self.renamed(value)),
            _ => (key.clone(), value.clone()),
        });
        Value::Map(ends.collect())
    }

    /// Returns the new name of a step that edges and `needs` refer to.
    fn renamed(&self, id: &Value) -> Value {
        let number = id.as_text().and_then(|id| self.plan.number_of(id));
        number.map_or_else(|| id.clone(), |number| self.ids[number as usize].as_str().into())
    }

    /// Names the steps that have no id. A step inside another step keeps its path as its name. An outermost step needs
    /// an explicit name; the chosen one occurs nowhere in the definition, or existing text would become a reference to
    /// it.
    fn rename(&mut self, root: &Map) {
        let needs_name = self.to != Notation::Sequence;
        let (old, new) = (format!("{}[", self.from.id_path()), format!("{}[", self.to.id_path()));
        let outer = self.plan.block(0).steps.clone();
        let text = json::compact(&Value::Map(root.clone()));
        for number in 0..self.plan.steps.len() as u32 {
            let step = self.plan.step(number);
            if !step.id.starts_with(&old) {
                continue;
            }
            let is_of_outer = self.plan.is_body_of_each(number) && outer.binary_search(&(number - 1)).is_ok();
            self.ids[number as usize] = match outer.binary_search(&number) {
                Ok(place) if needs_name => self.invented(place, &text),
                // The body of an outermost `forEach` step has the name of that step.
                Err(_) if needs_name && is_of_outer => self.ids[number as usize - 1].clone(),
                _ => step.id.replacen(&old, &new, 1),
            };
        }
    }

    fn invented(&self, place: usize, text: &str) -> String {
        let mut name = format!("step_{}", place + 1);
        while self.plan.number_of(&name).is_some() || text.contains(&format!("@{name}")) {
            name.push('_');
        }
        name
    }

    /// Returns the value to write under `output`, or `None` if the default of the target notation is the same.
    fn output(&mut self, root: &Map) -> Option<Value> {
        let mut plan = self.plan.clone();
        plan.steps.iter_mut().zip(&self.ids).for_each(|(step, id)| step.id.clone_from(id));
        let by_itself = match self.to {
            Notation::Sequence => outputs::of_variables(&plan),
            Notation::Dataflow | Notation::Graph => outputs::of_ends(&plan),
        };
        let meant = match &self.plan.output {
            // The output of the end steps is the default of a dataflow and of a graph.
            Output::Ends if self.to != Notation::Sequence => return None,
            Output::Ends => outputs::of_ends(&plan),
            Output::Variables => outputs::of_variables(&plan),
            Output::Given(given) => {
                let is_by_itself = by_itself.is_ok_and(|gives| gives.template(&plan) == *given);
                return root.get("output").filter(|_| !is_by_itself).cloned();
            }
        };
        match meant {
            Ok(meant) => by_itself.ok().as_ref().is_none_or(|gives| *gives != meant).then(|| meant.written(&plan)),
            Err(places) => {
                let list = Path::root().key(self.from.list_key());
                for Unsayable { step, message, help } in places {
                    let path = self.path_of(step, &list);
                    self.refuse(diagnostic::WRONG_VALUE, &path, message, help);
                }
                None
            }
        }
    }

    /// Returns the path of a step in the source definition.
    fn path_of(&self, step: u32, list: &Path) -> Path {
        let block = self.plan.block(self.plan.step(step).block);
        let at = block.steps.iter().position(|number| *number == step).unwrap_or_default();
        let Some(owner) = block.owner else {
            let is_cleanup = self.plan.is_finally(self.plan.step(step).block);
            return if is_cleanup { Path::root().key("finally").index(at) } else { list.index(at) };
        };
        let path = self.path_of(owner, list);
        let branches = self.plan.step(owner).work.branches();
        match branches.iter().find(|(_, inner)| *inner == self.plan.step(step).block) {
            Some((key, _)) if !self.plan.is_body_of_each(step) => path.key(key).index(at),
            _ => path,
        }
    }
}

/// Returns the `order` that a notation has by default.
fn order_of(notation: Notation) -> &'static str {
    let order = notation.default_order();
    OrderWord::ALL.iter().find(|(_, other)| *other == order).map_or("", |(word, _)| word)
}
