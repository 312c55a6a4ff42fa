//! The accounts of an execution's budgets.

use alloc::collections::BTreeMap;

use crate::{
    budget::{Account, Usage},
    instance::Instance,
    leases::Leases,
};

/// The accounts of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Accounts {
    /// The account of the execution, which its children share.
    pub execution: Account,
    /// The accounts of running agents with a budget of their own.
    pub agents: BTreeMap<Instance, Account>,
    /// The reservations of calls and children in progress.
    pub reserved: BTreeMap<Instance, Usage>,
    /// The amounts that the execution has used itself, without its children. They are counted for its organization.
    pub own: Usage,
    /// The leases of the budgets of a day or a month.
    pub leases: Leases,
    /// The amounts that each step of the plan has used, all its rounds together. Calls of agents count for their agent.
    pub steps: BTreeMap<u32, Usage>,
}

impl Accounts {
    /// Applies a change to the account of the execution, and to that of the agent around a call.
    pub(crate) fn change(&mut self, agent: Option<&Instance>, change: impl Fn(&mut Account)) {
        change(&mut self.execution);
        if let Some(account) = agent.and_then(|agent| self.agents.get_mut(agent)) {
            change(account);
        }
    }
}
