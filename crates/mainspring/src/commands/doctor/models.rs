//! Checks the configured models, tool servers and agents: their settings, keys and programs. No request is sent.

use std::path::Path;

use super::check::Check;
use crate::{
    models, period_budgets, runners,
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

/// Checks the settings of external agents, and that their programs are there. `None` if there are none.
pub(super) fn check_runners(flags: &ServerFlags) -> Option<Check> {
    let settings = server_settings::object_settings_of(flags).ok()?;
    let agents = match runners::parse(&settings.path, &settings.agents) {
        Ok(agents) if agents.is_empty() => return None,
        Ok(agents) => agents,
        Err(mistakes) => {
            let help = "correct the named setting; docs/how-to/agents.md describes `agents`";
            return Some(Check::broken("agents", mistakes, help));
        }
    };
    if let Some(agent) = agents.iter().find(|agent| !is_program(&agent.command)) {
        let message = format!("the program `{}` of the agent `{}` is not in the PATH", agent.command, agent.name);
        return Some(Check::warning("agents", message, "install it, or give its path as `command`; its steps fail"));
    }
    let declared = |name: &str| settings.secrets.as_map().is_some_and(|secrets| secrets.contains_key(name));
    let missing =
        agents.iter().find_map(|agent| Some((agent, agent.secrets().find(|secret| !declared(&secret.name))?)));
    if let Some((agent, secret)) = missing {
        let message =
            format!("the agent `{}` uses the secret `{}`, which `secrets` does not name", agent.name, secret.name);
        let help = "add it to `secrets`, unless each organization stores its own; otherwise its steps fail";
        return Some(Check::warning("agents", message, help));
    }
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    Some(Check::ok("agents", format!("{} configured: {}", names.len(), names.join(", "))))
}

/// True if a program is a path of a file, or a name in the PATH.
fn is_program(command: &str) -> bool {
    if command.contains('/') {
        return Path::new(command).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
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
