//! A number that the ratchet holds, with the places that it counts.

use crate::finding::Finding;

/// A number that may be too high.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    /// The measure and its place, as they stand in the file: `function crates/a/src/b.rs::c`. Functions of one name in
    /// one file share a key, and the longest of them counts.
    pub(super) key: String,
    pub(super) number: usize,
    pub(super) limit: usize,
    /// The things that are counted, and how to lower their number.
    pub(super) unit: String,
    /// The place that is measured, or each place that counts.
    pub(super) places: Vec<Finding>,
}

impl Measure {
    /// A count of places where none is right.
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
