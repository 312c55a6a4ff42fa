//! Inbox messages: inputs from other processes and nodes for the executions of a node. This module seals, enqueues
//! and decodes them. The driver receives them.

mod seal;

use std::{fmt::Display, os::unix::net::UnixDatagram, sync::Arc};

use mainspring_kernel::{
    effect::{Outcome, undecodable},
    hash::Hash,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
};
use mainspring_store::{
    AuditEntry, EnqueueRequest, InboxEntry, InboxMessage, ReadLimit, Store, StoreError, StoredPlan, partition_of,
};

use crate::{
    clock::now_ms,
    data_dir::DataDir,
    error::EngineError,
    execution_keys::new_key,
    journal_loader::{LoadError, Loader, is_newer, read_plan},
    shard::protocol::{Event, NewExecution, PendingInput},
    start_request::not_started,
    start_request::{StartRequest, row},
};

pub use seal::{Unsealed, seal_older};

/// Messages per read while searching for one.
const MESSAGES_PER_PAGE: usize = 1_000;

/// Creates the sealed message with an input for an execution, in a store with this number of partitions.
pub fn message(
    key: &[u8; 32],
    execution: ExecutionKey,
    input: &Input,
    partitions: u32,
    enqueued_at: u64,
) -> InboxMessage {
    let partition = partition_of(execution, partitions);
    sealed(key, InboxMessage { execution, partition, id: identity(input), body: input.encode(), enqueued_at })
}

/// Seals the body of a message, an encoded input.
pub fn sealed(key: &[u8; 32], message: InboxMessage) -> InboxMessage {
    let body = seal::seal(key, message.execution, &message.id, message.enqueued_at, &message.body);
    InboxMessage { body, ..message }
}

/// Enqueues an input for an execution, with an optional audit entry, and wakes the engine of the folder. Returns the id
/// of the message. The installation's key seals message and audit log.
pub fn enqueue(
    store: &dyn Store,
    data_dir: Option<&DataDir>,
    key: &[u8; 32],
    (execution, input): (ExecutionKey, &Input),
    audit: Option<&AuditEntry>,
) -> Result<String, EngineError> {
    put(store, data_dir, key, (execution, input), &[], audit)
}

/// The first `limit` messages of a store, or fewer if a page is smaller.
pub fn waiting(store: &dyn Store, limit: usize) -> Result<Vec<InboxEntry>, StoreError> {
    let partitions: Vec<u32> = (0..store.partitions()?).collect();
    store.inbox(&partitions, 0, ReadLimit::of(limit))
}

/// True if the inbox has a message of this execution, with this id or with any. It reads all pages.
pub fn is_waiting(store: &dyn Store, execution: ExecutionKey, id: Option<&str>) -> Result<bool, StoreError> {
    let is_meant = |message: &InboxMessage| message.execution == execution && id.is_none_or(|id| message.id == id);
    let mut after = 0;
    loop {
        let partition = partition_of(execution, store.partitions()?);
        let page = store.inbox(&[partition], after, ReadLimit::of(MESSAGES_PER_PAGE))?;
        if page.iter().any(|arrived| is_meant(&arrived.message)) {
            return Ok(true);
        }
        // A page can be short because of its bytes, so only an empty one is the last.
        let Some(last) = page.last() else { return Ok(false) };
        after = last.number;
    }
}

/// Enqueues a message in the right partition, even if the number of partitions changes in the meantime.
fn put(
    store: &dyn Store,
    data_dir: Option<&DataDir>,
    key: &[u8; 32],
    (execution, input): (ExecutionKey, &Input),
    plans: &[StoredPlan],
    audit: Option<&AuditEntry>,
) -> Result<String, EngineError> {
    let audit = audit.map_or(&[][..], std::slice::from_ref);
    loop {
        let partitions = store.partitions()?;
        let message = message(key, execution, input, partitions, now_ms());
        if store.enqueue(&EnqueueRequest { message: &message, plans, partitions, audit, sealing: *key })? {
            store.notify(&[message.partition]);
            data_dir.into_iter().for_each(wake);
            return Ok(message.id);
        }
    }
}

/// The id of a message: equal inputs have equal ids. It covers everything that determines the effect of an input, and
/// nothing that is only stored with it, such as a reason.
pub(crate) fn identity(input: &Input) -> String {
    match input {
        Input::Start(_) => "start".into(),
        Input::Decide { instance, gate, decision, by, .. } => {
            let rounds: String = instance.rounds.iter().map(|round| format!("[{round}]")).collect();
            format!("decide {}{rounds} {gate} {} {by}", instance.step, decision.name())
        }
        Input::Signal { id, .. } => format!("signal {id}"),
        Input::Message { id, .. } => format!("message {id}"),
        Input::Cancel { .. } => "cancel".into(),
        Input::SkipCleanup { .. } => "skip cleanup".into(),
        Input::Admit => "admit".into(),
        Input::Migrate { plan, .. } => format!("migrate {}", Hash::of(&plan.0).prefixed()),
        Input::Receipt { .. } | Input::Timer(_) | Input::Continue | Input::ChildWaits { .. } | Input::Lease { .. } => {
            Hash::of(&input.encode()).prefixed()
        }
    }
}

/// Enqueues the start of an execution. If an execution of this key exists, its second start has no effect.
pub fn enqueue_start(
    store: &dyn Store,
    data_dir: Option<&DataDir>,
    mut request: StartRequest,
    key: &[u8; 32],
) -> Result<ExecutionKey, EngineError> {
    if let Some(id) = &request.execution_id
        && let Some(row) = store.execution_by_id(id)?
    {
        return Ok(row.key);
    }
    let execution = new_key()?;
    let (plans, audit) = (request.stored_plans(), request.take_audit(execution));
    let input = Input::Start(Box::new(request.start(execution)));
    put(store, data_dir, key, (execution, &input), &plans, audit.as_deref())?;
    Ok(execution)
}

/// A lost wake-up only delays the messages until the next poll.
fn wake(data_dir: &DataDir) {
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.send_to(&[1], data_dir.wakeup_socket());
    }
}

/// The reason why a message is not received.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageError {
    /// It cannot be decoded, and never will be.
    Unreadable(String),
    /// It was not sealed with the installation's key: it is deleted without an effect. A forged start carries the
    /// parent that it names, which proves nothing.
    Forged(Option<ExecutionKey>),
    /// The store did not answer, or a newer release started the execution. The message stays in the inbox and is read
    /// again with the next poll.
    Unavailable,
}

/// Converts a message to an event of the shard. Only a message with a valid seal is accepted.
pub fn event_of(store: &dyn Store, key: &[u8; 32], message: InboxMessage) -> Result<Event, MessageError> {
    event_by(store, key, message, |hash| read_plan(store, hash).map(|plan| plan.map(Arc::new)))
}

/// The same, with cached plans. Blocks.
pub(crate) fn event_from(loader: &Loader, message: InboxMessage) -> Result<Event, MessageError> {
    event_by(&**loader.store(), loader.key(), message, |hash| loader.plan(hash))
}

fn event_by(
    store: &dyn Store,
    key: &[u8; 32],
    message: InboxMessage,
    plan: impl FnOnce(Hash) -> Result<Option<Arc<Plan>>, LoadError>,
) -> Result<Event, MessageError> {
    let unreadable =
        |why: String| MessageError::Unreadable(format!("the message `{}` cannot be read: {why}", message.id));
    let opened = seal::open(store, key, &message).map_err(|_| MessageError::Unavailable)?;
    let input = opened.map_err(|seal::Forged| MessageError::Forged(claimed_parent(&message)))?;
    let input = match Input::decode(input) {
        Ok(input) => input,
        Err(error) => match (is_newer(store, message.execution), Input::decode_receipt_head(input)) {
            (Ok(false), Some(head)) => undecodable_receipt(head, &error),
            (Ok(false), None) => return Err(unreadable(error.to_string())),
            (Ok(true) | Err(_), _) => return Err(MessageError::Unavailable),
        },
    };
    let input = match input {
        Input::Receipt { instance, attempt, outcome } => {
            Input::Receipt { instance, attempt, outcome: outcome.decodable() }
        }
        input => input,
    };
    let Input::Start(start) = input else {
        let queued = PendingInput { input, message: Some(message.id.into()), ticket: None, audit: None };
        return Ok(Event::Take(message.execution, queued));
    };
    let plan = match plan(start.plan_hash) {
        Ok(Some(plan)) => Ok(plan),
        Ok(None) => Err("its plan is not stored".to_owned()),
        Err(LoadError::Broken(why)) => Err(why),
        Err(LoadError::Store(_) | LoadError::Newer(_)) => return Err(MessageError::Unavailable),
    };
    let plan = match (plan, start.lineage.as_ref().and_then(|lineage| lineage.parent.as_ref())) {
        (Ok(plan), _) => plan,
        // A child that has not started has no journal to quarantine.
        (Err(why), Some(parent)) => {
            let (execution, parent) = (message.execution, parent.clone());
            let failure = not_started(execution, &why);
            return Ok(Event::TurnChildAway { execution, message: message.id.into(), parent, failure });
        }
        (Err(why), None) => return Err(unreadable(why)),
    };
    let row = row(message.execution, &start, &plan, message.enqueued_at);
    // The store contains the plans, since they were read from it.
    let stored_plans = Vec::new();
    let (execution, message) = (message.execution, Some(message.id.into()));
    let (ticket, audit) = (None, None);
    Ok(Event::Start(Box::new(NewExecution { execution, plan, stored_plans, start, row, message, ticket, audit })))
}

/// Replaces a receipt whose outcome cannot be decoded by one that fails the attempt, so that its step continues without it.
fn undecodable_receipt((instance, attempt): (Instance, u32), why: &dyn Display) -> Input {
    Input::Receipt { instance, attempt, outcome: Outcome::Failed(undecodable(why)) }
}

/// The parent that a forged start names.
fn claimed_parent(message: &InboxMessage) -> Option<ExecutionKey> {
    let input = Input::decode(seal::unproved(&message.body)).ok().filter(|_| message.id == START)?;
    let Input::Start(start) = input else { return None };
    Some(start.lineage?.parent?.execution)
}

/// The id of the message that starts a child.
const START: &str = "start";

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::{plan::Decision, value::Value};

    fn decide(step: u32, rounds: &[u32], gate: u32, decision: Decision, by: &str, reason: &str) -> String {
        let instance = Instance { step, rounds: rounds.to_vec() };
        identity(&Input::Decide { instance, gate, decision, by: by.into(), reason: reason.into() })
    }

    #[test]
    fn the_message_id_covers_every_field_of_a_decision() {
        let first = decide(1, &[], 1, Decision::Approve, "ada", "why");
        assert_eq!(decide(1, &[], 1, Decision::Approve, "ada", "why else"), first);
        for other in [
            decide(2, &[], 1, Decision::Approve, "ada", "why"),
            decide(1, &[1], 1, Decision::Approve, "ada", "why"),
            decide(1, &[], 2, Decision::Approve, "ada", "why"),
            decide(1, &[], 1, Decision::Deny, "ada", "why"),
            decide(1, &[], 1, Decision::Approve, "bob", "why"),
        ] {
            assert_ne!(other, first);
        }
        let signal =
            |id: &str, name: &str| identity(&Input::Signal { id: id.into(), name: name.into(), payload: Value::Null });
        assert_eq!(signal("a", "go"), signal("a", "stop"), "the second of one identity is no message");
        assert_ne!(signal("a", "go"), signal("b", "go"));
    }
}
