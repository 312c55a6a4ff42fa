//! Replays a journal into a state, and verifies it.
//!
//! Verification covers the hash chain, the authenticated head, the legality of each record, and that deciding the
//! recorded inputs again gives the recorded results. Reading frames from a store is the engine's work.

use alloc::{
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::fmt;

use crate::{
    apply::apply,
    decide::{DECIDE_VERSION, decide_yielding},
    frame::Frame,
    hash::Hash,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::State,
    stored_frame::{Head, StoredFrame},
};

/// Replays a journal frame by frame. Loading and verification both use it.
#[derive(Debug)]
pub struct Fold {
    /// The state after the frames so far.
    pub state: State,
    next: u64,
    head: Hash,
}

/// A journal that is damaged, incomplete or not from this installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Sequence of the first bad frame.
    pub sequence: u64,
    /// The reason, as a clause whose subject is the frame.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "frame {}: {}", self.sequence, self.why)
    }
}

impl Fold {
    /// Creates a fold that expects the first frame.
    pub fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self { state: State::new(key, plan), next: 0, head: Hash::default() }
    }

    /// Decodes the next frame and checks that it continues the hash chain.
    pub fn read(&self, stored: &StoredFrame) -> Result<(Frame, Hash), Broken> {
        if stored.sequence != self.next {
            return Err(self.broken(format!("it is missing; frame {} stands in its place", stored.sequence)));
        }
        let (frame, hash) = Frame::read(stored).map_err(|error| self.broken(error.to_string()))?;
        if frame.before != self.head {
            return Err(self.broken("it does not continue the frame before it".into()));
        }
        Ok((frame, hash))
    }

    /// Applies the records of the next frame without deciding again.
    pub fn push(&mut self, stored: &StoredFrame) -> Result<Frame, Broken> {
        let (frame, hash) = self.read(stored)?;
        self.check_version(&frame)?;
        for record in &frame.records {
            apply(&mut self.state, record, frame.now).map_err(|illegal| self.broken(illegal.message))?;
        }
        (self.next, self.head) = (self.next + 1, hash);
        Ok(frame)
    }

    /// Decides the input of the next frame again and compares the records. Returns true if it did. If a value in this
    /// frame or before it was erased, the decision cannot be repeated: the frame is only applied, and the result is
    /// false.
    pub fn push_deciding(&mut self, stored: &StoredFrame) -> Result<bool, Broken> {
        if self.state.journal.has_erased || Frame::erased(stored).next().is_some() {
            return self.push(stored).map(|_| false);
        }
        let (frame, hash) = self.read(stored)?;
        self.check_version(&frame)?;
        if let Some(Record::Started { decide_version, .. }) = frame.records.first() {
            self.state.decide_version = *decide_version;
        }
        let mut results = frame.results.iter().cloned();
        let yields_at = match frame.records.last() {
            Some(Record::TurnYielded { results }) => Some(*results),
            _ => None,
        };
        let turn = decide_yielding(&mut self.state, &frame.input, frame.now, yields_at, |evaluations| {
            results.by_ref().take(evaluations.len()).collect()
        });
        let turn = turn.map_err(|illegal| self.broken(illegal.message))?;
        if results.next().is_some() {
            return Err(self.broken("it has results of evaluations that were not requested".into()));
        }
        if turn.records != frame.records {
            let at =
                turn.records.iter().zip(&frame.records).take_while(|(decided, written)| decided == written).count();
            let message = format!("deciding its input again gives another record in place {at}");
            return Err(self.broken(message));
        }
        (self.next, self.head) = (self.next + 1, hash);
        Ok(true)
    }

    /// Checks that the journal ends at its head and that the head is authenticated with `key`.
    pub fn finish(&self, head: &Head, key: &[u8; 32]) -> Result<(), Broken> {
        if !head.is_sealed_by(key, self.state.key) {
            let why = "the journal's head does not bear the seal of this installation's key".into();
            return Err(Broken { sequence: head.sequence, why });
        }
        if self.next != head.sequence + 1 {
            return Err(
                self.broken(format!("it is missing; the head says that the journal ends with frame {}", head.sequence))
            );
        }
        if self.head != head.hash {
            let why = "it is not the frame that the head was sealed over".into();
            return Err(Broken { sequence: head.sequence, why });
        }
        Ok(())
    }

    /// Returns the hash of the last frame so far.
    pub fn head(&self) -> Hash {
        self.head
    }

    /// Returns the sequence that the next frame must have.
    pub fn next_sequence(&self) -> u64 {
        self.next
    }

    fn check_version(&self, frame: &Frame) -> Result<(), Broken> {
        match frame.records.first() {
            Some(Record::Started { decide_version, .. }) if *decide_version > DECIDE_VERSION => Err(self.broken(format!(
                "the execution was started by a newer release (version {decide_version} of decide, this build has {DECIDE_VERSION})"
            ))),
            _ => Ok(()),
        }
    }

    fn broken(&self, why: String) -> Broken {
        Broken { sequence: self.next, why }
    }
}

/// The result of verifying a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Number of frames in the chain.
    pub frames: u64,
    /// Number of frames whose input was decided again, with the same records.
    pub decided_again: u64,
    /// Erased values: the sequence of the frame and the index of the value within it.
    pub erased: Vec<(u64, usize)>,
}

/// Verifies a whole journal against its head, deciding every input again.
pub fn verify(
    key: ExecutionKey,
    plan: Arc<Plan>,
    frames: &[StoredFrame],
    head: &Head,
    sealing_key: &[u8; 32],
) -> Result<Verified, Broken> {
    let mut fold = Fold::new(key, plan);
    let mut verified = Verified { frames: 0, decided_again: 0, erased: Vec::new() };
    for stored in frames {
        verified.erased.extend(Frame::erased(stored).map(|place| (stored.sequence, place)));
        verified.decided_again += u64::from(fold.push_deciding(stored)?);
        verified.frames += 1;
    }
    fold.finish(head, sealing_key)?;
    Ok(verified)
}
