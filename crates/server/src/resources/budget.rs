//! A budget of an organization or of one of its workflows for each day or month. Its id is the period, after the id of
//! the workflow and a dot if it is of one.

use std::collections::BTreeMap;

use mainspring_engine::period_budgets::{Period, PeriodicBudget};
use mainspring_kernel::budget::{Budget as Limited, Limits, NAMES};
use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// Stored form of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Id of the workflow. `None` for the whole organization.
    pub workflow: Option<String>,
    /// `day` or `month`.
    pub period: String,
    /// The limits by quantity. Costs are in billionths of the currency.
    pub limits: BTreeMap<String, u64>,
    /// True if people are asked to raise a limit that is reached.
    pub asks: bool,
    /// The percentage of a limit at which a warning is given.
    pub warn_percent: u32,
    /// Id of the member who set it last.
    pub set_by: String,
    /// Milliseconds since 1970.
    pub updated_at: u64,
    /// Number that no other budget of the organization has. It bounds their number, also if several are set at a time.
    pub slot: u32,
}

impl Resource for Budget {
    const KIND: &'static str = "budget";
    const DISPLAY_NAME: &'static str = "budget";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("slot", self.slot.to_string(), true)]
    }
}

impl Budget {
    /// Returns the id of a budget.
    pub fn id_of(workflow: Option<&str>, period: Period) -> String {
        match workflow {
            Some(workflow) => format!("{workflow}.{}", period.name()),
            None => period.name().into(),
        }
    }

    /// Returns the budget as executions are limited by it. `None` for a period that this release does not know.
    pub fn periodic(&self) -> Option<PeriodicBudget> {
        let limits = Limits(NAMES.map(|name| self.limits.get(name).copied()));
        let budget = Limited { limits, asks: self.asks, warn_percent: self.warn_percent };
        let (workflow, period) = (self.workflow.clone(), Period::parse(&self.period)?);
        Some(PeriodicBudget { workflow, period, budget, set_at: Some(self.updated_at) })
    }
}
