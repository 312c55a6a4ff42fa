//! Migrations to another plan.

use super::{Decider, edges::scopes_with_edges};
use crate::{
    apply::IllegalTransition,
    hash::Hash,
    instance::Scope,
    migration::{check, policy},
    plan::{Plan, PlanBytes},
    record::Record,
};

impl Decider<'_> {
    /// Continues with another plan. Has no effect if the execution has that plan, or cannot continue with it.
    pub(super) fn migrate(
        &mut self,
        bytes: &PlanBytes,
        version: Option<&str>,
        by: &str,
        reason: &str,
    ) -> Result<(), IllegalTransition> {
        let plan_hash = Hash::of(&bytes.0);
        if self.state.start.as_ref().is_none_or(|start| start.plan_hash == plan_hash) {
            return Ok(());
        }
        let Ok(new) = Plan::decode(&bytes.0) else { return Ok(()) };
        if check(self.state, &new, bytes.0.len()).is_err() {
            return Ok(());
        }
        self.record(Record::Migrated {
            workflow_hash: new.workflow_hash,
            plan_hash,
            version: version.map(Into::into),
            policy: policy(self.state, &new),
            by: by.into(),
            reason: reason.into(),
            plan: bytes.clone(),
        })?;
        self.look_everywhere();
        let scopes: alloc::vec::Vec<Scope> = scopes_with_edges(self.state).cloned().collect();
        for scope in scopes {
            self.look_at_all_decidable(&scope);
        }
        Ok(())
    }
}
