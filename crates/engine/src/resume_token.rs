//! Resume tokens: a token opens one gate, once, for the content that was shown.

use mainspring_kernel::{
    cbor::Writer,
    hash::Hash,
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    state::{GateState, State},
    value::Value,
};

/// The prefix of every token.
pub const TOKEN_PREFIX: &str = "wrf_rt_";

/// The parts of an execution that its tokens depend on.
#[derive(Debug, Clone, Copy)]
pub struct Opened<'a> {
    /// The 128-bit key, which is part of the hash.
    pub execution: ExecutionKey,
    /// The number of the dispatch, from 1.
    pub attempt: u32,
    /// The plan of the execution.
    pub plan: &'a Plan,
}

/// The token of a gate: a keyed hash of the execution, the step instance, the definition, the prompt and the items. It
/// cannot be computed or guessed without the key, and no two gates share one. It is derived and not stored.
pub fn token(key: &[u8; 32], state: &State, instance: &Instance, gate: &GateState) -> String {
    let attempt = state.start.as_ref().map_or(0, |start| start.attempt);
    let opened = Opened { execution: state.key, attempt, plan: &state.plan };
    token_of(key, &opened, instance, gate.number, (&gate.prompt, &gate.items))
}

/// The same for a new gate, with its prompt and items.
pub fn token_of(
    key: &[u8; 32],
    opened: &Opened<'_>,
    instance: &Instance,
    number: u32,
    (prompt, items): (&str, &Value),
) -> String {
    let mut writer = Writer::default();
    writer.array(7);
    writer.text("mainspring token 1");
    writer.byte_string(&opened.execution.0);
    writer.text(&instance.name(opened.plan));
    writer.unsigned(u64::from(number));
    writer.unsigned(u64::from(opened.attempt));
    writer.byte_string(&opened.plan.workflow_hash.0);
    writer.array(2);
    writer.text(prompt);
    writer.value(items);
    format!("{TOKEN_PREFIX}{}", Hash::keyed(key, &[&writer.bytes]).hex())
}

/// Finds the name and the number of the closed gate of a token. Gates of ended rounds are not known any more.
pub(crate) fn closed_gate_of(key: &[u8; 32], state: &State, given: &str) -> Option<(String, u32)> {
    let given = Hash::of(given.as_bytes());
    let closed = state.steps.iter().filter_map(|(instance, step)| Some((instance, step.gate.as_ref()?)));
    let mut closed = closed.filter(|(_, gate)| !gate.is_open);
    let fits = |(instance, gate): &(&Instance, &GateState)| {
        Hash::of(token(key, state, instance, gate).as_bytes()).equals_in_constant_time(&given)
    };
    closed.find(fits).map(|(instance, gate)| (instance.name(&state.plan), gate.number))
}

/// Finds the open gate of a token. Every open gate is compared in constant time.
pub fn gate_of<'a>(key: &[u8; 32], state: &'a State, given: &str) -> Option<(&'a Instance, &'a GateState)> {
    let given = Hash::of(given.as_bytes());
    let fits = |instance: &Instance, gate: &GateState| {
        Hash::of(token(key, state, instance, gate).as_bytes()).equals_in_constant_time(&given)
    };
    let mut found = None;
    for (instance, gate) in state.open_gates() {
        if fits(instance, gate) {
            found = Some((instance, gate));
        }
    }
    found
}
