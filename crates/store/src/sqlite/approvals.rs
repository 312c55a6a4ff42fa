//! Open approval gates.

use mainspring_kernel::key::ExecutionKey;
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};

use super::executions::ABOVE_ALL_KEYS;
use crate::{
    GateRow, Part,
    batch::is_end,
    sql::{integer, natural, only},
};

/// Writes the changes of gates by a part with frames.
pub(super) fn write(connection: &Connection, part: &Part) -> rusqlite::Result<()> {
    let execution = part.execution.0;
    for (step, gate) in &part.gates_closed {
        connection.prepare_cached(sql!("executions.sql", "gate_close"))?.execute(params![execution, step, gate])?;
    }
    let opened = part.gates_opened.iter().filter(|_| !is_end(part));
    for GateRow { step, gate, organization, opened_at, expires_at, on_timeout, .. } in opened {
        let (opened_at, expires_at) = (integer(*opened_at), integer(*expires_at));
        let values = params![execution, step, gate, organization, opened_at, expires_at, on_timeout];
        connection.prepare_cached(sql!("executions.sql", "gate_open"))?.execute(values)?;
    }
    Ok(())
}

pub(super) fn list(
    connection: &Connection,
    organization: Option<&str>,
    after: Option<(ExecutionKey, &str, u32)>,
    limit: usize,
) -> rusqlite::Result<Vec<GateRow>> {
    let execution = after.as_ref().map_or(&ABOVE_ALL_KEYS[..], |(execution, ..)| &execution.0);
    let (step, gate) = after.as_ref().map_or(("", 0), |(_, step, gate)| (*step, *gate));
    let limit = integer(limit as u64);
    let mut values: Vec<&dyn ToSql> = vec![&execution, &step, &gate, &limit];
    values.extend(organization.as_ref().map(|organization| organization as &dyn ToSql));
    let asked = organization.map(|_| "organization");
    let sql = only(sql!("executions.sql", "pending_approvals"), '?', 4, asked.as_slice());
    connection.prepare_cached(&sql)?.query_map(params_from_iter(values), of_row)?.collect()
}

fn of_row(row: &Row<'_>) -> rusqlite::Result<GateRow> {
    Ok(GateRow {
        execution: ExecutionKey(row.get(0)?),
        step: row.get(1)?,
        gate: row.get(2)?,
        organization: row.get(3)?,
        opened_at: natural(row.get(4)?),
        expires_at: natural(row.get(5)?),
        on_timeout: row.get(6)?,
    })
}
