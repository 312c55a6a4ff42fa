//! Checks the configuration: settings, stored tokens, the key.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use mainspring_engine::keys;
use mainspring_kernel::value::{Map, Value};

use super::{Installation, check::Check};
use crate::{
    client::credentials::{self, Credentials},
    commands::config::without_password,
    error::CliError,
    paths,
    server_settings::{ServerFlags, Setting, Settings},
    store_location::StoreLocation,
};

/// All permissions of group and others.
pub(super) const OTHERS: u32 = 0o077;

/// Checks the settings, and reports the origin of each.
pub(super) fn check(flags: &ServerFlags, settings: &Result<Settings, CliError>) -> Check {
    let file = flags.file().map(|(path, _)| path);
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            let help = "correct the named setting; `mainspring config` shows the effective values, `mainspring explain settings` describes models, tool servers and rules";
            return Check::broken("settings", error.failure.message.clone(), help);
        }
    };
    let shown = |setting: &Setting| {
        let value = setting.value.as_deref()?;
        Some(if setting.name == "store" { without_password(value) } else { value.to_string() })
    };
    let given: Vec<String> = settings
        .all
        .iter()
        .filter(|setting| setting.origin != "default")
        .filter_map(|setting| Some(format!("{} {} ({})", setting.name, shown(setting)?, setting.origin)))
        .collect();
    let read = match &file {
        Some(path) if path.exists() => format!("{} is read", path.display()),
        Some(path) => format!("there is no {}", path.display()),
        None => "there is no file".into(),
    };
    let given = if given.is_empty() { "all as usual".to_string() } else { given.join(", ") };
    let message = format!("{read}; {given}");
    let one = |setting: &Setting| {
        let value =
            Value::map([("value", shown(setting).as_deref().into()), ("origin", setting.origin.as_str().into())]);
        (setting.name.to_string(), value)
    };
    let detail: Map = settings.all.iter().map(one).collect();
    let has_secret = |setting: &Setting| {
        setting.name == "store" && file.as_ref().is_some_and(|path| setting.origin == path.display().to_string())
    };
    let is_open = file.as_ref().filter(|path| settings.all.iter().any(has_secret) && others_may_read(path));
    let check = match is_open {
        Some(path) => {
            let message = format!("{message}; others may read the file, which has the address of the store");
            Check::warning("settings", message, format!("`chmod 600 {}`", path.display()))
        }
        None => Check::ok("settings", message),
    };
    check.with("settings", Value::Map(detail))
}

fn others_may_read(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0)
}

/// Checks the file of stored tokens.
pub(super) fn tokens() -> Check {
    let file = match credentials::file() {
        Ok(file) => file,
        Err(error) => return Check::skipped("tokens", error.failure.message),
    };
    if !file.exists() {
        return Check::ok("tokens", "no token for a server is stored");
    }
    let is_open = others_may_read(&file);
    match Credentials::load() {
        Ok(_) => Check::ok("tokens", format!("{} is yours alone", file.display())),
        Err(error) if is_open => {
            Check::broken("tokens", error.failure.message, format!("`chmod 600 {}`", file.display()))
        }
        Err(error) => {
            Check::broken("tokens", error.failure.message, "move the file away, and `mainspring login` again")
        }
    }
}

/// Checks the installation's key, and that the data folder or the store was created with it.
pub(super) fn key(installation: &Installation, begun_with: Option<&str>) -> Check {
    let file = match &installation.location {
        StoreLocation::Folder(home) => paths::key_file(&[home.folder()]),
        StoreLocation::Shared(_) => paths::key_file(&[]),
    };
    if begun_with.is_none() && fs::symlink_metadata(&file).is_err() {
        return Check::ok("key", format!("there is none yet; the first start creates {}", file.display()));
    }
    let key = match keys::load(&file) {
        Ok(key) => key,
        Err(error) => {
            let help = if file.exists() {
                format!("make it yours alone: `chmod 600 {}`; or restore your copy", file.display())
            } else {
                "restore your copy, or name its file with MAINSPRING_KEY_FILE".into()
            };
            return Check::broken("key", error.to_string(), help);
        }
    };
    match begun_with {
        Some(check) if !keys::is_key_of(check, &key) => {
            let message = format!(
                "{} is not the key that the store was created with: no journal can be verified",
                file.display()
            );
            Check::broken("key", message, "restore your copy, or name its file with MAINSPRING_KEY_FILE")
        }
        Some(_) => {
            Check::ok("key", format!("{} is private, and the key that the store was created with", file.display()))
        }
        None => Check::ok("key", format!("{} is yours alone", file.display())),
    }
}
