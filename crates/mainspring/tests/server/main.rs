//! Tests of the server as a process, over real connections.

#[path = "../support/secured.rs"]
mod secured;
#[path = "../support/mod.rs"]
mod support;

mod client;
mod process;

mod agent_messages;
mod agents;
mod approval_pages;
mod approvals;
mod approvers;
mod audit;
mod backends;
mod bounded;
mod commands;
mod commands_on_executions;
mod connections;
mod containment;
mod crash_recovery;
mod credentials;
mod dev;
mod drains;
mod escalation;
mod escapes;
mod events;
mod fault_proxy;
mod files;
mod hostile;
mod limits;
mod load;
mod members;
mod oidc;
mod openapi_fuzz;
mod organizations;
mod pages;
mod pagination;
mod permissions;
mod proposals;
mod rate_limits;
mod reach;
mod refused;
mod repository;
mod scenarios;
mod schedules;
mod script_limits;
mod secrets;
mod sessions;
mod shows;
mod start;
mod tls;
mod tools;
mod triggers;
mod unreachable_server;
mod unread;
mod up;
mod upgrades;
mod vectors;
mod waits;
mod webhooks;
mod workflow_sessions;
mod workflows;
mod written_proposals;
