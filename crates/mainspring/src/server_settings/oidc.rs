//! Settings of OpenID Connect. The client secret comes from the environment or from a separate file: arguments are
//! visible to every user of the machine, and the settings are displayed.

use std::{fs, io::Read, path::Path};

use clap::{Args, ValueHint};
use mainspring_server::auth::{oidc::Settings as Oidc, permission::Permission};

use super::{Setting, bad};
use crate::{error::CliError, scripts::ScriptSettings};

/// The variable with the client secret, which is never in the settings file.
pub(crate) const SECRET_VARIABLE: &str = "MAINSPRING_OIDC_CLIENT_SECRET";

/// The name of the secret in displayed settings, and the text shown for its value.
const SECRET: &str = "oidcClientSecret";
const HIDDEN: &str = "(not shown)";

/// Bytes of a secret file.
const SECRET_BYTES_MAX: u64 = 4096;

/// The flags.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sign-in by OpenID Connect")]
pub(crate) struct OidcFlags {
    /// The issuer URL of the OpenID Connect provider: https://login.example.com [env: MAINSPRING_OIDC_ISSUER]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    oidc_issuer: Option<String>,
    /// The client id of this server at the provider [env: MAINSPRING_OIDC_CLIENT_ID]
    #[arg(long, value_name = "ID")]
    oidc_client_id: Option<String>,
    /// A file with the client secret, unless MAINSPRING_OIDC_CLIENT_SECRET is set [env:
    /// MAINSPRING_OIDC_CLIENT_SECRET_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    oidc_client_secret_file: Option<String>,
    /// The requested scopes [default: openid email profile, env: MAINSPRING_OIDC_SCOPES]
    #[arg(long, value_name = "SCOPES")]
    oidc_scopes: Option<String>,
    /// The claim that identifies a member: email (verified), sub or another one [default: email, env:
    /// MAINSPRING_OIDC_CLAIM]
    #[arg(long, value_name = "CLAIM")]
    oidc_claim: Option<String>,
    /// The organization to sign in to; required if unknown users get a role and scripts are not off [default: default,
    /// env: MAINSPRING_OIDC_ORGANIZATION]
    #[arg(long, value_name = "ID")]
    oidc_organization: Option<String>,
    /// The role of unknown users: none, viewer or member [default: none, env: MAINSPRING_OIDC_FIRST_ROLE]
    #[arg(long, value_name = "ROLE")]
    oidc_first_role: Option<String>,
    /// Accepted domains of e-mail addresses; all by default [env: MAINSPRING_OIDC_EMAIL_DOMAINS]
    #[arg(long, value_name = "DOMAINS")]
    oidc_email_domains: Option<String>,
}

impl OidcFlags {
    /// The flags, in the order of the settings.
    pub(super) fn given(&self) -> [Option<String>; 8] {
        [
            self.oidc_issuer.clone(),
            self.oidc_client_id.clone(),
            self.oidc_client_secret_file.clone(),
            self.oidc_scopes.clone(),
            self.oidc_claim.clone(),
            self.oidc_organization.clone(),
            self.oidc_first_role.clone(),
            self.oidc_email_domains.clone(),
        ]
    }
}

/// Reads the provider settings, if there are any. Adds an entry to `all` that shows the origin of the secret.
pub(super) fn read(all: &mut Vec<Setting>) -> Result<Option<Oidc>, CliError> {
    let given = |name: &str| {
        let known = all.iter().find(|one| one.name == name && one.origin != "default");
        known.and_then(|one| one.value.clone())
    };
    let file = given("oidcClientSecretFile");
    let variable = std::env::var(SECRET_VARIABLE).ok().filter(|secret| !secret.is_empty());
    let (secret, origin) = match (variable, &file) {
        (Some(_), Some(file)) => {
            let why = format!("both {SECRET_VARIABLE} and the file {file} have a secret: remove one of them");
            return Err(bad(SECRET, why));
        }
        (Some(secret), None) => (Some(secret), SECRET_VARIABLE.to_string()),
        (None, Some(file)) => (Some(from_file(Path::new(file))?), file.clone()),
        (None, None) => (None, "default".to_string()),
    };
    let known = Oidc::of(|name| if name == SECRET { secret.clone() } else { given(name) });
    let known = known.map_err(|wrong| bad(wrong.name, wrong.why))?;
    all.push(Setting { name: SECRET, value: secret.map(|_| HIDDEN.into()), origin });
    Ok(known)
}

/// Rejects settings that implicitly give scripts to people whom only the provider knows. Members may run scripts,
/// and the default organization is that of the operators, so an operator must name the organization.
pub(super) fn check_first_role(
    oidc: &Oidc,
    scripts: &ScriptSettings,
    is_organization_said: bool,
) -> Result<(), CliError> {
    let Some(role) = oidc.first_role().filter(|_| !scripts.is_off()) else { return Ok(()) };
    if !is_organization_said {
        let why = format!(
            "every user of the provider would become a {} of `default`, the organization of the operators, on a server \
             that runs scripts: create an organization and set it with --oidc-organization, or set `--oidc-organization \
             default` if that is intended, or disable scripts (--scripts off)",
            role.name()
        );
        return Err(bad("oidcOrganization", why));
    }
    if scripts.is_uncontained() && Permission::ScriptsRun.is_of(role) {
        let why = format!(
            "as a {} every user of the provider may run scripts, and `scripts: uncontained` gives scripts all rights of this \
             user: use `viewer` or `none`, or `--scripts contained`",
            role.name()
        );
        return Err(bad("oidcFirstRole", why));
    }
    Ok(())
}

/// The text of a file without the trailing line break.
fn from_file(path: &Path) -> Result<String, CliError> {
    let refused = |why: String| bad("oidcClientSecretFile", format!("{}: {why}", path.display()));
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text));
    read.map_err(|error| refused(error.to_string()))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.trim().is_empty() || secret.contains('\n') || text.len() as u64 > SECRET_BYTES_MAX {
        return Err(refused("it must have the secret in it, one line and nothing else".into()));
    }
    Ok(secret.into())
}
