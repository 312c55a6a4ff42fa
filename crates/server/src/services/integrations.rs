//! The tool servers and models of the settings file, as the API lists and checks them. The executable implements the
//! interface, since their crates are of one layer with this one.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mainspring_effects::BoxFuture;
use mainspring_kernel::{effect_policy::EffectPolicy, failure::Failure, plan::EffectClass, value::Value};

use crate::{
    http::problem::{Code, Problem, Result},
    services::hourly_bound::{Full, HourlyBound, Permit},
};

/// Longest check of a tool server or a model.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Checks of tool servers that an organization may begin in one hour at each node. Each may start a process.
const TOOL_CHECKS_PER_HOUR_MAX: usize = 120;

/// Checks of models that an organization may begin in one hour at each node. Each costs money.
const MODEL_CHECKS_PER_HOUR_MAX: usize = 30;

/// A configured tool server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// Its name, the first part of the full names of its tools.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The origin of its address, or the file name of its program. Neither has arguments or credentials.
    pub address: String,
}

/// A tool as its server lists it. All texts are the server's.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name at the server.
    pub name: String,
    /// `{name, title, description, inputSchema, outputSchema, annotations}`; absent ones are left out.
    pub description: Value,
    /// `sha256:…` of the description.
    pub digest: String,
    /// The class that its annotations give it.
    pub class: EffectClass,
}

/// A configured model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The name by which steps refer to it.
    pub name: String,
    /// The format of its requests.
    pub provider: &'static str,
    /// The model as the provider names it.
    pub model: String,
    /// The origin of its address; `None` for a scripted model.
    pub address: Option<String>,
    /// True if steps without `model` use it.
    pub is_default: bool,
    /// True if it has a key, or if a secret is its key.
    pub has_key: bool,
}

/// The answer of a model to a check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedModel {
    /// The text of the answer.
    pub text: String,
    /// Tokens and cost, as in the output of an `agent` step.
    pub usage: Value,
}

/// Lists and checks tool servers and models.
pub trait Integrations: Send + Sync {
    /// The configured tool servers.
    ///
    /// # Errors
    /// Fails with the mistakes in their configuration.
    fn tool_servers(&self) -> Result<Vec<ToolServer>, String>;

    /// Connects to a tool server on behalf of an organization, or of the server itself, and lists its tools.
    fn tools<'a>(
        &'a self,
        server: &'a str,
        organization: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ListedTool>, Failure>>;

    /// The configured models that an organization may use.
    ///
    /// # Errors
    /// Fails with the mistakes in their configuration.
    fn models(&self, organization: &str) -> Result<Vec<Model>, String>;

    /// Sends a short question to a model, which is paid for.
    fn ask<'a>(&'a self, model: &'a str, organization: &'a str) -> BoxFuture<'a, Result<CheckedModel, Failure>>;
}

/// The integrations of a server, with the bounds of their checks.
pub struct Integrated {
    /// The tool servers and models.
    pub integrations: Box<dyn Integrations>,
    tool_checks: HourlyBound,
    model_checks: HourlyBound,
    annotated: Mutex<Annotated>,
}

/// The classes that trusted tool servers give their tools, as they were last read.
#[derive(Default)]
struct Annotated {
    classes: BTreeMap<String, Vec<(String, EffectClass)>>,
    /// The policy of the settings file with these classes; `None` before the first read.
    policy: Option<Arc<EffectPolicy>>,
}

impl Integrated {
    /// Takes integrations that have checked nothing yet.
    pub fn new(integrations: Box<dyn Integrations>) -> Self {
        let (tool_checks, model_checks) =
            (HourlyBound::new(TOOL_CHECKS_PER_HOUR_MAX), HourlyBound::new(MODEL_CHECKS_PER_HOUR_MAX));
        Self { integrations, tool_checks, model_checks, annotated: Mutex::default() }
    }

    fn annotated(&self) -> MutexGuard<'_, Annotated> {
        self.annotated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policy of the settings file with the classes of trusted tool servers; `None` before the first read.
    pub(crate) fn annotated_policy(&self) -> Option<Arc<EffectPolicy>> {
        self.annotated().policy.clone()
    }

    /// Takes the tools of a server. The annotations of a server that is not trusted are ignored.
    pub(crate) fn remember(&self, of_settings: &EffectPolicy, server: &str, tools: &[ListedTool]) {
        if !of_settings.trusted_servers().any(|trusted| trusted == server) {
            return;
        }
        let mut annotated = self.annotated();
        let classes = tools.iter().map(|tool| (tool.name.clone(), tool.class)).collect();
        if annotated.classes.get(server) == Some(&classes) {
            return;
        }
        annotated.classes.insert(server.into(), classes);
        let all = annotated
            .classes
            .iter()
            .flat_map(|(server, tools)| tools.iter().map(move |(tool, class)| (server.clone(), tool.clone(), *class)));
        let policy = of_settings.clone().with_annotations(all.collect::<Vec<_>>());
        annotated.policy = Some(Arc::new(policy));
    }

    /// Permits an organization to check a tool server.
    pub(crate) fn begin_tools(&self, organization: &str, now: u64) -> Result<Permit<'_>> {
        let begun = self.tool_checks.begin(organization, now);
        begun.map_err(|full| refusal(full, "tool server", TOOL_CHECKS_PER_HOUR_MAX))
    }

    /// Permits an organization to check a model.
    pub(crate) fn begin_model(&self, organization: &str, now: u64) -> Result<Permit<'_>> {
        let begun = self.model_checks.begin(organization, now);
        begun.map_err(|full| refusal(full, "model", MODEL_CHECKS_PER_HOUR_MAX))
    }
}

fn refusal(full: Full, checked: &str, per_hour: usize) -> Problem {
    let message = match full {
        Full::Busy => format!("Another check of a {checked} runs for this organization: wait until it has ended."),
        Full::Hour => format!("An organization may check a {checked} {per_hour} times in an hour: try again later."),
    };
    Problem::new(Code::RateLimited, message)
}

impl fmt::Debug for Integrated {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Integrated").finish_non_exhaustive()
    }
}
