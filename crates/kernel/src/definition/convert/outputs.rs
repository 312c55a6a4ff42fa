//! The default output of a definition without `output`, expressed as an explicit `output`.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    plan::{OnError, Order, Plan, Work},
    reference::{Reference, Root, is_name},
    template::Template,
    value::{Map, Value},
};

/// The output of an execution, by the steps that supply its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Gives {
    /// The output is null.
    Nothing,
    /// The output is that of one step.
    One(u32),
    /// The output is an object: each field is the output of one step.
    Several(BTreeMap<String, u32>),
}

/// Reason why the output cannot be expressed as an `output`, with the step that prevents it.
#[derive(Debug, PartialEq)]
pub(super) struct Unsayable {
    pub step: u32,
    pub message: String,
    pub help: &'static str,
}

impl Gives {
    /// Returns the output as a template of a plan.
    pub(super) fn template(&self, plan: &Plan) -> Template {
        let whole = |step: u32| {
            let text = plan.id(step).to_string();
            // A `forEach` step is two plan steps of the same name; the name refers to the first one, the loop.
            let root = Root::Step(plan.number_of(&text).unwrap_or(step));
            Template::Whole(Reference { root, path: Vec::new(), text })
        };
        let template = match self {
            Self::Nothing => Template::Literal(Value::Null),
            Self::One(step) => whole(*step),
            Self::Several(steps) => {
                Template::Map(steps.iter().map(|(name, step)| (name.clone(), whole(*step))).collect())
            }
        };
        template.normalized()
    }

    /// Returns the output as the value that a definition has under `output`.
    pub(super) fn written(&self, plan: &Plan) -> Value {
        let whole = |step: u32| Value::from(format!("@{}", plan.id(step)));
        match self {
            Self::Nothing => Value::Null,
            Self::One(step) => whole(*step),
            Self::Several(steps) => {
                steps.iter().map(|(name, step)| (name.clone(), whole(*step))).collect::<Map>().into()
            }
        }
    }
}

/// Returns the default output of a dataflow or a graph: the outputs of all steps that no other step waits for.
pub(super) fn of_ends(plan: &Plan) -> Result<Gives, Vec<Unsayable>> {
    let ends = plan.ends();
    let nameless: Vec<_> =
        ends.iter().filter(|step| !is_name(plan.id(**step))).map(|step| nameless(plan, *step)).collect();
    match ends.as_slice() {
        _ if !nameless.is_empty() => Err(nameless),
        [] => Ok(Gives::Nothing),
        [one] => Ok(Gives::One(*one)),
        several => Ok(Gives::Several(several.iter().map(|step| (plan.id(*step).to_string(), *step)).collect())),
    }
}

/// Returns the default output of a sequence: its output variables. A variable that may stay unwritten is an error: the
/// default output would omit it, but an `output` would make it null.
pub(super) fn of_variables(plan: &Plan) -> Result<Gives, Vec<Unsayable>> {
    let mut writers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        if let Some(name) = &step.output_variable {
            writers.entry(name).or_default().push(number as u32);
        }
    }
    let (mut fields, mut unsayable) = (BTreeMap::new(), Vec::new());
    for (name, steps) in writers {
        // Parallel branches may not write the same variable, so the last writer in the text is the last one to run.
        let last = *steps.last().unwrap_or(&0);
        let is_ordered = steps.len() < 2 || !matches!(plan.block(0).order, Order::Edges(_));
        let unordered = || (!is_ordered).then(|| "several steps write it, in no certain order".to_string());
        if let Some(why) = why_uncertain(plan, last).or_else(unordered) {
            let id = plan.id(last);
            let message =
                format!("`{name}` is in the output only if {id} has completed, and an `output` cannot say so: {why}");
            unsayable.push(Unsayable {
                step: last,
                message,
                help: "write `output` at the root: what has not run is null there",
            });
        } else if !is_name(plan.id(last)) {
            unsayable.push(nameless(plan, last));
        } else {
            fields.insert(name.to_string(), last);
        }
    }
    if unsayable.is_empty() { Ok(Gives::Several(fields)) } else { Err(unsayable) }
}

fn nameless(plan: &Plan, step: u32) -> Unsayable {
    let message = format!("the output has to name {}, which has no name that can be written", plan.id(step));
    Unsayable { step, message, help: "give it an id" }
}

/// Returns why an execution can succeed without completing a step, or `None` if it cannot.
fn why_uncertain(plan: &Plan, number: u32) -> Option<String> {
    let (step, id) = (plan.step(number), plan.id(number));
    if plan.policy.fail_open {
        return Some("`failOpen` lets failures through".into());
    }
    if step.when.is_some() {
        return Some(format!("`when` of {id} may skip it"));
    }
    if step.on_error == OnError::Continue {
        return Some(format!("a failure of {id} is tolerated"));
    }
    let Some(owner) = plan.parent(number) else {
        return match &plan.block(0).order {
            Order::Edges(graph) if graph.skips() => Some("edges decide whether it runs".into()),
            _ => None,
        };
    };
    match &plan.step(owner).work {
        Work::Parallel { .. } => why_uncertain(plan, owner),
        Work::Conditional { .. } => Some(format!("{} may take the other branch", plan.id(owner))),
        _ => Some(format!("it runs again and again in {}", plan.id(owner))),
    }
}
