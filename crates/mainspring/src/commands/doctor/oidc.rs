//! Checks the OpenID Connect provider, if one is configured: its metadata and keys must be usable.

use std::sync::Arc;

use mainspring_server::auth::oidc::Provider;

use super::{
    Installation,
    check::{Check, Report},
};
use crate::{client::oidc_fetch::Fetcher, context::block_on};

const NAME: &str = "oidc";

/// Checks the provider. Without one there is no check.
pub(super) fn check(installation: &Installation, report: &mut Report) {
    let Some(settings) = installation.settings.as_ref().and_then(|settings| settings.oidc.clone()) else { return };
    let issuer = settings.issuer.clone();
    let asked = block_on(async {
        let provider = Provider::new(settings, Arc::new(Fetcher::new()?));
        Ok(provider.check().await)
    });
    report.add(match asked {
        Ok(Ok(0)) => {
            let help = "publish there a key that it signs with: until then sign-in does not work";
            Check::broken(NAME, format!("{issuer} answers, and publishes no key that is known here"), help)
        }
        Ok(Ok(keys)) => {
            let word = if keys == 1 { "key" } else { "keys" };
            Check::ok(NAME, format!("{issuer} answers, with {keys} {word}")).with("keys", keys as i64)
        }
        Ok(Err(why)) => {
            let help = "compare the settings `oidc…` with the configuration of the provider, and check that this machine \
                        reaches it and trusts its certificate";
            Check::broken(NAME, why, help)
        }
        Err(error) => Check::broken(
            NAME,
            error.failure.message,
            "correct what the message names, and run `mainspring doctor` again",
        ),
    });
}
