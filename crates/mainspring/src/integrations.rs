//! The tool servers and models of the settings file, as the server's API lists and checks them.

use std::sync::Arc;

use mainspring_effects::{BoxFuture, CancelHandle, Executor};
use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
    value::Value,
};
use mainspring_models::config::ModelConfig;
use mainspring_server::services::integrations::{CheckedModel, Integrations, ListedTool, Model, ToolServer};

use crate::{
    models::{self, question},
    server_settings::ObjectSettings,
    tool_servers::{self, ListTools, origin},
};

/// The question of a check.
pub(crate) const QUESTION: &str = "Answer with the word OK.";

/// The integrations of a settings file.
pub(crate) struct OfSettings {
    pub(crate) settings: ObjectSettings,
    /// Connects to tool servers; `None` without any.
    pub(crate) tools: Option<Arc<dyn ListTools>>,
    /// Sends requests to models.
    pub(crate) agents: Arc<dyn Executor>,
}

fn shown(model: ModelConfig) -> Model {
    let has_key = model.secret().is_some() || model.key().is_ok_and(|key| key.is_some());
    let address = model.script.is_none().then(|| origin(&model.base_url));
    let (provider, is_default) = (model.provider.name(), model.is_default);
    Model { name: model.name, provider, model: model.model, address, is_default, has_key }
}

impl Integrations for OfSettings {
    fn tool_servers(&self) -> Result<Vec<ToolServer>, String> {
        tool_servers::listed(&self.settings)
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        organization: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ListedTool>, Failure>> {
        match &self.tools {
            Some(tools) => tools.list_tools(server, organization),
            None => Box::pin(std::future::ready(Err(unusable()))),
        }
    }

    fn models(&self, organization: &str) -> Result<Vec<Model>, String> {
        let models = models::parse(&self.settings.path, &self.settings.models);
        let models = models.map_err(|error| error.failure.message)?;
        Ok(models.into_iter().filter(|model| model.serves(Some(organization))).map(shown).collect())
    }

    fn ask<'a>(&'a self, model: &'a str, organization: &'a str) -> BoxFuture<'a, Result<CheckedModel, Failure>> {
        Box::pin(async move {
            let attempt = question(QUESTION, model, Some(organization)).map_err(|error| error.failure)?;
            let (_handle, signal) = CancelHandle::pair();
            match self.agents.perform(&attempt, signal).await {
                Outcome::Done(value) => Ok(CheckedModel {
                    text: value.get("text").and_then(Value::as_text).unwrap_or_default().to_owned(),
                    usage: value.get("usage").cloned().unwrap_or_default(),
                }),
                Outcome::Failed(failure) => Err(failure),
                _ => Err(Failure::new(Class::Failed, "interrupted", "the answer is lost; it may have been paid for")),
            }
        })
    }
}

fn unusable() -> Failure {
    Failure::new(Class::Invalid, "tool_settings_invalid", "the configuration of the tool servers has mistakes")
}
