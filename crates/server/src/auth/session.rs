//! Browser sessions: sign-in with a token, and sign-out.
//!
//! A cookie has a secret of its own, and the token's row stores its hash. The session ends with the token, with the
//! member, at its expiry, or at sign-out. The cookie grants exactly the rights of the token.

use std::net::IpAddr;

use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::Change;

use crate::{
    app::App,
    auth::{
        caller::Caller,
        cookie::set_cookie,
        credential::Credential,
        credential_lookup::{Lookup, look_up, valid_caller},
        refusals::RefusedRequest,
        token::TokenText,
    },
    http::problem::{Code, Problem, Result},
    resources::{
        SignIn, Token,
        repository::{Repository, apply, entry},
    },
};

/// Lifetime of a session: a working day.
pub(crate) const SIGN_IN_MS: u64 = 12 * 60 * 60 * 1000;

/// Most sessions of one token. A new one replaces the oldest.
pub(crate) const SIGN_INS_MAX: usize = 20;

/// Attempts of a change that conflicts with concurrent changes of the same token.
pub(crate) const TRIES: usize = 8;

/// Result of a sign-in.
pub(crate) struct NewSession {
    pub caller: Caller,
    /// Value of `Set-Cookie`.
    pub cookie: String,
    /// Expiry in milliseconds since 1970.
    pub expires_at: u64,
}

/// Creates a session from a token that was typed into the form; `from` is the client address.
pub(crate) fn sign_in(app: &App, token: &str, from: IpAddr) -> Result<NewSession> {
    let refused = || Problem::new(Code::Unauthorized, "This token is not known, or has ended.");
    let text = TokenText::parse(token.trim()).ok_or_else(refused)?;
    let caller = match look_up(app, &Credential::Bearer(text))? {
        Lookup::Valid(caller) => *caller,
        Lookup::Unknown => return Err(refused()),
        Lookup::Ended(owner) => {
            let (action, target) = ("session.refused", "sign-in".to_string());
            let code = Code::Unauthorized;
            let refused_request = RefusedRequest { owner, action, target, code, from: Some(from), reason: None };
            app.refusals.record(app.catalogue(), app.engine.key(), &refused_request);
            return Err(refused());
        }
    };
    let (now, secret) = (now_ms(), TokenText::for_cookie(&caller.token)?);
    let expires_at = caller.expires_at.into_iter().chain([now + SIGN_IN_MS]).min().unwrap_or(now);
    let begun = SignIn { hash: secret.hash().hex(), created_at: now, expires_at };
    change(app, &caller, "session.create", |token| {
        token.sign_ins.retain(|one| one.expires_at > now);
        let too_many = (token.sign_ins.len() + 1).saturating_sub(SIGN_INS_MAX);
        token.sign_ins.drain(..too_many);
        token.sign_ins.push(begun.clone());
    })?;
    let cookie = set_cookie(&app.settings.base, &secret.reveal_cookie(), (expires_at - now) / 1000);
    Ok(NewSession { caller, cookie, expires_at })
}

/// Ends the session of a cookie, if there is one. Returns the value of `Set-Cookie` that deletes it.
pub(crate) fn sign_out(app: &App, cookie: Option<TokenText>) -> Result<String> {
    let credential = cookie.map(Credential::Cookie);
    if let Some(caller) = credential.map(|cookie| valid_caller(app, &cookie)).transpose()?.flatten() {
        let ended = caller.sign_in.clone().unwrap_or_default();
        change(app, &caller, "session.delete", |token| token.sign_ins.retain(|one| one.hash != ended))?;
    }
    Ok(set_cookie(&app.settings.base, "", 0))
}

/// Changes the caller's token, repeated after conflicts, such as an update of its last use. A token that was created by
/// a sign-in is deleted with its last session.
fn change(app: &App, caller: &Caller, action: &str, act: impl Fn(&mut Token)) -> Result<()> {
    let installation = Repository::of(app.catalogue(), "");
    for _ in 0..TRIES {
        let mut stored = installation.require::<Token>(&caller.token)?;
        act(&mut stored.body);
        let audit = vec![entry(caller, action, &stored.id, Value::Null)];
        let mut change = Change { audit, sealing: *app.engine.key(), ..Change::default() };
        if stored.body.signed_in_by.is_some() && stored.body.sign_ins.is_empty() {
            change.removals.push(installation.removal(&stored));
        } else {
            change.puts.push(installation.put(&stored.id, &stored.body, stored.version)?);
        }
        if apply(app.catalogue(), &change)?.is_ok() {
            return Ok(());
        }
    }
    Err(Problem::concurrent_change())
}
