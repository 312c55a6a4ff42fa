//! Checks the sandboxes: each starts a sandbox, which must say hello.

use std::sync::Arc;

use mainspring_effects::{
    LiveProgress,
    sandbox::{Probed, probe},
};

use super::check::Check;
use crate::{
    context::block_on,
    error::CliError,
    runner,
    server_settings::{self, ServerFlags},
};

/// Checks all sandboxes. `None` if there are none.
pub(super) fn check(flags: &ServerFlags) -> Option<Check> {
    let settings = server_settings::object_settings_of(flags).ok()?;
    let profiles = match runner::profiles(&settings) {
        Ok(profiles) => profiles,
        Err(error) => {
            let help = "correct the named setting; docs/how-to/sandboxes.md describes `sandboxes`";
            return Some(Check::broken("sandboxes", error.failure.message, help));
        }
    };
    if profiles.all().is_empty() {
        return None;
    }
    let checked = block_on(async {
        let options = runner::sandbox_options(false, Arc::new(LiveProgress::default()));
        let folder = empty_folder()?;
        let mut found = Vec::new();
        for profile in profiles.all() {
            found.push((profile.name.clone(), probe(profile, &options, &folder.display().to_string()).await));
        }
        // It is empty, unless a sandbox has put something there.
        let _ = std::fs::remove_dir(&folder);
        Ok::<_, CliError>(found)
    });
    Some(match checked {
        Ok(found) => summary(&found),
        Err(error) => Check::broken("sandboxes", error.failure.message, "correct what the message names"),
    })
}

fn summary(found: &[(String, Result<Probed, String>)]) -> Check {
    let sentence = |(name, probed): &(String, Result<Probed, String>)| match probed {
        Ok(Probed { release, scripts, .. }) => format!("`{name}` starts `workflow` {release}, scripts {scripts}"),
        Err(why) => format!("`{name}`: {why}"),
    };
    let sentences: Vec<String> = found.iter().map(sentence).collect();
    let message = sentences.join("; ");
    match found.iter().all(|(_, probed)| probed.is_ok()) {
        true => Check::ok("sandboxes", message),
        false => Check::broken(
            "sandboxes",
            message,
            "correct `command` and `args` in `sandboxes` of the settings file; docs/how-to/sandboxes.md has examples",
        ),
    }
}

/// An empty folder in place of a workspace.
fn empty_folder() -> Result<std::path::PathBuf, CliError> {
    let folder = std::env::temp_dir().join(format!("mainspring-doctor-{}", std::process::id()));
    std::fs::create_dir(&folder)
        .map_err(|error| CliError::bad_input("no_folder", format!("the folder {}: {error}", folder.display())))?;
    Ok(folder)
}
