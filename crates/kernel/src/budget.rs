//! Budgets: what the calls of agents may use, and what they have used.
//!
//! A call reserves the most that it may use before it begins, and its receipt settles the reservation with what it has
//! used. A limit is therefore never exceeded by more than the difference between a reservation and its receipt. The
//! accounts are part of the state; `decide` reserves and settles, and each change is a record.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};

mod prices;

use crate::{
    limits::BUDGET_WARN_PERCENT_DEFAULT,
    value::{Map, Number, Value},
};

/// Billionths of a unit of the currency, in which costs are counted.
pub const COST_UNIT: u64 = 1_000_000_000;

/// An amount of each quantity that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of requests and answers.
    pub tokens: u64,
    /// Billionths of the currency.
    pub cost: u64,
    /// Requests to models that may have been paid for.
    pub model_calls: u64,
    /// Calls of tools by agents.
    pub tool_calls: u64,
    /// Milliseconds that these calls took, each counted by itself.
    pub time_ms: u64,
}

/// The number of quantities.
pub(crate) const QUANTITIES: usize = 5;

/// The names of the quantities, in the order of [`Usage::amounts`].
pub const NAMES: [&str; QUANTITIES] = ["tokens", "cost", "modelCalls", "toolCalls", "timeMs"];

/// The place of the cost among the quantities.
const COST: usize = 1;

/// The place of the time among the quantities. A call may take the time that is left, so only an empty budget refuses it.
pub const TIME: usize = 4;

impl Usage {
    /// The amounts in the order of [`NAMES`].
    pub fn amounts(&self) -> [u64; QUANTITIES] {
        [self.tokens, self.cost, self.model_calls, self.tool_calls, self.time_ms]
    }

    /// Makes a usage of amounts in the order of [`NAMES`].
    pub fn of_amounts([tokens, cost, model_calls, tool_calls, time_ms]: [u64; QUANTITIES]) -> Self {
        Self { tokens, cost, model_calls, tool_calls, time_ms }
    }

    fn with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let (own, other) = (self.amounts(), other.amounts());
        Self::of_amounts(core::array::from_fn(|place| combine(own[place], other[place])))
    }

    /// Adds another usage.
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Subtracts another usage, down to 0.
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// True if nothing is used.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the amounts that are not 0, as `{tokens, cost, modelCalls, toolCalls, timeMs}`.
    pub fn to_value(&self) -> Value {
        let amounts = NAMES.into_iter().zip(self.amounts()).enumerate().filter(|(_, (_, amount))| *amount > 0);
        Value::Map(amounts.map(|(place, (name, amount))| (name.to_string(), shown(place, amount))).collect::<Map>())
    }

    /// Reads amounts of any size that [`to_value`](Self::to_value) wrote; a missing one is 0.
    pub(crate) fn of_shown(value: &Value) -> Self {
        Self::of_amounts(core::array::from_fn(|place| {
            let amount = value.get(NAMES[place]);
            match place {
                // The conversion saturates.
                COST => amount
                    .and_then(Value::as_number)
                    .map_or(0, |units| (units.as_double() * COST_UNIT as f64 + 0.5) as u64),
                _ => amount.and_then(Value::as_u64).unwrap_or_default(),
            }
        }))
    }

    /// The same for costs up to a million; a larger one is 0.
    pub(crate) fn of_value(value: &Value) -> Self {
        Self::of_amounts(core::array::from_fn(|place| {
            let amount = value.get(NAMES[place]);
            match place {
                COST => amount.and_then(cost_of).unwrap_or_default(),
                _ => amount.and_then(Value::as_u64).unwrap_or_default(),
            }
        }))
    }
}

/// Returns an amount as people read it. A cost is a number of units of the currency.
fn shown(place: usize, amount: u64) -> Value {
    match place {
        COST => Number::double(amount as f64 / COST_UNIT as f64).map_or(Value::Null, Value::Number),
        _ => amount.into(),
    }
}

/// Reads a cost in units of the currency; `None` if it is no number from 0 to a million.
pub fn cost_of(value: &Value) -> Option<u64> {
    let units = value.as_number()?.as_double();
    // The sum rounds to the nearest billionth.
    (0.0..=1_000_000.0).contains(&units).then_some((units * COST_UNIT as f64 + 0.5) as u64)
}

/// The most that may be used of each quantity; `None` for no limit. In the order of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits(pub [Option<u64>; QUANTITIES]);

impl Limits {
    /// True if nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// True if the cost is limited.
    pub fn has_cost(&self) -> bool {
        self.0[COST].is_some()
    }

    /// Returns the stricter limit of each quantity.
    pub fn min(self, other: Self) -> Self {
        Self(core::array::from_fn(|place| match (self.0[place], other.0[place]) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        }))
    }

    /// Returns the limits as `{tokens, cost, …}`.
    pub fn to_value(&self) -> Value {
        let limits = NAMES.into_iter().zip(self.0).enumerate();
        let limits = limits.filter_map(|(place, (name, limit))| Some((name.to_string(), shown(place, limit?))));
        Value::Map(limits.collect::<Map>())
    }
}

/// A budget as a definition sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The most of each quantity; at least one is limited in a definition.
    pub limits: Limits,
    /// True if people are asked to raise a limit that is reached. Otherwise the step fails.
    pub asks: bool,
    /// The percentage of a limit at which a warning is recorded.
    pub warn_percent: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { limits: Limits::default(), asks: false, warn_percent: BUDGET_WARN_PERCENT_DEFAULT }
    }
}

/// The use of one budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The budget. Without limits, the account only counts.
    pub budget: Budget,
    /// The amounts by which people have raised the limits.
    pub raised: Usage,
    /// The amounts of settled calls.
    pub spent: Usage,
    /// The amounts that calls in progress and detached children may use.
    pub reserved: Usage,
    /// True if a warning was recorded since the last raise.
    pub is_warned: bool,
}

impl Account {
    /// Makes an unused account.
    pub fn of(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// The limits with all raises.
    pub fn limits(&self) -> Limits {
        let raised = self.raised.amounts();
        Limits(core::array::from_fn(|place| Some(self.budget.limits.0[place]?.saturating_add(raised[place]))))
    }

    /// The amounts that are left; `None` for no limit.
    pub fn left(&self) -> Limits {
        let used = self.spent.plus(self.reserved).amounts();
        let limits = self.limits().0;
        Limits(core::array::from_fn(|place| Some(limits[place]?.saturating_sub(used[place]))))
    }

    /// Returns the quantities of which less than `need` is left, by their places in [`NAMES`].
    pub(crate) fn lacks(&self, need: &Usage) -> Vec<usize> {
        let (left, need) = (self.left().0, need.amounts());
        (0..QUANTITIES).filter(|place| left[*place].is_some_and(|left| left < need[*place])).collect()
    }

    /// True if a limit is used up to the percentage of its warning.
    pub(crate) fn is_near_limit(&self) -> bool {
        let (limits, spent) = (self.limits().0, self.spent.amounts());
        let percent = u128::from(self.budget.warn_percent);
        (0..QUANTITIES).any(|place| {
            limits[place].is_some_and(|limit| u128::from(spent[place]) * 100 >= u128::from(limit) * percent)
        })
    }

    /// Returns `{used, reserved, limits, left, raised}`; the last three only for an account with limits.
    pub fn to_value(&self) -> Value {
        let mut map = Map::from([("used".to_string(), self.spent.to_value())]);
        if !self.reserved.is_zero() {
            map.insert("reserved".into(), self.reserved.to_value());
        }
        if !self.budget.limits.is_empty() {
            map.insert("limits".into(), self.limits().to_value());
            map.insert("left".into(), self.left().to_value());
        }
        if !self.raised.is_zero() {
            map.insert("raised".into(), self.raised.to_value());
        }
        Value::Map(map)
    }
}

/// The models of an installation when an execution starts: the default, and the price of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelTerms {
    /// The model of steps that name none.
    pub default: Option<String>,
    /// The currency of the prices, such as `USD`.
    pub currency: Option<String>,
    /// The date of the prices, as the settings give it.
    pub date: Option<String>,
    /// The models by name.
    pub models: BTreeMap<String, ModelTerm>,
    /// True if calls need a lease of the budgets of their period; see [`Leases`].
    pub needs_leases: bool,
    /// The number of people who have to approve a raise of a budget; 1 without a rule of the policy.
    pub raise_approvals: Option<u32>,
}

/// The settings of one model that budgets depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelTerm {
    /// The maximum tokens of an answer, unless the step says otherwise.
    pub max_tokens: Option<u64>,
    /// The price, if the settings have one.
    pub price: Option<Price>,
}

/// The price of a model, in billionths of the currency for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// A token of the request.
    pub input: u64,
    /// A token of the request that comes from the provider's cache.
    pub cached_input: u64,
    /// A token of the answer.
    pub output: u64,
}

impl Price {
    /// The cost of a call.
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> u64 {
        let cached = cached.min(input);
        let parts = [(input - cached, self.input), (cached, self.cached_input), (output, self.output)];
        parts.into_iter().fold(0, |sum, (tokens, price)| sum.saturating_add(tokens.saturating_mul(price)))
    }
}

impl ModelTerms {
    /// Returns the terms of a model, or of the default one without a name.
    pub fn of(&self, name: Option<&str>) -> Option<&ModelTerm> {
        self.models.get(name.or(self.default.as_deref())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(tokens: u64) -> Account {
        Account::of(Budget { limits: Limits([Some(tokens), None, None, None, None]), ..Budget::default() })
    }

    #[test]
    fn reservations_count_until_they_are_settled() {
        let tokens = |tokens: u64| Usage { tokens, ..Usage::default() };
        let mut account = account(100);
        account.reserved = account.reserved.plus(tokens(60));
        assert_eq!(account.lacks(&tokens(40)), []);
        assert_eq!(account.lacks(&tokens(41)), [0]);
        account.reserved = account.reserved.minus(tokens(60));
        account.spent = account.spent.plus(tokens(10));
        assert_eq!(account.left().0[0], Some(90));
        account.raised = tokens(50);
        assert_eq!(account.left().0[0], Some(140));
    }

    #[test]
    fn a_warning_is_due_at_its_percentage() {
        let mut account = account(10);
        account.spent.tokens = 7;
        assert!(!account.is_near_limit());
        account.spent.tokens = 8;
        assert!(account.is_near_limit());
    }

    #[test]
    fn amounts_are_read_as_they_are_written() {
        let usage = Usage { tokens: 7, cost: 2_500_000_001, model_calls: 1, tool_calls: 0, time_ms: 9 };
        assert_eq!(Usage::of_value(&usage.to_value()), usage);
        assert_eq!(Usage::of_value(&Value::Null), Usage::default());
        assert_eq!(cost_of(&Value::from("1")), None);
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_huge_numbers_saturate() {
        let price = Price { input: 3_000, cached_input: 300, output: 15_000 };
        assert_eq!(price.cost(100, 40, 10), 60 * 3_000 + 40 * 300 + 10 * 15_000);
        assert_eq!(price.cost(10, 40, 0), 10 * 300);
        assert_eq!(price.cost(u64::MAX, 0, u64::MAX), u64::MAX);
    }
}
