//! The command lines `mainspring` and `workflow`: flags, wiring, exit codes and terminal output. Workflow
//! semantics, storage and the HTTP API are in the other crates.

mod backend;
pub mod cli;
mod client;
mod commands;
mod context;
mod definitions;
pub mod error;
pub mod evaluator;
pub mod idempotency;
mod integrations;
mod known_names;
mod models;
mod node_processes;
pub mod output;
pub mod paths;
mod period_budgets;
pub mod read_limited;
#[cfg(feature = "tools")]
mod recording_file;
mod repositories;
pub mod runner;
mod runners;
mod scripts;
mod secrets;
mod server_settings;
pub mod signals;
mod simulated;
mod store_location;
#[cfg(feature = "telemetry")]
mod telemetry;
#[cfg(not(feature = "telemetry"))]
#[path = "telemetry/disabled.rs"]
mod telemetry;
mod tls;
mod tool_policy;
mod tool_servers;
pub mod workflow_cli;
