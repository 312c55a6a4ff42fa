//! The names of a settings file that definitions may use.

use mainspring_kernel::value::Value;
use mainspring_server::services::known_names::{KnownNames, ServedName};

use crate::{
    models, secrets,
    server_settings::{ObjectSettings, object_settings},
};

/// Returns the names of a settings file. A part with mistakes has none: the commands that use it report them.
pub(crate) fn of_settings(settings: &ObjectSettings) -> KnownNames {
    let models = models::parse(&settings.path, &settings.models).unwrap_or_default();
    let secrets = secrets::read(&settings.secrets).unwrap_or_default();
    let served = |name: &str, organizations: Option<Vec<String>>| ServedName { name: name.into(), organizations };
    KnownNames {
        models: models.iter().map(|model| served(&model.name, model.organizations.clone())).collect(),
        tool_servers: names(&settings.tool_servers).map(ServedName::from).collect(),
        secrets: secrets.iter().map(|secret| served(&secret.name, Some(secret.organizations.clone()))).collect(),
    }
}

/// Returns the names of this machine's settings file; none if it cannot be read.
pub(crate) fn of_machine() -> KnownNames {
    object_settings().map(|settings| of_settings(&settings)).unwrap_or_default()
}

fn names(map: &Value) -> impl Iterator<Item = &str> {
    map.as_map().into_iter().flatten().map(|(name, _)| name.as_str())
}
