//! `mainspring login` and `logout`: stores a user's token for a server, and removes it.

use std::io::{self, BufRead, IsTerminal, Read};

use clap::{Args, ValueHint};
use mainspring_kernel::{json::compact, value::Value};

use crate::output::prompt::hidden;
use crate::{
    client::{
        Client,
        address::Address,
        credentials::{Credential, Credentials},
        response::Response,
        target::token_of_environment,
    },
    context::Context,
    context::block_on,
    error::{CliError, Exit},
    output::terminal::{bold, dim, print_out},
    output::text::shown,
};

/// Store a token for a server.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server [default: --server, MAINSPRING_SERVER]
    #[arg(value_hint = ValueHint::Url)]
    url: Option<String>,
}

/// Remove the stored token of a server.
#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The server [default: --server, MAINSPRING_SERVER, or the only server with a stored token]
    #[arg(value_hint = ValueHint::Url)]
    url: Option<String>,
}

/// Bytes that are read for a token.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// Reads a token from standard input or a hidden prompt, verifies it at the server, and stores it.
pub(crate) fn login(login: &Login, context: &Context) -> Result<Exit, CliError> {
    let address = named(login.url.as_deref(), context)?.ok_or_else(|| {
        CliError::contract("no_server", "name the server: `mainspring login https://mainspring.example.com`")
    })?;
    // This fails before the prompt, so that no token is typed in vain.
    Client::new(address.clone(), "none", context.global.plain_http)?;
    let mut stored = Credentials::load()?;
    let token = token(&address, context)?;
    let client = Client::new(address.clone(), &token, context.global.plain_http)?;
    let me = block_on(async { Ok(client.get("/api/me").await?) })?;
    let answer = Response::new(&client, "who asks", &me);
    let (user, role, organization) = (answer.text("userId")?, answer.text("role")?, answer.text("organizationId")?);
    stored.put(&address, Some(Credential { token, plain_http: context.global.plain_http }));
    let file = stored.store()?;
    if context.global.json {
        let told =
            [("server", address.to_string()), ("organizationId", organization), ("userId", user), ("role", role)];
        print_out!("{}", compact(&Value::map(told.map(|(key, value)| (key, Value::from(value.as_str()))))));
    } else {
        let who = format!("{} ({}) of {}", bold(&shown(&user)), shown(&role), shown(&organization));
        print_out!("you are {who} at {}", bold(&shown(&address.to_string())));
        print_out!(
            "{}",
            dim(&format!("the token is in {}; name the server with --server or MAINSPRING_SERVER", file.display()))
        );
    }
    if token_of_environment().is_some() {
        context.terminal.note("MAINSPRING_TOKEN is set, and takes precedence over the stored token");
    }
    Ok(Exit::Fine)
}

/// Removes the stored token of a server.
pub(crate) fn logout(logout: &Logout, context: &Context) -> Result<Exit, CliError> {
    let mut stored = Credentials::load()?;
    let address = match (named(logout.url.as_deref(), context)?, stored.only()) {
        (Some(address), _) => address,
        (None, Some(only)) => Address::parse(only)?,
        (None, None) => return Err(CliError::contract("no_server", "name the server: `mainspring logout URL`")),
    };
    if !stored.put(&address, None) {
        return Err(CliError::bad_input("no_token", format!("there is no stored token for {address}")));
    }
    stored.store()?;
    if context.global.json {
        print_out!("{}", compact(&Value::map([("server", Value::from(address.to_string().as_str()))])));
    } else {
        print_out!("signed out of {}", bold(&shown(&address.to_string())));
        print_out!("{}", dim("the token stays valid until it expires: DELETE /api/tokens/ID revokes it"));
    }
    Ok(Exit::Fine)
}

/// The server of the argument, or the one that all commands use.
fn named(url: Option<&str>, context: &Context) -> Result<Option<Address>, CliError> {
    let Some(url) = url else { return context.global.server() };
    if context.global.server.is_some() {
        return Err(CliError::bad_input("two_servers", "the server is named twice: leave out --server"));
    }
    Address::parse(url).map(Some)
}

/// Reads the token: a hidden line from a terminal, or a line of standard input.
fn token(address: &Address, context: &Context) -> Result<String, CliError> {
    let text = if io::stdin().is_terminal() { hidden(&format!("token for {address}: "), context)? } else { piped()? };
    let token = text.trim();
    let is_fine = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_fine {
        return Ok(token.to_string());
    }
    let message = "no token was given: one line with `msp_…`, as `mainspring up` and `mainspring token` show it";
    Err(CliError::contract("no_token", message))
}

fn piped() -> Result<String, CliError> {
    let mut text = String::new();
    let mut source = io::stdin().lock().take(TOKEN_BYTES_MAX);
    let read = source.read_line(&mut text);
    read.map_err(|error| CliError::bad_input("no_token", format!("standard input: {error}")))?;
    Ok(text)
}
