//! The operations of a store as data, with compactly formatted answers.
//!
//! Executions are numbers, and all content is derived from them: an answer that shows only a sequence or a length has
//! checked the bytes behind it.

use std::sync::OnceLock;

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    note::{Note, Subject},
    receipt::{Receipt, Via},
    stored_frame::{Head, StoredFrame, StoredValue},
};

use super::catalogue::{self, Asked, CatalogueOp};
use crate::{
    AuditedNotes, AwaitingParent, Batch, ClusterView, Due, EnqueueRequest, ExecutionRow, Expected, Fence, Filter,
    GateRow, InboxEntry, InboxMessage, LateReceipt, NewReceipt, Node, Origin, OtherDefinitions, Part, PartOutcome,
    PartReceipts, QuarantineRelease, ReadLimit, Refusal, ReleaseOutcome, RemoteAttempt, RolloutRow, RowChange,
    RowDefinition, RowUsage, Signed, StartNames, Store, StoreError, StoredExecutorKey, StoredPlan, partition_of,
};

/// Executions of the tests are below this.
pub(crate) const EXECUTIONS: u8 = 6;

pub(crate) type Text = &'static str;

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Claim(u32),
    Partitions,
    Repartition(u32),
    PutMetadata(Text, Text),
    Metadata(Text),
    ClusterView,
    Heartbeat(Text, u64),
    /// A heartbeat of a node that takes no partitions.
    HeartbeatWithoutPartitions(Text, u64),
    Acquire(Text, Vec<u32>),
    ReleasePartitions(Text, Vec<(u32, u64)>),
    /// With running attempts of a step: the executions, and the numbers of the attempts.
    ReleaseWithRunning(Text, Vec<(u32, u64)>, Vec<(u8, u32)>),
    Remote(u8),
    StopRemote(u8, u32),
    EndRemote(Text, Vec<(u8, u32)>),
    Leave(Text),
    /// The epoch of all fences, and the parts.
    Commit(u64, Vec<Turn>),
    Head(u8),
    Frames(u8, u64, usize),
    /// From the first frame to the one that reaches so many bytes.
    FramesWithin(u8, usize),
    Due(u32, u64, usize),
    /// After an execution and its time.
    DueAfter(u32, u64, (u8, u64), usize),
    DueOf(Vec<u32>, usize),
    Enqueue(u8, Text),
    /// Computed with so many partitions.
    EnqueueAmong(u32, u8, Text),
    /// The same with audit entries: organization of the log, and action.
    EnqueueAudited(u32, u8, Text, Vec<(Text, Text)>),
    /// Partitions, rows, bytes.
    InboxOf(Vec<u32>, usize, usize),
    /// Partition, number of messages to skip, limit.
    Inbox(u32, usize, usize),
    Plan(u8),
    /// With the head after so many frames.
    SetWakeAt(u8, u64, Option<u64>),
    Quarantine(u8, Text),
    ReleaseQuarantined(u8),
    /// The parent, the number of its frames after the first when it was read, and the id of the message about the
    /// quarantine.
    ReleaseQuarantinedChild(u8, (u8, u64), Text),
    ForceEnd(u8),
    Quarantined(Option<Text>),
    Erase(u8, u64, usize),
    Notes(u8),
    LateReceipt(u8),
    /// From a sequence on, limit.
    ReceiptProofs(u8, u64, usize),
    /// The number of the key to start after, limit.
    ExecutorKeys(Option<u8>, usize),
    Row(u8),
    RowById(Text),
    RowByIdempotencyKey(Option<Text>, Text),
    /// Organization, workflow's id, workflow's name; key.
    RowByStart([Option<Text>; 3], Text),
    /// Statuses; workflow, organization, workflow's id, initiator; before, limit.
    RowsOf(Vec<Text>, [Option<Text>; 4], Option<u8>, usize),
    Rows(Vec<Text>, Option<Text>, Option<u8>, usize),
    /// An organization, and statuses, without quarantined executions.
    UnfinishedRows(Text, Vec<Text>),
    PendingOrganizations,
    /// An organization, statuses, and the bound of the count.
    Count(Text, Vec<Text>, usize),
    /// An organization, the id of a workflow, the definitions that are left out, and the bound of the count.
    CountOthers(Text, Text, Vec<Text>, usize),
    Rollout(Text, usize),
    /// Organization; execution, step and number of the gate to start after; limit.
    Gates(Option<Text>, Option<(u8, Text, u32)>, usize),
    ResourceRow(Text),
    /// Kind and organization, field and value.
    ItemNamed(Text, Text, Text),
    Items(Asked),
    Change(CatalogueOp),
    /// Organization, number to start after, limit.
    Audit(Text, u64, usize),
    /// Organization, and the bound in bytes.
    AuditWithin(Text, usize),
    /// A query, and the bound in bytes.
    ItemsWithin(Asked, usize),
}

/// A flaw of a turn that no store accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It was decided on a head with another hash.
    OtherHash,
    /// Its first frame does not follow the head.
    Gap,
}

/// A compact [`Part`]: one frame after `after`, in partition 0, with a row if it is the first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    pub(crate) execution: u8,
    pub(crate) partition: u32,
    pub(crate) after: Option<u64>,
    pub(crate) frames: u64,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) wake_at: Option<u64>,
    pub(crate) ends: bool,
    pub(crate) id: Option<Text>,
    /// The definition; in a later turn the one after a migration.
    pub(crate) workflow: Option<Text>,
    pub(crate) organization: Option<Text>,
    pub(crate) workflow_id: Option<Text>,
    /// `user` by default.
    pub(crate) initiator: Option<Text>,
    pub(crate) idempotency_key: Option<Text>,
    /// The lengths of the values beside each frame; `None` for an erased one.
    pub(crate) values: Vec<Option<usize>>,
    /// Ignored if it ends.
    pub(crate) is_pending: bool,
    pub(crate) plan: Option<u8>,
    pub(crate) consumed: Vec<Text>,
    pub(crate) messages: Vec<(u8, Text)>,
    /// The number of partitions for the messages; 0 stands for 1.
    pub(crate) partitions: u32,
    pub(crate) late: Vec<u64>,
    /// The number of the executor key that signs the late receipts, and one in each frame with an even sequence.
    pub(crate) signed_by: Option<u8>,
    /// Organization of the audit log, and action.
    pub(crate) audit: Vec<(Text, Text)>,
    /// Steps and numbers of gates.
    pub(crate) gates_closed: Vec<(Text, u32)>,
    pub(crate) gates_opened: Vec<(Text, u32)>,
}

pub(crate) fn opens(execution: u8) -> Turn {
    Turn { execution, frames: 1, wake_at: Some(0), ..Turn::default() }
}

pub(crate) fn continues(execution: u8, after: u64) -> Turn {
    Turn { after: Some(after), ..opens(execution) }
}

pub(crate) fn key(execution: u8) -> ExecutionKey {
    ExecutionKey::new(1_000 + u64::from(execution), [execution; 10])
}

fn number(key: ExecutionKey) -> u8 {
    (0..EXECUTIONS).find(|number| self::key(*number) == key).expect("an execution of the tests")
}

fn hash(execution: u8, sequence: u64) -> Hash {
    Hash::of_parts(&[&[execution], &sequence.to_be_bytes()])
}

fn head(execution: u8, sequence: u64) -> Head {
    Head { sequence, hash: hash(execution, sequence), seal: Hash::of(&hash(execution, sequence).0) }
}

fn value(length: Option<usize>) -> StoredValue {
    let salt = if length.is_some() { [5; 16] } else { [0; 16] };
    StoredValue { salt, body: length.map(|length| vec![length as u8; length]) }
}

fn plan(number: u8) -> StoredPlan {
    let bytes = vec![number; 100];
    StoredPlan { hash: Hash::of(&bytes), bytes: bytes.into() }
}

fn receipt(execution: u8, sequence: Option<u64>) -> Receipt {
    Receipt {
        execution: key(execution),
        workflow_hash: Hash::default(),
        plan_hash: plan(1).hash,
        step: "step".into(),
        attempt: 1,
        intent: None,
        effect: "bash".into(),
        status: "done",
        via: Via::Executor,
        at: 5,
        frame: sequence.map(|sequence| (sequence, hash(execution, sequence))),
    }
}

fn frame_proof(execution: u8, sequence: u64) -> Vec<u8> {
    format!("of {execution}/{sequence}\0").into_bytes()
}

fn late_proof(at: u64) -> Vec<u8> {
    format!("of the late one of {at}").into_bytes()
}

fn executor_key(number: u8) -> StoredExecutorKey {
    StoredExecutorKey { id: Hash([number; 32]), certificate: vec![number; 3].into() }
}

fn message(execution: u8, id: Text, partitions: u32) -> InboxMessage {
    let body = format!("to {execution}: {id}").into_bytes();
    let partition = partition_of(key(execution), partitions);
    InboxMessage { execution: key(execution), partition, id: id.into(), body, enqueued_at: 77 }
}

impl Turn {
    pub(crate) fn part(&self) -> Part {
        let expected = |sequence| Expected {
            sequence,
            hash: hash(self.execution + u8::from(self.flaw == Some(Flaw::OtherHash)), sequence),
        };
        let first = self.after.map_or(0, |after| after + 1) + u64::from(self.flaw == Some(Flaw::Gap));
        let frames = (first..first + self.frames).map(|sequence| StoredFrame {
            sequence,
            frame: hash(self.execution, sequence).0.to_vec(),
            values: self.values.iter().copied().map(value).collect(),
        });
        let frames: Vec<StoredFrame> = frames.collect();
        let receipts = self.receipts(&frames);
        let completed_at = self.ends.then_some(99);
        let status = match (self.ends, self.is_pending) {
            (true, _) => "completed",
            (false, true) => "pending",
            (false, false) => "running",
        };
        Part {
            execution: key(self.execution),
            partition: self.partition,
            expected: self.after.map(expected),
            frames,
            receipts,
            head: head(self.execution, (first + self.frames).saturating_sub(1)),
            wake_at: self.wake_at,
            row: self.after.is_none().then(|| self.row(status, completed_at)),
            change: self.after.map(|_| RowChange {
                status: status.into(),
                outcome: self.ends.then(|| "with_failures".into()),
                error: None,
                completed_at,
                usage: self.usage(),
                definition: self.workflow.map(|definition| RowDefinition {
                    workflow_version: Some("3".into()),
                    workflow_hash: Hash::of(definition.as_bytes()).prefixed(),
                    plan_hash: plan(2).hash,
                }),
            }),
            plans: self.plan.map(plan).into_iter().collect(),
            consumed: self.consumed.iter().map(|id| (*id).into()).collect(),
            messages: self.messages.iter().map(|(to, id)| message(*to, id, self.partitions.max(1))).collect(),
            audit: catalogue::entries(&self.audit),
            gates_closed: self.gates_closed.iter().map(|(step, gate)| ((*step).into(), *gate)).collect(),
            gates_opened: self.gates_opened.iter().map(|(step, gate)| self.gate(step, *gate)).collect(),
        }
    }

    fn receipts(&self, frames: &[StoredFrame]) -> PartReceipts {
        let late_receipt = |at: &u64| LateReceipt { at: *at, body: (at + 1).to_be_bytes().to_vec(), proof: None };
        let late: Vec<_> = self.late.iter().map(late_receipt).collect();
        let signed = frames.iter().map(|frame| frame.sequence).filter(|sequence| sequence.is_multiple_of(2));
        let of_frames = signed.map(|sequence| (receipt(self.execution, Some(sequence)), None));
        let of_late = (0..self.late.len()).map(|index| (receipt(self.execution, None), Some(index)));
        // A draft has both in the order of their arrival.
        let new: Vec<_> = of_late.chain(of_frames).map(|(receipt, late)| NewReceipt { receipt, late }).collect();
        let Some(key) = self.signed_by else { return PartReceipts { late, new, ..PartReceipts::default() } };
        let proof = |new: &NewReceipt| match new.receipt.frame {
            Some((sequence, _)) => frame_proof(self.execution, sequence),
            None => late_proof(self.late[new.late.expect("a receipt without a frame is late")]),
        };
        let signed = Signed { proofs: new.iter().map(proof).collect(), key: Some(executor_key(key)) };
        PartReceipts { late, new, account: None, signed: OnceLock::from(signed) }
    }

    fn gate(&self, step: Text, gate: u32) -> GateRow {
        GateRow {
            execution: key(self.execution),
            step: step.into(),
            gate,
            organization: self.organization.map(Into::into),
            opened_at: 55,
            expires_at: u64::MAX,
            on_timeout: format!("{step} or else"),
        }
    }

    fn row(&self, status: &str, completed_at: Option<u64>) -> ExecutionRow {
        ExecutionRow {
            key: key(self.execution),
            id: self.id.map_or_else(|| key(self.execution).to_string(), Into::into),
            workflow: self.workflow.map(Into::into),
            workflow_version: Some("2".into()),
            workflow_hash: Hash::of(self.workflow.unwrap_or_default().as_bytes()).prefixed(),
            plan_hash: plan(1).hash,
            status: status.into(),
            outcome: None,
            error: None,
            trigger_type: "webhook".into(),
            initiator_type: "schedule".into(),
            initiator_user_id: Some(self.initiator.unwrap_or("user").into()),
            idempotency_key: self.idempotency_key.map(Into::into),
            session_id: Some("session".into()),
            partition: self.partition,
            attempt_count: 1,
            started_at: 88,
            completed_at,
            organization: self.organization.map(Into::into),
            workflow_id: self.workflow_id.map(Into::into),
            trigger_id: self.organization.map(|organization| format!("trigger of {organization}")),
            parent: self.organization.map(|_| key(7)),
            names: self.names(),
            usage: self.usage(),
        }
    }

    fn names(&self) -> StartNames {
        let of = |what: &str| self.organization.map(|organization| format!("{what} of {organization}"));
        StartNames { parent_id: of("parent"), workflow_name: of("workflow"), rollout: of("rollout") }
    }

    /// The usage of an execution that ends. Its cost is the largest number that every store keeps.
    fn usage(&self) -> Option<RowUsage> {
        self.ends.then(|| RowUsage { tokens: u64::from(self.execution) + 5, cost: i64::MAX as u64 })
    }
}

/// Runs an operation, and formats the answer.
pub(crate) fn run(store: &dyn Store, op: &Op) -> String {
    answer(store, op).unwrap_or_else(|error| error.to_string())
}

fn answer(store: &dyn Store, op: &Op) -> Result<String, StoreError> {
    Ok(match op {
        Op::Claim(partition) => store.claim(*partition, "node")?.to_string(),
        Op::Partitions => store.partitions()?.to_string(),
        Op::Repartition(partitions) => store.repartition(*partitions).map(|()| "done".into())?,
        Op::PutMetadata(name, value) => store.put_metadata_if_absent(name, value)?,
        Op::Metadata(name) => store.metadata(name)?.unwrap_or_else(|| "none".into()),
        Op::ClusterView => draw_cluster_view(store.cluster_view()?),
        Op::Heartbeat(name, lease_ms) => heartbeat(store, node(name), *lease_ms)?,
        Op::HeartbeatWithoutPartitions(name, lease_ms) => {
            heartbeat(store, Node { accepts_partitions: false, ..node(name) }, *lease_ms)?
        }
        Op::Acquire(name, partitions) => draw_fences(&store.acquire(name, partitions)?),
        Op::ReleasePartitions(name, fences) => release_partitions(store, name, fences, &[])?,
        Op::ReleaseWithRunning(name, fences, running) => release_partitions(store, name, fences, running)?,
        Op::Remote(execution) => draw_attempts(store, *execution)?,
        Op::StopRemote(execution, number) => stop_remote(store, *execution, *number)?,
        Op::EndRemote(name, ended) => store.end_remote(name, &remote(ended)).map(|()| "done".into())?,
        Op::Leave(name) => store.leave(name).map(|()| "done".into())?,
        Op::Commit(epoch, turns) => commit(store, *epoch, turns),
        Op::Head(execution) => draw_head(store, *execution)?,
        Op::Frames(execution, from, limit) => draw_frames(store, *execution, *from, ReadLimit::of(*limit))?,
        Op::FramesWithin(execution, bytes) => {
            draw_frames(store, *execution, 0, ReadLimit { rows: usize::MAX, bytes: *bytes })?
        }
        Op::Due(partition, until_ms, limit) => draw_due(store.due(&[*partition], *until_ms, None, *limit)?),
        Op::DueAfter(partition, until_ms, (execution, wake_at), limit) => {
            let after = Some(Due { execution: key(*execution), wake_at: *wake_at });
            draw_due(store.due(&[*partition], *until_ms, after, *limit)?)
        }
        Op::DueOf(partitions, limit) => draw_due(store.due(partitions, u64::MAX, None, *limit)?),
        Op::Enqueue(execution, id) => enqueue(store, *execution, id, 1, &[])?,
        Op::EnqueueAmong(partitions, execution, id) => enqueue(store, *execution, id, *partitions, &[])?,
        Op::EnqueueAudited(partitions, execution, id, audited) => enqueue(store, *execution, id, *partitions, audited)?,
        Op::InboxOf(of, rows, bytes) => draw_messages(store, of, 0, ReadLimit { rows: *rows, bytes: *bytes })?,
        Op::Inbox(partition, skip, limit) => draw_inbox(store, *partition, *skip, *limit)?,
        Op::Plan(number) => draw_plan(store, *number)?,
        Op::SetWakeAt(execution, sequence, wake_at) => set_wake_at(store, *execution, *sequence, *wake_at)?,
        Op::Quarantine(execution, reason) => store.quarantine(key(*execution), reason).map(|()| "done".into())?,
        Op::ReleaseQuarantined(execution) => release(store, *execution, None)?,
        Op::ReleaseQuarantinedChild(execution, parent, notice) => release(store, *execution, Some((*parent, notice)))?,
        Op::ForceEnd(execution) => force_end(store, *execution)?,
        Op::Quarantined(organization) => draw_quarantined(store, *organization)?,
        Op::Erase(execution, sequence, index) => erase(store, *execution, *sequence, *index)?,
        Op::Notes(execution) => draw_notes(store, *execution)?,
        Op::LateReceipt(execution) => join(store.late_receipts(key(*execution))?.into_iter().map(draw_late)),
        Op::ReceiptProofs(execution, from, limit) => draw_proofs(store, *execution, *from, *limit)?,
        Op::ExecutorKeys(after, limit) => draw_executor_keys(store, *after, *limit)?,
        Op::Row(execution) => join(store.execution(key(*execution))?.into_iter().map(draw_row)),
        Op::RowById(id) => join(store.execution_by_id(id)?.into_iter().map(draw_row)),
        Op::RowByIdempotencyKey(workflow, key) => {
            join(store.execution_by_idempotency_key(&Origin::named(*workflow), key)?.into_iter().map(draw_row))
        }
        Op::RowByStart([organization, workflow_id, workflow], key) => {
            let of = Origin { organization: *organization, workflow_id: *workflow_id, workflow: *workflow };
            join(store.execution_by_idempotency_key(&of, key)?.into_iter().map(draw_row))
        }
        Op::Rows(statuses, workflow, before, limit) => {
            rows(store, &filter(statuses, &[*workflow, None, None, None]), *before, *limit)?
        }
        Op::RowsOf(statuses, words, before, limit) => rows(store, &filter(statuses, words), *before, *limit)?,
        Op::UnfinishedRows(organization, statuses) => unfinished_rows(store, organization, statuses)?,
        Op::Count(organization, statuses, max) => store.count_executions(organization, statuses, *max)?.to_string(),
        Op::CountOthers(of, id, definitions, max) => count_others(store, (of, id), definitions, *max)?,
        Op::Rollout(rollout, limit) => join(store.rollout_executions(rollout, *limit)?.into_iter().map(draw_rollout)),
        Op::PendingOrganizations => join(store.pending_organizations()?.into_iter()),
        Op::Gates(organization, after, limit) => gates(store, *organization, *after, *limit)?,
        of_catalogue => catalogue::answer(store, of_catalogue)?,
    })
}

fn count_others(
    store: &dyn Store,
    (organization, workflow_id): (Text, Text),
    definitions: &[Text],
    max: usize,
) -> Result<String, StoreError> {
    let hashes: Vec<String> = definitions.iter().map(|text| Hash::of(text.as_bytes()).prefixed()).collect();
    let of = OtherDefinitions { organization, workflow_id, hashes: &hashes };
    Ok(store.count_other_definitions(&of, max)?.to_string())
}

fn release_partitions(
    store: &dyn Store,
    node: &str,
    fences: &[(u32, u64)],
    running: &[(u8, u32)],
) -> Result<String, StoreError> {
    store.release(node, &self::fences(fences), &remote(running)).map(|()| "done".into())
}

fn force_end(store: &dyn Store, execution: u8) -> Result<String, StoreError> {
    Ok(store.force_end(&AuditedNotes::of(&[note(execution, Subject::Ended)]))?.to_string())
}

fn stop_remote(store: &dyn Store, execution: u8, number: u32) -> Result<String, StoreError> {
    store.stop_remote(&remote(&[(execution, number)])[0]).map(|()| "done".into())
}

fn draw_attempts(store: &dyn Store, execution: u8) -> Result<String, StoreError> {
    let remote = store.remote_attempts(key(execution))?;
    Ok(join(remote.into_iter().map(|(attempt, at)| format!("{} at {at}", draw_remote(&attempt)))))
}

fn draw_quarantined(store: &dyn Store, organization: Option<&str>) -> Result<String, StoreError> {
    Ok(join(store.quarantined(organization, None, 9)?.into_iter().map(|row| {
        assert_eq!(row.id, store.execution(row.execution).ok().flatten().map(|row| row.id));
        format!("{} ({})", row.execution.0[15], row.reason)
    })))
}

fn release(store: &dyn Store, execution: u8, parent: Option<((u8, u64), &str)>) -> Result<String, StoreError> {
    let parent = parent.map(|((parent, sequence), notice)| {
        let head = Expected { sequence, hash: hash(parent, sequence) };
        AwaitingParent { execution: key(parent), head, notice }
    });
    let release = QuarantineRelease { execution: key(execution), parent, audited: AuditedNotes::of(&[]) };
    Ok(match store.release_quarantine(&release)? {
        ReleaseOutcome::Released => "released",
        ReleaseOutcome::NotQuarantined => "not quarantined",
        ReleaseOutcome::ParentMoved => "the parent moved",
    }
    .into())
}

fn erase(store: &dyn Store, execution: u8, sequence: u64, index: usize) -> Result<String, StoreError> {
    let subject = Subject::Erased { sequence, place: index as u64 };
    let count = store.erase(key(execution), &AuditedNotes::of(&[note(execution, subject)]))?;
    Ok(match count {
        0 => "false".into(),
        1 => "true".into(),
        count => count.to_string(),
    })
}

fn draw_notes(store: &dyn Store, execution: u8) -> Result<String, StoreError> {
    Ok(join(store.notes(key(execution))?.into_iter().map(|kept| {
        assert_eq!(kept, note(execution, kept.subject));
        match kept.subject {
            Subject::Erased { sequence, place } => format!("{sequence}/{place}"),
            Subject::Ended => "ended".into(),
        }
    })))
}

fn draw_late(late: LateReceipt) -> String {
    if late.body.is_empty() {
        return format!("{} erased", late.at);
    }
    assert_eq!(late.body, (late.at + 1).to_be_bytes());
    match late.proof {
        None => late.at.to_string(),
        Some(proof) => {
            assert_eq!(proof, late_proof(late.at));
            format!("{} signed", late.at)
        }
    }
}

fn draw_plan(store: &dyn Store, number: u8) -> Result<String, StoreError> {
    Ok(match store.plan(plan(number).hash)? {
        Some(bytes) if bytes == plan(number).bytes => "kept".into(),
        other => format!("{other:?}"),
    })
}

fn draw_proofs(store: &dyn Store, execution: u8, from: u64, limit: usize) -> Result<String, StoreError> {
    Ok(join(store.receipt_proofs(key(execution), from, limit)?.into_iter().map(|(sequence, proof)| {
        assert_eq!(proof, frame_proof(execution, sequence));
        sequence.to_string()
    })))
}

fn draw_executor_keys(store: &dyn Store, after: Option<u8>, limit: usize) -> Result<String, StoreError> {
    let keys = store.executor_keys(after.map(|number| executor_key(number).id), limit)?;
    keys.iter().for_each(|key| assert_eq!(store.executor_key(key.id), Ok(Some(key.clone()))));
    Ok(join(keys.into_iter().map(|key| {
        let number = key.id.0[0];
        assert_eq!(key, executor_key(number));
        number.to_string()
    })))
}

fn set_wake_at(store: &dyn Store, execution: u8, sequence: u64, wake_at: Option<u64>) -> Result<String, StoreError> {
    let head = Expected { sequence, hash: hash(execution, sequence) };
    Ok(store.set_wake_at(key(execution), head, wake_at)?.to_string())
}

/// Makes a note about an execution, with fixed content.
pub(crate) fn note(execution: u8, subject: Subject) -> Note {
    Note::sealed(&[7; 32], key(execution), subject, 60, "ada", "because\0")
}

fn filter(statuses: &[Text], words: &[Option<Text>; 4]) -> Filter {
    let statuses = statuses.iter().map(|status| (*status).into()).collect();
    let [workflow, organization, workflow_id, initiator] = words.map(|word| word.map(Into::into));
    Filter { statuses, workflow, organization, workflow_id, initiator, excludes_quarantined: false }
}

fn unfinished_rows(store: &dyn Store, organization: Text, statuses: &[Text]) -> Result<String, StoreError> {
    let all = filter(statuses, &[None, Some(organization), None, None]);
    rows(store, &Filter { excludes_quarantined: true, ..all }, None, usize::from(EXECUTIONS))
}

fn rows(store: &dyn Store, filter: &Filter, before: Option<u8>, limit: usize) -> Result<String, StoreError> {
    let rows = store.executions(filter, before.map(key), limit)?;
    Ok(join(rows.into_iter().map(|row| number(row.key).to_string())))
}

fn enqueue(
    store: &dyn Store,
    execution: u8,
    id: Text,
    partitions: u32,
    audited: &[(Text, Text)],
) -> Result<String, StoreError> {
    let (message, audit) = (message(execution, id, partitions), catalogue::entries(audited));
    let request = EnqueueRequest {
        plans: &[plan(1)],
        audit: &audit,
        sealing: catalogue::SEALING,
        ..EnqueueRequest::of(&message, partitions)
    };
    let posted = store.enqueue(&request)?;
    Ok(if posted { "enqueued" } else { "not enqueued" }.into())
}

fn node(name: Text) -> Node {
    Node {
        name: name.into(),
        address: "here".into(),
        release: "1.2.3".into(),
        decide_version: 7,
        accepts_partitions: true,
    }
}

fn heartbeat(store: &dyn Store, node: Node, lease_ms: u64) -> Result<String, StoreError> {
    Ok(store.heartbeat(&node, lease_ms)?.map_or("lapsed".into(), draw_cluster_view))
}

fn fences(fences: &[(u32, u64)]) -> Vec<Fence> {
    fences.iter().map(|(partition, epoch)| Fence { partition: *partition, epoch: *epoch }).collect()
}

/// Makes attempts of a step whose name is longer than an index permits and contains a byte that some databases reject.
fn remote(attempts: &[(u8, u32)]) -> Vec<RemoteAttempt> {
    let attempt =
        |(execution, number): &(u8, u32)| RemoteAttempt { execution: key(*execution), step: step(), number: *number };
    attempts.iter().map(attempt).collect()
}

fn step() -> String {
    format!("step\0{}", "x".repeat(9_000))
}

fn draw_remote(attempt: &RemoteAttempt) -> String {
    assert_eq!(attempt.step, step());
    format!("{}#{}", number(attempt.execution), attempt.number)
}

fn draw_fences(fences: &[Fence]) -> String {
    join(fences.iter().map(|fence| format!("{}@{}", fence.partition, fence.epoch)))
}

fn draw_cluster_view(table: ClusterView) -> String {
    let held = draw_fences(&table.held);
    let held = if held.is_empty() { "nothing".into() } else { held };
    let living = join(table.nodes.into_iter().map(|found| {
        assert_eq!((&*found.address, &*found.release, found.decide_version), ("here", "1.2.3", 7));
        if found.accepts_partitions { found.name } else { format!("{}(takes nothing)", found.name) }
    }));
    let holders = join(table.holders.into_iter().map(|(partition, holder)| format!("{partition}:{holder}")));
    let holders = if holders.is_empty() { holders } else { format!("; {holders}") };
    let stop_requested = join(table.stop_requested.iter().map(draw_remote));
    let stop_requested =
        if stop_requested.is_empty() { stop_requested } else { format!("; to stop: {stop_requested}") };
    format!("of {}: holds {held}; living: {living}{holders}{stop_requested}", table.partitions)
}

fn commit(store: &dyn Store, epoch: u64, turns: &[Turn]) -> String {
    // Partition 9 never has a fence in a batch.
    let fences = (0..9).map(|partition| Fence { partition, epoch }).collect();
    match store.commit(&Batch { fences, parts: turns.iter().map(Turn::part).collect(), sealing: catalogue::SEALING }) {
        Err(error) => error.to_string(),
        Ok(answers) => join(answers.into_iter().map(|answer| match answer {
            PartOutcome::Durable => "durable".into(),
            PartOutcome::Refused(Refusal::Fence) => "fence".into(),
            PartOutcome::Refused(Refusal::Partition) => "partition".into(),
            PartOutcome::Refused(Refusal::Sequence) => "sequence".into(),
            PartOutcome::Refused(Refusal::Ended) => "ended".into(),
            PartOutcome::Refused(Refusal::IdTaken(other)) => format!("id-of-{}", number(other)),
            PartOutcome::Refused(Refusal::IdempotencyKeyTaken(other)) => format!("key-of-{}", number(other)),
        })),
    }
}

fn draw_head(store: &dyn Store, execution: u8) -> Result<String, StoreError> {
    let Some(row) = store.head(key(execution))? else { return Ok("none".into()) };
    assert_eq!(row.head, head(execution, row.head.sequence));
    let wake = row.wake_at.map(|at| format!(" wake {at}")).unwrap_or_default();
    let ended = if row.ended { " ended" } else { "" };
    let quarantined = row.quarantined.map(|reason| format!(" quarantined: {reason}")).unwrap_or_default();
    Ok(format!("{} in {}{wake}{ended}{quarantined}", row.head.sequence, row.partition))
}

fn draw_frames(store: &dyn Store, execution: u8, from: u64, bound: ReadLimit) -> Result<String, StoreError> {
    let frames = store.frames(key(execution), from, bound)?;
    Ok(join(frames.into_iter().map(|frame| draw_frame(execution, frame))))
}

fn draw_frame(execution: u8, frame: StoredFrame) -> String {
    assert_eq!(frame.frame, hash(execution, frame.sequence).0);
    let values = frame.values.into_iter().map(|found| {
        let length = found.body.as_ref().map(Vec::len);
        assert_eq!(found, value(length), "a body and a salt are there together, as they were written, or not at all");
        length.map_or("erased".into(), |length| length.to_string())
    });
    format!("{}[{}]", frame.sequence, values.collect::<Vec<_>>().join(" "))
}

fn gates(
    store: &dyn Store,
    organization: Option<Text>,
    after: Option<(u8, Text, u32)>,
    limit: usize,
) -> Result<String, StoreError> {
    let after = after.map(|(execution, step, gate)| (key(execution), step, gate));
    Ok(join(store.pending_approvals(organization, after, limit)?.into_iter().map(draw_gate)))
}

fn draw_gate(row: GateRow) -> String {
    let GateRow { execution, step, gate, organization, opened_at, expires_at, on_timeout } = row;
    assert!(expires_at >= i64::MAX as u64 && opened_at == 55 && on_timeout == format!("{step} or else"));
    let of = organization.map(|organization| format!(" of {organization}")).unwrap_or_default();
    format!("{}:{step}#{gate}{of}", number(execution))
}

fn draw_inbox(store: &dyn Store, partition: u32, skip: usize, limit: usize) -> Result<String, StoreError> {
    let all = store.inbox(&[partition], 0, ReadLimit::of(usize::MAX))?;
    assert!(all.is_sorted_by(|a, b| a.number < b.number));
    let after = skip.checked_sub(1).and_then(|last| all.get(last)).map_or(0, |arrived| arrived.number);
    draw_messages(store, &[partition], after, ReadLimit::of(limit))
}

fn draw_messages(store: &dyn Store, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<String, StoreError> {
    Ok(join(store.inbox(partitions, after, bound)?.into_iter().map(draw_arrived)))
}

fn draw_arrived(arrived: InboxEntry) -> String {
    let InboxMessage { execution, id, body, enqueued_at, .. } = arrived.message;
    let to = number(execution);
    assert_eq!((body, enqueued_at), (format!("to {to}: {id}").into_bytes(), 77));
    format!("{to}:{id}")
}

fn draw_row(row: ExecutionRow) -> String {
    let id = row.id.clone();
    let named = ExecutionRow { id: String::new(), ..row.clone() };
    let turn = Turn { execution: number(row.key), partition: row.partition, ..Turn::default() };
    let mut model = turn.row(&row.status, row.completed_at);
    model.id = String::new();
    (model.workflow, model.idempotency_key, model.outcome) = (row.workflow, row.idempotency_key, row.outcome.clone());
    model.initiator_user_id = row.initiator_user_id;
    model.parent = row.organization.as_ref().map(|_| key(7));
    let of = |what: &str| row.organization.as_ref().map(|organization| format!("{what} of {organization}"));
    (model.names.parent_id, model.names.workflow_name) = (of("parent"), of("workflow"));
    model.names.rollout = of("rollout");
    let is_ended = row.completed_at.is_some() && row.status == "completed";
    model.usage = Turn { execution: number(row.key), ends: is_ended, ..Turn::default() }.usage();
    model.trigger_id = row.organization.as_ref().map(|organization| format!("trigger of {organization}"));
    model.workflow_hash.clone_from(&row.workflow_hash);
    let has_migrated = row.workflow_version.as_deref() == Some("3");
    if has_migrated {
        (model.workflow_version, model.plan_hash) = (row.workflow_version.clone(), plan(2).hash);
    }
    (model.organization, model.workflow_id) = (row.organization.clone(), row.workflow_id.clone());
    assert_eq!(named, model);
    let of = [row.organization, row.workflow_id].into_iter().flatten().map(|word| format!(" {word}"));
    let of: String = of.chain(has_migrated.then(|| " migrated".into())).collect();
    let id = if id == row.key.to_string() { "" } else { &id };
    format!("{}:{id}:{}:{}{of}", number(row.key), row.status, row.outcome.unwrap_or_default())
}

fn draw_rollout(row: RolloutRow) -> String {
    let RolloutRow { execution, parent, parent_id, error: _, status, started_at, completed_at, usage } = row;
    let parent_of = parent_id.as_deref().and_then(|id| id.strip_prefix("parent of "));
    assert!(number(execution) < EXECUTIONS && parent == Some(key(7)) && parent_of.is_some());
    let tokens = usage.map(|usage| format!(" {} tokens", usage.tokens)).unwrap_or_default();
    assert!(started_at == 88 && usage.is_none_or(|usage| usage.cost == i64::MAX as u64));
    format!("{status}@{}{tokens}", completed_at.unwrap_or_default())
}

pub(super) fn join(pictures: impl Iterator<Item = String>) -> String {
    pictures.collect::<Vec<_>>().join(" ")
}

fn draw_due(due: Vec<Due>) -> String {
    join(due.into_iter().map(|due| format!("{}@{}", number(due.execution), due.wake_at)))
}

/// Formats the whole state of a store.
pub(crate) fn look(store: &dyn Store) -> String {
    let mut all = Vec::new();
    for execution in 0..EXECUTIONS {
        all.extend([
            Op::Head(execution),
            Op::Frames(execution, 0, 99),
            Op::LateReceipt(execution),
            Op::ReceiptProofs(execution, 0, 99),
            Op::Row(execution),
            Op::Remote(execution),
        ]);
    }
    for partition in [0, 1, 9] {
        all.extend([Op::Due(partition, u64::MAX, 99), Op::Inbox(partition, 0, 99)]);
    }
    all.extend([Op::Partitions, Op::ClusterView, Op::Metadata("p"), Op::Metadata("q")]);
    all.extend([Op::Gates(None, None, 99), Op::Gates(Some("o"), None, 99)]);
    all.push(Op::ExecutorKeys(None, 99));
    all.push(Op::PendingOrganizations);
    all.push(Op::Count("o", vec!["pending", "running"], 3));
    all.push(Op::CountOthers("o", "f", vec!["a"], 3));
    all.push(Op::Rollout("rollout of o", 3));
    all.extend([Op::Plan(1), Op::Plan(2), Op::Rows(vec![], None, None, 99)]);
    all.extend(catalogue::look());
    all.iter().map(|op| format!("{op:?} -> {}\n", run(store, op))).collect()
}
