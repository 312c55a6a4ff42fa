//! Long turns. While several organizations share the driver, a turn that may have thousands of records is decided on another
//! thread, as a turn with functions is: the driver goes on with the others meanwhile.

use mainspring_kernel::{
    decide::{Decided, Paused, Turn, decide},
    frame::Frame,
    hash::Hash,
    input::{Input, Timer},
    key::ExecutionKey,
    plan::{Plan, Work},
    state::State,
    stored::StoredFrame,
};

use super::{Cell, Queued, Shard, salt};
use crate::{
    evaluator::Rest,
    limits::{LONG_TURN_RECORDS, SHORT_PLAN_STEPS_MAX},
};

/// A turn that is decided elsewhere, and where its frame stands in the journal.
#[derive(Debug)]
pub struct Whole {
    input: Input,
    now: u64,
    sequence: u64,
    before: Hash,
    salting: [u8; 32],
}

/// What came of a turn that was decided elsewhere.
#[derive(Debug)]
pub struct Decision {
    /// The turn; without results and records, if the frame has them.
    pub(crate) turn: Turn,
    /// Its frame, as it is stored.
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
    /// Decides the turn. What waits for evaluations comes back as it is.
    ///
    /// # Errors
    /// Fails where the state and the input do not go together: the execution is to be set aside for that reason.
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

/// The stored form of a frame, and its hash.
pub(super) fn store(frame: &Frame, salting: &[u8; 32], execution: ExecutionKey) -> (StoredFrame, Hash) {
    frame.store(&|place| salt(salting, execution, frame.sequence, place))
}

impl Shard {
    /// From now on, as if several organizations always shared the driver: for tests of what is done then.
    pub fn share_always(&mut self) {
        self.sharing.share_always();
    }

    /// The turn for an input, if it is to be decided elsewhere. What ends an execution is decided here: it abandons the turn
    /// that is out, and would abandon itself again and again.
    pub(super) fn whole(&self, now: u64, execution: ExecutionKey, queued: &Queued) -> Option<Rest> {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return None };
        let may_be_long = match &queued.input {
            Input::Cancel { .. } | Input::Timer(Timer::Deadline) => false,
            Input::Start(_) => is_long(&live.state.plan),
            _ => live.state.is_split || live.last_records >= LONG_TURN_RECORDS,
        };
        (may_be_long && self.sharing.is_shared()).then(|| {
            Rest::Whole(Box::new(Whole {
                input: queued.input.clone(),
                now,
                sequence: live.next_sequence,
                before: live.head,
                salting: self.keys.salting,
            }))
        })
    }
}

/// Whether the first turn of a plan may be long.
fn is_long(plan: &Plan) -> bool {
    plan.steps.len() > SHORT_PLAN_STEPS_MAX || plan.steps.iter().any(|step| matches!(step.work, Work::Loop(_)))
}
