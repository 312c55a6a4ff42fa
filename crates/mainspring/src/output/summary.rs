//! The summary of an execution that is printed last: status, output or failure, open approvals.

use mainspring_engine::{
    clock::now_ms,
    envelope,
    execution_tree::{ExecutionTree, OpenGate},
};
use mainspring_kernel::{json::pretty, state::State, value::Value};

use crate::{
    output::terminal::{bold, dim, duration, print_out, status},
    output::text::{lines_shown, paragraph, shown},
};

/// The summary of an execution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    /// The execution id.
    pub(crate) id: String,
    pub(crate) status: String,
    /// True if a failure was tolerated.
    pub(crate) with_failures: bool,
    /// The duration in milliseconds, until now if it has not ended.
    pub(crate) took_ms: u64,
    /// The output; null if there is none.
    pub(crate) output: Value,
    /// The failure `{code, message, stepId}`; null if there is none.
    pub(crate) error: Value,
    pub(crate) gates: Vec<Waiting>,
}

/// An open approval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    /// The path of the step, as `--step` accepts it.
    pub(crate) path: String,
    pub(crate) prompt: String,
    pub(crate) items: Value,
}

impl Summary {
    /// The summary of an execution in a local store.
    pub(crate) fn of(state: &State, tree: &ExecutionTree) -> Self {
        let start = state.start.as_ref();
        let until = state.end.ended_at.unwrap_or_else(now_ms);
        let waiting = |open: &OpenGate| Waiting {
            path: open.path.clone(),
            prompt: open.gate.prompt.clone(),
            items: open.gate.items.clone(),
        };
        Self {
            id: start.map(|start| start.execution_id.clone()).unwrap_or_default(),
            status: state.status().name().into(),
            with_failures: state.end.with_failures,
            took_ms: start.map_or(0, |start| until.saturating_sub(start.at)),
            output: state.output().cloned().unwrap_or_default(),
            error: envelope::error(state),
            gates: tree.gates.iter().map(waiting).collect(),
        }
    }

    pub(crate) fn show(&self) {
        let Self { id, output, error, gates, .. } = self;
        let note = if self.with_failures { " with tolerated failures" } else { "" };
        let took = dim(&format!("after {}", duration(self.took_ms)));
        print_out!("\n{} {}{note} {took}", bold(&shown(id)), status(&shown(&self.status)));
        if *output != Value::Null && output.as_map().is_none_or(|map| !map.is_empty()) {
            print_out!("{}", lines_shown(&pretty(output)));
        }
        if let Some(message) = error.get("message").and_then(Value::as_text) {
            let code = error.get("code").and_then(Value::as_text).unwrap_or_default();
            let step = error.get("stepId").and_then(Value::as_text);
            let place = step.map(|step| format!(" in `{}`", shown(step))).unwrap_or_default();
            // The message of a cancel ends with its reason, which is the code.
            let code = if message.ends_with(&format!(": {code}")) { String::new() } else { format!("{code}{place}: ") };
            print_out!("  {}{}", shown(&code), paragraph(message));
        }
        for Waiting { path, prompt, items } in gates {
            print_out!("  waits at `{}`: {}", shown(path), paragraph(prompt));
            show_items(items);
            let at = if gates.len() > 1 { format!("{id} --step {path}") } else { id.clone() };
            print_out!("  {}", dim(&shown(&format!("mainspring approve {at}    or    mainspring deny {at}"))));
        }
    }
}

/// Prints the items to approve exactly as the decision is bound to them.
pub(crate) fn show_items(items: &Value) {
    let is_empty = matches!(items, Value::Null) || items.as_list().is_some_and(<[Value]>::is_empty);
    if !is_empty {
        for line in pretty(items).lines().map(shown) {
            print_out!("    {line}");
        }
    }
}
