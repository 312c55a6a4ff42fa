//! Open approval gates.

use mainspring_kernel::key::ExecutionKey;
use tokio_postgres::{Row, types::ToSql};

use super::{
    columns::{self, word_key},
    connections::Session,
    error::Fault,
    executions::ABOVE_ALL_KEYS,
    writes::{Writes, bytes, column, key_of},
};
use crate::{
    GateRow, Part,
    batch::is_end,
    sql::{integer, only},
};

impl<'a> Writes<'a> {
    /// Adds the changes of gates by parts with frames.
    pub(super) fn gates(&mut self, parts: &[&'a Part]) {
        let of_part = |part: &'a Part| part.gates_closed.iter().map(move |(step, gate)| (part.execution, step, *gate));
        let closed: Vec<(ExecutionKey, &str, u32)> =
            parts.iter().flat_map(|part| of_part(part)).map(|(key, step, gate)| (key, step.as_str(), gate)).collect();
        let columns = vec![
            column(&closed, |(key, ..)| key.0.to_vec()),
            column(&closed, |(_, step, _)| word_key(step).0.to_vec()),
            column(&closed, |(.., gate)| i64::from(gate)),
        ];
        self.push(&closed, sql!("executions.sql", "gates_close"), columns);
        let others = parts.iter().filter(|part| !is_end(part));
        let opened: Vec<(ExecutionKey, &'a GateRow)> =
            others.flat_map(|part| part.gates_opened.iter().map(|row| (part.execution, row))).collect();
        let columns = vec![
            column(&opened, |(key, _)| key.0.to_vec()),
            column(&opened, |(_, row)| word_key(&row.step).0.to_vec()),
            column(&opened, |(_, row)| row.step.as_bytes()),
            column(&opened, |(_, row)| i64::from(row.gate)),
            column(&opened, |(_, row)| key_of(&row.organization)),
            column(&opened, |(_, row)| bytes(&row.organization)),
            column(&opened, |(_, row)| integer(row.opened_at)),
            column(&opened, |(_, row)| integer(row.expires_at)),
            column(&opened, |(_, row)| row.on_timeout.as_bytes()),
        ];
        self.push(&opened, sql!("executions.sql", "gates_open"), columns);
    }
}

pub(super) async fn list(
    session: &Session,
    organization: Option<&str>,
    after: Option<(ExecutionKey, &str, u32)>,
    limit: usize,
) -> Result<Vec<GateRow>, Fault> {
    let execution = after.as_ref().map_or(&ABOVE_ALL_KEYS[..], |(execution, ..)| &execution.0);
    let (step, gate) = after.as_ref().map_or(("", 0), |(_, step, gate)| (*step, i64::from(*gate)));
    let (step, limit) = (step.as_bytes(), integer(limit as u64));
    let key = organization.map(|organization| word_key(organization).0.to_vec());
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&execution, &step, &gate, &limit];
    values.extend(key.as_ref().map(|key| key as &(dyn ToSql + Sync)));
    let asked = organization.map(|_| "organization");
    let sql = only(sql!("executions.sql", "pending_approvals"), '$', 4, asked.as_slice());
    session.query(&sql, &values).await?.iter().map(of_row).collect()
}

fn of_row(found: &Row) -> Result<GateRow, Fault> {
    Ok(GateRow {
        execution: columns::key(found, 0)?,
        step: columns::word(found, 1)?,
        gate: columns::small_number(found, 2)?,
        organization: columns::optional_word(found, 3)?,
        opened_at: columns::number(found, 4)?,
        expires_at: columns::number(found, 5)?,
        on_timeout: columns::word(found, 6)?,
    })
}
