//! The verbs of a store, and the words they take. Each verb says what is durable when it returns.

use std::{collections::BTreeSet, fmt, sync::Arc};

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    note::Note,
    stored::{Head, StoredFrame},
};

use crate::{AuditEntry, Catalogue, Release, ReleaseAnswer};

/// A payload body above this size lies once in the blob table, by its hash, however many frames name it.
pub const BLOB_BYTES_MIN: usize = 32 * 1024;

/// Bytes that are read at a time, where nobody asks for less: what one turn of an execution may write, and two of the
/// largest values and definitions. Whoever reads more of them reads again behind what came.
pub const READ_BYTES: usize = 8 * 1024 * 1024;

/// What keeps journals and the catalogue. Blocking: callers decide on which thread they wait.
pub trait Store: Send + Sync {
    /// Makes `holder` the owner of a partition and returns the new epoch, larger than every earlier one of that
    /// partition. Durable: a commit with an older epoch is refused from now on.
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError>;

    /// Over how many partitions the store spreads its executions; see [`partition_of`].
    fn partitions(&self) -> Result<u32, StoreError>;

    /// Spreads all executions and letters over another number of partitions, at least 1. Durable, all of it or nothing.
    /// Every partition is nobody's afterwards, with a larger epoch than before: whoever held one is refused from now on.
    /// Nodes that live now believe for a while that they hold what they held: until the last of their words is over,
    /// nothing can be [taken](Self::take).
    fn repartition(&self, partitions: u32) -> Result<(), StoreError>;

    /// Keeps a word about the store as a whole unless one of this name is kept already; the one that is kept. Durable.
    fn pin(&self, name: &str, value: &str) -> Result<String, StoreError>;

    /// The word of a name, if one is kept.
    fn pinned(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// The store as its nodes see it, for somebody who is none: nothing is held by the one who asks.
    fn table(&self) -> Result<Table, StoreError>;

    /// A node is alive, and is believed to be for `lease_ms` more milliseconds of the store's clock. All that it holds
    /// goes with that. Durable. `None` if it was silent for longer than it had said: its name is used up for ever, and
    /// what it held may be another's.
    fn beat(&self, node: &Node, lease_ms: u64) -> Result<Option<Table>, StoreError>;

    /// Makes a living node the owner of those of the partitions that no living node holds, each with a new epoch as
    /// [`claim`](Self::claim) gives one. Durable. Nothing for a node that is not alive.
    fn take(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError>;

    /// Partitions that a node held under these fences are nobody's. Durable. Others are left alone.
    ///
    /// `running` are attempts of their executions that go on at the node nevertheless. They are its own until it
    /// [ends](Self::end_remote) them, or is not alive any more. All of it or nothing.
    fn give_up(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError>;

    /// The attempts of an execution that go on at living nodes which gave it up, with the names of those.
    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError>;

    /// Asks the node at which an attempt goes on to stop it: that is in its [table](Table::to_stop) from now on. Durable.
    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError>;

    /// Attempts do not go on at a node any more, and what they brought back is in the inbox. Durable.
    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError>;

    /// A node is not alive any more, by its own word: all that it held may be taken at once. Durable.
    fn leave(&self, node: &str) -> Result<(), StoreError>;

    /// Whether several processes may work on the store at a time, each as a node. A process that has its store to itself
    /// [claims](Self::claim) what it needs, and asks nobody.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether this process has brought the store from a format whose inbox messages had no seals.
    fn is_of_unsealed_format(&self) -> bool {
        false
    }

    /// Whether to read one thing takes microseconds now, and waits for nobody: then it is not worth a thread of its own.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// The things of a server and its audit log, in the same store.
    fn catalogue(&self) -> &dyn Catalogue;

    /// Tells whoever listens that letters wait in these partitions, if the store has a way to tell: a hint that may be
    /// lost, come late or come for nothing.
    fn hint(&self, _partitions: &[u32]) {}

    /// Calls `heard` with the partitions of each hint from now on, of this process or of another, until it is dropped
    /// with the store.
    fn listen(&self, _heard: Heard) {}

    /// The number of the newest durable frame, where frames are numbered across executions in the order of their commits: in
    /// every copy that was made before that commit it is lower. `None` where they are not, and 0 before the first frame.
    fn newest_frame(&self) -> Option<u64> {
        None
    }

    /// Whether the store's files are still on the disk under their names, where it has files. Verbs that write ask by
    /// themselves before they acknowledge; this is for whoever has nothing to write. After the first error every verb that
    /// writes is refused.
    fn check_files(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Makes a batch true, in one transaction. When this returns `Ok`, every part that is answered [`Answer::Durable`]
    /// is on disk with all it contains, and of every refused part nothing is. Answers come in the order of the parts.
    fn commit(&self, batch: &Batch) -> Result<Vec<Answer>, CommitError>;

    /// The head of a journal and the reason if the execution is quarantined; `None` for an unknown execution.
    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError>;

    /// Frames from a sequence on, in order, with their values. What cannot be read back in its stored form (not in the
    /// sense of the kernel, only the store's own packing) is an error that names the frame.
    ///
    /// Bytes are those of frames and values as the store keeps them, so that two stores may end with different frames. The
    /// end of the journal is where nothing comes, or where its [head](Self::head) says.
    fn frames(&self, execution: ExecutionKey, from: u64, most: Most) -> Result<Vec<StoredFrame>, StoreError>;

    /// Executions of some partitions that must be looked at by `until_ms`, by their time and then by their key, at most
    /// `limit`, beginning behind `after`. One with `wake_at` 0 has open work. Quarantined ones are left out.
    ///
    /// The last one of a page is the `after` of the next. Whoever leaves some of a page alone, because they are not its
    /// own or because they are in its memory, finds the others behind them nevertheless.
    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError>;

    /// Puts a letter into an execution's inbox, with what belongs to it. Durable. A second letter of the same execution and
    /// id is the same letter and changes nothing, also after the first was consumed if the store still knows of it (it
    /// need not). False, and nothing is written, if the store spreads over another number of partitions by now.
    fn post(&self, posting: &Posting<'_>) -> Result<bool, StoreError>;

    /// Letters that wait in some partitions, in order of arrival, beginning after `after` (an arrival number; 0 for the
    /// first). Bytes are those of bodies and ids.
    ///
    /// Where several processes write at the same time, a letter may come to light after one with a larger number did:
    /// look from the beginning every now and then.
    fn inbox(&self, partitions: &[u32], after: u64, most: Most) -> Result<Vec<Arrived>, StoreError>;

    /// A plan by its hash.
    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Says when an execution is to be looked at, while its head is this one and it has not ended. Durable. False, and
    /// nothing is written, where it has gone on, has ended or is unknown. Only for a column that was changed by others: each
    /// commit writes it as well.
    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError>;

    /// Sets an execution aside with the reason, so that nothing loads it again. Durable. Nothing of it is changed.
    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError>;

    /// Takes an execution out of quarantine, and the message out of the inbox by which its parent was told of that. Durable,
    /// with the audit entries, all of it or nothing.
    fn release(&self, release: &Release<'_>) -> Result<ReleaseAnswer, StoreError>;

    /// Ends an execution that is quarantined, whatever its journal says: its row is `failed` with [`FORCED_END`], its gates
    /// and the letters in its inbox are gone, and the note of the end is kept. The journal is not changed. Durable, all of
    /// it or nothing. False, and nothing is written, if the execution is unknown, not quarantined, or has ended.
    fn force_end(&self, noted: &Noted<'_>) -> Result<bool, StoreError>;

    /// Quarantined executions that were not [ended](Self::force_end), of one organization or of all, by their keys, at
    /// most `limit`, beginning behind `after`.
    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError>;

    /// Removes the body and the salt of payloads of one execution for good, each with its note, and the bodies of all
    /// receipts that came too late for the execution, also where there is no note. Returns how many payloads and receipts it
    /// has removed: those that are not there or were erased before do not count, and get no note. Durable, all of it or
    /// nothing; the audit entries only if something was removed.
    fn erase(&self, execution: ExecutionKey, noted: &Noted<'_>) -> Result<usize, StoreError>;

    /// The notes beside an execution's journal, those of erasures first, by frame and place.
    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError>;

    /// What was kept beside a journal because it came too late, in order of arrival.
    fn late(&self, execution: ExecutionKey) -> Result<Vec<Late>, StoreError>;

    /// The catalogue's row of an execution.
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError>;

    /// The execution that carries a name from outside.
    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError>;

    /// The execution that an idempotency key started among those of one origin.
    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError>;

    /// Gates that wait for people, of one organisation or of all executions: those of the newest execution first, of one by
    /// their steps' names and their numbers, at most `limit`, beginning behind `after`.
    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError>;

    /// The organisations of which an execution is `pending` and not quarantined. What that costs grows with their number,
    /// and not with how much of each is pending.
    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError>;

    /// Executions of an organization that have one of these statuses and are not quarantined, counted up to `most`.
    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError>;

    /// Rows of the catalogue, the newest key first, at most `limit`, beginning below `before`.
    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError>;
}

/// How much is read at a time: rows, as long as there are fewer than `rows` and those before have fewer than `bytes`
/// together. So the first always comes, however large it is, and nobody has to hold much more than `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// At most so many.
    pub rows: usize,
    /// The row that reaches so many is the last; at least 1.
    pub bytes: usize,
}

impl Most {
    /// So many rows, of [`READ_BYTES`].
    pub const fn of(rows: usize) -> Self {
        Self { rows, bytes: READ_BYTES }
    }

    /// Whether this is as much as was asked for: only then may there be more.
    pub const fn is_met(self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows || rows > 0 && bytes >= self.bytes
    }

    /// Whether these letters are as much as was asked for: only then may there be more.
    pub fn is_met_by(self, letters: &[Arrived]) -> bool {
        self.is_met(letters.len(), letters.iter().map(Arrived::byte_count).sum())
    }

    /// The rows that are read of those there are.
    pub(crate) fn take<T>(self, rows: impl Iterator<Item = T>, byte_count: impl Fn(&T) -> usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for row in rows {
            if self.is_met(taken.len(), bytes) {
                break;
            }
            bytes += byte_count(&row);
            taken.push(row);
        }
        taken
    }
}

impl Default for Most {
    fn default() -> Self {
        Self::of(0)
    }
}

/// Who is called with the partitions of a hint.
pub type Heard = Box<dyn Fn(&[u32]) + Send + Sync>;

/// The partition of an execution in a store that spreads over so many: by the last eight bytes of its key, which are
/// random or a hash in every key.
pub fn partition_of(execution: ExecutionKey, partitions: u32) -> u32 {
    let [.., a, b, c, d, e, f, g, h] = execution.0;
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]) % u64::from(partitions.max(1))) as u32
}

/// What one commit makes true. No two parts are of one execution.
///
/// Letters are taken out of inboxes first, those of all parts, and then new ones are put in.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The leases under which it is written: every part's partition must be here.
    pub fences: Vec<Fence>,
    /// One part for each execution.
    pub parts: Vec<Part>,
    /// What the heads of audit logs are sealed with, where parts have entries.
    pub sealing: [u8; 32],
}

/// What is put into an inbox together.
#[derive(Debug, Clone, Copy)]
pub struct Posting<'a> {
    /// The letter.
    pub letter: &'a Letter,
    /// The plans that it needs, but for those that the store certainly has.
    pub plans: &'a [StoredPlan],
    /// Over how many partitions the letter's was reckoned.
    pub partitions: u32,
    /// What the audit log says of it.
    pub audit: &'a [AuditEntry],
    /// What the heads of audit logs are sealed with.
    pub sealing: [u8; 32],
}

impl<'a> Posting<'a> {
    /// A letter alone.
    pub fn of(letter: &'a Letter, partitions: u32) -> Self {
        Self { letter, plans: &[], partitions, audit: &[], sealing: [0; 32] }
    }
}

/// Notes to keep, with what the audit log says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted<'a> {
    /// The notes, all of one execution.
    pub notes: &'a [Note],
    /// What the audit log says.
    pub audit: &'a [AuditEntry],
    /// What the heads of audit logs are sealed with.
    pub sealing: [u8; 32],
}

impl<'a> Noted<'a> {
    /// Notes without an entry in an audit log.
    pub fn of(notes: &'a [Note]) -> Self {
        Self { notes, audit: &[], sealing: [0; 32] }
    }
}

/// The error of an execution that an operator has ended in quarantine.
pub const FORCED_END: &str = "ended_by_operator";

/// An execution that is quarantined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// The execution.
    pub execution: ExecutionKey,
    /// Its name outside, if it has a row in the catalogue.
    pub id: Option<String>,
    /// Its organization.
    pub organization: Option<String>,
    /// The reason of the quarantine.
    pub reason: String,
}

/// The proof of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The partition.
    pub partition: u32,
    /// The epoch that [`Store::claim`] or [`Store::take`] gave.
    pub epoch: u64,
}

/// A process that works on a store beside others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Names one life of one process: never used again by another, or by the same after it was silent too long.
    pub name: String,
    /// Where it runs, for people.
    pub place: String,
    /// The release that it is, for people.
    pub release: String,
    /// The newest version of decide that it knows.
    pub decide_version: u32,
    /// Whether it takes partitions: false while its clock is wrong or it is about to leave. The others share the partitions
    /// among themselves then. A store that is not [shared](Store::is_shared) need not keep it and says that each node does.
    pub takes: bool,
}

/// An attempt that goes on at a node which has given up its execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteAttempt {
    /// The execution.
    pub execution: ExecutionKey,
    /// The step instance, by name.
    pub step: String,
    /// The attempt's number.
    pub number: u32,
}

/// A store as its nodes see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Over how many partitions it spreads.
    pub partitions: u32,
    /// What the asking node holds, by partition.
    pub held: Vec<Fence>,
    /// The partitions that any living node holds, with its name, by partition.
    pub holders: Vec<(u32, String)>,
    /// The living nodes, by name.
    pub nodes: Vec<Node>,
    /// Attempts that go on at the asking node for others, and that those want stopped.
    pub to_stop: Vec<RemoteAttempt>,
    /// The store's clock when it answered, in milliseconds since 1970.
    pub clock_ms: u64,
}

/// One execution's share of a batch.
#[derive(Debug, Clone)]
pub struct Part {
    /// The execution.
    pub execution: ExecutionKey,
    /// Its partition.
    pub partition: u32,
    /// The head that this part continues; `None` for a new execution.
    pub expected: Option<Expected>,
    /// What follows the head, in sequence. May be empty: then only letters and late receipts change.
    pub frames: Vec<StoredFrame>,
    /// The head after the frames. Not looked at where there are none.
    pub head: Head,
    /// When to look at the execution again: 0 if it has open work, a time for its next durable timer, `None` if only
    /// something from outside can move it. Not looked at where there are no frames.
    pub wake_at: Option<u64>,
    /// The catalogue's row, for a new execution.
    pub row: Option<ExecutionRow>,
    /// What changes in the row of an older one.
    pub change: Option<RowChange>,
    /// The plans that it and what it starts run, but for those that the caller knows the store has.
    pub plans: Vec<StoredPlan>,
    /// Letters of this execution that were taken in, by id.
    pub consumed: Vec<String>,
    /// Letters to other executions.
    pub letters: Vec<Letter>,
    /// What came too late for the journal.
    pub late: Vec<Late>,
    /// What audit logs say of it, each behind what they say by then, in the order of the parts.
    pub audit: Vec<AuditEntry>,
    /// Gates that wait no more, by their steps' names and their numbers: at the end of an execution all that were listed.
    /// Not looked at where there are no frames.
    pub gates_closed: Vec<(String, u32)>,
    /// Gates of this execution that wait from now on. One that is there already stays as it is. Not looked at where there
    /// are no frames, or where the execution ends.
    pub gates_opened: Vec<GateRow>,
}

impl Part {
    /// One that changes nothing yet: of an execution that is not there.
    pub fn empty(execution: ExecutionKey, partition: u32) -> Self {
        Self {
            execution,
            partition,
            expected: None,
            frames: Vec::new(),
            head: Head { sequence: 0, hash: Hash::default(), seal: Hash::default() },
            wake_at: None,
            row: None,
            change: None,
            plans: Vec::new(),
            consumed: Vec::new(),
            letters: Vec::new(),
            late: Vec::new(),
            audit: Vec::new(),
            gates_closed: Vec::new(),
            gates_opened: Vec::new(),
        }
    }

    /// About as many bytes as it takes to write it: frames with their values, plans, letters and late receipts. What rows
    /// take beside those is bounded and small.
    pub fn byte_count(&self) -> usize {
        let frames: usize = self.frames.iter().map(StoredFrame::byte_count).sum();
        let plans: usize = self.plans.iter().map(|plan| plan.bytes.len()).sum();
        let letters: usize = self.letters.iter().map(Letter::byte_count).sum();
        let late: usize = self.late.iter().map(|late| late.body.len()).sum();
        frames + plans + letters + late
    }
}

/// The head that a part was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Its sequence.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// On disk.
    Durable,
    /// Not written, and why.
    Refused(Refusal),
}

/// Why a part was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The partition has a newer owner, or no fence of the batch names it.
    Fence,
    /// The fence is valid, and the head is in another partition than the part. Whoever has the newest epoch knows the
    /// partitions: something other than Mainspring has changed the head.
    Partition,
    /// The journal's head is another one; for a new execution: there is one of this key.
    Sequence,
    /// The execution has ended: nothing follows an end.
    Ended,
    /// Another execution carries this name.
    IdTaken(ExecutionKey),
    /// Another execution was started with this idempotency key.
    IdempotencyKeyTaken(ExecutionKey),
}

/// Why a batch has no answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitError {
    /// Nothing of it was written, certainly, and the store is the reason: it is not reachable, has no room, or may not be
    /// written. The same batch may be written later.
    NotWritten(String),
    /// Nothing of it was written, certainly, and something in the batch is the reason: a row that contradicts it, a value
    /// or a size that the store does not take. Other parts may be written; the same batch would be refused again.
    Refused(String),
    /// Nothing of it was written, certainly, and something that its parts share with other writers is the reason: a lock
    /// that was not released in time, or a damaged row of a whole organization. Other parts may be written now, and the
    /// same parts later.
    Blocked(String),
    /// It may or may not be on disk: read the heads before anything else is done.
    Unknown(String),
    /// The disk did not do what it was asked (fsync failed): nothing that this process believes about it holds.
    Fatal(String),
}

/// A head with the store's remarks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRow {
    /// The head.
    pub head: Head,
    /// The partition.
    pub partition: u32,
    /// As in [`Part::wake_at`].
    pub wake_at: Option<u64>,
    /// Whether the execution has ended.
    pub ended: bool,
    /// Why it was set aside, if it was.
    pub quarantined: Option<String>,
}

/// An execution to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The execution.
    pub execution: ExecutionKey,
    /// When, in milliseconds since 1970; 0 for at once.
    pub wake_at: u64,
}

/// Something for an execution that it has not yet taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// For whom. The execution need not exist yet: a letter may start it.
    pub execution: ExecutionKey,
    /// Its partition.
    pub partition: u32,
    /// The letter's name, unique for its execution.
    pub id: String,
    /// An input, as the kernel writes it.
    pub body: Vec<u8>,
    /// When it was posted, in milliseconds since 1970.
    pub posted_at: u64,
}

/// A letter with its place in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Grows with every letter of a store.
    pub number: u64,
    /// The letter.
    pub letter: Letter,
}

impl Arrived {
    /// The bytes that count where [`Most`] bounds them.
    pub fn byte_count(&self) -> usize {
        self.letter.byte_count()
    }
}

impl Letter {
    /// Bytes of the body and the id.
    pub fn byte_count(&self) -> usize {
        self.body.len() + self.id.len()
    }
}

/// A compiled plan, as the kernel writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPlan {
    /// The hash of the bytes.
    pub hash: Hash,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// A gate that waits for people, as it is listed. What they are asked, and who may decide, is in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRow {
    /// The execution.
    pub execution: ExecutionKey,
    /// The step instance, by name.
    pub step: String,
    /// Which gate of that, from 1.
    pub gate: u32,
    /// Whose the execution is.
    pub organization: Option<String>,
    /// In milliseconds since 1970.
    pub opened_at: u64,
    /// When it is decided by itself, in milliseconds since 1970.
    pub expires_at: u64,
    /// How, then: `approve`, `deny`, …
    pub on_timeout: String,
}

/// A receipt that came too late to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// When it came, in milliseconds since 1970.
    pub at: u64,
    /// An input, as the kernel writes it; empty once it was erased.
    pub body: Vec<u8>,
}

impl Late {
    /// A receipt as it lies in a row: one that was erased is overwritten with zeros, which no input begins with.
    pub(crate) fn of_row(at: u64, body: Vec<u8>) -> Self {
        let is_erased = body.iter().all(|byte| *byte == 0);
        Self { at, body: if is_erased { Vec::new() } else { body } }
    }
}

/// An execution in the catalogue: what is listed and searched. Payloads are not here: they are in the journal, where
/// they can be erased. The columns follow `workflow_executions` of the second specification where they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// The execution.
    pub key: ExecutionKey,
    /// Its name outside, unique in the store; the key's own form if none was given.
    pub id: String,
    /// Whose it is; `None` for one that a command line began.
    pub organization: Option<String>,
    /// The workflow's id in its organisation's catalogue.
    pub workflow_id: Option<String>,
    /// The trigger that began it, by its id there.
    pub trigger_id: Option<String>,
    /// The execution that has started it and waits for it. `None` also in rows of older releases.
    pub parent: Option<ExecutionKey>,
    /// The name outside of the execution that has started it, whether that waits or not. `None` also in rows of older releases.
    pub parent_id: Option<String>,
    /// What the catalogue called the workflow when it was started. `None` also in rows of older releases.
    pub workflow_name: Option<String>,
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
    /// `with_failures` for a completed one in which a failure was let through.
    pub outcome: Option<String>,
    /// The code of the error or the reason of the end, no message.
    pub error: Option<String>,
    /// `manual`, `webhook`, `schedule`, `event`; `subworkflow` where another execution has started it and waits for it,
    /// `subworkflow_detached` where that does not wait.
    pub trigger_type: String,
    /// Who started it, by kind: `manual`, `webhook`, `schedule`.
    pub initiator_type: String,
    /// Who started it.
    pub initiator_user_id: Option<String>,
    /// Unique among the executions of one [origin](ExecutionRow::origin).
    pub idempotency_key: Option<String>,
    /// The session it is bound to.
    pub session_id: Option<String>,
    /// Its partition.
    pub partition: u32,
    /// How often it was handed to a node, from 1.
    pub attempt_count: u32,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Milliseconds since 1970; `None` until it has ended.
    pub completed_at: Option<u64>,
}

impl ExecutionRow {
    /// The execution that has started it, by its name outside; by its key in rows of releases that kept no names.
    pub fn started_by(&self) -> Option<String> {
        self.parent_id.clone().or_else(|| self.parent.map(|parent| parent.to_string()))
    }

    /// Among which executions its idempotency key is unique.
    pub fn origin(&self) -> Origin<'_> {
        let Self { organization, workflow_id, workflow, .. } = self;
        Origin {
            organization: organization.as_deref(),
            workflow_id: workflow_id.as_deref(),
            workflow: workflow.as_deref(),
        }
    }
}

/// Where executions come from: of one organisation, or of none, the workflow of an id, or where there is none, of a name.
/// Unnamed workflows without an id share one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin<'a> {
    /// See [`ExecutionRow::organization`].
    pub organization: Option<&'a str>,
    /// See [`ExecutionRow::workflow_id`].
    pub workflow_id: Option<&'a str>,
    /// See [`ExecutionRow::workflow`]. Not looked at where there is an id.
    pub workflow: Option<&'a str>,
}

impl<'a> Origin<'a> {
    /// The executions of a workflow's name that belong to no organisation.
    pub fn named(workflow: Option<&'a str>) -> Self {
        Self { workflow, ..Self::default() }
    }
}

/// What a commit changes in a row of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The new status.
    pub status: String,
    /// See [`ExecutionRow::outcome`].
    pub outcome: Option<String>,
    /// See [`ExecutionRow::error`].
    pub error: Option<String>,
    /// Set by the change that ends it; with it the journal is closed.
    pub completed_at: Option<u64>,
}

/// Which rows of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// One of these statuses; empty for any.
    pub statuses: Vec<String>,
    /// The workflow of this name.
    pub workflow: Option<String>,
    /// Those of this organisation.
    pub organization: Option<String>,
    /// The workflow of this id.
    pub workflow_id: Option<String>,
    /// Those that this one started.
    pub initiator: Option<String>,
    /// Without those that are quarantined.
    pub is_going_on: bool,
}

/// Whether a status is one that nothing follows.
pub fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// A store that cannot do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// The store was written by a newer release: what it found and what it can read.
    Newer {
        /// The format of the store.
        found: u32,
        /// The newest format this build reads.
        readable: u32,
    },
    /// The store's files are damaged: what, and which frame if one is known.
    Damaged(String),
    /// No room, no permission, no such folder: the operating system's word for it, and the path.
    Unavailable(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { found, readable } => write!(
                out,
                "the store has format {found} and this build reads up to {readable}: use the release that wrote it, or a newer one"
            ),
            Self::Damaged(what) => write!(out, "the store is damaged: {what}"),
            Self::Unavailable(why) => write!(out, "the store cannot be used: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for CommitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritten(why) => write!(out, "nothing was written: {why}"),
            Self::Refused(why) => write!(out, "the store refused what was to be written: {why}"),
            Self::Blocked(why) => write!(out, "nothing was written, as something shared was in the way: {why}"),
            Self::Unknown(why) => write!(out, "whether it was written is unknown: {why}"),
            Self::Fatal(why) => write!(out, "the disk failed: {why}"),
        }
    }
}

impl std::error::Error for CommitError {}
