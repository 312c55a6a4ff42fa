//! Seals of inbox messages: the engine processes only messages that were written with the installation's key.
//!
//! A sealed body is the byte [`SEALED`], an HMAC-SHA-256 of 32 bytes, and the encoded input. Older releases wrote the
//! encoded input alone. It starts with a CBOR array header (0x80 to 0x9f), so the two forms cannot be confused.

use std::sync::Arc;

use mainspring_kernel::{cbor::Writer, hash::Hash, key::ExecutionKey};
use mainspring_store::{Filter, InboxEntry, InboxMessage, ReadLimit, Store, StoreError};

use crate::{
    error::EngineError,
    journal_loader::{LoadError, Loader},
};

const SEALED: u8 = 1;

/// Length of the byte and the seal.
const SEAL_BYTES: usize = 1 + 32;

/// The first version of `decide` of releases with sealed messages. An execution of this version proves that such a
/// release has used the store.
const SEALED_SINCE_DECIDE_VERSION: u32 = 5;

/// The newest executions that are read to check that a store without the mark comes from an older release.
const EXECUTIONS_CHECKED_MAX: usize = 16;

/// Messages per read while those of an older release are sealed.
const MESSAGES_READ_MAX: usize = 256;

/// The name of a mark in the store: its inbox is sealed, and messages without a seal are forgeries.
const MARK: &str = "inbox-sealed";

/// A message that was not written with the installation's key, or was changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forged;

/// Creates the body of a message: the encoded input behind its seal.
pub(super) fn seal(key: &[u8; 32], to: ExecutionKey, id: &str, enqueued_at: u64, input: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(SEAL_BYTES + input.len());
    body.push(SEALED);
    body.extend(code(key, to, id, enqueued_at, input).0);
    body.extend(input);
    body
}

/// Returns the encoded input of a message with a valid seal. A message without a seal is accepted if [`seal_older`]
/// found it in the store of an older release.
pub(super) fn open<'a>(
    store: &dyn Store,
    key: &[u8; 32],
    message: &'a InboxMessage,
) -> Result<Result<&'a [u8], Forged>, StoreError> {
    let InboxMessage { execution, id, body, enqueued_at, .. } = message;
    if let Some((&SEALED, rest)) = body.split_first() {
        let Some((seal, input)) = rest.split_first_chunk::<32>() else { return Ok(Err(Forged)) };
        let expected = code(key, *execution, id, *enqueued_at, input);
        return Ok(if expected.equals_in_constant_time(&Hash(*seal)) { Ok(input) } else { Err(Forged) });
    }
    let kept = store.metadata(&name_of_older(*execution, id))?;
    let expected = code(key, *execution, id, *enqueued_at, body);
    let is_known = kept.and_then(|kept| Hash::parse(&kept)).is_some_and(|kept| expected.equals_in_constant_time(&kept));
    Ok(if is_known { Ok(body) } else { Err(Forged) })
}

/// The encoded input of a message, without a check of the seal.
pub(super) fn unproved(body: &[u8]) -> &[u8] {
    match body.split_first() {
        Some((&SEALED, _)) => body.get(SEAL_BYTES..).unwrap_or_default(),
        _ => body,
    }
}

/// The treatment of messages without a seal in a store without the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsealed {
    /// Accepts them if this process has upgraded the store from a format without seals, and no execution in it was
    /// started by a release with seals.
    OfThisUpgrade,
    /// Refuses them: an earlier process has sealed the store, as a file beside the key proves.
    Refused,
    /// Accepts them, as an operator requested.
    Accepted,
}

/// Seals the messages that an older release left in the inbox. The seals are stored beside the messages. Then it sets
/// the mark, after which a message without a seal is a forgery. Does nothing in a store with the mark.
///
/// An attacker with access to the store can remove the mark, and can make the store appear older. Messages are therefore
/// accepted only by the process that has upgraded the store, or if an operator requested it.
pub fn seal_older(store: &Arc<dyn Store>, key: &[u8; 32], unsealed: Unsealed) -> Result<usize, EngineError> {
    let mark = Hash::keyed(key, &[b"mainspring inbox sealed 1"]).hex();
    let is_accepted = unsealed == Unsealed::Accepted;
    if store.metadata(MARK)?.as_ref() == Some(&mark) && !is_accepted {
        return Ok(0);
    }
    let mut found = Vec::new();
    let partitions: Vec<u32> = (0..store.partitions()?).collect();
    let mut after = 0;
    loop {
        let messages = store.inbox(&partitions, after, ReadLimit::of(MESSAGES_READ_MAX))?;
        let Some(last) = messages.last() else { break };
        after = last.number;
        for InboxEntry { message: InboxMessage { execution, id, body, enqueued_at, .. }, .. } in &messages {
            if body.first() != Some(&SEALED) {
                found.push((name_of_older(*execution, id), code(key, *execution, id, *enqueued_at, body).hex()));
            }
        }
    }
    if !found.is_empty() && !is_accepted {
        if has_sealed(store, key)? {
            tracing::error!(
                messages = found.len(),
                "the store has lost the mark `{MARK}`, which marks inbox messages as sealed: it was changed by \
                 something other than Mainspring; messages without a seal are refused"
            );
            return Ok(0);
        }
        if unsealed == Unsealed::Refused || !store.is_of_unsealed_format() {
            return Err(EngineError::Unsealed(found.len()));
        }
    }
    for (name, seal) in &found {
        store.put_metadata_if_absent(name, seal)?;
    }
    store.put_metadata_if_absent(MARK, &mark)?;
    Ok(found.len())
}

/// True if a release with seals has started one of the newest executions. An unreadable execution counts as one.
fn has_sealed(store: &Arc<dyn Store>, key: &[u8; 32]) -> Result<bool, StoreError> {
    let loader = Loader::new(store.clone(), *key);
    for row in store.executions(&Filter::default(), None, EXECUTIONS_CHECKED_MAX)? {
        match loader.journal(row.key) {
            Ok(Some(read)) if read.journal.state.decide_version < SEALED_SINCE_DECIDE_VERSION => {}
            Ok(_) | Err(LoadError::Broken(_) | LoadError::Newer(_)) => return Ok(true),
            Err(LoadError::Store(error)) => return Err(error),
        }
    }
    Ok(false)
}

fn name_of_older(to: ExecutionKey, id: &str) -> String {
    format!("inbox-message {to} {}", Hash::of(id.as_bytes()).hex())
}

fn code(key: &[u8; 32], to: ExecutionKey, id: &str, enqueued_at: u64, input: &[u8]) -> Hash {
    let mut writer = Writer::default();
    writer.array(4);
    writer.text("mainspring inbox message 1");
    writer.byte_string(&to.0);
    writer.text(id);
    writer.unsigned(enqueued_at);
    Hash::keyed(key, &[&writer.bytes, input])
}
