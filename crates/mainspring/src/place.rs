//! Where things are kept on this machine: state, the key, the workspace. Read from the environment once, here.

use std::{
    env,
    path::{Path, PathBuf},
};

use mainspring_engine::keys;

use crate::exit::Refusal;

/// Names of variables that steps never see.
pub const HIDDEN_VARIABLES: [&str; 1] = ["MAINSPRING_KEY_FILE"];

/// The user's folder for state: `$XDG_STATE_HOME`, or `~/.local/state`.
pub fn state_home() -> Result<PathBuf, Refusal> {
    let home = || absolute("HOME").map(|home| home.join(".local/state"));
    absolute("XDG_STATE_HOME").or_else(home).ok_or_else(|| {
        Refusal::bad_input("no_state_folder", "neither XDG_STATE_HOME nor HOME is set: name a folder with --state-dir")
    })
}

/// The file of the installation's key, outside of the folders that are to be avoided.
pub fn key_file(avoid: &[&Path]) -> PathBuf {
    let given = env::var_os("MAINSPRING_KEY_FILE").map(PathBuf::from);
    keys::location(given, absolute("XDG_CONFIG_HOME"), absolute("HOME"), avoid)
}

/// A folder to work in: there, and by its one real path.
pub fn workspace(path: &Path) -> Result<PathBuf, Refusal> {
    let refused = |why: String| Refusal::bad_input("bad_workspace", format!("the workspace {}: {why}", path.display()));
    let real = path.canonicalize().map_err(|error| refused(format!("{error}; make it first, or name another")))?;
    if !real.is_dir() {
        return Err(refused("it is not a folder".into()));
    }
    Ok(real)
}

/// A path as text: it is journalled, and JSON is text.
pub fn text(path: &Path) -> Result<String, Refusal> {
    let text = path.to_str().map(ToString::to_string);
    text.ok_or_else(|| Refusal::bad_input("bad_path", format!("{} is not UTF-8", path.display())))
}

/// Who is at the keyboard, by the operating system.
pub fn user() -> String {
    let uid = rustix::process::getuid().as_raw();
    env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| format!("uid:{uid}"))
}

/// The specification for relative paths: they count as unset.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
