//! The columns that the store keeps beside a journal: wake-up time, end, partition, catalogue row and open approvals.
//! The seal of the head does not cover them. All of them follow from the journal, so they are compared with it. This
//! module only reports differences. The sweep of the driver corrects wake-up times.

use std::{collections::BTreeSet, fmt};

use mainspring_kernel::{
    input::{NAME_IN_TRIGGER, ORGANIZATION_IN_TRIGGER, PARENT_IN_TRIGGER, TRIGGER_IN_TRIGGER, WORKFLOW_IN_TRIGGER},
    key::ExecutionKey,
    state::State,
    stored_frame::Head,
    value::Value,
};
use mainspring_store::{ExecutionRow, GateRow, HeadRow, Store, StoreError, partition_of};

use crate::{
    derived_columns::{Summary, open_gates},
    start_request::{is_child, rollout_side},
};

/// Approvals per read.
const GATES_AT_A_TIME: usize = 256;

/// A column that contradicts the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The column, as `relation.column`.
    pub column: &'static str,
    /// The value in the store.
    pub stored: String,
    /// The value that follows from the journal.
    pub derived: String,
}

impl Difference {
    /// The advice for the operator.
    pub fn remedy(&self) -> &'static str {
        match self.column {
            WAKE_AT => {
                "a running engine sets it again within some hours, and `mainspring resume ID` corrects it at once where none runs"
            }
            _ => {
                "the store was changed by another program than the engine: find the cause, and compare with the latest backup (`mainspring backup`; of PostgreSQL, `pg_dump`)"
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, stored, derived } = self;
        write!(out, "{column} is {stored} in the store and {derived} by the journal; {}", self.remedy())
    }
}

/// The wake-up time of a head.
const WAKE_AT: &str = "heads.wake_at";

/// The columns of one execution.
#[derive(Debug)]
pub(crate) struct Columns {
    head: HeadRow,
    row: Option<ExecutionRow>,
    gates: Vec<GateRow>,
    partitions: u32,
}

impl Columns {
    /// Reads the columns. `None` if the execution has changed in the meantime, or has no head.
    pub(crate) fn read(store: &dyn Store, head: &Head, execution: ExecutionKey) -> Result<Option<Self>, StoreError> {
        let (row, gates) = (store.execution(execution)?, gates_of(store, execution)?);
        let partitions = store.partitions()?;
        let now = store.head(execution)?.filter(|now| now.head == *head);
        Ok(now.map(|head| Self { head, row, gates, partitions }))
    }

    /// Returns the columns that contradict a state of the same head.
    pub(crate) fn differences(&self, state: &State) -> Vec<Difference> {
        let mut found = Found(Vec::new());
        let (summary, partition) = (Summary::of(state), partition_of(state.key, self.partitions));
        found.compare(WAKE_AT, &time(self.head.wake_at), &time(summary.wake_at));
        found.compare("heads.ended", &self.head.ended, &state.end.ended_at.is_some());
        found.compare("heads.partition", &self.head.partition, &partition);
        match &self.row {
            Some(row) => found.compare_row(row, state, &summary, partition),
            None => found.0.push(Difference {
                column: "executions",
                stored: "missing".into(),
                derived: "a row of this execution".into(),
            }),
        }
        let said = |rows: &[GateRow]| rows.iter().map(name_of_gate).collect::<BTreeSet<String>>();
        let (stored, derived) = (said(&self.gates), said(&open_gates(state)));
        let listed = |names: &BTreeSet<String>, others: &BTreeSet<String>| {
            let only: Vec<_> = names.difference(others).cloned().collect();
            if only.is_empty() { "nothing more".to_string() } else { only.join(", ") }
        };
        if stored != derived {
            let (stored, derived) = (listed(&stored, &derived), listed(&derived, &stored));
            found.0.push(Difference { column: "pending_approvals", stored, derived });
        }
        found.0
    }
}

struct Found(Vec<Difference>);

impl Found {
    fn compare<T: PartialEq + fmt::Debug>(&mut self, column: &'static str, stored: &T, derived: &T) {
        if stored != derived {
            self.0.push(Difference { column, stored: format!("{stored:?}"), derived: format!("{derived:?}") });
        }
    }

    fn compare_row(&mut self, row: &ExecutionRow, state: &State, summary: &Summary, partition: u32) {
        self.compare("executions.partition", &row.partition, &partition);
        self.compare("executions.status", &row.status.as_str(), &summary.status.name());
        self.compare("executions.outcome", &row.outcome, &summary.outcome);
        self.compare("executions.error", &row.error, &summary.error);
        self.compare("executions.completed_at", &time(row.completed_at), &time(summary.completed_at));
        let Some(start) = &state.start else { return };
        self.compare("executions.id", &row.id, &start.execution_id);
        self.compare("executions.workflow_hash", &row.workflow_hash, &start.workflow_hash.prefixed());
        self.compare("executions.initiator_user_id", &row.initiator_user_id.as_deref(), &Some(start.by.as_str()));
        self.compare("executions.attempt_count", &row.attempt_count, &start.attempt);
        // Older releases did not store it.
        if row.session_id.is_some() {
            self.compare("executions.session_id", &row.session_id, &Some(row.key.session_id()));
        }
        // Other columns follow from the trigger, which can be erased.
        if state.journal.has_erased {
            return;
        }
        let said = |key| start.trigger.get(key).and_then(Value::as_text);
        self.compare("executions.organization", &row.organization.as_deref(), &said(ORGANIZATION_IN_TRIGGER));
        self.compare("executions.workflow_id", &row.workflow_id.as_deref(), &said(WORKFLOW_IN_TRIGGER));
        self.compare("executions.trigger_id", &row.trigger_id.as_deref(), &said(TRIGGER_IN_TRIGGER));
        self.compare("executions.workflow", &row.workflow.as_deref(), &state.plan.name.as_deref());
        self.compare("executions.workflow_version", &row.workflow_version.as_deref(), &state.workflow_version());
        // Older releases stored neither of the two.
        let names = &row.names;
        if names.workflow_name.is_some() {
            self.compare("executions.workflow_name", &names.workflow_name.as_deref(), &said(NAME_IN_TRIGGER));
        }
        if names.parent_id.is_some() {
            self.compare("executions.parent_id", &names.parent_id.as_deref(), &said(PARENT_IN_TRIGGER));
        }
        let rollout = rollout_side(&start.trigger, state.lineage.depth > 0);
        self.compare("executions.rollout", &names.rollout, &rollout);
        // Older releases stored no usage.
        if row.usage.is_some() {
            self.compare("executions.usage", &row.usage, &summary.usage);
        }
        self.compare("executions.idempotency_key", &row.idempotency_key.as_deref(), &said("idempotencyKey"));
        // Older releases did not distinguish the two kinds of children.
        let is_same_kind = is_child(&row.trigger_type) && state.lineage.depth > 0;
        if !is_same_kind {
            let trigger_type = said("type").unwrap_or("manual");
            self.compare("executions.trigger_type", &row.trigger_type.as_str(), &trigger_type);
        }
    }
}

/// Stores limit times to the largest signed number.
fn time(at: Option<u64>) -> Option<u64> {
    at.map(|at| at.min(i64::MAX as u64))
}

fn name_of_gate(gate: &GateRow) -> String {
    let GateRow { step, gate, organization, expires_at, on_timeout, .. } = gate;
    let whose = organization.as_deref().map(|organization| format!(" of {organization}")).unwrap_or_default();
    format!("`{step}` {gate}{whose} until {} ({on_timeout})", (*expires_at).min(i64::MAX as u64))
}

fn gates_of(store: &dyn Store, execution: ExecutionKey) -> Result<Vec<GateRow>, StoreError> {
    let mut found: Vec<GateRow> = Vec::new();
    loop {
        let after = found.last().map_or(("", 0), |gate| (gate.step.as_str(), gate.gate));
        let page = store.pending_approvals(None, Some((execution, after.0, after.1)), GATES_AT_A_TIME)?;
        // The gates of older executions follow those of this one.
        let is_last = page.len() < GATES_AT_A_TIME || page.last().is_some_and(|gate| gate.execution != execution);
        found.extend(page.into_iter().filter(|gate| gate.execution == execution));
        if is_last {
            return Ok(found);
        }
    }
}
