//! The network between nodes and store: requests are delayed, fail, or lose their responses.

use std::sync::Arc;

use mainspring_engine::{
    clock::Reading,
    inbox,
    member::{Member, Word},
    shard::{GivenUp, LoadAnswer},
};
use mainspring_kernel::{frame::Frame, input::Input, key::ExecutionKey, record::Record};
use mainspring_store::{
    Batch, CommitError, EnqueueRequest, PartOutcome, ReadLimit, Refusal, RemoteAttempt, Store, StoreError, partition_of,
};

use crate::setup::keys;

use super::{
    Cluster, Happening, aside, looking::LOOK_FOR_LETTERS_MS, misfortune::LEASE_MS, node::Inner, owning::ToAdopt,
};

/// A request of a node to the store.
pub(super) struct Asked {
    pub(super) node: usize,
    pub(super) life: u32,
    pub(super) what: What,
}

pub(super) enum What {
    Commit {
        flight: u64,
        batch: Arc<Batch>,
        fate: CommitFate,
    },
    Load(ExecutionKey, u64),
    /// A heartbeat, under the name that the process had when it sent it.
    Speak {
        member: Member,
        given_up: GivenUp,
        is_leaving: bool,
        sent_at: Reading,
    },
    /// A read of the inbox: all messages of the partitions with the due timers, or the messages after a number.
    Look {
        partitions: Vec<u32>,
        after: Option<u64>,
        /// Counter of inbox resets at the node when the request was sent.
        generation: u64,
    },
    /// A read of the whole inbox, which precedes the recovery of attempts.
    LookToAdopt(Vec<u32>, u64, Vec<ToAdopt>),
    PassOn(Passing),
    StopRemote(RemoteAttempt),
    Leave(Member),
    /// A request about quarantined executions.
    Aside(aside::Asked),
}

/// A receipt that the node forwards to the inbox of the owner.
pub(super) struct Passing {
    pub(super) execution: ExecutionKey,
    pub(super) input: Input,
    /// The attempt, if the store lists it as running at this node under this name.
    pub(super) remote: Option<RemoteAttempt>,
    pub(super) name: String,
    /// The time of the first try.
    pub(super) since: u64,
}

/// The outcome that is drawn for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitFate {
    Fine,
    Slow,
    NotWritten,
    UnknownWritten,
    UnknownNotWritten,
    CrashBefore,
    CrashAfter,
}

impl CommitFate {
    fn word(self) -> &'static str {
        match self {
            Self::Fine => "written",
            Self::Slow => "slow",
            Self::NotWritten => "not written",
            Self::UnknownWritten => "unknown, written",
            Self::UnknownNotWritten => "unknown, not written",
            Self::CrashBefore => "crash before",
            Self::CrashAfter => "crash after",
        }
    }

    fn is_written(self) -> bool {
        matches!(self, Self::Fine | Self::Slow | Self::UnknownWritten | Self::CrashAfter)
    }
}

impl Cluster {
    /// Sends a request to the store. It arrives after a few milliseconds, or later if it is slow.
    pub(super) fn ask_store(&mut self, node: usize, what: What) {
        let slow = match &what {
            What::Commit { fate, .. } => *fate == CommitFate::Slow,
            What::PassOn(_) => self.strikes(self.misfortune.slow_posts),
            _ => false,
        };
        let mut delay = if slow { self.dice.below(2 * LEASE_MS) } else { self.dice.below(4) };
        if matches!(&what, What::Commit { .. }) {
            delay += self.nodes[node].pause_ms + self.gathers_ms(node);
        }
        let life = self.nodes[node].life;
        self.at(delay, Happening::Store(Asked { node, life, what }));
    }

    /// Draws the outcome of a commit.
    pub(super) fn fate_of_commit(&mut self, node: usize, batch: &Batch) -> CommitFate {
        if self.is_about_to_lapse(node) {
            return *self.dice.pick(&[CommitFate::UnknownWritten, CommitFate::UnknownNotWritten]);
        }
        if self.swallows_beginnings(batch) {
            return CommitFate::UnknownNotWritten;
        }
        let chances = [
            (self.misfortune.crash_around_commit, CommitFate::CrashBefore),
            (self.misfortune.crash_around_commit, CommitFate::CrashAfter),
            (self.misfortune.unknown_written, CommitFate::UnknownWritten),
            (self.misfortune.unknown_not_written, CommitFate::UnknownNotWritten),
            (self.misfortune.not_written, CommitFate::NotWritten),
            (self.misfortune.slow, CommitFate::Slow),
        ];
        let struck = chances.into_iter().find(|(percent, _)| self.strikes(*percent));
        struck.map_or(CommitFate::Fine, |(_, fate)| fate)
    }

    fn answer(&mut self, asked: (usize, u32), inner: Inner) {
        let delay = self.delay_of_answer();
        self.answer_in(delay, asked, inner);
    }

    pub(super) fn answer_in(&mut self, delay_ms: u64, asked: (usize, u32), inner: Inner) {
        self.at(delay_ms, Happening::Node(asked.0, asked.1, inner));
    }

    pub(super) fn delay_of_answer(&mut self) -> u64 {
        let is_slow = self.strikes(self.misfortune.slow / 8);
        if is_slow { self.dice.below(LEASE_MS) } else { self.dice.below(4) }
    }

    pub(super) fn store_takes(&mut self, asked: Asked) -> Result<(), String> {
        let Asked { node, life, what } = asked;
        let who = (node, life);
        let is_down = self.now < self.down_until;
        let is_unreadable = matches!(what, What::Load(..)) && self.now < self.nodes[node].unreadable_until;
        let fails = is_down || is_unreadable || self.strikes(self.misfortune.read_fails);
        let why = || StoreError::Unavailable("nobody answers".into());
        match what {
            What::Commit { flight, batch, fate } => return self.commit(who, flight, &batch, fate, is_down),
            What::Load(execution, number) if fails => {
                let answer = LoadAnswer::Unavailable("nobody answers".into());
                self.answer(who, Inner::Loaded(execution, number, Box::new(answer)));
            }
            What::Load(execution, number) => {
                let is_too_new = self.is_too_new(node, execution);
                let answer = if is_too_new { LoadAnswer::Newer("newer".into()) } else { self.load(execution) };
                self.answer(who, Inner::Loaded(execution, number, Box::new(answer)));
            }
            What::Speak { given_up, .. } if fails => {
                self.answer(who, Inner::Spoken(given_up, Word::Unheard(why())));
            }
            What::Speak { member, given_up, is_leaving, sent_at } => {
                self.hear_word(who, &member, (given_up, is_leaving), sent_at)?;
            }
            What::Look { after: Some(_), generation, .. } if fails => {
                self.answer(who, Inner::LookedForLetters(generation, None));
            }
            What::Look { .. } if fails => {}
            What::Look { partitions, after, generation } => self.look(who, &partitions, after, generation)?,
            What::LookToAdopt(_, _, asked) if fails => {
                self.answer_in(LOOK_FOR_LETTERS_MS, who, Inner::Looked(asked, None));
            }
            What::LookToAdopt(partitions, generation, asked) => {
                let letters =
                    self.store.inbox(&partitions, 0, ReadLimit::of(usize::MAX)).map_err(|error| error.to_string())?;
                let delay = self.delay_of_answer();
                self.answer_in(delay, who, Inner::Letters(letters, None, generation));
                self.answer_in(delay, who, Inner::Looked(asked, Some(generation)));
            }
            What::PassOn(passing) if fails => self.pass_on_again(who, passing),
            What::PassOn(Passing { execution, input, remote, name, .. }) => {
                self.post(execution, &input)?;
                self.calls.passed_on(execution, &input);
                if let Some(remote) = remote.filter(|_| !self.strikes(self.misfortune.read_fails)) {
                    self.store.end_remote(&name, &[remote]).map_err(|error| error.to_string())?;
                }
                self.answer(who, Inner::PassedOn(execution));
            }
            What::StopRemote(_) if fails => {}
            What::StopRemote(attempt) => self.store.stop_remote(&attempt).map_err(|error| error.to_string())?,
            What::Leave(_) if is_down => {}
            What::Leave(member) => member.leave(),
            What::Aside(asked) => self.store_takes_aside(who, asked, fails)?,
        }
        Ok(())
    }

    /// Posts an inbox message. The owner of the partition is notified in most cases.
    pub(super) fn post(&mut self, execution: ExecutionKey, input: &Input) -> Result<(), String> {
        let partitions = self.store.partitions().map_err(|error| error.to_string())?;
        let letter = inbox::letter(&keys().sealing, execution, input, partitions, self.now);
        self.store.enqueue(&EnqueueRequest::of(&letter, partitions)).map_err(|error| error.to_string())?;
        self.hint(&[letter.partition]);
        Ok(())
    }

    pub(super) fn hint(&mut self, partitions: &[u32]) {
        for node in 0..self.nodes.len() {
            if !self.dice.chance(20) {
                let life = self.nodes[node].life;
                self.at(1, Happening::Node(node, life, Inner::Hint(partitions.to_vec())));
            }
        }
    }

    fn commit(
        &mut self,
        who: (usize, u32),
        flight: u64,
        batch: &Batch,
        fate: CommitFate,
        is_down: bool,
    ) -> Result<(), String> {
        let fate = if is_down { CommitFate::NotWritten } else { fate };
        if fate.is_written() && (self.refuses(batch) || self.has_row_in_the_way(batch)) {
            if fate == CommitFate::CrashAfter {
                return if self.nodes[who.0].is_life(who.1) { self.crash(who.0) } else { Ok(()) };
            }
            let why = "a row is in the way".into();
            self.answer(who, Inner::Committed(flight, Err(CommitError::Refused(why))));
            return Ok(());
        }
        let records = records_of(batch)?;
        self.table.met(&records, fate.word());
        if fate.is_written() {
            self.nodes[who.0].written.push((who.1, flight, records));
        }
        let mut answer = Ok(Vec::new());
        if fate.is_written() {
            answer = self.store.commit(batch);
            let answers = answer.as_ref().map_err(ToString::to_string)?.clone();
            self.check_commit(who, batch, &answers)?;
        }
        match fate {
            CommitFate::Fine | CommitFate::Slow => {}
            CommitFate::NotWritten => answer = Err(CommitError::NotWritten("nobody answers".into())),
            CommitFate::UnknownWritten | CommitFate::UnknownNotWritten => {
                let after = match self.delay_of_lapsed(who.0) {
                    Some(delay) => delay,
                    None => self.delay_of_answer(),
                };
                let answer = Err(CommitError::Unknown("the line is cut".into()));
                self.answer_in(after, who, Inner::Committed(flight, answer));
                return Ok(());
            }
            CommitFate::CrashBefore | CommitFate::CrashAfter => {
                return if self.nodes[who.0].is_life(who.1) { self.crash(who.0) } else { Ok(()) };
            }
        }
        self.answer(who, Inner::Committed(flight, answer));
        Ok(())
    }

    /// Checks a written commit against the rules.
    fn check_commit(&mut self, who: (usize, u32), batch: &Batch, answers: &[PartOutcome]) -> Result<(), String> {
        let names = super::node::names_of(who.0, who.1);
        for (part, answer) in batch.parts.iter().zip(answers) {
            if let PartOutcome::Refused(refusal) = answer {
                if *refusal == Refusal::Fence {
                    self.table.met(&records_of_part(part)?, "lease lost on the way");
                }
                self.check_refused(part, refusal)?;
                continue;
            }
            let fence = batch.fences.iter().find(|fence| fence.partition == part.partition);
            let spread = self.store.partitions().map_err(|error| error.to_string())?;
            self.ledger.check_owner(&names, part, fence, partition_of(part.execution, spread))?;
            self.check_foreign(part)?;
            let (calls, nodes) = (&self.calls, self.store.cluster_view().map_err(|error| error.to_string())?.nodes);
            self.ledger.push(part, self.now, |receipt| calls.check_receipt(part.execution, receipt, &nodes))?;
            for frame in &part.frames {
                self.note(&[&part.execution.0, &frame.sequence.to_be_bytes(), &frame.frame]);
            }
        }
        Ok(())
    }
}

fn records_of(batch: &Batch) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for part in &batch.parts {
        records.extend(records_of_part(part)?);
    }
    Ok(records)
}

pub(super) fn records_of_part(part: &mainspring_store::Part) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for stored in &part.frames {
        let (frame, _) = Frame::read(stored).map_err(|error| error.to_string())?;
        records.extend(frame.records);
    }
    Ok(records)
}
