//! The command lines `mainspring` and `workflow`: flags, wiring, exit codes and terminal output. Workflow
//! semantics, storage and the HTTP API are in the other crates.

pub mod bounded;
pub mod cli;
mod commands;
mod connecting;
pub mod draw;
pub mod evaluating;
pub mod exit;
mod fetching;
mod ground;
mod naming;
pub mod place;
mod progress;
mod remote;
pub mod repeat;
pub mod runner;
pub mod sandbox;
mod scripts;
#[cfg(feature = "seeing")]
mod seeing;
#[cfg(not(feature = "seeing"))]
#[path = "seeing/absent.rs"]
mod seeing;
mod settings;
mod terminal;
mod text;
mod tls;
mod workflows;
