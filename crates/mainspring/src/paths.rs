//! Paths of this machine: state, settings, the key, workspaces. They are read from the environment here and nowhere
//! else.

use std::{
    env,
    path::{Path, PathBuf},
};

use mainspring_engine::keys;

use crate::error::CliError;

/// Environment variables that are hidden from steps: the path of the key, the address of the store with its
/// password, the user's token for a server, and the server's client secret for its OpenID Connect provider.
pub const HIDDEN_VARIABLES: [&str; 4] =
    ["MAINSPRING_KEY_FILE", "MAINSPRING_STORE", "MAINSPRING_TOKEN", "MAINSPRING_OIDC_CLIENT_SECRET"];

/// Environment variables that are hidden from steps if the node exports traces: the credentials for the collector.
pub const HIDDEN_WITH_TRACES: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// The folder in a data folder with the cache of repositories.
pub(crate) const REPOSITORY_CACHE: &str = "repositories";

/// The file in the data folder that contains the owner's first token, if no terminal shows it.
pub(crate) const FIRST_TOKEN: &str = "first-token";

/// The user's folder for state: `$XDG_STATE_HOME`, or `~/.local/state`.
pub fn state_home() -> Result<PathBuf, CliError> {
    let home = || absolute("HOME").map(|home| home.join(".local/state"));
    absolute("XDG_STATE_HOME").or_else(home).ok_or_else(|| {
        CliError::bad_input(
            "no_state_folder",
            "neither XDG_STATE_HOME nor HOME is set: set one of them, or give a folder as an option (--help)",
        )
    })
}

/// The user's folder for settings: `$XDG_CONFIG_HOME`, or `~/.config`.
pub fn config_home() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
}

/// The file of the installation's key. A default location inside of the folders in `avoid` is not used.
pub fn key_file(avoid: &[&Path]) -> PathBuf {
    let given = env::var_os("MAINSPRING_KEY_FILE").map(PathBuf::from);
    keys::location(given, absolute("XDG_CONFIG_HOME"), absolute("HOME"), avoid)
}

/// The canonical path of a workspace, which must be an existing folder.
pub fn workspace(path: &Path) -> Result<PathBuf, CliError> {
    let refused =
        |why: String| CliError::bad_input("bad_workspace", format!("the workspace {}: {why}", path.display()));
    let real = path.canonicalize().map_err(|error| refused(format!("{error}; create it first, or use another")))?;
    if !real.is_dir() {
        return Err(refused("it is not a folder".into()));
    }
    Ok(real)
}

/// A path as text. Journals and JSON contain text only, so a path that is not UTF-8 is an error.
pub fn text(path: &Path) -> Result<String, CliError> {
    let text = path.to_str().map(ToString::to_string);
    text.ok_or_else(|| CliError::bad_input("bad_path", format!("{} is not UTF-8", path.display())))
}

/// The name of the user of this process, from the user database. Environment variables
/// could be forged.
pub fn user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(&users, uid).unwrap_or_else(|| format!("uid:{uid}"))
}

/// Finds the name of a user in a file in the format of passwd(5).
fn name_of(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, found) = (fields.next()?, fields.next()?, fields.next()?);
        (found.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_string())
    })
}

/// Reads a path from the environment. The XDG specification says that a relative path counts as unset.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Extensions of definition files, in the order in which they are tried.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Returns the file of a workflow in a folder.
pub(crate) fn beside(name: &str, folder: &Path) -> Option<PathBuf> {
    // A name is not a path, so nothing outside of the folder is read.
    let is_plain = !name.contains(['/', '\\', '\0']) && name != "." && name != "..";
    let candidates = ENDINGS.iter().map(|ending| folder.join(format!("{name}.{ending}")));
    candidates.filter(|_| is_plain).find(|path| path.is_file())
}

/// The maximum number of files of a folder that are listed.
const LISTED_MAX: usize = 2_000;

/// Returns the names of the workflows in a folder: those of its definition files without the extension.
pub(crate) fn workflows_in(folder: &Path) -> Vec<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let name_of = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let ending = path.extension()?.to_str()?;
        let name = path.file_stem()?.to_str()?;
        let is_definition = ENDINGS.contains(&ending) && !name.ends_with(".scenario") && !name.starts_with('.');
        is_definition.then(|| name.to_string())
    };
    let mut names: Vec<String> = entries.take(LISTED_MAX).flatten().filter_map(name_of).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_names_of_the_user_database() {
        let users = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/users/ada:/bin/sh\nbroken\n";
        assert_eq!(name_of(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_of(users, 7), None);
    }
}
