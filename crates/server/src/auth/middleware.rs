//! Authentication middleware: identifies the caller, checks the permission that the OpenAPI description of the route
//! requires, applies rate limits, and records refused requests. Rules beyond a route's permission are in the handlers.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    body::HttpBody,
    extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Version,
        header::{AUTHORIZATION, CACHE_CONTROL, CONNECTION, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS},
        request::Parts,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::hash::Hash;
use mainspring_store::{Catalogue, Change};
use utoipa::openapi::{OpenApi, path::Operation};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        permission::{Permission, Role},
        refusals::{CredentialOwner, RefusedRequest, failure_key, line_key, record},
        session::{check_origin, cookie, is_safe},
        token::{TokenText, random},
    },
    http::{
        connections::{Admitted, Holder},
        open_requests::ConnectionTimer,
        problem::{Code, Failed, Problem, Result},
        rate_limit::Verdict,
        request_bodies::{BodyMemory, receive},
        request_slots::{Account, Kind as SlotKind, on_account},
        response_memory::{Static, responses_unread},
    },
    resources::{
        Member, RemovedMember, RevokedToken, Token,
        repository::{Repository, Stored},
    },
    routes::{approval_pages, oidc},
};

/// OpenAPI extension with the requirement of a route: the name of a permission, [`CREDENTIAL`], or `public`.
pub(crate) const PERMISSION_EXTENSION: &str = "x-permission";

/// Requirement of routes that need authentication and no permission.
pub(crate) const CREDENTIAL: &str = "credential";

/// Response header with the id of the log line about a failed request, for operators.
const REQUEST_ID: &str = "x-request-id";

/// Granularity of the stored time of last use: most requests write nothing to the store.
const LAST_USED_STEP_MS: u64 = 60_000;

/// Requirements of all routes, by method and path.
#[derive(Debug, Default)]
pub(crate) struct RoutePolicies(BTreeMap<(String, String), Requirement>);

/// Requirement of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requirement {
    /// None, and no rate limit: health probes must never be throttled.
    Health,
    /// None: the route is public.
    Public,
    /// An authenticated caller, without a permission.
    Credential,
    /// An authenticated caller with this permission.
    Permission(Permission),
}

impl RoutePolicies {
    /// Reads the requirements from the OpenAPI description.
    pub(crate) fn of(description: &OpenApi) -> Self {
        let mut policies = BTreeMap::new();
        for (path, item) in &description.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in operations {
                if let Some(requirement) = operation.as_ref().and_then(requirement_of) {
                    policies.insert((method.to_string(), path.clone()), requirement);
                }
            }
        }
        Self(policies)
    }

    fn requirement(&self, method: &Method, path: &str) -> Option<Requirement> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.0.get(&(method.to_string(), path.to_string())).copied()
    }
}

fn requirement_of(operation: &Operation) -> Option<Requirement> {
    let name = operation.extensions.as_ref()?.get(PERMISSION_EXTENSION)?.as_str()?;
    match name {
        "public" if is_health(operation) => Some(Requirement::Health),
        "public" => Some(Requirement::Public),
        CREDENTIAL => Some(Requirement::Credential),
        name => Permission::parse(name).map(Requirement::Permission),
    }
}

/// True for operations that are never rate-limited.
pub(crate) fn is_health(operation: &Operation) -> bool {
    operation.tags.iter().flatten().any(|tag| tag == "health")
}

/// Request extension: the client address, for routes that put it into the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub IpAddr);

/// Middleware of all API routes: authenticates, authorizes and limits a request before it reaches its route.
pub(crate) async fn authorize(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_string()).unwrap_or_default();
    let requirement = app.policies.get().and_then(|policies| policies.requirement(request.method(), &path));
    let (from, version) = (client_address(&app, &request), request.version());
    let timer = request.extensions().get::<Arc<ConnectionTimer>>().cloned();
    let mut owner = None;
    let token = credential(&app, request.headers()).map(|credential| credential.id().to_string());
    let (verdict, admitted) = match requirement {
        None => (None, Err(Problem::new(Code::Forbidden, "This route has no permission and is closed."))),
        Some(Requirement::Health) => (None, Ok(None)),
        Some(Requirement::Public) => {
            let (verdict, admitted) = charge_anonymous(&app, from);
            (Some(verdict), admitted.map(|()| None))
        }
        Some(requirement @ (Requirement::Credential | Requirement::Permission(_))) => {
            let (method, headers) = (request.method().clone(), request.headers().clone());
            let identified = on_account(Account::anonymous(from), authenticate(&app, &method, &headers, from)).await;
            let (verdict, caller) = (identified.verdict, identified.caller);
            owner = identified.ended.or_else(|| caller.as_ref().ok().map(CredentialOwner::from));
            let may = |caller: &Caller| match requirement {
                Requirement::Permission(permission) => caller.require(permission),
                _ => Ok(()),
            };
            (Some(verdict), caller.and_then(|caller| may(&caller).map(|()| Some(caller))))
        }
    };
    let account = match (&admitted, requirement) {
        (Ok(Some(caller)), _) => Account::of(request.method(), &path, &caller.organization, &caller.user),
        (_, Some(Requirement::Health)) => Account::health(),
        _ => Account::anonymous(from),
    };
    let admitted = admitted.and_then(|caller| check_room(&app, &account, &request, caller));
    let is_admitted = matches!(&admitted, Ok(Some(_)));
    let logged = LoggedRequest { method: request.method().clone(), path: path.clone(), from, token };
    let (mut parts, body) = request.into_parts();
    let entered = match admitted {
        // Safe methods have no body.
        Ok(caller) if is_safe(&parts.method) => Ok((caller, body, None)),
        Ok(caller) => receive(&app.bodies, body, &account).await.map(|(body, memory)| (caller, body, memory)),
        Err(problem) => Err(problem),
    };
    let response = match entered {
        Ok((caller, body, memory)) => {
            let memory = BodyMemory::of(memory);
            caller.map(|caller| parts.extensions.insert(caller));
            parts.extensions.insert(memory.clone());
            parts.extensions.insert(ClientAddress(from));
            let response = on_account(account.clone(), next.run(Request::from_parts(parts, body))).await;
            memory.release();
            response
        }
        Err(problem) => rejection(&app, problem, &path, &parts),
    };
    let mut response = reserve(&app, &account, response);
    verdict.iter().for_each(|verdict| set_rate_limit_headers(verdict, response.headers_mut()));
    if is_admitted {
        response.extensions_mut().insert(Admitted);
    }
    log_refusal(&app, &logged, owner.as_ref(), &response);
    log_failure(&app, &account, &logged, &mut response);
    if let Some(refused) = refused(&app, logged, owner, &response) {
        audit_refusal(&app, from, refused).await;
    }
    set_common_headers(version, is_admitted, timer.as_deref(), &mut response);
    response
}

/// The response to a request that is refused before it reaches its route: JSON for the API, a page for browser routes.
fn rejection(app: &App, problem: Problem, path: &str, parts: &Parts) -> Response {
    let code = problem.code;
    let mut response = if path.starts_with(approval_pages::PAGE_PREFIX) || path == approval_pages::SIGN_IN {
        approval_pages::error_page(app, problem, parts.uri.path(), &parts.headers)
    } else if path.starts_with(oidc::BEGIN) {
        oidc::error_page(&problem)
    } else {
        problem.into_response()
    };
    response.extensions_mut().insert(code);
    response
}

/// Returns the caller if the connection and the response have room.
fn check_room(app: &App, account: &Account, request: &Request, caller: Option<Caller>) -> Result<Option<Caller>> {
    match (&caller, request.extensions().get::<Arc<ConnectionTimer>>()) {
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

/// A request as it appears in logs: the route pattern instead of the path, and the credential's id, which is not
/// secret.
struct LoggedRequest {
    method: Method,
    path: String,
    from: IpAddr,
    token: Option<String>,
}

/// Logs a refused request, with a limit on lines per caller.
fn log_refusal(app: &App, logged: &LoggedRequest, owner: Option<&CredentialOwner>, response: &Response) {
    if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return;
    }
    let LoggedRequest { method, path, from, token } = logged;
    let Some(is_last) = app.refusals.line(&line_key(owner, *from)) else { return };
    let (code, more) =
        (response.extensions().get::<Code>(), if is_last { "no more is logged of it this minute" } else { "" });
    tracing::warn!(
        address = %from,
        token = token.as_deref().unwrap_or_default(),
        method = %method,
        route = path,
        status = response.status().as_u16(),
        code = ?code,
        more,
        "a request was refused"
    );
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
    let LoggedRequest { method, path, from, .. } = logged;
    Some(RefusedRequest {
        owner: owner?,
        action,
        target: format!("{method} {path}"),
        code,
        from: Some(from),
        reason: None,
    })
}

/// Writes the audit entry of a refused request. The request stays refused if the write fails; the next entry reports
/// the missing ones.
async fn audit_refusal(app: &App, from: IpAddr, refused: RefusedRequest) {
    let write = app.run(move |app| {
        record(app, &refused);
        Ok(())
    });
    let _ = on_account(Account::anonymous(from), write).await;
}

/// Logs a request that was answered with 500 or 503, with a limit on lines per account, because an organization with
/// busy slots gets as many as it sends requests. The caller receives the id of the log line and not the cause.
fn log_failure(app: &App, account: &Account, logged: &LoggedRequest, response: &mut Response) {
    let Some(Failed(why)) = response.extensions_mut().remove::<Failed>() else { return };
    let Some(is_last) = app.refusals.line(&failure_key(account, response.status())) else { return };
    let (more, request) =
        (if is_last { "no more is logged of it this minute" } else { "" }, random(8).unwrap_or_default());
    let status = response.status().as_u16();
    let LoggedRequest { method, path, .. } = logged;
    tracing::warn!(request, account = account.key, method = %method, route = path, status, why, more, "a request failed");
    if let Ok(request) = HeaderValue::from_str(&request) {
        response.headers_mut().insert(REQUEST_ID, request);
    }
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
    let version = request.version();
    let (from, timer) = (client_address(&app, &request), request.extensions().get::<Arc<ConnectionTimer>>().cloned());
    let account = Account::anonymous(from);
    let (verdict, admitted) = charge_anonymous(&app, from);
    let response = match admitted.and_then(|()| check_room(&app, &account, &request, None)) {
        Ok(_) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let mut response = reserve(&app, &account, response);
    response.extensions().get::<Code>().into_iter().for_each(|code| app.refusals.count(*code));
    set_rate_limit_headers(&verdict, response.headers_mut());
    set_common_headers(version, false, timer.as_deref(), &mut response);
    response
}

/// Adds the rate limit headers (draft-ietf-httpapi-ratelimit-headers-07) and `Retry-After` (RFC 9110).
fn set_rate_limit_headers(verdict: &Verdict, headers: &mut HeaderMap) {
    if verdict.limit == 0 {
        return;
    }
    let fields = [
        ("ratelimit-limit", verdict.limit),
        ("ratelimit-remaining", verdict.remaining),
        ("ratelimit-reset", verdict.reset_s),
    ];
    let wait = (verdict.wait_s > 0).then_some(("retry-after", verdict.wait_s));
    fields.into_iter().chain(wait).for_each(|(name, value)| drop(headers.insert(name, value.into())));
}

/// Turns the verdict of a rate limit into an error if the request is over it.
fn check_verdict(verdict: Verdict, owner: &str) -> (Verdict, Result<()>) {
    let refused = || {
        let message = format!("Too many requests {owner}: there is room for the next in {} s.", verdict.wait_s);
        Problem::new(Code::RateLimited, message).with(serde_json::json!({ "retryAfterSeconds": verdict.wait_s }))
    };
    (verdict, if verdict.wait_s == 0 { Ok(()) } else { Err(refused()) })
}

fn charge_anonymous(app: &App, address: IpAddr) -> (Verdict, Result<()>) {
    check_verdict(app.limiter.anonymous(address), "without a valid credential from this address")
}

/// The client address of a request, behind trusted proxies.
fn client_address(app: &App, request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |ConnectInfo(peer)| peer.ip());
    let forwarded = request.headers().get_all("x-forwarded-for");
    app.limiter.address(peer, forwarded.iter().filter_map(|line| line.to_str().ok()))
}

fn unauthorized() -> Problem {
    Problem::new(Code::Unauthorized, "Send a token that is known and has not expired: `Authorization: Bearer msp_…`.")
}

/// Result of authentication.
struct Identified {
    /// State of the rate limit that the request was charged to.
    verdict: Verdict,
    /// The caller, or the reason for the refusal.
    caller: Result<Caller>,
    /// Owner of the credential, if it is genuine and has ended.
    ended: Option<CredentialOwner>,
}

impl From<(Verdict, Result<Caller>)> for Identified {
    fn from((verdict, caller): (Verdict, Result<Caller>)) -> Self {
        Self { verdict, caller, ended: None }
    }
}

/// Authenticates a request and charges it to a rate limit. A credential that was not valid recently is looked up at the
/// expense of its address, which gets the charge back if the credential is valid. So guessing is slow, and valid
/// callers do not pay for others behind their address.
async fn authenticate(app: &App, method: &Method, headers: &HeaderMap, address: IpAddr) -> Identified {
    let Some(credential) = credential(app, headers) else {
        let (verdict, room) = charge_anonymous(app, address);
        return (verdict, room.and(Err(unauthorized()))).into();
    };
    // Browsers attach cookies on their own: the origin check rejects requests that another site triggered.
    let origin = match &credential {
        Credential::Cookie(_) if !is_safe(method) => check_origin(&app.settings.base, headers, true),
        _ => Ok(()),
    };
    if let Err(problem) = origin {
        let (verdict, room) = charge_anonymous(app, address);
        return (verdict, room.and(Err(problem))).into();
    }
    let (proof, changes) = (credential.proof(), app.catalogue_watch.changes());
    if let Some(caller) = app.credential_cache.get(&proof, changes) {
        let (verdict, room) = check_verdict(app.limiter.caller(&caller.token), "with this credential");
        return (verdict, room.map(|()| caller)).into();
    }
    let mut charged = None;
    if !app.limiter.was_valid(&proof) {
        let (verdict, room) = charge_anonymous(app, address);
        if let Err(problem) = room {
            return (verdict, Err(problem)).into();
        }
        charged = Some(verdict);
    }
    match app.run(move |app| look_up(app, &credential)).await {
        Ok(Lookup::Valid(caller)) => {
            let caller = *caller;
            app.limiter.record_valid(address, proof, charged.is_some());
            app.credential_cache.set(proof, caller.clone(), changes);
            let (verdict, room) = check_verdict(app.limiter.caller(&caller.token), "with this credential");
            (verdict, room.map(|()| caller)).into()
        }
        Ok(found) => {
            app.limiter.forget(&proof);
            let verdict = charged.unwrap_or_else(|| app.limiter.anonymous(address));
            let ended = if let Lookup::Ended(owner) = found { Some(owner) } else { None };
            Identified { verdict, caller: Err(unauthorized()), ended }
        }
        Err(problem) => (charged.unwrap_or(Verdict::NONE), Err(problem)).into(),
    }
}

/// The credential of a request.
pub(crate) enum Credential {
    /// A token.
    Bearer(TokenText),
    /// A session cookie, which is bound to a token.
    Cookie(TokenText),
}

impl Credential {
    /// Id of the token.
    fn id(&self) -> &str {
        let (Self::Bearer(text) | Self::Cookie(text)) = self;
        &text.id
    }

    /// Key under which caches remember the credential, so that they do not keep the secret.
    fn proof(&self) -> Hash {
        match self {
            Self::Bearer(text) => Hash::of(text.reveal().as_bytes()),
            Self::Cookie(text) => Hash::of(text.reveal_cookie().as_bytes()),
        }
    }
}

/// The credential of a request, if it is well-formed. A token in `Authorization` takes precedence over cookies.
fn credential(app: &App, headers: &HeaderMap) -> Option<Credential> {
    let Some(given) = headers.get(AUTHORIZATION) else {
        return cookie(&app.settings.base, headers).map(Credential::Cookie);
    };
    let (scheme, text) = given.to_str().ok()?.split_once(' ')?;
    let token = TokenText::parse(text.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"));
    token.map(Credential::Bearer)
}

/// Result of looking up a credential.
pub(crate) enum Lookup {
    /// The credential and its member are current.
    Valid(Box<Caller>),
    /// Genuine, but no longer valid: it was revoked or has expired, or its member was removed.
    Ended(CredentialOwner),
    /// Unknown, or the secret is wrong.
    Unknown,
}

/// The caller of a credential; `None` if it is not valid.
pub(crate) fn valid_caller(app: &App, credential: &Credential) -> Result<Option<Caller>> {
    Ok(match look_up(app, credential)? {
        Lookup::Valid(caller) => Some(*caller),
        Lookup::Ended(_) | Lookup::Unknown => None,
    })
}

/// Looks a credential up in the catalogue.
pub(crate) fn look_up(app: &App, credential: &Credential) -> Result<Lookup> {
    let (Credential::Bearer(text) | Credential::Cookie(text)) = credential;
    let installation = Repository::of(app.catalogue(), "");
    let owner = |organization: &str, user: &str| CredentialOwner {
        organization: organization.into(),
        user: user.into(),
        token: text.id.clone(),
    };
    let Some(stored) = installation.get::<Token>(&text.id)? else {
        let revoked = installation.get::<RevokedToken>(&text.id)?.filter(|revoked| revoked.body.fits(text));
        return Ok(
            revoked.map_or(Lookup::Unknown, |Stored { body, .. }| Lookup::Ended(owner(&body.organization, &body.user)))
        );
    };
    let (token, now) = (&stored.body, now_ms());
    let (fits, sign_in) = match credential {
        Credential::Bearer(_) => (token.secret_hash().is_some_and(|hash| text.fits(&hash)), None),
        Credential::Cookie(_) => {
            let sign_in = token.sign_in(text, now).map(|one| one.hash.clone());
            (sign_in.is_some(), sign_in)
        }
    };
    if !fits {
        let has_ended = matches!(credential, Credential::Cookie(text) if token.had_sign_in(text));
        return Ok(if has_ended { Lookup::Ended(owner(&token.organization, &token.user)) } else { Lookup::Unknown });
    }
    if token.expires_at.is_some_and(|at| at <= now) {
        return Ok(Lookup::Ended(owner(&token.organization, &token.user)));
    }
    let Some(member) = Repository::of(app.catalogue(), &token.organization).get::<Member>(&token.user)? else {
        return Ok(Lookup::Ended(owner(&token.organization, &token.user)));
    };
    let caller = Caller {
        organization: token.organization.clone(),
        user: token.user.clone(),
        role: member.body.role,
        kind: token.session_of.clone().map_or(Kind::Person, |execution| Kind::Session { execution }),
        token: stored.id.clone(),
        sign_in,
        scopes: token.scopes.clone(),
        is_operator: member.body.is_operator,
        made_by: token.other_maker().map(Into::into),
        known_to: secret_known_to(app.catalogue(), token)?,
        expires_at: token.expires_at,
    };
    if token.last_used_at.is_none_or(|at| now.saturating_sub(at) >= LAST_USED_STEP_MS) {
        let used = Token { last_used_at: Some(now), ..token.clone() };
        let puts = vec![installation.put(&stored.id, &used, stored.version)?];
        // The result is ignored: a concurrent request writes the same, and a busy store loses a minute of precision.
        // The write bypasses the catalogue watch, because it changes nothing that authentication depends on.
        let _ = app.engine.store().catalogue().change(&Change { puts, ..Change::default() });
    }
    Ok(Lookup::Valid(Box::new(caller)))
}

/// The admin who knows the secret of a credential in addition to its member. Credentials from before this was stored
/// fall back to their maker, even if the maker was demoted or removed since: creating one for another member required
/// the admin role. A maker who was never a member had access to the data folder.
fn secret_known_to(catalogue: &dyn Catalogue, token: &Token) -> Result<Option<String>> {
    let is_stored = token.known_to.is_some() || token.is_by_owner;
    let Some(maker) = token.other_maker().filter(|_| !is_stored) else { return Ok(token.known_to.clone()) };
    let members = Repository::of(catalogue, &token.organization);
    let is_counted = match members.get::<Member>(maker)? {
        Some(member) => member.body.role != Role::Owner,
        None => members.get::<RemovedMember>(maker)?.is_some(),
    };
    Ok(is_counted.then(|| maker.to_string()))
}

/// True if an earlier authenticated credential is still valid and still has a permission that it had.
pub(crate) fn is_still_valid(app: &App, caller: &Caller, permission: Permission) -> Result<bool> {
    Ok(current_caller(app, caller)?.is_some_and(|now| now.has(permission)))
}

/// The caller of a request that has waited, with the current role and scopes.
///
/// # Errors
/// Fails with 401 if the credential is no longer valid, and with 403 if it no longer has the permission.
pub(crate) fn reauthorize(app: &App, caller: &Caller, permission: Permission) -> Result<Caller> {
    let now = current_caller(app, caller)?.ok_or_else(unauthorized)?;
    now.require(permission)?;
    Ok(now)
}

/// An authenticated caller with the current role and scopes; `None` if the credential is no longer valid.
pub(crate) fn current_caller(app: &App, caller: &Caller) -> Result<Option<Caller>> {
    let token = Repository::of(app.catalogue(), "").get::<Token>(&caller.token)?;
    let member = Repository::of(app.catalogue(), &caller.organization).get::<Member>(&caller.user)?;
    let is_unexpired = |token: &Token| {
        let is_current =
            |hash: &String| token.sign_ins.iter().any(|one| one.hash == *hash && one.expires_at > now_ms());
        token.expires_at.is_none_or(|at| at > now_ms()) && caller.sign_in.as_ref().is_none_or(is_current)
    };
    let (Some(token), Some(member)) = (token, member) else { return Ok(None) };
    let Member { role, is_operator, .. } = member.body;
    let now = Caller { role, is_operator, scopes: token.body.scopes.clone(), ..caller.clone() };
    Ok(is_unexpired(&token.body).then_some(now))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let missing = || Problem::new(Code::Unauthorized, "This route needs a credential.");
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use mainspring_store::memory::MemoryStore;

    use super::*;
    use crate::resources::repository::apply;

    #[test]
    fn the_creator_of_an_old_token_knows_its_secret_even_after_demotion_or_removal() {
        let table = [
            (Some(Role::Owner), false, false),
            (Some(Role::Admin), false, true),
            (Some(Role::Member), false, true),
            (None, true, true),
            // Made by the command `mainspring token`.
            (None, false, false),
        ];
        for (role, was_removed, is_known) in table {
            let store = MemoryStore::new();
            let members = Repository::of(&store, "acme");
            let member = |role| Member { role, name: None, is_operator: false, created_at: 0 };
            let put = role.map(|role| members.put("mal", &member(role), 0).unwrap());
            let gone = was_removed.then(|| members.put("mal", &RemovedMember { removed_at: 0 }, 0).unwrap());
            let change = Change { puts: put.into_iter().chain(gone).collect(), ..Change::default() };
            apply(&store, &change).unwrap().unwrap();
            let token = |is_by_owner| Token {
                organization: "acme".into(),
                user: "p".into(),
                name: "t".into(),
                hash: String::new(),
                made_by: "mal".into(),
                scopes: Vec::new(),
                session_of: None,
                created_at: 0,
                expires_at: None,
                last_used_at: None,
                sign_ins: Vec::new(),
                signed_in_by: None,
                known_to: None,
                is_by_owner,
            };
            let known = secret_known_to(&store, &token(false)).unwrap();
            assert_eq!(known.as_deref(), is_known.then_some("mal"), "{role:?} {was_removed}");
            assert_eq!(secret_known_to(&store, &token(true)).unwrap(), None, "an owner made it");
        }
    }
}
