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
use mainspring_engine::engine::now_ms;
use mainspring_kernel::hash::Hash;
use mainspring_store::{Catalogue, Change};
use utoipa::openapi::{OpenApi, path::Operation};

use crate::{
    app::App,
    connections::{Admitted, Holder},
    identity::{Caller, Kind, Permission, Role, TokenText, random},
    nouns::{Departed, Member, Revoked, Token},
    problem::{Answer, Code, Failed, Problem},
    rate::Verdict,
    receiving::{BodyRoom, receive},
    refusals::{Refused, Whose, failure_key, line_key, record},
    responses::{Static, untaken},
    routes::{links, oidc},
    sending::Clock,
    shelf::{Held, Shelf},
    signing_in::{check_origin, cookie, is_safe},
    slots::{Account, Kind as SlotKind, on_account},
};

/// OpenAPI extension with the requirement of a route: the name of a permission, [`CREDENTIAL`], or `public`.
pub(crate) const EXTENSION: &str = "x-permission";

/// Requirement of routes that need authentication and no permission.
pub(crate) const CREDENTIAL: &str = "credential";

/// Response header with the id of the log line about a failed request, for operators.
const REQUEST_ID: &str = "x-request-id";

/// Granularity of the stored time of last use: most requests write nothing to the store.
const LAST_USED_STEP_MS: u64 = 60_000;

/// Requirements of all routes, by method and path.
#[derive(Debug, Default)]
pub(crate) struct Rights(BTreeMap<(String, String), Need>);

/// Requirement of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// None, and no rate limit: health probes must never be throttled.
    Health,
    /// None: the route is public.
    Public,
    /// An authenticated caller, without a permission.
    Credential,
    /// An authenticated caller with this permission.
    Permission(Permission),
}

impl Rights {
    /// Reads the requirements from the OpenAPI description.
    pub(crate) fn of(description: &OpenApi) -> Self {
        let mut rights = BTreeMap::new();
        for (path, item) in &description.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in operations {
                if let Some(need) = operation.as_ref().and_then(need) {
                    rights.insert((method.to_string(), path.clone()), need);
                }
            }
        }
        Self(rights)
    }

    fn need(&self, method: &Method, path: &str) -> Option<Need> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.0.get(&(method.to_string(), path.to_string())).copied()
    }
}

fn need(operation: &Operation) -> Option<Need> {
    let name = operation.extensions.as_ref()?.get(EXTENSION)?.as_str()?;
    match name {
        "public" if is_health(operation) => Some(Need::Health),
        "public" => Some(Need::Public),
        CREDENTIAL => Some(Need::Credential),
        name => Permission::parse(name).map(Need::Permission),
    }
}

/// True for operations that are never rate-limited.
pub(crate) fn is_health(operation: &Operation) -> bool {
    operation.tags.iter().flatten().any(|tag| tag == "health")
}

/// Request extension: the client address, for routes that put it into the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CameFrom(pub IpAddr);

/// Middleware of all API routes: authenticates, authorizes and limits a request before it reaches its route.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_string()).unwrap_or_default();
    let need = app.rights.get().and_then(|rights| rights.need(request.method(), &path));
    let (from, version) = (address(&app, &request), request.version());
    let clock = request.extensions().get::<Arc<Clock>>().cloned();
    let mut whose = None;
    let token = credential(&app, request.headers()).map(|credential| credential.id().to_string());
    let (verdict, admitted) = match need {
        None => (None, Err(Problem::new(Code::Forbidden, "This route has no permission and is closed."))),
        Some(Need::Health) => (None, Ok(None)),
        Some(Need::Public) => {
            let (verdict, admitted) = stranger(&app, from);
            (Some(verdict), admitted.map(|()| None))
        }
        Some(need @ (Need::Credential | Need::Permission(_))) => {
            let (method, headers) = (request.method().clone(), request.headers().clone());
            let identified = on_account(Account::anonymous(from), identify(&app, &method, &headers, from)).await;
            let (verdict, caller) = (identified.verdict, identified.caller);
            whose = identified.ended.or_else(|| caller.as_ref().ok().map(Whose::from));
            let may = |caller: &Caller| match need {
                Need::Permission(permission) => caller.require(permission),
                _ => Ok(()),
            };
            (Some(verdict), caller.and_then(|caller| may(&caller).map(|()| Some(caller))))
        }
    };
    let account = match (&admitted, need) {
        (Ok(Some(caller)), _) => Account::of(request.method(), &path, &caller.organization, &caller.user),
        (_, Some(Need::Health)) => Account::health(),
        _ => Account::anonymous(from),
    };
    let admitted = admitted.and_then(|caller| with_room(&app, &account, &request, caller));
    let is_admitted = matches!(&admitted, Ok(Some(_)));
    let asked = Asked { method: request.method().clone(), path: path.clone(), from, token };
    let (mut parts, body) = request.into_parts();
    let entered = match admitted {
        // Safe methods have no body.
        Ok(caller) if is_safe(&parts.method) => Ok((caller, body, None)),
        Ok(caller) => receive(&app.bodies, body, &account).await.map(|(body, held)| (caller, body, held)),
        Err(problem) => Err(problem),
    };
    let response = match entered {
        Ok((caller, body, held)) => {
            let room = BodyRoom::of(held);
            caller.map(|caller| parts.extensions.insert(caller));
            parts.extensions.insert(room.clone());
            parts.extensions.insert(CameFrom(from));
            let response = on_account(account.clone(), next.run(Request::from_parts(parts, body))).await;
            room.give_back();
            response
        }
        Err(problem) => turned_away(&app, problem, &path, &parts),
    };
    let mut response = hold(&app, &account, response);
    verdict.iter().for_each(|verdict| tell(verdict, response.headers_mut()));
    if is_admitted {
        response.extensions_mut().insert(Admitted);
    }
    log_refusal(&app, &asked, whose.as_ref(), &response);
    log_failure(&app, &account, &asked, &mut response);
    if let Some(refused) = refused(&app, asked, whose, &response) {
        write_down(&app, from, refused).await;
    }
    finish(version, is_admitted, clock.as_deref(), &mut response);
    response
}

/// The response to a request that is refused before it reaches its route: JSON for the API, a page for browser routes.
fn turned_away(app: &App, problem: Problem, path: &str, parts: &Parts) -> Response {
    let code = problem.code;
    let mut response = if path.starts_with(links::PLACE) || path == links::SIGN_IN {
        links::refused(app, problem, parts.uri.path(), &parts.headers)
    } else if path.starts_with(oidc::BEGIN) {
        oidc::sorry(&problem)
    } else {
        problem.into_response()
    };
    response.extensions_mut().insert(code);
    response
}

/// Returns the caller if the connection and the response have room.
fn with_room(app: &App, account: &Account, request: &Request, caller: Option<Caller>) -> Answer<Option<Caller>> {
    match (&caller, request.extensions().get::<Arc<Clock>>()) {
        (Some(Caller { organization, token, is_operator, .. }), Some(clock)) => {
            let is_exempt = *is_operator || account.kind == SlotKind::Reserved;
            let holder = Holder { organization, token, is_exempt };
            clock.connection().map_or(Ok(()), |connection| connection.prove(&holder))?;
            clock.proven();
        }
        (None, _) if !app.responses.has_room(account) => return Err(untaken()),
        _ => {}
    }
    Ok(caller)
}

/// Counts the bytes of a response until the client has received them. A response without room is replaced by a 503.
fn hold(app: &App, account: &Account, mut response: Response) -> Response {
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    if bytes == 0 || response.extensions().get::<Static>().is_some() {
        return response;
    }
    let held = app.responses.hold(account, bytes).or_else(|| {
        response = untaken().into_response();
        app.responses.hold(account, response.body().size_hint().lower() as usize)
    });
    held.map(|held| response.extensions_mut().insert(held));
    response
}

/// A request as it appears in logs: the route pattern instead of the path, and the credential's id, which is not
/// secret.
struct Asked {
    method: Method,
    path: String,
    from: IpAddr,
    token: Option<String>,
}

/// Logs a refused request, with a limit on lines per caller.
fn log_refusal(app: &App, asked: &Asked, whose: Option<&Whose>, response: &Response) {
    if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return;
    }
    let Asked { method, path, from, token } = asked;
    let Some(is_last) = app.refusals.line(&line_key(whose, *from)) else { return };
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
fn refused(app: &App, asked: Asked, whose: Option<Whose>, response: &Response) -> Option<Refused> {
    let code = response.extensions().get::<Code>().copied()?;
    app.refusals.count(code);
    let action = match response.status() {
        StatusCode::UNAUTHORIZED => "session.refused",
        StatusCode::FORBIDDEN => "access.refused",
        _ => return None,
    };
    let Asked { method, path, from, .. } = asked;
    Some(Refused { whose: whose?, action, target: format!("{method} {path}"), code, from: Some(from), reason: None })
}

/// Writes the audit entry of a refused request. The request stays refused if the write fails; the next entry reports
/// the missing ones.
async fn write_down(app: &App, from: IpAddr, refused: Refused) {
    let write = app.run(move |app| {
        record(app, &refused);
        Ok(())
    });
    let _ = on_account(Account::anonymous(from), write).await;
}

/// Logs a request that was answered with 500 or 503, with a limit on lines per account, because an organization with
/// busy slots gets as many as it sends requests. The caller receives the id of the log line and not the cause.
fn log_failure(app: &App, account: &Account, asked: &Asked, response: &mut Response) {
    let Some(Failed(why)) = response.extensions_mut().remove::<Failed>() else { return };
    let Some(is_last) = app.refusals.line(&failure_key(account, response.status())) else { return };
    let (more, request) =
        (if is_last { "no more is logged of it this minute" } else { "" }, random(8).unwrap_or_default());
    let status = response.status().as_u16();
    let Asked { method, path, .. } = asked;
    tracing::warn!(request, account = account.key, method = %method, route = path, status, why, more, "a request failed");
    if let Ok(request) = HeaderValue::from_str(&request) {
        response.headers_mut().insert(REQUEST_ID, request);
    }
}

/// Sets the headers of every response. The connection of a rejected request is closed to free its place. HTTP/1 has a
/// header for that; an HTTP/2 connection is closed after several rejections.
fn finish(version: Version, is_admitted: bool, clock: Option<&Clock>, response: &mut Response) {
    let status = response.status();
    let is_turned_away =
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let counts = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS);
    match clock {
        Some(clock) if is_admitted => clock.let_in(),
        Some(clock) if counts => clock.turned_away(),
        _ => {}
    }
    let headers = response.headers_mut();
    // RFC 9111, 5.2.2.5: responses may depend on the caller, so that no cache stores them. `nosniff` fixes their type.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    if status == StatusCode::UNAUTHORIZED {
        headers.entry(WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
    }
    if is_turned_away && !is_admitted && version <= Version::HTTP_11 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Middleware of paths outside of the API: public files and unknown paths. Applies the rate limit of anonymous
/// requests.
pub(crate) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let version = request.version();
    let (from, clock) = (address(&app, &request), request.extensions().get::<Arc<Clock>>().cloned());
    let account = Account::anonymous(from);
    let (verdict, admitted) = stranger(&app, from);
    let response = match admitted.and_then(|()| with_room(&app, &account, &request, None)) {
        Ok(_) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let mut response = hold(&app, &account, response);
    response.extensions().get::<Code>().into_iter().for_each(|code| app.refusals.count(*code));
    tell(&verdict, response.headers_mut());
    finish(version, false, clock.as_deref(), &mut response);
    response
}

/// Adds the rate limit headers (draft-ietf-httpapi-ratelimit-headers-07) and `Retry-After` (RFC 9110).
fn tell(verdict: &Verdict, headers: &mut HeaderMap) {
    if verdict.limit == 0 {
        return;
    }
    let told = [
        ("ratelimit-limit", verdict.limit),
        ("ratelimit-remaining", verdict.remaining),
        ("ratelimit-reset", verdict.reset_s),
    ];
    let wait = (verdict.wait_s > 0).then_some(("retry-after", verdict.wait_s));
    told.into_iter().chain(wait).for_each(|(name, value)| drop(headers.insert(name, value.into())));
}

/// Turns the verdict of a rate limit into an error if the request is over it.
fn spend(verdict: Verdict, whose: &str) -> (Verdict, Answer<()>) {
    let refused = || {
        let message = format!("Too many requests {whose}: there is room for the next in {} s.", verdict.wait_s);
        Problem::new(Code::RateLimited, message).with(serde_json::json!({ "retryAfterSeconds": verdict.wait_s }))
    };
    (verdict, if verdict.wait_s == 0 { Ok(()) } else { Err(refused()) })
}

fn stranger(app: &App, address: IpAddr) -> (Verdict, Answer<()>) {
    spend(app.limiter.stranger(address), "without a valid credential from this address")
}

/// The client address of a request, behind trusted proxies.
fn address(app: &App, request: &Request) -> IpAddr {
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
    caller: Answer<Caller>,
    /// Owner of the credential, if it is genuine and has ended.
    ended: Option<Whose>,
}

impl From<(Verdict, Answer<Caller>)> for Identified {
    fn from((verdict, caller): (Verdict, Answer<Caller>)) -> Self {
        Self { verdict, caller, ended: None }
    }
}

/// Authenticates a request and charges it to a rate limit. A credential that was not valid recently is looked up at the
/// expense of its address, which gets the charge back if the credential is valid. So guessing is slow, and valid
/// callers do not pay for others behind their address.
async fn identify(app: &App, method: &Method, headers: &HeaderMap, address: IpAddr) -> Identified {
    let Some(credential) = credential(app, headers) else {
        let (verdict, room) = stranger(app, address);
        return (verdict, room.and(Err(unauthorized()))).into();
    };
    // Browsers attach cookies on their own: the origin check rejects requests that another site triggered.
    let is_wished = match &credential {
        Credential::Cookie(_) if !is_safe(method) => check_origin(&app.settings.base, headers, true),
        _ => Ok(()),
    };
    if let Err(problem) = is_wished {
        let (verdict, room) = stranger(app, address);
        return (verdict, room.and(Err(problem))).into();
    }
    let (proof, changes) = (credential.proof(), app.watched.changes());
    if let Some(caller) = app.known.get(&proof, changes) {
        let (verdict, room) = spend(app.limiter.caller(&caller.token), "with this credential");
        return (verdict, room.map(|()| caller)).into();
    }
    let mut spent = None;
    if !app.limiter.remembers(&proof) {
        let (verdict, room) = stranger(app, address);
        if let Err(problem) = room {
            return (verdict, Err(problem)).into();
        }
        spent = Some(verdict);
    }
    match app.run(move |app| find(app, &credential)).await {
        Ok(Found::In(caller)) => {
            let caller = *caller;
            app.limiter.is_known(address, proof, spent.is_some());
            app.known.set(proof, caller.clone(), changes);
            let (verdict, room) = spend(app.limiter.caller(&caller.token), "with this credential");
            (verdict, room.map(|()| caller)).into()
        }
        Ok(found) => {
            app.limiter.forget(&proof);
            let verdict = spent.unwrap_or_else(|| app.limiter.stranger(address));
            let ended = if let Found::Ended(whose) = found { Some(whose) } else { None };
            Identified { verdict, caller: Err(unauthorized()), ended }
        }
        Err(problem) => (spent.unwrap_or(Verdict::NONE), Err(problem)).into(),
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
pub(crate) enum Found {
    /// Valid.
    In(Box<Caller>),
    /// Genuine, but no longer valid: it was revoked or has expired, or its member was removed.
    Ended(Whose),
    /// Unknown, or the secret is wrong.
    Nobody,
}

/// The caller of a credential; `None` if it is not valid.
pub(crate) fn caller_of(app: &App, credential: &Credential) -> Answer<Option<Caller>> {
    Ok(match find(app, credential)? {
        Found::In(caller) => Some(*caller),
        Found::Ended(_) | Found::Nobody => None,
    })
}

/// Looks a credential up in the catalogue.
pub(crate) fn find(app: &App, credential: &Credential) -> Answer<Found> {
    let (Credential::Bearer(text) | Credential::Cookie(text)) = credential;
    let installation = Shelf::of(app.catalogue(), "");
    let whose = |organization: &str, user: &str| Whose {
        organization: organization.into(),
        user: user.into(),
        token: text.id.clone(),
    };
    let Some(held) = installation.get::<Token>(&text.id)? else {
        let revoked = installation.get::<Revoked>(&text.id)?.filter(|revoked| revoked.body.fits(text));
        return Ok(
            revoked.map_or(Found::Nobody, |Held { body, .. }| Found::Ended(whose(&body.organization, &body.user)))
        );
    };
    let (token, now) = (&held.body, now_ms());
    let (fits, sign_in) = match credential {
        Credential::Bearer(_) => (token.secret_hash().is_some_and(|hash| text.fits(&hash)), None),
        Credential::Cookie(_) => {
            let sign_in = token.sign_in(text, now).map(|one| one.hash.clone());
            (sign_in.is_some(), sign_in)
        }
    };
    if !fits {
        let has_ended = matches!(credential, Credential::Cookie(text) if token.had_sign_in(text));
        return Ok(if has_ended { Found::Ended(whose(&token.organization, &token.user)) } else { Found::Nobody });
    }
    if token.expires_at.is_some_and(|at| at <= now) {
        return Ok(Found::Ended(whose(&token.organization, &token.user)));
    }
    let Some(member) = Shelf::of(app.catalogue(), &token.organization).get::<Member>(&token.user)? else {
        return Ok(Found::Ended(whose(&token.organization, &token.user)));
    };
    let caller = Caller {
        organization: token.organization.clone(),
        user: token.user.clone(),
        role: member.body.role,
        kind: token.session_of.clone().map_or(Kind::Person, |execution| Kind::Session { execution }),
        token: held.id.clone(),
        sign_in,
        scopes: token.scopes.clone(),
        is_operator: member.body.is_operator,
        made_by: token.other_maker().map(Into::into),
        known_to: known_to(app.catalogue(), token)?,
        expires_at: token.expires_at,
    };
    if token.last_used_at.is_none_or(|at| now.saturating_sub(at) >= LAST_USED_STEP_MS) {
        let used = Token { last_used_at: Some(now), ..token.clone() };
        let puts = vec![installation.put(&held.id, &used, held.version)?];
        // The result is ignored: a concurrent request writes the same, and a busy store loses a minute of precision.
        // The write bypasses the catalogue watch, because it changes nothing that authentication depends on.
        let _ = app.engine.store().catalogue().change(&Change { puts, ..Change::default() });
    }
    Ok(Found::In(Box::new(caller)))
}

/// The admin who knows the secret of a credential in addition to its member. Credentials from before this was stored
/// fall back to their maker, even if the maker was demoted or removed since: creating one for another member required
/// the admin role. A maker who was never a member had access to the data folder.
fn known_to(catalogue: &dyn Catalogue, token: &Token) -> Answer<Option<String>> {
    let is_told = token.known_to.is_some() || token.is_by_owner;
    let Some(maker) = token.other_maker().filter(|_| !is_told) else { return Ok(token.known_to.clone()) };
    let members = Shelf::of(catalogue, &token.organization);
    let is_counted = match members.get::<Member>(maker)? {
        Some(member) => member.body.role != Role::Owner,
        None => members.get::<Departed>(maker)?.is_some(),
    };
    Ok(is_counted.then(|| maker.to_string()))
}

/// True if an earlier authenticated credential is still valid and still has a permission that it had.
pub(crate) fn is_still_in(app: &App, caller: &Caller, permission: Permission) -> Answer<bool> {
    Ok(as_of_now(app, caller)?.is_some_and(|now| now.has(permission)))
}

/// The caller of a request that has waited, with the current role and scopes.
///
/// # Errors
/// Fails with 401 if the credential is no longer valid, and with 403 if it no longer has the permission.
pub(crate) fn let_in_still(app: &App, caller: &Caller, permission: Permission) -> Answer<Caller> {
    let now = as_of_now(app, caller)?.ok_or_else(unauthorized)?;
    now.require(permission)?;
    Ok(now)
}

/// An authenticated caller with the current role and scopes; `None` if the credential is no longer valid.
pub(crate) fn as_of_now(app: &App, caller: &Caller) -> Answer<Option<Caller>> {
    let token = Shelf::of(app.catalogue(), "").get::<Token>(&caller.token)?;
    let member = Shelf::of(app.catalogue(), &caller.organization).get::<Member>(&caller.user)?;
    let lasts = |token: &Token| {
        let is_in = |hash: &String| token.sign_ins.iter().any(|one| one.hash == *hash && one.expires_at > now_ms());
        token.expires_at.is_none_or(|at| at > now_ms()) && caller.sign_in.as_ref().is_none_or(is_in)
    };
    let (Some(token), Some(member)) = (token, member) else { return Ok(None) };
    let Member { role, is_operator, .. } = member.body;
    let now = Caller { role, is_operator, scopes: token.body.scopes.clone(), ..caller.clone() };
    Ok(lasts(&token.body).then_some(now))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Code::Unauthorized, "This route needs a credential.");
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use mainspring_store::memory::MemoryStore;

    use super::*;
    use crate::shelf::make;

    #[test]
    fn the_maker_of_an_old_token_knows_it_also_after_being_demoted_or_removed() {
        let table = [
            (Some(Role::Owner), false, false),
            (Some(Role::Admin), false, true),
            (Some(Role::Member), false, true),
            (None, true, true),
            // Made by the command `mainspring token`.
            (None, false, false),
        ];
        for (role, has_departed, is_known) in table {
            let store = MemoryStore::new();
            let members = Shelf::of(&store, "acme");
            let member = |role| Member { role, name: None, is_operator: false, created_at: 0 };
            let put = role.map(|role| members.put("mal", &member(role), 0).unwrap());
            let gone = has_departed.then(|| members.put("mal", &Departed { removed_at: 0 }, 0).unwrap());
            let change = Change { puts: put.into_iter().chain(gone).collect(), ..Change::default() };
            make(&store, &change).unwrap().unwrap();
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
            let known = known_to(&store, &token(false)).unwrap();
            assert_eq!(known.as_deref(), is_known.then_some("mal"), "{role:?} {has_departed}");
            assert_eq!(known_to(&store, &token(true)).unwrap(), None, "an owner made it");
        }
    }
}
