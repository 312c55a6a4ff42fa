//! The organization and the initiator of executions, as their journals have them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use mainspring_engine::Engine;
use mainspring_kernel::{input::ORGANIZATION_IN_TRIGGER, key::ExecutionKey, state::State, value::Value};
use mainspring_store::ExecutionRow;

/// Most executions in memory, about 100 bytes each.
const ORIGINS_MAX: usize = 20_000;

/// Origin of an execution. It never changes, so it is read from the journal once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecutionOrigin {
    /// `None` if the trigger was erased.
    organization: Option<String>,
    user: String,
}

impl ExecutionOrigin {
    fn of(state: &State) -> Option<Self> {
        let start = state.start.as_ref()?;
        let organization = start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).map(str::to_owned);
        Some(Self { organization, user: start.by.clone() })
    }

    /// True if the columns of the execution are those of its journal.
    pub(crate) fn fits(&self, row: &ExecutionRow) -> bool {
        let is_same_user = row.initiator_user_id.as_deref() == Some(&self.user);
        is_same_user && self.organization.as_ref().is_none_or(|own| row.organization.as_ref() == Some(own))
    }
}

/// The origins that were read.
#[derive(Debug, Default)]
pub(crate) struct ExecutionOrigins(Mutex<BTreeMap<ExecutionKey, ExecutionOrigin>>);

impl ExecutionOrigins {
    /// The origin of an execution; `None` if its journal cannot be read.
    pub(crate) fn get(&self, engine: &Engine, execution: ExecutionKey) -> Option<ExecutionOrigin> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = known().get(&execution) {
            return Some(origin.clone());
        }
        let origin = ExecutionOrigin::of(&engine.state(execution).ok()?)?;
        let mut known = known();
        if known.len() >= ORIGINS_MAX {
            known.clear();
        }
        known.insert(execution, origin.clone());
        Some(origin)
    }
}
