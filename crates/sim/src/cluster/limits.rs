//! Concurrency limits of a seed: every node enforces them, and executions wait for a slot.

use mainspring_engine::admission::{Bounds, Limits};
use mainspring_store::Store;

use crate::faults::Rng;

/// The organizations of the cluster. Every second execution belongs to one of them.
pub(super) const ORGANIZATIONS: [&str; 2] = ["even", "odd"];

/// The limits of all organizations of a seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeedLimits(Bounds);

impl SeedLimits {
    /// Draws the limits, often so small that most executions wait.
    pub(super) fn of(rng: &mut Rng) -> Self {
        let limit = |rng: &mut Rng| *rng.pick(&[1, 3, 1_000]);
        let (user, organization, workflow) = (limit(rng), limit(rng), limit(rng));
        // A step fails if its child exceeds this bound, so the parents of an author's case could end otherwise.
        Self(Bounds { user, organization, workflow: (workflow < 1_000).then_some(workflow), live: 10_000 })
    }
}

impl Limits for SeedLimits {
    fn of(&self, _: &dyn Store, _: &str) -> Result<Bounds, String> {
        Ok(self.0)
    }
}
