//! Log lines and audit entries of refused and failed requests.

use std::net::IpAddr;

use axum::{
    extract::MatchedPath,
    http::{HeaderValue, Method, StatusCode},
    response::Response,
};

use crate::{
    app::App,
    auth::{
        refusals::{CredentialOwner, RefusedRequest, failure_key, line_key},
        token::random,
    },
    http::{
        problem::{Code, Failed},
        request_slots::{Account, on_account},
    },
};

/// Response header with the id of the log line about a failed request, for operators.
const REQUEST_ID: &str = "x-request-id";

/// A request as it appears in logs.
pub(crate) struct LoggedRequest {
    pub method: Method,
    /// The pattern of the route, which contains no values of the request.
    pub route: Option<MatchedPath>,
    /// Address of the client.
    pub from: IpAddr,
    /// Id of the credential, which is not secret.
    pub token: Option<String>,
}

impl LoggedRequest {
    /// The pattern of the route; empty if none matches.
    pub(crate) fn path(&self) -> &str {
        self.route.as_ref().map_or("", MatchedPath::as_str)
    }
}

/// The last field of a log line, if further lines about the same key are suppressed.
fn suppression(is_last: bool) -> &'static str {
    if is_last { "further lines of this minute are suppressed" } else { "" }
}

/// Logs and counts a refused or failed request, and adds a refusal to the audit log of the credential's organization.
pub(crate) async fn report(
    app: &App,
    account: &Account,
    logged: LoggedRequest,
    owner: Option<CredentialOwner>,
    response: &mut Response,
) {
    log_refusal(app, &logged, owner.as_ref(), response);
    log_failure(app, account, &logged, response);
    if let Some(refused) = refused(app, logged, owner, response) {
        audit_refusal(app, refused).await;
    }
}

/// Logs a refused request, with a limit on lines per caller.
fn log_refusal(app: &App, logged: &LoggedRequest, owner: Option<&CredentialOwner>, response: &Response) {
    if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return;
    }
    let Some(is_last) = app.refusals.line(&line_key(owner, logged.from)) else { return };
    tracing::warn!(
        address = %logged.from,
        token = logged.token.as_deref().unwrap_or_default(),
        method = %logged.method,
        route = logged.path(),
        status = response.status().as_u16(),
        code = ?response.extensions().get::<Code>(),
        more = suppression(is_last),
        "a request was refused"
    );
}

/// Logs a request that was answered with 500 or 503, with a limit on lines per account, because an organization with
/// busy slots gets as many as it sends requests. The caller receives the id of the log line and not the cause.
fn log_failure(app: &App, account: &Account, logged: &LoggedRequest, response: &mut Response) {
    let Some(Failed(why)) = response.extensions_mut().remove::<Failed>() else { return };
    let Some(is_last) = app.refusals.line(&failure_key(account, response.status())) else { return };
    let request = random(8).unwrap_or_default();
    tracing::warn!(
        request,
        account = account.key,
        method = %logged.method,
        route = logged.path(),
        status = response.status().as_u16(),
        why,
        more = suppression(is_last),
        "a request failed"
    );
    if let Ok(request) = HeaderValue::from_str(&request) {
        response.headers_mut().insert(REQUEST_ID, request);
    }
}

/// Counts an error response. Returns an audit entry for 401 and 403 if the credential identifies an organization: one
/// that has expired or was revoked, or one that lacks the permission.
fn refused(
    app: &App,
    logged: LoggedRequest,
    owner: Option<CredentialOwner>,
    response: &Response,
) -> Option<RefusedRequest> {
    let code = response.extensions().get::<Code>().copied()?;
    app.refusals.count(code);
    let action = match response.status() {
        StatusCode::UNAUTHORIZED => "session.refused",
        StatusCode::FORBIDDEN => "access.refused",
        _ => return None,
    };
    let target = format!("{} {}", logged.method, logged.path());
    Some(RefusedRequest { owner: owner?, action, target, code, from: Some(logged.from), reason: None })
}

/// Writes the audit entry of a refused request. The request stays refused if the write fails; the next entry reports
/// the missing ones.
async fn audit_refusal(app: &App, refused: RefusedRequest) {
    let from = refused.from.map(|from| from.to_string()).unwrap_or_default();
    let write = app.run(move |app| {
        app.refusals.record(app.catalogue(), app.engine.key(), &refused);
        Ok(())
    });
    let _ = on_account(Account::anonymous(from), write).await;
}
