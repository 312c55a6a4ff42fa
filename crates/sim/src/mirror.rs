//! What the store holds, folded as it grows: the simulator believes nothing else about an execution.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use mainspring_kernel::{
    frame::Frame, input::Timer, journal::Fold, key::ExecutionKey, plan::Plan, state::State, stored::StoredFrame,
};
use mainspring_store::Store;

use crate::world::World;

/// Frames read at a time.
const FRAMES_AT_A_TIME: usize = 1024;

/// The durable journal and what it makes.
#[derive(Debug)]
pub(crate) struct Mirror {
    fold: Fold,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stored: Vec<StoredFrame>,
    /// When each timer came about, in the order of everything.
    pub(crate) timers: BTreeMap<(u64, Timer), u64>,
}

impl Mirror {
    pub(crate) fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self { fold: Fold::new(key, plan), frames: Vec::new(), stored: Vec::new(), timers: BTreeMap::new() }
    }

    pub(crate) fn state(&self) -> &State {
        &self.fold.state
    }

    /// Reads what was written since, and tells the world of the calls that may be made now. Timers come about before the
    /// calls of the same commit. Gives the new frames' places.
    pub(crate) fn catch_up(&mut self, store: &dyn Store, world: &mut World) -> Result<Range<usize>, String> {
        let before = self.frames.len();
        let mut calls = Vec::new();
        let mut stops = Vec::new();
        loop {
            let key = self.fold.state.key;
            let new =
                store.frames(key, self.fold.next_sequence(), FRAMES_AT_A_TIME).map_err(|error| error.to_string())?;
            if new.is_empty() {
                break;
            }
            for stored in new {
                let frame = self.fold.push(&stored).map_err(|broken| broken.to_string())?;
                crate::invariants::check(self.state())?;
                self.number_timers(world);
                for record in &frame.records {
                    match record {
                        mainspring_kernel::record::Record::AttemptStarted { instance, .. } => {
                            calls.extend(
                                mainspring_kernel::decide::open_attempt(self.state(), instance)
                                    .map(|attempt| (instance.clone(), attempt)),
                            );
                        }
                        mainspring_kernel::record::Record::AttemptStopping { instance, attempt, .. } => {
                            stops.push((instance.clone(), *attempt));
                        }
                        _ => {}
                    }
                }
                self.frames.push(frame);
                self.stored.push(stored);
            }
        }
        for (instance, attempt) in calls {
            world.expect(&instance, attempt)?;
        }
        for (instance, number) in stops {
            world.expect_stop(&instance, number);
        }
        Ok(before..self.frames.len())
    }

    fn number_timers(&mut self, world: &mut World) {
        let timers = &self.fold.state.timers;
        self.timers.retain(|timer, _| timers.contains(timer));
        for timer in timers {
            if !self.timers.contains_key(timer) {
                self.timers.insert(timer.clone(), world.next_order());
            }
        }
    }
}
