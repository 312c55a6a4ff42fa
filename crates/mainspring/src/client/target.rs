//! Selects the server and the token from flags, environment and stored credentials.

use super::{Client, address::Address, credentials::Credentials};
use crate::{context::Global, error::CliError};

/// The variable with the meaning of `--server`, and the variable with the token.
const SERVER_VARIABLE: &str = "MAINSPRING_SERVER";
const TOKEN_VARIABLE: &str = "MAINSPRING_TOKEN";

impl Global {
    /// The server to use, if any: that of the flag, or that of the environment unless a flag names a folder or a
    /// store.
    pub(crate) fn server(&self) -> Result<Option<Address>, CliError> {
        let both = |message: &str| Err(CliError::bad_input("two_places", message));
        if let Some(server) = &self.server {
            if self.place_by_flag {
                return both("--server selects a server, --dir and --store a local store: give only one of them");
            }
            return Address::parse(server).map(Some);
        }
        let Some(server) = variable(SERVER_VARIABLE).filter(|_| !self.place_by_flag) else { return Ok(None) };
        if self.dir.is_some() || self.store.is_some() {
            return both(
                "MAINSPRING_SERVER and MAINSPRING_DIR or MAINSPRING_STORE are both set: unset one, or give --server, --dir or --store",
            );
        }
        Address::parse(&server).map(Some)
    }

    /// The server named by the flag or the environment, even if a folder or a store is named too.
    pub(crate) fn server_beside(&self) -> Result<Option<Address>, CliError> {
        let named = self.server.clone().or_else(|| variable(SERVER_VARIABLE));
        named.map(|named| Address::parse(&named)).transpose()
    }

    /// A client for a command that works with a server only.
    pub(crate) fn client_of(&self, command: &str) -> Result<Client, CliError> {
        self.client()?.ok_or_else(|| {
            let message = format!("`{command}` is for a server: name one with --server or MAINSPRING_SERVER");
            CliError::contract("no_server", message)
        })
    }

    /// A client for the server to use, if any.
    pub(crate) fn client(&self) -> Result<Option<Client>, CliError> {
        let Some(address) = self.server()? else { return Ok(None) };
        if self.telemetry.otlp.is_some() {
            let message = "--otlp exports traces of an engine on this machine; set it at the start of a server";
            return Err(CliError::bad_input("not_at_a_server", message));
        }
        if let Some(token) = token_of_environment() {
            return Client::new(address, &token, self.plain_http).map(Some);
        }
        let stored = Credentials::load()?;
        let Some(credential) = stored.of(&address) else {
            let message = format!(
                "there is no token for {address}: `mainspring login {address}` stores one, or set MAINSPRING_TOKEN"
            );
            return Err(CliError::contract("no_token", message));
        };
        let plain_http = self.plain_http || credential.plain_http;
        Client::new(address, &credential.token, plain_http).map(Some)
    }
}

/// The token of the environment, which takes precedence over a stored one.
pub(crate) fn token_of_environment() -> Option<String> {
    variable(TOKEN_VARIABLE).map(|token| token.trim().to_string())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
