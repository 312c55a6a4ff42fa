//! Reads a journal back into a state, checking all of it on the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use mainspring_kernel::{
    decide::DECIDE_VERSION,
    frame::Frame,
    hash::Hash,
    journal::{Broken, Fold, Verified},
    key::ExecutionKey,
    note::{Note, Subject},
    plan::Plan,
    record::Record,
    state::State,
    stored::{Head, StoredFrame},
};
use mainspring_store::{HeadRow, Most, RemoteAttempt, Store, StoreError};

use crate::{
    columns::{Columns, Difference},
    shard::LoadAnswer,
};

/// Frames read from the store at a time, as long as they are small: of large ones it gives fewer.
const FRAMES_AT_A_TIME: usize = 4096;

/// How often columns are read of an execution that has gone on meanwhile.
const COMPARISONS_MAX: u32 = 3;

/// A journal, folded.
#[derive(Debug)]
pub struct Journal {
    /// What the execution is.
    pub state: State,
    /// Where the journal ends.
    pub head: Head,
    /// How much there is of it.
    pub bytes: usize,
    /// Attempts that go on at other nodes, with the names of those.
    pub remote: Vec<(RemoteAttempt, String)>,
}

/// Reads journals from a store. Plans are decoded once.
pub struct Loader {
    store: Arc<dyn Store>,
    sealing: [u8; 32],
    is_among_nodes: bool,
    plans: Mutex<BTreeMap<Hash, Arc<Plan>>>,
}

/// The erasures of an execution that are proven, once they were read.
type Proven = Option<BTreeSet<Subject>>;

/// Plans kept decoded; more than this and the table begins anew, which costs time and nothing else.
const PLANS_MAX: usize = 1024;

impl Loader {
    /// A reader of a store whose heads are sealed with this key.
    pub fn new(store: Arc<dyn Store>, sealing: [u8; 32]) -> Self {
        Self { store, sealing, is_among_nodes: false, plans: Mutex::new(BTreeMap::new()) }
    }

    /// The same for one of many nodes: who goes on with an execution has to know what others still perform of it.
    pub fn among_nodes(self) -> Self {
        Self { is_among_nodes: true, ..self }
    }

    /// The installation's key: journals and inbox messages are sealed with it.
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.sealing
    }

    /// The answer to a shard that asks for an execution.
    pub fn load(&self, execution: ExecutionKey) -> LoadAnswer {
        match self.to_go_on_with(execution) {
            Ok(answer) => answer,
            Err(LoadError::Store(error)) => LoadAnswer::Unavailable(error.to_string()),
            Err(LoadError::Broken(why)) => LoadAnswer::Broken(why),
            Err(error @ LoadError::Newer(_)) => LoadAnswer::Newer(error.to_string()),
        }
    }

    /// A quarantined journal is not folded: whatever is wrong with it is known. One that has come to its end all the same, at
    /// a node that held it when another one told of the quarantine, has ended: what comes for it is late. The attempts that
    /// others perform are asked for last: a node that has ended one meanwhile has posted its receipt before.
    fn to_go_on_with(&self, execution: ExecutionKey) -> Result<LoadAnswer, LoadError> {
        let Some(mut row) = self.store.head(execution)? else { return Ok(LoadAnswer::Unknown) };
        let quarantined = row.quarantined.take();
        if let Some(reason) = quarantined.as_ref().filter(|_| !row.ended) {
            return Ok(LoadAnswer::Quarantined(reason.clone()));
        }
        let is_closed = row.ended;
        let read = self.walk_to(execution, row, |fold, stored| fold.push(stored).map(drop));
        let has_ended = |read: &Read| read.journal.state.ended_at.is_some();
        let mut journal = match (read, quarantined) {
            (Ok(read), _) if !is_closed || has_ended(&read) => read.journal,
            (Err(LoadError::Store(error)), _) => return Err(error.into()),
            (_, Some(reason)) => return Ok(LoadAnswer::Quarantined(reason)),
            (Ok(_), None) => return Err(LoadError::Broken(not_ended().to_string())),
            (Err(error), None) => return Err(error),
        };
        if self.is_among_nodes && !journal.state.open_attempts.is_empty() {
            journal.remote = self.store.remote_attempts(execution)?;
        }
        Ok(journal.into())
    }

    /// An execution's journal as it stands, quarantined or not; `None` if there is none.
    pub fn journal(&self, execution: ExecutionKey) -> Result<Option<Read>, LoadError> {
        self.walk(execution, |fold, stored| fold.push(stored).map(drop))
    }

    /// Verifies an execution's journal: the chain, every value, every decision, the head.
    pub fn verify(&self, execution: ExecutionKey) -> Result<Option<Verified>, LoadError> {
        Ok(self.verified(execution)?.map(|(verified, _)| verified))
    }

    /// The same, and where the store keeps beside the journal what does not follow from it. Of an execution that goes on
    /// all the time, that is not compared.
    pub fn verify_with_columns(
        &self,
        execution: ExecutionKey,
    ) -> Result<Option<(Verified, Vec<Difference>)>, LoadError> {
        for _ in 0..COMPARISONS_MAX {
            let Some((verified, read)) = self.verified(execution)? else { return Ok(None) };
            if let Some(columns) = Columns::read(&*self.store, &read.journal.head, execution)? {
                return Ok(Some((verified, columns.differences(&read.journal.state))));
            }
        }
        Ok(self.verify(execution)?.map(|verified| (verified, Vec::new())))
    }

    fn verified(&self, execution: ExecutionKey) -> Result<Option<(Verified, Read)>, LoadError> {
        let mut verified = Verified { frames: 0, decided_again: 0, erased: Vec::new() };
        let read = self.walk(execution, |fold, stored| {
            verified.erased.extend(Frame::erased(stored).map(|place| (stored.sequence, place)));
            verified.decided_again += u64::from(fold.push_deciding(stored)?);
            verified.frames += 1;
            Ok(())
        })?;
        Ok(read.map(|read| (verified, read)))
    }

    /// Checks that an execution's journal ends in the frame that its head is sealed over. Reads one frame, and proves nothing
    /// of those before.
    pub fn check_head(&self, execution: ExecutionKey) -> Result<(), LoadError> {
        let broken = |why: &str| LoadError::Broken(why.to_owned());
        let row = self.store.head(execution)?.ok_or_else(|| broken("it is missing"))?;
        if !row.head.is_sealed_by(&self.sealing, execution) {
            return Err(broken("its head does not bear the seal of this installation's key"));
        }
        let last = self.store.frames(execution, row.head.sequence, Most::of(1))?;
        let last = last.first().filter(|frame| frame.sequence == row.head.sequence);
        let last = last.ok_or_else(|| broken("the frame that its head is sealed over is missing"))?;
        let (_, hash) = Frame::read(last).map_err(|error| broken(&error.to_string()))?;
        if hash == row.head.hash {
            Ok(())
        } else {
            Err(broken("it does not end in the frame that its head is sealed over"))
        }
    }

    /// Every frame of an execution, in order, with what its records make.
    pub fn frames(
        &self,
        execution: ExecutionKey,
        mut each: impl FnMut(&State, &Frame),
    ) -> Result<Option<Read>, LoadError> {
        self.walk(execution, |fold, stored| {
            let frame = fold.push(stored)?;
            each(&fold.state, &frame);
            Ok(())
        })
    }

    fn walk(
        &self,
        execution: ExecutionKey,
        step: impl FnMut(&mut Fold, &StoredFrame) -> Result<(), Broken>,
    ) -> Result<Option<Read>, LoadError> {
        let Some(row) = self.store.head(execution)? else { return Ok(None) };
        self.walk_to(execution, row, step).map(Some)
    }

    fn walk_to(
        &self,
        execution: ExecutionKey,
        row: HeadRow,
        mut step: impl FnMut(&mut Fold, &StoredFrame) -> Result<(), Broken>,
    ) -> Result<Read, LoadError> {
        let broken = |broken: Broken| LoadError::Broken(broken.to_string());
        // The head was read first: what an engine has added since is of another moment.
        let up_to_head = |from: u64| -> Result<Vec<StoredFrame>, StoreError> {
            let mut frames = self.store.frames(execution, from, Most::of(FRAMES_AT_A_TIME))?;
            frames.retain(|frame| frame.sequence <= row.head.sequence);
            Ok(frames)
        };
        let mut frames = up_to_head(0)?;
        let plan = self.plan_of(frames.first())?;
        let (mut fold, mut bytes) = (Fold::new(execution, plan), 0);
        let mut proven = Proven::default();
        while !frames.is_empty() {
            for stored in &frames {
                bytes += stored.byte_count();
                self.check_erased(execution, stored, &mut proven)?;
                step(&mut fold, stored).map_err(broken)?;
            }
            frames = up_to_head(fold.next_sequence())?;
        }
        fold.finish(&row.head, &self.sealing).map_err(broken)?;
        self.check_end(execution, &row.head)?;
        let journal = Journal { state: fold.state, head: row.head, bytes, remote: Vec::new() };
        Ok(Read { journal, quarantined: row.quarantined })
    }

    /// Refuses a frame with a value that is gone without a sealed note of its erasure: whoever can write the store could
    /// otherwise take a value away, and an execution that goes on would decide by null. Notes are read once, and only for
    /// an execution that needs them.
    fn check_erased(
        &self,
        execution: ExecutionKey,
        stored: &StoredFrame,
        proven: &mut Proven,
    ) -> Result<(), LoadError> {
        for place in Frame::erased(stored) {
            if proven.is_none() {
                *proven = Some(self.notes(execution)?.into_iter().map(|note| note.subject).collect());
            }
            let subject = Subject::Erased { sequence: stored.sequence, place: place as u64 };
            if !proven.as_ref().is_some_and(|proven| proven.contains(&subject)) {
                return Err(LoadError::Broken(format!(
                    "frame {}: value {place} is gone, and no note that is sealed with this installation's key says that \
                     it was erased; restore the latest backup and compare",
                    stored.sequence
                )));
            }
        }
        Ok(())
    }

    /// The notes beside an execution's journal that are sealed with this installation's key. Others prove nothing.
    pub fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, LoadError> {
        let mut notes = self.store.notes(execution)?;
        notes.retain(|note| note.execution == execution && note.is_sealed_by(&self.sealing));
        Ok(notes)
    }

    /// The note of the end that an operator has forced on an execution, if there is a sealed one.
    pub fn forced_end(&self, execution: ExecutionKey) -> Result<Option<Note>, LoadError> {
        Ok(self.notes(execution)?.into_iter().find(|note| note.subject == Subject::Ended))
    }

    /// Frames beyond the head are there only while an engine goes on; then the head has moved as well.
    fn check_end(&self, execution: ExecutionKey, head: &Head) -> Result<(), LoadError> {
        let beyond = self.store.frames(execution, head.sequence + 1, Most::of(1))?;
        let Some(frame) = beyond.first() else { return Ok(()) };
        match self.store.head(execution)? {
            Some(now) if now.head != *head => Ok(()),
            _ => {
                Err(LoadError::Broken(format!("frame {}: it stands beyond the journal's sealed head", frame.sequence)))
            }
        }
    }

    /// The plan that a journal's first frame pins.
    fn plan_of(&self, first: Option<&StoredFrame>) -> Result<Arc<Plan>, LoadError> {
        let broken = |why: String| LoadError::Broken(format!("frame 0: {why}"));
        let first = first.ok_or_else(|| broken("it is missing".into()))?;
        let (frame, _) = Frame::read(first).map_err(|error| match Frame::decide_version(first) {
            // What it has in it may be unknown here alone.
            Some(version) if version > DECIDE_VERSION => LoadError::Newer(version),
            _ => broken(error.to_string()),
        })?;
        let Some(Record::Started { plan_hash, decide_version, .. }) = frame.records.first() else {
            return Err(broken("it does not begin an execution".into()));
        };
        if *decide_version > DECIDE_VERSION {
            return Err(LoadError::Newer(*decide_version));
        }
        let plan = self.plan(*plan_hash).map_err(|error| match error {
            LoadError::Broken(why) => broken(why),
            error => error,
        })?;
        plan.ok_or_else(|| broken(format!("its plan {plan_hash:?} is not stored")))
    }

    /// A plan by its hash, decoded once; `None` if it is not stored. The table is not locked while the store is asked.
    pub(crate) fn plan(&self, hash: Hash) -> Result<Option<Arc<Plan>>, LoadError> {
        let plans = || self.plans.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(plan) = plans().get(&hash) {
            return Ok(Some(plan.clone()));
        }
        let Some(plan) = read_plan(&*self.store, hash)?.map(Arc::new) else { return Ok(None) };
        let mut plans = plans();
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        plans.insert(hash, plan.clone());
        Ok(Some(plan))
    }

    /// What it reads from.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// A head that is closed, and a journal that has not ended: the store takes nothing more of it.
fn not_ended() -> Difference {
    Difference { column: "heads.ended", stored: true.to_string(), derived: false.to_string() }
}

/// A plan as it is stored, if that is the plan of this hash.
pub(crate) fn read_plan(store: &dyn Store, hash: Hash) -> Result<Option<Plan>, LoadError> {
    let Some(bytes) = store.plan(hash)? else { return Ok(None) };
    if Hash::of(&bytes) != hash {
        return Err(LoadError::Broken(format!("the stored plan is not {hash:?}")));
    }
    Plan::decode(&bytes).map(Some).map_err(|error| LoadError::Broken(error.to_string()))
}

/// Whether a newer release has begun an execution, and goes on with it.
pub(crate) fn is_newer(store: &dyn Store, execution: ExecutionKey) -> Result<bool, StoreError> {
    let first = store.frames(execution, 0, Most::of(1))?;
    Ok(first.first().and_then(Frame::decide_version).is_some_and(|version| version > DECIDE_VERSION))
}

/// A journal and the store's remark on it.
#[derive(Debug)]
pub struct Read {
    /// The journal.
    pub journal: Journal,
    /// Why it is set aside, if it is.
    pub quarantined: Option<String>,
}

/// A journal that could not be read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// The store did not answer.
    Store(StoreError),
    /// What is stored is not what was written, and where.
    Broken(String),
    /// A newer release has begun it, with this version of decide.
    Newer(u32),
}

/// Rows that the store cannot unpack are no better than frames that we cannot read: asking again does not mend them, and
/// the execution they belong to is set aside.
impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::Broken(error.to_string()),
            StoreError::Newer { .. } | StoreError::Unavailable(_) => Self::Store(error),
        }
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(out),
            Self::Broken(why) => write!(out, "the journal is broken: {why}"),
            Self::Newer(version) => write!(
                out,
                "the execution was begun by a newer release (version {version} of decide, this build has {DECIDE_VERSION}): use that release"
            ),
        }
    }
}

impl std::error::Error for LoadError {}
