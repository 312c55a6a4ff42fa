//! Resume tokens: what opens one gate, once, for what was shown.

use mainspring_kernel::{
    cbor::Writer,
    hash::Hash,
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    state::{GateState, State},
    value::Value,
};

/// What every token begins with.
pub const TOKEN_PREFIX: &str = "wrf_rt_";

/// The execution of a gate, as far as its token is of it.
#[derive(Debug, Clone, Copy)]
pub struct Opened<'a> {
    /// The execution.
    pub execution: ExecutionKey,
    /// How often it was dispatched.
    pub attempt: u32,
    /// The plan that it runs.
    pub plan: &'a Plan,
}

/// The token of a gate: a keyed hash of the execution, the place, the definition and what is shown. Whoever does not
/// have the key can neither make nor guess it, and no other gate has the same. It is kept nowhere: the key makes it
/// again.
pub fn token(key: &[u8; 32], state: &State, instance: &Instance, gate: &GateState) -> String {
    let attempt = state.start.as_ref().map_or(0, |start| start.attempt);
    let opened = Opened { execution: state.key, attempt, plan: &state.plan };
    token_of(key, &opened, instance, gate.number, (&gate.prompt, &gate.items))
}

/// The same of a gate that was just opened, with what is shown there: prompt and items.
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

/// The open gate that a token opens; every open gate is compared, each in constant time.
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
