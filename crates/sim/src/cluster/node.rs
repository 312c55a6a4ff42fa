//! A node of the cluster: one life after another, each a fresh shard that knows nothing but what the store tells it.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_engine::{
    inbox,
    lease::{Leases, Terms, Tick},
    member::{Member, Word},
    shard::{Event, Fate, LoadAnswer, Queued, Shard},
};
use mainspring_kernel::{
    decide::DECIDE_VERSION, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey, record::Record,
};
use mainspring_store::{Answer, Arrived, CommitError, Due, Fence};

use super::{Cluster, Happening, line::What, misfortune::LEASE_MS};
use crate::{faults::Dice, setup::keys};

/// How often a node looks at its inbox and at its timers.
const LOOK_FOR_LETTERS_MS: u64 = 1_000;

/// A place where a node may live.
pub(super) struct Node {
    pub(super) life: u32,
    pub(super) shard: Option<Shard>,
    pub(super) member: Option<Member>,
    /// It does nothing before this.
    pub(super) paused_until: u64,
    /// What its own clock is before or behind, and by how many thousandths it runs fast.
    skew_ms: u64,
    drift: u64,
    letters_out: BTreeSet<u64>,
    pub(super) letters_seen: u64,
    pub(super) giving_up: Vec<Fence>,
    is_speaking: bool,
    /// When it is woken next.
    wakes_at: Option<u64>,
    /// The newest version of decide that it knows.
    decide_version: u32,
    /// Records that were written, by the life and the flight that wrote them, until the answer is heard.
    pub(super) written: Vec<(u32, u64, Vec<Record>)>,
    /// Those of the answer that is being carried out.
    pub(super) landed: Vec<Record>,
}

/// Something that happens to a node in a life.
#[derive(Debug)]
pub(super) enum Inner {
    Wake,
    Resume,
    Speak,
    LookForLetters,
    Hint(Vec<u32>),
    Spoken(Vec<Fence>, Word),
    Committed(u64, Result<Vec<Answer>, CommitError>),
    Loaded(ExecutionKey, Box<LoadAnswer>),
    Letters(Vec<Arrived>, bool),
    Due(Vec<Due>),
    Adopted(ExecutionKey, Instance, u32),
    Ended(ExecutionKey, Instance, u32, Outcome),
    Event(Event),
}

pub(super) fn name(node: usize, life: u32) -> String {
    format!("node {node}, life {life}")
}

impl Node {
    pub(super) fn absent(dice: &mut Dice) -> Self {
        Self {
            life: 0,
            shard: None,
            member: None,
            paused_until: 0,
            skew_ms: dice.below(2_000),
            drift: dice.below(60),
            letters_out: BTreeSet::new(),
            letters_seen: 0,
            giving_up: Vec::new(),
            is_speaking: false,
            wakes_at: None,
            decide_version: DECIDE_VERSION,
            written: Vec::new(),
            landed: Vec::new(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.shard.is_some()
    }

    pub(super) fn is_old(&self) -> bool {
        self.is_alive() && self.decide_version < DECIDE_VERSION
    }

    pub(super) fn is_life(&self, life: u32) -> bool {
        self.is_alive() && self.life == life
    }

    /// Its clock that never goes back, which runs a little slow or fast.
    pub(super) fn tick(&self, now: u64) -> Tick {
        Tick(now - now / 1000 * self.drift)
    }

    pub(super) fn wall(&self, now: u64) -> u64 {
        now + self.skew_ms
    }

    pub(super) fn holds(&self) -> Vec<u32> {
        self.shard.iter().flat_map(Shard::held).collect()
    }
}

impl Cluster {
    pub(super) fn begin(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            return Ok(());
        }
        let resting_bytes_max = *self.dice.pick(&[usize::MAX, 0, 4096]);
        // Sometimes a node of an older release works beside the others.
        let is_old = self.strikes(20);
        let place = &mut self.nodes[node];
        place.life += 1;
        place.decide_version = if is_old { DECIDE_VERSION - 1 } else { DECIDE_VERSION };
        let known = mainspring_store::Node {
            name: name(node, place.life),
            place: "simulated".into(),
            release: "0".into(),
            decide_version: place.decide_version,
        };
        place.member = Some(Member::new(Arc::new(self.store.clone()), Terms { lease_ms: LEASE_MS }, known));
        place.shard = Some(Shard::new(Leases::none(), keys(), resting_bytes_max));
        place.written.clear();
        (place.letters_seen, place.paused_until, place.wakes_at) = (0, 0, None);
        place.letters_out.clear();
        place.giving_up.clear();
        place.is_speaking = false;
        let life = place.life;
        self.at(0, Happening::Node(node, life, Inner::Speak));
        self.at(LOOK_FOR_LETTERS_MS, Happening::Node(node, life, Inner::LookForLetters));
        Ok(())
    }

    /// The node and whatever it performs are gone at once. It comes back some time.
    pub(super) fn crash(&mut self, node: usize) -> Result<(), String> {
        if !self.nodes[node].is_alive() {
            return Ok(());
        }
        let life = self.nodes[node].life;
        self.calls.kill(node, life);
        self.nodes[node].shard = None;
        self.nodes[node].member = None;
        let after = self.dice.below(3 * LEASE_MS);
        self.at(after, Happening::Begin(node));
        Ok(())
    }

    /// The node stops what it performs, says that it leaves, and is gone.
    pub(super) fn leave(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            self.ask_store(node, What::Leave);
        }
        self.crash(node)
    }

    /// Whether an execution was begun by rules that a node does not know.
    pub(super) fn is_too_new(&self, node: usize, execution: ExecutionKey) -> bool {
        self.ledger.decide_version(execution) > self.nodes[node].decide_version
    }

    pub(super) fn strike_node(&mut self, node: usize, life: u32, inner: Inner) -> Result<(), String> {
        let place = &self.nodes[node];
        if !place.is_life(life) {
            return Ok(());
        }
        if place.paused_until > self.now {
            let after = place.paused_until - self.now;
            self.at(after, Happening::Node(node, life, inner));
            return Ok(());
        }
        match inner {
            Inner::Wake => {
                self.nodes[node].wakes_at = None;
                self.handle(node, Event::Wake);
            }
            Inner::Resume => {}
            Inner::Speak => self.speak(node),
            Inner::LookForLetters => {
                let partitions = self.nodes[node].holds();
                self.ask_store(node, What::Look { partitions, after: None });
                self.at(LOOK_FOR_LETTERS_MS, Happening::Node(node, life, Inner::LookForLetters));
            }
            Inner::Hint(partitions) => {
                if self.nodes[node].holds().iter().any(|held| partitions.contains(held)) {
                    self.look_for_letters(node);
                }
            }
            Inner::Spoken(given_up, word) => self.spoken(node, &given_up, word),
            Inner::Committed(flight, answer) => {
                let place = &mut self.nodes[node];
                let landed = place.written.iter().position(|(by, written, _)| (*by, *written) == (life, flight));
                place.landed = landed.map(|at| place.written.swap_remove(at).2).unwrap_or_default();
                self.handle(node, Event::Committed { flight, answer });
            }
            Inner::Loaded(execution, answer) => self.handle(node, Event::Loaded(execution, answer)),
            Inner::Letters(letters, is_all) => self.take_letters(node, letters, is_all)?,
            Inner::Due(due) => self.handle(node, Event::Due(due)),
            Inner::Adopted(execution, instance, attempt) => {
                let fate = Fate::Interrupted;
                self.handle(node, Event::Adopted { execution, instance, attempt, fate });
            }
            Inner::Ended(execution, instance, attempt, outcome) => {
                self.ended(node, execution, instance, attempt, outcome);
            }
            Inner::Event(event) => self.handle(node, event),
        }
        self.carry(node)?;
        self.nodes[node].landed.clear();
        Ok(())
    }

    pub(super) fn handle(&mut self, node: usize, event: Event) {
        let now = self.now;
        let place = &mut self.nodes[node];
        let (tick, wall) = (place.tick(now), place.wall(now));
        if let Some(shard) = &mut place.shard {
            shard.expire(tick);
            shard.handle(wall, event);
        }
    }

    fn speak(&mut self, node: usize) {
        let place = &mut self.nodes[node];
        if std::mem::replace(&mut place.is_speaking, true) {
            return;
        }
        let (given_up, sent_at) = (place.giving_up.clone(), place.tick(self.now));
        self.ask_store(node, What::Speak { given_up, sent_at });
    }

    fn spoken(&mut self, node: usize, given_up: &[Fence], word: Word) {
        let place = &mut self.nodes[node];
        place.is_speaking = false;
        let life = place.life;
        match word {
            Word::Heard(heard) => {
                place.giving_up.retain(|fence| !given_up.contains(fence));
                self.handle(node, Event::Heard(heard));
            }
            Word::Lapsed => {
                // A new life of the same process: its calls go on, and nothing is its own any more.
                self.handle(node, Event::Lapsed);
                self.rename(node);
                return;
            }
            Word::Unheard(_) => {}
        }
        let pause = Terms { lease_ms: LEASE_MS }.beat_every_ms();
        self.at(pause, Happening::Node(node, life, Inner::Speak));
    }

    /// A process whose name is used up goes on under another. Here it is a crash that takes no time.
    fn rename(&mut self, node: usize) {
        let life = self.nodes[node].life;
        self.calls.kill(node, life);
        self.nodes[node].shard = None;
        self.nodes[node].member = None;
        self.at(0, Happening::Begin(node));
    }

    pub(super) fn look_for_letters(&mut self, node: usize) {
        let (partitions, after) = (self.nodes[node].holds(), self.nodes[node].letters_seen);
        self.ask_store(node, What::Look { partitions, after: Some(after) });
    }

    pub(super) fn forget_letters(&mut self, node: usize) {
        self.nodes[node].letters_seen = 0;
        self.nodes[node].letters_out.clear();
    }

    fn take_letters(&mut self, node: usize, letters: Vec<Arrived>, is_all: bool) -> Result<(), String> {
        if is_all {
            let waiting: BTreeSet<u64> = letters.iter().map(|arrived| arrived.number).collect();
            self.nodes[node].letters_out.retain(|number| waiting.contains(number));
        }
        for arrived in letters {
            let place = &mut self.nodes[node];
            place.letters_seen = place.letters_seen.max(arrived.number);
            if !place.letters_out.insert(arrived.number) {
                continue;
            }
            let times = if self.strikes(self.misfortune.twice) { 2 } else { 1 };
            for _ in 0..times {
                let event = inbox::event_of(&self.store, arrived.letter.clone());
                let event = event.map_err(|untaken| format!("a letter cannot be taken in: {untaken:?}"))?;
                self.handle(node, event);
            }
        }
        Ok(())
    }

    fn ended(&mut self, node: usize, execution: ExecutionKey, instance: Instance, attempt: u32, outcome: Outcome) {
        let life = self.nodes[node].life;
        let Some(outcome) = self.calls.end(execution, &instance, attempt, outcome) else { return };
        let input = Input::Receipt { instance: instance.clone(), attempt, outcome: outcome.clone() };
        if self.strikes(self.misfortune.twice) {
            let again = Queued::silent(input.clone());
            let after = self.dice.below(3_000);
            self.at(after, Happening::Node(node, life, Inner::Event(Event::Take(execution, again))));
        }
        self.handle(node, Event::Take(execution, Queued::silent(input)));
    }

    /// The node asks to be woken for its next timer.
    pub(super) fn set_alarm(&mut self, node: usize) {
        let place = &self.nodes[node];
        let Some(at) = place.shard.as_ref().and_then(Shard::next_wake) else { return };
        let at = at.saturating_sub(place.skew_ms).max(self.now + 1);
        if place.wakes_at.is_some_and(|known| known <= at) {
            return;
        }
        let life = place.life;
        self.nodes[node].wakes_at = Some(at);
        self.at(at - self.now, Happening::Node(node, life, Inner::Wake));
    }
}
