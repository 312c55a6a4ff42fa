//! Concurrency limits of organizations, for the node that enforces them.

use mainspring_engine::{
    admission::{Bounds, Limits},
    limits::ORGANIZATION_EXECUTIONS_MAX,
};
use mainspring_store::Store;

use crate::resources::{Organization, RUNTIME_FEATURE, repository::Repository};

/// The limits that organizations have set. A disabled runtime feature keeps all queued executions from starting.
#[derive(Debug)]
pub struct StoredLimits;

impl Limits for StoredLimits {
    fn of(&self, store: &dyn Store, organization: &str) -> Result<Bounds, String> {
        let repository = Repository::of(store.catalogue(), "");
        let stored = repository.require::<Organization>(organization).map_err(|problem| problem.full_message())?;
        let (limits, live) = (stored.body.limits, ORGANIZATION_EXECUTIONS_MAX);
        if !stored.body.has(RUNTIME_FEATURE) {
            return Ok(Bounds { user: 0, organization: 0, workflow: Some(0), live });
        }
        let (user, organization, workflow) = (limits.per_user, limits.per_organization, limits.per_workflow);
        Ok(Bounds { user, organization, workflow, live })
    }
}
