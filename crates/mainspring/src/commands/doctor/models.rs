//! Checks the configured models and tool servers: their settings and their keys. No request is sent.

use super::check::Check;
use crate::{
    models, period_budgets,
    server_settings::{self, ServerFlags},
    tool_servers,
};

/// Checks the settings of tool servers. `None` if there are none.
pub(super) fn check_tools(flags: &ServerFlags) -> Option<Check> {
    let settings = server_settings::object_settings_of(flags).ok()?;
    let servers = settings.tool_servers.as_map().map_or(0, |servers| servers.len());
    let help = "correct the named setting; docs/how-to/call-tools.md describes `mcpServers`";
    match tool_servers::mistakes(&settings) {
        Some(mistakes) => Some(Check::broken("tool servers", mistakes, help)),
        None if servers == 0 => None,
        None => Some(Check::ok("tool servers", format!("{servers} configured"))),
    }
}

/// Checks the settings and the keys. `mainspring models try` checks the connection, which may cost money.
pub(super) fn check(flags: &ServerFlags) -> Check {
    let Ok(settings) = server_settings::object_settings_of(flags) else {
        return Check::skipped("models", "see settings");
    };
    if let Err(error) = models::terms(&settings) {
        let help = "correct the named price; `mainspring explain settings` describes `prices`";
        return Check::broken("models", error.failure.message, help);
    }
    if let Err(error) = period_budgets::of_settings(&settings) {
        let help = "correct the named budget; docs/how-to/limit-agents.md describes `budgets`";
        return Check::broken("models", error.failure.message, help);
    }
    let models = match models::parse(&settings.path, &settings.models) {
        Ok(models) => models,
        Err(error) => {
            let help = "correct the named setting; `mainspring explain settings` describes `models`";
            return Check::broken("models", error.failure.message, help);
        }
    };
    if models.is_empty() {
        return Check::ok("models", "no model is configured");
    }
    let missing = models.iter().find_map(|model| model.key().err());
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    match missing {
        Some(error) => {
            let message = error.to_failure("models").message;
            let message = message.strip_prefix("step `models`: ").unwrap_or(&message).to_owned();
            Check::warning("models", message, "set the variable or the file of `apiKey`; steps that use the model fail")
        }
        None => Check::ok("models", format!("{} configured: {}", names.len(), names.join(", "))),
    }
}
