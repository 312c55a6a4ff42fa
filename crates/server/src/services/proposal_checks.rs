//! The conditions of proposals: the workflow, the caller, the texts and the time of expiry.

use mainspring_kernel::hash::Hash;

use crate::{
    app::App,
    auth::caller::Caller,
    http::problem::{Code, Problem, Result},
    resources::{
        FOUR_EYES_FEATURE, Organization, Workflow,
        repository::{Repository, Stored},
    },
    services::compile::plan_of,
};

/// Milliseconds until a proposal expires (first specification, 12.1).
const EXPIRY_DEFAULT_MS: u64 = 14 * 24 * 3_600_000;

/// Longest time until a proposal expires: the retention of proposals in the first specification, 12.1.
const EXPIRY_MAX_MS: u64 = 365 * 24 * 3_600_000;

/// Shortest time until a proposal expires. Expired proposals are kept and not counted, so a shorter time would let a program
/// write without a bound.
const EXPIRY_MIN_MS: u64 = 3_600_000;

pub(super) fn check_permits(app: &App, caller: &Caller, workflow: &Stored<Workflow>) -> Result<()> {
    if plan_of(app, &caller.organization, &workflow.body)?.plan.constraints.allow_self_modification {
        return Ok(());
    }
    let message = format!(
        "Self-modification is disabled for the workflow `{}`: its definition must have `constraints.allowSelfModification: true`.",
        workflow.id
    );
    Err(Problem::new(Code::Conflict, message))
}

pub(super) fn check_base(base_hash: &str, workflow: &Stored<Workflow>) -> Result<()> {
    if Hash::parse(base_hash).is_none() {
        return Err(Problem::field("baseWorkflowHash", "it must be `sha256:` and 64 hexadecimal digits"));
    }
    if base_hash == workflow.body.hash {
        return Ok(());
    }
    let message = format!(
        "The base hash does not match: the proposal changes {base_hash}, and the workflow `{}` has {}.",
        workflow.id, workflow.body.hash
    );
    Err(Problem::new(Code::Conflict, message))
}

/// Checks that the caller may review and apply: the owner of the workflow or an admin, in person.
pub(super) fn check_decides(caller: &Caller, workflow: &Stored<Workflow>) -> Result<()> {
    if caller.is_person() && caller.may_act_for(&workflow.body.user) {
        return Ok(());
    }
    let message = format!("Proposals for the workflow `{}` are decided by its owner and by admins.", workflow.id);
    Err(Problem::new(Code::Forbidden, message))
}

pub(super) fn needs_four_eyes(app: &App, caller: &Caller) -> Result<bool> {
    requires(app, caller, FOUR_EYES_FEATURE)
}

/// True if the caller's organization has switched a feature on.
pub(super) fn requires(app: &App, caller: &Caller, feature: &str) -> Result<bool> {
    let organization = Repository::of(app.catalogue(), "").require::<Organization>(&caller.organization)?;
    Ok(organization.body.has(feature))
}

/// The time at which a proposal expires. Programs cannot shorten it.
pub(super) fn expiry(caller: &Caller, given: Option<u64>, now: u64) -> Result<u64> {
    let least = if caller.is_person() { EXPIRY_MIN_MS } else { EXPIRY_DEFAULT_MS };
    let refused = |message: &str| Err(Problem::field("expiresAt", message));
    match given {
        None => Ok(now + EXPIRY_DEFAULT_MS),
        Some(at) if at <= now => refused("it is in the past"),
        Some(at) if at < now + least && caller.is_person() => refused("it is less than an hour away"),
        Some(at) if at < now + least => refused("a session or an agent proposes for at least 14 days; leave it out"),
        Some(at) if at > now + EXPIRY_MAX_MS => refused("it is more than 365 days away"),
        Some(at) => Ok(at),
    }
}

pub(super) fn check_text(field: &str, text: Option<&str>, most: usize) -> Result<()> {
    match text {
        Some(text) if text.chars().count() > most => {
            Err(Problem::field(field, format!("it has more than {most} characters")))
        }
        Some(text) if text.trim().is_empty() => Err(Problem::field(field, "it is blank: leave it out")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{caller::Kind, permission::Role};

    #[test]
    fn expiry_is_within_its_bounds() {
        let person = Caller::example("acme", "ada");
        let session = Caller { kind: Kind::Session { execution: "e".into() }, ..person.clone() };
        let agent = Caller { role: Role::Agent, ..person.clone() };
        let expires = |caller: &Caller, after: u64| expiry(caller, Some(5 + after), 5).is_ok();
        for caller in [&person, &session, &agent] {
            assert_eq!(expiry(caller, None, 5), Ok(5 + EXPIRY_DEFAULT_MS));
            assert!(!expires(caller, 0) && !expires(caller, EXPIRY_MAX_MS + 1) && !expires(caller, EXPIRY_MIN_MS - 1));
            assert!(expires(caller, EXPIRY_DEFAULT_MS) && expires(caller, EXPIRY_MAX_MS));
        }
        assert_eq!([&person, &session, &agent].map(|caller| expires(caller, EXPIRY_MIN_MS)), [true, false, false]);
    }
}
