//! The budget of a seed for a month, and the model that spends it.

use std::collections::BTreeMap;

use mainspring_engine::period_budgets::{Period, PeriodBudgets, PeriodicBudget};
use mainspring_kernel::{
    budget::{Budget, Limits, ModelTerm, ModelTerms},
    effect::Outcome,
    value::Value,
};
use mainspring_store::Store;

use crate::faults::Rng;

/// The maximum tokens of an answer of the model.
const ANSWER_TOKENS: u64 = 50;

/// The budget of every organization, and of the executions without one: its limit of model calls, and true if people are
/// asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeedBudget {
    /// The limit; `None` without a budget.
    pub limit: Option<(u64, bool)>,
}

impl SeedBudget {
    /// Draws the budget, often so small that calls are refused. Other draws of the seed do not depend on it.
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xB0D6_E700);
        let limit = *rng.pick(&[None, Some(1), Some(5), Some(1_000)]);
        Self { limit: limit.map(|limit| (limit, rng.chance(50))) }
    }
}

impl PeriodBudgets for SeedBudget {
    fn budgets(&self, _: &dyn Store, _: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        let budget = |(limit, asks)| PeriodicBudget {
            workflow: None,
            period: Period::Month,
            budget: Budget { limits: Limits([None, None, Some(limit), None, None]), asks, ..Budget::default() },
            set_at: None,
        };
        Ok(self.limit.map(budget).into_iter().collect())
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
