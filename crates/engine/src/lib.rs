//! Durable execution: turns, timers, recovery and leases. It contains no HTTP, no SQL and no particular executor.
//!
//! [`shard`] is a synchronous state machine without I/O. The driver (`rim`) connects it to the store, the executors,
//! the sandbox and the clock, and is the only asynchronous part.

pub mod admission;
pub mod aside;
pub mod clock;
pub mod columns;
pub mod engine;
pub mod envelope;
pub mod erasing;
mod error;
pub mod evaluator;
pub mod fair;
pub mod family;
mod generation;
pub mod home;
pub mod inbox;
mod intake;
pub mod keys;
pub mod lease;
pub mod limits;
mod live;
pub mod load;
pub mod member;
pub mod naming;
pub mod noting;
pub mod progress;
pub mod request;
mod rim;
pub mod shard;
pub mod span;
pub mod token;

pub use engine::{Engine, Ground, Options, Sharing, Submitted};
pub use error::EngineError;
pub use rim::{Pending, Reach, Trouble};
