//! Browser sessions: sign-in with a token, and sign-out.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::IntoResponse,
};
use mainspring_engine::clock::now_ms;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{
        cookie::session_cookie,
        cross_site::check_origin,
        session::{sign_in, sign_out},
    },
    http::{
        body::Body,
        client_address::ClientAddress,
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(begin, end))
}

/// A sign-in with a token, or with the code of an address that a command has opened.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Begin {
    /// Token: `msp_…`.
    token: Option<String>,
    /// One-time code of `mainspring dev` or `mainspring up --open`, in place of a token.
    code: Option<String>,
}

impl Begin {
    /// The token, or that of the code, which is used up.
    fn token(self, app: &App) -> Result<String> {
        match (self.token, self.code) {
            (Some(token), None) => Ok(token),
            (None, Some(code)) => app.local.sign_in_codes.redeem(&code, now_ms()),
            _ => Err(Problem::field("token", "give either `token` or `code`")),
        }
    }
}

/// A browser session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// Organization that the session belongs to.
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
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    headers: HeaderMap,
    Body(body): Body<Begin>,
) -> Result<impl IntoResponse> {
    check_origin(&app.settings.base, &headers, false)?;
    let token = body.token(&app)?;
    let signed_in = app.run(move |app| sign_in(app, &token, from)).await?;
    let (organization_id, user_id) = (signed_in.caller.organization, signed_in.caller.user);
    let session = Session { organization_id, user_id, expires_at: timestamps::text(signed_in.expires_at) };
    Ok((StatusCode::CREATED, [(SET_COOKIE, signed_in.cookie)], Json(session)))
}

/// Sign out and invalidate the session cookie. Without a cookie the request has no effect.
#[utoipa::path(delete, path = "/api/session", tag = "session", security((), ("cookie" = [])),
    extensions(("x-permission" = json!("public"))),
    responses((status = 204, headers(("Set-Cookie" = String, description = "Deletes the session cookie"))),
        (status = 403, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn end(State(app): State<App>, headers: HeaderMap) -> Result<impl IntoResponse> {
    let cookie = session_cookie(&app.settings.base, &headers);
    check_origin(&app.settings.base, &headers, cookie.is_some())?;
    let gone = app.run(move |app| sign_out(app, cookie)).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]))
}
