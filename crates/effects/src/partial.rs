//! Partial texts of attempts in progress, for people who watch an execution. Nothing of them is durable.
//!
//! A text is kept while its attempt runs, up to a bound, and every watcher reads it from its own position. So no attempt
//! waits for a watcher, a slow watcher reads larger pieces, and a late one gets the text from its beginning.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_kernel::{effect::Attempt, key::ExecutionKey};
use tokio::sync::watch;

use crate::secrets::Redactor;

/// The bytes of the text of one attempt. People read the result of a longer one.
const ATTEMPT_BYTES_MAX: usize = 64 * 1024;

/// The bytes of all texts of one execution: some branches at a time.
const EXECUTION_BYTES_MAX: usize = 256 * 1024;

/// The bytes of all texts of one organization, so that many long answers leave room to others.
const ORGANIZATION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The bytes of all texts of a process.
const ALL_BYTES_MAX: usize = 32 * 1024 * 1024;

const _: () = assert!(ATTEMPT_BYTES_MAX <= EXECUTION_BYTES_MAX && EXECUTION_BYTES_MAX <= ORGANIZATION_BYTES_MAX);
const _: () = assert!(ORGANIZATION_BYTES_MAX <= ALL_BYTES_MAX);

/// The partial texts of a process.
#[derive(Debug, Clone, Default)]
pub struct PartialTexts(Arc<Mutex<Texts>>);

#[derive(Debug, Default)]
struct Texts {
    executions: BTreeMap<ExecutionKey, OfExecution>,
    bytes: usize,
    by_organization: BTreeMap<Option<String>, usize>,
}

/// The texts of an execution. Exists while it has a text or a watcher.
#[derive(Debug, Default)]
struct OfExecution {
    attempts: BTreeMap<AttemptId, OfAttempt>,
    bytes: usize,
    /// Counts the changes.
    changed: watch::Sender<u64>,
}

/// A step instance, and the number of the attempt.
type AttemptId = (String, u32);

#[derive(Debug, Default)]
struct OfAttempt {
    text: String,
    /// True if a bound was reached, so the text does not grow any more.
    is_cut: bool,
}

/// A piece of the text of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Name of the step instance.
    pub step: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// The text, which follows the pieces before.
    pub text: String,
    /// True if the attempt has more text than is kept for watchers.
    pub is_cut: bool,
}

/// The text of one attempt, which its executor extends. The text is removed when this is dropped.
#[derive(Debug)]
pub struct PartialText {
    texts: PartialTexts,
    execution: ExecutionKey,
    organization: Option<String>,
    id: AttemptId,
    redactors: Vec<Redactor>,
    /// For each redactor, the end of the text that may become a value with what follows.
    pending: Vec<String>,
}

/// Reads the texts of an execution.
#[derive(Debug)]
pub struct PartialWatch {
    texts: PartialTexts,
    execution: ExecutionKey,
    changed: watch::Receiver<u64>,
    /// The bytes of each text that were read, and true if its cut was.
    read: BTreeMap<AttemptId, (usize, bool)>,
}

impl PartialTexts {
    /// Reads the texts of an execution from now on. Texts of attempts in progress are read from their beginning.
    pub fn watch(&self, execution: ExecutionKey) -> PartialWatch {
        let changed = self.lock().executions.entry(execution).or_default().changed.subscribe();
        PartialWatch { texts: self.clone(), execution, changed, read: BTreeMap::new() }
    }

    /// The text of an attempt, which is empty. The values of the redactor are removed from it.
    pub fn text(&self, attempt: &Attempt, redactor: Redactor) -> PartialText {
        PartialText {
            texts: self.clone(),
            execution: attempt.execution,
            organization: attempt.organization.clone(),
            id: (attempt.step.clone(), attempt.number),
            redactors: vec![redactor],
            pending: vec![String::new()],
        }
    }

    fn lock(&self) -> MutexGuard<'_, Texts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Texts {
    fn push(&mut self, text: &PartialText, more: &str) {
        let of_organization = self.by_organization.entry(text.organization.clone()).or_default();
        let execution = self.executions.entry(text.execution).or_default();
        let attempt = execution.attempts.entry(text.id.clone()).or_default();
        if attempt.is_cut {
            return;
        }
        let rooms = [
            (ATTEMPT_BYTES_MAX, attempt.text.len()),
            (EXECUTION_BYTES_MAX, execution.bytes),
            (ORGANIZATION_BYTES_MAX, *of_organization),
            (ALL_BYTES_MAX, self.bytes),
        ];
        let room = rooms.iter().map(|(most, kept)| most.saturating_sub(*kept)).min().unwrap_or_default();
        let length = more.floor_char_boundary(room);
        attempt.text.push_str(&more[..length]);
        attempt.is_cut = length < more.len();
        execution.bytes += length;
        *of_organization += length;
        self.bytes += length;
        execution.changed.send_modify(|count| *count += 1);
    }

    fn remove(&mut self, text: &PartialText) {
        let Some(execution) = self.executions.get_mut(&text.execution) else { return };
        if let Some(removed) = execution.attempts.remove(&text.id) {
            let bytes = removed.text.len();
            execution.bytes -= bytes;
            self.bytes -= bytes;
            if let Some(of_organization) = self.by_organization.get_mut(&text.organization) {
                *of_organization -= bytes;
                if *of_organization == 0 {
                    self.by_organization.remove(&text.organization);
                }
            }
        }
        self.remove_unused(text.execution);
    }

    fn remove_unused(&mut self, execution: ExecutionKey) {
        let is_unused = |of: &OfExecution| of.attempts.is_empty() && of.changed.receiver_count() == 0;
        if self.executions.get(&execution).is_some_and(is_unused) {
            self.executions.remove(&execution);
        }
    }
}

impl PartialText {
    /// Removes the values of a further redactor.
    #[must_use]
    pub fn redacted(mut self, redactor: Redactor) -> Self {
        self.redactors.push(redactor);
        self.pending.push(String::new());
        self
    }

    /// Extends the text. An end that may become the value of a secret is shown with what follows.
    pub fn push(&mut self, more: &str) {
        let mut more = more.to_owned();
        for (redactor, pending) in self.redactors.iter().zip(&mut self.pending) {
            pending.push_str(&more);
            let rest = pending.split_off(redactor.settled(pending));
            more = redactor.text(std::mem::replace(pending, rest));
            if pending.len() > ATTEMPT_BYTES_MAX {
                // A text that is a secret from here on is not shown at all.
                pending.clear();
            }
        }
        if !more.is_empty() {
            self.texts.lock().push(self, &more);
        }
    }
}

impl Drop for PartialText {
    fn drop(&mut self) {
        self.texts.lock().remove(self);
    }
}

impl PartialWatch {
    /// Waits until there is something to read. Does not return while there is nothing.
    pub async fn changed(&mut self) {
        while !self.has_unread() {
            if self.changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn has_unread(&self) -> bool {
        let texts = self.texts.lock();
        let Some(execution) = texts.executions.get(&self.execution) else { return false };
        execution.attempts.iter().any(|(id, attempt)| {
            let read = self.read.get(id).copied().unwrap_or_default();
            read != (attempt.text.len(), attempt.is_cut)
        })
    }

    /// Returns what has not been read, up to a number of bytes. The rest is read by the next call.
    pub fn take(&mut self, bytes_max: usize) -> Vec<Piece> {
        let texts = self.texts.lock();
        let Some(execution) = texts.executions.get(&self.execution) else { return Vec::new() };
        // An attempt with the same number does not begin again while this process performs it.
        self.read.retain(|id, _| execution.attempts.contains_key(id));
        let (mut left, mut pieces) = (bytes_max, Vec::new());
        for (id, attempt) in &execution.attempts {
            let read = self.read.entry(id.clone()).or_default();
            let unread = &attempt.text[read.0..];
            let piece = &unread[..unread.floor_char_boundary(left)];
            let is_cut = attempt.is_cut && piece.len() == unread.len();
            if piece.is_empty() && is_cut == read.1 {
                continue;
            }
            left -= piece.len();
            *read = (read.0 + piece.len(), is_cut);
            pieces.push(Piece { step: id.0.clone(), attempt: id.1, text: piece.to_owned(), is_cut });
        }
        pieces
    }
}

impl Drop for PartialWatch {
    fn drop(&mut self) {
        let mut texts = self.texts.lock();
        // This receiver is counted until it is dropped.
        let (_, unwatched) = watch::channel(0);
        drop(std::mem::replace(&mut self.changed, unwatched));
        texts.remove_unused(self.execution);
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::{hash::Hash, secret::SecretUses, value::Value};

    use super::*;
    use crate::secrets::SecretValue;

    fn attempt(step: &str, organization: Option<&str>) -> Attempt {
        Attempt {
            execution: ExecutionKey::new(0, [0; 10]),
            root: ExecutionKey::new(0, [0; 10]),
            execution_id: "e1".into(),
            organization: organization.map(Into::into),
            workflow_id: None,
            step: step.into(),
            number: 1,
            effect: "agent".into(),
            params: Value::Null,
            intent: Hash::of(b"intent"),
            flags: mainspring_kernel::effect::AttemptFlags::default(),
            handed_out_at: 0,
            workspace: None,
            secrets: SecretUses::default(),
            progress: None,
        }
    }

    fn texts(pieces: Vec<Piece>) -> String {
        pieces.into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn watchers_read_from_their_own_positions_and_buffers_are_freed() {
        let all = PartialTexts::default();
        let (a, key) = (attempt("a", None), attempt("a", None).execution);
        let mut early = all.watch(key);
        let mut text = all.text(&a, Redactor::default());
        text.push("one ");
        assert_eq!(texts(early.take(100)), "one ");
        assert_eq!(early.take(100), []);
        text.push("zwölf");
        let mut late = all.watch(key);
        assert_eq!(texts(late.take(7)), "one zw", "no character is split");
        assert!(late.has_unread());
        assert_eq!(texts(late.take(100)), "ölf");
        assert_eq!(texts(early.take(100)), "zwölf");
        drop(text);
        assert!(!early.has_unread());
        drop((early, late));
        let texts = all.lock();
        assert!(texts.executions.is_empty() && texts.by_organization.is_empty() && texts.bytes == 0);
    }

    #[test]
    fn texts_are_bounded_by_attempt_execution_and_organization() {
        let all = PartialTexts::default();
        let mut kept = Vec::new();
        let mut watch = all.watch(attempt("", None).execution);
        for number in 0..6 {
            let mut text = all.text(&attempt(&format!("s{number}"), Some("acme")), Redactor::default());
            text.push(&"x".repeat(ATTEMPT_BYTES_MAX - 1));
            text.push("ää");
            text.push("never");
            kept.push(text);
        }
        assert_eq!(all.lock().bytes, 4 * (ATTEMPT_BYTES_MAX - 1) + 4, "of the execution");
        let pieces = watch.take(usize::MAX);
        assert!(pieces.iter().all(|piece| piece.is_cut), "watchers learn that there is more");
        assert_eq!(watch.take(usize::MAX), []);
    }

    /// A secret split over two pieces is the case that a redactor of single pieces misses.
    #[test]
    fn split_and_encoded_secrets_are_redacted() {
        let secret = "Tr0ub4dor&3 \u{e4}x";
        let forms = [
            secret.to_owned(),
            "Tr0ub4\n  dor&3 \u{e4}x".to_owned(),
            "Tr0ub4dor%263%20%C3%A4x".to_owned(),
            "Tr0ub4dor%2526%33 \u{e4}x".to_owned(),
            "Tr0ub4dor\\u00263 \\u00e4x".to_owned(),
            "\\u0054r0ub4dor&3 \u{e4}x".to_owned(),
            "Tr0ub4dor&amp;3 \u{e4}x".to_owned(),
            secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ];
        let value = || SecretValue::new(secret).expect("a secret");
        for form in &forms {
            let said = format!("before Tr0 {form} and after{}", " the end".repeat(9));
            let whole = Redactor::new([value()]).text(said.clone());
            assert!(whole.contains("***"), "{form}: {whole}");
            let ends: Vec<usize> = (0..=said.len()).filter(|at| said.is_char_boundary(*at)).collect();
            for first in &ends {
                let all = PartialTexts::default();
                let mut watch = all.watch(attempt("a", None).execution);
                let mut text = all.text(&attempt("a", None), Redactor::default()).redacted(Redactor::new([value()]));
                text.push(&said[..*first]);
                text.push(&said[*first..]);
                assert_eq!(texts(watch.take(10_000)), whole, "{form} split at {first}");
            }
            let all = PartialTexts::default();
            let mut watch = all.watch(attempt("a", None).execution);
            let mut text = all.text(&attempt("a", None), Redactor::new([value()]));
            said.chars().for_each(|letter| text.push(&letter.to_string()));
            assert_eq!(texts(watch.take(10_000)), whole, "{form} letter by letter");
        }
    }
}
