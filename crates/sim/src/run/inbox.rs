//! The inbox of a run: which entry is due, and which gate a decision is for.

use std::collections::{BTreeSet, VecDeque};

use mainspring_kernel::{
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    plan::{Plan, Work},
    record::Record,
    value::Value,
};

use crate::{
    fixture::{Fixture, START_MS, instance},
    journal_mirror::JournalMirror,
    near::meant,
    scenario::{At, Entry, EntryAction, Reached, duration_text},
    world::World,
};

use super::Run;

/// The entries and their conditions.
#[derive(Debug)]
pub(super) struct Inbox {
    entries: Vec<(Entry, Waiting)>,
    /// Entries whose condition was met in the last turn, in the order of the inbox.
    due: VecDeque<usize>,
    /// The gate that was opened or decided last.
    last_gate: Option<Gate>,
    /// Decisions that found no gate.
    gateless: BTreeSet<usize>,
}

/// A gate in the execution tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gate {
    execution: ExecutionKey,
    instance: Instance,
    number: u32,
}

/// The condition of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waiting {
    /// A time, and its position in the order of events.
    Time(u64, u64),
    /// A state of a step instance: of the execution itself if it has such a step, else of one that it started.
    Step(Reached, String),
    /// None: the entry is due, because of a step of this execution or because of the time.
    Nothing(Option<ExecutionKey>),
}

impl Inbox {
    pub(super) fn new(fixture: &Fixture, world: &mut World) -> Result<Self, String> {
        let entries = fixture.inbox.iter().enumerate().map(|(place, entry)| {
            let waiting = match &entry.at {
                At::Time(after_ms) => Waiting::Time(START_MS.saturating_add(*after_ms), world.next_order()),
                At::Step(reached, step) if is_known(fixture, step) => Waiting::Step(*reached, step.clone()),
                At::Step(_, step) => {
                    return Err(format!(
                        "inbox[{place}].at: the workflow has no step `{step}`{}",
                        meant(&fixture.plan, step)
                    ));
                }
            };
            Ok((entry.clone(), waiting))
        });
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
            due: VecDeque::new(),
            last_gate: None,
            gateless: BTreeSet::new(),
        })
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

    /// Checks a frame that has become durable, of the execution itself or of one that it started.
    pub(super) fn watch(&mut self, root: &Plan, execution: ExecutionKey, member: &JournalMirror, place: usize) {
        let state = member.state();
        // A name that exists in the root workflow refers to its step.
        let wanted = |name: &str| {
            let is_roots = state.lineage.depth > 0 && instance(root, name).is_some();
            if is_roots { None } else { instance(&state.plan, name) }
        };
        for record in &member.frames[place].records {
            for (place, (_, waiting)) in self.entries.iter_mut().enumerate() {
                if matches!(waiting, Waiting::Step(reached, name) if reaches(record, *reached, wanted(name).as_ref())) {
                    *waiting = Waiting::Nothing(Some(execution));
                    self.due.push_back(place);
                }
            }
            if let Some(instance) = record.instance()
                && let Some(gate) = state.steps.get(instance).and_then(|step| step.gate.as_ref())
            {
                self.last_gate = Some(Gate { execution, instance: instance.clone(), number: gate.number });
            }
        }
        self.due.make_contiguous().sort_unstable();
    }

    /// Takes an entry that is due, and the execution whose step has met its condition.
    fn take(&mut self, place: usize) -> (Entry, Option<ExecutionKey>) {
        self.due.retain(|due| *due != place);
        let (entry, waiting) = &mut self.entries[place];
        let execution = if let Waiting::Nothing(execution) = waiting { *execution } else { None };
        *waiting = Waiting::Nothing(None);
        (entry.clone(), execution)
    }

    /// Lists entries that had no effect: a case that passes without them checks less than it appears to.
    pub(super) fn missed(&self) -> Vec<(usize, String)> {
        let never =
            self.entries.iter().enumerate().filter_map(|(place, (entry, waiting))| match (waiting, &entry.at) {
                (Waiting::Step(..), At::Step(reached, step)) => {
                    Some((place, format!("inbox[{place}] was never taken in: `{step}` was never {}", reached.name())))
                }
                (Waiting::Time(..), At::Time(after_ms)) => {
                    Some((place, format!("inbox[{place}] was never taken in: {} never came", duration_text(*after_ms))))
                }
                _ => None,
            });
        let gateless = self.gateless.iter().map(|place| {
            let help = "write `at: {waiting: STEP}` with the step that waits";
            (*place, format!("inbox[{place}] decided nothing: no gate was open; {help}"))
        });
        never.chain(gateless).collect()
    }
}

/// Returns whether the workflow, or one that it may start, has such a step.
fn is_known(fixture: &Fixture, step: &str) -> bool {
    fixture.plans().any(|plan| instance(plan, step).is_some())
}

/// Returns whether a record puts a step instance into a state.
fn reaches(record: &Record, reached: Reached, wanted: Option<&Instance>) -> bool {
    let brings = match (reached, record) {
        (Reached::Started, Record::StepStarted { .. }) => true,
        (Reached::Completed, Record::StepCompleted { .. }) => true,
        (Reached::Waiting, Record::WaitStarted { .. } | Record::GateOpened { .. }) => true,
        (Reached::Waiting, Record::AttemptFailed { retry_at, .. }) => retry_at.is_some(),
        (Reached::Waiting, Record::ChildWaits { count, .. }) => count % 2 == 1,
        _ => false,
    };
    brings && wanted.is_some() && record.instance() == wanted
}

impl Run<'_> {
    pub(super) fn take_entry(&mut self, place: usize) -> Result<(), String> {
        let (entry, execution) = self.inbox.take(place);
        match entry.action {
            EntryAction::MonotonicMs => self.fire_timers(),
            EntryAction::Crash => {
                self.world.kill();
                self.recover(self.now)
            }
            EntryAction::Cancel { reason, by } => {
                // As the command line and a server do.
                let key = self.fixture.key;
                let is_second = self.tree.member(key).is_some_and(|member| member.state().end.is_cancel_requested);
                let input = if is_second { Input::SkipCleanup { by } } else { Input::Cancel { reason, by } };
                self.deliver(key, input)
            }
            EntryAction::Signal { name, payload } => {
                let to = execution.filter(|execution| self.takes(*execution, &name));
                let to = to.unwrap_or_else(|| self.taker(&name));
                self.deliver(to, Input::Signal { id: format!("inbox-{place}"), name, payload })
            }
            EntryAction::Message { conversation, content, interrupt, by } => {
                let input = Input::Message { id: format!("inbox-{place}"), conversation, content, interrupt, by };
                self.deliver(execution.unwrap_or(self.fixture.key), input)
            }
            EntryAction::Migrate { plan } => {
                let (version, by, reason) = (None, "owner".into(), "a test".into());
                self.deliver(self.fixture.key, Input::Migrate { plan, version, by, reason })
            }
            EntryAction::Decide { decision, by } => match self.gate(&entry.at, execution) {
                Some(Gate { execution, instance, number: gate }) => {
                    self.deliver(execution, Input::Decide { instance, gate, decision, by, reason: Value::Null })
                }
                // No gate was ever open: the decision has no target, and only the time advances.
                None => {
                    self.inbox.gateless.insert(place);
                    self.fire_timers()
                }
            },
        }
    }

    /// Returns the execution that gets a signal: one with a step that waits for it, the root first.
    fn taker(&self, name: &str) -> ExecutionKey {
        let root = self.fixture.key;
        let others = self.tree.members().map(|(execution, _)| *execution);
        std::iter::once(root).chain(others).find(|execution| self.takes(*execution, name)).unwrap_or(root)
    }

    fn takes(&self, execution: ExecutionKey, name: &str) -> bool {
        let plan = self.tree.member(execution).map(|member| &member.state().plan);
        let is_it = |work: &Work| matches!(work, Work::Signal { name: waits_for } if waits_for == name);
        plan.is_some_and(|plan| plan.steps.iter().any(|step| is_it(&step.work)))
    }

    /// Returns the gate for a decision: that of the step that its entry names, else the open one, in the root execution
    /// first, else the one that was open last.
    fn gate(&self, at: &At, execution: Option<ExecutionKey>) -> Option<Gate> {
        let gate_of = |execution: ExecutionKey, instance: &Instance| {
            let number = self.tree.member(execution)?.state().steps.get(instance)?.gate.as_ref()?.number;
            Some(Gate { execution, instance: instance.clone(), number })
        };
        let named = match (at, execution) {
            (At::Step(_, step), Some(execution)) => {
                let member = self.tree.member(execution);
                member.and_then(|member| gate_of(execution, &instance(&member.state().plan, step)?))
            }
            _ => None,
        };
        let first_open = |execution: ExecutionKey| {
            let (instance, _) = self.tree.member(execution)?.state().open_gates().next()?;
            gate_of(execution, instance)
        };
        let open = || {
            let others = self.tree.members().map(|(execution, _)| *execution);
            std::iter::once(self.fixture.key).chain(others).find_map(first_open)
        };
        named.or_else(open).or_else(|| self.inbox.last_gate.clone())
    }
}
