//! Who can decide at gates, for whoever has the store in hand and is no caller of the server.

use mainspring_engine::{EngineError, family::OpenGate, load::Loader};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Catalogue, ExecutionRow, GateRow, Store};

use crate::{
    approvers::Members,
    problem::{Answer, Code, Problem},
};

pub use crate::approvers::Approver;

/// Whether as many as have to can still approve at an open gate, by the members that a catalogue has; `None` for an
/// execution of no organization, where whoever has the folder decides.
pub fn are_enough(catalogue: &dyn Catalogue, row: &ExecutionRow, open: &OpenGate) -> Answer<Option<bool>> {
    let organization = row.organization.as_deref();
    organization.map(|organization| Members::in_catalogue(catalogue, organization).are_enough(row, open)).transpose()
}

/// Those whom an open gate names, as they stand now; `None` for an execution of no organization.
pub fn named(catalogue: &dyn Catalogue, row: &ExecutionRow, open: &OpenGate) -> Answer<Option<Vec<Approver>>> {
    let organization = row.organization.as_deref();
    organization.map(|organization| Members::in_catalogue(catalogue, organization).named(open)).transpose()
}

/// A gate that waits for people.
pub struct Pending {
    /// How it is listed.
    pub listed: GateRow,
    /// Its execution.
    pub row: ExecutionRow,
    /// What is asked, and of whom.
    pub open: OpenGate,
}

/// A page of gates that wait.
#[derive(Default)]
pub struct PendingPage {
    /// Those that could be read: of a journal that is broken the execution itself tells.
    pub gates: Vec<Pending>,
    /// The executions whose journals are broken, by their names.
    pub broken: Vec<String>,
    /// The place of the last gate that was looked at, where there may be more behind it.
    pub next: Option<Place>,
}

/// The place of a gate in the list: its execution, its step, its number.
pub type Place = (ExecutionKey, String, u32);

/// Reads gates that wait, of all organizations and of none, from behind a place on: those of the newest execution first.
///
/// # Errors
/// Fails where the store does not answer.
pub fn pending(
    store: &dyn Store,
    loader: &Loader,
    key: &[u8; 32],
    after: Option<&Place>,
    limit: usize,
) -> Answer<PendingPage> {
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
        let open: Vec<OpenGate> = mainspring_engine::family::own_gates(key, &state).collect();
        for listed in gates {
            // One that was decided since is not there any more.
            let is_it = |open: &&OpenGate| open.step == listed.step && open.gate.number == listed.gate;
            if let Some(open) = open.iter().find(is_it) {
                page.gates.push(Pending { listed: listed.clone(), row: row.clone(), open: open.clone() });
            }
        }
    }
    Ok(page)
}
