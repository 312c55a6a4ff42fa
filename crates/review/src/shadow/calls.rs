//! Calls of an execution, read from the state after a turn and the records of the turn.

use std::collections::BTreeMap;

use mainspring_kernel::{
    decide::open_attempt, instance::Instance, plan::Work, record::Record, state::State, value::Value,
};

/// The effect of a step that starts another workflow.
pub(super) const SUBWORKFLOW: &str = "subworkflow";

/// An attempt that a turn has started.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// The step instance.
    pub instance: Instance,
    /// Public form of the step instance, such as `fetch[3].parse`.
    pub name: String,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// Kind of effect.
    pub effect: String,
    /// The resolved parameters.
    pub params: Value,
    /// True if the step waits for the answer.
    pub waits: bool,
}

/// Returns the attempts that a turn has started.
pub(super) fn calls(state: &State, records: &[Record]) -> Vec<Call> {
    // The state has no parameters of a step that has ended within the turn.
    let mut inputs: BTreeMap<&Instance, &Value> = BTreeMap::new();
    let mut calls = Vec::new();
    for record in records {
        match record {
            Record::StepStarted { instance, input, .. } => {
                inputs.insert(instance, input.value());
            }
            Record::AttemptStarted { instance, attempt, .. } => {
                let input = inputs.get(instance).map(|input| (*input).clone());
                calls.extend(call(state, instance, *attempt, input));
            }
            _ => {}
        }
    }
    calls
}

fn call(state: &State, instance: &Instance, attempt: u32, input: Option<Value>) -> Option<Call> {
    let name = instance.name(&state.plan);
    let of_state = || state.steps.get(instance).map(|step| step.input.clone());
    if state.conversation_of_message(instance.step).is_some() {
        // The kernel keeps the message, and a replay decides it again.
        return None;
    }
    let (effect, params, waits) = match &state.plan.step(instance.step).work {
        Work::Subworkflow { waits, .. } => (SUBWORKFLOW.to_string(), input.or_else(of_state)?, *waits),
        Work::Effect { effect, .. } => match open_attempt(state, instance).filter(|open| open.number == attempt) {
            Some(open) => (open.effect, open.params, true),
            None => (effect.clone(), input.or_else(of_state)?, true),
        },
        _ => return None,
    };
    Some(Call { instance: instance.clone(), name, attempt, effect, params, waits })
}
