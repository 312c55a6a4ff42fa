//! Durable execution: turns, timers, recovery and leases. It contains no HTTP, no SQL and no particular executor.
//!
//! [`shard`] is a synchronous state machine over executions, and [`node`] one over a shard and its place among other
//! nodes; neither does I/O. The `driver` connects the node to the store, the executors, the sandbox and the clock, and is
//! the only asynchronous part.

pub mod admission;
pub mod audit;
pub mod clock;
pub mod closed_gate;
pub mod columns;
pub mod data_dir;
mod derived_columns;
mod driver;
mod driver_thread;
pub mod engine;
pub mod envelope;
pub mod erasure;
mod error;
pub mod evaluator;
pub mod execution_keys;
pub mod execution_tree;
pub mod fair;
mod generation;
pub mod inbox;
mod intake;
pub mod journal_loader;
pub mod keys;
pub mod lease;
pub mod limits;
pub mod membership;
pub mod node;
pub mod options;
pub mod period_budgets;
pub mod progress;
pub mod quarantine;
pub mod receipts;
pub mod resource_seals;
pub mod resume_token;
pub mod seal_note;
pub mod shard;
pub mod start_request;
pub mod trace_spans;
mod turn;
mod unfinished;

pub use engine::{Engine, StartAnswer};
pub use error::EngineError;
pub use node::NodeProblem;
pub use options::{ClusterOptions, EngineOptions, EngineResources, EngineScope};
pub use shard::Pending;
