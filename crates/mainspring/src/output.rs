//! The output for people: terminal lines and colors, escaped text, live progress, summaries, prompts and drawings of
//! plans.

pub mod draw;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod summary;
pub(crate) mod terminal;
pub(crate) mod text;
