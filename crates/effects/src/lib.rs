//! Who does the work: executors, each performing one kind of effect.
//!
//! An executor never errors: failing is an outcome. It knows nothing of journals.

mod contract;
#[cfg(feature = "http")]
pub mod http;
pub mod shell;

pub use contract::*;
