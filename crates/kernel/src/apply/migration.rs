//! Replaces the plan of an execution. The steps that have begun keep their numbers, so only running blocks change.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use super::{blocks, size};
use crate::{
    hash::Hash,
    instance::Scope,
    migration::counterpart,
    plan::{Order, Plan},
    record::Record,
    state::{EarlierPlan, Migration, ScopeState, State, Status},
};

/// Applies a migration. An error says why the record is not allowed.
pub(super) fn migrate(state: &mut State, record: &Record) -> Result<(), &'static str> {
    let Record::Migrated { workflow_hash, plan_hash, version, policy, by, plan: bytes, .. } = record else {
        return Err("among migrations");
    };
    if Hash::of(&bytes.0) != *plan_hash {
        return Err("with another plan than it names");
    }
    let new = Plan::decode(&bytes.0).map_err(|_| "with an unreadable plan")?;
    if new.workflow_hash != *workflow_hash {
        return Err("with a plan of another definition than it names");
    }
    let is_kept = |step: u32| new.steps.get(step as usize).is_some_and(|new| new.id == state.plan.step(step).id);
    let has_steps = state.steps.keys().all(|instance| {
        is_kept(instance.step) && new.loop_depth(instance.step) == state.plan.loop_depth(instance.step)
    });
    if !has_steps {
        return Err("with a plan that lacks a step");
    }
    let scopes = core::mem::take(&mut state.blocks.scopes);
    let mut moved = BTreeMap::new();
    for (scope, here) in scopes {
        let to = counterpart(&state.plan, &new, &scope).ok_or("with a plan that lacks a block")?;
        let before = size::of_scope(state.plan.block(scope.block).steps.len());
        state.counts.memory_bytes =
            state.counts.memory_bytes + size::of_scope(new.block(to.block).steps.len()) - before;
        let here = reopened(state, &new, &to, here);
        moved.insert(to, here);
    }
    state.blocks.scopes = moved;
    let mut earlier = state.journal.migration.take().map(|migration| migration.earlier).unwrap_or_default();
    let at = state.now;
    if let Some(start) = &mut state.start {
        earlier.push(EarlierPlan { until: at, workflow_hash: start.workflow_hash, plan_hash: start.plan_hash });
        (start.workflow_hash, start.plan_hash, start.policy) = (*workflow_hash, *plan_hash, *policy);
    }
    state.journal.migration = Some(Migration { version: version.clone(), by: by.clone(), at, earlier });
    state.plan = Arc::new(new);
    Ok(())
}

/// A running block in which the steps that have not begun are those of the new plan.
fn reopened(state: &State, new: &Plan, scope: &Scope, here: ScopeState) -> ScopeState {
    let block = new.block(scope.block);
    let status = |place: u32| {
        let step = block.steps.get(place as usize)?;
        state.steps.get(&scope.instance(*step)).map(|step| step.status)
    };
    let places = 0..block.steps.len() as u32;
    let pending = places.clone().filter(|place| status(*place).is_none()).collect();
    let mut here = ScopeState { pending, unsettled: Vec::new(), decidable: Default::default(), ..here };
    if let Order::Edges(graph) = &block.order {
        let is_open = |place: u32| !status(place).is_some_and(Status::is_final);
        let unsettled = |place| graph.incoming(place).iter().filter(|edge| is_open(edge.from)).count() as u32;
        here.unsettled = places.map(unsettled).collect();
        let ready = here.pending.iter().filter(|place| here.unsettled[**place as usize] == 0);
        here.decidable = ready.map(|place| (blocks::rank(new, scope, *place), *place)).collect();
    }
    here
}
