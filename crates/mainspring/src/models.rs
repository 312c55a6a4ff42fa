//! The models of this machine's settings file: `models`.

use std::{path::Path, sync::Arc};

use mainspring_effects::{
    Adopted, AttemptName, BoxFuture, CancelSignal, Executor,
    http::{Allowlist, HttpOptions},
};
use mainspring_kernel::{
    budget::ModelTerms,
    effect::{Attempt, AttemptFlags, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    key::ExecutionKey,
    secret::SecretUses,
    value::Value,
};
use mainspring_models::{
    config::{self, ModelConfig},
    dev::{Script, ScriptedModel},
    executor::Agents,
    prices,
    tools::ToolSource,
};

use crate::{
    error::CliError,
    read_limited, runners,
    secrets::NodeSecrets,
    server_settings::{ObjectSettings, object_settings},
    tool_servers,
};

/// Returns the executor of `agent` steps. Wrong settings fail such a step, and no other one.
pub(crate) fn executor(
    settings: &ObjectSettings,
    tools: Option<Arc<dyn ToolSource>>,
    secrets: Option<&Arc<NodeSecrets>>,
) -> Arc<dyn Executor> {
    match parse(&settings.path, &settings.models).and_then(|models| executor_of(models, tools)) {
        Ok(agents) => Arc::new(agents.with_secrets(secrets.cloned().map(|secrets| secrets as Arc<_>))),
        Err(error) => Arc::new(Misconfigured(error.failure.message)),
    }
}

/// Returns the mistakes in `mcpServers`, `models` and `agents`, which fail the steps that use them and no other ones.
pub(crate) fn mistakes(settings: &ObjectSettings) -> impl Iterator<Item = String> {
    let of_models = parse(&settings.path, &settings.models).err().map(|error| error.failure.message);
    let of_tools = tool_servers::mistakes(settings);
    of_models
        .into_iter()
        .chain(of_tools)
        .chain(runners::mistakes(settings))
        .map(|mistake| format!("{mistake}; steps that use these settings fail"))
}

/// Makes an executor of models. It connects to the addresses of the models and to no other one, on behalf of all
/// organizations: the owner of the settings has written them, and a workflow only names a model.
pub(crate) fn executor_of(
    mut models: Vec<ModelConfig>,
    tools: Option<Arc<dyn ToolSource>>,
) -> Result<Agents, CliError> {
    let scripted = models.iter_mut().filter_map(bind_script).collect::<Result<Vec<_>, _>>()?;
    let entries: Vec<String> = models.iter().filter_map(ModelConfig::allow_entry).collect();
    let allow: Allowlist = entries
        .join(",")
        .parse()
        .map_err(|error| CliError::bad_input("bad_settings", format!("the `baseUrl` of a model: {error}")))?;
    Ok(Agents::new(models, HttpOptions { allow, ..HttpOptions::default() }, tools).with_scripted(scripted))
}

/// Binds a free port for the script of a model, and makes it the address of the model. `None` for a model without a
/// script.
fn bind_script(model: &mut ModelConfig) -> Option<Result<ScriptedModel, CliError>> {
    let script = model.script.clone()?;
    let refused = |why: String| {
        CliError::bad_input(
            "bad_script",
            format!("the script {} of the model `{}`: {why}", script.display(), model.name),
        )
    };
    let bound = read_limited::file(&script).map_err(refused).and_then(|text| {
        let script = Script::parse(&text).map_err(|error| refused(error.to_string()))?;
        let failed = |error: std::io::Error| refused(error.to_string());
        let server = ScriptedModel::bind(([127, 0, 0, 1], 0).into(), script).map_err(failed)?;
        let address = server.address().map_err(failed)?;
        Ok((server, address))
    });
    Some(bound.map(|(server, address)| {
        model.base_url = format!("http://{address}");
        server
    }))
}

/// Returns the configured models.
pub(crate) fn models() -> Result<Vec<ModelConfig>, CliError> {
    let settings = object_settings()?;
    parse(&settings.path, &settings.models)
}

/// Returns the terms of the models, which executions with agents pin. Mistakes in `models` concern agents alone, and
/// are failures of such steps; a wrong `prices` is an error, since a budget may depend on it.
pub(crate) fn terms(settings: &ObjectSettings) -> Result<Option<ModelTerms>, CliError> {
    let Ok(models) = parse(&settings.path, &settings.models) else { return Ok(None) };
    if models.is_empty() && settings.prices == Value::Null {
        return Ok(None);
    }
    prices::terms(&settings.prices, &models).map(Some).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        CliError::bad_input(
            "bad_settings",
            format!("the settings in {}: {}", settings.path.display(), errors.join("\n")),
        )
    })
}

/// Parses the value of `models` in a settings file.
pub(crate) fn parse(path: &Path, models: &Value) -> Result<Vec<ModelConfig>, CliError> {
    if *models == Value::Null {
        return Ok(Vec::new());
    }
    let models = config::models(models).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        CliError::bad_input("bad_settings", format!("the settings in {}: {}", path.display(), errors.join("\n")))
    });
    // Paths in the file are relative to its folder.
    let folder = path.parent().unwrap_or(Path::new("."));
    let of_folder = |model: ModelConfig| {
        let script = model.script.map(|script| folder.join(script));
        ModelConfig { script, ..model }
    };
    models.map(|models| models.into_iter().map(of_folder).collect())
}

/// An attempt that sends a request to a model outside of an execution. It has no budget and no journal.
pub(crate) fn question(goal: &str, model: &str, organization: Option<&str>) -> Result<Attempt, CliError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
    Ok(Attempt {
        execution: ExecutionKey::new(0, [0; 10]),
        root: ExecutionKey::new(0, [0; 10]),
        execution_id: "models-try".into(),
        organization: organization.map(Into::into),
        workflow_id: None,
        step: "try".into(),
        number: 1,
        effect: "agent".into(),
        params: Value::map([("goal", goal.into()), ("model", model.into())]),
        intent: Hash::of(&random),
        flags: AttemptFlags::default(),
        handed_out_at: 0,
        workspace: None,
        secrets: SecretUses::default(),
        progress: None,
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
