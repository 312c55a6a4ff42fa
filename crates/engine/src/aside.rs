//! Executions that are quarantined: what those that wait for them are told, how they are released, how they are ended.

use mainspring_kernel::{
    decide::child_key,
    effect::Outcome,
    failure::{Class, Failure},
    frame::Frame,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    note::{Note, Subject},
    plan::Work,
    state::State,
};
use mainspring_store::{AuditEntry, Awaiting, Expected, HeadRow, Noted, Release, ReleaseAnswer, Store, StoreError};

use crate::{
    EngineError,
    engine::now_ms,
    home::Home,
    inbox,
    limits::RELEASES_TRIED_MAX,
    load::{Journal, LoadError, Loader, Read},
};

pub use mainspring_kernel::decide::CHILD_QUARANTINED;

/// The reason with which a released child is canceled whose parent has gone on without it.
pub const PARENT_WENT_ON: &str = "parent_went_on";

/// The reason with which the children of an execution are canceled that was ended by force.
pub const PARENT_ENDED: &str = "parent_ended";

/// What is needed to act on quarantined executions.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// What reads its journals.
    pub loader: &'a Loader,
    /// The folder whose engine is woken, if the store lies in one.
    pub home: Option<&'a Home>,
}

/// A user who acts, and why.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The installation's key.
    pub key: &'a [u8; 32],
    /// The user.
    pub by: &'a str,
    /// The reason.
    pub reason: &'a str,
    /// What the audit log says.
    pub audit: &'a [AuditEntry],
}

impl<'a> Act<'a> {
    pub(crate) fn noted(&self, notes: &'a [Note]) -> Noted<'a> {
        Noted { notes, audit: self.audit, sealing: *self.key }
    }
}

/// Posts to the execution that waits for a quarantined one that its attempt has failed. The parent's own journal says
/// whether it waits: a row that names another parent changes nothing. True if there is one that waits.
pub fn tell_parent(place: Place<'_>, child: ExecutionKey) -> Result<bool, EngineError> {
    let Some(parent) = parent_of(place, child)? else { return Ok(false) };
    Ok(tell(place, parent, &[child])? == [child])
}

/// Posts the same to an execution that waits for some of these, which are quarantined; those that it waits for. Its journal
/// is read once. A child that was released meanwhile is told of by nobody: the release takes back only what was posted
/// before it.
pub(crate) fn tell(
    place: Place<'_>,
    parent: ExecutionKey,
    children: &[ExecutionKey],
) -> Result<Vec<ExecutionKey>, EngineError> {
    let Some(journal) = going_on(place, parent)? else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    for child in children {
        let Some(input) = failure_of(&journal.state, *child) else { continue };
        if place.store.head(*child)?.is_none_or(|head| head.quarantined.is_none()) {
            continue;
        }
        inbox::post(place.store, place.home, place.loader.key(), (parent, &input), None)?;
        told.push(*child);
    }
    Ok(told)
}

/// Posts to the execution that is said to wait for a child that the message which was to begin it was changed, if it waits
/// for that child by its own journal and nothing of the child is stored. False if there is nothing to tell.
pub fn tell_of_unbegun(place: Place<'_>, parent: ExecutionKey, child: ExecutionKey) -> Result<bool, EngineError> {
    if place.store.head(child)?.is_some() {
        return Ok(false);
    }
    let Some(journal) = going_on(place, parent)? else { return Ok(false) };
    let Some((instance, attempt, _)) = open_children(&journal.state).find(|(.., key)| *key == child) else {
        return Ok(false);
    };
    let why = "the message that was to begin it was not written with the installation's key";
    let input = Input::Receipt { instance, attempt, outcome: Outcome::Failed(not_started(child, why)) };
    inbox::post(place.store, place.home, place.loader.key(), (parent, &input), None)?;
    Ok(true)
}

/// The receipt that the parent of a quarantined child is given, if it waits for that child.
fn failure_of(parent: &State, child: ExecutionKey) -> Option<Input> {
    let (instance, attempt, _) = open_children(parent).find(|(.., key)| *key == child)?;
    let message =
        format!("the workflow that was started, {child}, was quarantined: `mainspring quarantine list` says why");
    let outcome = Outcome::Failed(Failure::new(Class::Internal, CHILD_QUARANTINED, message));
    Some(Input::Receipt { instance, attempt, outcome })
}

/// The code of the failure that a parent is told whose child could not begin.
pub const CHILD_NOT_STARTED: &str = "child_not_started";

/// The failure of a child that cannot begin, now or later.
pub(crate) fn not_started(child: ExecutionKey, why: &str) -> Failure {
    let message = format!("the workflow could not be started as execution {child}: {why}");
    Failure::new(Class::Internal, CHILD_NOT_STARTED, message)
}

/// The execution that waits for a child, as the child's row or its first frame says.
pub(crate) fn parent_of(place: Place<'_>, child: ExecutionKey) -> Result<Option<ExecutionKey>, EngineError> {
    if let Some(parent) = place.store.execution(child)?.and_then(|row| row.parent) {
        return Ok(Some(parent));
    }
    let mut parent = None;
    // As far as it can be read: the first frame says it.
    let each = |state: &State, _: &Frame| parent = state.lineage.parent.as_ref().map(|parent| parent.execution);
    drop(place.loader.frames(child, each));
    Ok(parent)
}

/// The journal of an execution that can go on. One whose journal is broken is about to be quarantined.
fn going_on(place: Place<'_>, execution: ExecutionKey) -> Result<Option<Journal>, EngineError> {
    match unfinished(place, execution) {
        Err(LoadError::Broken(_)) => Ok(None),
        read => Ok(read?.filter(|read| read.quarantined.is_none()).map(|read| read.journal)),
    }
}

/// The journal of an execution that has not ended, quarantined or not. That it has ended, its journal says or a sealed note,
/// and not the column of its head.
fn unfinished(place: Place<'_>, execution: ExecutionKey) -> Result<Option<Read>, LoadError> {
    let Some(row) = place.store.head(execution)? else { return Ok(None) };
    if row.ended && place.loader.forced_end(execution)?.is_some() {
        return Ok(None);
    }
    let read = place.loader.journal(execution)?;
    Ok(read.filter(|read| read.journal.state.ended_at.is_none()))
}

/// The children that the open attempts of an execution wait for.
fn open_children(state: &State) -> impl Iterator<Item = (Instance, u32, ExecutionKey)> {
    state.open_attempts.iter().filter_map(|instance| {
        let is_child = matches!(state.plan.step(instance.step).work, Work::Subworkflow { .. });
        let attempt = state.steps.get(instance)?.attempt;
        is_child.then(|| (instance.clone(), attempt, child_key(state, instance, attempt)))
    })
}

/// What became of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It goes on.
    GoesOn,
    /// The execution that waited for it has gone on without it: it is canceled.
    Canceled,
}

/// Takes an execution out of quarantine if its journal verifies. What its parent was told of that is taken back where the
/// parent has not taken it in yet. One whose parent does not wait for it any more is canceled with the release: its work
/// counts for nobody, and may be going on in another attempt.
pub fn release(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<Released, EngineError> {
    quarantined(place, execution)?;
    place.loader.verify(execution)?;
    let state = place.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?.journal.state;
    let parent = state.lineage.parent.as_ref().map(|parent| parent.execution);
    for _ in 0..RELEASES_TRIED_MAX {
        let Some(released) = try_release(place, execution, parent, act)? else { continue };
        // Wakes whoever works on it: a message that changes nothing where nothing waits for a place.
        let _ = inbox::post(place.store, place.home, place.loader.key(), (execution, &Input::Continue), None);
        return Ok(released);
    }
    let why = "the execution that waits for it goes on all the time: nothing was changed, try again";
    Err(StoreError::Unavailable(why.into()).into())
}

/// Releases an execution; `None`, and nothing is done, if the execution that waits for it has gone on meanwhile.
fn try_release(
    place: Place<'_>,
    execution: ExecutionKey,
    parent: Option<ExecutionKey>,
    act: &Act<'_>,
) -> Result<Option<Released>, EngineError> {
    let Some(parent) = parent else {
        return free(place, execution, None, act).map(|is_free| is_free.then_some(Released::GoesOn));
    };
    let Some((head, told)) = waiting_for(place, parent, execution)? else {
        // Before it is released: nothing of it may begin first.
        cancel(place, execution, act)?;
        return free(place, execution, None, act).map(|is_free| is_free.then_some(Released::Canceled));
    };
    let awaiting = Awaiting { execution: parent, head, told: &told };
    if !free(place, execution, Some(awaiting), act)? {
        return Ok(None);
    }
    // A commit that was under way may have taken in what the parent was told all the same.
    if waiting_for(place, parent, execution)?.is_none() {
        cancel(place, execution, act)?;
        return Ok(Some(Released::Canceled));
    }
    Ok(Some(Released::GoesOn))
}

/// The head at which an execution waits for another one, and the id of the message that tells it of a quarantine. One that is
/// quarantined itself waits as well, and is to be read: what cannot be read may wait or not.
fn waiting_for(
    place: Place<'_>,
    parent: ExecutionKey,
    child: ExecutionKey,
) -> Result<Option<(Expected, String)>, EngineError> {
    let read = unfinished(place, parent).map_err(|error| match error {
        LoadError::Broken(why) => LoadError::Broken(format!(
            "{why}; it is that of {parent}, which may wait for {child}: release or end that one first"
        )),
        error => error,
    })?;
    let Some(Journal { state, head, .. }) = read.map(|read| read.journal) else { return Ok(None) };
    let told = failure_of(&state, child).map(|input| inbox::identity(&input));
    Ok(told.map(|told| (Expected { sequence: head.sequence, hash: head.hash }, told)))
}

fn cancel(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<(), EngineError> {
    let input = Input::Cancel { reason: PARENT_WENT_ON.into(), by: act.by.into() };
    inbox::post(place.store, place.home, place.loader.key(), (execution, &input), None).map(drop)
}

/// False, and nothing is done, if the execution that waits has gone on since its head was read.
fn free(
    place: Place<'_>,
    execution: ExecutionKey,
    parent: Option<Awaiting<'_>>,
    act: &Act<'_>,
) -> Result<bool, EngineError> {
    match place.store.release(&Release { execution, parent, noted: act.noted(&[]) })? {
        ReleaseAnswer::Released => Ok(true),
        ReleaseAnswer::NotQuarantined => Err(EngineError::NotQuarantined),
        ReleaseAnswer::ParentMoved => Ok(false),
    }
}

/// Ends a quarantined execution without its journal. A sealed note says who did it and why; the execution that waits for
/// it is told, and the executions that it waits for, as far as its journal can be read, are canceled.
pub fn force_end(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<(), EngineError> {
    quarantined(place, execution)?;
    let mut children: Vec<ExecutionKey> = Vec::new();
    let each = |state: &State, _: &Frame| {
        children = open_children(state).map(|(.., key)| key).collect();
    };
    drop(place.loader.frames(execution, each));
    tell_parent(place, execution)?;
    for child in children {
        let input = Input::Cancel { reason: PARENT_ENDED.into(), by: act.by.into() };
        inbox::post(place.store, place.home, place.loader.key(), (child, &input), None)?;
    }
    let note = Note::sealed(act.key, execution, Subject::Ended, now_ms(), act.by, act.reason);
    if place.store.force_end(&act.noted(&[note]))? {
        return Ok(());
    }
    Err(EngineError::NotQuarantined)
}

fn quarantined(place: Place<'_>, execution: ExecutionKey) -> Result<(), EngineError> {
    match place.store.head(execution)? {
        None => Err(EngineError::NoSuchExecution),
        Some(HeadRow { ended: false, quarantined: Some(_), .. }) => Ok(()),
        Some(_) => Err(EngineError::NotQuarantined),
    }
}
