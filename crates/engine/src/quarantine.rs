//! Quarantined executions: the notification of their parents, the release and the forced end.

use mainspring_kernel::{
    decide::child_key,
    effect::Outcome,
    failure::{Class, Failure},
    frame::Frame,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    note::{Note, Subject},
    state::State,
};
use mainspring_store::{
    AuditEntry, AuditedNotes, AwaitingParent, Expected, HeadRow, QuarantineRelease, ReleaseOutcome, Store, StoreError,
};

use crate::{
    clock::now_ms,
    data_dir::DataDir,
    error::EngineError,
    inbox,
    journal_loader::{Journal, LoadError, Loader, Read},
    limits::RELEASES_TRIED_MAX,
    start_request::not_started,
};

pub use mainspring_kernel::decide::CHILD_QUARANTINED;

/// The reason of the cancel of a released child whose parent has continued without it.
pub const PARENT_CONTINUED: &str = "parent_continued";

/// The reason of the cancel of the children of an execution that was ended by force.
pub const PARENT_ENDED: &str = "parent_ended";

/// Access to the store and the engine, to act on quarantined executions.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The store with the executions.
    pub store: &'a dyn Store,
    /// The reader of its journals.
    pub loader: &'a Loader,
    /// The data folder whose engine is woken. `None` for a store without a folder.
    pub data_dir: Option<&'a DataDir>,
}

/// The act of a user, with the reason.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The installation's key.
    pub key: &'a [u8; 32],
    /// The name of the user.
    pub by: &'a str,
    /// The reason that the user gave.
    pub reason: &'a str,
    /// Entries for the audit log.
    pub audit: &'a [AuditEntry],
}

impl<'a> Act<'a> {
    pub(crate) fn audited(&self, notes: &'a [Note]) -> AuditedNotes<'a> {
        AuditedNotes { notes, audit: self.audit, sealing: *self.key }
    }
}

/// Sends a failure receipt to the execution that waits for a quarantined child. The journal of the parent says if it
/// waits, so a row with another parent has no effect. True if a parent waits.
pub fn notify_parent(place: Place<'_>, child: ExecutionKey) -> Result<bool, EngineError> {
    let Some(parent) = parent_of(place, child)? else { return Ok(false) };
    Ok(notify(place, parent, &[child])? == [child])
}

/// Sends a failure receipt for each of these quarantined children that the parent waits for, and returns those. The
/// journal of the parent is read once. A child that was released in the meantime is skipped, since the release only
/// withdraws earlier messages.
pub(crate) fn notify(
    place: Place<'_>,
    parent: ExecutionKey,
    children: &[ExecutionKey],
) -> Result<Vec<ExecutionKey>, EngineError> {
    let Some(journal) = active_journal(place, parent)? else { return Ok(Vec::new()) };
    let mut notified = Vec::new();
    for child in children {
        let Some(input) = failure_of(&journal.state, *child) else { continue };
        if place.store.head(*child)?.is_none_or(|head| head.quarantined.is_none()) {
            continue;
        }
        inbox::enqueue(place.store, place.data_dir, place.loader.key(), (parent, &input), None)?;
        notified.push(*child);
    }
    Ok(notified)
}

/// Notifies the claimed parent of a child whose start message was forged. The parent's own journal must wait for the
/// child, and nothing of the child may be stored. False if there is nothing to notify.
pub fn notify_of_not_started(place: Place<'_>, parent: ExecutionKey, child: ExecutionKey) -> Result<bool, EngineError> {
    if place.store.head(child)?.is_some() {
        return Ok(false);
    }
    let Some(journal) = active_journal(place, parent)? else { return Ok(false) };
    let Some((instance, attempt, _)) = open_children(&journal.state).find(|(.., key)| *key == child) else {
        return Ok(false);
    };
    let why = "the message that was to begin it was not written with the installation's key";
    let input = Input::Receipt { instance, attempt, outcome: Outcome::Failed(not_started(child, why)) };
    inbox::enqueue(place.store, place.data_dir, place.loader.key(), (parent, &input), None)?;
    Ok(true)
}

/// The receipt for the parent of a quarantined child, if it waits for that child.
fn failure_of(parent: &State, child: ExecutionKey) -> Option<Input> {
    let (instance, attempt, _) = open_children(parent).find(|(.., key)| *key == child)?;
    let message =
        format!("the workflow that was started, {child}, was quarantined: `mainspring quarantine list` says why");
    let outcome = Outcome::Failed(Failure::new(Class::Internal, CHILD_QUARANTINED, message));
    Some(Input::Receipt { instance, attempt, outcome })
}

/// The parent of a child, from its row or its first frame.
pub(crate) fn parent_of(place: Place<'_>, child: ExecutionKey) -> Result<Option<ExecutionKey>, EngineError> {
    if let Some(parent) = place.store.execution(child)?.and_then(|row| row.parent) {
        return Ok(Some(parent));
    }
    let mut parent = None;
    // Only the first frame is needed, so a later error does not matter.
    let each = |state: &State, _: &Frame| parent = state.lineage.parent.as_ref().map(|parent| parent.execution);
    drop(place.loader.frames(child, each));
    Ok(parent)
}

/// The journal of an execution that can continue. A broken journal is about to be quarantined.
fn active_journal(place: Place<'_>, execution: ExecutionKey) -> Result<Option<Journal>, EngineError> {
    match unfinished(place, execution) {
        Err(LoadError::Broken(_)) => Ok(None),
        read => Ok(read?.filter(|read| read.quarantined.is_none()).map(|read| read.journal)),
    }
}

/// The journal of an unfinished execution, quarantined or not. The end is proven by the journal or by a sealed note,
/// and not by the column of the head.
fn unfinished(place: Place<'_>, execution: ExecutionKey) -> Result<Option<Read>, LoadError> {
    let Some(row) = place.store.head(execution)? else { return Ok(None) };
    if row.ended && place.loader.forced_end(execution)?.is_some() {
        return Ok(None);
    }
    let read = place.loader.journal(execution)?;
    Ok(read.filter(|read| read.journal.state.end.ended_at.is_none()))
}

/// The children that open attempts of an execution wait for.
fn open_children(state: &State) -> impl Iterator<Item = (Instance, u32, ExecutionKey)> {
    state.open.attempts.iter().filter_map(|instance| {
        let is_child = state.started_workflow(instance).is_some();
        let attempt = state.steps.get(instance)?.attempt;
        is_child.then(|| (instance.clone(), attempt, child_key(state, instance, attempt)))
    })
}

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The execution continues.
    Resumed,
    /// The execution is canceled, since its parent has continued without it.
    Canceled,
}

/// Releases an execution from quarantine if its journal verifies. The notification of its parent is withdrawn if the
/// parent has not processed it. If the parent no longer waits, the execution is canceled with the release: its result
/// has no receiver, and another attempt may do the same work.
pub fn release(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<Released, EngineError> {
    quarantined(place, execution)?;
    place.loader.verify(execution)?;
    let state = place.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?.journal.state;
    let parent = state.lineage.parent.as_ref().map(|parent| parent.execution);
    for _ in 0..RELEASES_TRIED_MAX {
        let Some(released) = try_release(place, execution, parent, act)? else { continue };
        // Wakes the owner of the execution. The message has no effect by itself.
        let _ = inbox::enqueue(place.store, place.data_dir, place.loader.key(), (execution, &Input::Continue), None);
        return Ok(released);
    }
    let why = "the parent execution changed repeatedly: nothing was changed, try again";
    Err(StoreError::Unavailable(why.into()).into())
}

/// Releases an execution. `None`, without any change, if its parent has changed in the meantime.
fn try_release(
    place: Place<'_>,
    execution: ExecutionKey,
    parent: Option<ExecutionKey>,
    act: &Act<'_>,
) -> Result<Option<Released>, EngineError> {
    let Some(parent) = parent else {
        return free(place, execution, None, act).map(|is_free| is_free.then_some(Released::Resumed));
    };
    let Some((head, notified)) = waiting_for(place, parent, execution)? else {
        // Canceled before the release, so that none of its work starts first.
        cancel(place, execution, act)?;
        return free(place, execution, None, act).map(|is_free| is_free.then_some(Released::Canceled));
    };
    let awaiting = AwaitingParent { execution: parent, head, notice: &notified };
    if !free(place, execution, Some(awaiting), act)? {
        return Ok(None);
    }
    // A concurrent commit may have processed the notification of the parent anyway.
    if waiting_for(place, parent, execution)?.is_none() {
        cancel(place, execution, act)?;
        return Ok(Some(Released::Canceled));
    }
    Ok(Some(Released::Resumed))
}

/// The head of the waiting parent, and the id of the message that notifies it of the quarantine. A quarantined parent
/// waits as well and must be readable, since an unreadable one may or may not wait.
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
    let notified = failure_of(&state, child).map(|input| inbox::identity(&input));
    Ok(notified.map(|notified| (Expected { sequence: head.sequence, hash: head.hash }, notified)))
}

fn cancel(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<(), EngineError> {
    let input = Input::Cancel { reason: PARENT_CONTINUED.into(), by: act.by.into() };
    inbox::enqueue(place.store, place.data_dir, place.loader.key(), (execution, &input), None).map(drop)
}

/// Releases the execution in the store. False, without any change, if the parent has changed since its head was read.
fn free(
    place: Place<'_>,
    execution: ExecutionKey,
    parent: Option<AwaitingParent<'_>>,
    act: &Act<'_>,
) -> Result<bool, EngineError> {
    match place.store.release_quarantine(&QuarantineRelease { execution, parent, audited: act.audited(&[]) })? {
        ReleaseOutcome::Released => Ok(true),
        ReleaseOutcome::NotQuarantined => Err(EngineError::NotQuarantined),
        ReleaseOutcome::ParentMoved => Ok(false),
    }
}

/// Ends a quarantined execution without its journal. A sealed note contains the user and the reason. Its parent is
/// notified, and its children are canceled, as far as its journal can be read.
pub fn force_end(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<(), EngineError> {
    quarantined(place, execution)?;
    let mut children: Vec<ExecutionKey> = Vec::new();
    let each = |state: &State, _: &Frame| {
        children = open_children(state).map(|(.., key)| key).collect();
    };
    drop(place.loader.frames(execution, each));
    notify_parent(place, execution)?;
    for child in children {
        let input = Input::Cancel { reason: PARENT_ENDED.into(), by: act.by.into() };
        inbox::enqueue(place.store, place.data_dir, place.loader.key(), (child, &input), None)?;
    }
    let note = Note::sealed(act.key, execution, Subject::Ended, now_ms(), act.by, act.reason);
    if place.store.force_end(&act.audited(&[note]))? {
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
