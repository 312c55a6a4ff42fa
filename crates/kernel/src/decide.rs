//! Chooses what follows from an input, and never changes anything but by a record.
//!
//! A turn takes one input in: the records that it gives at once, then whatever follows from them until nothing more
//! does. What goes out to the world is chosen last, when everything that needs no world is settled: so a `return` that
//! is ready wins over its siblings, and the order of calls does not depend on the order of bookkeeping.

mod begin;
mod effects;
mod ending;
mod gates;
mod waits;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use crate::{
    apply::{Illegal, apply},
    effect::Attempt,
    failure::{Class, Failure},
    input::{Input, Start, Timer},
    instance::{Instance, Scope},
    limits::TURN_RECORDS_MAX,
    plan::{OnError, Order, Work},
    record::{Ending, Fault, Payload, Record},
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

/// The version of what this module decides. It is pinned at the start of an execution; what changes the records that
/// come of an input changes only behind a higher one.
pub const DECIDE_VERSION: u32 = 1;

/// What came of an input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// What has happened, in order. None for an input that is stale, repeated or late.
    pub records: Vec<Record>,
    /// What is to be done once the records are durable.
    pub actions: Vec<Action>,
}

/// Something to be done in the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Perform an attempt.
    Perform {
        /// Whose.
        instance: Instance,
        /// What.
        attempt: Attempt,
    },
    /// Ask an attempt that is out to stop.
    Stop {
        /// Whose.
        instance: Instance,
        /// Which.
        attempt: u32,
    },
}

/// Takes an input in: chooses the records and applies them to the state. An error means that what was chosen cannot
/// happen, which is a fault of ours: the state is then of no use any more and the execution is to be set aside.
pub fn decide(state: &mut State, input: &Input, now: u64) -> Result<Turn, Illegal> {
    let now = now.max(state.now);
    let (dirty, ready, waiting) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    let mut turn = Decider { state, now, turn: Turn::default(), dirty, ready, waiting };
    if turn.state.ended_at.is_some() || turn.state.start.is_none() != matches!(input, Input::Start(_)) {
        return Ok(turn.turn);
    }
    if turn.state.is_split {
        turn.dirty.extend(turn.state.scopes.keys().cloned());
    }
    turn.take_in(input)?;
    turn.follow()?;
    if turn.state.is_split && turn.turn.records.is_empty() {
        turn.record(Record::TurnJoined)?;
        turn.hold_or_set_deadline()?;
    }
    Ok(turn.turn)
}

/// The attempt that is out for an instance, as it was handed out: what a node that takes over needs to know.
pub fn open_attempt(state: &State, instance: &Instance) -> Option<Attempt> {
    let step = state.steps.get(instance)?;
    let start = state.start.as_ref()?;
    let Work::Effect { effect, .. } = &state.plan.step(instance.step).work else { return None };
    Some(Attempt {
        execution: state.key,
        execution_id: start.execution_id.clone(),
        step: instance.name(&state.plan),
        number: step.attempt,
        effect: effect.clone(),
        params: step.input.clone(),
        intent: step.intent?,
        handed_out_at: step.handed_out_at,
        workspace: start.workspace.clone(),
    })
}

struct Decider<'a> {
    state: &'a mut State,
    now: u64,
    turn: Turn,
    /// Blocks to look at.
    dirty: BTreeSet<Scope>,
    /// Effects whose turn has come, in the order of the plan.
    ready: BTreeSet<Instance>,
    /// Of each block with such effects: how many there are, and the place of the last.
    waiting: BTreeMap<Scope, (usize, u32)>,
}

impl Decider<'_> {
    fn take_in(&mut self, input: &Input) -> Result<(), Illegal> {
        match input {
            Input::Start(start) => self.start(start),
            Input::Receipt { instance, attempt, outcome } => self.receipt(instance, *attempt, outcome),
            Input::Timer(timer) => self.timer(timer),
            Input::Decide { instance, gate, decision, by, reason } => {
                self.decision(instance, *gate, *decision, by, reason)
            }
            Input::Signal { id, name, payload } => self.signal(id, name, payload),
            Input::Cancel { reason, by } => self.cancel(reason, by),
            Input::Continue => Ok(()),
        }
    }

    fn start(&mut self, start: &Start) -> Result<(), Illegal> {
        let mut context = Map::from([("trigger".into(), start.trigger.clone())]);
        if let Some(workspace) = &start.workspace {
            context.insert("workspace".into(), workspace.as_str().into());
        }
        self.record(Record::Started {
            execution_id: start.execution_id.clone(),
            workflow_hash: start.workflow_hash,
            plan_hash: start.plan_hash,
            decide_version: DECIDE_VERSION,
            policy: start.policy,
            attempt: start.attempt,
            by: start.by.clone(),
            input: start.input.clone().into(),
            variables: start.variables.clone().into(),
            context: Value::Map(context).into(),
            deadline: start.policy.timeout_ms.map(|timeout| self.now.saturating_add(timeout)),
        })
    }

    /// A timer counts only if the state has set it and its time has come: a repeated one finds nothing.
    fn timer(&mut self, timer: &Timer) -> Result<(), Illegal> {
        let is_due = self.state.timers.iter().take_while(|(at, _)| *at <= self.now).any(|(_, due)| due == timer);
        if !is_due {
            return Ok(());
        }
        match timer {
            Timer::Deadline => self.deadline_passed(),
            Timer::Attempt(instance, attempt) => self.attempt_timed_out(instance, *attempt),
            Timer::Retry(instance, attempt) => self.hand_out(instance, *attempt),
            Timer::Sleep(instance) => self.complete(instance, Value::Null),
            Timer::Gate(instance, gate) => self.gate_expired(instance, *gate),
        }
    }

    /// What follows until nothing more does.
    fn follow(&mut self) -> Result<(), Illegal> {
        while self.state.ended_at.is_none() {
            if self.turn.records.len() >= TURN_RECORDS_MAX {
                return self.record(Record::TurnSplit);
            }
            if self.state.ending.is_some() {
                if !self.wind_down()? {
                    break;
                }
            } else if let Some(scope) = self.dirty.pop_first() {
                self.consider(&scope)?;
            } else if let Some(instance) = self.ready.pop_first() {
                self.no_longer_waits(&instance);
                self.dispatch(&instance)?;
            } else {
                break;
            }
        }
        self.hold_or_set_deadline()
    }

    /// Looks at a block: begins what may begin, or closes it.
    fn consider(&mut self, scope: &Scope) -> Result<(), Illegal> {
        let Some(here) = self.state.scopes.get(scope) else { return Ok(()) };
        if self.is_halted(scope) {
            if self.call_off_waits(scope)? || self.state.scopes.get(scope).is_none_or(|here| here.open > 0) {
                return Ok(());
            }
            return self.close_halted(scope);
        }
        let waiting = self.ready_in(scope);
        if here.pending.is_empty() && here.open == 0 {
            return self.close(scope);
        }
        match self.state.plan.block(scope.block).order {
            Order::Sequence if here.open > 0 || waiting > 0 => Ok(()),
            Order::Sequence => {
                let first = here.pending.first().copied();
                first.map_or(Ok(()), |place| self.begin(scope, place))
            }
            Order::Parallel => self.begin_branches(scope, waiting),
        }
    }

    /// Begins branches as long as there is room. A `return` needs none: it ends everything.
    fn begin_branches(&mut self, scope: &Scope, waiting: usize) -> Result<(), Illegal> {
        let plan = self.state.plan.clone();
        let steps = &plan.block(scope.block).steps;
        let here = &self.state.scopes[scope];
        let is_return = |place: &&u32| matches!(plan.step(steps[**place as usize]).work, Work::Return { .. });
        // Places come up in order: what has come to the door stands before what has not.
        let from = self.waiting.get(scope).map_or(0, |(_, last)| last + 1);
        let room = (self.max_parallel() as usize).saturating_sub(here.open as usize + waiting);
        // Returns stand first, before anything else of the block has begun; later there are none left to find.
        let first = if here.open == 0 && waiting == 0 { here.pending.iter().find(is_return) } else { None };
        let next = first.or_else(|| if room == 0 { None } else { here.pending.range(from..).next() });
        let Some(place) = next.copied() else { return Ok(()) };
        self.begin(scope, place)?;
        // One at a time, so that each sees what the one before has changed.
        self.dirty.insert(scope.clone());
        Ok(())
    }

    /// Effects of a block whose turn has come and that are not out yet.
    fn ready_in(&self, scope: &Scope) -> usize {
        self.waiting.get(scope).map_or(0, |(count, _)| *count)
    }

    fn no_longer_waits(&mut self, instance: &Instance) {
        let scope = instance.scope(&self.state.plan);
        if let Some((count, _)) = self.waiting.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&scope);
            }
        }
    }

    /// Whether nothing new may start in a block: it, or one around it, is going to fail.
    fn is_halted(&self, scope: &Scope) -> bool {
        let mut scope = scope.clone();
        loop {
            if self.state.scopes.get(&scope).is_none_or(|here| here.is_doomed) {
                return true;
            }
            match scope.owner(&self.state.plan) {
                Some(owner) => scope = owner.scope(&self.state.plan),
                None => return false,
            }
        }
    }

    fn close(&mut self, scope: &Scope) -> Result<(), Illegal> {
        match scope.owner(&self.state.plan) {
            Some(owner) => {
                let output = self.output_of(scope);
                self.complete(&owner, output)
            }
            None => {
                let output = Value::Map(self.state.outputs.clone()).into();
                self.record(Record::EndingBegun { ending: Ending::Completed { output } })
            }
        }
    }

    /// A block in which something failed fails what contains it; one that only stands inside such a block is called off.
    fn close_halted(&mut self, scope: &Scope) -> Result<(), Illegal> {
        let failed = self.state.scopes.get(scope).and_then(|here| here.failed.clone());
        let owner = scope.owner(&self.state.plan);
        match (failed, owner) {
            (Some(failed), owner) => {
                let failure = self.state.steps.get(&failed).and_then(|step| step.failure.clone());
                let failure = failure
                    .unwrap_or_else(|| Failure::new(Class::Internal, "lost_failure", "a failure without a reason"));
                match owner {
                    Some(owner) => self.fail(&owner, failure),
                    None => {
                        let ending = Ending::Failed { fault: failure.into(), instance: Some(failed), stops: false };
                        self.record(Record::EndingBegun { ending })
                    }
                }
            }
            (None, Some(owner)) => self.call_off(&owner, "sibling_failed"),
            (None, None) => Ok(()),
        }
    }

    /// What a block gives: of branches an object by step, of a sequence the output of its last step.
    fn output_of(&self, scope: &Scope) -> Value {
        let block = self.state.plan.block(scope.block);
        let output = |step: &u32| {
            self.state.steps.get(&scope.instance(*step)).map(|step| step.output.clone()).unwrap_or_default()
        };
        match block.order {
            Order::Parallel => Value::map(block.steps.iter().map(|step| (self.state.plan.id(*step), output(step)))),
            Order::Sequence => block.steps.last().map(output).unwrap_or_default(),
        }
    }

    fn complete(&mut self, instance: &Instance, output: Value) -> Result<(), Illegal> {
        self.record(Record::StepCompleted { instance: instance.clone(), output: output.into() })
    }

    fn fail(&mut self, instance: &Instance, failure: Failure) -> Result<(), Illegal> {
        let let_through = self.state.plan.step(instance.step).on_error == OnError::Continue;
        self.record(Record::StepFailed { instance: instance.clone(), fault: failure.into(), let_through })
    }

    fn call_off(&mut self, instance: &Instance, reason: &str) -> Result<(), Illegal> {
        self.record(Record::StepCancelled { instance: instance.clone(), reason: reason.into() })
    }

    /// The only way in which anything changes.
    fn record(&mut self, record: Record) -> Result<(), Illegal> {
        apply(self.state, &record, self.now)?;
        match record.instance() {
            Some(instance) => {
                self.dirty.insert(instance.scope(&self.state.plan));
                if matches!(record, Record::StepFailed { let_through: false, .. }) {
                    self.look_outwards(instance);
                }
                let inner = self.state.plan.step(instance.step).work.branches();
                let inner = inner.into_iter().map(|(_, block)| Scope::inside(instance, block));
                self.dirty.extend(inner.filter(|scope| self.state.scopes.contains_key(scope)));
            }
            None if matches!(record, Record::Started { .. }) => {
                self.dirty.insert(Scope::root());
            }
            None => {}
        }
        self.turn.records.push(record);
        Ok(())
    }

    /// A failure halts the blocks around it as well.
    fn look_outwards(&mut self, instance: &Instance) {
        let mut scope = instance.scope(&self.state.plan);
        while let Some(owner) = scope.owner(&self.state.plan) {
            scope = owner.scope(&self.state.plan);
            self.dirty.insert(scope.clone());
        }
    }

    fn max_parallel(&self) -> u32 {
        self.state.start.as_ref().map_or(1, |start| start.policy.max_parallel.max(1))
    }

    fn status_of(&self, instance: &Instance) -> Status {
        self.state.steps.get(instance).map_or(Status::Pending, |step| step.status)
    }

    /// The execution's time stands still while only people are waited for.
    fn hold_or_set_deadline(&mut self) -> Result<(), Illegal> {
        if self.state.ended_at.is_some() {
            return Ok(());
        }
        let waits_for_people = self.state.status() == ExecutionStatus::WaitingApproval;
        match (waits_for_people, self.state.deadline, self.state.deadline_held) {
            (true, Some(at), _) => self.record(Record::DeadlineHeld { remaining_ms: at.saturating_sub(self.now) }),
            (false, None, Some(remaining)) => {
                self.record(Record::DeadlineSet { at: self.now.saturating_add(remaining) })
            }
            _ => Ok(()),
        }
    }
}

/// A failure as a record holds it.
fn fault(class: Class, code: &str, message: impl Into<alloc::string::String>) -> Fault {
    Failure::new(class, code, message).into()
}

/// Data without a person's reason in it.
fn no_reason() -> Payload {
    Payload::Known(Value::Null)
}

/// The instances of a set that lie inside a block.
fn inside<'a>(state: &State, instances: impl Iterator<Item = &'a Instance>, scope: &Scope) -> Vec<Instance> {
    let lies_inside = |instance: &&Instance| {
        state.plan.is_inside(state.plan.step(instance.step).block, scope.block)
            && instance.rounds.starts_with(&scope.rounds)
    };
    instances.filter(lies_inside).cloned().collect()
}
