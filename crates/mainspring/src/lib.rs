//! How is it started: the command lines `mainspring` and `workflow`, their flags, their exit codes, what they show.

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
