//! Roles and permissions, with the table that connects them. A route without a known permission is closed to all
//! callers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Role of a member in an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// All permissions, including the management of members and roles.
    Owner,
    /// All permissions of an owner except changes to owners.
    Admin,
    /// Manages own workflows and executions, and reads all others.
    Member,
    /// Read access.
    Viewer,
    /// A program: the permissions of a member, without decisions of approvals and scripts.
    Agent,
}

/// A permission that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub enum Permission {
    /// Read workflows and their versions, validate definitions.
    #[serde(rename = "workflows:read")]
    WorkflowsRead,
    /// Create, change and delete workflows.
    #[serde(rename = "workflows:write")]
    WorkflowsWrite,
    /// Propose changes of workflows that permit proposals.
    #[serde(rename = "proposals:write")]
    ProposalsWrite,
    /// Read executions with all details.
    #[serde(rename = "executions:read")]
    ExecutionsRead,
    /// Start executions of workflows without scripts.
    #[serde(rename = "executions:start")]
    ExecutionsStart,
    /// Cancel executions and send signals.
    #[serde(rename = "executions:control")]
    ExecutionsControl,
    /// Start executions of workflows that have scripts (`bash` steps).
    #[serde(rename = "scripts:run")]
    ScriptsRun,
    /// Release or end quarantined executions, reap sessions.
    #[serde(rename = "executions:repair")]
    ExecutionsRepair,
    /// Erase values of ended executions.
    #[serde(rename = "executions:erase")]
    ExecutionsErase,
    /// Report on an execution from its session.
    #[serde(rename = "executions:report")]
    ExecutionsReport,
    /// Approve or deny at approval gates.
    #[serde(rename = "approvals:decide")]
    ApprovalsDecide,
    /// Read the members of the organization.
    #[serde(rename = "members:read")]
    MembersRead,
    /// Add, change and remove members.
    #[serde(rename = "members:write")]
    MembersWrite,
    /// Create, list and revoke own credentials.
    #[serde(rename = "tokens:own")]
    TokensOwn,
    /// Read the names of secrets.
    #[serde(rename = "secrets:read")]
    SecretsRead,
    /// Set and remove secrets.
    #[serde(rename = "secrets:write")]
    SecretsWrite,
    /// Read the audit log.
    #[serde(rename = "audit:read")]
    AuditRead,
    /// Read the settings of the organization.
    #[serde(rename = "organization:read")]
    OrganizationRead,
    /// Change the settings of the organization.
    #[serde(rename = "organization:write")]
    OrganizationWrite,
    /// Create organizations.
    #[serde(rename = "installation:write")]
    InstallationWrite,
}

use Permission::*;
use Role::*;

/// All permissions with the roles that have them. Operators of an installation have `installation:write` in addition to
/// their role.
pub const PERMISSIONS: [(Permission, &str, &[Role]); 20] = [
    (WorkflowsRead, "workflows:read", &[Owner, Admin, Member, Viewer, Agent]),
    (WorkflowsWrite, "workflows:write", &[Owner, Admin, Member, Agent]),
    (ProposalsWrite, "proposals:write", &[Owner, Admin, Member, Agent]),
    (ExecutionsRead, "executions:read", &[Owner, Admin, Member, Viewer, Agent]),
    (ExecutionsStart, "executions:start", &[Owner, Admin, Member, Agent]),
    (ExecutionsControl, "executions:control", &[Owner, Admin, Member, Agent]),
    (ScriptsRun, "scripts:run", &[Owner, Admin, Member]),
    (ExecutionsRepair, "executions:repair", &[Owner, Admin]),
    (ExecutionsErase, "executions:erase", &[Owner, Admin]),
    (ExecutionsReport, "executions:report", &[Agent]),
    (ApprovalsDecide, "approvals:decide", &[Owner, Admin, Member]),
    (MembersRead, "members:read", &[Owner, Admin, Member, Viewer]),
    (MembersWrite, "members:write", &[Owner, Admin]),
    (TokensOwn, "tokens:own", &[Owner, Admin, Member, Viewer]),
    (SecretsRead, "secrets:read", &[Owner, Admin, Member]),
    (SecretsWrite, "secrets:write", &[Owner, Admin]),
    (AuditRead, "audit:read", &[Owner, Admin]),
    (OrganizationRead, "organization:read", &[Owner, Admin, Member, Viewer, Agent]),
    (OrganizationWrite, "organization:write", &[Owner, Admin]),
    (InstallationWrite, "installation:write", &[]),
];

impl Permission {
    /// Parses a name, as `workflows:read`.
    pub fn parse(name: &str) -> Option<Self> {
        PERMISSIONS.iter().find(|(_, known, _)| *known == name).map(|(permission, _, _)| *permission)
    }

    /// The name, as `workflows:read`.
    pub fn name(self) -> &'static str {
        PERMISSIONS.iter().find(|(permission, _, _)| *permission == self).map_or("", |(_, name, _)| name)
    }

    /// True if a role has the permission.
    pub fn is_of(self, role: Role) -> bool {
        PERMISSIONS.iter().any(|(permission, _, roles)| *permission == self && roles.contains(&role))
    }
}

impl Role {
    /// The name in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Owner => "owner",
            Admin => "admin",
            Member => "member",
            Viewer => "viewer",
            Agent => "agent",
        }
    }

    /// True if the role may act on resources of other members.
    pub fn is_admin(self) -> bool {
        matches!(self, Owner | Admin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_table_are_those_in_json() {
        for (permission, name, _) in PERMISSIONS {
            assert_eq!(serde_json::to_value(permission).unwrap(), name);
            assert_eq!(Permission::parse(name), Some(permission));
        }
    }

    #[test]
    fn roles_have_the_names_that_are_stored() {
        for role in [Owner, Admin, Member, Viewer, Agent] {
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
    }

    #[test]
    fn agents_cannot_decide_and_viewers_cannot_write() {
        assert!(!ScriptsRun.is_of(Agent) && !ScriptsRun.is_of(Viewer), "scripts are not a program's to start");
        assert!(!ApprovalsDecide.is_of(Agent) && !MembersWrite.is_of(Agent) && !TokensOwn.is_of(Agent));
        let viewer: Vec<&str> =
            PERMISSIONS.iter().filter(|(_, _, roles)| roles.contains(&Viewer)).map(|(_, name, _)| *name).collect();
        let only_reads = |name: &&str| name.ends_with(":read") || *name == "tokens:own";
        assert!(viewer.iter().all(only_reads), "{viewer:?}");
    }
}
