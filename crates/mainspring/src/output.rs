//! The output for people: terminal lines and colors, escaped text, live progress, summaries, prompts and drawings of
//! plans.

pub(crate) mod approvals;
pub(crate) mod brief;
pub mod draw;
pub(crate) mod execution_view;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod review;
pub(crate) mod shadow;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod text;
