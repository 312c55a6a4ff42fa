//! A turn that is decided on another thread, and the stored form of its frame.

use mainspring_kernel::{
    decide::{Decided, Paused, Turn, decide},
    frame::Frame,
    hash::Hash,
    input::Input,
    key::ExecutionKey,
    state::State,
    stored_frame::StoredFrame,
};

/// A turn to decide on another thread, with the position of its frame in the journal.
#[derive(Debug)]
pub struct UndecidedTurn {
    pub(crate) input: Input,
    pub(crate) now: u64,
    pub(crate) sequence: u64,
    pub(crate) before: Hash,
    pub(crate) salting: [u8; 32],
}

/// The result of a turn that was decided on another thread.
#[derive(Debug)]
pub struct DecidedTurn {
    /// The turn. It has no results and records if the frame contains them.
    pub(crate) turn: Turn,
    /// The stored form of its frame.
    pub(crate) stored: Option<Box<Stored>>,
}

/// A frame, its stored form and its hash.
pub(crate) type Stored = (Frame, StoredFrame, Hash);

impl From<Turn> for DecidedTurn {
    fn from(turn: Turn) -> Self {
        Self { turn, stored: None }
    }
}

impl UndecidedTurn {
    /// Decides the turn, or returns the rest of a turn that needs evaluations.
    ///
    /// # Errors
    /// Fails if the input is illegal in this state. The execution is then to be quarantined with the error as the
    /// reason.
    pub(crate) fn decide(self, state: &mut State) -> Result<Result<DecidedTurn, Box<Paused>>, String> {
        let Self { input, now, sequence, before, salting } = self;
        let mut turn = match decide(state, &input, now).map_err(|illegal| illegal.message)? {
            Decided::Turn(turn) => turn,
            Decided::Paused(paused) => return Ok(Err(paused)),
        };
        if turn.records.is_empty() {
            return Ok(Ok(turn.into()));
        }
        let (results, records) = (std::mem::take(&mut turn.results), std::mem::take(&mut turn.records));
        let frame = Frame { sequence, before, now: state.now, input, results, records };
        let stored = store(&frame, &salting, state.key);
        Ok(Ok(DecidedTurn { turn, stored: Some(Box::new((frame, stored.0, stored.1))) }))
    }
}

pub(crate) fn store(frame: &Frame, salting: &[u8; 32], execution: ExecutionKey) -> (StoredFrame, Hash) {
    frame.store(&|place| salt(salting, execution, frame.sequence, place))
}

/// The salt of a value. It cannot be computed without the key of this process, which is never stored.
fn salt(key: &[u8; 32], execution: ExecutionKey, sequence: u64, place: usize) -> [u8; 16] {
    let hash = Hash::keyed(key, &[&execution.0, &sequence.to_be_bytes(), &(place as u64).to_be_bytes()]);
    let mut salt = [0; 16];
    salt.copy_from_slice(&hash.0[..16]);
    salt
}
