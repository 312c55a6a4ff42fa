//! The caller of a request and its effective permissions.

use axum::{extract::FromRequestParts, http::request::Parts};
use mainspring_kernel::value::Value;

use crate::{
    auth::permission::{Permission, Role},
    http::problem::{Code, Problem, Result},
};

/// The authenticated caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The organization that the credential is for. Resources of other organizations do not exist for this caller.
    pub organization: String,
    /// Id of the member, as in journals and audit logs.
    pub user: String,
    /// Role of the member in the organization.
    pub role: Role,
    /// Kind of the credential.
    pub kind: Kind,
    /// Id of the credential.
    pub token: String,
    /// Hash of the session cookie's secret, if the request carried a cookie.
    pub sign_in: Option<String>,
    /// Restricts the credential to these permissions; empty for all of the role's.
    pub scopes: Vec<Permission>,
    /// True if the member operates the installation.
    pub is_operator: bool,
    /// Creator of the credential, if that was not the member.
    pub made_by: Option<String>,
    /// An admin who also knows the secret of the credential. A request with it is not certain to come from the member.
    pub known_to: Option<String>,
    /// End of the credential in milliseconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
}

/// Kind of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Personal credential of a member.
    Person,
    /// Credential of an execution's session. It has at most the rights of the execution's owner, and it is no person.
    Session {
        /// Id of the execution.
        execution: String,
    },
}

impl Caller {
    /// True if the credential grants a permission.
    pub fn has(&self, permission: Permission) -> bool {
        let by_role = match self.kind {
            Kind::Person => permission.is_of(self.role),
            Kind::Session { .. } => self.is_of_session(permission),
        };
        let is_active_operator = self.is_operator && self.role == Role::Owner && self.is_person();
        let as_operator = permission == Permission::InstallationWrite && is_active_operator;
        // Otherwise an admin could approve in the name of every member.
        let is_shared = permission == Permission::ApprovalsDecide && self.known_to.is_some();
        (by_role || as_operator) && !is_shared && (self.scopes.is_empty() || self.scopes.contains(&permission))
    }

    /// As [`has`](Self::has), as an error with an explanation.
    pub fn require(&self, permission: Permission) -> Result<()> {
        if self.has(permission) {
            return Ok(());
        }
        let message = match &self.known_to {
            Some(admin) if permission == Permission::ApprovalsDecide => format!(
                "This credential cannot decide: the admin `{admin}` created it, and could decide in your place. Sign in \
                 with the identity provider, or ask an owner for a token."
            ),
            _ => format!("This credential may not do that: it lacks `{}`.", permission.name()),
        };
        Err(Problem::new(Code::Forbidden, message).with(serde_json::json!({ "permission": permission.name() })))
    }

    /// True for people, who can be responsible for a decision.
    pub fn is_person(&self) -> bool {
        self.kind == Kind::Person && self.role != Role::Agent
    }

    /// True if the caller may act on resources of a member.
    pub fn may_act_for(&self, user: &str) -> bool {
        self.user == user || self.effective_role().is_admin()
    }

    /// The entry of audit details that names the creator of the credential, if that was not the member.
    pub(crate) fn made_by_detail(&self) -> Option<(&'static str, Value)> {
        self.made_by.as_deref().map(|maker| ("madeBy", maker.into()))
    }

    /// A member of an organization, for tests.
    #[cfg(test)]
    pub(crate) fn example(organization: &str, user: &str) -> Self {
        Self {
            organization: organization.into(),
            user: user.into(),
            role: Role::Member,
            kind: Kind::Person,
            token: "t".into(),
            sign_in: None,
            scopes: Vec::new(),
            is_operator: false,
            made_by: None,
            known_to: None,
            expires_at: None,
        }
    }

    /// A session has the permissions that both its member and the role `agent` have, and may report on its execution.
    /// It may not write workflows: an execution must not change definitions.
    fn is_of_session(&self, permission: Permission) -> bool {
        let both = permission.is_of(self.role) && permission.is_of(Role::Agent);
        permission == Permission::ExecutionsReport || both && permission != Permission::WorkflowsWrite
    }

    /// A session acts as a program, independent of its member's role.
    pub(crate) fn effective_role(&self) -> Role {
        if self.is_person() { self.role } else { Role::Agent }
    }
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
    use super::*;
    use crate::auth::permission::PERMISSIONS;

    #[test]
    fn a_session_has_the_common_permissions_of_its_member_and_agents() {
        let of_viewers = ["workflows:read", "executions:read", "executions:report", "organization:read"];
        let of_members = ["proposals:write", "executions:start", "executions:control"];
        for role in [Role::Owner, Role::Admin, Role::Member, Role::Viewer, Role::Agent] {
            let kind = Kind::Session { execution: "e".into() };
            let session = Caller { role, kind, is_operator: true, ..Caller::example("o", "u") };
            for (permission, name, _) in PERMISSIONS {
                let expected = of_viewers.contains(&name) || role != Role::Viewer && of_members.contains(&name);
                assert_eq!(session.has(permission), expected, "{role:?} {name}");
            }
            assert!(!session.is_person() && session.may_act_for("u") && !session.may_act_for("other"), "{role:?}");
        }
    }
}
