//! Middleware of all routes: authenticates a request, checks the requirement of its route, applies limits before the
//! handler runs, and reports refusals. Rules beyond a route's requirement are in the handlers.

use std::sync::Arc;

use axum::{
    body::HttpBody,
    extract::{MatchedPath, Request, State},
    http::{
        HeaderValue, StatusCode, Version,
        header::{CACHE_CONTROL, CONNECTION, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS},
        request::Parts,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    app::App,
    auth::{
        authenticate::{authenticate, charge_anonymous},
        caller::Caller,
        credential::Credential,
        cross_site::is_safe,
        policy::Requirement,
        refusal_log::{LoggedRequest, report},
        refusals::CredentialOwner,
    },
    http::{
        client_address::{ClientAddress, client_address},
        connections::{Admitted, Holder},
        open_requests::ConnectionTimer,
        problem::{Code, Problem, Result},
        rate_limit::Verdict,
        request_bodies::{BodyMemory, receive},
        request_slots::{Account, Kind as SlotKind, on_account},
        response_memory::{Static, responses_unread},
    },
};

/// Renders a problem as the response of a route, which is given by its pattern: JSON, or a page for browsers.
pub(crate) type RenderProblem = fn(&App, Problem, route: &str, &Parts) -> Response;

/// State of [`authorize`].
#[derive(Clone)]
pub(crate) struct Authorization {
    pub app: App,
    pub render: RenderProblem,
}

/// The decision about a request before it reaches its route.
struct Decision {
    /// State of the rate limit that the request was charged to; `None` for health probes and closed routes.
    verdict: Option<Verdict>,
    /// The caller, if the route requires one, or the reason for the refusal.
    admitted: Result<Option<Caller>>,
    /// Owner of the credential, if it identifies one.
    owner: Option<CredentialOwner>,
}

/// Authenticates, authorizes and limits a request before it reaches its route.
pub(crate) async fn authorize(
    State(Authorization { app, render }): State<Authorization>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let version = parts.version;
    let timer = parts.extensions.get::<Arc<ConnectionTimer>>().cloned();
    let from = client_address(&app.limiter, &parts);
    let credential = Credential::of(&app.settings.base, &parts.headers);
    let logged = LoggedRequest {
        method: parts.method.clone(),
        route: parts.extensions.get::<MatchedPath>().cloned(),
        from,
        token: credential.as_ref().map(Credential::id),
    };
    let requirement = app.policies.get().and_then(|policies| policies.requirement(&parts.method, logged.path()));
    let Decision { verdict, admitted, owner } = decide(&app, requirement, credential, &parts, &logged).await;
    let account = Arc::new(match (&admitted, requirement) {
        (Ok(Some(caller)), _) => Account::of(&parts.method, logged.path(), &caller.organization, &caller.user),
        (_, Some(Requirement::Health)) => Account::health(),
        _ => Account::anonymous(from),
    });
    let admitted = admitted.and_then(|caller| check_room(&app, &account, timer.as_deref(), caller));
    let is_admitted = matches!(&admitted, Ok(Some(_)));
    let received = match admitted {
        // Safe methods have no body.
        Ok(caller) if is_safe(&parts.method) => Ok((caller, body, None)),
        Ok(caller) => receive(&app.requests.bodies, body, &account, requirement == Some(Requirement::Webhook))
            .await
            .map(|(body, memory)| (caller, body, memory)),
        Err(problem) => Err(problem),
    };
    let response = match received {
        Ok((caller, body, memory)) => {
            let mut request = Request::from_parts(parts, body);
            request.extensions_mut().insert(ClientAddress(from));
            caller.map(|caller| request.extensions_mut().insert(caller));
            handle(account.clone(), BodyMemory::of(memory), request, next).await
        }
        Err(problem) => {
            let code = problem.code;
            let mut response = render(&app, problem, logged.path(), &parts);
            response.extensions_mut().insert(code);
            response
        }
    };
    let mut response = reserve(&app, &account, response);
    verdict.iter().for_each(|verdict| verdict.set_headers(response.headers_mut()));
    if is_admitted {
        response.extensions_mut().insert(Admitted);
    }
    report(&app, &account, logged, owner, &mut response).await;
    set_common_headers(version, is_admitted, timer.as_deref(), &mut response);
    response
}

/// Compares a request with the requirement of its route, and charges it to a rate limit.
async fn decide(
    app: &App,
    requirement: Option<Requirement>,
    credential: Option<Credential>,
    parts: &Parts,
    logged: &LoggedRequest,
) -> Decision {
    let refuse = |problem: Problem| Decision { verdict: None, admitted: Err(problem), owner: None };
    let permission = match requirement {
        None => return refuse(Problem::new(Code::Forbidden, "This route has no permission and is closed.")),
        Some(Requirement::Health) => return Decision { verdict: None, admitted: Ok(None), owner: None },
        Some(Requirement::Public | Requirement::Webhook) => {
            let (verdict, room) = charge_anonymous(app, logged.from);
            return Decision { verdict: Some(verdict), admitted: room.map(|()| None), owner: None };
        }
        Some(Requirement::Credential) => None,
        Some(Requirement::Permission(permission)) => Some(permission),
    };
    let account = Account::anonymous(logged.from);
    let authenticated = on_account(account, authenticate(app, parts, credential, logged.from)).await;
    let caller = authenticated.caller;
    let owner = authenticated.ended.or_else(|| caller.as_ref().ok().map(CredentialOwner::from));
    let check = |caller: Caller| permission.map_or(Ok(()), |permission| caller.require(permission)).map(|()| caller);
    Decision { verdict: Some(authenticated.verdict), admitted: caller.and_then(check).map(Some), owner }
}

/// Runs the handler of an admitted request on its account, and releases the memory of the body after it.
async fn handle(account: Arc<Account>, memory: BodyMemory, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(memory.clone());
    let response = on_account(account, next.run(request)).await;
    memory.release();
    response
}

/// Returns the caller if the connection and the response have room.
fn check_room(
    app: &App,
    account: &Account,
    timer: Option<&ConnectionTimer>,
    caller: Option<Caller>,
) -> Result<Option<Caller>> {
    match (&caller, timer) {
        (Some(Caller { organization, token, is_operator, .. }), Some(timer)) => {
            let is_exempt = *is_operator || account.kind == SlotKind::Reserved;
            let holder = Holder { organization, token, is_exempt };
            timer.connection().map_or(Ok(()), |connection| connection.prove(&holder))?;
            timer.proven();
        }
        (None, _) if !app.responses.has_room(account) => return Err(responses_unread()),
        _ => {}
    }
    Ok(caller)
}

/// Counts the bytes of a response until the client has received them. A response without room is replaced by a 503.
fn reserve(app: &App, account: &Account, mut response: Response) -> Response {
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    if bytes == 0 || response.extensions().get::<Static>().is_some() {
        return response;
    }
    let reserved = app.responses.reserve(account, bytes).or_else(|| {
        response = responses_unread().into_response();
        app.responses.reserve(account, response.body().size_hint().lower() as usize)
    });
    reserved.map(|reserved| response.extensions_mut().insert(reserved));
    response
}

/// Sets the headers of every response. The connection of a rejected request is closed to free its place. HTTP/1 has a
/// header for that; an HTTP/2 connection is closed after several rejections.
fn set_common_headers(version: Version, is_admitted: bool, timer: Option<&ConnectionTimer>, response: &mut Response) {
    let status = response.status();
    let is_rejected =
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let counts = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS);
    match timer {
        Some(timer) if is_admitted => timer.authenticated(),
        Some(timer) if counts => timer.rejected(),
        _ => {}
    }
    let headers = response.headers_mut();
    // RFC 9111, 5.2.2.5: responses may depend on the caller, so that no cache stores them. `nosniff` fixes their type.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    if status == StatusCode::UNAUTHORIZED {
        headers.entry(WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
    }
    if is_rejected && !is_admitted && version <= Version::HTTP_11 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Middleware of paths outside of the API: public files and unknown paths. Applies the rate limit of anonymous
/// requests.
pub(crate) async fn rate_limit(State(app): State<App>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let (version, from) = (parts.version, client_address(&app.limiter, &parts));
    let timer = parts.extensions.get::<Arc<ConnectionTimer>>().cloned();
    let account = Account::anonymous(from);
    let (verdict, room) = charge_anonymous(&app, from);
    let response = match room.and_then(|()| check_room(&app, &account, timer.as_deref(), None)) {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(problem) => problem.into_response(),
    };
    let mut response = reserve(&app, &account, response);
    response.extensions().get::<Code>().into_iter().for_each(|code| app.refusals.count(*code));
    verdict.set_headers(response.headers_mut());
    set_common_headers(version, false, timer.as_deref(), &mut response);
    response
}
