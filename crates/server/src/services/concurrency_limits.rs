//! Concurrency limits and drains of organizations, for the node that enforces them.

use mainspring_engine::{
    admission::{Bounds, Drain, Drained, Drains, Limits},
    limits::ORGANIZATION_EXECUTIONS_MAX,
};
use mainspring_kernel::hash::Hash;
use mainspring_store::{Change, Store};

use crate::{
    http::problem::Problem,
    resources::{
        Organization, RUNTIME_FEATURE, Workflow,
        repository::{Repository, apply},
    },
};

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

    fn drains(&self, store: &dyn Store, organization: &str) -> Result<Drains, String> {
        let repository = Repository::of(store.catalogue(), organization);
        let mut drains = Drains::new();
        for stored in repository.all::<Workflow>(Some(Workflow::draining())) {
            let stored = stored.map_err(|problem| problem.full_message())?;
            if let Some(drain) = stored.body.drain {
                let new = drain.new.iter().filter_map(|hash| Hash::parse(hash)).collect();
                drains.insert(stored.id.as_str().into(), Drain { since_ms: drain.since, new });
            }
        }
        Ok(drains)
    }

    fn drained(&self, store: &dyn Store, organization: &str, over: &Drained) -> Result<(), String> {
        let repository = Repository::of(store.catalogue(), organization);
        let said = |problem: Problem| problem.full_message();
        let Some(mut stored) = repository.get::<Workflow>(&over.workflow).map_err(said)? else { return Ok(()) };
        if stored.body.drain.take_if(|drain| drain.since == over.since_ms).is_none() {
            return Ok(());
        }
        let puts = vec![repository.put(&stored.id, &stored.body, stored.version).map_err(said)?];
        // After a conflict, the next read finds the drain again.
        let done = apply(store.catalogue(), &Change { puts, ..Change::default() }).map_err(said)?;
        done.map_err(|_| "the workflow was changed at the same time".into())
    }
}
