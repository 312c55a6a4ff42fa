//! Maps verified claims to a member, and creates a browser session: a token of its own whose secret is discarded.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditEntry, Change, Removal};

use super::{
    id_token::Claims,
    provider::unavailable,
    settings::{EMAIL, Settings},
};
use crate::{
    app::App,
    auth::{
        cookie::set_cookie,
        permission::Role,
        session::{SIGN_IN_MS, SIGN_INS_MAX, TRIES},
        token::TokenText,
    },
    http::problem::{Code, Problem, Result},
    resources::{
        Identity, Member, Organization, RemovedMember, SignIn, Token,
        repository::{Repository, Stored, apply},
    },
    services::bootstrap::check_member_id,
};

/// A completed sign-in.
pub(crate) struct Login {
    /// Id of the member.
    pub(crate) user: String,
    pub(crate) organization: String,
    /// Value of `Set-Cookie`.
    pub(crate) cookie: String,
}

fn refused(message: String) -> Problem {
    Problem::new(Code::Forbidden, message)
}

/// The member id that verified claims contain.
fn named(settings: &Settings, claims: &Claims) -> Result<String> {
    let text = |name: &str| claims.get(name).and_then(serde_json::Value::as_str);
    if settings.requires_email() {
        let email = text(EMAIL).ok_or_else(|| refused("The provider sent no e-mail address (`email`).".into()))?;
        if claims.get("email_verified") != Some(&serde_json::Value::Bool(true)) {
            let message =
                "The provider has not verified your e-mail address (`email_verified`): have it verified there.";
            return Err(refused(message.into()));
        }
        let domain = email.rsplit_once('@').map(|(_, domain)| domain.to_ascii_lowercase()).unwrap_or_default();
        if !settings.email_domains.is_empty() && !settings.email_domains.contains(&domain) {
            return Err(refused("The domain of your e-mail address may not sign in here.".into()));
        }
    }
    let claim = &settings.claim;
    let name = text(claim).ok_or_else(|| refused(format!("The provider sent no identity (`{claim}`).")))?;
    // E-mail addresses are compared in lower case; other claims are case-sensitive.
    let name = if claim == EMAIL { name.to_ascii_lowercase() } else { name.to_string() };
    check_member_id(claim, &name).map_err(|problem| {
        refused(format!("The name from the provider is not valid for a member: {}.", problem.message))
    })?;
    Ok(name)
}

/// The member with its stored version: the existing one, or a new one if the settings give unknown users a role.
fn member(settings: &Settings, user: &str, stored: Option<Stored<Member>>) -> Result<(Member, u64)> {
    let Some(stored) = stored else {
        let organization = &settings.organization;
        let unknown = || {
            refused(format!(
                "`{user}` is not a member of `{organization}`: ask an admin there to add a member of that name."
            ))
        };
        let role = settings.first_role.ok_or_else(unknown)?;
        return Ok((Member { role, name: None, is_operator: false, created_at: now_ms() }, 0));
    };
    if stored.body.role == Role::Agent {
        return Err(refused(format!("`{user}` is a program here (`agent`), and programs do not sign in.")));
    }
    // The operator's id is known to all, and a provider may let people choose their own names.
    if stored.body.is_operator {
        return Err(refused(format!(
            "`{user}` is an operator of the installation, and can sign in only with a token."
        )));
    }
    Ok((stored.body, stored.version))
}

/// The provider's identity in verified claims.
fn identity(settings: &Settings, claims: &Claims) -> Result<Identity> {
    let subject = claims.get("sub").and_then(serde_json::Value::as_str);
    let subject = subject.ok_or_else(|| refused("The provider sent no identity (`sub`).".into()))?;
    Ok(Identity { issuer: settings.issuer.clone(), subject: subject.into() })
}

/// The identity of the sign-in, if it does not contradict the member's stored one, and whether it was stored before.
fn bound(own: Repository<'_>, user: &str, identity: Identity) -> Result<(Identity, bool)> {
    match own.get::<Identity>(user)? {
        Some(known) if known.body != identity => {
            let what = match known.body.issuer == identity.issuer {
                true => "as somebody else of the provider before (`sub`)".into(),
                false => format!("by another provider before ({})", known.body.issuer),
            };
            Err(refused(format!(
                "`{user}` has signed in {what}: if it is you now, ask an admin to forget that identity \
                 (PUT /api/members/{user} with `forgetIdentity`)."
            )))
        }
        known => Ok((identity, known.is_some())),
    }
}

/// Signs in the member whom verified claims name.
pub(crate) fn log_in(app: &App, settings: &Settings, claims: &Claims) -> Result<Login> {
    let (organization, user) = (&settings.organization, named(settings, claims)?);
    let (installation, own) = (Repository::of(app.catalogue(), ""), Repository::of(app.catalogue(), organization));
    if installation.get::<Organization>(organization)?.is_none() {
        let why =
            format!("there is no organization `{organization}` to sign in to: create it, or set `oidcOrganization`");
        return Err(unavailable().because(why));
    }
    for _ in 0..TRIES {
        let stored = own.get::<Member>(&user)?;
        if stored.is_none() && own.get::<RemovedMember>(&user)?.is_some() {
            return Err(refused(format!(
                "`{user}` was removed from `{organization}`: ask an admin there to add you again."
            )));
        }
        let (member, version) = member(settings, &user, stored)?;
        let (identity, is_bound) = bound(own, &user, identity(settings, claims)?)?;
        let (now, text) = (now_ms(), TokenText::new()?);
        let cookie = TokenText::for_cookie(&text.id)?;
        let begun = SignIn { hash: cookie.hash().hex(), created_at: now, expires_at: now + SIGN_IN_MS };
        let token = Token {
            organization: organization.clone(),
            user: user.clone(),
            name: format!("signed in by {}", settings.host()),
            // The secret of this hash is discarded: only the cookie authenticates.
            hash: text.hash().hex(),
            made_by: user.clone(),
            scopes: Vec::new(),
            session_of: None,
            created_at: now,
            expires_at: Some(now + SIGN_IN_MS),
            last_used_at: Some(now),
            sign_ins: vec![begun],
            signed_in_by: Some(settings.issuer.clone()),
            known_to: None,
            is_by_owner: false,
        };
        let entry = |action: &str, target: &str, detail: &[(&str, Value)]| {
            let by = [("by", Value::from("oidc")), ("issuer", settings.issuer.as_str().into())];
            AuditEntry {
                organization: organization.clone(),
                at: now,
                actor: user.clone(),
                action: action.into(),
                target: target.into(),
                detail: cbor::encode(&Value::map(by.into_iter().chain(detail.iter().cloned()))),
            }
        };
        let role = serde_json::to_value(member.role).ok().and_then(|role| Some(role.as_str()?.to_string()));
        let made = (version == 0).then(|| entry("member.put", &user, &[("role", role.as_deref().into())]));
        let audit = made.into_iter().chain([entry("session.create", &text.id, &[])]).collect();
        // Writes the member unchanged too, so that a concurrent removal makes this change fail.
        let mut puts = vec![installation.put(&text.id, &token, 0)?, own.put(&user, &member, version)?];
        if !is_bound {
            puts.push(own.put(&user, &identity, 0)?);
        }
        let removals = too_many(installation, organization, &user, now)?;
        let change = Change { puts, removals, audit, sealing: *app.engine.key() };
        if apply(app.catalogue(), &change)?.is_ok() {
            let cookie = set_cookie(&app.settings.base, &cookie.reveal_cookie(), SIGN_IN_MS / 1000);
            return Ok(Login { user, organization: organization.clone(), cookie });
        }
    }
    Err(Problem::concurrent_change())
}

/// Removes the member's expired sign-ins, and the oldest ones if there are too many.
fn too_many(installation: Repository<'_>, organization: &str, user: &str, now: u64) -> Result<Vec<Removal>> {
    let theirs = installation.all::<Token>(Some(("member", Token::of_member(organization, user))));
    let is_sign_in = |stored: &Stored<Token>| stored.body.signed_in_by.is_some();
    let mut theirs = theirs.filter(|stored| stored.as_ref().map_or(true, is_sign_in)).collect::<Result<Vec<_>>>()?;
    theirs.sort_by_key(|stored| std::cmp::Reverse(stored.body.created_at));
    let is_over = |stored: &Stored<Token>| stored.body.expires_at.is_some_and(|at| at <= now);
    let goes = theirs.iter().enumerate().filter(|(place, stored)| is_over(stored) || *place + 1 >= SIGN_INS_MAX);
    Ok(goes.map(|(_, stored)| Removal { expected: None, ..installation.removal(stored) }).collect())
}
