//! Which gates of an execution wait for people, and which of them the store lists.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    input::ORGANIZATION_IN_TRIGGER,
    instance::Instance,
    record::Record,
    state::{GateState, State},
    value::Value,
};
use mainspring_store::GateRow;

/// The gates of an execution in memory. An instance has one at a time.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// Those that wait.
    open: BTreeMap<Instance, GateRow>,
    /// What the store lists, by step and number, as of the last part.
    listed: BTreeMap<Instance, (String, u32)>,
    /// Where the two may differ: a part costs what has happened since the last, and not what waits in all.
    touched: BTreeSet<Instance>,
}

impl Gates {
    /// Those of an execution that was read back: the store lists them.
    pub(super) fn of(state: &State) -> Self {
        let mut gates = Self::default();
        for (instance, gate) in state.open_gates() {
            let row = row(state, instance, gate, state.now);
            gates.listed.insert(instance.clone(), (row.step.clone(), row.gate));
            gates.open.insert(instance.clone(), row);
        }
        gates
    }

    /// A turn has made these records.
    pub(super) fn follow(&mut self, state: &State, records: &[Record]) {
        for instance in records.iter().filter_map(Record::instance) {
            let waits = state.waits.contains(instance);
            let gate = state.steps.get(instance).filter(|_| waits).and_then(|step| step.gate.as_ref());
            let found = gate.filter(|gate| gate.is_open);
            let known = self.open.get(instance).map(|row| row.gate);
            if known == found.map(|gate| gate.number) {
                continue;
            }
            self.touched.insert(instance.clone());
            match found {
                Some(gate) => self.open.insert(instance.clone(), row(state, instance, gate, state.now)),
                None => self.open.remove(instance),
            };
        }
    }

    /// What the next part tells of them: those that wait no more, and those that do now.
    pub(super) fn changes(&mut self) -> (Vec<(String, u32)>, Vec<GateRow>) {
        let (mut closed, mut opened) = (Vec::new(), Vec::new());
        for instance in std::mem::take(&mut self.touched) {
            let open = self.open.get(&instance);
            let name = open.map(|row| (row.step.clone(), row.gate));
            if self.listed.get(&instance) == name.as_ref() {
                continue;
            }
            opened.extend(open.cloned());
            closed.extend(match name {
                Some(name) => self.listed.insert(instance, name),
                None => self.listed.remove(&instance),
            });
        }
        (closed, opened)
    }
}

/// The rows of all gates that wait. When each was opened, a state does not say.
pub(crate) fn open_gates(state: &State) -> Vec<GateRow> {
    state.open_gates().map(|(instance, gate)| row(state, instance, gate, state.now)).collect()
}

fn row(state: &State, instance: &Instance, gate: &GateState, opened_at: u64) -> GateRow {
    let trigger = state.start.as_ref().map(|start| &start.trigger);
    let organization = trigger.and_then(|trigger| trigger.get(ORGANIZATION_IN_TRIGGER)).and_then(Value::as_text);
    GateRow {
        execution: state.key,
        step: instance.name(&state.plan),
        gate: gate.number,
        organization: organization.map(Into::into),
        opened_at,
        expires_at: gate.expires_at,
        on_timeout: gate.on_timeout.name().into(),
    }
}
