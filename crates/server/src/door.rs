//! The door: which permission a route asks for, and who stands before it.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, Method, header::AUTHORIZATION, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use mainspring_engine::engine::now_ms;
use mainspring_store::Change;
use utoipa::openapi::{OpenApi, path::Operation};

use crate::{
    app::App,
    identity::{Caller, Kind, Permission, TokenText},
    nouns::{Member, Token},
    problem::{Answer, Code, Problem},
    shelf::Shelf,
};

/// The extension of OpenAPI by which a route says what it asks for: a permission, or `public`.
pub(crate) const EXTENSION: &str = "x-permission";

/// How far the time of a credential's last use may be behind.
const LAST_USED_STEP_MS: u64 = 60_000;

/// What each route asks for, by method and path.
#[derive(Debug, Default)]
pub(crate) struct Rights(BTreeMap<(String, String), Need>);

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing: anybody may call it.
    Public,
    /// A credential with this permission.
    Permission(Permission),
}

impl Rights {
    /// As the description of the routes says.
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
    if name == "public" { Some(Need::Public) } else { Permission::parse(name).map(Need::Permission) }
}

/// Lets a request through to its route, or answers it.
pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_string()).unwrap_or_default();
    let need = app.rights.get().and_then(|rights| rights.need(request.method(), &path));
    let admitted = match need {
        None => Err(Problem::new(Code::Forbidden, "This route says nobody may call it.")),
        Some(Need::Public) => Ok(None),
        Some(Need::Permission(permission)) => identify(&app, request.headers()).await.and_then(|caller| {
            caller.require(permission)?;
            Ok(Some(caller))
        }),
    };
    match admitted {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(None) => next.run(request).await,
        Err(problem) => {
            let mut response = problem.into_response();
            if response.status() == 401 {
                response.headers_mut().insert("www-authenticate", axum::http::HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

/// Who sends these headers.
async fn identify(app: &App, headers: &HeaderMap) -> Answer<Caller> {
    let refused = || {
        Problem::new(
            Code::Unauthorized,
            "Send a token that is known and has not expired: `Authorization: Bearer msp_…`.",
        )
    };
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(refused)?;
    let (scheme, text) = given.split_once(' ').ok_or_else(refused)?;
    let token = TokenText::parse(text.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer")).ok_or_else(refused)?;
    app.run(move |app| caller_of(app, &token)?.ok_or_else(refused)).await
}

/// Whose a token is, if it is one and still lets in.
pub(crate) fn caller_of(app: &App, text: &TokenText) -> Answer<Option<Caller>> {
    let installation = Shelf::of(app.catalogue(), "");
    let Some(held) = installation.get::<Token>(&text.id)? else { return Ok(None) };
    let (token, now) = (&held.body, now_ms());
    let fits = token.secret_hash().is_some_and(|hash| text.fits(&hash));
    if !fits || token.expires_at.is_some_and(|at| at <= now) {
        return Ok(None);
    }
    let Some(member) = Shelf::of(app.catalogue(), &token.organization).get::<Member>(&token.user)? else {
        return Ok(None);
    };
    let caller = Caller {
        organization: token.organization.clone(),
        user: token.user.clone(),
        role: member.body.role,
        kind: token.session_of.clone().map_or(Kind::Person, |execution| Kind::Session { execution }),
        token: held.id.clone(),
        scopes: token.scopes.clone(),
        is_operator: member.body.is_operator,
        expires_at: token.expires_at,
    };
    if token.last_used_at.is_none_or(|at| now.saturating_sub(at) >= LAST_USED_STEP_MS) {
        let used = Token { last_used_at: Some(now), ..token.clone() };
        let puts = vec![installation.put(&held.id, &used, held.version)?];
        // Somebody who uses it at the same moment has written the same; a store that is busy misses a minute.
        let _ = app.catalogue().change(&Change { puts, ..Change::default() });
    }
    Ok(Some(caller))
}

/// Whether a credential that was let in lets in still.
pub(crate) fn is_still_in(app: &App, caller: &Caller) -> Answer<bool> {
    let token = Shelf::of(app.catalogue(), "").get::<Token>(&caller.token)?;
    let member = Shelf::of(app.catalogue(), &caller.organization).get::<Member>(&caller.user)?;
    let lasts = |token: &Token| token.expires_at.is_none_or(|at| at > now_ms());
    Ok(member.is_some() && token.is_some_and(|held| lasts(&held.body)))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Code::Unauthorized, "This route needs a credential.");
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}
