//! The cargo that runs this program.

use std::{env, process::Command};

/// The variables by which cargo describes the package of this program. Build scripts read them, so a build with them
/// compiles crates again that a build of the developer has compiled.
const OF_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Returns a command that runs cargo as a developer does in a shell.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        if OF_PACKAGE.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_has_no_variables_of_the_package() {
        let removed: Vec<String> = super::command()
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        assert!(removed.contains(&"CARGO_MANIFEST_DIR".to_owned()), "{removed:?}");
        assert!(removed.contains(&"CARGO_PKG_NAME".to_owned()), "{removed:?}");
    }
}
