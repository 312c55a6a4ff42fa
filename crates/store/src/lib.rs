//! Where it is kept: journals and the catalogue, behind one contract for every kind of store.
//!
//! A store keeps what it is given and checks the fences; it decides nothing. [`memory`] is the reference, [`sqlite`] the
//! default, `postgres` (a feature) the one that several nodes share. One conformance suite and one randomised model test,
//! in `suite`, run against all of them.

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
