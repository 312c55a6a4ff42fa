//! One run: a node over a store on virtual time, one arrival after another until nothing moves any more.
//!
//! The node is the engine's own shard over the memory store. It is dropped and made anew as often as the faults say;
//! the store, the world and the clock outlive it. Everything that is believed about the execution is read back from what
//! is durable.

mod arrivals;
mod inbox;
mod node;
mod rest;

use std::{collections::BTreeSet, sync::Arc};

use mainspring_engine::{
    load::Loader,
    shard::{Reply, Shard, Ticket},
};
use mainspring_kernel::{frame::Frame, input::Input, key::ExecutionKey, plan::Plan, state::State, stored::StoredFrame};
use mainspring_store::memory::MemoryStore;

use crate::{
    faults::{Fate, Faults},
    mirror::Family,
    picture::picture,
    setup::{START_MS, Setup, keys},
    world::{Made, World},
};

use inbox::Inbox;

/// What came of a run.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    /// The plan that ran.
    pub(crate) plan: Arc<Plan>,
    /// The journal, read.
    pub(crate) frames: Vec<Frame>,
    /// The journal, as it is stored, and those of the executions that it started.
    pub(crate) stored: Vec<StoredFrame>,
    /// What the journal makes.
    pub(crate) state: State,
    /// The calls that were made.
    pub(crate) calls: Vec<Made>,
    /// The names of the scripts that were called for.
    pub(crate) scripts_used: BTreeSet<String>,
    /// When nothing moved any more.
    pub(crate) ended_at: u64,
    /// Entries of the inbox that never had their time.
    pub(crate) notes: Vec<String>,
}

/// A run that broke a rule which holds for every workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Which, and how.
    pub(crate) why: String,
    /// The journal so far.
    pub(crate) picture: String,
}

/// Runs a workflow with these faults. The seed decides where they strike.
pub(crate) fn run(setup: &Setup, faults: Faults, seed: u64) -> Result<Finished, Broken> {
    let mut run = Run::new(setup, faults, seed).map_err(|why| Broken { why, picture: String::new() })?;
    match run.play() {
        Ok(()) => Ok(run.finished()),
        Err(why) => Err(Broken { why, picture: picture(&setup.plan, &run.family.root().frames) }),
    }
}

struct Run<'a> {
    setup: &'a Setup,
    store: MemoryStore,
    loader: Loader,
    node: Shard,
    world: World,
    family: Family,
    inbox: Inbox,
    fate: Fate,
    now: u64,
    /// The clock of the node: behind the world's only while a node comes back that died over an input.
    node_now: u64,
    /// The time of the last arrival that was dealt with.
    settled_at: u64,
    /// Every input that was taken in, in order.
    log: Vec<(ExecutionKey, Input)>,
    /// The input that is on its way into the node.
    delivering: Option<(ExecutionKey, Input)>,
    /// The last letter that was handed to the node.
    letters_seen: u64,
    ticket: Ticket,
    /// The answer to the last ticket.
    reply: Option<Reply>,
    /// Commits that the store has refused and that the node has not yet complained of.
    stalls: u32,
}

impl<'a> Run<'a> {
    fn new(setup: &'a Setup, faults: Faults, seed: u64) -> Result<Self, String> {
        let store = MemoryStore::new();
        let (mut world, mut fate) = (World::new(setup.effects.clone()), Fate::new(faults, seed));
        Ok(Self {
            setup,
            loader: Loader::new(Arc::new(store.clone()), keys().sealing),
            node: node::fresh(&store, &mut fate)?,
            store,
            inbox: Inbox::new(setup, &mut world)?,
            world,
            family: Family::new(setup.key, setup.plan.clone()),
            fate,
            now: START_MS,
            node_now: START_MS,
            settled_at: START_MS,
            log: Vec::new(),
            delivering: None,
            letters_seen: 0,
            ticket: Ticket(0),
            reply: None,
            stalls: 0,
        })
    }

    fn finished(self) -> Finished {
        Finished {
            plan: self.setup.plan.clone(),
            state: self.family.root().state().clone(),
            calls: self.world.made(),
            scripts_used: self.world.used(),
            ended_at: self.now,
            notes: self.inbox.notes(),
            stored: self.family.stored(),
            frames: self.family.into_root().frames,
        }
    }
}
