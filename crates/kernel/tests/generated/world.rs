//! The simulated environment of one execution. It completes attempts, decides gates, sends signals, advances time and
//! cancels at random, and checks the invariants after each input.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_kernel::{
    decide::{Action, OutgoingMessage, Turn, child_key, decide_with},
    effect::Outcome,
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    frame::Frame,
    hash::Hash,
    input::{Input, Lineage, Parent, Pinned, Policy, Queue, Start, Timer},
    instance::{Instance, Scope},
    journal::{Fold, verify},
    key::ExecutionKey,
    limits::FINALLY_STEPS_MAX,
    plan::{Decision, Order, Plan, Work},
    record::{Ending, Record},
    state::{ExecutionStatus, State, Status},
    stored_frame::{Head, StoredFrame},
    value::{Map, Value},
};

use super::{halted::Halted, numbers::Numbers};

pub(crate) const KEY: ExecutionKey = ExecutionKey([7; 16]);
const SEAL: [u8; 32] = [9; 32];
const BEGAN_MS: u64 = 1_767_225_600_000;

/// The maximum number of inputs of an execution. Small definitions end earlier.
const INPUTS_MAX: usize = 3_000;

/// The description of a violated invariant.
pub(crate) type Broken = String;

macro_rules! must {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}

/// An open attempt.
#[derive(Debug, Clone)]
struct Out {
    attempt: u32,
    is_stopping: bool,
    child: Option<ExecutionKey>,
}

/// An execution and its environment.
#[derive(Debug)]
pub(crate) struct World {
    pub numbers: Numbers,
    pub plan: Arc<Plan>,
    pub state: State,
    /// The journal; `fold` is its fold.
    pub frames: Vec<StoredFrame>,
    fold: Fold,
    out: BTreeMap<Instance, Out>,
    /// The last attempt of each instance that was started, and the intent of its work.
    went_out: BTreeMap<Instance, (u32, Hash)>,
    /// The keys of started child executions.
    children: BTreeSet<ExecutionKey>,
    past: Vec<Input>,
    signals: u64,
    letters_home: u32,
    /// The number of notices to the parent: the execution waits for people only, or no longer does.
    notices: u32,
    halted: Halted,
    has_parent: bool,
    pub now: u64,
    /// The number of records of each kind, to check the coverage of the cases.
    pub seen: BTreeMap<String, u64>,
    /// The percentage of successful results.
    luck: usize,
    /// The percentage of unexpected inputs: cancels, repetitions, invalid ones.
    pub noise: usize,
}

impl World {
    pub(crate) fn new(plan: Plan, mut numbers: Numbers) -> Self {
        let plan = Arc::new(plan);
        let luck = *numbers.pick(&[50, 80, 95, 99]);
        Self {
            numbers,
            luck,
            state: State::new(KEY, plan.clone()),
            fold: Fold::new(KEY, plan.clone()),
            plan,
            frames: Vec::new(),
            out: BTreeMap::new(),
            went_out: BTreeMap::new(),
            children: BTreeSet::new(),
            past: Vec::new(),
            signals: 0,
            letters_home: 0,
            notices: 0,
            halted: Halted::default(),
            has_parent: false,
            now: BEGAN_MS,
            seen: BTreeMap::new(),
            noise: 8,
        }
    }

    /// Runs the execution to its end.
    pub(crate) fn run(&mut self) -> Result<(), Broken> {
        let start = self.start();
        self.take_in(start)?;
        while self.state.end.ended_at.is_none() {
            must!(self.past.len() < INPUTS_MAX, "it does not end: {INPUTS_MAX} inputs");
            let input = if self.numbers.chance(self.noise) { self.nonsense() } else { self.sense()? };
            self.take_in(input)?;
        }
        self.check_end()
    }

    pub(crate) fn start(&mut self) -> Input {
        let asked = self.plan.constraints;
        let pinned = |name: &str| Pinned { name: name.into(), workflow_hash: Hash([1; 32]), plan_hash: Hash([2; 32]) };
        self.has_parent = self.numbers.chance(20);
        let parent = Parent { execution: ExecutionKey([3; 16]), instance: Instance::of_step(0), attempt: 1 };
        let lineage = Lineage {
            parent: self.has_parent.then_some(parent),
            depth: u32::from(self.has_parent),
            workflows: vec![pinned("child")],
            executions: None,
            budget: None,
        };
        let numbers: Vec<Value> = (1..4u64).map(Value::from).collect();
        let list: Vec<Value> = (0..self.numbers.below(4) as u64)
            .map(|n| Value::map([("n", n.into()), ("list", numbers.clone().into())]))
            .collect();
        Input::Start(Box::new(Start {
            execution_id: "generated".into(),
            workflow_hash: self.plan.workflow_hash,
            plan_hash: Hash::of(&self.plan.encode()),
            input: Value::map([("list", list.into()), ("none", Value::List(Vec::new()))]),
            variables: Value::Map(Map::from([("on".into(), self.numbers.chance(50).into())])),
            trigger: Value::Null,
            policy: Policy {
                max_steps: asked.max_steps.unwrap_or(200),
                max_parallel: asked.max_parallel.unwrap_or(4),
                timeout_ms: asked.timeout_ms,
                max_output_bytes: asked.max_output_bytes,
            },
            attempt: 1,
            by: "ann".into(),
            workspace: None,
            lineage: Some(lineage),
            queue: self.numbers.chance(15).then(|| *self.numbers.pick(&[Queue::User, Queue::Workflow])),
        }))
    }

    /// Returns an input that advances the execution. An error means that the execution hangs.
    fn sense(&mut self) -> Result<Input, Broken> {
        if self.state.journal.is_split {
            return Ok(Input::Continue);
        }
        if self.state.queue.is_some() {
            self.now += [0, 1, 60_000][self.numbers.below(3)];
            return Ok(Input::Admit);
        }
        let gates: Vec<(Instance, u32)> =
            self.state.open_gates().map(|(instance, gate)| (instance.clone(), gate.number)).collect();
        let timer = self.state.next_timer().cloned();
        let signal = self.awaited_signal();
        // The weights favor results over timeouts.
        let ways = [
            12 * usize::from(!self.out.is_empty()),
            2 * usize::from(timer.is_some()),
            2 * gates.len().min(2),
            3 * usize::from(signal.is_some()),
        ];
        let all: usize = ways.iter().sum();
        must!(all > 0, "it hangs: no attempt runs, no timer is due, no gate is open\n{}", self.picture());
        let mut chosen = self.numbers.below(all);
        for (way, weight) in ways.into_iter().enumerate() {
            if chosen >= weight {
                chosen -= weight;
                continue;
            }
            match way {
                0 => return Ok(self.receipt()),
                1 => {
                    let (at, timer) = timer.unwrap_or((0, Timer::Deadline));
                    let late = if self.numbers.chance(10) { self.numbers.below(5000) as u64 } else { 0 };
                    self.now = self.now.max(at) + late;
                    return Ok(Input::Timer(timer));
                }
                2 => {
                    let (instance, gate) = self.numbers.pick(&gates).clone();
                    return Ok(self.decision(instance, gate));
                }
                _ => {}
            }
        }
        Ok(self.signal(signal.unwrap_or_default()))
    }

    fn awaited_signal(&self) -> Option<String> {
        let awaited = |instance: &Instance| match &self.plan.step(instance.step).work {
            Work::Signal { name } if self.state.step_status(instance) == Status::Waiting => Some(name.clone()),
            _ => None,
        };
        self.state.open.waits.iter().find_map(awaited)
    }

    fn receipt(&mut self) -> Input {
        let at = self.numbers.below(self.out.len());
        let (instance, out) =
            self.out.iter().nth(at).map(|(instance, out)| (instance.clone(), out.clone())).expect("out");
        self.now += [0, 1, 20, 3000][self.numbers.below(4)];
        let outcome = self.outcome(out.is_stopping);
        Input::Receipt { instance, attempt: out.attempt, outcome }
    }

    fn outcome(&mut self, is_stopping: bool) -> Outcome {
        let rest = 100 - self.luck;
        let [done, failed, interrupted] =
            if is_stopping { [20, 40, 50] } else { [self.luck, self.luck + rest * 7 / 10, self.luck + rest * 9 / 10] };
        match self.numbers.below(100) {
            roll if roll < done => Outcome::Done(self.value()),
            roll if roll < failed => Outcome::Failed(self.failure()),
            roll if roll < interrupted => Outcome::Interrupted,
            _ => Outcome::Stopped(self.value()),
        }
    }

    fn failure(&mut self) -> Failure {
        let class = *self.numbers.pick(&Class::ALL);
        let code = *self.numbers.pick(&["c1", "c1:2", "c3"]);
        let details = match self.numbers.chance(10) {
            true => Value::map([("retryAfterMs", 2500u64.into())]),
            false => Value::Null,
        };
        Failure::new(class, code, "no").with_details(details)
    }

    fn value(&mut self) -> Value {
        let list: Vec<Value> = (0..self.numbers.below(3) as u64).map(Value::from).collect();
        match self.numbers.below(8) {
            0 => Value::Null,
            1 => list.into(),
            2 => false.into(),
            _ => Value::map([("ok", self.numbers.chance(60).into()), ("list", list.into())]),
        }
    }

    fn decision(&mut self, instance: Instance, gate: u32) -> Input {
        let decision = if self.numbers.chance(75) { Decision::Approve } else { Decision::Deny };
        let by = *self.numbers.pick(&["ann", "bob", "eve"]);
        Input::Decide { instance, gate, decision, by: by.into(), reason: Value::Null }
    }

    fn signal(&mut self, name: String) -> Input {
        self.signals += 1;
        Input::Signal { id: format!("signal {}", self.signals), name, payload: self.value() }
    }

    /// Returns an input that is repeated, late, early or unexpected, or a cancel, or an early signal.
    fn nonsense(&mut self) -> Input {
        let step = self.numbers.below(self.plan.steps.len()) as u32;
        let rounds = (0..self.plan.loop_depth(step)).map(|_| self.numbers.below(2) as u32).collect();
        let instance = Instance { step, rounds };
        match self.numbers.below(14) {
            13 => Input::SkipCleanup { by: "ann".into() },
            12 => Input::Admit,
            0 => Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() },
            1 => Input::Continue,
            2 => self.signal("go".into()),
            3 => Input::Receipt { instance, attempt: 1 + self.numbers.below(3) as u32, outcome: Outcome::Interrupted },
            4 => self.decision(instance, 1),
            5 => Input::Timer(Timer::Retry(instance, 2)),
            6 => Input::Timer(Timer::Sleep(instance)),
            7 => Input::Timer(Timer::Gate(instance, 1)),
            8 => Input::Timer(Timer::Deadline),
            9 => Input::Timer(Timer::Attempt(instance, 1)),
            _ => self.past[self.numbers.below(self.past.len())].clone(),
        }
    }

    /// Processes an input and checks all invariants after it.
    pub(crate) fn take_in(&mut self, input: Input) -> Result<(), Broken> {
        let is_ending = self.state.end.ending.is_some() && !self.state.is_cleaning_up();
        let turn = self.decide(&input)?;
        if turn.records.is_empty() {
            must!(turn == Turn::default(), "without records something is to be done: {turn:?}");
        } else {
            self.write(&input, &turn)?;
        }
        must!(self.fold.state == self.state, "folding gives another state\n{:#?}\n{:#?}", self.fold.state, self.state);
        self.check_records(&turn.records, is_ending)?;
        self.perform(&turn)?;
        self.check_bounds()?;
        if !self.state.journal.is_split {
            self.check_stopped()?;
        }
        self.past.push(input.clone());
        if !self.state.journal.is_split && self.numbers.chance(30) {
            self.check_repeat(&input)?;
        }
        if self.numbers.chance(3) {
            self.crash()?;
        }
        Ok(())
    }

    fn decide(&mut self, input: &Input) -> Result<Turn, Broken> {
        let (now, luck, mut numbers) = (self.now, self.luck, self.numbers.clone());
        let mut world = Numbers::of(self.numbers.next());
        let turn = decide_with(&mut self.state, input, now, |asked| {
            asked.iter().map(|evaluation| evaluated(evaluation, luck, &mut world)).collect()
        });
        numbers.next();
        self.numbers = numbers;
        turn.map_err(|illegal| format!("illegal: {} of {input:?}", illegal.message))
    }

    /// Stores the turn as a frame, reads the frame back and folds it.
    fn write(&mut self, input: &Input, turn: &Turn) -> Result<(), Broken> {
        let sequence = self.frames.len() as u64;
        let (results, records) = (turn.results.clone(), turn.records.clone());
        let frame =
            Frame { sequence, before: self.fold.head(), now: self.state.now, input: input.clone(), results, records };
        let (stored, _) = frame.store(&|place| [(sequence as u8) ^ (place as u8); 16]);
        let read = self.fold.push(&stored).map_err(|broken| broken.to_string())?;
        must!(read == frame, "a frame reads back as another one");
        self.frames.push(stored);
        Ok(())
    }

    fn check_records(&mut self, records: &[Record], was_ending: bool) -> Result<(), Broken> {
        let mut is_ending = was_ending;
        for record in records {
            let name = format!("{record:?}");
            let name = name.split([' ', '{', '(']).next().unwrap_or_default();
            *self.seen.entry(name.to_string()).or_default() += 1;
            let starts = matches!(
                record,
                Record::StepStarted { .. }
                    | Record::AttemptStarted { .. }
                    | Record::RoundStarted { .. }
                    | Record::BranchTaken { .. }
                    | Record::WaitStarted { .. }
                    | Record::GateOpened { .. }
            );
            must!(!is_ending || !starts, "it starts after the ending began: {record:?}");
            if let Some(instance) = record.instance().filter(|_| starts) {
                let cleans = matches!(record, Record::StepStarted { .. })
                    && self.plan.step(instance.step).block == 0
                    && self.halted.may_clean(&self.plan, instance.step);
                must!(
                    cleans || !self.halted.holds(&self.plan, instance),
                    "it starts where a failure has halted: {record:?}"
                );
            }
            if !is_ending {
                self.halted.follow(&self.plan, record);
            }
            match record {
                Record::EndingBegun { .. } | Record::FinallyEnded => is_ending = true,
                Record::FinallyHalted { .. } => is_ending |= self.state.end.ending.is_some(),
                Record::FinallyBegun { .. } => is_ending = false,
                _ => {}
            }
        }
        Ok(())
    }

    fn perform(&mut self, turn: &Turn) -> Result<(), Broken> {
        for action in &turn.actions {
            match action {
                Action::Perform { instance, attempt } => {
                    self.goes_out(instance, attempt.number, attempt.intent, None)?
                }
                Action::Lease { .. } => return Err("no plan here needs leases".into()),
                Action::Stop { instance, attempt } => {
                    let out = self.out.get_mut(instance).filter(|out| out.attempt == *attempt);
                    must!(out.is_some(), "a stop for what is not out: {instance:?}");
                    out.into_iter().for_each(|out| out.is_stopping = true);
                }
            }
        }
        turn.messages.iter().try_for_each(|letter| self.deliver(letter))?;
        let (open, state) = (&self.state.open.attempts, &self.state);
        self.out.retain(|instance, out| {
            open.contains(instance) && state.steps.get(instance).is_some_and(|step| step.attempt == out.attempt)
        });
        must!(open.iter().all(|instance| self.out.contains_key(instance)), "open and never handed out: {open:?}");
        Ok(())
    }

    fn goes_out(
        &mut self,
        instance: &Instance,
        attempt: u32,
        intent: Hash,
        child: Option<ExecutionKey>,
    ) -> Result<(), Broken> {
        let before = self.went_out.insert(instance.clone(), (attempt, intent));
        let (last, first_intent) = before.unwrap_or((0, intent));
        must!(attempt > last, "attempt {attempt} of {instance:?} goes out after attempt {last}");
        must!(intent == first_intent, "another attempt of {instance:?} is other work");
        let out = Out { attempt, is_stopping: false, child };
        self.out.insert(instance.clone(), out);
        Ok(())
    }

    fn deliver(&mut self, letter: &OutgoingMessage) -> Result<(), Broken> {
        match &letter.input {
            Input::Start(start) => {
                must!(self.children.insert(letter.to), "a child is started twice");
                let Some(parent) = start.lineage.as_ref().and_then(|lineage| lineage.parent.clone()) else {
                    return Ok(());
                };
                must!(parent.execution == KEY, "a child of another execution");
                let intent = self.state.steps.get(&parent.instance).and_then(|step| step.intent).unwrap_or_default();
                must!(
                    child_key(&self.state, &parent.instance, parent.attempt) == letter.to,
                    "a child under another key"
                );
                self.goes_out(&parent.instance, parent.attempt, intent, Some(letter.to))
            }
            Input::Cancel { .. } => {
                let out = self.out.values_mut().find(|out| out.child == Some(letter.to));
                must!(out.is_some(), "a cancel for a child that is not out");
                out.into_iter().for_each(|out| out.is_stopping = true);
                Ok(())
            }
            Input::Receipt { .. } => {
                self.letters_home += 1;
                Ok(())
            }
            Input::ChildWaits { count, .. } => {
                self.notices += 1;
                must!(*count == self.notices, "the parent is notified with count {count}, expected {}", self.notices);
                let waits = self.state.status() == ExecutionStatus::WaitingApproval;
                must!(waits == (count % 2 == 1), "the notice to the parent says that approvals are open: {}", !waits);
                Ok(())
            }
            other => Err(format!("a letter with {other:?}")),
        }
    }

    /// Checks the concurrency limits: `maxParallel` for parallel blocks and graphs, `concurrency` for loops, one step
    /// at a time for sequences.
    fn check_bounds(&self) -> Result<(), Broken> {
        let Some(start) = &self.state.start else { return Ok(()) };
        if self.state.queue.is_some() {
            must!(self.state.steps.is_empty() && self.out.is_empty(), "something of it begins in a queue");
            must!(self.state.open.timers.is_empty(), "its time runs in a queue");
        }
        let mut out: BTreeMap<Scope, u32> = BTreeMap::new();
        self.out.keys().for_each(|instance| *out.entry(instance.scope(&self.plan)).or_default() += 1);
        for (scope, count) in out {
            let most = match self.plan.block(scope.block).order {
                Order::Sequence => 1,
                Order::Parallel | Order::Edges(_) => start.policy.max_parallel,
            };
            must!(count <= most, "{count} attempts are out of block {scope:?}, and {most} may be");
        }
        for (instance, rounds) in &self.state.blocks.loops {
            let Work::Loop(of) = &self.plan.step(instance.step).work else { continue };
            let most = of.concurrency.min(start.policy.max_parallel);
            must!(rounds.open <= most, "{} rounds of {instance:?} are open, and {most} may be", rounds.open);
        }
        let of_finally = if self.plan.finally.is_some() { FINALLY_STEPS_MAX } else { 0 };
        let max_steps = start.policy.max_steps + of_finally;
        must!(self.state.counts.visits <= max_steps, "{} steps were begun", self.state.counts.visits);
        if let Some(max_calls) = self.plan.constraints.max_calls {
            let calls = self.state.counts.calls;
            must!(calls <= max_calls + of_finally, "{calls} calls were made, and {max_calls} may be");
        }
        Ok(())
    }

    /// Checks cancellation: open attempts if the execution is stopping, and waiting steps in halted blocks.
    fn check_stopped(&self) -> Result<(), Broken> {
        let stops = self.state.is_stopping();
        let runs_on = self.out.iter().find(|(_, out)| stops && !out.is_stopping);
        must!(runs_on.is_none(), "it was not asked to stop: {runs_on:?}");
        let waits = self.state.open.waits.iter().find(|instance| self.halted.holds(&self.plan, instance));
        must!(waits.is_none(), "it waits where a failure has halted: {waits:?}");
        must!(
            self.state.end.ending.is_none() || self.state.is_cleaning_up() || self.state.open.waits.is_empty(),
            "it waits in an execution that is ending"
        );
        Ok(())
    }

    /// Checks that an input has no effect if it is delivered a second time.
    fn check_repeat(&mut self, input: &Input) -> Result<(), Broken> {
        let mut again = self.state.clone();
        let turn = decide_with(&mut again, input, self.now, |_| Vec::new()).map_err(|illegal| illegal.message)?;
        must!(turn == Turn::default(), "repeated, an input does something: {input:?}: {turn:?}");
        must!(again == self.state, "repeated, an input changes the state: {input:?}");
        Ok(())
    }

    /// Simulates a crash: rebuilds the state from the stored frames.
    fn crash(&mut self) -> Result<(), Broken> {
        let mut fold = Fold::new(KEY, self.plan.clone());
        for stored in &self.frames {
            fold.push(stored).map_err(|broken| broken.to_string())?;
        }
        self.state = fold.state.clone();
        Ok(())
    }

    pub(crate) fn check_end(&mut self) -> Result<(), Broken> {
        let state = &self.state;
        must!(self.out.is_empty(), "ended while something is out: {:?}", self.out);
        must!(state.open.timers.is_empty() && state.open.waits.is_empty(), "ended while something is waited for");
        must!(state.blocks.loops.is_empty(), "ended with loops open: {:?}", state.blocks.loops);
        let is_inner = |scope: &&Scope| self.plan.block(scope.block).owner.is_some();
        let open: Vec<_> = state.blocks.scopes.keys().filter(is_inner).collect();
        must!(open.is_empty(), "ended with blocks open: {open:?}");
        let unsettled: Vec<_> = state.steps.iter().filter(|(_, step)| !step.status.is_final()).collect();
        must!(unsettled.is_empty(), "ended with steps that have not: {unsettled:?}");
        let is_completed = state.status() == ExecutionStatus::Completed;
        must!(!is_completed || !self.halted.all(), "completed after an unhandled failure");
        must!(matches!(state.end.ending, Some(Ending::Completed { .. })) == is_completed, "an ending of another kind");
        must!(self.letters_home == u32::from(self.has_parent), "{} letters to the parent", self.letters_home);
        *self.seen.entry(state.status().name().to_string()).or_default() += 1;
        for input in self.past.clone() {
            self.check_repeat(&input)?;
        }
        let (sequence, hash) = (self.frames.len() as u64 - 1, self.fold.head());
        let head = Head::sealed(&SEAL, KEY, sequence, hash);
        let verified =
            verify(KEY, self.plan.clone(), &self.frames, &head, &SEAL).map_err(|broken| broken.to_string())?;
        must!(verified.decided_again == self.frames.len() as u64, "not every frame was decided again");
        Ok(())
    }

    /// Returns an outermost step that is still pending, if the execution completed and nothing in it ends an execution
    /// early.
    pub(crate) fn left_out(&self) -> Option<String> {
        let is_completed = self.state.status() == ExecutionStatus::Completed;
        let pending = |step: &&u32| self.state.step_status(&Instance::of_step(**step)) == Status::Pending;
        let first = self.plan.block(0).steps.iter().find(pending)?;
        is_completed.then(|| format!("completed without step `{}`", self.plan.id(*first)))
    }

    /// Returns a description of the state for failure messages.
    fn picture(&self) -> String {
        let line = |(instance, step): (&Instance, &mainspring_kernel::state::StepState)| {
            format!("  {}: {}\n", instance.name(&self.plan), step.status.name())
        };
        let steps: String = self.state.steps.iter().map(line).collect();
        format!(
            "{steps}  ending {:?}\n  scopes {:#?}\n  loops {:#?}",
            self.state.end.ending, self.state.blocks.scopes, self.state.blocks.loops
        )
    }

    /// Returns the inputs so far for failure messages.
    pub(crate) fn story(&self) -> String {
        self.past.iter().map(|input| format!("  {input:?}\n")).collect()
    }
}

/// Returns a random result of an evaluation. Any result is valid; the journal stores it.
fn evaluated(evaluation: &Evaluation, luck: usize, numbers: &mut Numbers) -> Evaluated {
    let fails = !numbers.chance(luck);
    let failure = || Failure::new(Class::Failed, "c1", "no");
    let passing = Failure::new(Class::Transient, "c1", "not now");
    Evaluated::of(match evaluation {
        _ if fails && numbers.chance(50) => Err(passing),
        _ if fails => Err(failure()),
        Evaluation::Check(check) => Ok(check.value.clone()),
        Evaluation::Function(function) if numbers.chance(40) => Ok(function.input.clone()),
        Evaluation::Function(_) => {
            Ok(Value::map([("ok", numbers.chance(50).into()), ("list", vec![Value::Null].into())]))
        }
    })
}
