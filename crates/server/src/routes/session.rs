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

/// What lets in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Begin {
    /// A token: `msp_…`.
    token: String,
}

/// Who has signed in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// The organisation.
    organization_id: String,
    /// The member.
    user_id: String,
    /// When the cookie ends.
    expires_at: String,
}

/// Sign in with a browser: a cookie that stands for a token until it, the token or the member ends, for 12 hours at the
/// most. With it, whatever changes something must come from the server's own base URL.
#[utoipa::path(post, path = "/api/session", tag = "session", security(()), request_body = Begin,
    extensions(("x-permission" = json!("public"))),
    responses((status = 201, body = Session, headers(("Set-Cookie" = String, description = "The cookie"))),
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

/// Sign out: the cookie lets in nobody any more. Without one there is nothing to end.
#[utoipa::path(delete, path = "/api/session", tag = "session", security((), ("cookie" = [])),
    extensions(("x-permission" = json!("public"))),
    responses((status = 204, headers(("Set-Cookie" = String, description = "No cookie"))),
        (status = 403, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn end(State(app): State<App>, headers: HeaderMap) -> Answer<impl IntoResponse> {
    let cookie = cookie(&app.settings.base, &headers);
    check_origin(&app.settings.base, &headers, cookie.is_some())?;
    let gone = app.run(move |app| sign_out(app, cookie)).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]))
}
