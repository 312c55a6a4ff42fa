//! A reserved name: the id or slug of a workflow.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// Marks a name as reserved; the name is its id. A change that assigns a name writes this row, so that of two
/// concurrent changes with the same name one fails and resolves the name again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReservedName {}

impl Resource for ReservedName {
    const KIND: &'static str = "given";
    const DISPLAY_NAME: &'static str = "name";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
