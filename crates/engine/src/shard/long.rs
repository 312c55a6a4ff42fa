//! Long turns. While several organizations share the driver, a turn that may have thousands of records is decided on
//! another thread, like a turn with functions, and the driver continues with other executions.

use mainspring_kernel::{
    decide::{Decided, Paused, Turn, decide},
    frame::Frame,
    hash::Hash,
    input::{Input, Timer},
    key::ExecutionKey,
    plan::{Plan, Work},
    state::State,
    stored_frame::StoredFrame,
};

use super::{ExecutionEntry, PendingInput, Shard};
use crate::{
    evaluator::Rest,
    limits::{LONG_TURN_RECORDS, SHORT_PLAN_STEPS_MAX},
};

/// A turn to decide on another thread, with the position of its frame in the journal.
#[derive(Debug)]
pub struct Whole {
    input: Input,
    now: u64,
    sequence: u64,
    before: Hash,
    salting: [u8; 32],
}

/// The result of a turn that was decided on another thread.
#[derive(Debug)]
pub struct Decision {
    /// The turn. It has no results and records if the frame contains them.
    pub(crate) turn: Turn,
    /// The stored form of its frame.
    pub(crate) stored: Option<Box<Stored>>,
}

/// A frame, its stored form and its hash.
pub(crate) type Stored = (Frame, StoredFrame, Hash);

impl From<Turn> for Decision {
    fn from(turn: Turn) -> Self {
        Self { turn, stored: None }
    }
}

impl Whole {
    /// Decides the turn, or returns the rest of a turn that needs evaluations.
    ///
    /// # Errors
    /// Fails if the input is illegal in this state. The execution is then to be quarantined with the error as the
    /// reason.
    pub(crate) fn decide(self, state: &mut State) -> Result<Result<Decision, Box<Paused>>, String> {
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
        Ok(Ok(Decision { turn, stored: Some(Box::new((frame, stored.0, stored.1))) }))
    }
}

pub(super) fn store(frame: &Frame, salting: &[u8; 32], execution: ExecutionKey) -> (StoredFrame, Hash) {
    frame.store(&|place| salt(salting, execution, frame.sequence, place))
}

/// The salt of a value. It cannot be computed without the key of this process, which is never stored.
fn salt(key: &[u8; 32], execution: ExecutionKey, sequence: u64, place: usize) -> [u8; 16] {
    let hash = Hash::keyed(key, &[&execution.0, &sequence.to_be_bytes(), &(place as u64).to_be_bytes()]);
    let mut salt = [0; 16];
    salt.copy_from_slice(&hash.0[..16]);
    salt
}

impl Shard {
    /// Makes the shard act as if several organizations always shared the driver: for tests.
    pub fn share_always(&mut self) {
        self.queues.activity.share_always();
    }

    /// True after [`share_always`](Self::share_always).
    pub fn is_always_shared(&self) -> bool {
        self.queues.activity.is_always_shared()
    }

    /// Returns the turn for an input if it is to be decided on another thread. A turn that ends the execution is
    /// decided here: it abandons a turn in progress, and would otherwise abandon itself.
    pub(super) fn whole(&self, now: u64, execution: ExecutionKey, queued: &PendingInput) -> Option<Rest> {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return None };
        let may_be_long = match &queued.input {
            Input::Cancel { .. } | Input::Timer(Timer::Deadline) => false,
            Input::Start(_) => is_long(&loaded.state.plan),
            // Each first turn is split. A plan of few steps without loops has a short turn behind it.
            _ => {
                loaded.last_records >= LONG_TURN_RECORDS || loaded.state.journal.is_split && is_long(&loaded.state.plan)
            }
        };
        (may_be_long && self.queues.activity.is_shared()).then(|| {
            Rest::Whole(Box::new(Whole {
                input: queued.input.clone(),
                now,
                sequence: loaded.next_sequence,
                before: loaded.head,
                salting: self.keys.salting,
            }))
        })
    }
}

/// True if the first turn of a plan may be long.
fn is_long(plan: &Plan) -> bool {
    plan.steps.len() > SHORT_PLAN_STEPS_MAX || plan.steps.iter().any(|step| matches!(step.work, Work::Loop(_)))
}
