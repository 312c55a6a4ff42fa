//! The external agents in this machine's settings file: `agents`.

use std::{path::Path, sync::Arc};

use mainspring_acp::{
    config::{self, AgentConfig},
    executor::Runners,
};
use mainspring_effects::{
    Adopted, AttemptName, BoxFuture, CancelSignal, Executor, sandbox::Profiles, shell::contain::Scripts,
};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    plan::RUNNER_EFFECT,
    value::Value,
};

use crate::{node_processes::starter, secrets::NodeSecrets, server_settings::ObjectSettings};

/// Returns the executor of `agent` steps with `runner`. None of the agents is started before its first use. Their processes
/// have the rights that `scripts` gives to scripts. Wrong settings fail such a step, and no other one.
pub(crate) fn executor(
    settings: &ObjectSettings,
    (scripts, sandboxes): (&Scripts, &Profiles),
    secrets: Option<&Arc<NodeSecrets>>,
) -> Arc<dyn Executor> {
    let start = starter(scripts, sandboxes, "");
    match parse(&settings.path, &settings.agents) {
        Ok(agents) => Arc::new(Runners::new(agents, start, secrets.cloned().map(|secrets| secrets as Arc<_>))),
        Err(message) => Arc::new(Misconfigured(message)),
    }
}

/// Parses the value of `agents` in a settings file. The error is the message for all mistakes.
pub(crate) fn parse(path: &Path, agents: &Value) -> Result<Vec<AgentConfig>, String> {
    if *agents == Value::Null {
        return Ok(Vec::new());
    }
    config::agents(agents).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        format!("the settings in {}: {}", path.display(), errors.join("\n"))
    })
}

/// Returns the mistakes in `agents`, which fail the steps that use them and no other ones.
pub(crate) fn mistakes(settings: &ObjectSettings) -> Option<String> {
    parse(&settings.path, &settings.agents).err()
}

/// Fails every such step with the reason why the settings cannot be used.
struct Misconfigured(String);

impl Executor for Misconfigured {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == RUNNER_EFFECT
    }

    fn perform<'a>(&'a self, attempt: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        let message = format!("step `{}`: {}", attempt.step, self.0);
        let failure = Failure::new(Class::Invalid, "runner_settings_invalid", message);
        Box::pin(std::future::ready(Outcome::Failed(failure)))
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
