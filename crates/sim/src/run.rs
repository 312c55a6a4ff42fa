//! One run: a node over a store on virtual time, with one event after another until the execution ends or only waits.
//!
//! The node is the engine's own shard over the memory store. Faults drop it and make a new one; the store, the
//! environment and the clock survive that. All knowledge about the execution is read back from the durable journal.

mod arrivals;
mod final_checks;
mod inbox;
mod node;

use std::{collections::BTreeSet, sync::Arc};

use mainspring_engine::{
    journal_loader::Loader,
    shard::{Reply, Shard, Ticket},
};
use mainspring_kernel::{
    frame::Frame, input::Input, key::ExecutionKey, plan::Plan, state::State, stored_frame::StoredFrame,
};
use mainspring_store::memory::MemoryStore;

use crate::{
    faults::{FaultInjector, Faults},
    fixture::{Fixture, START_MS, keys},
    journal_mirror::JournalTree,
    picture::picture,
    world::{Made, World},
};

use inbox::Inbox;

/// The result of a run.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) plan: Arc<Plan>,
    /// The decoded journal.
    pub(crate) frames: Vec<Frame>,
    /// The stored journal, and those of the executions that it started.
    pub(crate) stored: Vec<StoredFrame>,
    /// The state after the journal.
    pub(crate) state: State,
    /// The calls that were made.
    pub(crate) calls: Vec<Made>,
    /// The names of the scripts that were used.
    pub(crate) scripts_used: BTreeSet<String>,
    /// The time of the last event.
    pub(crate) ended_at: u64,
    /// The entries of the inbox that had no effect, by number, with a sentence about each: its condition never occurred,
    /// or no gate was open.
    pub(crate) missed: Vec<(usize, String)>,
}

/// A run that violated a rule for all workflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The rule and the violation.
    pub(crate) why: String,
    /// The journal so far as text.
    pub(crate) picture: String,
}

/// Runs a workflow with these faults. The seed decides when they occur.
pub(crate) fn run(fixture: &Fixture, faults: Faults, seed: u64) -> Result<Finished, Broken> {
    let mut run = Run::new(fixture, faults, seed).map_err(|why| Broken { why, picture: String::new() })?;
    match run.play() {
        Ok(()) => Ok(run.finished()),
        Err(why) => Err(Broken { why, picture: picture(&fixture.plan, &run.tree.root().frames) }),
    }
}

struct Run<'a> {
    fixture: &'a Fixture,
    store: MemoryStore,
    loader: Loader,
    node: Shard,
    world: World,
    tree: JournalTree,
    inbox: Inbox,
    injector: FaultInjector,
    now: u64,
    /// The clock of the node: behind the simulator's only while a node recovers from a crash during an input.
    node_now: u64,
    /// The time of the last event that was completely processed.
    settled_at: u64,
    /// All accepted inputs, in order.
    log: Vec<(ExecutionKey, Input)>,
    /// The input that is being delivered.
    delivering: Option<(ExecutionKey, Input)>,
    /// The number of the last message that was passed to the node.
    inbox_cursor: u64,
    ticket: Ticket,
    /// The reply to the last ticket.
    reply: Option<Reply>,
    /// Commits that the store has rejected and that the node has not reported yet.
    stalls: u32,
}

impl<'a> Run<'a> {
    fn new(fixture: &'a Fixture, faults: Faults, seed: u64) -> Result<Self, String> {
        let store = MemoryStore::new();
        let (mut world, mut injector) =
            (World::new(fixture.effects.clone(), fixture.answers.clone()), FaultInjector::new(faults, seed));
        Ok(Self {
            fixture,
            loader: Loader::new(Arc::new(store.clone()), keys().sealing),
            node: node::fresh(&store, &mut injector)?,
            store,
            inbox: Inbox::new(fixture, &mut world)?,
            world,
            tree: JournalTree::new(fixture.key, fixture.plan.clone()),
            injector,
            now: START_MS,
            node_now: START_MS,
            settled_at: START_MS,
            log: Vec::new(),
            delivering: None,
            inbox_cursor: 0,
            ticket: Ticket(0),
            reply: None,
            stalls: 0,
        })
    }

    fn finished(self) -> Finished {
        Finished {
            plan: self.fixture.plan.clone(),
            state: self.tree.root().state().clone(),
            calls: self.world.made(),
            scripts_used: self.world.used(),
            ended_at: self.now,
            missed: self.inbox.missed(),
            stored: self.tree.stored(),
            frames: self.tree.into_root().frames,
        }
    }
}
