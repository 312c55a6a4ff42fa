//! Concurrency limits of organizations, for the node that enforces them.

use mainspring_engine::{
    admission::{Bounds, Limits},
    limits::ORGANIZATION_EXECUTIONS_MAX,
};
use mainspring_store::Store;

use crate::{
    nouns::{Organization, RUNTIME_FEATURE},
    shelf::Shelf,
};

/// The limits that organizations have set. A disabled runtime feature keeps all queued executions from starting.
#[derive(Debug)]
pub struct InForce;

impl Limits for InForce {
    fn of(&self, store: &dyn Store, organization: &str) -> Result<Bounds, String> {
        let shelf = Shelf::of(store.catalogue(), "");
        let held = shelf.must::<Organization>(organization).map_err(|problem| problem.whole())?;
        let (limits, live) = (held.body.limits, ORGANIZATION_EXECUTIONS_MAX);
        if !held.body.has(RUNTIME_FEATURE) {
            return Ok(Bounds { user: 0, organization: 0, workflow: Some(0), live });
        }
        let (user, organization, workflow) = (limits.per_user, limits.per_organization, limits.per_workflow);
        Ok(Bounds { user, organization, workflow, live })
    }
}
