//! `mainspring models`: lists the configured models, and sends a prompt to one.

use clap::{Args, Subcommand};
use mainspring_effects::{CancelHandle, Executor};
use mainspring_kernel::{effect::Outcome, json::compact, value::Value};
use mainspring_models::config::{self, ModelConfig};

use crate::{
    context::{Context, Global, block_on},
    error::{CliError, Exit},
    integrations::QUESTION,
    models,
    output::{
        terminal::{bold, dim, print_out},
        text::shown,
    },
    secrets::NodeSecrets,
    server_settings::object_settings,
};

/// List the configured models, or ask one
#[derive(Debug, Args)]
pub(crate) struct Models {
    #[command(subcommand)]
    action: Option<Action>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Action {
    /// Send one short question to a model, and print its answer and the tokens
    Try(Try),
}

/// The model to ask.
#[derive(Debug, Args)]
struct Try {
    /// The name of the model [default: the default model]
    name: Option<String>,
    /// The question
    #[arg(long, default_value = QUESTION)]
    goal: String,
}

/// Runs the command.
pub(crate) fn models(command: &Models, context: &Context) -> Result<Exit, CliError> {
    let configured = models::models()?;
    match &command.action {
        None => {
            configured.iter().for_each(|model| print(model, &context.global));
            if configured.is_empty() && !context.global.json {
                print_out!("{}", dim("no model is configured; `mainspring explain settings` shows how"));
            }
            Ok(Exit::Fine)
        }
        Some(Action::Try(wanted)) => ask(configured, wanted, context),
    }
}

fn print(model: &ModelConfig, global: &Global) {
    let provider = model.provider.name();
    if global.json {
        let line = Value::map([
            ("name", model.name.as_str().into()),
            ("provider", provider.into()),
            ("model", model.model.as_str().into()),
            ("baseUrl", model.base_url.as_str().into()),
            ("default", model.is_default.into()),
            ("hasKey", (model.secret().is_some() || model.key().is_ok_and(|key| key.is_some())).into()),
        ]);
        print_out!("{}", compact(&line));
        return;
    }
    let mark = if model.is_default { " (default)" } else { "" };
    let key = match model.key() {
        _ if model.secret().is_some() => "with a key that is a secret",
        Ok(Some(_)) => "with a key",
        Ok(None) => "without a key",
        Err(_) => "its key is missing",
    };
    let rest = match &model.script {
        Some(script) => format!("{provider}  {}  the script {}", model.model, script.display()),
        None => format!("{provider}  {}  {}  {key}", model.model, model.base_url),
    };
    print_out!("{}{mark}  {}", bold(&shown(&model.name)), dim(&shown(&rest)));
}

/// Sends a prompt to a model through the executor of `agent` steps, so that a step behaves the same.
fn ask(configured: Vec<ModelConfig>, wanted: &Try, context: &Context) -> Result<Exit, CliError> {
    let refused =
        |error: mainspring_models::ModelError| CliError { exit: Exit::Failed, failure: error.to_failure("try") };
    let name = config::find(&configured, wanted.name.as_deref(), None).map_err(refused)?.name.clone();
    let secrets = NodeSecrets::of(&object_settings()?)?;
    let agents = models::executor_of(configured, None)?.with_secrets(Some(secrets));
    let attempt = models::question(&wanted.goal, &name, None)?;
    let outcome = block_on(async {
        context.signals.install()?;
        let (handle, signal) = CancelHandle::pair();
        let mut performed = agents.perform(&attempt, signal);
        tokio::select! {
            outcome = &mut performed => Ok(outcome),
            () = context.signals.any() => {
                handle.cancel();
                Ok(performed.await)
            }
        }
    })?;
    match outcome {
        Outcome::Done(value) if context.global.json => print_out!("{}", compact(&value)),
        Outcome::Done(value) => {
            let text = value.get("text").and_then(Value::as_text).unwrap_or_default();
            print_out!("{}", shown(text));
            let usage = value.get("usage").map(compact).unwrap_or_default();
            print_out!("{}", dim(&format!("{name}  {usage}")));
        }
        Outcome::Failed(failure) => return Err(CliError { exit: Exit::Failed, failure }),
        _ => return Err(CliError::internal("cancelled", "the call has no answer; it may have been paid for")),
    }
    Ok(Exit::Fine)
}
