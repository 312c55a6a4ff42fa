//! Updates the accounts of an execution when a record reserves, settles or raises a budget.

use crate::{
    budget::{Account, Budget, Usage},
    decide_version::BUDGETS_SINCE,
    instance::Instance,
    leases::{LeaseChange, WaitingCall},
    plan::{AgentPart, Loop, Over, Work},
    record::{Payload, Record},
    state::{State, StepState},
};

/// Opens the account of the execution.
pub(super) fn begin(state: &mut State, budget: Option<Budget>) {
    if state.decide_version >= BUDGETS_SINCE {
        state.counts.budgets.execution = Account::of(budget.unwrap_or_default());
    }
}

/// Opens the account of an agent with a budget of its own.
pub(super) fn begin_step(state: &mut State, instance: &Instance) {
    let plan = state.plan.clone();
    if let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &plan.step(instance.step).work
        && let Some(budget) = agent.budget
    {
        state.counts.budgets.agents.insert(instance.clone(), Account::of(budget));
    }
}

/// Closes the account of an ended agent. The share of a detached child stays reserved.
pub(super) fn end_step(state: &mut State, instance: &Instance) {
    state.counts.budgets.agents.remove(instance);
    state.counts.budgets.reserved.remove(instance);
    state.counts.budgets.leases.drop_call(instance);
}

pub(super) fn await_lease(state: &mut State, instance: &Instance, step: &mut StepState, record: &Record) {
    let Record::LeaseAwaited { attempt, lease, amount, .. } = record else { return };
    step.times.wake_at = None;
    let call = WaitingCall { attempt: *attempt, lease: *lease, amount: *amount };
    state.counts.budgets.leases.wait(instance, call);
}

/// Applies a record about budgets of the whole execution or of an agent. An error says why the record is not allowed.
pub(super) fn change(state: &mut State, record: &Record) -> Result<(), &'static str> {
    match record {
        Record::BudgetReserved { instance, amount } => reserve(state, instance, *amount)?,
        Record::BudgetSettled { instance, amount } => settle(state, instance, *amount),
        Record::BudgetRaised { agent, .. } | Record::BudgetWarned { agent, .. } => {
            adjust(account(state, agent.as_ref()).ok_or("where no budget is")?, record);
        }
        Record::LeaseChanged { lease, change } => {
            if let LeaseChange::Granted { notice, .. } | LeaseChange::Refused { notice } = change {
                state.journal.has_erased |= *notice == Payload::Erased;
            }
            if !state.counts.budgets.leases.change(*lease, change) {
                return Err("where no such lease is");
            }
        }
        _ => return Err("among budgets"),
    }
    Ok(())
}

fn reserve(state: &mut State, instance: &Instance, amount: Usage) -> Result<(), &'static str> {
    let plan = state.plan.clone();
    if !state.steps.contains_key(instance) {
        return Err("where no call begins");
    }
    // The share of a quarantined child stays reserved beside that of the next attempt.
    state.counts.budgets.reserved.insert(instance.clone(), amount);
    let agent = instance.agent(&plan);
    state.counts.budgets.change(agent.as_ref(), |account| account.reserved = account.reserved.plus(amount));
    let own = own_part(state, instance, amount);
    state.counts.budgets.leases.reserve(instance, own);
    Ok(())
}

/// Returns the part of an amount that the execution uses itself. A child leases and counts its own calls.
fn own_part(state: &State, instance: &Instance, amount: Usage) -> Usage {
    let is_in_plan = (instance.step as usize) < state.plan.steps.len();
    if !is_in_plan || state.started_workflow(instance).is_none() {
        return amount;
    }
    let is_call = state.plan.agent_part(instance.step) == Some(AgentPart::Call);
    Usage { tool_calls: u64::from(is_call), ..Usage::default() }
}

fn settle(state: &mut State, instance: &Instance, amount: Usage) {
    let own = own_part(state, instance, amount);
    state.counts.budgets.own = state.counts.budgets.own.plus(own);
    state.counts.budgets.leases.settle(instance, own);
    let reserved = state.counts.budgets.reserved.remove(instance).unwrap_or_default();
    // Only a step of the state has an agent around it: the record may come from a damaged journal.
    let is_known = state.steps.contains_key(instance);
    let agent = is_known.then(|| instance.agent(&state.plan)).flatten();
    if is_known && !amount.is_zero() {
        let step = agent.as_ref().unwrap_or(instance).step;
        let used = state.counts.budgets.steps.entry(step).or_default();
        *used = used.plus(amount);
    }
    state.counts.budgets.change(agent.as_ref(), |account| {
        account.reserved = account.reserved.minus(reserved);
        account.spent = account.spent.plus(amount);
    });
}

/// Returns the account of an agent, or that of the execution.
fn account<'s>(state: &'s mut State, agent: Option<&Instance>) -> Option<&'s mut Account> {
    let accounts = &mut state.counts.budgets;
    match agent {
        None => Some(&mut accounts.execution),
        Some(agent) => accounts.agents.get_mut(agent),
    }
}

fn adjust(account: &mut Account, record: &Record) {
    match record {
        Record::BudgetRaised { amount, .. } => {
            account.raised = account.raised.plus(*amount);
            account.is_warned = false;
        }
        _ => account.is_warned = true,
    }
}
