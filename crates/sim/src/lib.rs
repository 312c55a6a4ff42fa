//! Is it so? Runs workflows on virtual time over the real engine and the real kernel, with scripted effects and seeded
//! faults.
//!
//! [`scenario`] reads what authors write down, [`run_case`] runs it four ways and says what does not hold, [`explore`]
//! makes workflows and misfortunes of its own from a seed. Nothing here looks at the wall clock or does real I/O, but
//! for reading scenario files.

pub mod case;
mod check;
pub mod cluster;
pub mod explore;
mod faults;
mod invariants;
mod mirror;
pub mod picture;
mod run;
pub mod scenario;
mod setup;
pub mod simulate;
mod unused;
mod world;

pub use case::{CaseReport, ModeReport, run_case, run_case_under, run_case_with};
pub use faults::Faults;
