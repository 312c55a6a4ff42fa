//! Updates the blocks and loops around and inside a step when a record changes the step.

use alloc::{vec, vec::Vec};
use core::cmp::Reverse;

use super::size;
use crate::{
    agent::{ended_turn, extended},
    cbor,
    instance::{Instance, Scope},
    plan::{EdgeKind, OnError, Order, Over, Plan, Work},
    record::Record,
    state::{LoopState, ScopeState, State, Status, StepState},
    value::Value,
    value_size,
};

/// Opens a block with all of its steps pending.
pub(super) fn open(state: &mut State, scope: Scope) {
    let plan = state.plan.clone();
    let block = plan.block(scope.block);
    let places = 0..block.steps.len() as u32;
    let mut here = ScopeState { pending: places.clone().collect(), ..ScopeState::default() };
    if let Order::Edges(graph) = &block.order {
        here.unsettled = places.clone().map(|place| graph.incoming(place).len() as u32).collect();
        let roots = places.filter(|place| here.unsettled[*place as usize] == 0);
        here.decidable = roots.map(|place| (rank(&plan, &scope, place), place)).collect();
    }
    state.counts.memory_bytes += size::of_scope(block.steps.len());
    state.blocks.scopes.insert(scope, here);
}

/// Removes a block that has ended.
pub(super) fn close(state: &mut State, scope: &Scope) -> Option<ScopeState> {
    let here = state.blocks.scopes.remove(scope)?;
    state.counts.memory_bytes -= size::of_scope(state.plan.block(scope.block).steps.len());
    Some(here)
}

/// Opens the block or the loop that a started step contains. Conditionals and rounds open their blocks later.
pub(super) fn open_inside(state: &mut State, instance: &Instance, input: &Value) {
    let plan = state.plan.clone();
    match &plan.step(instance.step).work {
        Work::Parallel { block } => open(state, Scope::inside(instance, *block)),
        Work::Loop(of) => {
            let is_over_list = matches!(of.over, Over::Items(_) | Over::Calls);
            let count = is_over_list.then(|| input.as_list().map_or(0, <[_]>::len) as u32);
            let outputs = match of.over {
                Over::Items(_) | Over::While { .. } | Over::Until { .. } => {
                    vec![Value::Null; count.unwrap_or(1) as usize]
                }
                // The turns are added as they end, and the results of calls are part of their turn.
                Over::Turns(_) | Over::Calls => Vec::new(),
            };
            let memory_bytes = size::of_loop(outputs.len());
            state.counts.memory_bytes += memory_bytes;
            let rounds = LoopState { count, outputs, memory_bytes, ..LoopState::default() };
            state.blocks.loops.insert(instance.clone(), rounds);
        }
        _ => {}
    }
}

/// Updates the enclosing block when a step leaves the pending status.
pub(super) fn begin_step(state: &mut State, scope: &Scope, instance: &Instance, next: Status) {
    let plan = state.plan.clone();
    let place = place_of(&plan, scope, instance);
    let rank = rank(&plan, scope, place);
    if let Some(scope) = state.blocks.scopes.get_mut(scope) {
        scope.pending.remove(&place);
        scope.decidable.remove(&(rank, place));
        scope.open += u32::from(!next.is_final());
    }
}

/// Updates the enclosing block when a step has ended, and closes everything inside the step.
pub(super) fn end_step(state: &mut State, scope: &Scope, instance: &Instance, step: &StepState, before: Status) {
    let plan = state.plan.clone();
    let fails = step.status == Status::Failed && !step.tolerated && !step.is_handled;
    if let Some(here) = state.blocks.scopes.get_mut(scope) {
        here.open -= u32::from(before != Status::Pending);
        if fails && here.failed.is_none() {
            here.failed = Some(instance.clone());
        }
        if let Order::Edges(graph) = &plan.block(scope.block).order {
            for (to, _) in graph.outgoing(place_of(&plan, scope, instance)) {
                here.unsettled[to as usize] -= 1;
                if here.unsettled[to as usize] == 0 && here.pending.contains(&to) {
                    here.decidable.insert((rank(&plan, scope, to), to));
                }
            }
        }
    }
    if fails {
        doom(state, scope.clone());
    }
    if let Some(rounds) = state.blocks.loops.remove(instance) {
        state.counts.memory_bytes -= rounds.memory_bytes;
    }
    for (_, block) in plan.step(instance.step).work.branches() {
        close(state, &Scope::inside(instance, block));
    }
}

/// Opens the block of a new round.
pub(super) fn begin_round(state: &mut State, instance: &Instance, round: u32) {
    let plan = state.plan.clone();
    let Work::Loop(of) = &plan.step(instance.step).work else { return };
    if let Some(rounds) = state.blocks.loops.get_mut(instance) {
        rounds.begun = round + 1;
        rounds.open += 1;
    }
    open(state, Scope::of_round(instance, of.block, round));
}

/// Ends a round. Its output is that of its last step.
pub(super) fn end_round(state: &mut State, instance: &Instance, round: u32) {
    let plan = state.plan.clone();
    let Work::Loop(of) = &plan.step(instance.step).work else { return };
    let scope = Scope::of_round(instance, of.block, round);
    let last = plan.block(of.block).steps.last().map(|step| scope.instance(*step));
    let output = match of.over {
        Over::Turns(_) => ended_turn(state, &scope),
        _ => last.and_then(|last| state.steps.get(&last)).map(|step| step.output.clone()).unwrap_or_default(),
    };
    let failed = close(state, &scope).and_then(|scope| scope.failed);
    let Some(rounds) = state.blocks.loops.get_mut(instance) else { return };
    rounds.open -= 1;
    match of.over {
        Over::Turns(_) => {
            let memory_bytes = value_size::of_value(&output);
            rounds.conversation = extended(&rounds.conversation, &output);
            rounds.output_bytes += cbor::byte_count(&output) as u64;
            rounds.memory_bytes += memory_bytes;
            rounds.outputs.push(output);
            rounds.failed = rounds.failed.take().or(failed);
            state.counts.memory_bytes += memory_bytes;
            return;
        }
        Over::Calls => {
            rounds.failed = rounds.failed.take().or(failed);
            return;
        }
        Over::Items(_) | Over::While { .. } | Over::Until { .. } => {}
    }
    let slot = if rounds.count.is_some() { round as usize } else { 0 };
    let former = core::mem::replace(&mut rounds.outputs[slot], output);
    let output = &rounds.outputs[slot];
    let memory_bytes = rounds.memory_bytes + value_size::of_value(output) - value_size::of_value(&former);
    rounds.output_bytes = rounds.output_bytes + cbor::byte_count(output) as u64 - cbor::byte_count(&former) as u64;
    state.counts.memory_bytes = state.counts.memory_bytes + memory_bytes - rounds.memory_bytes;
    rounds.memory_bytes = memory_bytes;
    rounds.failed = rounds.failed.take().or(failed);
}

/// Adds the reason why the last answer of an agent was rejected.
pub(super) fn reject_answer(state: &mut State, instance: &Instance, reason: Value) {
    let Some(turns) = state.blocks.loops.get_mut(instance) else { return };
    turns.conversation = extended(&turns.conversation, &reason);
    turns.output_bytes += cbor::byte_count(&reason) as u64;
    let Some(last) = turns.outputs.last_mut() else { return };
    let before = value_size::of_value(last);
    if let Value::Map(turn) = last {
        turn.insert("rejected".into(), reason);
    }
    let memory_bytes = value_size::of_value(last) - before;
    turns.memory_bytes += memory_bytes;
    state.counts.memory_bytes += memory_bytes;
}

/// Removes the steps of a round that no reference can reach any more. The condition of a loop reads the last round
/// until the next one starts. Failed steps are kept, because the failure of the loop or of the execution may name them.
pub(super) fn forget_ended_round(state: &mut State, instance: &Instance, record: &Record) {
    let Work::Loop(of) = &state.plan.step(instance.step).work else { return };
    let is_over_items = matches!(of.over, Over::Items(_) | Over::Turns(_));
    let is_turn = matches!(of.over, Over::Turns(_));
    let ended = match record {
        // The turn takes the results of its calls when it ends.
        _ if matches!(of.over, Over::Calls) => return,
        Record::RoundEnded { round, .. } if is_over_items => *round,
        Record::RoundStarted { round, .. } if !is_over_items && *round > 0 => round - 1,
        _ => return,
    };
    let plan = state.plan.clone();
    let is_over =
        |step: &StepState| matches!(step.status, Status::Completed | Status::Skipped) || (is_turn && step.is_handled);
    for range in instance.steps_of_round(&plan, ended) {
        let ended = state.steps.extract_if(range, |_, step| is_over(step));
        let bytes: u64 = ended.map(|(_, step)| step.memory_bytes).sum();
        state.counts.memory_bytes -= bytes;
    }
}

/// Marks the block as failing, and likewise each enclosing block up to the first that may handle or tolerate the
/// failure. Failure edges are evaluated when the enclosing step fails.
fn doom(state: &mut State, mut scope: Scope) {
    while let Some(here) = state.blocks.scopes.get_mut(&scope) {
        here.is_failing = true;
        let Some(owner) = scope.owner(&state.plan) else { return };
        let outer = owner.scope(&state.plan);
        if let Some(rounds) = state.blocks.loops.get_mut(&owner) {
            rounds.is_failing = true;
        }
        // Each step of `finally` runs, regardless of the results of those before it.
        if state.plan.is_finally(outer.block) {
            return;
        }
        let fails = state.plan.step(owner.step).on_error == OnError::Fail && !state.plan.policy.fail_open;
        if !fails || may_be_handled(&state.plan, &outer, &owner) {
            return;
        }
        scope = outer;
    }
}

fn may_be_handled(plan: &Plan, scope: &Scope, instance: &Instance) -> bool {
    match &plan.block(scope.block).order {
        Order::Edges(graph) => {
            graph.outgoing(place_of(plan, scope, instance)).any(|(_, edge)| edge.kind == EdgeKind::OnFailure)
        }
        Order::Sequence | Order::Parallel => false,
    }
}

/// Returns the index of a step in its block. The steps of a block have ascending numbers.
fn place_of(plan: &Plan, scope: &Scope, instance: &Instance) -> u32 {
    let steps = &plan.block(scope.block).steps;
    steps.binary_search(&instance.step).unwrap_or(steps.len()) as u32
}

pub(super) fn rank(plan: &Plan, scope: &Scope, place: u32) -> Reverse<i32> {
    let step = plan.block(scope.block).steps.get(place as usize);
    Reverse(step.map_or(0, |step| plan.step(*step).priority))
}
