//! The properties of a whole plan: input, limits, order, output.

use mainspring_kernel::{
    json,
    plan::{FailurePolicy, Order, Output, Plan, Variable},
    value::Value,
};

use crate::text::shown;

use super::{
    details::{constraints, counted},
    edges::at_a_time,
    phrases::{data, fields},
};

/// The properties, each as pieces that may share a line. They are escaped.
pub(super) fn preamble(plan: &Plan) -> Vec<Vec<String>> {
    let mut bounds = constraints(&plan.constraints);
    bounds.extend(policy(plan.policy));
    let all = [bounds, input(plan), variables(plan), order(plan)];
    all.into_iter().filter(|pieces| !pieces.is_empty()).collect()
}

fn policy(policy: FailurePolicy) -> Vec<String> {
    let FailurePolicy { fail_open, max_node_failures, max_retries_exhausted } = policy;
    let mut pieces = Vec::new();
    pieces.extend(fail_open.then(|| "failures are tolerated".to_string()));
    pieces.extend(max_node_failures.map(|steps| format!("fails at {}", counted(steps as usize, "failed step"))));
    pieces.extend(
        max_retries_exhausted.map(|steps| format!("fails at {} out of attempts", counted(steps as usize, "step"))),
    );
    pieces
}

/// The properties of the input, if its schema is that of an object; otherwise that a schema exists.
fn input(plan: &Plan) -> Vec<String> {
    let Some(schema) = &plan.input_schema else { return Vec::new() };
    let required = schema.get("required").and_then(Value::as_list).unwrap_or_default();
    let property = |(name, property): (&String, &Value)| {
        let kind =
            property.get("type").and_then(Value::as_text).map_or_else(String::new, |kind| format!(" {}", shown(kind)));
        let is_required = required.iter().any(|other| other.as_text() == Some(name));
        format!("{}{kind}{}", shown(name), if is_required { "" } else { " (optional)" })
    };
    let properties = schema.get("properties").and_then(Value::as_map).into_iter().flatten().map(property);
    let properties: Vec<String> = properties.collect();
    let lead = "input is checked by a schema".to_string();
    [lead].into_iter().chain(properties).collect()
}

fn variables(plan: &Plan) -> Vec<String> {
    let default = |name: &str, value: &Value| format!("{} = {}", shown(name), shown(&json::compact(value)));
    let declared = |variable: &Variable| {
        let kind = variable.kind.name();
        match &variable.default {
            Some(value) => format!("{} ({kind})", default(&variable.name, value)),
            None if variable.is_required => format!("{} ({kind}, required)", shown(&variable.name)),
            None => format!("{} ({kind})", shown(&variable.name)),
        }
    };
    let pieces: Vec<String> = match &plan.variables {
        Some(variables) => variables.iter().map(declared).collect(),
        None => plan.default_context.iter().map(|(name, value)| default(name, value)).collect(),
    };
    match (&plan.variables, pieces.is_empty()) {
        (None, true) => Vec::new(),
        (Some(_), true) => vec!["takes no variables".into()],
        _ => ["variables".to_string()].into_iter().chain(pieces).collect(),
    }
}

fn order(plan: &Plan) -> Vec<String> {
    match plan.block(0).order {
        Order::Edges(_) => {
            let bound = plan.constraints.max_parallel.is_none().then(|| format!("{} at a time", at_a_time(plan)));
            bound.into_iter().chain(["one attempt unless said".into()]).collect()
        }
        Order::Sequence | Order::Parallel => Vec::new(),
    }
}

/// The output of an execution that ends without a `return`, unless it is the default.
pub(super) fn gives(plan: &Plan) -> Option<String> {
    match &plan.output {
        Output::Variables => {
            let has_some = plan.steps.iter().any(|step| step.output_variable.is_some());
            (has_some && matches!(plan.block(0).order, Order::Edges(_))).then(|| "gives its output variables".into())
        }
        Output::Given(template) => {
            let text = fields(template);
            Some(format!("gives {}", if text.is_empty() { data(template) } else { text }))
        }
        Output::Ends => {
            let ends: Vec<String> = plan.ends().into_iter().map(|step| shown(&plan.step(step).id)).collect();
            match ends.as_slice() {
                [] => None,
                [one] => Some(format!("gives the output of {one}")),
                several => Some(format!("gives the outputs of {}, by name", several.join(", "))),
            }
        }
    }
}
