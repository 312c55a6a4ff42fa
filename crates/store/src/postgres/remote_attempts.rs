//! Attempts that keep running at a node which has released their execution.

use mainspring_kernel::key::ExecutionKey;
use tokio_postgres::Row;

use super::{
    columns::{self, word_key},
    connections::Session,
    error::Fault,
};
use crate::RemoteAttempt;

/// Attempts as parameters of a statement: an array for each column.
pub(super) struct Columns<'a> {
    pub(super) executions: Vec<&'a [u8]>,
    pub(super) step_keys: Vec<Vec<u8>>,
    pub(super) steps: Vec<&'a [u8]>,
    pub(super) numbers: Vec<i64>,
}

pub(super) fn columns(attempts: &[RemoteAttempt]) -> Columns<'_> {
    Columns {
        executions: attempts.iter().map(|attempt| &attempt.execution.0[..]).collect(),
        step_keys: attempts.iter().map(|attempt| word_key(&attempt.step).0.to_vec()).collect(),
        steps: attempts.iter().map(|attempt| attempt.step.as_bytes()).collect(),
        numbers: attempts.iter().map(|attempt| i64::from(attempt.number)).collect(),
    }
}

pub(super) fn of_row(found: &Row) -> Result<RemoteAttempt, Fault> {
    let (execution, step) = (columns::key(found, 0)?, columns::word(found, 1)?);
    Ok(RemoteAttempt { execution, step, number: columns::small_number(found, 2)? })
}

pub(super) async fn of_execution(
    session: &Session,
    execution: ExecutionKey,
) -> Result<Vec<(RemoteAttempt, String)>, Fault> {
    let found = session.query(sql!("membership.sql", "remote_attempts"), &[&&execution.0[..]]).await?;
    let mut remote =
        found.iter().map(|found| Ok((of_row(found)?, columns::word(found, 3)?))).collect::<Result<Vec<_>, Fault>>()?;
    remote.sort();
    Ok(remote)
}

pub(super) async fn stop(session: &Session, attempt: &RemoteAttempt) -> Result<(), Fault> {
    let Columns { executions, step_keys, numbers, .. } = columns(std::slice::from_ref(attempt));
    session
        .query(sql!("membership.sql", "remote_attempt_stop"), &[&executions[0], &step_keys[0], &numbers[0]])
        .await
        .map(drop)
}

pub(super) async fn end(session: &Session, node: &str, attempts: &[RemoteAttempt]) -> Result<(), Fault> {
    let Columns { executions, step_keys, numbers, .. } = columns(attempts);
    session
        .query(sql!("membership.sql", "remote_attempts_remove"), &[&executions, &step_keys, &numbers, &node.as_bytes()])
        .await
        .map(drop)
}
