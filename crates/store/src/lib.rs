//! Stores of journals and of the catalogue, behind one contract.
//!
//! A store writes what it is given and checks the fences; it makes no decisions. [`memory`] is the reference
//! implementation, [`sqlite`] the default, `postgres` (a feature) the one that several nodes share. One conformance
//! suite and one randomized model test, in `contract_tests`, run against all of them.

#[macro_use]
mod sql;

mod catalogue;
mod contract;
#[cfg(test)]
mod contract_tests;
mod inspect;
pub mod memory;
mod metrics;
mod part;
mod payloads;
#[cfg(feature = "postgres")]
pub mod postgres;
mod release;
pub mod sqlite;

pub use catalogue::*;
pub use contract::*;
pub use inspect::*;
pub use release::*;
