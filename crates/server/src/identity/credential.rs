//! Whoever stands behind a request.

use crate::{
    identity::{Permission, Role},
    problem::{Code, Problem},
};

/// Whoever stands behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The organisation that the credential is for. Nothing of another one is there for this caller.
    pub organization: String,
    /// The member: what journals and audit logs call them.
    pub user: String,
    /// What the member is there.
    pub role: Role,
    /// What the credential is.
    pub kind: Kind,
    /// The credential's id.
    pub token: String,
    /// The hash of the cookie's secret, if a cookie stands for the credential.
    pub sign_in: Option<String>,
    /// The only permissions that the credential carries; empty for all of the role's.
    pub scopes: Vec<Permission>,
    /// Whether the member runs the installation.
    pub is_operator: bool,
    /// Who made the credential, if that was not the member.
    pub made_by: Option<String>,
    /// The admin who knows the credential's secret beside the member. What it does is not for certain the member's wish.
    pub known_to: Option<String>,
    /// When the credential ends, in milliseconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
}

/// What a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A member's own.
    Person,
    /// That of the session of one execution: it has its owner's rights and is no person.
    Session {
        /// The execution's name.
        execution: String,
    },
}

impl Caller {
    /// Whether a request that asks for a permission may go on.
    pub fn has(&self, permission: Permission) -> bool {
        let by_role = match self.kind {
            Kind::Person => permission.is_of(self.role),
            Kind::Session { .. } => self.is_of_session(permission),
        };
        let runs_it = self.is_operator && self.role == Role::Owner && self.is_person();
        let by_office = permission == Permission::InstallationWrite && runs_it;
        // Otherwise an admin would be as many approvers as there are members.
        let is_anybodys = permission == Permission::ApprovalsDecide && self.known_to.is_some();
        (by_role || by_office) && !is_anybodys && (self.scopes.is_empty() || self.scopes.contains(&permission))
    }

    /// The same, as an answer.
    pub fn require(&self, permission: Permission) -> Result<(), Problem> {
        if self.has(permission) {
            return Ok(());
        }
        let message = match &self.known_to {
            Some(admin) if permission == Permission::ApprovalsDecide => format!(
                "This credential decides nothing: the admin `{admin}` has made it, and could decide in your place. Sign in \
                 by the provider, or let an owner make you a token."
            ),
            _ => format!("This credential may not do that: it lacks `{}`.", permission.name()),
        };
        Err(Problem::new(Code::Forbidden, message).with(serde_json::json!({ "permission": permission.name() })))
    }

    /// Whether a person asks, who can answer for a decision.
    pub fn is_person(&self) -> bool {
        self.kind == Kind::Person && self.role != Role::Agent
    }

    /// Whether it may act on what belongs to a member.
    pub fn may_act_for(&self, user: &str) -> bool {
        self.user == user || self.effective_role().is_admin()
    }

    /// Somebody of an organization, for tests.
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

    /// A session reports on its execution, and has what both its member and a program have; but what an execution is
    /// made of is not for the execution to change.
    fn is_of_session(&self, permission: Permission) -> bool {
        let both = permission.is_of(self.role) && permission.is_of(Role::Agent);
        permission == Permission::ExecutionsReport || both && permission != Permission::WorkflowsWrite
    }

    /// A session is a program, whoever it works for.
    fn effective_role(&self) -> Role {
        if self.is_person() { self.role } else { Role::Agent }
    }
}
