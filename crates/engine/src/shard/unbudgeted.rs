//! The executions to which no budget of a day or a month applies.

use std::collections::BTreeMap;

use mainspring_kernel::{decide::Action, input::Input, state::State};

use crate::{
    evaluator::tenant_of,
    limits::{LEASE_OF_BUDGETS_MS_MAX, UNBUDGETED_ORGANIZATIONS_MAX, UNBUDGETED_WORKFLOWS_MAX},
    period_budgets::{Unbudgeted, unlimited},
};

/// The executions to which no budget of a day or a month applies, according to the store. Their requests for leases are
/// answered in the same commit, without the store. A missing entry costs a request.
#[derive(Debug, Default)]
pub(super) struct UnbudgetedExecutions(BTreeMap<String, OfOrganization>);

/// Ends in milliseconds since 1970.
#[derive(Debug, Default)]
struct OfOrganization {
    /// For all executions.
    all: u64,
    /// For executions of a workflow that are no children.
    workflows: BTreeMap<String, u64>,
}

impl OfOrganization {
    fn is_over(&self, now: u64) -> bool {
        self.all <= now && self.workflows.values().all(|until| *until <= now)
    }
}

impl UnbudgetedExecutions {
    pub(super) fn insert(&mut self, now: u64, free: Unbudgeted) {
        let Unbudgeted { organization, workflow, until } = free;
        let until = until.min(now.saturating_add(LEASE_OF_BUDGETS_MS_MAX));
        if !self.0.contains_key(&organization) && self.0.len() >= UNBUDGETED_ORGANIZATIONS_MAX {
            self.0.retain(|_, of| !of.is_over(now));
            if self.0.len() >= UNBUDGETED_ORGANIZATIONS_MAX {
                return;
            }
        }
        let of = self.0.entry(organization).or_default();
        let Some(workflow) = workflow else {
            of.all = until;
            return;
        };
        // The organization has a budget now.
        of.all = 0;
        if !of.workflows.contains_key(&workflow) && of.workflows.len() >= UNBUDGETED_WORKFLOWS_MAX {
            of.workflows.retain(|_, until| *until > now);
        }
        if of.workflows.contains_key(&workflow) || of.workflows.len() < UNBUDGETED_WORKFLOWS_MAX {
            of.workflows.insert(workflow, until);
        }
    }

    /// Takes the request for a lease from the actions of a turn and returns its answer, if no budget applies.
    /// An answer that ends later than any answer of now was given before the clock was set back, and does not count.
    pub(super) fn grant(&self, now: u64, state: &State, actions: &mut Vec<Action>) -> Option<Input> {
        let place = actions.iter().position(|action| matches!(action, Action::Lease { .. }))?;
        let of = self.0.get(tenant_of(state))?;
        let is_root = state.root() == state.key;
        let valid = |until: u64| Some(until).filter(|until| is_valid(now, *until)).unwrap_or_default();
        let of_workflow = state.workflow().filter(|_| is_root).and_then(|workflow| of.workflows.get(workflow));
        let until = valid(of.all).max(valid(of_workflow.copied().unwrap_or_default()));
        if until <= state.now {
            return None;
        }
        match actions.remove(place) {
            Action::Lease { lease, .. } => Some(Input::Lease { lease, change: unlimited(until) }),
            Action::Perform { .. } | Action::Stop { .. } => None,
        }
    }
}

fn is_valid(now: u64, until: u64) -> bool {
    now < until && until <= now.saturating_add(LEASE_OF_BUDGETS_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(organization: &str, workflow: Option<&str>, until: u64) -> Unbudgeted {
        Unbudgeted { organization: organization.into(), workflow: workflow.map(Into::into), until }
    }

    #[test]
    fn expired_entries_are_evicted_at_the_bound() {
        let mut known = UnbudgetedExecutions::default();
        for number in 0..UNBUDGETED_ORGANIZATIONS_MAX {
            known.insert(0, free(&number.to_string(), None, 10));
        }
        known.insert(5, free("late", None, 20));
        assert!(!known.0.contains_key("late"));
        known.insert(10, free("late", None, 20));
        assert_eq!(known.0.len(), 1);
        for number in 0..=UNBUDGETED_WORKFLOWS_MAX {
            known.insert(10, free("late", Some(&number.to_string()), 20));
        }
        assert_eq!(known.0["late"].workflows.len(), UNBUDGETED_WORKFLOWS_MAX);
        known.insert(10, free("late", Some("0"), 30));
        assert_eq!(known.0["late"].workflows["0"], 30, "a known one is renewed");
        known.insert(25, free("late", Some("new"), 30));
        assert_eq!(known.0["late"].workflows.len(), 2);
    }

    #[test]
    fn an_entry_expires_after_five_minutes_on_any_clock() {
        let mut known = UnbudgetedExecutions::default();
        known.insert(1_000, free("o", None, u64::MAX));
        let until = known.0["o"].all;
        assert_eq!(until, 1_000 + LEASE_OF_BUDGETS_MS_MAX);
        // The clock was set back by a second, and forward.
        assert_eq!([0, 1_000, until - 1, until].map(|now| is_valid(now, until)), [false, true, true, false]);
    }

    #[test]
    fn a_budget_of_any_workflow_removes_all_entries() {
        let mut known = UnbudgetedExecutions::default();
        known.insert(0, free("o", None, 100));
        known.insert(0, free("o", Some("w"), 100));
        assert_eq!((known.0["o"].all, known.0["o"].workflows["w"]), (0, 100));
    }
}
