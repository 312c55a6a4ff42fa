//! The simulator: runs workflows on virtual time over the real engine and the real kernel, with scripted effects and
//! seeded faults.
//!
//! [`scenario`] parses scenario files, [`run_case`] runs a case in four modes and reports violated expectations, and
//! [`explore`] generates workflows and faults from a seed. Nothing here reads the wall clock or does real I/O, except
//! for reading scenario files.

mod allowance;
pub mod case;
mod check;
pub mod cluster;
mod ended_execution;
pub mod explore;
mod faults;
mod fixture;
mod invariants;
mod journal_mirror;
mod near;
mod observation;
pub mod picture;
mod run;
pub mod scenario;
pub mod simulate;
mod unused_effects;
mod world;

pub use allowance::{Allowance, Bounds};
pub use case::{CaseReport, ModeReport, run_case, run_case_under, run_case_with, run_case_within};
pub use ended_execution::EndedExecution;
pub use faults::Faults;
pub use observation::{Observation, observe};
