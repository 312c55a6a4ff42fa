//! `mainspring config`: shows the effective settings and the origin of each.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};
use mainspring_store::postgres::PostgresStore;

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::{dim, print_out},
    output::text::shown,
    server_settings::{ServerFlags, Settings},
};

/// Show the server's settings and the source of each
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(flatten)]
    flags: ServerFlags,
}

pub(crate) fn config(config: &Config, context: &Context) -> Result<Exit, CliError> {
    let settings = Settings::of(&config.flags, &context.global)?;
    let shown_value =
        |name: &str, value: &str| if name == "store" { without_password(value) } else { value.to_string() };
    if context.global.json {
        let one = |setting: &crate::server_settings::Setting| {
            let value = setting.value.as_deref().map(|value| shown_value(setting.name, value));
            let value = value.as_deref().map_or(Value::Null, Value::from);
            (setting.name, Value::map([("value", value), ("origin", setting.origin.as_str().into())]))
        };
        print_out!("{}", compact(&Value::map(settings.all.iter().map(one))));
        return Ok(Exit::Fine);
    }
    for setting in &settings.all {
        let value = setting.value.as_deref().map_or("-".to_string(), |value| shown_value(setting.name, value));
        print_out!("{:<27} {:<40} {}", setting.name, shown(&value), dim(&shown(&setting.origin)));
    }
    Ok(Exit::Fine)
}

/// The address without its password, or a placeholder if it cannot be parsed.
pub(super) fn without_password(address: &str) -> String {
    PostgresStore::shown_address(address).unwrap_or_else(|| "an address that cannot be read".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for address in
            ["postgres://ada:s3cret@host/db", "postgres://ada@host/db?password=s3cret", "postgres://ada:s3cret@"]
        {
            assert!(!without_password(address).contains("s3cret"), "{}", without_password(address));
        }
        assert!(without_password("postgres://ada:s3cret@host/db").contains("host"));
    }
}
