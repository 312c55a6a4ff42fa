//! Checks HashiCorp Vault, if the settings name one: it answers, and each secret with this source can be read. Values
//! are not shown.

use super::check::Check;
use crate::{
    context::block_on,
    secrets::NodeSecrets,
    server_settings::{self, ServerFlags},
};

const NAME: &str = "vault";

/// Most mistakes that are shown; the rest is counted.
const MISTAKES_MAX: usize = 3;

/// Checks the server. `None` without one. Mistakes in the settings of secrets are those of this check too.
pub(super) fn check(flags: &ServerFlags) -> Option<Check> {
    let settings = server_settings::object_settings_of(flags).ok()?;
    let help = "docs/how-to/secrets.md describes `vault` and its secrets; steps that use these secrets fail";
    let secrets = match NodeSecrets::of(&settings) {
        Ok(secrets) => secrets,
        Err(error) => return Some(Check::broken("secrets", error.failure.message, help)),
    };
    let checked = block_on(async { Ok(secrets.check_vault().await) });
    match checked {
        Ok(None) => None,
        Ok(Some((address, Ok(count)))) => {
            let word = if count == 1 { "secret" } else { "secrets" };
            Some(Check::ok(NAME, format!("{address} answers, and {count} {word} can be read")))
        }
        Ok(Some((_, Err(mistakes)))) => {
            let rest = mistakes.len().saturating_sub(MISTAKES_MAX);
            let mut shown = mistakes.into_iter().take(MISTAKES_MAX).collect::<Vec<_>>();
            if rest > 0 {
                shown.push(format!("{rest} more"));
            }
            Some(Check::broken(NAME, shown.join("; "), help))
        }
        Err(error) => Some(Check::broken(NAME, error.failure.message, help)),
    }
}
