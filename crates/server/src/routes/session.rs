//! Browser sessions: sign-in with a token, and sign-out.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::IntoResponse,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::Body,
    clock,
    door::CameFrom,
    problem::{Answer, ProblemBody},
    signing_in::{check_origin, cookie, sign_in, sign_out},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(begin, end))
}

/// A sign-in with a token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Begin {
    /// Token: `msp_…`.
    token: String,
}

/// A browser session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// Id of the organization.
    organization_id: String,
    /// Id of the member.
    user_id: String,
    /// Expiration time of the cookie, RFC 3339.
    expires_at: String,
}

/// Sign in with a browser. The session cookie is valid until the token, the member or the session ends, at most 12
/// hours. Changes with the cookie must come from the server's own base URL.
#[utoipa::path(post, path = "/api/session", tag = "session", security(()), request_body = Begin,
    extensions(("x-permission" = json!("public"))),
    responses((status = 201, body = Session, headers(("Set-Cookie" = String, description = "The session cookie"))),
        (status = 401, body = ProblemBody), (status = 403, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn begin(
    State(app): State<App>,
    Extension(CameFrom(from)): Extension<CameFrom>,
    headers: HeaderMap,
    Body(body): Body<Begin>,
) -> Answer<impl IntoResponse> {
    check_origin(&app.settings.base, &headers, false)?;
    let begun = app.run(move |app| sign_in(app, &body.token, from)).await?;
    let (organization_id, user_id) = (begun.caller.organization, begun.caller.user);
    let session = Session { organization_id, user_id, expires_at: clock::text(begun.expires_at) };
    Ok((StatusCode::CREATED, [(SET_COOKIE, begun.cookie)], Json(session)))
}

/// Sign out and invalidate the session cookie. Without a cookie the request has no effect.
#[utoipa::path(delete, path = "/api/session", tag = "session", security((), ("cookie" = [])),
    extensions(("x-permission" = json!("public"))),
    responses((status = 204, headers(("Set-Cookie" = String, description = "Deletes the session cookie"))),
        (status = 403, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn end(State(app): State<App>, headers: HeaderMap) -> Answer<impl IntoResponse> {
    let cookie = cookie(&app.settings.base, &headers);
    check_origin(&app.settings.base, &headers, cookie.is_some())?;
    let gone = app.run(move |app| sign_out(app, cookie)).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]))
}
