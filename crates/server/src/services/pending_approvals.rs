//! Approvers of open gates, for commands that read the store directly and not through the server.

use mainspring_engine::{EngineError, execution_tree::OpenGate, journal_loader::Loader};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Catalogue, ExecutionRow, GateRow, Store};

use crate::{
    http::problem::{Code, Problem, Result},
    services::approvers::Members,
};

pub use crate::services::approvers::Approver;

/// True if enough members in the catalogue can still approve at an open gate. `None` for an execution without an
/// organization, where access to the data folder is the permission.
pub fn are_enough(catalogue: &dyn Catalogue, row: &ExecutionRow, open: &OpenGate) -> Result<Option<bool>> {
    let organization = row.organization.as_deref();
    organization.map(|organization| Members::in_catalogue(catalogue, organization).are_enough(row, open)).transpose()
}

/// The named approvers of an open gate with their current roles; `None` for an execution without an organization.
pub fn named(catalogue: &dyn Catalogue, row: &ExecutionRow, open: &OpenGate) -> Result<Option<Vec<Approver>>> {
    let organization = row.organization.as_deref();
    organization.map(|organization| Members::in_catalogue(catalogue, organization).named(open)).transpose()
}

/// An open gate.
pub struct Pending {
    /// Its row in the list of pending approvals.
    pub listed: GateRow,
    /// Its execution.
    pub row: ExecutionRow,
    /// The question and its approvers.
    pub open: OpenGate,
}

/// One page of open gates.
#[derive(Default)]
pub struct PendingPage {
    /// The gates of readable journals.
    pub gates: Vec<Pending>,
    /// Ids of executions with broken journals. Their gates are missing in `gates`.
    pub broken: Vec<String>,
    /// Cursor: the last gate of this page, if there may be more.
    pub next: Option<Cursor>,
}

/// Cursor in the list of gates: execution, step, number of the gate.
pub type Cursor = (ExecutionKey, String, u32);

/// Reads a page of open gates behind a cursor, of all organizations and of none. Gates of the newest execution come
/// first.
///
/// # Errors
/// Fails if the store cannot be read.
pub fn pending(
    store: &dyn Store,
    loader: &Loader,
    key: &[u8; 32],
    after: Option<&Cursor>,
    limit: usize,
) -> Result<PendingPage> {
    let after = after.map(|(execution, step, gate)| (*execution, step.as_str(), *gate));
    let listed = store.pending_approvals(None, after, limit)?;
    let mut page = PendingPage::default();
    let last = listed.last().filter(|_| listed.len() == limit);
    page.next = last.map(|last| (last.execution, last.step.clone(), last.gate));
    for gates in listed.chunk_by(|one, next| one.execution == next.execution) {
        let Some(row) = store.execution(gates[0].execution)? else { continue };
        let state = match loader.journal(row.key).map_err(EngineError::from).map_err(Problem::from) {
            Ok(Some(read)) => read.journal.state,
            Ok(None) => continue,
            Err(problem) if problem.code == Code::InternalError => {
                page.broken.push(row.id);
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let open: Vec<OpenGate> = mainspring_engine::execution_tree::own_gates(key, &state).collect();
        for listed in gates {
            // A gate that was decided since the list was read is no longer open.
            let is_it = |open: &&OpenGate| open.step == listed.step && open.gate.number == listed.gate;
            if let Some(open) = open.iter().find(is_it) {
                page.gates.push(Pending { listed: listed.clone(), row: row.clone(), open: open.clone() });
            }
        }
    }
    Ok(page)
}
