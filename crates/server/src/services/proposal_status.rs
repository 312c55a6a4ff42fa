//! The status of a proposal: its moves in one table, and the status that readers get.

use crate::resources::{Proposal, ProposalStatus, Workflow, repository::Stored};

/// A move of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// A review approves it.
    Approve,
    /// A review rejects it.
    Reject,
    /// The workflow gets its definition.
    Apply,
    /// It cannot be applied.
    Fail,
    /// Its time limit has passed.
    Expire,
    /// Something that was reviewed has changed.
    Void,
}

/// Returns the status after a move, or `None` for a move that the status does not permit.
pub(crate) fn after(status: ProposalStatus, step: Move) -> Option<ProposalStatus> {
    use ProposalStatus::{Applied, Approved, Expired, Failed, Pending, Rejected};
    match (status, step) {
        (Pending, Move::Approve) => Some(Approved),
        (Pending, Move::Reject) => Some(Rejected),
        (Pending | Approved, Move::Expire) => Some(Expired),
        (Approved, Move::Apply) => Some(Applied),
        (Approved, Move::Fail) => Some(Failed),
        (Approved, Move::Void) => Some(Pending),
        _ => None,
    }
}

/// Returns the status at a time: an open proposal expires, and is superseded while the workflow has another definition.
pub(crate) fn status_at(proposal: &Proposal, workflow: &Stored<Workflow>, now: u64) -> ProposalStatus {
    if !proposal.status.is_open() {
        return proposal.status;
    }
    if now >= proposal.expires_at {
        return ProposalStatus::Expired;
    }
    let is_current =
        proposal.change.base_hash == workflow.body.hash && proposal.workflow_created_at == workflow.body.created_at;
    if is_current { proposal.status } else { ProposalStatus::Superseded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::body::Data,
        resources::{Author, ProposedChange},
    };
    use ProposalStatus::{Applied, Approved, Expired, Failed, Pending, Rejected, Superseded};

    #[test]
    fn every_move_of_every_status() {
        let moves = [Move::Approve, Move::Reject, Move::Apply, Move::Fail, Move::Expire, Move::Void];
        let table = [
            (Pending, [Some(Approved), Some(Rejected), None, None, Some(Expired), None]),
            (Approved, [None, None, Some(Applied), Some(Failed), Some(Expired), Some(Pending)]),
            (Rejected, [None; 6]),
            (Applied, [None; 6]),
            (Failed, [None; 6]),
            (Expired, [None; 6]),
            (Superseded, [None; 6]),
        ];
        assert_eq!(table.map(|(status, _)| status), ProposalStatus::ALL);
        for (status, expected) in table {
            assert_eq!(moves.map(|step| after(status, step)), expected, "{status:?}");
        }
    }

    #[test]
    fn time_and_new_versions_end_open_proposals_only() {
        let workflow = Stored {
            id: "w".into(),
            version: 3,
            body: Workflow {
                user: "ada".into(),
                slug: None,
                name: "w".into(),
                description: None,
                version: "1.0.0".into(),
                data: Data::default(),
                hash: "sha256:1".into(),
                enabled: true,
                tags: Vec::new(),
                created_at: 7,
                updated_at: 7,
                revision: 1,
                drain: None,
                rollout: None,
                repository: None,
            },
        };
        let proposal = |status, base_hash: &str, workflow_created_at| Proposal {
            workflow: "w".into(),
            workflow_created_at,
            author: Author { user: "ada".into(), execution: None, session: None, known_to: None },
            change: ProposedChange {
                base_hash: base_hash.into(),
                hash: "sha256:2".into(),
                data: Data::default(),
                summary: None,
                rationale: None,
            },
            status,
            reviews: Vec::new(),
            applied: None,
            failure: None,
            shadow: None,
            scenario_failure: None,
            written: None,
            expires_at: 100,
            created_at: 10,
            updated_at: 10,
        };
        for status in ProposalStatus::ALL {
            for (base, created_at, now, open) in [
                ("sha256:1", 7, 99, status),
                ("sha256:1", 7, 100, Expired),
                ("sha256:0", 7, 99, Superseded),
                ("sha256:1", 8, 99, Superseded),
                ("sha256:0", 7, 100, Expired),
            ] {
                let expected = if status.is_open() { open } else { status };
                let found = status_at(&proposal(status, base, created_at), &workflow, now);
                assert_eq!(found, expected, "{status:?} {base} {created_at} {now}");
            }
        }
    }
}
