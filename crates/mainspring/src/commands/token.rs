//! `mainspring token`: creates a token of a member, for an operator with access to the store.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};
use mainspring_server::services::{
    bootstrap,
    issue_token::{NewToken, issue},
};
use mainspring_store::SealedStore;

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::print_out,
    paths,
    server_settings::{ServerFlags, Settings},
    store_location::StoreLocation,
};

/// Create a token for a member of the server
#[derive(Debug, Args)]
pub(crate) struct Token {
    /// The id of the member
    #[arg(default_value = bootstrap::OWNER)]
    member: String,
    /// The id of the organization
    #[arg(long, value_name = "ID", default_value = bootstrap::ORGANIZATION)]
    organization: String,
    /// The name of the token
    #[arg(long, default_value = "created on the command line")]
    name: String,
    #[command(flatten)]
    flags: ServerFlags,
}

pub(crate) fn token(token: &Token, context: &Context) -> Result<Exit, CliError> {
    let settings = Settings::of(&token.flags, &context.global)?;
    let location = StoreLocation::of(&settings.global)?;
    if location.home().is_some_and(|home| !home.journal().exists()) {
        let message = "there is no server's store here yet; `mainspring up` creates one, with a token";
        return Err(CliError::bad_input("no_store", message));
    }
    let store = location.store()?;
    let key = location.key(&*store)?;
    let store = SealedStore::over(store, key);
    let by = paths::user();
    let new = NewToken {
        organization: &token.organization,
        user: &token.member,
        name: &token.name,
        by: &by,
        expires_at_ms: None,
    };
    let made = issue(store.catalogue(), &key, &new);
    let text = made.map_err(|problem| CliError::bad_input("no_token", problem.full_message()))?;
    if context.global.json {
        print_out!(
            "{}",
            compact(&Value::map([("token", text.as_str())].map(|(key, value)| (key, Value::from(value)))))
        );
    } else {
        print_out!("{text}");
    }
    Ok(Exit::Fine)
}
