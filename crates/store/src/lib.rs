//! Where it is kept: journals and the catalogue, behind one contract for every kind of store.
//!
//! A store keeps what it is given and checks the fences; it decides nothing. [`memory`] is the reference, [`sqlite`] the
//! default. One conformance suite and one randomised model test, in `suite`, run against all of them.

mod contract;
pub mod memory;
pub mod sqlite;
#[cfg(test)]
mod suite;

pub use contract::*;
