//! Budgets for a day or a month in the settings file.

use std::sync::Arc;

use mainspring_engine::period_budgets::{PeriodBudgets, PeriodicBudget, read};
use mainspring_kernel::value::Value;
use mainspring_server::StoredBudgets;

use crate::{error::CliError, server_settings::ObjectSettings};

/// Reads the budgets. Mistakes are an error for every command that runs agents: none may run under fewer limits than the
/// file has.
pub(crate) fn of_settings(settings: &ObjectSettings) -> Result<Vec<PeriodicBudget>, CliError> {
    read(&settings.budgets).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        bad(settings, &errors.join("\n"))
    })
}

/// Reads the budgets of a server: they are of its organizations. Those of workflows are set at the server, which knows
/// them by their ids.
pub(crate) fn of_server(settings: &ObjectSettings) -> Result<Vec<PeriodicBudget>, CliError> {
    let budgets = of_settings(settings)?;
    match budgets.iter().find_map(|budget| budget.workflow.as_deref()) {
        None => Ok(budgets),
        Some(workflow) => {
            let why = format!(
                "budgets: a server has no budget of the workflow `{workflow}` in its file; set it with `mainspring budgets set --workflow {workflow}`"
            );
            Err(bad(settings, &why))
        }
    }
}

/// Refuses budgets for an executable whose executions share no store.
pub(crate) fn refuse(settings: &ObjectSettings) -> Result<(), CliError> {
    match settings.budgets == Value::Null {
        true => Ok(()),
        false => {
            let why = "budgets: each execution of `workflow` has a store of its own, so their use is not added up; run it with `mainspring run`, or use a file without `budgets` (MAINSPRING_CONFIG)";
            Err(bad(settings, why))
        }
    }
}

/// Provides the budgets to an engine.
pub(crate) fn source(budgets: Vec<PeriodicBudget>) -> Arc<dyn PeriodBudgets> {
    Arc::new(StoredBudgets { of_installation: budgets })
}

fn bad(settings: &ObjectSettings, why: &str) -> CliError {
    CliError::bad_input("bad_settings", format!("the settings in {}: {why}", settings.path.display()))
}
