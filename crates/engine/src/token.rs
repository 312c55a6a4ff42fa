//! Resume tokens: what opens one gate, once, for what was shown.

use mainspring_kernel::{
    cbor::Writer,
    hash::Hash,
    instance::Instance,
    state::{GateState, State},
};

/// What every token begins with.
pub const TOKEN_PREFIX: &str = "wrf_rt_";

/// The token of a gate: a keyed hash of the execution, the place, the definition and what is shown. Whoever does not
/// have the key can neither make nor guess it, and no other gate has the same. It is kept nowhere: the key makes it
/// again.
pub fn token(key: &[u8; 32], state: &State, instance: &Instance, gate: &GateState) -> String {
    let mut writer = Writer::default();
    writer.array(7);
    writer.text("mainspring token 1");
    writer.byte_string(&state.key.0);
    writer.text(&instance.name(&state.plan));
    writer.unsigned(u64::from(gate.number));
    writer.unsigned(u64::from(state.start.as_ref().map_or(0, |start| start.attempt)));
    writer.byte_string(&state.plan.workflow_hash.0);
    writer.array(2);
    writer.text(&gate.prompt);
    writer.value(&gate.items);
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
