//! The tool servers and models of the settings file: lists them, and checks one.

use std::{sync::Arc, time::Instant};

use axum::{Json, extract::State};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    effect_policy::{Call, EffectPolicy},
    failure::{Class, Failure},
    plan::VerdictRules,
    value::Value,
};
use mainspring_store::Change;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Data,
        extract::PathParams,
        problem::{Code, Problem, ProblemBody, Result},
    },
    resources::repository::{apply, entry},
    services::{
        effect_policies::effect_policy,
        integrations::{CHECK_TIMEOUT, CheckedModel, Integrated, ListedTool, Model, ToolServer},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tool_servers))
        .routes(routes!(check_tool_server))
        .routes(routes!(models))
        .routes(routes!(check_model))
}

/// A configured tool server.
#[derive(Debug, Serialize, ToSchema)]
struct ToolServerBody {
    /// Name: the first part of the full names of its tools, `NAME.TOOL`.
    name: String,
    /// `stdio` for a process, or `http`.
    transport: &'static str,
    /// The origin of its address, or the file name of its program.
    address: String,
}

/// The configured tool servers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ToolServers {
    /// Tool servers in the order of their names.
    tool_servers: Vec<ToolServerBody>,
    /// The mistakes in their configuration, because of which no tool can be called; null without any.
    error: Option<String>,
}

/// A tool that a server lists. Its texts are the server's.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ToolBody {
    /// Full name, `SERVER.TOOL`.
    name: String,
    /// The server's description: `{name, title, description, inputSchema, outputSchema, annotations}`.
    #[schema(value_type = Object)]
    description: Data,
    /// `sha256:…` of the description.
    digest: String,
    /// The side-effect class.
    class: &'static str,
    /// The origin of the class, as a clause.
    class_source: &'static str,
    /// `allow`, `ask` or `deny` by the rules of the installation and the organization.
    verdict: &'static str,
}

/// The result of a check of a tool server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ToolServerCheck {
    /// True if the server has listed its tools.
    ok: bool,
    /// Its tools in the order of their names.
    tools: Vec<ToolBody>,
    /// The failure, `{class, code, message}`; null if there is none.
    #[schema(value_type = Option<Object>)]
    error: Option<Data>,
    /// Duration of the check in milliseconds.
    duration_ms: u64,
}

/// A configured model.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ModelBody {
    /// Name by which steps refer to it.
    name: String,
    /// The format of its requests: `anthropic`, `openai` and others.
    provider: &'static str,
    /// The model as the provider names it.
    model: String,
    /// The origin of its address; null for a scripted model.
    address: Option<String>,
    /// True if steps without `model` use it.
    default: bool,
    /// True if it has a key.
    has_key: bool,
}

/// The models that the organization may use.
#[derive(Debug, Serialize, ToSchema)]
struct Models {
    /// Models in the order of their names.
    models: Vec<ModelBody>,
    /// The mistakes in their configuration, because of which no model can be asked; null without any.
    error: Option<String>,
}

/// The result of a check of a model.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ModelCheck {
    /// True if the model has answered.
    ok: bool,
    /// The text of its answer; null without one.
    text: Option<String>,
    /// Tokens and cost of the answer; null without one.
    #[schema(value_type = Option<Object>)]
    usage: Option<Data>,
    /// The failure, `{class, code, message}`; null if there is none.
    #[schema(value_type = Option<Object>)]
    error: Option<Data>,
    /// Duration of the check in milliseconds.
    duration_ms: u64,
}

/// List the tool servers of the settings file.
#[utoipa::path(get, path = "/api/tool-servers", tag = "integrations",
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = ToolServers)))]
async fn tool_servers(State(app): State<App>, _: Caller) -> Result<Json<ToolServers>> {
    let listed = app
        .settings
        .configured
        .integrations
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), |own| own.integrations.tool_servers());
    let (servers, error) = listed.map_or_else(|error| (Vec::new(), Some(error)), |servers| (servers, None));
    let body_of = |ToolServer { name, transport, address }| ToolServerBody { name, transport, address };
    Ok(Json(ToolServers { tool_servers: servers.into_iter().map(body_of).collect(), error }))
}

/// Connect to a tool server, and list its tools with their classes and verdicts. A server that does not answer within 30
/// seconds is a check with `ok: false`. At most one check at a time.
#[utoipa::path(post, path = "/api/tool-servers/{name}/check", tag = "integrations",
    params(("name" = String, Path)), extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = ToolServerCheck), (status = 404, body = ProblemBody)))]
async fn check_tool_server(
    State(app): State<App>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<ToolServerCheck>> {
    let own = integrated(&app)?;
    let servers = own.integrations.tool_servers().map_err(|error| Problem::new(Code::NotAvailable, error))?;
    if !servers.iter().any(|server| server.name == name) {
        return Err(Problem::not_found("tool server"));
    }
    let _permit = own.begin_tools(&caller.organization, now_ms())?;
    record(&app, &caller, "tool_server.check", &name).await?;
    let begun = Instant::now();
    let listed = timeout(CHECK_TIMEOUT, own.integrations.tools(&name, Some(&caller.organization))).await;
    let duration_ms = elapsed_ms(begun);
    if let Ok(Ok(tools)) = &listed {
        own.remember(&app.settings.configured.effect_policy, &name, tools);
    }
    let policy =
        app.run(move |app| effect_policy(app, &caller.organization).map(|policy| (policy, caller.organization)));
    let (policy, organization) = policy.await?;
    Ok(Json(match listed.unwrap_or_else(|_| Err(too_late())) {
        Ok(tools) => {
            let body_of = |tool| tool_body(&policy, &organization, &name, tool);
            let mut tools: Vec<_> = tools.into_iter().map(body_of).collect();
            tools.sort_by(|one, other| one.name.cmp(&other.name));
            ToolServerCheck { ok: true, tools, error: None, duration_ms }
        }
        Err(failure) => {
            ToolServerCheck { ok: false, tools: Vec::new(), error: Some(Data(failure.to_value())), duration_ms }
        }
    }))
}

fn tool_body(policy: &EffectPolicy, organization: &str, server: &str, tool: ListedTool) -> ToolBody {
    let name = format!("{server}.{}", tool.name);
    let judged = policy.judge(Call::Tool(&name), Some(organization), &VerdictRules::default());
    ToolBody {
        name,
        description: Data(tool.description),
        digest: tool.digest,
        class: judged.class.name(),
        class_source: judged.source.words(),
        verdict: judged.verdict.name(),
    }
}

/// List the models of the settings file that the organization may use.
#[utoipa::path(get, path = "/api/models", tag = "integrations",
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Models)))]
async fn models(State(app): State<App>, caller: Caller) -> Result<Json<Models>> {
    let of = |own: &Arc<Integrated>| own.integrations.models(&caller.organization);
    let listed = app.settings.configured.integrations.as_ref().map_or_else(|| Ok(Vec::new()), of);
    let (models, error) = listed.map_or_else(|error| (Vec::new(), Some(error)), |models| (models, None));
    let body_of = |Model { name, provider, model, address, is_default, has_key }| ModelBody {
        name,
        provider,
        model,
        address,
        default: is_default,
        has_key,
    };
    Ok(Json(Models { models: models.into_iter().map(body_of).collect(), error }))
}

/// Send a short question to a model, which costs a few tokens. A model that does not answer within 30 seconds is a check with
/// `ok: false`. At most one check at a time.
#[utoipa::path(post, path = "/api/models/{name}/check", tag = "integrations",
    params(("name" = String, Path)), extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = ModelCheck), (status = 404, body = ProblemBody)))]
async fn check_model(
    State(app): State<App>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<ModelCheck>> {
    let own = integrated(&app)?;
    let organization = &caller.organization;
    let models = own.integrations.models(organization).map_err(|error| Problem::new(Code::NotAvailable, error))?;
    if !models.iter().any(|model| model.name == name) {
        return Err(Problem::not_found("model"));
    }
    let _permit = own.begin_model(organization, now_ms())?;
    record(&app, &caller, "model.check", &name).await?;
    let begun = Instant::now();
    let asked = timeout(CHECK_TIMEOUT, own.integrations.ask(&name, organization)).await;
    let duration_ms = elapsed_ms(begun);
    Ok(Json(match asked.unwrap_or_else(|_| Err(too_late())) {
        Ok(CheckedModel { text, usage }) => {
            ModelCheck { ok: true, text: Some(text), usage: Some(Data(usage)), error: None, duration_ms }
        }
        Err(failure) => {
            ModelCheck { ok: false, text: None, usage: None, error: Some(Data(failure.to_value())), duration_ms }
        }
    }))
}

fn integrated(app: &App) -> Result<Arc<Integrated>> {
    let message = "This server has no tool servers and no models: add `mcpServers` or `models` to its settings file.";
    app.settings.configured.integrations.clone().ok_or_else(|| Problem::new(Code::NotAvailable, message))
}

/// Records a check before it begins: it can start a process, read secrets and cost money.
async fn record(app: &App, caller: &Caller, action: &'static str, name: &str) -> Result<()> {
    let (caller, name) = (caller.clone(), name.to_owned());
    app.run(move |app| {
        let audit = vec![entry(&caller, action, &name, Value::Null)];
        let change = Change { audit, sealing: *app.engine.key(), ..Change::default() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())
    })
    .await
}

fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn too_late() -> Failure {
    let message = format!("it did not answer within {} seconds", CHECK_TIMEOUT.as_secs());
    Failure::new(Class::Timeout, "check_timeout", message)
}
