//! Sign-in through OpenID Connect: the redirect to the provider, and the callback.

use std::net::IpAddr;

use axum::{
    Extension,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{LOCATION, SET_COOKIE},
    },
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use url::Url;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{
        cookie::{login_cookie, set_login_cookie},
        oidc::{
            login::log_in,
            provider::{Callback, Provider, provider_reason},
        },
        refusals::{CredentialOwner, RefusedRequest},
    },
    http::{
        client_address::ClientAddress,
        extract::QueryParams,
        html::Html,
        problem::{Code, Problem, ProblemBody, Result},
    },
    resources::{Organization, repository::Repository},
};

/// Path that starts a sign-in.
pub(crate) const BEGIN: &str = "/sign-in/oidc";

/// Path of the callback, as registered at the provider.
const CALLBACK: &str = "/sign-in/oidc/callback";

/// Most bytes of the return path. It is stored in a cookie, which browsers limit to 4 KiB.
const NEXT_MAX: usize = 1024;

/// Actor of audit entries about the provider. It is no valid id of a member.
const PROVIDER: &str = "(provider)";

/// Most characters of a cause in an audit entry. The provider controls a part of the text.
const REASON_CHARACTERS_MAX: usize = 500;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(begin)).routes(routes!(end))
}

/// Target of the redirect after a sign-in.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct BeginQuery {
    /// Path of this server to return to, such as `/approve/…`; default `/`.
    next: Option<String>,
}

/// Start a sign-in with the configured OpenID Connect provider. The provider redirects the browser to
/// `/sign-in/oidc/callback`.
#[utoipa::path(get, path = "/sign-in/oidc", tag = "pages", security(()), params(BeginQuery),
    extensions(("x-permission" = json!("public"))),
    responses((status = 303, description = "Redirect to the provider", headers(
            ("Set-Cookie" = String, description = "Cookie that binds the sign-in to the browser"),
            ("Location" = String, description = "URL of the provider"))),
        (status = 404, body = ProblemBody, description = "No provider is configured (`NOT_FOUND`)")))]
async fn begin(
    State(app): State<App>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    query: Result<QueryParams<BeginQuery>>,
) -> Response {
    let Some(provider) = &app.settings.oidc else { return not_set_up().into_response() };
    let begun = async {
        let next = local(&app.settings.base, query?.0.next.as_deref().unwrap_or("/"))?;
        provider.begin(&callback(&app), &next, app.engine.key(), from).await
    };
    match begun.await {
        Ok(redirect) => {
            let (value, seconds) = &redirect.cookie;
            let cookie = set_login_cookie(&app.settings.base, value, *seconds);
            (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, redirect.location)]).into_response()
        }
        Err(problem) => {
            audit_failure(&app, BEGIN, from, &problem).await;
            error_page(&problem)
        }
    }
}

/// Records a failure of the provider in the audit log of the organization that it serves. The entries are limited,
/// because sign-ins need no credential.
async fn audit_failure(app: &App, target: &str, from: IpAddr, problem: &Problem) {
    let (Some(reason), Some(provider)) = (provider_reason(problem), &app.settings.oidc) else { return };
    let organization = provider.settings().organization.clone();
    let refused = RefusedRequest {
        owner: CredentialOwner { organization: organization.clone(), user: PROVIDER.into(), token: "oidc".into() },
        action: "session.failed",
        target: target.into(),
        code: problem.code,
        from: Some(from),
        reason: Some(reason.chars().take(REASON_CHARACTERS_MAX).collect()),
    };
    let write = app.run(move |app| {
        // A missing organization has no audit log; the server's log has the cause.
        if Repository::of(app.catalogue(), "").get::<Organization>(&organization)?.is_some() {
            app.refusals.record(app.catalogue(), app.engine.key(), &refused);
        }
        Ok(())
    });
    let _ = write.await;
}

/// Parameters that the provider adds to the callback. Unknown ones are ignored.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct EndQuery {
    /// State of the authorization request.
    state: Option<String>,
    /// Authorization code, exchanged for the ID token.
    code: Option<String>,
    /// Error code of the provider, instead of an authorization code.
    error: Option<String>,
    /// Issuer of the response (RFC 9207).
    iss: Option<String>,
}

/// Callback of the OpenID Connect provider. Signs in the identified member with the same cookie as `POST /api/session`,
/// and redirects to the requested page.
#[utoipa::path(get, path = "/sign-in/oidc/callback", tag = "pages", security(()), params(EndQuery),
    extensions(("x-permission" = json!("public"))),
    responses((status = 200, content_type = "text/html", body = String,
            headers(("Set-Cookie" = String, description = "The session cookie"))),
        (status = 401, content_type = "text/html", body = String, description = "The provider's response is invalid"),
        (status = 403, content_type = "text/html", body = String, description = "The identity may not sign in here"),
        (status = 404, body = ProblemBody, description = "No provider is configured (`NOT_FOUND`)")))]
async fn end(
    State(app): State<App>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    headers: HeaderMap,
    query: Result<QueryParams<EndQuery>>,
) -> Response {
    let Some(provider) = app.settings.oidc.clone() else { return not_set_up().into_response() };
    let mut response = match finish(&app, &provider, &headers, query, from).await {
        Ok(response) => response,
        Err(problem) => {
            audit_failure(&app, CALLBACK, from, &problem).await;
            error_page(&problem)
        }
    };
    // A binding cookie is valid for one callback, successful or not.
    if let Ok(gone) = set_login_cookie(&app.settings.base, "", 0).parse() {
        response.headers_mut().append(SET_COOKIE, gone);
    }
    response
}

async fn finish(
    app: &App,
    provider: &Provider,
    headers: &HeaderMap,
    query: Result<QueryParams<EndQuery>>,
    from: IpAddr,
) -> Result<Response> {
    let EndQuery { state, code, error, iss: issuer } = query?.0;
    let cookie = login_cookie(&app.settings.base, headers);
    let returned = Callback { cookie, state, code, error, issuer };
    let (claims, next) = provider.end(&callback(app), returned, app.engine.key(), from).await?;
    let settings = provider.settings().clone();
    let login = app.run(move |app| log_in(app, &settings, &claims)).await?;
    // A page instead of a redirect: browsers withhold the `SameSite=Strict` cookie on navigation that another site
    // started.
    let page = Html::of("h1", "You are signed in")
        .add(Html::of("p", &format!("As {} of {}.", login.user, login.organization)))
        .markup("<meta http-equiv=\"refresh\" content=\"0; url=")
        .text(&next)
        .markup("\"><p><a href=\"")
        .text(&next)
        .markup("\">Continue</a></p>")
        .page(StatusCode::OK, "Signed in");
    Ok(([(SET_COOKIE, login.cookie)], page).into_response())
}

fn callback(app: &App) -> String {
    format!("{}{CALLBACK}", app.settings.base)
}

/// Checks that a path stays on this server, however a browser interprets slashes.
fn local(base: &str, next: &str) -> Result<String> {
    let is_plain = next.starts_with('/') && next.len() <= NEXT_MAX && next.bytes().all(|byte| byte.is_ascii_graphic());
    let joined = Url::parse(base).ok().and_then(|base| Some((base.origin(), base.join(next).ok()?)));
    let stays = joined.is_some_and(|(origin, url)| url.origin() == origin);
    if is_plain && stays && !next.contains('\\') && !next.starts_with("//") {
        return Ok(next.into());
    }
    Err(Problem::field("next", "it must be a path of this server, like /docs"))
}

fn not_set_up() -> Problem {
    let message = "OpenID Connect is not configured: set `oidcIssuer` on the server.";
    Problem::new(Code::NotFound, message)
}

/// An error as an HTML page.
pub(crate) fn error_page(problem: &Problem) -> Response {
    let mut response = Html::of("h1", "That did not work")
        .add(Html::of("p", &problem.message))
        .markup("<p><a href=\"/sign-in/oidc\">Sign in again</a></p>")
        .page(problem.code.status(), "That did not work");
    problem.failed().map(|failed| response.extensions_mut().insert(failed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_redirect_targets() {
        let base = "https://flows.example.com";
        for next in ["/", "/docs", "/approve/a.b?again=1", "/a//b", "/a#b", "/%2f%2fevil.example"] {
            assert_eq!(local(base, next).as_deref(), Ok(next));
        }
        let long = format!("/{}", "a".repeat(NEXT_MAX));
        for next in [
            "",
            "docs",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "/ /evil",
            "javascript:alert(1)",
            "/a\r\nb",
            "/ä",
            "/..\\/evil",
            "//flows.example.com",
            &long,
        ] {
            assert!(local(base, next).is_err(), "{next}");
        }
    }
}
