//! Executions in the catalogue: columns to list and search, open approvals, quarantine.

use mainspring_kernel::hash::Hash;
use std::collections::BTreeSet;

use mainspring_kernel::key::ExecutionKey;

use crate::{
    error::StoreError,
    rows::{AuditedNotes, Expected},
};

/// The error of an execution that an operator has ended in quarantine.
pub const FORCED_END: &str = "ended_by_operator";

/// Lists executions, and quarantines them.
pub trait Executions: Send + Sync {
    /// Returns the catalogue's row of an execution.
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns the execution with an external name.
    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns the execution that was started with an idempotency key, among those of one origin.
    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns rows of the catalogue, the newest key first, at most `limit`, below `before`.
    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError>;

    /// Counts executions of an organization with one of these statuses that are not quarantined, up to `most`.
    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError>;

    /// Counts unfinished executions of a workflow that have none of the given definitions and are not quarantined, up to
    /// `most`. The cost grows with the number of definitions, not with the number of their executions.
    fn count_other_definitions(&self, of: &OtherDefinitions<'_>, most: usize) -> Result<usize, StoreError>;

    /// Returns the executions of one side of a rollout, the newest key first, at most `limit`. The cost grows with the number
    /// of these executions, not with that of others.
    fn rollout_executions(&self, rollout: &str, limit: usize) -> Result<Vec<RolloutRow>, StoreError>;

    /// Returns the organizations with a `pending` execution that is not quarantined. The cost grows with the number of
    /// organizations, not with the number of pending executions.
    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError>;

    /// Returns open approval gates of one organization or of all executions, at most `limit`, after `after`: those of
    /// the newest execution first, sorted by step name and number within an execution.
    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError>;

    /// Quarantines an execution with a reason, so that no node loads it. Durable. Its journal does not change.
    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError>;

    /// Returns quarantined executions that were not [ended](Self::force_end), of one organization or of all, sorted by
    /// key, at most `limit`, after `after`.
    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError>;

    /// Releases an execution from quarantine, and removes the message that notifies its parent of the quarantine from the
    /// inbox. Durable, with the audit entries, all or nothing.
    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError>;

    /// Ends a quarantined execution without its journal: its row becomes `failed` with [`FORCED_END`], its gates and
    /// inbox messages are removed, and the note of the end is stored. The journal does not change. Durable, all or
    /// nothing. False, and nothing is written, if the execution is unknown, not quarantined, or has ended.
    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError>;
}

/// An execution in the catalogue: the columns to list and search. Payloads are only in the journal, where they can be
/// erased. The columns follow `workflow_executions` of the second specification where they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// The execution.
    pub key: ExecutionKey,
    /// Its external name, unique in the store; the text form of the key if none was given.
    pub id: String,
    /// Its organization; `None` for one that a command line started.
    pub organization: Option<String>,
    /// The workflow's id in the catalogue of its organization.
    pub workflow_id: Option<String>,
    /// The id there of the trigger that started it.
    pub trigger_id: Option<String>,
    /// The execution that has started it and waits for it. `None` also in rows of older releases.
    pub parent: Option<ExecutionKey>,
    /// Names from its start.
    pub names: StartNames,
    /// The workflow's name, if its definition has one.
    pub workflow: Option<String>,
    /// The definition's `version`.
    pub workflow_version: Option<String>,
    /// `sha256:…` of the definition.
    pub workflow_hash: String,
    /// The plan's hash.
    pub plan_hash: Hash,
    /// `pending`, `running`, `waiting_approval`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// `with_failures` for a completed one in which a failure was tolerated.
    pub outcome: Option<String>,
    /// The code of the error or the reason of the end, without a message.
    pub error: Option<String>,
    /// `manual`, `webhook`, `schedule`, `event`; `subworkflow` if another execution has started it and waits for it,
    /// `subworkflow_detached` if that does not wait.
    pub trigger_type: String,
    /// The kind of its initiator: `manual`, `webhook`, `schedule`.
    pub initiator_type: String,
    /// The initiator's user id.
    pub initiator_user_id: Option<String>,
    /// Unique among the executions of one [origin](ExecutionRow::origin).
    pub idempotency_key: Option<String>,
    /// The session that it is bound to. `None` in rows of older releases; see [`session`](ExecutionRow::session).
    pub session_id: Option<String>,
    /// The partition of its head and inbox.
    pub partition: u32,
    /// The number of times that it was assigned to a node, from 1.
    pub attempt_count: u32,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Milliseconds since 1970; `None` until it has ended.
    pub completed_at: Option<u64>,
    /// The usage of its agents and children; `None` until it has ended, and in rows of older releases.
    pub usage: Option<RowUsage>,
}

/// Names in the catalogue that an execution has from its start. None of them selects rows, except the rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartNames {
    /// The external name of the execution that has started it, waiting or not. `None` also in rows of older releases.
    pub parent_id: Option<String>,
    /// The workflow's name in the catalogue at the time of the start. `None` also in rows of older releases.
    pub workflow_name: Option<String>,
    /// The side of a rollout that chose its definition, as `ROLLOUT/candidate` or `ROLLOUT/stable`, of at most
    /// [`ROLLOUT_BYTES_MAX`] bytes.
    pub rollout: Option<String>,
}

/// Maximum length of the side of a rollout. Indexes of PostgreSQL are limited to a third of a page.
pub const ROLLOUT_BYTES_MAX: usize = 256;

/// The amounts that an ended execution has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowUsage {
    /// Tokens of requests to models and of their answers.
    pub tokens: u64,
    /// Billionths of the currency.
    pub cost: u64,
}

/// An execution of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutRow {
    /// See [`ExecutionRow::key`].
    pub execution: ExecutionKey,
    /// See [`ExecutionRow::parent`].
    pub parent: Option<ExecutionKey>,
    /// See [`StartNames::parent_id`].
    pub parent_id: Option<String>,
    /// See [`ExecutionRow::error`].
    pub error: Option<String>,
    /// See [`ExecutionRow::status`].
    pub status: String,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Milliseconds since 1970; `None` until it has ended.
    pub completed_at: Option<u64>,
    /// See [`ExecutionRow::usage`].
    pub usage: Option<RowUsage>,
}

/// The scope of idempotency keys: an organization, or none, and a workflow, by its id if it has one, else by its name.
/// Unnamed workflows without an id share one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin<'a> {
    /// See [`ExecutionRow::organization`].
    pub organization: Option<&'a str>,
    /// See [`ExecutionRow::workflow_id`].
    pub workflow_id: Option<&'a str>,
    /// See [`ExecutionRow::workflow`]. Ignored if there is an id.
    pub workflow: Option<&'a str>,
}

/// The definition of an execution, after a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowDefinition {
    /// See [`ExecutionRow::workflow_version`].
    pub workflow_version: Option<String>,
    /// See [`ExecutionRow::workflow_hash`].
    pub workflow_hash: String,
    /// See [`ExecutionRow::plan_hash`].
    pub plan_hash: Hash,
}

/// The changes of a commit to a row of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The new status.
    pub status: String,
    /// See [`ExecutionRow::outcome`].
    pub outcome: Option<String>,
    /// See [`ExecutionRow::error`].
    pub error: Option<String>,
    /// Set by the change that ends it, which closes the journal.
    pub completed_at: Option<u64>,
    /// See [`ExecutionRow::usage`].
    pub usage: Option<RowUsage>,
    /// The definition of a migrated execution; `None` leaves it as it is.
    pub definition: Option<RowDefinition>,
}

/// Selects rows of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// One of these statuses; empty for any.
    pub statuses: Vec<String>,
    /// Only executions of the workflow with this name.
    pub workflow: Option<String>,
    /// Only executions of this organization.
    pub organization: Option<String>,
    /// Only executions of the workflow with this id.
    pub workflow_id: Option<String>,
    /// The user id of the initiator.
    pub initiator: Option<String>,
    /// Excludes quarantined executions.
    pub excludes_quarantined: bool,
}

/// Selects the executions of a workflow that started with other definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherDefinitions<'a> {
    /// The organization of the workflow.
    pub organization: &'a str,
    /// See [`ExecutionRow::workflow_id`].
    pub workflow_id: &'a str,
    /// The hashes of the definitions to leave out, as in [`ExecutionRow::workflow_hash`].
    pub hashes: &'a [String],
}

impl OtherDefinitions<'_> {
    /// Returns the ranges of hashes between those that are left out, each above the first bound and below the second.
    pub(crate) fn ranges(&self) -> Vec<(Option<&str>, Option<&str>)> {
        let hashes: BTreeSet<&str> = self.hashes.iter().map(String::as_str).collect();
        let above = std::iter::once(None).chain(hashes.iter().copied().map(Some));
        above.zip(hashes.iter().copied().map(Some).chain([None])).collect()
    }
}

/// An open approval gate as it is listed. Its question and the permitted approvers are in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRow {
    /// The execution that waits at the gate.
    pub execution: ExecutionKey,
    /// The name of the step instance.
    pub step: String,
    /// The number of the gate within that, from 1.
    pub gate: u32,
    /// The organization of the execution.
    pub organization: Option<String>,
    /// In milliseconds since 1970.
    pub opened_at: u64,
    /// The time of its timeout, in milliseconds since 1970.
    pub expires_at: u64,
    /// The decision at its timeout: `approve`, `deny`, …
    pub on_timeout: String,
}

/// A quarantined execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// The quarantined execution.
    pub execution: ExecutionKey,
    /// Its external name, if it has a row in the catalogue.
    pub id: Option<String>,
    /// The organization that it belongs to, if any.
    pub organization: Option<String>,
    /// The reason of the quarantine.
    pub reason: String,
}

/// A release from quarantine.
#[derive(Debug, Clone)]
pub struct QuarantineRelease<'a> {
    /// The quarantined execution.
    pub execution: ExecutionKey,
    /// The execution that waits for it, if there is one.
    pub parent: Option<AwaitingParent<'a>>,
    /// The notes and audit entries of the release.
    pub audited: AuditedNotes<'a>,
}

/// An execution that waits for another one.
#[derive(Debug, Clone, Copy)]
pub struct AwaitingParent<'a> {
    /// Its key.
    pub execution: ExecutionKey,
    /// Its head at the time when it was seen to wait.
    pub head: Expected,
    /// The id of the message that notifies it of the other one's quarantine.
    pub notice: &'a str,
}

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The execution is released.
    Released,
    /// It is unknown, is not quarantined, or has ended; nothing was written.
    NotQuarantined,
    /// The waiting execution has advanced since its head was read; nothing was written.
    ParentMoved,
}

impl ExecutionRow {
    /// Returns the execution that has started it, by its external name; by its key in rows of releases that stored no
    /// names.
    pub fn started_by(&self) -> Option<String> {
        self.names.parent_id.clone().or_else(|| self.parent.map(|parent| parent.to_string()))
    }

    /// Returns the id of the session that it is bound to, also for rows of older releases.
    pub fn session(&self) -> String {
        self.session_id.clone().unwrap_or_else(|| self.key.session_id())
    }

    /// Returns the scope in which its idempotency key is unique.
    pub fn origin(&self) -> Origin<'_> {
        let Self { organization, workflow_id, workflow, .. } = self;
        Origin {
            organization: organization.as_deref(),
            workflow_id: workflow_id.as_deref(),
            workflow: workflow.as_deref(),
        }
    }
}

impl<'a> Origin<'a> {
    /// Makes the origin of a workflow's name without an organization.
    pub fn named(workflow: Option<&'a str>) -> Self {
        Self { workflow, ..Self::default() }
    }
}

/// Returns whether a status is final.
pub fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}
