//! Executors: each performs one kind of effect, such as a shell script or an HTTP request.
//!
//! An executor does not return errors, since a failure is an outcome. It does not read or write journals.

mod attempt_name;
mod executor;
#[cfg(feature = "http")]
pub mod git;
#[cfg(feature = "http")]
pub mod http;
pub mod live_progress;
pub mod partial;
pub mod sandbox;
pub mod secrets;
pub mod shell;
pub mod stdio;

pub use attempt_name::AttemptName;
pub use executor::*;
pub use live_progress::LiveProgress;
