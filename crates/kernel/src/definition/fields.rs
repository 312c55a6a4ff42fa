//! An object of the definition that is being read.

use crate::{
    document::Path,
    value::{Map, Value},
};

/// The fields of an object and its path.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    pub map: &'a Map,
    pub path: Path,
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }
}
