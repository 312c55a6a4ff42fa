//! The output for people: terminal lines and colors, escaped text, live progress, summaries and prompts.

pub(crate) mod approvals;
pub(crate) mod brief;
pub(crate) mod execution_view;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod review;
pub(crate) mod shadow;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod terminal;

pub(crate) use mainspring_authoring::{draw, text};
