//! Stores of journals and of the catalogue, behind one contract: a trait for each area, and [`Store`], their sum.
//!
//! A store writes what it is given and checks the fences; it makes no decisions. [`memory`] is the reference
//! implementation, [`sqlite`] the default, `postgres` (a feature) the one that several nodes share. One contract suite
//! and one randomized model test, in `contract_tests`, run against all of them.

#[macro_use]
mod sql;

mod audit;
mod batch;
mod budgets;
mod catalogue;
#[cfg(test)]
mod contract_tests;
mod error;
mod event_queue;
mod executions;
mod forward;
mod inbox;
mod inspect;
mod journal;
mod membership;
pub mod memory;
mod metrics;
mod payloads;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod prelude;
mod read_limit;
mod rows;
mod sealed;
pub mod sqlite;
mod store;

#[doc(hidden)]
pub use mainspring_kernel as kernel;

pub use audit::*;
pub use batch::*;
pub use budgets::*;
pub use catalogue::*;
pub use error::*;
pub use event_queue::*;
pub use executions::*;
pub use inbox::*;
pub use inspect::*;
pub use journal::*;
pub use membership::*;
pub use read_limit::*;
pub use rows::*;
pub use sealed::*;
pub use store::*;
