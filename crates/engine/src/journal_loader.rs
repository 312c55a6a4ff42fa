//! Loads a journal into a state, and verifies all of it. It repairs nothing: a fault is reported with its position.

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
    stored_frame::{Head, StoredFrame},
};
use mainspring_store::{HeadRow, ReadLimit, RemoteAttempt, Store, StoreError};

use crate::columns::{Columns, Difference};

/// Frames per read. The store returns fewer if they are large.
const FRAMES_AT_A_TIME: usize = 4096;

/// Tries of comparing columns with a journal that changes in the meantime.
const COMPARISONS_MAX: u32 = 3;

/// A folded journal.
#[derive(Debug)]
pub struct Journal {
    /// The state after the last frame.
    pub state: State,
    /// The last frame, sealed.
    pub head: Head,
    /// Size of the stored frames in bytes.
    pub bytes: usize,
    /// Attempts that run on other nodes, with the names of those nodes.
    pub remote: Vec<(RemoteAttempt, String)>,
}

/// Reads journals from a store, and caches decoded plans.
pub struct Loader {
    store: Arc<dyn Store>,
    sealing: [u8; 32],
    is_among_nodes: bool,
    plans: Mutex<BTreeMap<Hash, Arc<Plan>>>,
}

/// The erasures of an execution that have a sealed note, once they were read.
type Proven = Option<BTreeSet<Subject>>;

/// Number of cached plans. The cache is cleared beyond it, which only costs time.
const PLANS_MAX: usize = 1024;

impl Loader {
    /// Creates a reader for a store whose heads are sealed with this key.
    pub fn new(store: Arc<dyn Store>, sealing: [u8; 32]) -> Self {
        Self { store, sealing, is_among_nodes: false, plans: Mutex::new(BTreeMap::new()) }
    }

    /// The same for a node of a cluster, which also reads the attempts that run on other nodes.
    pub fn among_nodes(self) -> Self {
        Self { is_among_nodes: true, ..self }
    }

    /// The installation's key: it seals journals and inbox messages.
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.sealing
    }

    /// Answers a load request of the shard.
    pub fn load(&self, execution: ExecutionKey) -> LoadAnswer {
        match self.load_active(execution) {
            Ok(answer) => answer,
            Err(LoadError::Store(error)) => LoadAnswer::Unavailable(error.to_string()),
            Err(LoadError::Broken(why)) => LoadAnswer::Broken(why),
            Err(error @ LoadError::Newer(_)) => LoadAnswer::Newer(error.to_string()),
        }
    }

    /// Reads an execution to continue it. A quarantined journal is not folded, since its fault is known. It may have
    /// ended anyway, at a node that owned it when another node quarantined it: then its inputs are late. Remote
    /// attempts are read last: a node that has just finished one enqueued its receipt first.
    fn load_active(&self, execution: ExecutionKey) -> Result<LoadAnswer, LoadError> {
        let Some(mut row) = self.store.head(execution)? else { return Ok(LoadAnswer::Unknown) };
        let quarantined = row.quarantined.take();
        if let Some(reason) = quarantined.as_ref().filter(|_| !row.ended) {
            return Ok(LoadAnswer::Quarantined(reason.clone()));
        }
        let is_closed = row.ended;
        let read = self.walk_to(execution, row, |fold, stored| fold.push(stored).map(drop));
        let has_ended = |read: &Read| read.journal.state.end.ended_at.is_some();
        let mut journal = match (read, quarantined) {
            (Ok(read), _) if !is_closed || has_ended(&read) => read.journal,
            (Err(LoadError::Store(error)), _) => return Err(error.into()),
            (_, Some(reason)) => return Ok(LoadAnswer::Quarantined(reason)),
            (Ok(_), None) => return Err(LoadError::Broken(not_ended().to_string())),
            (Err(error), None) => return Err(error),
        };
        if self.is_among_nodes && !journal.state.open.attempts.is_empty() {
            journal.remote = self.store.remote_attempts(execution)?;
        }
        Ok(journal.into())
    }

    /// Reads the journal of an execution, quarantined or not. `None` if there is none.
    pub fn journal(&self, execution: ExecutionKey) -> Result<Option<Read>, LoadError> {
        self.walk(execution, |fold, stored| fold.push(stored).map(drop))
    }

    /// Verifies the journal of an execution: chain, values, decisions and head.
    pub fn verify(&self, execution: ExecutionKey) -> Result<Option<Verified>, LoadError> {
        Ok(self.verified(execution)?.map(|(verified, _)| verified))
    }

    /// The same, with the columns of the store that contradict the journal. They are not compared if the execution
    /// never stops changing.
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

    /// Checks that the journal ends with the frame of its sealed head. It reads that frame only, and proves nothing
    /// about earlier ones.
    pub fn check_head(&self, execution: ExecutionKey) -> Result<(), LoadError> {
        let broken = |why: &str| LoadError::Broken(why.to_owned());
        let row = self.store.head(execution)?.ok_or_else(|| broken("it is missing"))?;
        if !row.head.is_sealed_by(&self.sealing, execution) {
            return Err(broken("its head lacks the seal of this installation's key"));
        }
        let last = self.store.frames(execution, row.head.sequence, ReadLimit::of(1))?;
        let last = last.first().filter(|frame| frame.sequence == row.head.sequence);
        let last = last.ok_or_else(|| broken("the frame that its head is sealed over is missing"))?;
        let (_, hash) = Frame::read(last).map_err(|error| broken(&error.to_string()))?;
        if hash == row.head.hash {
            Ok(())
        } else {
            Err(broken("it does not end in the frame that its head is sealed over"))
        }
    }

    /// Passes each frame of an execution, in order, with the state after it.
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

    /// As [`frames`](Self::frames), for a journal of at most `bytes_max` bytes. A larger one is not read to its end.
    pub fn frames_within(
        &self,
        execution: ExecutionKey,
        bytes_max: usize,
        mut each: impl FnMut(&State, &Frame),
    ) -> Result<Bounded, LoadError> {
        let (mut bytes, mut is_over) = (0, false);
        let read = self.walk(execution, |fold, stored| {
            bytes += stored.byte_count();
            if bytes > bytes_max {
                is_over = true;
                return Err(Broken {
                    sequence: stored.sequence,
                    why: format!("the journal has over {bytes_max} bytes"),
                });
            }
            let frame = fold.push(stored)?;
            each(&fold.state, &frame);
            Ok(())
        });
        match read {
            _ if is_over => Ok(Bounded::TooLarge),
            Ok(Some(_)) => Ok(Bounded::Read),
            Ok(None) => Ok(Bounded::Missing),
            Err(error) => Err(error),
        }
    }

    /// Reads the state of an execution whose journal has at most `bytes_max` bytes. A larger one is not read to its end.
    pub fn state_within(&self, execution: ExecutionKey, bytes_max: usize) -> Result<StateWithin, LoadError> {
        let (mut bytes, mut is_over) = (0, false);
        let read = self.walk(execution, |fold, stored| {
            bytes += stored.byte_count();
            is_over = bytes > bytes_max;
            if is_over {
                let why = format!("the journal has over {bytes_max} bytes");
                return Err(Broken { sequence: stored.sequence, why });
            }
            fold.push(stored).map(drop)
        });
        match read {
            _ if is_over => Ok(StateWithin::TooLarge),
            Ok(Some(Read { quarantined: Some(_), .. })) => Ok(StateWithin::Quarantined),
            Ok(Some(read)) => Ok(StateWithin::Read(Box::new(read.journal.state))),
            Ok(None) => Ok(StateWithin::Missing),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn walk(
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
        let mut fold = None;
        let bytes = self.advance(execution, &row.head, &mut fold, &mut step)?;
        let state = fold.ok_or_else(|| LoadError::Broken("frame 0: it is missing".into()))?.state;
        let journal = Journal { state, head: row.head, bytes, remote: Vec::new() };
        Ok(Read { journal, quarantined: row.quarantined })
    }

    /// Passes the frames of an execution that a fold does not have yet, in order, and verifies the journal up to its head.
    /// Returns their bytes; `None` if there is no journal. Without a fold it begins with the first frame. A fold is of no
    /// use after an error.
    pub fn frames_after(
        &self,
        execution: ExecutionKey,
        fold: &mut Option<Fold>,
        mut each: impl FnMut(&State, &Frame),
    ) -> Result<Option<usize>, LoadError> {
        let Some(row) = self.store.head(execution)? else { return Ok(None) };
        let mut step = |fold: &mut Fold, stored: &StoredFrame| {
            let frame = fold.push(stored)?;
            each(&fold.state, &frame);
            Ok(())
        };
        self.advance(execution, &row.head, fold, &mut step).map(Some)
    }

    /// Reads the frames behind a fold up to a head, and verifies them. Returns their bytes.
    fn advance(
        &self,
        execution: ExecutionKey,
        head: &Head,
        fold: &mut Option<Fold>,
        step: &mut impl FnMut(&mut Fold, &StoredFrame) -> Result<(), Broken>,
    ) -> Result<usize, LoadError> {
        let broken = |broken: Broken| LoadError::Broken(broken.to_string());
        // The head was read first, so later frames of a running engine are ignored.
        let up_to_head = |from: u64| -> Result<Vec<StoredFrame>, StoreError> {
            let mut frames = self.store.frames(execution, from, ReadLimit::of(FRAMES_AT_A_TIME))?;
            frames.retain(|frame| frame.sequence <= head.sequence);
            Ok(frames)
        };
        let mut frames = up_to_head(fold.as_ref().map_or(0, Fold::next_sequence))?;
        let fold = match fold {
            Some(fold) => fold,
            None => fold.insert(Fold::new(execution, self.plan_of(frames.first())?)),
        };
        let (mut bytes, mut proven) = (0, Proven::default());
        while !frames.is_empty() {
            for stored in &frames {
                bytes += stored.byte_count();
                self.check_erased(execution, stored, &mut proven)?;
                step(fold, stored).map_err(broken)?;
            }
            frames = up_to_head(fold.next_sequence())?;
        }
        fold.finish(head, &self.sealing).map_err(broken)?;
        self.check_end(execution, head)?;
        Ok(bytes)
    }

    /// Refuses a frame without a value if there is no sealed note of the erasure. Otherwise an attacker with access to
    /// the store could remove a value, and a running execution would continue with null. Notes are read once, and only
    /// if an execution needs them.
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

    /// The notes beside a journal that are sealed with this installation's key. Others prove nothing.
    pub fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, LoadError> {
        let mut notes = self.store.notes(execution)?;
        notes.retain(|note| note.execution == execution && note.is_sealed_by(&self.sealing));
        Ok(notes)
    }

    /// The sealed note of a forced end, if an operator has ended the execution.
    pub fn forced_end(&self, execution: ExecutionKey) -> Result<Option<Note>, LoadError> {
        Ok(self.notes(execution)?.into_iter().find(|note| note.subject == Subject::Ended))
    }

    /// Frames beyond the head are legal only while an engine writes, and the head has moved as well then.
    fn check_end(&self, execution: ExecutionKey, head: &Head) -> Result<(), LoadError> {
        let beyond = self.store.frames(execution, head.sequence + 1, ReadLimit::of(1))?;
        let Some(frame) = beyond.first() else { return Ok(()) };
        match self.store.head(execution)? {
            Some(now) if now.head != *head => Ok(()),
            _ => {
                Err(LoadError::Broken(format!("frame {}: it stands beyond the journal's sealed head", frame.sequence)))
            }
        }
    }

    /// The plan that the first frame of a journal names.
    fn plan_of(&self, first: Option<&StoredFrame>) -> Result<Arc<Plan>, LoadError> {
        let broken = |why: String| LoadError::Broken(format!("frame 0: {why}"));
        let first = first.ok_or_else(|| broken("it is missing".into()))?;
        let (frame, _) = Frame::read(first).map_err(|error| match Frame::decide_version(first) {
            // Its unknown content may be known to the newer release.
            Some(version) if version > DECIDE_VERSION => LoadError::Newer(version),
            _ => broken(error.to_string()),
        })?;
        let Some(Record::Started { plan_hash, decide_version, .. }) = frame.records.first() else {
            return Err(broken("it does not start an execution".into()));
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

    /// Returns the plan of a hash, decoded once. `None` if it is not stored. The cache is not locked during the read.
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

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// The store has closed the head, but the journal has not ended: the store accepts no more frames of it.
fn not_ended() -> Difference {
    Difference { column: "heads.ended", stored: true.to_string(), derived: false.to_string() }
}

/// Reads a plan and checks its hash.
pub(crate) fn read_plan(store: &dyn Store, hash: Hash) -> Result<Option<Plan>, LoadError> {
    let Some(bytes) = store.plan(hash)? else { return Ok(None) };
    if Hash::of(&bytes) != hash {
        return Err(LoadError::Broken(format!("the stored plan is not {hash:?}")));
    }
    Plan::decode(&bytes).map(Some).map_err(|error| LoadError::Broken(error.to_string()))
}

/// True if a newer release started the execution. This release does not continue it.
pub(crate) fn is_newer(store: &dyn Store, execution: ExecutionKey) -> Result<bool, StoreError> {
    let first = store.frames(execution, 0, ReadLimit::of(1))?;
    Ok(first.first().and_then(Frame::decide_version).is_some_and(|version| version > DECIDE_VERSION))
}

/// The state of an execution, read within a bound.
#[derive(Debug)]
pub enum StateWithin {
    /// The state.
    Read(Box<State>),
    /// The journal is larger than the bound.
    TooLarge,
    /// The execution is quarantined.
    Quarantined,
    /// There is no journal.
    Missing,
}

/// A journal with its quarantine.
#[derive(Debug)]
pub struct Read {
    /// The folded journal.
    pub journal: Journal,
    /// The reason of the quarantine, if the execution is quarantined.
    pub quarantined: Option<String>,
}

/// The reason why a journal could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// The store did not answer.
    Store(StoreError),
    /// The stored journal is not the one that was written: the position and the fault.
    Broken(String),
    /// A newer release started the execution, with this version of `decide`.
    Newer(u32),
}

/// Rows that the store cannot unpack equal unreadable frames: a retry does not help, and the execution is quarantined.
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
                "the execution was started by a newer release (version {version} of decide, this build has {DECIDE_VERSION}): use that release"
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// The result of reading a journal with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounded {
    /// All frames were passed.
    Read,
    /// The journal is larger than the bound.
    TooLarge,
    /// No such execution exists.
    Missing,
}

/// The answer to a load.
#[derive(Debug)]
pub enum LoadAnswer {
    /// The journal, folded and verified.
    Journal(Box<Journal>),
    /// No such execution exists.
    Unknown,
    /// The execution is quarantined, for this reason.
    Quarantined(String),
    /// The stored journal is not the one that was written. The execution is to be quarantined for this reason.
    Broken(String),
    /// A newer release started the execution. This release leaves it alone.
    Newer(String),
    /// The store did not answer.
    Unavailable(String),
}

impl From<Journal> for LoadAnswer {
    fn from(journal: Journal) -> Self {
        Self::Journal(Box::new(journal))
    }
}
