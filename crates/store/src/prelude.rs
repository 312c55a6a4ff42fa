//! The traits of a store, for callers of a store of a known type: `use mainspring_store::prelude::*`. Callers of a `dyn
//! Store` need none of them.

pub use crate::{
    audit::Audit as _, budgets::Budgets as _, catalogue::Catalogue as _, event_queue::EventQueue as _,
    executions::Executions as _, inbox::Inbox as _, journal::Journal as _, membership::Membership as _,
    store::Store as _,
};
