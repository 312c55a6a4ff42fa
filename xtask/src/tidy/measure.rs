//! A measured number for the ratchet, with the places that it counts.

use crate::finding::Finding;

/// A measured number and its limit.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    /// The measure and its place, as in the ratchet file: `function crates/a/src/b.rs::c`. Functions with the same name
    /// in one file share a key, and the longest counts.
    pub(super) key: String,
    pub(super) number: usize,
    pub(super) limit: usize,
    /// The counted items, and how to reduce their number.
    pub(super) unit: String,
    /// The measured place, or each counted place.
    pub(super) places: Vec<Finding>,
}

impl Measure {
    /// Starts a count with the limit 0.
    pub(super) fn count(key: String, unit: impl Into<String>) -> Measure {
        Measure { key, number: 0, limit: 0, unit: unit.into(), places: Vec::new() }
    }

    pub(super) fn add(&mut self, place: Finding) {
        self.number += 1;
        self.places.push(place);
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.number > self.limit
    }
}
