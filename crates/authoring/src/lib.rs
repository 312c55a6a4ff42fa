//! Help for authors of workflows, offline: explanations, schemas, examples, templates, skeletons of scenarios, drawings
//! of plans, and the language server.
//!
//! All facts about the language come from the tables of the kernel and from the generated JSON Schemas, which are
//! embedded. A key that is added there appears here by itself.

pub mod change_request;
pub mod draw;
pub mod examples;
pub mod explain;
pub mod language;
#[cfg(feature = "language-server")]
pub mod lsp;
pub mod schemas;
pub mod skeleton;
pub mod templates;
pub mod text;
pub mod topics;
