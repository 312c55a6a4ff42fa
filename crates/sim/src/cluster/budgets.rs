//! Leases from the budgets of a month: the store answers them, and its counts are compared with the journals.

use std::collections::BTreeMap;

use mainspring_engine::{
    evaluator::tenant_of,
    node::NodeEvent,
    period_budgets::{Period, WantedLease, lease},
    shard::{Event, PendingInput},
};
use mainspring_kernel::{budget::Usage, decide::LEASES_SINCE, input::Input};
use mainspring_store::{UsageQuery, prelude::*};

use super::Cluster;
use crate::fixture::START_MS;

impl Cluster {
    /// Requests a lease at the store by the clock of the node, and answers once or twice.
    pub(super) fn serve_lease(&mut self, who: (usize, u32), wanted: &WantedLease) -> Result<(), String> {
        let clock = self.nodes[who.0].clocks.read(self.now).wall_ms;
        let found = lease(&self.store, Some(&self.settings.budget), wanted, clock)?;
        if let Some(free) = found.free {
            self.answer_in(0, who, NodeEvent::Shard(Event::Unbudgeted(free)));
        }
        let Some(change) = found.change else { return Ok(()) };
        let times = if self.draws_fault(self.faults.twice) { 2 } else { 1 };
        for _ in 0..times {
            let input = Input::Lease { lease: wanted.number, change: change.clone() };
            let event = Event::Take(wanted.execution, PendingInput::without_reply(input));
            let delay = self.delay_of_answer();
            self.answer_in(delay, who, NodeEvent::Shard(event));
        }
        Ok(())
    }

    /// Checks that the store has counted what the journals say, that no lease is left over, and that no limit was passed.
    pub(super) fn check_budgets(&self) -> Result<(), String> {
        // Executions of older rules need no leases, and are counted anyway.
        let mut used: BTreeMap<String, (Usage, bool)> = BTreeMap::new();
        for state in self.commits.states() {
            let (of, are_limited) = used.entry(tenant_of(state).to_owned()).or_insert((Usage::default(), true));
            *of = of.plus(state.counts.budgets.own);
            *are_limited &= state.decide_version >= LEASES_SINCE;
        }
        let has_forced_end = !self.rare_faults.may_be_quarantined.is_empty();
        for (organization, (used, are_limited)) in used {
            let query = UsageQuery {
                organization: organization.clone(),
                from: "2000-01-01".into(),
                to: "2100-01-01".into(),
                by_month: true,
                limit: 100,
                ..UsageQuery::default()
            };
            let rows = self.store.usage(&query).map_err(|error| error.to_string())?;
            let counted = rows.iter().fold(Usage::default(), |sum, row| sum.plus(row.used));
            if counted != used {
                return Err(format!("`{organization}` used {used:?}, and the store has counted {counted:?}"));
            }
            let Some((limit, _)) = self.settings.budget.limit.filter(|_| are_limited) else { continue };
            let month = Period::Month.at(START_MS);
            let account = self.store.period_account(&organization, "", &month).map_err(|error| error.to_string())?;
            let account = account.unwrap_or_default();
            let (calls, most) = (account.used.model_calls, limit + account.raised.model_calls);
            if used.model_calls > most || calls < used.model_calls || (calls > used.model_calls && !has_forced_end) {
                return Err(format!(
                    "`{organization}` made {} model calls of {most}, and its account has {calls}",
                    used.model_calls
                ));
            }
        }
        Ok(())
    }
}
