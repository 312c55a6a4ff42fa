//! The server as a process, from outside: its routes over real connections.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod process;

mod approvals;
mod audit;
mod escalation;
mod events;
mod links;
mod pages;
mod rates;
mod rights;
mod sessions;
mod starts;
mod up;
mod vectors;
