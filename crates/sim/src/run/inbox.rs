//! The inbox of a run: which entry has its time, and where a decision goes.

use std::collections::VecDeque;

use mainspring_kernel::{
    frame::Frame, input::Input, instance::Instance, plan::Plan, record::Record, state::State, value::Value,
};

use crate::{
    scenario::{At, Entry, Reached, What, duration_text},
    setup::{START_MS, Setup, instance},
    world::World,
};

use super::Run;

/// The entries and their times.
#[derive(Debug)]
pub(super) struct Inbox {
    entries: Vec<(Entry, Waiting)>,
    /// Entries whose turn was the last one, in the order of the inbox.
    due: VecDeque<usize>,
    /// The gate that was the last to open or to be decided.
    last_gate: Option<(Instance, u32)>,
}

/// What an entry waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waiting {
    /// A time, and its place in the order of everything.
    Time(u64, u64),
    /// A step instance in a state.
    Step(Reached, Instance),
    /// Nothing: it is due or was taken.
    Nothing,
}

impl Inbox {
    pub(super) fn new(setup: &Setup, world: &mut World) -> Result<Self, String> {
        let entries = setup.inbox.iter().enumerate().map(|(place, entry)| {
            let waiting = match &entry.at {
                At::Time(after_ms) => Waiting::Time(START_MS.saturating_add(*after_ms), world.next_order()),
                At::Step(reached, step) => match instance(&setup.plan, step) {
                    Some(instance) => Waiting::Step(*reached, instance),
                    None => return Err(format!("inbox[{place}].at: the workflow has no step `{step}`")),
                },
            };
            Ok((entry.clone(), waiting))
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()?, due: VecDeque::new(), last_gate: None })
    }

    pub(super) fn due(&self) -> Option<usize> {
        self.due.front().copied()
    }

    pub(super) fn first_by_time(&self) -> Option<(u64, u64, usize)> {
        let timed = self.entries.iter().enumerate().filter_map(|(place, (_, waiting))| match waiting {
            Waiting::Time(at, order) => Some((*at, *order, place)),
            _ => None,
        });
        timed.min()
    }

    /// Looks at a frame that has become durable.
    pub(super) fn watch(&mut self, frame: &Frame, state: &State) {
        for record in &frame.records {
            for (place, (_, waiting)) in self.entries.iter_mut().enumerate() {
                if matches!(waiting, Waiting::Step(reached, instance) if reaches(record, *reached, instance)) {
                    *waiting = Waiting::Nothing;
                    self.due.push_back(place);
                }
            }
            let instance = record.instance();
            let gate = instance.and_then(|instance| Some((instance, state.steps.get(instance)?.gate.as_ref()?)));
            if let Some((instance, gate)) = gate {
                self.last_gate = Some((instance.clone(), gate.number));
            }
        }
        self.due.make_contiguous().sort_unstable();
    }

    fn take(&mut self, place: usize) -> Entry {
        self.due.retain(|due| *due != place);
        let (entry, waiting) = &mut self.entries[place];
        *waiting = Waiting::Nothing;
        entry.clone()
    }

    /// Entries that never had their time, for whoever wonders why a case fails.
    pub(super) fn notes(&self) -> Vec<String> {
        let never =
            self.entries.iter().enumerate().filter_map(|(place, (entry, waiting))| match (waiting, &entry.at) {
                (Waiting::Step(..), At::Step(reached, step)) => {
                    Some(format!("inbox[{place}] was never taken in: `{step}` was never {}", reached.name()))
                }
                (Waiting::Time(..), At::Time(after_ms)) => {
                    Some(format!("inbox[{place}] was never taken in: {} never came", duration_text(*after_ms)))
                }
                _ => None,
            });
        never.collect()
    }

    /// The gate that a decision goes to: that of the step that its entry names, else the one that waits, else the one
    /// that waited last.
    fn gate(&self, at: &At, state: &State, plan: &Plan) -> Option<(Instance, u32)> {
        let named = match at {
            At::Step(_, step) => instance(plan, step),
            At::Time(_) => None,
        };
        let named = named.and_then(|instance| {
            let number = state.steps.get(&instance)?.gate.as_ref()?.number;
            Some((instance, number))
        });
        let open = || state.open_gates().next().map(|(instance, gate)| (instance.clone(), gate.number));
        named.or_else(open).or_else(|| self.last_gate.clone())
    }
}

/// Whether a record brings a step instance into a state.
fn reaches(record: &Record, reached: Reached, wanted: &Instance) -> bool {
    let brings = match (reached, record) {
        (Reached::Started, Record::StepStarted { .. }) => true,
        (Reached::Completed, Record::StepCompleted { .. }) => true,
        (Reached::Waiting, Record::WaitStarted { .. } | Record::GateOpened { .. }) => true,
        (Reached::Waiting, Record::AttemptFailed { retry_at, .. }) => retry_at.is_some(),
        _ => false,
    };
    brings && record.instance() == Some(wanted)
}

impl Run<'_> {
    pub(super) fn take_entry(&mut self, place: usize) -> Result<(), String> {
        let entry = self.inbox.take(place);
        match entry.what {
            What::Tick => self.fire_timers(),
            What::Crash => {
                self.world.kill();
                self.recover(self.now)
            }
            What::Cancel { reason, by } => self.deliver(self.setup.key, Input::Cancel { reason, by }),
            What::Signal { name, payload } => {
                self.deliver(self.setup.key, Input::Signal { id: format!("inbox-{place}"), name, payload })
            }
            What::Decide { decision, by } => {
                match self.inbox.gate(&entry.at, self.family.root().state(), &self.setup.plan) {
                    Some((instance, gate)) => self
                        .deliver(self.setup.key, Input::Decide { instance, gate, decision, by, reason: Value::Null }),
                    // Nobody has ever been asked: the decision reaches nothing, and only its time has come.
                    None => self.fire_timers(),
                }
            }
        }
    }
}
