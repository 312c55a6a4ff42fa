//! The repositories of the settings file: `repositories`.
//!
//! ```yaml
//! repositories:
//!   hosts: [github.com, "https://git.example.com:8443"]
//!   maxBytes: 1073741824
//!   cacheBytes: 4294967296
//!   timeoutMs: 100000
//! ```

use std::{path::Path, sync::Arc, time::Duration};

use mainspring_effects::{
    git::{
        CACHE_BYTES_DEFAULT, CHECKOUT_TIMEOUT_DEFAULT, CHECKOUT_TIMEOUT_MAX, Host, PACK_BYTES_DEFAULT, PACK_BYTES_MAX,
        Repositories, RepositoryOptions,
    },
    http::HttpOptions,
    sandbox::Profiles,
    secrets::SecretSource,
    shell::{self, contain::Scripts},
};
use mainspring_kernel::value::{Map, Value};

use crate::{
    error::CliError, paths::REPOSITORY_CACHE, runner::http_allow, secrets::NodeSecrets, server_settings::ObjectSettings,
};

/// The keys of the setting.
const KEYS: [&str; 4] = ["hosts", "maxBytes", "cacheBytes", "timeoutMs"];

/// The smallest bound of a pack: less than that holds no repository.
const PACK_BYTES_MIN: u64 = 1 << 20;

/// The largest cache: a large disk.
const CACHE_BYTES_MAX: u64 = 1 << 44;

/// The setting.
#[derive(Debug, PartialEq)]
pub(crate) struct RepositorySettings {
    pub(crate) hosts: Vec<Host>,
    pack_bytes_max: u64,
    cache_bytes_max: u64,
    timeout: Duration,
}

impl RepositorySettings {
    /// Reads the setting; `None` for null. The error is a sentence with its place.
    pub(crate) fn read(setting: &Value) -> Result<Option<Self>, String> {
        let map = match setting {
            Value::Null => return Ok(None),
            Value::Map(map) => map,
            other => return Err(format!("repositories: write `{{hosts: [github.com]}}`, not {}", other.kind())),
        };
        if let Some(unknown) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("repositories: `{unknown}` is unknown; there are {}", KEYS.join(", ")));
        }
        let timeout_max = u64::try_from(CHECKOUT_TIMEOUT_MAX.as_millis()).unwrap_or(u64::MAX);
        let timeout_default = u64::try_from(CHECKOUT_TIMEOUT_DEFAULT.as_millis()).unwrap_or(u64::MAX);
        Ok(Some(Self {
            hosts: hosts(map)?,
            pack_bytes_max: number(map, "maxBytes", PACK_BYTES_DEFAULT, (PACK_BYTES_MIN, PACK_BYTES_MAX))?,
            cache_bytes_max: number(map, "cacheBytes", CACHE_BYTES_DEFAULT, (0, CACHE_BYTES_MAX))?,
            timeout: Duration::from_millis(number(map, "timeoutMs", timeout_default, (1_000, timeout_max))?),
        }))
    }
}

fn hosts(map: &Map) -> Result<Vec<Host>, String> {
    let list = map.get("hosts").and_then(Value::as_list);
    let texts = list.and_then(|list| list.iter().map(Value::as_text).collect::<Option<Vec<&str>>>());
    let texts = texts.ok_or("repositories.hosts: write a list of hosts, such as `[github.com]`")?;
    Host::parse_all(texts).map_err(|why| format!("repositories.hosts: {why}"))
}

fn number(map: &Map, key: &str, default: u64, (least, most): (u64, u64)) -> Result<u64, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => {
            let number = value.as_u64().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("repositories.{key}: it must be a whole number from {least} to {most}"))
        }
    }
}

/// The reason why this machine cannot check out repositories.
pub(crate) fn missing(scripts: &Scripts) -> Option<String> {
    match scripts {
        Scripts::Contained(_) if shell::git().is_none() => {
            Some("there is no git in the PATH of the server (`apt-get install git`)".into())
        }
        Scripts::Contained(_) => None,
        Scripts::Uncontained => {
            Some("Git reads them in a container, and the configuration says `scripts: uncontained`".into())
        }
        Scripts::Off(why) => Some(format!("Git reads them in a container, and scripts are off, because {why}")),
    }
}

/// The repositories of a node. A mistake in the setting stops the start; a machine that lacks something uses none.
pub(crate) fn open(
    settings: &ObjectSettings,
    (scripts, sandboxes): (&Scripts, &Profiles),
    secrets: &Arc<NodeSecrets>,
    data_folder: &Path,
) -> Result<Repositories, CliError> {
    let read = RepositorySettings::read(&settings.repositories).map_err(|why| {
        let message = format!("the settings in {}: {why}", settings.path.display());
        CliError::bad_input("bad_settings", message)
    })?;
    let Some(RepositorySettings { hosts, pack_bytes_max, cache_bytes_max, timeout }) = read else {
        let why = "its operator names no hosts; add `repositories: {hosts: [github.com]}` to the settings file";
        return Ok(Repositories::off(why));
    };
    let container = match (missing(scripts), scripts) {
        (None, Scripts::Contained(container)) => container.clone(),
        (why, _) => return Ok(Repositories::off(why.unwrap_or_default())),
    };
    Ok(Repositories::new(RepositoryOptions {
        hosts,
        http: HttpOptions { allow: http_allow()?, ..HttpOptions::default() },
        container,
        sandboxes: sandboxes.clone(),
        secrets: Some(secrets.clone() as Arc<dyn SecretSource>),
        cache: data_folder.join(REPOSITORY_CACHE),
        pack_bytes_max,
        cache_bytes_max,
        timeout,
    }))
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn the_setting_is_read_or_refused_with_its_place() {
        let read = |text: &str| RepositorySettings::read(&json::data(text.as_bytes()).unwrap());
        assert_eq!(read("null"), Ok(None));
        let full = r#"{"hosts": ["github.com"], "maxBytes": 2097152, "cacheBytes": 0, "timeoutMs": 5000}"#;
        let full = read(full).unwrap().unwrap();
        assert_eq!((full.hosts.len(), full.pack_bytes_max, full.cache_bytes_max), (1, 2 << 20, 0));
        assert_eq!(full.timeout, Duration::from_secs(5));
        for (text, word) in [
            ("[]", "write `{hosts"),
            ("{}", "repositories.hosts"),
            (r#"{"hosts": []}"#, "at least one"),
            (r#"{"hosts": ["ssh://github.com"]}"#, "no host"),
            (r#"{"hosts": ["github.com"], "maxBytes": 7}"#, "repositories.maxBytes"),
            (r#"{"hosts": ["github.com"], "timeoutMs": "1s"}"#, "repositories.timeoutMs"),
            (r#"{"hosts": ["github.com"], "depth": 1}"#, "`depth` is unknown"),
        ] {
            assert!(read(text).is_err_and(|why| why.contains(word)), "{text}");
        }
    }
}
