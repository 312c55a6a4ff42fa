//! A member who was removed: a provider's word alone makes them none again.

use serde::{Deserialize, Serialize};

use crate::shelf::Noun;

/// That a member was removed, by their id. It goes when an admin makes them a member again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Departed {
    /// Milliseconds since 1970.
    pub removed_at: u64,
}

impl Noun for Departed {
    const NOUN: &'static str = "departed";
    const WORD: &'static str = "removed member";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
