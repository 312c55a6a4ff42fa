//! Tests of the server as a process, over real connections.

#[path = "../support/secured.rs"]
mod secured;
#[path = "../support/mod.rs"]
mod support;

mod client;
mod process;

mod acts;
mod approvals;
mod approvers;
mod audit;
mod between;
mod bounded;
mod broken;
mod commands;
mod connections;
mod containment;
mod credentials;
mod crowd;
mod escalation;
mod escapes;
mod events;
mod files;
mod hostile;
mod limits;
mod links;
mod lists;
mod members;
mod oidc;
mod organizations;
mod outside;
mod pages;
mod rates;
mod reach;
mod refused;
mod rights;
mod script_limits;
mod secure;
mod sessions;
mod shows;
mod starts;
mod storm;
mod unread;
mod up;

mod vectors;
mod waits;
mod workflows;
