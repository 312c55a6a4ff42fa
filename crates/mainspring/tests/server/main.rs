//! The server as a process, from outside: its routes over real connections.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod process;

mod approvals;
mod crowd;
mod escalation;
mod events;
mod limits;
mod rights;
mod starts;
mod storm;
mod up;
mod vectors;
