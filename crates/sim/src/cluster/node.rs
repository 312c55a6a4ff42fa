//! A node of the cluster: one life after another, each a fresh shard that knows nothing but what the store tells it.
//!
//! A life is a process. It does with its shard what the engine's rim does, in the rim's order: what waits is taken in
//! first, and what comes of it is carried out then. What it looks for is in `looking`, what it holds in `owning`.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use mainspring_effects::Executors;
use mainspring_engine::{
    lease::{Leases, Terms},
    member::{Member, Word},
    shard::{Event, Fate, GivenUp, LoadAnswer, Queued, Shard},
};
use mainspring_kernel::{
    decide::DECIDE_VERSION, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey, record::Record,
};
use mainspring_store::{Answer, Arrived, CommitError, Due, partition_of};

use super::{
    Cluster, Happening,
    aside::{Answered, Aside},
    clocks::Clocks,
    line::What,
    looking::LOOK_FOR_LETTERS_MS,
    misfortune::LEASE_MS,
    owning::ToAdopt,
    work,
};
use crate::{faults::Dice, setup::keys};

/// A place where a node may live.
pub(super) struct Node {
    pub(super) life: u32,
    /// Names that this life has had. A process whose name is used up goes on under another.
    pub(super) names: u32,
    pub(super) shard: Option<Shard>,
    pub(super) member: Option<Member>,
    pub(super) executors: Executors,
    /// It does nothing before this.
    pub(super) paused_until: u64,
    /// Its word is not answered before this, and it is given no journal before that.
    pub(super) held_up_until: u64,
    pub(super) unreadable_until: u64,
    pub(super) clocks: Clocks,
    pub(super) letters_out: BTreeMap<u64, u32>,
    /// How often it has forgotten its letters.
    pub(super) generation: u64,
    /// Whether a look for new letters is on its way, and whether one is to follow.
    pub(super) is_looking: bool,
    pub(super) looks_again: bool,
    pub(super) letters_seen: u64,
    pub(super) giving_up: GivenUp,
    /// How much is being passed on to which executions.
    pub(super) passing_on: BTreeMap<ExecutionKey, usize>,
    /// Attempts of which it is to be found out what became of them, when the inbox has been looked at.
    pub(super) to_adopt: Vec<ToAdopt>,
    pub(super) is_looking_to_adopt: bool,
    /// When it says its next word; `None` while one is on its way.
    pub(super) speaks_at: Option<u64>,
    /// Whether its last word was heard and answered late.
    pub(super) was_late: bool,
    pub(super) aside: Aside,
    /// Whether a commit is on its way, and how long the next one waits because the last was not written.
    pub(super) in_flight: bool,
    pub(super) is_commit_slow: bool,
    pub(super) pause_ms: u64,
    /// It ends what it performs, begins nothing and is about to leave.
    pub(super) is_draining: bool,
    /// It has given the store up on its way out.
    pub(super) is_over: bool,
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
    Drain,
    Speak,
    LookForLetters,
    Hint(Vec<u32>),
    Spoken(GivenUp, Word),
    Committed(u64, Result<Vec<Answer>, CommitError>),
    Loaded(ExecutionKey, u64, Box<LoadAnswer>),
    /// Letters that were read when the node had forgotten its letters so often; all of some partitions.
    Letters(Vec<Arrived>, Option<Vec<u32>>, u64),
    /// A look for new letters has ended.
    LookedForLetters(u64, Option<Vec<Arrived>>),
    Due(Vec<Due>),
    /// The inbox was looked at when the node had forgotten its letters so often, or could not be.
    Looked(Vec<ToAdopt>, Option<u64>),
    PassedOn(ExecutionKey),
    Adopted(ExecutionKey, Instance, u32, Fate),
    Ended(ExecutionKey, Instance, u32, Outcome),
    Attend(ExecutionKey),
    /// What concerns quarantined executions.
    Aside(Answered),
    /// Whose answer somebody waits for.
    Ask(Event),
    Event(Event),
}

impl Inner {
    /// Whether it stands in the queue of what reaches a process, and is not what a process does when nothing waits.
    fn is_command(&self) -> bool {
        !matches!(self, Self::Wake | Self::Resume | Self::Speak | Self::LookForLetters)
    }
}

/// How all names of a process begin.
pub(super) fn names_of(node: usize, life: u32) -> String {
    format!("node {node}, life {life}, name ")
}

impl Node {
    pub(super) fn absent(dice: &mut Dice) -> Self {
        Self::new(Clocks::of(dice))
    }

    fn new(clocks: Clocks) -> Self {
        Self {
            life: 0,
            names: 0,
            shard: None,
            member: None,
            executors: Executors::default(),
            paused_until: 0,
            held_up_until: 0,
            unreadable_until: 0,
            clocks,
            letters_out: BTreeMap::new(),
            generation: 0,
            is_looking: false,
            looks_again: false,
            letters_seen: 0,
            giving_up: GivenUp::default(),
            passing_on: BTreeMap::new(),
            to_adopt: Vec::new(),
            is_looking_to_adopt: false,
            aside: Aside::default(),
            speaks_at: None,
            was_late: false,
            in_flight: false,
            is_commit_slow: false,
            pause_ms: 0,
            is_draining: false,
            is_over: false,
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

    /// What the process is called now.
    pub(super) fn name(&self) -> String {
        self.member.as_ref().map(|member| member.name().to_owned()).unwrap_or_default()
    }

    /// Gives the process a name that nobody had.
    pub(super) fn call_anew(&mut self, node: usize, store: Arc<dyn mainspring_store::Store>) {
        self.names += 1;
        let known = mainspring_store::Node {
            name: format!("{}{}", names_of(node, self.life), self.names),
            place: "simulated".into(),
            release: "0".into(),
            decide_version: self.decide_version,
            takes: true,
        };
        self.member = Some(Member::new(store, Terms { lease_ms: LEASE_MS }, known));
    }

    pub(super) fn holds_execution(&self, execution: ExecutionKey) -> bool {
        let partitions = self.shard.as_ref().map_or(1, Shard::partitions);
        self.holds().contains(&partition_of(execution, partitions))
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
        let executors = work::executors(!self.strikes(self.misfortune.unable));
        let store = Arc::new(self.store.clone());
        let Node { clocks, life, .. } = self.nodes[node];
        let mut shard = Shard::new(Leases::none(), keys(), resting_bytes_max);
        // Some lives go by as if several organizations shared the driver.
        if life % 2 == 1 {
            shard.share_always();
        }
        self.nodes[node] = Node {
            life: life + 1,
            decide_version: if is_old { DECIDE_VERSION - 1 } else { DECIDE_VERSION },
            shard: Some(shard),
            executors,
            ..Node::new(clocks)
        };
        self.nodes[node].call_anew(node, store);
        self.speak_in(node, 0);
        self.at(LOOK_FOR_LETTERS_MS, Happening::Node(node, life + 1, Inner::LookForLetters));
        Ok(())
    }

    /// The node and whatever it performs are gone at once. It comes back some time.
    pub(super) fn crash(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            self.calls.kill(node, self.nodes[node].life);
            self.vanish(node);
        }
        Ok(())
    }

    fn vanish(&mut self, node: usize) {
        self.nodes[node].shard = None;
        self.nodes[node].member = None;
        let after = self.dice.below(3 * LEASE_MS);
        self.at(after, Happening::Begin(node));
    }

    /// The node is asked to leave: it hears of that when it gets to it.
    pub(super) fn leave(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            let life = self.nodes[node].life;
            self.at(0, Happening::Node(node, life, Inner::Drain));
        }
        Ok(())
    }

    fn drain(&mut self, node: usize) {
        self.nodes[node].is_draining = true;
        self.stop_all(node);
    }

    /// The store did not write on the way out: what was decided is decided again elsewhere.
    pub(super) fn give_in(&mut self, node: usize) {
        self.nodes[node].is_over = true;
        self.stop_all(node);
    }

    fn stop_all(&mut self, node: usize) {
        for (execution, instance, attempt) in self.calls.of(node, self.nodes[node].life) {
            self.stop(node, execution, &instance, attempt);
        }
    }

    /// What was out has ended and is written or passed on: the node says that it leaves, and is gone.
    fn end_if_drained(&mut self, node: usize) {
        let place = &self.nodes[node];
        let Some((shard, member)) = place.shard.as_ref().zip(place.member.clone()) else { return };
        let is_busy = !place.passing_on.is_empty()
            || place.aside.is_telling()
            || !place.is_over && (place.in_flight || shard.has_waiting());
        if place.is_draining && !is_busy && self.calls.of(node, place.life).is_empty() {
            self.ask_store(node, What::Leave(member));
            self.vanish(node);
        }
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
        let stands_in_the_midst = matches!(inner, Inner::Resume);
        self.obey(node, inner)?;
        if !stands_in_the_midst && self.has_more_for(node, life) {
            return Ok(());
        }
        self.carry(node)?;
        if self.nodes[node].paused_until <= self.now {
            self.nodes[node].landed.clear();
            self.end_if_drained(node);
        }
        Ok(())
    }

    /// Whether a command waits for a node at this very moment. All that wait are taken in before anything is carried out.
    fn has_more_for(&self, node: usize, life: u32) -> bool {
        let next = self.queue.peek().filter(|Reverse((at, _))| *at <= self.now);
        let next = next.and_then(|Reverse((_, order))| self.happenings.get(order));
        matches!(next, Some(Happening::Node(of, in_life, inner)) if (*of, *in_life) == (node, life) && inner.is_command())
    }

    fn obey(&mut self, node: usize, inner: Inner) -> Result<(), String> {
        let life = self.nodes[node].life;
        match inner {
            Inner::Wake => {
                self.nodes[node].wakes_at = None;
                self.handle(node, Event::Wake);
            }
            Inner::Resume => {}
            Inner::Drain => self.drain(node),
            Inner::Speak => self.speak(node),
            Inner::LookForLetters => {
                self.look_at(node, self.nodes[node].holds());
                self.look_for_quarantined(node);
                self.at(LOOK_FOR_LETTERS_MS, Happening::Node(node, life, Inner::LookForLetters));
            }
            Inner::Hint(partitions) => self.hear(node, &partitions),
            Inner::Spoken(given_up, word) => self.spoken(node, &given_up, word),
            Inner::Committed(flight, answer) => self.committed(node, flight, answer),
            Inner::Loaded(execution, number, answer) => {
                self.meet_quarantined(node, execution, &answer);
                self.handle(node, Event::Loaded(execution, number, answer));
            }
            // What was read before letters were forgotten is of no use.
            Inner::Letters(_, _, generation) if generation != self.nodes[node].generation => {}
            Inner::Letters(letters, all_of, _) => self.take_letters(node, letters, all_of)?,
            Inner::LookedForLetters(generation, found) => self.looked_for_letters(node, generation, found)?,
            Inner::Due(due) => self.handle(node, Event::Due(due)),
            Inner::Looked(asked, read) => {
                self.looked(node, asked, read == Some(self.nodes[node].generation));
            }
            Inner::PassedOn(execution) => self.passed_on(node, execution),
            Inner::Adopted(execution, instance, attempt, fate) => {
                self.handle(node, Event::Adopted { execution, instance, attempt, fate });
            }
            Inner::Ended(execution, instance, attempt, outcome) => {
                self.ended(node, execution, instance, attempt, outcome);
            }
            Inner::Attend(execution) => self.attend(node, execution),
            Inner::Aside(answered) => self.hear_aside(node, answered),
            Inner::Ask(_) if self.nodes[node].is_draining => {}
            Inner::Ask(event) | Inner::Event(event) => self.handle(node, event),
        }
        Ok(())
    }

    fn committed(&mut self, node: usize, flight: u64, answer: Result<Vec<Answer>, CommitError>) {
        let place = &mut self.nodes[node];
        let is_it = |(by, written, _): &(u32, u64, Vec<Record>)| (*by, *written) == (place.life, flight);
        let landed = place.written.iter().position(is_it);
        place.landed.extend(landed.into_iter().flat_map(|at| place.written.swap_remove(at).2));
        (place.in_flight, place.is_commit_slow) = (false, false);
        if !matches!(answer, Err(CommitError::NotWritten(_))) {
            place.pause_ms = 0;
        }
        self.handle(node, Event::Committed { flight, answer });
    }

    pub(super) fn handle(&mut self, node: usize, event: Event) {
        let now = self.now;
        let place = &mut self.nodes[node];
        let reading = place.clocks.read(now);
        if let Some(shard) = &mut place.shard {
            shard.expire(reading);
            shard.handle(shard.now(reading), event);
        }
    }

    fn ended(&mut self, node: usize, execution: ExecutionKey, instance: Instance, attempt: u32, outcome: Outcome) {
        let life = self.nodes[node].life;
        let Some(outcome) = self.calls.end(execution, &instance, attempt, outcome) else { return };
        // A stop that nobody decided on is no receipt: the attempt stays open.
        if self.nodes[node].is_draining && matches!(outcome, Outcome::Stopped(_)) {
            return;
        }
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
        let known_ms = place.shard.as_ref().map_or(0, |shard| shard.now(place.clocks.read(self.now)));
        let at = self.now + at.saturating_sub(known_ms).max(1);
        if place.wakes_at.is_some_and(|known| known <= at) {
            return;
        }
        let life = place.life;
        self.nodes[node].wakes_at = Some(at);
        self.at(at - self.now, Happening::Node(node, life, Inner::Wake));
    }
}
