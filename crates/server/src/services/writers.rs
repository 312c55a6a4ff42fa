//! The models that write proposals for this server, with their bounds for each organization.

use std::{fmt, sync::Arc};

use mainspring_authoring::change_request::Tool;
use mainspring_effects::{BoxFuture, Executor};
use mainspring_kernel::budget::ModelTerms;

use crate::{
    http::problem::{Code, Problem, Result},
    services::hourly_bound::{Full, HourlyBound, Permit},
};

/// Proposals that a model may begin to write for an organization in one hour, at each node. Each costs money.
const PER_HOUR_MAX: usize = 30;

/// The models that write proposals, and the tools that these may use.
pub struct Writers {
    /// Performs calls of models.
    pub executor: Arc<dyn Executor>,
    /// The default model, and the prices.
    pub terms: ModelTerms,
    /// The tools of servers; `None` if there are none.
    pub tools: Option<Arc<dyn ToolList>>,
    bound: HourlyBound,
}

impl Writers {
    /// Makes writers that have written nothing yet.
    pub fn new(executor: Arc<dyn Executor>, terms: ModelTerms, tools: Option<Arc<dyn ToolList>>) -> Self {
        Self { executor, terms, tools, bound: HourlyBound::new(PER_HOUR_MAX) }
    }

    /// Permits a proposal of an organization to be written.
    pub(crate) fn begin(&self, organization: &str, now: u64) -> Result<Permit<'_>> {
        self.bound.begin(organization, now).map_err(|full| {
            let message = match full {
                Full::Busy => {
                    "A model is writing another proposal for this organization: wait until it is done.".into()
                }
                Full::Hour => format!("Models write at most {PER_HOUR_MAX} proposals for an organization in an hour."),
            };
            Problem::new(Code::RateLimited, message)
        })
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
