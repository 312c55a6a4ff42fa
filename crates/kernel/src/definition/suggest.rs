//! Help texts of diagnostics: the name, the value or the reference that the author may have meant.

pub(super) mod adapt;
pub(super) mod foreign;
pub(super) mod nearest;
mod references;
pub(super) mod rewrite_keys;
pub(super) mod rewrite_types;
mod surroundings;
pub(super) mod synonyms;
pub(super) mod values;
