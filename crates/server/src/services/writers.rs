//! The models that write proposals for this server, with their bounds for each organization.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_authoring::change_request::Tool;
use mainspring_effects::{BoxFuture, Executor};
use mainspring_kernel::budget::ModelTerms;

use crate::http::problem::{Code, Problem, Result};

/// Proposals that a model may begin to write for an organization in one hour, at each node. Each costs money.
const PER_HOUR_MAX: usize = 30;
const HOUR_MS: u64 = 3_600_000;

/// The models that write proposals, and the tools that these may use.
pub struct Writers {
    /// Performs calls of models.
    pub executor: Arc<dyn Executor>,
    /// The default model, and the prices.
    pub terms: ModelTerms,
    /// The tools of servers; `None` if there are none.
    pub tools: Option<Arc<dyn ToolList>>,
    bounds: WritingBounds,
}

impl Writers {
    /// Makes writers that have written nothing yet.
    pub fn new(executor: Arc<dyn Executor>, terms: ModelTerms, tools: Option<Arc<dyn ToolList>>) -> Self {
        Self { executor, terms, tools, bounds: WritingBounds::default() }
    }

    /// Permits a proposal of an organization to be written.
    pub(crate) fn begin(&self, organization: &str, now: u64) -> Result<WritingPermit<'_>> {
        self.bounds.begin(organization, now)
    }
}

impl fmt::Debug for Writers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Writers").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// Lists the tools of servers.
pub trait ToolList: Send + Sync {
    /// The tools that an organization may call. A server that does not answer has none.
    fn list<'a>(&'a self, organization: Option<&'a str>) -> BoxFuture<'a, Vec<Tool>>;
}

/// The proposals that models write at this node: one at a time for each organization, and a number in each hour.
#[derive(Debug, Default)]
struct WritingBounds(Mutex<Organizations>);

#[derive(Debug, Default)]
struct Organizations {
    busy: BTreeSet<String>,
    begun_at_ms: BTreeMap<String, VecDeque<u64>>,
}

/// Permits one proposal to be written, until it is dropped.
pub(crate) struct WritingPermit<'a> {
    bounds: &'a WritingBounds,
    organization: String,
}

impl Drop for WritingPermit<'_> {
    fn drop(&mut self) {
        self.bounds.lock().busy.remove(&self.organization);
    }
}

impl WritingBounds {
    fn lock(&self) -> MutexGuard<'_, Organizations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, organization: &str, now: u64) -> Result<WritingPermit<'_>> {
        let mut all = self.lock();
        all.begun_at_ms.retain(|_, begun| {
            while begun.pop_front_if(|at| *at + HOUR_MS <= now).is_some() {}
            !begun.is_empty()
        });
        if all.busy.contains(organization) {
            let message = "A model is writing another proposal for this organization: wait until it is done.";
            return Err(Problem::new(Code::RateLimited, message));
        }
        let begun = all.begun_at_ms.entry(organization.into()).or_default();
        if begun.len() >= PER_HOUR_MAX {
            let message = format!("Models write at most {PER_HOUR_MAX} proposals for an organization in an hour.");
            return Err(Problem::new(Code::RateLimited, message));
        }
        begun.push_back(now);
        all.busy.insert(organization.into());
        drop(all);
        Ok(WritingPermit { bounds: self, organization: organization.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_written_one_at_a_time_and_some_in_an_hour() {
        let bounds = WritingBounds::default();
        let permit = bounds.begin("acme", 0).ok().unwrap();
        assert!(bounds.begin("acme", 1).is_err() && bounds.begin("globex", 1).is_ok());
        drop(permit);
        (1..PER_HOUR_MAX as u64).for_each(|at| drop(bounds.begin("acme", at).ok().unwrap()));
        assert!(bounds.begin("acme", HOUR_MS - 1).is_err(), "{PER_HOUR_MAX} in an hour");
        assert!(bounds.begin("acme", HOUR_MS).is_ok(), "the first one is an hour ago");
        assert!(bounds.begin("acme", HOUR_MS).is_err());
    }
}
