//! Compares two versions of a workflow by their meaning, and rates the risk of the change.
//!
//! [`review`] takes two compiled definitions of any notation. Steps are matched first ([`matching`]), so that a renamed or
//! moved step is one step. The difference ([`change`]) and the findings of the [`rules`] come from those pairs. Nothing
//! here reads a clock, a file or the network: equal definitions give an equal report, so a report has a hash.
//!
//! [`shadow`] replays recorded executions with a new plan.

mod capability;
pub mod change;
pub mod finding;
mod guards;
pub mod limits;
mod matching;
mod outline;
mod report;
mod rules;
pub mod shadow;
mod text_diff;
mod version;

pub use change::{Change, ChangeKind};
pub use finding::{CODES, Finding, FindingCode, Risk};
pub use report::{Report, review};
pub use text_diff::unified;
pub use version::Version;
