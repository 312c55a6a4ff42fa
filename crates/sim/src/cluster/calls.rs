//! Calls of executors, and the rules for them. No call starts before its attempt is durable, at a node that does not
//! own the execution, or twice. Every receipt comes from a call. No receipt is lost while its node is alive.

use std::collections::{BTreeMap, btree_map::Entry};

use mainspring_kernel::{
    decide::open_attempt,
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::memory::MemoryStore;
use mainspring_store::prelude::*;

use super::{
    Cluster, ClusterEvent,
    commit_checker::{CommitChecker, Receipt},
    faults::LEASE_MS,
    node::ProcessEvent,
    seed_budget::answer,
    subject::UsedOutcomes,
};

pub(super) type Name = (ExecutionKey, Instance, u32);

#[derive(Debug)]
struct Call {
    node: usize,
    incarnation: u32,
    /// The name of the node when the call started.
    name: String,
    is_asked_to_stop: bool,
    /// The node has lost the execution since, or may have.
    is_lost: bool,
    stage: Stage,
    /// The receipt has reached an inbox, so the end of its node does not lose it any more.
    is_passed_on: bool,
    /// The node has exhausted its retries to send the receipt to an inbox.
    is_let_go: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Out,
    Ended(Outcome),
    Killed,
}

/// Every call that was started.
pub(super) struct Calls {
    seed: u64,
    used_outcomes: UsedOutcomes,
    calls: BTreeMap<Name, Call>,
    out: usize,
}

impl Calls {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, used_outcomes: UsedOutcomes::default(), calls: BTreeMap::new(), out: 0 }
    }

    pub(super) fn begun(&self) -> u64 {
        self.calls.len() as u64
    }

    pub(super) fn out(&self) -> usize {
        self.out
    }

    /// Counts, by step, the calls that were repeated although an earlier call of the same instance had returned a
    /// result.
    pub(super) fn repeated(&self, commits: &CommitChecker) -> BTreeMap<String, u64> {
        let mut repeated = BTreeMap::new();
        let mut before: Option<(&ExecutionKey, &Instance)> = None;
        for ((execution, instance, _), call) in &self.calls {
            let place = (execution, instance);
            if before == Some(place)
                && let Some(state) = commits.state(*execution)
            {
                *repeated.entry(state.plan.step(instance.step).id.clone()).or_default() += 1;
            }
            if before != Some(place) || matches!(call.stage, Stage::Ended(Outcome::Done(_))) {
                let has_result = matches!(call.stage, Stage::Ended(Outcome::Done(_)));
                before = has_result.then_some(place);
            }
        }
        repeated
    }

    /// Returns the delay in milliseconds and the outcome of a call. Both depend on the seed and the attempt only, not
    /// on the node. `None` is a call that never ends by itself.
    fn script(&self, name: &Name, is_long: bool) -> Option<(u64, Outcome)> {
        let (execution, instance, attempt) = name;
        let rounds: Vec<u8> = instance.rounds.iter().flat_map(|round| round.to_be_bytes()).collect();
        let place = [&self.seed.to_be_bytes()[..], &execution.0, &instance.step.to_be_bytes(), &rounds];
        let drawn = Hash::of_parts(&[&place.concat(), &attempt.to_be_bytes()]).0;
        let after = u64::from(drawn[0]) * if is_long { 200 } else { 8 };
        let failure = |class| Outcome::Failed(Failure::new(class, "scripted", "injected failure"));
        let outcome = match drawn[1] % 100 {
            0..72 => Outcome::Done(Value::from(u64::from(drawn[2]))),
            72..90 => failure(Class::Transient),
            90..96 => failure(Class::Failed),
            _ => return None,
        };
        Some((after, outcome))
    }

    /// Ends a call. Only the first outcome counts; later ones return `None`.
    pub(super) fn end(
        &mut self,
        execution: ExecutionKey,
        instance: &Instance,
        attempt: u32,
        outcome: Outcome,
    ) -> Option<Outcome> {
        let call = self.calls.get_mut(&(execution, instance.clone(), attempt))?;
        if call.stage != Stage::Out {
            return None;
        }
        call.stage = Stage::Ended(outcome.clone());
        self.out -= 1;
        Some(outcome)
    }

    /// Records that an input has reached an inbox. The receipt of a call is safe from then on.
    pub(super) fn passed_on(&mut self, execution: ExecutionKey, input: &Input) {
        if let Some(call) = self.that_has_brought(execution, input) {
            call.is_passed_on = true;
        }
    }

    /// Records that a node has stopped trying to send the receipt of a call to an inbox.
    pub(super) fn let_go(&mut self, execution: ExecutionKey, input: &Input) {
        if let Some(call) = self.that_has_brought(execution, input) {
            call.is_let_go = true;
        }
    }

    /// Finds the call that returned a receipt. No call returns `Interrupted`, so that receipt has none.
    fn that_has_brought(&mut self, execution: ExecutionKey, input: &Input) -> Option<&mut Call> {
        let Input::Receipt { instance, attempt, outcome } = input else { return None };
        let call = self.calls.get_mut(&(execution, instance.clone(), *attempt))?;
        matches!(&call.stage, Stage::Ended(brought) if brought == outcome).then_some(call)
    }

    /// Finds an open call of an execution at a node that was not asked to stop.
    pub(super) fn running_attempt(&self, node: usize, incarnation: u32, execution: ExecutionKey) -> Option<&Name> {
        let runs_on = |call: &Call| {
            (call.node, call.incarnation, &call.stage) == (node, incarnation, &Stage::Out) && !call.is_asked_to_stop
        };
        self.calls.iter().find(|((of, ..), call)| *of == execution && runs_on(call)).map(|(name, _)| name)
    }

    /// Ends all open calls of a node that crashes.
    pub(super) fn kill(&mut self, node: usize, incarnation: u32) {
        for call in self.calls.values_mut() {
            if call.node == node && call.incarnation == incarnation && call.stage == Stage::Out {
                call.stage = Stage::Killed;
                self.out -= 1;
            }
        }
    }

    /// Marks the calls of a node that lost partitions: the next owner takes their attempts for interrupted. Calls in
    /// other partitions of the node are marked too, which only weakens the check.
    pub(super) fn lose(&mut self, node: usize, incarnation: u32) {
        let its = self.calls.values_mut().filter(|call| call.node == node && call.incarnation == incarnation);
        its.for_each(|call| call.is_lost = true);
    }

    /// Marks all calls: after repartitioning no node owns anything.
    pub(super) fn lose_all(&mut self) {
        self.calls.values_mut().for_each(|call| call.is_lost = true);
    }

    /// Checks that a durable receipt has the outcome of its call. An attempt counts as interrupted only if its call was
    /// killed or asked to stop, if its node lost the execution, or if its node has left the cluster under that name.
    pub(super) fn check_receipt(
        &self,
        execution: ExecutionKey,
        receipt: &Receipt,
        living: &[mainspring_store::Node],
    ) -> Result<(), String> {
        let Receipt { instance, attempt, outcome } = receipt;
        let call = self.calls.get(&(execution, instance.clone(), *attempt));
        if *outcome == Outcome::Interrupted {
            let runs_on = |call: &&Call| call.stage != Stage::Killed && !call.is_asked_to_stop && !call.is_lost;
            return match call.filter(runs_on).filter(|call| living.iter().any(|node| node.name == call.name)) {
                None => Ok(()),
                Some(call) => Err(format!(
                    "attempt {attempt} of {instance:?} of {execution} is reported as interrupted, and still runs at {}",
                    call.name
                )),
            };
        }
        match call.map(|call| &call.stage) {
            Some(Stage::Ended(brought)) if brought == outcome => Ok(()),
            // The attempt was stopped before it was performed, so there is no call.
            None if *outcome == Outcome::Stopped(Value::Null) => Ok(()),
            other => Err(format!("a receipt says {outcome:?}, and of its call is known: {other:?}")),
        }
    }

    /// Checks that every call is in a journal, and that its receipt is in the journal or stored beside it. Only a node
    /// that crashed may have lost a receipt.
    pub(super) fn check_end(
        &self,
        commits: &CommitChecker,
        store: &MemoryStore,
        lives: impl Fn(usize, u32) -> bool,
        was_quarantined: impl Fn(ExecutionKey) -> bool,
    ) -> Result<(), String> {
        let mut late: BTreeMap<ExecutionKey, Vec<Input>> = BTreeMap::new();
        for ((execution, instance, attempt), call) in &self.calls {
            let Stage::Ended(outcome) = &call.stage else { continue };
            if !commits.has_attempt(*execution, instance, *attempt) {
                return Err(format!("attempt {attempt} of {instance:?} of {execution} was made and is in no journal"));
            }
            // A call that was stopped because of a quarantine has no result to keep. An end by force discards the
            // results of open calls.
            let is_stopped = matches!(outcome, Outcome::Stopped(_)) && was_quarantined(*execution);
            let may_be_lost = is_stopped
                || commits.is_ended_by_force(*execution)
                || call.is_let_go
                || !call.is_passed_on && !lives(call.node, call.incarnation);
            if may_be_lost || commits.has_receipt(*execution, instance, *attempt, outcome) {
                continue;
            }
            let kept = match late.entry(*execution) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(kept(store, *execution)?),
            };
            let (instance, attempt, outcome) = (instance.clone(), *attempt, outcome.clone());
            let receipt = Input::Receipt { instance: instance.clone(), attempt, outcome };
            if !kept.contains(&receipt) {
                return Err(format!(
                    "the receipt of attempt {attempt} of {instance:?} of {execution} is lost: {receipt:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Reads the late receipts that are stored beside a journal.
fn kept(store: &MemoryStore, execution: ExecutionKey) -> Result<Vec<Input>, String> {
    let late = store.late_receipts(execution).map_err(|error| error.to_string())?;
    late.iter().map(|late| Input::decode(&late.body).map_err(|error| error.to_string())).collect()
}

/// Returns an attempt as it was before its stop was requested. The request may be committed while the attempt is on its
/// way to the executor.
fn before_stop(mut open: Attempt) -> Attempt {
    if let Some(progress) = &mut open.progress {
        progress.is_stopping = false;
    }
    open
}

impl Cluster {
    /// Starts a call at a node and checks that the node may start it.
    pub(super) fn perform(
        &mut self,
        node: usize,
        execution: ExecutionKey,
        instance: &Instance,
        attempt: &Attempt,
    ) -> Result<(), String> {
        let incarnation = self.nodes[node].incarnation;
        let who = self.nodes[node].name();
        let what = format!("attempt {} of `{}` of {execution}", attempt.number, attempt.step);
        let state = self.commits.state(execution).ok_or_else(|| format!("{what} is made, and nothing is durable"))?;
        let is_open = state.open.attempts.contains(instance)
            && open_attempt(state, instance).is_some_and(|open| open == *attempt || before_stop(open) == *attempt);
        if !is_open {
            return Err(format!("{who} makes {what}, which is not durable, or settled"));
        }
        if !self.commits.owns(&who, &self.store, execution)? {
            return Err(format!("{who} makes {what}, which another node owns"));
        }
        let name = (execution, instance.clone(), attempt.number);
        if self.calls.calls.contains_key(&name) {
            return Err(format!("{who} makes {what}, which was made before"));
        }
        self.extend_trace(&[b"call", &execution.0, attempt.step.as_bytes(), &attempt.number.to_be_bytes()]);
        // A call that starts while a heartbeat is delayed must still be open when the lease expires.
        let is_long =
            self.now < self.nodes[node].delays.heartbeat_delayed_until || self.draws_fault(self.faults.long_calls);
        let refused = super::executors::perform(&self.nodes[node].executors, attempt).map(|outcome| (0, outcome));
        let brought = match (refused, self.workflows.subject.clone()) {
            (Some(refused), _) => Some(refused),
            (None, Some(subject)) => {
                let id = self.commits.state(execution).map(|state| state.plan.step(instance.step).id.clone());
                let answer = self.calls.used_outcomes.next(&subject, attempt, &id.unwrap_or_default())?;
                let late = self.rng.below(if is_long { 5 * LEASE_MS } else { 500 });
                answer.map(|(after, outcome)| (after.saturating_add(late), outcome))
            }
            (None, None) => {
                let brought = self.calls.script(&name, is_long);
                let is_model = attempt.effect == "agent";
                brought.map(|(after, outcome)| (after, if is_model { answer(outcome) } else { outcome }))
            }
        };
        if let Some((after, outcome)) = brought {
            let event = ProcessEvent::Ended(execution, instance.clone(), attempt.number, outcome);
            self.at(after, ClusterEvent::Node(node, incarnation, event));
        }
        let call = Call {
            node,
            incarnation,
            name: who,
            is_asked_to_stop: false,
            is_lost: false,
            stage: Stage::Out,
            is_passed_on: false,
            is_let_go: false,
        };
        self.calls.calls.insert(name, call);
        self.calls.out += 1;
        Ok(())
    }

    /// Asks a call of this node to stop. It stops after a delay, and may return its result before that.
    pub(super) fn stop(&mut self, node: usize, execution: ExecutionKey, instance: &Instance, attempt: u32) {
        let incarnation = self.nodes[node].incarnation;
        let name = (execution, instance.clone(), attempt);
        let call = self.calls.calls.get_mut(&name).filter(|call| call.node == node && call.incarnation == incarnation);
        let Some(call) = call else { return };
        call.is_asked_to_stop = true;
        let after = self.rng.below(LEASE_MS);
        let event = ProcessEvent::Ended(execution, instance.clone(), attempt, Outcome::Stopped(Value::Null));
        self.at(after, ClusterEvent::Node(node, incarnation, event));
    }
}
