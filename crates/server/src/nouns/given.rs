//! A name that was given to a workflow, as its id or as its slug.

use serde::{Deserialize, Serialize};

use crate::shelf::Noun;

/// That a name was given, by its id. Whoever gives one puts it: of two who give the same at the same moment one is refused,
/// and looks again at what it means by now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {}

impl Noun for Given {
    const NOUN: &'static str = "given";
    const WORD: &'static str = "name";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
