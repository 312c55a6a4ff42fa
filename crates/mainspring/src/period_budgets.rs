//! Budgets for a day or a month in the settings file.

use std::sync::Arc;

use mainspring_engine::period_budgets::{PeriodBudgets, PeriodicBudget, read};
use mainspring_kernel::value::Value;
use mainspring_server::StoredBudgets;

use crate::{error::CliError, known_names, server_settings::ObjectSettings};

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

/// The warning about a budget that limits the cost of models without a price, whose calls fail.
pub(crate) fn unpriced(settings: &ObjectSettings) -> Option<String> {
    let limits_cost = of_settings(settings).ok()?.iter().any(|budget| budget.budget.limits.has_cost());
    let known = known_names::of_settings(settings);
    let unpriced = known.models.iter().filter(|model| !known.priced.contains(&model.name));
    let names: Vec<String> = unpriced.map(|model| format!("`{}`", model.name)).collect();
    if names.is_empty() || !limits_cost {
        return None;
    }
    let (path, names) = (settings.path.display(), names.join(", "));
    Some(format!(
        "the settings in {path}: `budgets` limits the cost, and `prices.models` has no price for {names}, so calls of such a \
         model fail; add {{input: PRICE, output: PRICE}} for each, or limit `tokens`"
    ))
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

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn a_limit_of_the_cost_names_the_models_without_a_price() {
        let value = |text: &str| json::value(text.as_bytes()).unwrap();
        let models = r#"{"a": {"provider": "gemini", "model": "m", "default": true}, "b": {"provider": "gemini", "model": "n"}}"#;
        let check = |budgets: &str, prices: &str, expected: Option<&str>| {
            let (models, budgets, prices) = (value(models), value(budgets), value(prices));
            let found = unpriced(&ObjectSettings { models, budgets, prices, ..ObjectSettings::default() });
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(found, part)| found.contains(part)), "{found:?}");
        };
        let cost = r#"[{"period": "month", "cost": 20}]"#;
        check(cost, "null", Some("no price for `a`, `b`"));
        let of_a = r#"{"date": "2026-11-01", "currency": "USD", "models": {"a": {"input": 1, "output": 2}}}"#;
        check(cost, of_a, Some("no price for `b`"));
        check(r#"[{"period": "month", "tokens": 20}]"#, "null", None);
        check("null", "null", None);
    }
}
