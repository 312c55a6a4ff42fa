//! The budgets of a seed for a month: every node leases from them, and what the store has counted is compared with the
//! journals.

use std::collections::BTreeMap;

use mainspring_engine::{
    evaluator::tenant_of,
    node::NodeEvent,
    period_budgets::{Period, PeriodBudgets, PeriodicBudget, WantedLease, lease},
    shard::{Event, PendingInput},
};
use mainspring_kernel::{
    budget::{Budget, Limits, ModelTerm, ModelTerms, Usage},
    decide::LEASES_SINCE,
    effect::Outcome,
    input::Input,
    value::Value,
};
use mainspring_store::{Store, UsageQuery, prelude::*};

use super::Cluster;
use crate::{faults::Rng, fixture::START_MS};

/// The maximum tokens of an answer of the model.
const ANSWER_TOKENS: u64 = 50;

/// The budget of every organization, and of the executions without one: its limit of model calls, and true if people are
/// asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeedBudget(Option<(u64, bool)>);

impl SeedBudget {
    /// Draws the budget, often so small that calls are refused. Other draws of the seed do not depend on it.
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xB0D6_E700);
        let limit = *rng.pick(&[None, Some(1), Some(5), Some(1_000)]);
        Self(limit.map(|limit| (limit, rng.chance(50))))
    }
}

impl PeriodBudgets for SeedBudget {
    fn budgets(&self, _: &dyn Store, _: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        let budget = |(limit, asks)| PeriodicBudget {
            workflow: None,
            period: Period::Month,
            budget: Budget { limits: Limits([None, None, Some(limit), None, None]), asks, ..Budget::default() },
        };
        Ok(self.0.map(budget).into_iter().collect())
    }
}

/// The terms of the only model.
pub(super) fn terms() -> ModelTerms {
    let term = ModelTerm { max_tokens: Some(ANSWER_TOKENS), price: None };
    let models = BTreeMap::from([("m".to_owned(), term)]);
    ModelTerms { default: Some("m".into()), models, needs_leases: true, ..ModelTerms::default() }
}

/// A final answer of the model in place of the result of another call.
pub(super) fn answer(outcome: Outcome) -> Outcome {
    let Outcome::Done(value) = outcome else { return outcome };
    let tokens = value.as_u64().unwrap_or_default() % ANSWER_TOKENS;
    let usage = Value::map([("inputTokens", 3u64.into()), ("outputTokens", tokens.into())]);
    Outcome::Done(Value::map([("text", "t".into()), ("toolCalls", Value::List(Vec::new())), ("usage", usage)]))
}

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
        // Executions of older rules need no leases, and are counted all the same.
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
            let Some((limit, _)) = self.settings.budget.0.filter(|_| are_limited) else { continue };
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
