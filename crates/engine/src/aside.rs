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
use mainspring_store::{AuditEntry, HeadRow, Noted, Store};

use crate::{EngineError, engine::now_ms, home::Home, inbox, load::Loader};

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
pub(crate) fn tell_parent(place: Place<'_>, child: ExecutionKey) -> Result<bool, EngineError> {
    let Some(parent) = parent_of(place, child)? else { return Ok(false) };
    let Some(state) = going_on(place, parent)? else { return Ok(false) };
    let waiting = open_children(&state).find(|(.., key)| *key == child);
    let Some((instance, attempt, _)) = waiting else { return Ok(false) };
    let message =
        format!("the workflow that was started, {child}, was quarantined: `mainspring quarantine list` says why");
    let outcome = Outcome::Failed(Failure::new(Class::Internal, CHILD_QUARANTINED, message));
    let input = Input::Receipt { instance, attempt, outcome };
    inbox::post(place.store, place.home, place.loader.key(), (parent, &input), None)?;
    Ok(true)
}

/// The execution that waits for a child, as the child's row or its first frame says.
fn parent_of(place: Place<'_>, child: ExecutionKey) -> Result<Option<ExecutionKey>, EngineError> {
    if let Some(parent) = place.store.execution(child)?.and_then(|row| row.parent) {
        return Ok(Some(parent));
    }
    let mut parent = None;
    // As far as it can be read: the first frame says it.
    let each = |state: &State, _: &Frame| parent = state.lineage.parent.as_ref().map(|parent| parent.execution);
    drop(place.loader.frames(child, each));
    Ok(parent)
}

/// The state of an execution that can go on.
fn going_on(place: Place<'_>, execution: ExecutionKey) -> Result<Option<State>, EngineError> {
    match place.store.head(execution)? {
        Some(HeadRow { ended: false, quarantined: None, .. }) => {}
        _ => return Ok(None),
    }
    Ok(place.loader.journal(execution)?.map(|read| read.journal.state))
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

/// Takes an execution out of quarantine if its journal verifies. One whose parent does not wait for it any more is
/// canceled with that: its work counts for nobody, and may be going on in another attempt.
pub fn release(place: Place<'_>, execution: ExecutionKey, act: &Act<'_>) -> Result<Released, EngineError> {
    quarantined(place, execution)?;
    place.loader.verify(execution)?;
    let state = place.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?.journal.state;
    let is_waited_for = match &state.lineage.parent {
        None => true,
        Some(parent) => {
            let parent = going_on(place, parent.execution)?;
            parent.is_some_and(|parent| open_children(&parent).any(|(.., key)| key == execution))
        }
    };
    // Before it is released: nothing of it may begin first.
    if !is_waited_for {
        let input = Input::Cancel { reason: PARENT_WENT_ON.into(), by: act.by.into() };
        inbox::post(place.store, place.home, place.loader.key(), (execution, &input), None)?;
    }
    place.store.release(execution, &act.noted(&[]))?;
    // Wakes whoever works on it: a message that changes nothing where nothing waits for a place.
    let _ = inbox::post(place.store, place.home, place.loader.key(), (execution, &Input::Continue), None);
    Ok(if is_waited_for { Released::GoesOn } else { Released::Canceled })
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
