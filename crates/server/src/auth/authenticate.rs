//! Authentication of requests: finds the caller of a credential, and charges the request to a rate limit.

use std::net::IpAddr;

use axum::http::request::Parts;

use crate::{
    app::App,
    auth::{
        caller::Caller,
        credential::Credential,
        credential_lookup::{Lookup, look_up, unauthorized},
        cross_site::{check_origin, is_safe},
        refusals::CredentialOwner,
    },
    http::{
        problem::{Problem, Result},
        rate_limit::Verdict,
    },
};

/// Result of authentication.
pub(crate) struct Authenticated {
    /// State of the rate limit that the request was charged to.
    pub verdict: Verdict,
    /// The caller, or the reason for the refusal.
    pub caller: Result<Caller>,
    /// Owner of the credential, if it is genuine and has ended.
    pub ended: Option<CredentialOwner>,
}

impl From<(Verdict, Result<Caller>)> for Authenticated {
    fn from((verdict, caller): (Verdict, Result<Caller>)) -> Self {
        Self { verdict, caller, ended: None }
    }
}

/// Charges a request without a valid credential to its address.
pub(crate) fn charge_anonymous(app: &App, address: IpAddr) -> (Verdict, Result<()>) {
    app.limiter.anonymous(address).checked("without a valid credential from this address")
}

/// Charges a request to its credential.
fn charge_caller(app: &App, caller: Caller) -> Authenticated {
    let (verdict, room) = app.limiter.caller(&caller.token).checked("with this credential");
    (verdict, room.map(|()| caller)).into()
}

/// The response to a request that is charged to its address and then refused.
fn refuse(app: &App, address: IpAddr, problem: Problem) -> Authenticated {
    let (verdict, room) = charge_anonymous(app, address);
    (verdict, room.and(Err(problem))).into()
}

/// Authenticates a request and charges it to a rate limit. A credential that was not valid recently is looked up at the
/// expense of its address, which gets the charge back if the credential is valid. So guessing is slow, and valid
/// callers do not pay for others behind their address.
pub(crate) async fn authenticate(
    app: &App,
    parts: &Parts,
    credential: Option<Credential>,
    address: IpAddr,
) -> Authenticated {
    let Some(credential) = credential else { return refuse(app, address, unauthorized()) };
    // Browsers attach cookies on their own: the origin check rejects requests that another site triggered.
    let origin = match &credential {
        Credential::Cookie(_) if !is_safe(&parts.method) => check_origin(&app.settings.base, &parts.headers, true),
        _ => Ok(()),
    };
    if let Err(problem) = origin {
        return refuse(app, address, problem);
    }
    let (digest, changes) = (credential.digest(), app.catalogue_watch.changes());
    // The token of a session ends with its execution, on all nodes at once.
    let is_cached = !matches!(credential, Credential::Session(_));
    if let Some(caller) = app.credential_cache.get(&digest, changes).filter(|_| is_cached) {
        return charge_caller(app, caller);
    }
    let mut charged = None;
    if !app.limiter.was_valid(&digest) {
        let (verdict, room) = charge_anonymous(app, address);
        if let Err(problem) = room {
            return (verdict, Err(problem)).into();
        }
        charged = Some(verdict);
    }
    match app.run(move |app| look_up(app, &credential)).await {
        Ok(Lookup::Valid(caller)) => {
            let caller = *caller;
            app.limiter.record_valid(address, digest, charged.is_some());
            if is_cached {
                app.credential_cache.set(digest, caller.clone(), changes);
            }
            charge_caller(app, caller)
        }
        Ok(found) => {
            app.limiter.forget(&digest);
            let verdict = charged.unwrap_or_else(|| app.limiter.anonymous(address));
            let ended = if let Lookup::Ended(owner) = found { Some(owner) } else { None };
            Authenticated { verdict, caller: Err(unauthorized()), ended }
        }
        Err(problem) => (charged.unwrap_or(Verdict::NONE), Err(problem)).into(),
    }
}
