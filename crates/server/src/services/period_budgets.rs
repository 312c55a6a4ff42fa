//! Budgets for a day or a month, for the nodes that enforce them: those that organizations have set, and those of the
//! installation, which apply to each organization.

use mainspring_engine::period_budgets::{PeriodBudgets, PeriodicBudget};
use mainspring_store::Store;

use crate::resources::{Budget, repository::Repository};

/// The budgets of a server. The stricter limits count if both set one for the same period.
#[derive(Debug, Default)]
pub struct StoredBudgets {
    /// The budgets of the settings file.
    pub of_installation: Vec<PeriodicBudget>,
}

impl PeriodBudgets for StoredBudgets {
    fn budgets(&self, store: &dyn Store, organization: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        let Some(organization) = organization else { return Ok(self.of_installation.clone()) };
        // The file refers to workflows by their names in definitions, which several of an organization may have.
        let of_all = self.of_installation.iter().filter(|budget| budget.workflow.is_none());
        let mut budgets: Vec<_> = of_all.cloned().collect();
        for stored in Repository::of(store.catalogue(), organization).all::<Budget>(None) {
            let stored = stored.map_err(|problem| problem.full_message())?;
            let unknown = || format!("the budget `{}` has a period that this release does not know", stored.id);
            budgets.push(stored.body.periodic().ok_or_else(unknown)?);
        }
        Ok(budgets)
    }
}
