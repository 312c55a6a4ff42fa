//! The server as a process, from outside: its routes over real connections.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod process;

mod approvals;
mod between;
mod broken;
mod commands;
mod credentials;
mod escalation;
mod events;
mod rights;
mod secure;
mod starts;
mod up;
mod vectors;
