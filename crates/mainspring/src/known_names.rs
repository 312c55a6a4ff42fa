//! The names of a settings file that definitions may use.

use mainspring_kernel::value::Value;
use mainspring_models::prices;
use mainspring_server::services::known_names::{KnownNames, ServedName};

use crate::{
    secrets,
    server_settings::{ObjectSettings, object_settings},
};

/// Returns the names of a settings file. A part with mistakes has none: the commands that use it report them.
pub(crate) fn of_settings(settings: &ObjectSettings) -> KnownNames {
    let models = mainspring_models::config::models(&settings.models).unwrap_or_default();
    let secrets = secrets::read(&settings.secrets).unwrap_or_default();
    let served = |name: &str, organizations: Option<Vec<String>>| ServedName { name: name.into(), organizations };
    let runners = mainspring_acp::config::agents(&settings.agents).unwrap_or_default();
    let terms = prices::terms(&settings.prices, &models).unwrap_or_default();
    let priced = terms.models.into_iter().filter(|(_, term)| term.price.is_some()).map(|(name, _)| name);
    KnownNames {
        models: models.iter().map(|model| served(&model.name, model.organizations.clone())).collect(),
        tool_servers: names(&settings.tool_servers).map(ServedName::from).collect(),
        secrets: secrets.iter().map(|secret| served(&secret.name, Some(secret.organizations.clone()))).collect(),
        runners: runners.iter().map(|runner| ServedName::from(runner.name.as_str())).collect(),
        default_model: terms.default,
        priced: priced.collect(),
    }
}

/// Returns the names of this machine's settings file; none if it cannot be read.
pub(crate) fn of_machine() -> KnownNames {
    object_settings().map(|settings| of_settings(&settings)).unwrap_or_default()
}

fn names(map: &Value) -> impl Iterator<Item = &str> {
    map.as_map().into_iter().flatten().map(|(name, _)| name.as_str())
}
