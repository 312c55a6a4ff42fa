//! The executions to which no budget of a day or a month applies.

use std::collections::BTreeMap;

use mainspring_kernel::{decide::Action, input::Input, state::State};

use crate::{
    evaluator::tenant_of,
    limits::{LEASE_OF_BUDGETS_MS_MAX, UNBUDGETED_MS_MAX, UNBUDGETED_ORGANIZATIONS_MAX, UNBUDGETED_WORKFLOWS_MAX},
    period_budgets::{Unbudgeted, unlimited},
};

/// The executions to which no budget of a day or a month applies, according to the store. Their requests for leases are
/// answered in the same commit, without the store. A missing entry costs a request.
#[derive(Debug, Default)]
pub(super) struct UnbudgetedExecutions(BTreeMap<String, OfOrganization>);

/// Times in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Free {
    /// The end of the leases.
    until: u64,
    /// The time from which the store is asked again, so that a new budget applies to later executions.
    asked_again_at: u64,
}

impl Free {
    /// True before both ends. Ends that are later than any that could be set now were set before the clock was set back.
    fn is_valid(self, now: u64) -> bool {
        let is_ahead = |end: u64, most: u64| now < end && end <= now.saturating_add(most);
        is_ahead(self.until, LEASE_OF_BUDGETS_MS_MAX) && is_ahead(self.asked_again_at, UNBUDGETED_MS_MAX)
    }
}

#[derive(Debug, Default)]
struct OfOrganization {
    /// For all executions.
    all: Free,
    /// For executions of a workflow that are no children.
    workflows: BTreeMap<String, Free>,
}

impl OfOrganization {
    fn is_over(&self, now: u64) -> bool {
        self.all.until <= now && self.workflows.values().all(|free| free.until <= now)
    }
}

impl UnbudgetedExecutions {
    pub(super) fn insert(&mut self, now: u64, free: Unbudgeted) {
        let Unbudgeted { organization, workflow, until } = free;
        let until = until.min(now.saturating_add(LEASE_OF_BUDGETS_MS_MAX));
        let free = Free { until, asked_again_at: now.saturating_add(UNBUDGETED_MS_MAX) };
        if !self.0.contains_key(&organization) && self.0.len() >= UNBUDGETED_ORGANIZATIONS_MAX {
            self.0.retain(|_, of| !of.is_over(now));
            if self.0.len() >= UNBUDGETED_ORGANIZATIONS_MAX {
                return;
            }
        }
        let of = self.0.entry(organization).or_default();
        let Some(workflow) = workflow else {
            of.all = free;
            return;
        };
        // The organization has a budget now.
        of.all = Free::default();
        if !of.workflows.contains_key(&workflow) && of.workflows.len() >= UNBUDGETED_WORKFLOWS_MAX {
            of.workflows.retain(|_, free| free.until > now);
        }
        if of.workflows.contains_key(&workflow) || of.workflows.len() < UNBUDGETED_WORKFLOWS_MAX {
            of.workflows.insert(workflow, free);
        }
    }

    /// Takes the request for a lease from the actions of a turn and returns its answer, if no budget applies.
    pub(super) fn grant(&self, now: u64, state: &State, actions: &mut Vec<Action>) -> Option<Input> {
        let place = actions.iter().position(|action| matches!(action, Action::Lease { .. }))?;
        let of = self.0.get(tenant_of(state))?;
        let is_root = state.root() == state.key;
        let valid = |free: Free| if free.is_valid(now) { free.until } else { 0 };
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
        assert_eq!(known.0["late"].workflows["0"].until, 30, "a known one is renewed");
        known.insert(25, free("late", Some("new"), 30));
        assert_eq!(known.0["late"].workflows.len(), 2);
    }

    #[test]
    fn the_store_is_asked_again_after_seconds_on_any_clock() {
        let mut known = UnbudgetedExecutions::default();
        known.insert(1_000, free("o", None, u64::MAX));
        let free = known.0["o"].all;
        assert_eq!(free.until, 1_000 + LEASE_OF_BUDGETS_MS_MAX);
        let again = free.asked_again_at;
        // The clock was set back by a second, and forward.
        assert_eq!([0, 1_000, again - 1, again].map(|now| free.is_valid(now)), [false, true, true, false]);
        let ending = Free { until: 2_000, ..free };
        assert_eq!([1_999, 2_000].map(|now| ending.is_valid(now)), [true, false]);
    }

    #[test]
    fn a_budget_of_any_workflow_removes_all_entries() {
        let mut known = UnbudgetedExecutions::default();
        known.insert(0, free("o", None, 100));
        known.insert(0, free("o", Some("w"), 100));
        assert_eq!((known.0["o"].all, known.0["o"].workflows["w"].until), (Free::default(), 100));
    }
}
