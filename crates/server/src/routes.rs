//! The HTTP routes, one file per resource of the API, and their OpenAPI description.

mod approval_pages;
mod approvals;
mod audit;
mod budgets;
mod common_responses;
mod definitions;
mod dev_files;
mod encryption_keys;
mod event_subscriptions;
mod execution_commands;
mod execution_events;
mod execution_history;
mod execution_receipts;
mod executions;
mod failed_events;
mod health;
mod integrations;
mod manual_triggers;
mod members;
mod migrations;
mod oidc;
mod organizations;
mod policy;
mod proposals;
mod quarantine;
mod rollouts;
mod scenarios;
mod secrets;
mod session;
mod sessions;
mod tokens;
mod trigger_runs;
mod triggers;
mod webhooks;
mod workflows;

use std::{any::Any, collections::BTreeMap, sync::Arc};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, RawQuery, State},
    handler::Handler,
    http::{StatusCode, Uri, header::CONTENT_TYPE, request::Parts},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use mainspring_authoring::schemas;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::{
    OpenApi,
    openapi::{
        OpenApi as Description,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{
        middleware::{Authorization, authorize, rate_limit},
        policy::RoutePolicies,
    },
    http::{
        description_texts::DescriptionTexts,
        html::{STYLE_PATH, page_of, style},
        problem::{Code, Problem, ProblemBody},
        request_bodies::BODY_BYTES_MAX,
        response_memory::Static,
    },
};

/// The head of the description.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Mainspring",
        description = "Durable, governed workflows. `x-permission` names the permission that a route requires (`credential`: any \
            valid credential, `public`: none). Clients send a credential as `Authorization: Bearer msp_…`. Errors have the \
            form `{error, code, details}`. Times are RFC 3339 in UTC.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ProblemBody)),
    security(("token" = []), ("cookie" = [])),
)]
struct Head;

fn open_api() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Head::openapi())
        .merge(health::routes())
        .merge(workflows::routes())
        .merge(migrations::routes())
        .merge(proposals::routes())
        .merge(rollouts::routes())
        .merge(definitions::routes())
        .merge(scenarios::routes())
        .merge(dev_files::routes())
        .merge(manual_triggers::routes())
        .merge(triggers::routes())
        .merge(encryption_keys::routes())
        .merge(secrets::routes())
        .merge(trigger_runs::routes())
        .merge(webhooks::routes())
        .merge(event_subscriptions::routes())
        .merge(failed_events::routes())
        .merge(executions::routes())
        .merge(execution_history::routes())
        .merge(execution_receipts::routes())
        .merge(execution_commands::routes())
        .merge(quarantine::routes())
        .merge(execution_events::routes())
        .merge(approvals::routes())
        .merge(approval_pages::routes())
        .merge(members::routes())
        .merge(session::routes())
        .merge(sessions::routes())
        .merge(oidc::routes())
        .merge(tokens::routes())
        .merge(organizations::routes())
        .merge(audit::routes())
        .merge(budgets::routes())
        .merge(policy::routes())
        .merge(integrations::routes())
}

/// The OpenAPI 3.1 description of all routes.
pub fn description() -> Description {
    let mut description = open_api().split_for_parts().1;
    let components = description.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("msp_…").build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    let text = "Set by POST /api/session and by /sign-in/oidc; named __Host-mainspring if the base URL is https";
    let cookie = ApiKey::Cookie(ApiKeyValue::with_description("mainspring", text));
    components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
    description.paths.paths.values_mut().for_each(common_responses::describe);
    // OpenAPI has no path parameter of several segments.
    let paths = std::mem::take(&mut description.paths.paths);
    description.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    description
}

/// Builds the router of a server, with its middleware.
pub fn router(app: App) -> Router {
    let description = description();
    let _ = app.policies.set(RoutePolicies::of(&description));
    let counted = || middleware::from_fn_with_state(app.clone(), rate_limit);
    let texts = Arc::new(DescriptionTexts::of(description, app.settings.base.clone()));
    let (whole, parts, page) = (texts.clone(), texts.clone(), texts);
    let described = Router::new()
        .route("/openapi.json", get(async move |RawQuery(query): RawQuery| openapi(query.as_deref(), &whole)))
        .route("/llms.txt", get(async move |RawQuery(query): RawQuery| llms(query.as_deref(), parts.for_models())))
        .route("/definition.schema.json", get(async |RawQuery(query): RawQuery| schema(query.as_deref())))
        .route("/docs", get(async move || (Extension(Static), page_of(StatusCode::OK, page.page()))))
        .route(STYLE_PATH, get(style))
        .route_layer(counted());
    let routes = open_api()
        .split_for_parts()
        .0
        .route_layer(middleware::from_fn_with_state(Authorization { app: app.clone(), render }, authorize))
        .merge(described)
        .merge(root_pages())
        .fallback(unknown.layer(counted()))
        .method_not_allowed_fallback(other_method.layer(counted()));
    bounded(routes).with_state(app)
}

/// Returns the whole text for language models, or with `?tag=NAME` the part of one tag.
fn llms(query: Option<&str>, parts: &BTreeMap<String, Bytes>) -> Response {
    let tag = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("tag=")).unwrap_or_default();
    match parts.get(tag) {
        Some(part) => {
            let plain = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
            (Extension(Static), plain, part.clone()).into_response()
        }
        None => unknown_tag(parts.keys()),
    }
}

/// Returns the JSON Schema of definitions, or with `?notation=NAME` that of one notation.
fn schema(query: Option<&str>) -> Response {
    let mut pairs = query.unwrap_or_default().split('&');
    let name = pairs.find_map(|pair| pair.strip_prefix("notation=")).unwrap_or("workflow");
    match schemas::schema(name) {
        Some(schema) => {
            let json = [(CONTENT_TYPE, "application/schema+json")];
            (Extension(Static), json, Bytes::from_static(schema.text.as_bytes())).into_response()
        }
        None => {
            let known: Vec<&str> = schemas::SCHEMAS.iter().map(|schema| schema.name).collect();
            let message = format!("There is no such notation; known are {}.", known.join(", "));
            Problem::new(Code::ValidationError, message).into_response()
        }
    }
}

/// The response for a tag that does not exist. The empty tag is that of the whole text.
fn unknown_tag<'t>(tags: impl Iterator<Item = &'t String>) -> Response {
    let known: Vec<&str> = tags.map(String::as_str).filter(|tag| !tag.is_empty()).collect();
    let message = format!("There is no such tag; known are {}.", known.join(", "));
    Problem::new(Code::ValidationError, message).into_response()
}

/// Returns the whole description, or with `?tag=NAME` the part of one tag.
fn openapi(query: Option<&str>, texts: &DescriptionTexts) -> Response {
    let json = [(CONTENT_TYPE, "application/json")];
    let mut pairs = query.unwrap_or_default().split('&');
    let Some(tag) = pairs.find_map(|pair| pair.strip_prefix("tag=")) else {
        return (Extension(Static), json, texts.whole()).into_response();
    };
    let tags = texts.tags();
    match tags.get(tag) {
        Some(part) => (Extension(Static), json, part.clone()).into_response(),
        None => unknown_tag(tags.keys()),
    }
}

/// Renders a problem before the handler runs: JSON for the API, a page for routes that browsers open.
fn render(app: &App, problem: Problem, route: &str, parts: &Parts) -> Response {
    if route.starts_with(approvals::PAGE_PREFIX) || route == approval_pages::SIGN_IN {
        approval_pages::error_page(app, problem, parts.uri.path(), &parts.headers)
    } else if route.starts_with(oidc::BEGIN) {
        oidc::error_page(&problem)
    } else {
        problem.into_response()
    }
}

/// The console. Its files are constants and do not count against rate limits: one page has more of them than the limit
/// of anonymous requests per second.
#[cfg(feature = "console")]
fn root_pages() -> Router<App> {
    mainspring_console::router()
}

/// Without the console the root path redirects to the API reference.
#[cfg(not(feature = "console"))]
fn root_pages() -> Router<App> {
    Router::new().route("/", get(async || axum::response::Redirect::to("/docs")))
}

/// Bounds request bodies, and turns panics of handlers into responses.
fn bounded<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes.layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).layer(CatchPanicLayer::custom(broken))
}

/// The response after a panic; the panic message on standard error has the location.
fn broken(_: Box<dyn Any + Send>) -> Response {
    Problem::new(Code::InternalError, "The server failed; its log shows the cause.").into_response()
}

async fn unknown(State(_): State<App>) -> impl IntoResponse {
    Problem::new(Code::NotFound, "There is no such route; /docs and /openapi.json list all routes.")
}

async fn other_method(uri: Uri) -> impl IntoResponse {
    // A client cuts a path at `#`, which the ids of approvals of agents have.
    let hint = match uri.path().starts_with("/api/approvals/") {
        true => " Write a `#` in the id of an approval as `%23`, or use `decideUrl`.",
        false => "",
    };
    let message = format!("This route does not support this method; /openapi.json lists its methods.{hint}");
    Problem::new(Code::MethodNotAllowed, message)
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;
    use crate::http::api_text;

    #[tokio::test]
    async fn a_panic_is_answered() {
        async fn broken() -> StatusCode {
            panic!("on purpose")
        }
        let routes = bounded(Router::new().route("/", get(broken)));
        let answer = routes.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["code"], "INTERNAL_ERROR");
    }

    #[test]
    fn the_text_has_all_operations_and_is_small() {
        let description = description();
        let texts = api_text::texts(&description, "http://localhost:8080");
        let text = &texts[""];
        for (path, item) in api_text::fields(&serde_json::to_value(&description).expect("JSON")["paths"]) {
            for (method, _) in api_text::fields(item).filter(|(_, operation)| operation["responses"].is_object()) {
                let line = format!("- {} {path}", method.to_uppercase());
                assert!(text.contains(&line), "{line} is missing");
            }
        }
        assert!(text.len() < 60_000, "{} bytes", text.len());
    }

    #[test]
    fn a_tag_has_its_operations_and_all_types_that_they_use() {
        let tags = api_text::by_tag(&description());
        let executions: serde_json::Value = serde_json::from_str(&tags["executions"]).expect("JSON");
        assert!(executions["paths"]["/api/executions"]["get"].is_object());
        assert!(executions["paths"]["/api/members"].is_null());
        let mut used = std::collections::BTreeSet::new();
        api_text::add_types(&executions, &executions["paths"], &mut used);
        let known = executions["components"]["schemas"].as_object().expect("types");
        assert!(used.iter().all(|name| known.get(name).is_some_and(serde_json::Value::is_object)));
        assert_eq!(used.len(), known.len());
    }
}
