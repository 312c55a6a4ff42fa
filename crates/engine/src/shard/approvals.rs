//! The open gates of an execution, and the gates that the store lists for it.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{instance::Instance, record::Record, state::State};
use mainspring_store::GateRow;

use crate::derived_columns::gate_row;

/// The gates of an execution in memory. A step instance has at most one.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// Gates that wait for a decision, by step instance.
    open: BTreeMap<Instance, GateRow>,
    /// Gates that the store lists as of the last part, by step and attempt number.
    listed: BTreeMap<Instance, (String, u32)>,
    /// Instances whose gates changed since the last part, so that a part costs as much as has changed.
    touched: BTreeSet<Instance>,
}

impl Gates {
    /// The gates of a loaded execution. The store lists all of them.
    pub(super) fn of(state: &State) -> Self {
        let mut gates = Self::default();
        for (instance, gate) in state.open_gates() {
            let row = gate_row(state, instance, gate, state.now);
            gates.listed.insert(instance.clone(), (row.step.clone(), row.gate));
            gates.open.insert(instance.clone(), row);
        }
        gates
    }

    /// Follows the records of a turn.
    pub(super) fn follow(&mut self, state: &State, records: &[Record]) {
        for instance in records.iter().filter_map(Record::instance) {
            let waits = state.open.waits.contains(instance);
            let gate = state.steps.get(instance).filter(|_| waits).and_then(|step| step.gate.as_ref());
            let found = gate.filter(|gate| gate.is_open);
            let known = self.open.get(instance).map(|row| row.gate);
            if known == found.map(|gate| gate.number) {
                continue;
            }
            self.touched.insert(instance.clone());
            match found {
                Some(gate) => self.open.insert(instance.clone(), gate_row(state, instance, gate, state.now)),
                None => self.open.remove(instance),
            };
        }
    }

    /// Returns the gates that closed and opened since the last part.
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
