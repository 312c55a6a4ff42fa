//! Hops: the number of webhooks with events that led to an execution. A subscription whose events start executions of the
//! same subscription would otherwise continue without an end.

use axum::http::HeaderMap;
use mainspring_kernel::{state::State, value::Value};
use mainspring_store::ExecutionRow;

use crate::{app::App, http::problem::Result};

/// The header with the hops of an event, and the field with them in the metadata of a trigger.
pub(crate) const HEADER: &str = "mainspring-hops";
pub(crate) const FIELD: &str = "hops";

/// Parents between an execution and the one that has started its tree, more than a tree can have.
const ANCESTORS_MAX: usize = 1_000;

/// The hops of a received delivery: the largest value, 0 without the header. An unreadable value counts as the largest number,
/// since it would otherwise begin a loop again.
pub(crate) fn of_headers(headers: &HeaderMap) -> u32 {
    let values = headers.get_all(HEADER).iter();
    values
        .map(|value| value.to_str().ok().and_then(|value| value.trim().parse().ok()).unwrap_or(u32::MAX))
        .max()
        .unwrap_or(0)
}

/// The hops of an execution: those of the delivery that has started it, or the first one of its parents.
pub(crate) fn of_execution(app: &App, row: &ExecutionRow, state: &State) -> Result<u32> {
    let Some(mut parent) = row.parent else { return Ok(of_state(state)) };
    for _ in 0..ANCESTORS_MAX {
        let Some(row) = app.engine.store().execution(parent)? else { return Ok(0) };
        match row.parent {
            Some(next) => parent = next,
            None if row.trigger_type == "webhook" => return Ok(of_state(&app.engine.state(parent)?)),
            None => return Ok(0),
        }
    }
    Ok(0)
}

fn of_state(state: &State) -> u32 {
    let metadata = state.start.as_ref().and_then(|start| start.trigger.get("metadata"));
    let hops = metadata.and_then(|metadata| metadata.get(FIELD)).and_then(Value::as_u64);
    hops.and_then(|hops| u32::try_from(hops).ok()).unwrap_or(0)
}
