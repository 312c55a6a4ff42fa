//! The work behind the routes, without HTTP: saving and starting workflows, event feeds, approvers, audit exports.

pub(crate) mod approvers;
pub mod audit_export;
pub mod audit_marks;
pub mod bootstrap;
pub(crate) mod compile;
pub(crate) mod compile_budget;
pub(crate) mod concurrency_limits;
pub(crate) mod event_feed;
pub(crate) mod execution_view;
pub mod issue_token;
pub mod pending_approvals;
pub(crate) mod plan_cache;
pub(crate) mod proposal_review;
pub(crate) mod proposal_status;
pub(crate) mod proposals;
pub(crate) mod save_workflow;
pub(crate) mod start_execution;
pub(crate) mod version_numbers;
pub(crate) mod wait;
pub(crate) mod workflow_names;
pub mod workspaces;
