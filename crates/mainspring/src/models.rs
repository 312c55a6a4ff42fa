//! The models of this machine's settings file: `models`.

use std::{path::Path, sync::Arc};

use mainspring_effects::{
    Adopted, AttemptName, BoxFuture, CancelSignal, Executor,
    http::{Allowlist, HttpOptions},
};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    value::Value,
};
use mainspring_models::{
    config::{self, ModelConfig},
    executor::Agents,
    tools::ToolSource,
};

use crate::{
    error::CliError,
    server_settings::{self, ObjectSettings},
};

/// Returns the executor of `agent` steps. Wrong settings fail such a step, and no other one.
pub(crate) fn executor(settings: &ObjectSettings, tools: Option<Arc<dyn ToolSource>>) -> Arc<dyn Executor> {
    match parse(&settings.path, &settings.models).and_then(|models| executor_of(models, tools)) {
        Ok(agents) => Arc::new(agents),
        Err(error) => Arc::new(Misconfigured(error.failure.message)),
    }
}

/// Makes an executor of models. It connects to the addresses of the models and to no other one, on behalf of all
/// organizations: the owner of the settings has written them, and a workflow only names a model.
pub(crate) fn executor_of(models: Vec<ModelConfig>, tools: Option<Arc<dyn ToolSource>>) -> Result<Agents, CliError> {
    let entries: Vec<String> = models.iter().filter_map(ModelConfig::allow_entry).collect();
    let allow: Allowlist = entries
        .join(",")
        .parse()
        .map_err(|error| CliError::bad_input("bad_settings", format!("the `baseUrl` of a model: {error}")))?;
    Ok(Agents::new(models, HttpOptions { allow, ..HttpOptions::default() }, tools))
}

/// Returns the configured models.
pub(crate) fn models() -> Result<Vec<ModelConfig>, CliError> {
    let (path, models) = server_settings::models(None)?;
    parse(&path, &models)
}

/// Parses the value of `models` in a settings file.
pub(crate) fn parse(path: &Path, models: &Value) -> Result<Vec<ModelConfig>, CliError> {
    if *models == Value::Null {
        return Ok(Vec::new());
    }
    config::models(models).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        CliError::bad_input("bad_settings", format!("the settings in {}: {}", path.display(), errors.join("\n")))
    })
}

/// Fails every `agent` step with the reason why the settings cannot be used.
struct Misconfigured(String);

impl Executor for Misconfigured {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "agent"
    }

    fn perform<'a>(&'a self, attempt: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        let message = format!("step `{}`: {}", attempt.step, self.0);
        Box::pin(std::future::ready(Outcome::Failed(Failure::new(Class::Invalid, "model_unknown", message))))
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
