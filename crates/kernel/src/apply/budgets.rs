//! Updates the accounts of an execution when a record reserves, settles or raises a budget.

use crate::{
    budget::{Account, Budget, Usage},
    decide_version::BUDGETS_SINCE,
    instance::Instance,
    plan::{Loop, Over, Work},
    record::Record,
    state::State,
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
}

pub(super) fn reserve(state: &mut State, instance: &Instance, amount: Usage) -> Result<(), &'static str> {
    let plan = state.plan.clone();
    if !state.steps.contains_key(instance) {
        return Err("where no call begins");
    }
    // The share of a quarantined child stays reserved beside that of the next attempt.
    state.counts.budgets.reserved.insert(instance.clone(), amount);
    let agent = instance.agent(&plan);
    state.counts.budgets.change(agent.as_ref(), |account| account.reserved = account.reserved.plus(amount));
    Ok(())
}

pub(super) fn settle(state: &mut State, instance: &Instance, amount: Usage) {
    let reserved = state.counts.budgets.reserved.remove(instance).unwrap_or_default();
    // Only a step of the state has an agent around it: the record may come from a damaged journal.
    let agent = state.steps.contains_key(instance).then(|| instance.agent(&state.plan)).flatten();
    state.counts.budgets.change(agent.as_ref(), |account| {
        account.reserved = account.reserved.minus(reserved);
        account.spent = account.spent.plus(amount);
    });
}

/// Returns the account of an agent, or that of the execution.
pub(super) fn account<'s>(state: &'s mut State, agent: Option<&Instance>) -> Option<&'s mut Account> {
    let accounts = &mut state.counts.budgets;
    match agent {
        None => Some(&mut accounts.execution),
        Some(agent) => accounts.agents.get_mut(agent),
    }
}

pub(super) fn adjust(account: &mut Account, record: &Record) {
    match record {
        Record::BudgetRaised { amount, .. } => {
            account.raised = account.raised.plus(*amount);
            account.is_warned = false;
        }
        _ => account.is_warned = true,
    }
}
