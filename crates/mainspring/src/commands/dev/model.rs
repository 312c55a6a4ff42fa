//! `mainspring dev model`: the scripted model. It ships with the product, so that examples run without an account.

use std::{fs, net::SocketAddr, path::PathBuf};

use clap::{Args, ValueHint};
use mainspring_kernel::{json::compact, value::Value};
use mainspring_models::dev::{Script, ScriptedModel};

use crate::{
    context::{Context, block_on},
    error::{CliError, Exit},
    output::terminal::print_out,
};

/// The scripted model.
#[derive(Debug, Args)]
pub(super) struct Model {
    /// The script: a YAML or JSON file with `answers`
    #[arg(value_hint = ValueHint::FilePath)]
    script: PathBuf,
    /// The address to listen on; port 0 selects a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,
}

/// Serves the model until a signal stops it.
pub(super) fn model(model: &Model, context: &Context) -> Result<Exit, CliError> {
    let refused = |why: String| CliError::bad_input("bad_script", format!("{}: {why}", model.script.display()));
    let bytes = fs::read(&model.script).map_err(|error| refused(error.to_string()))?;
    let script = Script::parse(&bytes).map_err(|error| refused(error.to_string()))?;
    block_on(async {
        context.signals.install()?;
        let cannot = |error: std::io::Error| {
            let message = format!("{} cannot be listened on: {error}; name another with --listen", model.listen);
            CliError::bad_input("listen", message)
        };
        let server = ScriptedModel::bind(model.listen, script).map_err(cannot)?;
        let address = server.address().map_err(cannot)?;
        match context.global.json {
            true => print_out!("{}", compact(&Value::map([("url", Value::from(format!("http://{address}")))]))),
            false => print_out!("The scripted model listens on http://{address}; GET /requests counts its requests"),
        }
        tokio::select! {
            error = server.run() => Err(cannot(error)),
            () = context.signals.any() => Ok(Exit::Fine),
        }
    })
}
