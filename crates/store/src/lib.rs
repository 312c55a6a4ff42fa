//! Stores of journals and of the catalogue, behind one contract.
//!
//! A store writes what it is given and checks the fences; it makes no decisions. [`memory`] is the reference
//! implementation, [`sqlite`] the default, `postgres` (a feature) the one that several nodes share. One conformance
//! suite and one randomized model test, in `suite`, run against all of them.

mod catalogue;
mod conditions;
mod contract;
mod inspection;
pub mod memory;
mod meter;
mod number;
mod part;
#[cfg(feature = "postgres")]
pub mod postgres;
mod release;
pub mod sqlite;
#[cfg(test)]
mod suite;
mod values;

pub use catalogue::*;
pub use contract::*;
pub use inspection::*;
pub use release::*;
