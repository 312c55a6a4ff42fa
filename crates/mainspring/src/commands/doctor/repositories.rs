//! Checks the repositories of the settings file. No remote is asked.

use super::{Installation, check::Check};
use crate::repositories::{RepositorySettings, missing};

/// Checks the setting, and what checkouts need. `None` if no host is configured.
pub(super) fn check(installation: &Installation) -> Option<Check> {
    let settings = installation.settings.as_ref()?;
    let help = "correct the named setting; docs/how-to/repositories.md describes `repositories`";
    let hosts = match RepositorySettings::read(&settings.objects.repositories) {
        Ok(read) => read?.hosts,
        Err(why) => return Some(Check::broken("repositories", why, help)),
    };
    let Ok(scripts) = settings.scripts.in_force(&installation.global, false) else {
        return Some(Check::skipped("repositories", "see containers"));
    };
    if let Some(why) = missing(&scripts) {
        let help = "install git and bubblewrap, and keep `scripts: contained`; executions with a repository fail";
        return Some(Check::broken("repositories", format!("none can be used: {why}"), help));
    }
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    Some(Check::ok("repositories", format!("from {}", hosts.join(", "))))
}
