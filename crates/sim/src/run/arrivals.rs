//! The next event of a run, and the faults before it.

use mainspring_engine::shard::Event;
use mainspring_kernel::input::{Input, Timer};

use super::Run;

/// Events after which a run counts as endless. The longest of the test suite has a few hundred.
const ARRIVALS_MAX: usize = 50_000;

/// Tries of an action that a fault may prevent: at most every second commit fails.
pub(super) const TRIES_MAX: usize = 16;

/// An event from outside of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Arrival {
    /// An entry of the inbox.
    Entry(usize),
    /// The response to a call.
    Answer(usize),
    /// All due timers.
    Timers,
}

impl Run<'_> {
    pub(super) fn play(&mut self) -> Result<(), String> {
        self.deliver(self.fixture.key, Input::Start(self.fixture.start()))?;
        let mut arrivals = 0;
        while self.next_arrival().is_some() {
            self.inject_faults()?;
            let Some((at, arrival)) = self.next_arrival() else { break };
            (self.now, self.node_now) = (at, at);
            let log = self.log.len();
            self.arrive(arrival)?;
            self.timers_again(log)?;
            self.settled_at = at;
            arrivals += 1;
            if arrivals > ARRIVALS_MAX {
                return Err(format!("after {ARRIVALS_MAX} inputs the execution still moves"));
            }
        }
        if self.injector.faults.inbox_again {
            self.inbox_again()?;
        }
        self.check_at_end()
    }

    /// Returns the next event; of several at the same time, the one that was created first. The timeout of a gate alone
    /// does not advance the time: it fires when a later event does.
    fn next_arrival(&self) -> Option<(u64, Arrival)> {
        if let Some(entry) = self.inbox.due() {
            return Some((self.now, Arrival::Entry(entry)));
        }
        let is_gate = |timer: &Timer| matches!(timer, Timer::Gate(..));
        let timers = |gates: bool| {
            let timers = self.tree.timers().filter(move |((_, timer), _)| is_gate(timer) == gates);
            timers.map(|((at, _), order)| (*at, order, Arrival::Timers)).min()
        };
        let entry = self.inbox.first_by_time().map(|(at, order, entry)| (at, order, Arrival::Entry(entry)));
        let answer = self.world.first_answer().map(|(at, order, call)| (at, order, Arrival::Answer(call)));
        let first = [entry, answer, timers(false)].into_iter().flatten().min()?;
        let (at, _, arrival) = timers(true).filter(|gate| *gate < first).unwrap_or(first);
        Some((at.max(self.now), arrival))
    }

    fn arrive(&mut self, arrival: Arrival) -> Result<(), String> {
        match arrival {
            Arrival::Entry(entry) => self.take_entry(entry),
            Arrival::Timers => self.fire_timers(),
            Arrival::Answer(call) => {
                let Some((execution, instance, attempt, outcome)) = self.world.answer(call) else {
                    return Err("an answer was lost on its way".into());
                };
                self.deliver(execution, Input::Receipt { instance, attempt, outcome })
            }
        }
    }

    /// Fires all due timers.
    pub(super) fn fire_timers(&mut self) -> Result<(), String> {
        for _ in 0..TRIES_MAX {
            self.hand_in(Event::Wake)?;
            if self.tree.timers().all(|((at, _), _)| *at > self.now) {
                return Ok(());
            }
        }
        Err(format!("a timer is due and does not fire: {:?}", self.tree.timers().min()))
    }

    /// Applies the faults between two events. A node recovers at the time of the last event, before the time advances.
    fn inject_faults(&mut self) -> Result<(), String> {
        let faults = self.injector.faults;
        if self.injector.draws(faults.kill_before_input) {
            self.world.kill();
            self.recover(self.now)?;
        }
        if self.injector.draws(faults.crash_before_input) {
            self.recover(self.now)?;
        }
        if self.injector.draws(faults.deliver_late) && !self.log.is_empty() {
            let place = self.injector.below(self.log.len() as u64) as usize;
            let (execution, input) = self.log[place].clone();
            self.repeat(execution, input)?;
        }
        Ok(())
    }

    /// Delivers fired timers once more: for the kernel they are inputs like any other.
    fn timers_again(&mut self, from: usize) -> Result<(), String> {
        let fired = self.log[from..].iter().filter(|(_, input)| matches!(input, Input::Timer(_)));
        for (execution, input) in fired.cloned().collect::<Vec<_>>() {
            if self.injector.draws(self.injector.faults.deliver_again) {
                self.repeat(execution, input)?;
            }
        }
        Ok(())
    }

    fn inbox_again(&mut self) -> Result<(), String> {
        let calls = self.world.made().len();
        for (execution, input) in self.log.clone() {
            self.repeat(execution, input)?;
        }
        if self.world.made().len() != calls {
            return Err("delivering the whole inbox again has made calls".into());
        }
        match self.next_arrival() {
            None => Ok(()),
            Some(_) => Err("delivering the whole inbox again has set something in motion".into()),
        }
    }
}
