//! The tool servers of this machine's settings file: `mcpServers`.

use std::sync::Arc;

use mainspring_effects::{BoxFuture, Executor, sandbox::Profiles, shell::contain::Scripts};
#[cfg(not(feature = "tools"))]
use mainspring_kernel::effect_policy::EffectPolicy;
use mainspring_kernel::{failure::Failure, value::Value};
use mainspring_models::tools::ToolSource;
use mainspring_server::services::{
    integrations::{ListedTool, ToolServer},
    writers::ToolList,
};
use url::Url;

use crate::{error::CliError, secrets::NodeSecrets, server_settings::ObjectSettings};

#[cfg(feature = "tools")]
pub(crate) use enabled::{annotated, call_once, pool, scope};

/// The configured tool servers, for steps and for agents. Both use the same connections.
#[derive(Default)]
pub(crate) struct ToolServers {
    /// The executor of `tool` steps; `None` if no tool server is configured.
    pub(crate) executor: Option<Arc<dyn Executor>>,
    /// The descriptions of the tools.
    pub(crate) source: Option<Arc<dyn ToolSource>>,
    /// Lists all tools, for models that write proposals.
    pub(crate) list: Option<Arc<dyn ToolList>>,
    /// Lists the tools of one server, for people.
    pub(crate) one: Option<Arc<dyn ListTools>>,
}

/// Lists the tools of a server.
pub(crate) trait ListTools: Send + Sync {
    /// Connects to the server on behalf of an organization, or of none.
    fn list_tools<'a>(
        &'a self,
        server: &'a str,
        organization: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ListedTool>, Failure>>;
}

/// Returns the configured tool servers as the API shows them, or the mistakes in their configuration.
#[cfg(feature = "tools")]
pub(crate) fn listed(settings: &ObjectSettings) -> Result<Vec<ToolServer>, String> {
    enabled::listed(settings)
}

/// A build without tools has no tool servers.
#[cfg(not(feature = "tools"))]
pub(crate) fn listed(_: &ObjectSettings) -> Result<Vec<ToolServer>, String> {
    Ok(Vec::new())
}

/// Returns the configured tool servers. None is started before its first use. Mistakes in their configuration concern
/// `tool` steps alone, so they are failures of such steps. The processes of stdio servers have the rights that `scripts`
/// gives to scripts. An organization with a runner has none: they would run outside of its sandboxes.
pub(crate) fn open(
    settings: &ObjectSettings,
    scripts: (&Scripts, &Profiles),
    secrets: Option<&Arc<NodeSecrets>>,
) -> Result<ToolServers, CliError> {
    match settings.tool_servers {
        Value::Null => Ok(ToolServers::default()),
        #[cfg(feature = "tools")]
        _ => enabled::open(settings, scripts, secrets),
        #[cfg(not(feature = "tools"))]
        _ => {
            let _ = (scripts, secrets);
            let path = settings.path.display();
            let message = format!("{path}: `mcpServers` needs a build with the feature `tools`");
            Err(CliError::bad_input("no_tools", message))
        }
    }
}

/// Returns the mistakes in `mcpServers`, which fail the steps that use a tool.
#[cfg(feature = "tools")]
pub(crate) fn mistakes(settings: &ObjectSettings) -> Option<String> {
    (settings.tool_servers != Value::Null).then(|| enabled::servers(settings).err()).flatten()
}

/// Returns the names of the tool servers that are processes.
#[cfg(feature = "tools")]
pub(crate) fn processes(settings: &ObjectSettings) -> Vec<String> {
    enabled::processes(settings)
}

/// A build without tools starts no process.
#[cfg(not(feature = "tools"))]
pub(crate) fn processes(_: &ObjectSettings) -> Vec<String> {
    Vec::new()
}

/// A build without tools refuses all tool servers where it opens them.
#[cfg(not(feature = "tools"))]
pub(crate) fn mistakes(_: &ObjectSettings) -> Option<String> {
    None
}

/// Returns the policy as it is: a build without tools has no annotations.
#[cfg(not(feature = "tools"))]
pub(crate) fn annotated(policy: EffectPolicy, _: &ObjectSettings) -> Result<EffectPolicy, CliError> {
    Ok(policy)
}

/// The origin of an address: its path and query can contain credentials.
pub(crate) fn origin(address: &str) -> String {
    Url::parse(address).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// Makes the tool server of a configuration that the API shows.
#[cfg(feature = "tools")]
fn tool_server(name: String, transport: &'static str, address: &str) -> ToolServer {
    let address = match transport {
        "http" => origin(address),
        // Folders of this machine are not shown.
        _ => address.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    ToolServer { name, transport, address }
}

#[cfg(feature = "tools")]
mod enabled {
    use std::sync::Arc;

    use mainspring_authoring::change_request::{TOOLS_MAX, Tool};
    use mainspring_effects::{
        Adopted, AttemptName, BoxFuture, CancelHandle, CancelSignal, Executor,
        http::{CONNECT_TIMEOUT_DEFAULT, SystemResolver, TlsRoots},
        sandbox::Profiles,
        shell::contain::Scripts,
        stdio::{StartProcess, Uncontained},
    };
    use mainspring_engine::evaluator::{ForTenant, evaluate};
    use mainspring_kernel::{
        effect::{Attempt, AttemptFlags, Outcome},
        effect_policy::EffectPolicy,
        evaluation::{Check, Evaluation},
        failure::{Class, Failure},
        hash::Hash,
        json::compact,
        key::ExecutionKey,
        value::Value,
    };
    use mainspring_mcp::{
        ToolError, config,
        connection::{Access, Scope},
        executor::{CheckArguments, Tools, pinned_digest},
        http::HttpAccess,
        limits::IDLE_TIMEOUT,
        pool::Pool,
    };
    use mainspring_models::tools::{ToolDefinition, ToolSource};
    use mainspring_server::services::{
        integrations::{ListedTool, ToolServer},
        writers::ToolList,
    };

    use super::{ListTools, ToolServers, tool_server};
    use crate::{
        context::{Context, block_on},
        error::CliError,
        evaluator::evaluator,
        node_processes::starter,
        runner::http_allow,
        secrets::NodeSecrets,
        server_settings::{ObjectSettings, object_settings},
    };

    /// Describes the tools of the configured servers to models.
    pub(super) struct Descriptions(pub(super) Arc<Pool>);

    impl Descriptions {
        async fn of(&self, names: &[String], attempt: &Attempt) -> Result<Vec<ToolDefinition>, Failure> {
            let scope = Scope { organization: attempt.organization.clone(), workspace: attempt.workspace.clone() };
            let mut found: Vec<ToolDefinition> = Vec::new();
            for name in names {
                let is_pinned =
                    attempt.progress.as_deref().is_some_and(|progress| progress.pins.contains_key(name.as_str()));
                let unknown = || {
                    if is_pinned {
                        return ToolError::ToolGone(name.clone()).to_failure(&attempt.step);
                    }
                    let message = format!("step `{}`: no configured tool server has the tool `{name}`", attempt.step);
                    Failure::new(Class::Invalid, "tool_unknown", message)
                };
                let (server, wanted) = name.split_once('.').ok_or_else(unknown)?;
                let config = self.0.servers().iter().find(|config| config.name == server).ok_or_else(unknown)?;
                let failed = |error: ToolError| error.to_failure(&attempt.step);
                let connection = self.0.connection(config, &scope).await.map_err(failed)?;
                let tools = connection.tools().await.map_err(failed)?;
                let matching = tools.tools().iter().filter(|tool| wanted == "*" || tool.name == wanted);
                let before = found.len();
                for tool in matching {
                    let name = format!("{server}.{}", tool.name);
                    if found.iter().all(|other| other.name != name) {
                        let description = tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default();
                        let digest = Some(pinned_digest(server, Some(tool)));
                        let input_schema = tool.input_schema.clone();
                        found.push(ToolDefinition { name, description, input_schema, digest });
                    }
                }
                if found.len() == before && wanted != "*" && !tools.tools().iter().any(|tool| tool.name == wanted) {
                    return Err(unknown());
                }
            }
            Ok(found)
        }
    }

    impl ToolSource for Descriptions {
        fn describe<'a>(
            &'a self,
            names: &'a [String],
            attempt: &'a Attempt,
        ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, Failure>> {
            Box::pin(self.of(names, attempt))
        }
    }

    impl ToolList for Descriptions {
        fn list<'a>(&'a self, organization: Option<&'a str>) -> BoxFuture<'a, Vec<Tool>> {
            Box::pin(async move {
                let scope = Scope { organization: organization.map(Into::into), workspace: None };
                let mut found = Vec::new();
                for server in self.0.servers() {
                    let Ok(connection) = self.0.connection(server, &scope).await else { continue };
                    let Ok(tools) = connection.tools().await else { continue };
                    found.extend(tools.tools().iter().take(TOOLS_MAX - found.len()).map(|tool| Tool {
                        name: format!("{}.{}", server.name, tool.name),
                        description: tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default(),
                    }));
                }
                found
            })
        }
    }

    impl ListTools for Descriptions {
        fn list_tools<'a>(
            &'a self,
            server: &'a str,
            organization: Option<&'a str>,
        ) -> BoxFuture<'a, Result<Vec<ListedTool>, Failure>> {
            Box::pin(async move {
                let scope = Scope { organization: organization.map(Into::into), workspace: None };
                let config = self.0.servers().iter().find(|config| config.name == server);
                let config = config.ok_or_else(|| {
                    Failure::new(Class::Invalid, "tool_unknown", format!("no tool server is named `{server}`"))
                })?;
                let listed = async { self.0.connection(config, &scope).await?.tools().await }.await;
                let listed = listed.map_err(|error: ToolError| error.to_failure("tools"))?;
                let tools = listed.tools().iter().map(|tool| ListedTool {
                    name: tool.name.clone(),
                    description: tool.to_value(),
                    digest: tool.digest.prefixed(),
                    class: tool.class(),
                });
                Ok(tools.collect())
            })
        }
    }

    /// Returns the configured tool servers as the API shows them.
    pub(super) fn listed(settings: &ObjectSettings) -> Result<Vec<ToolServer>, String> {
        if settings.tool_servers == Value::Null {
            return Ok(Vec::new());
        }
        let shown = |server: config::ServerConfig| match server.transport {
            config::TransportConfig::Stdio(stdio) => tool_server(server.name, "stdio", &stdio.command),
            config::TransportConfig::Http(http) => tool_server(server.name, "http", &http.url),
        };
        Ok(servers(settings)?.into_iter().map(shown).collect())
    }

    /// Returns a pool of the configured servers. None is started before its first use.
    pub(crate) fn pool() -> Result<Arc<Pool>, CliError> {
        let settings = object_settings()?;
        if settings.tool_servers == Value::Null {
            let message = format!(
                "no tool servers are configured: add `mcpServers: {{NAME: {{command: PROGRAM, args: [...]}}}}` to {}",
                settings.path.display()
            );
            return Err(CliError::bad_input("no_tool_servers", message));
        }
        let servers = servers(&settings).map_err(|message| CliError::bad_input("bad_settings", message))?;
        pool_of(servers, Arc::new(Uncontained), Some(&NodeSecrets::of(&settings)?))
    }

    /// The scope of a command: its working directory is the workspace of the servers.
    pub(crate) fn scope() -> Result<Scope, CliError> {
        let folder = std::env::current_dir().map_err(|error| CliError::internal("no_directory", error.to_string()))?;
        Ok(Scope { organization: None, workspace: Some(folder.display().to_string()) })
    }

    /// Calls a tool through the executor of `tool` steps, so that a step behaves the same. A signal cancels the call.
    pub(crate) async fn call_once(
        pool: &Arc<Pool>,
        tool: &str,
        arguments: Value,
        intent: Hash,
        context: &Context,
    ) -> Result<Outcome, CliError> {
        let attempt = Attempt {
            execution: ExecutionKey::new(0, [0; 10]),
            root: ExecutionKey::new(0, [0; 10]),
            execution_id: "tools-call".into(),
            organization: None,
            workflow_id: None,
            step: "call".into(),
            number: 1,
            effect: "tool".into(),
            params: Value::map([("tool", tool.into()), ("arguments", arguments)]),
            intent,
            flags: AttemptFlags::default(),
            handed_out_at: 0,
            workspace: scope()?.workspace,
            secrets: mainspring_kernel::secret::SecretUses::default(),
            progress: None,
        };
        let (handle, signal) = CancelHandle::pair();
        let tools = Tools::new(pool.clone()).with_checks(Arc::new(InSandbox));
        let mut performed = tools.perform(&attempt, signal);
        Ok(tokio::select! {
            outcome = &mut performed => outcome,
            () = context.signals.any() => {
                handle.cancel();
                performed.await
            }
        })
    }

    /// Reads the servers of a settings file. The error is the message for all mistakes.
    pub(super) fn servers(settings: &ObjectSettings) -> Result<Vec<config::ServerConfig>, String> {
        config::servers(&settings.tool_servers).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            format!("the settings in {}: {}", settings.path.display(), errors.join("\n"))
        })
    }

    /// Returns the names of the servers that are processes; none if the configuration has mistakes.
    pub(super) fn processes(settings: &ObjectSettings) -> Vec<String> {
        if settings.tool_servers == Value::Null {
            return Vec::new();
        }
        let is_process = |server: &config::ServerConfig| matches!(server.transport, config::TransportConfig::Stdio(_));
        servers(settings).unwrap_or_default().into_iter().filter(is_process).map(|server| server.name).collect()
    }

    fn pool_of(
        servers: Vec<config::ServerConfig>,
        start: Arc<dyn StartProcess>,
        secrets: Option<&Arc<NodeSecrets>>,
    ) -> Result<Arc<Pool>, CliError> {
        let http = HttpAccess {
            allow: http_allow()?,
            trust: TlsRoots::default(),
            resolver: Arc::new(SystemResolver),
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
        };
        let secrets = secrets.cloned().map(|secrets| secrets as Arc<_>);
        Ok(Arc::new(Pool::new(servers, Access { start, http, secrets }, IDLE_TIMEOUT)))
    }

    /// Returns the executor of the configured servers and the descriptions of their tools.
    pub(super) fn open(
        settings: &ObjectSettings,
        (scripts, sandboxes): (&Scripts, &Profiles),
        secrets: Option<&Arc<NodeSecrets>>,
    ) -> Result<ToolServers, CliError> {
        let start = starter(scripts, sandboxes, ": use a server with `url`");
        Ok(match servers(settings) {
            Ok(servers) => {
                let pool = pool_of(servers, start, secrets)?;
                let executor = Arc::new(Tools::new(pool.clone()).with_checks(Arc::new(InSandbox)));
                let descriptions = Arc::new(Descriptions(pool));
                ToolServers {
                    executor: Some(executor),
                    source: Some(descriptions.clone()),
                    list: Some(descriptions.clone()),
                    one: Some(descriptions),
                }
            }
            Err(message) => {
                let misconfigured = Arc::new(Misconfigured(message));
                ToolServers {
                    executor: Some(misconfigured.clone()),
                    source: Some(misconfigured),
                    list: None,
                    one: None,
                }
            }
        })
    }

    /// Adds the classes that trusted servers give their tools. A server that does not answer leaves its tools without
    /// a class, so that calls of them ask.
    pub(crate) fn annotated(policy: EffectPolicy, settings: &ObjectSettings) -> Result<EffectPolicy, CliError> {
        let Ok(mut servers) = servers(settings) else { return Ok(policy) };
        servers.retain(|server| policy.trusted_servers().any(|trusted| trusted == server.name));
        let scope = scope()?;
        let pool = pool_of(servers, Arc::new(Uncontained), Some(&NodeSecrets::of(settings)?))?;
        let tools = block_on(async {
            let mut tools = Vec::new();
            for server in pool.servers() {
                let Ok(connection) = pool.connection(server, &scope).await else { continue };
                let Ok(listed) = connection.tools().await else { continue };
                let classes = listed.tools().iter().map(|tool| (server.name.clone(), tool.name.clone(), tool.class()));
                tools.extend(classes);
            }
            pool.close_all().await;
            Ok(tools)
        })?;
        Ok(policy.with_annotations(tools))
    }

    /// Checks arguments in the sandbox, since the schema is a tool server's.
    struct InSandbox;

    impl CheckArguments for InSandbox {
        fn check(&self, organization: Option<&str>, schema: &Value, arguments: &Value) -> Result<(), String> {
            let tenant = organization.unwrap_or_default();
            let (schema, value) = (schema.clone(), arguments.clone());
            let check = Evaluation::Check(Check { schema, value, fills_defaults: false });
            let evaluator = evaluator();
            let checked = evaluate(&check, &ForTenant { evaluator: &*evaluator, tenant });
            match checked.outcome {
                Err(failure) if failure.details.get("errors").is_some() => {
                    Err(format!("{}: {}", failure.message, compact(&failure.details)))
                }
                // The sandbox is not available, or the schema cannot be read: the server checks its arguments itself.
                _ => Ok(()),
            }
        }
    }

    /// Fails each `tool` step, because the configuration of the servers has mistakes.
    struct Misconfigured(String);

    impl Misconfigured {
        fn failure(&self, attempt: &Attempt) -> Failure {
            Failure::new(Class::Invalid, "tool_settings_invalid", format!("step `{}`: {}", attempt.step, self.0))
        }
    }

    impl ToolSource for Misconfigured {
        fn describe<'a>(
            &'a self,
            _: &'a [String],
            attempt: &'a Attempt,
        ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, Failure>> {
            let failure = self.failure(attempt);
            Box::pin(async { Err(failure) })
        }
    }

    impl Executor for Misconfigured {
        fn performs(&self, attempt: &Attempt) -> bool {
            attempt.effect == "tool"
        }

        fn perform<'a>(&'a self, attempt: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
            let failure = self.failure(attempt);
            Box::pin(async { Outcome::Failed(failure) })
        }

        fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
            Box::pin(async { Adopted::Interrupted })
        }

        fn forget(&self, _: AttemptName<'_>) {}
    }
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use super::tool_server;

    #[test]
    fn an_address_is_shown_without_credentials_and_folders() {
        let shown = |transport, address| tool_server("s".into(), transport, address).address;
        assert_eq!(
            shown("http", "https://user:pass@mcp.example.com:8443/k3y/mcp?token=t"),
            "https://mcp.example.com:8443"
        );
        assert_eq!(shown("stdio", "/srv/tools/server"), "server");
        assert_eq!(shown("http", "not an address"), "");
    }
}
