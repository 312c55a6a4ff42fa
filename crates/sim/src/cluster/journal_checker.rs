//! Checks of journals against rules that are independent of the kernel: deciding a journal again repeats a mistake of
//! `decide`, and folding it repeats a mistake of `apply`.
//!
//! The checks use records and inputs, never the state. No workflow of the cluster has a transform or an output schema,
//! so a successful call always completes its step.

use std::collections::BTreeMap;

use mainspring_kernel::{
    effect::Outcome, frame::Frame, input::Input, input::Timer, instance::Instance, record::Record,
};

/// The facts about one execution so far.
#[derive(Debug, Default)]
pub(super) struct JournalChecker {
    steps: BTreeMap<Instance, Step>,
    /// Timers that were set and have not fired.
    times: BTreeMap<Timer, u64>,
    /// Received signals; the flag is set when a wait has consumed one.
    signals: BTreeMap<String, bool>,
    /// The receipt that was accepted for each attempt.
    receipts: BTreeMap<(Instance, u32), Outcome>,
    /// Receipts of attempts that were no longer open, in frames that continued a yielded turn. Without a turn to
    /// continue, such a receipt is stored beside the journal.
    stale_receipts: Vec<(Instance, u32, Outcome)>,
    is_ending: bool,
    is_in_a_queue: bool,
    is_waited_for: bool,
    /// A transform or a schema may reject the output of a step although its call succeeded.
    may_refuse_results: bool,
}

#[derive(Debug, Default)]
struct Step {
    attempt: u32,
    is_out: bool,
    /// Earliest time of the next attempt after a failure.
    retry_at: u64,
    has_result: bool,
    has_ended: bool,
}

impl JournalChecker {
    /// Creates the history of an execution that has not started.
    pub(super) fn of(may_refuse_results: bool) -> Self {
        Self { may_refuse_results, ..Self::default() }
    }

    /// Returns whether a frame has exactly this outcome of the attempt.
    pub(super) fn has_receipt(&self, instance: &Instance, attempt: u32, outcome: &Outcome) -> bool {
        self.receipts.get(&(instance.clone(), attempt)) == Some(outcome)
            || self
                .stale_receipts
                .iter()
                .any(|(of, number, known)| (of, *number, known) == (instance, attempt, outcome))
    }

    /// Adds a frame. The error describes the violated rule.
    pub(super) fn push(&mut self, frame: &Frame) -> Result<(), String> {
        match &frame.input {
            Input::Receipt { instance, attempt, outcome } => self.receive(frame, instance, *attempt, outcome)?,
            Input::Timer(timer) => self.fire(timer, frame.now)?,
            _ => {}
        }
        frame.records.iter().try_for_each(|record| self.note(record, frame.now))
    }

    /// A receipt is accepted once, and only for the open attempt.
    fn receive(&mut self, frame: &Frame, instance: &Instance, attempt: u32, outcome: &Outcome) -> Result<(), String> {
        let step = self.steps.entry(instance.clone()).or_default();
        let is_open = step.is_out && step.attempt == attempt;
        if !frame.records.iter().any(|record| record.instance() == Some(instance)) {
            if !is_open {
                self.stale_receipts.push((instance.clone(), attempt, outcome.clone()));
            }
            return Ok(());
        }
        if !is_open {
            return Err(format!("a receipt of attempt {attempt} of {instance:?} counts, which is not out: {step:?}"));
        }
        step.has_result = matches!(outcome, Outcome::Done(_));
        self.receipts.insert((instance.clone(), attempt), outcome.clone());
        Ok(())
    }

    /// A timer fires once, and not before its time.
    fn fire(&mut self, timer: &Timer, now: u64) -> Result<(), String> {
        match self.times.remove(timer) {
            Some(at) if at <= now => Ok(()),
            Some(at) => Err(format!("{timer:?} was set for {at} and fires at {now}")),
            None => Err(format!("{timer:?} fires twice, or was never set")),
        }
    }

    fn note(&mut self, record: &Record, now: u64) -> Result<(), String> {
        self.check_ending(record)?;
        self.check_queue(record)?;
        self.check_signals(record)?;
        let deadline = match record {
            Record::Started { deadline, .. } => *deadline,
            Record::DeadlineSet { at } | Record::FinallyBegun { deadline: at, .. } => Some(*at),
            _ => None,
        };
        self.times.extend(deadline.map(|at| (Timer::Deadline, at)));
        match record.instance() {
            Some(instance) => self.note_of_step(instance, record, now),
            None => Ok(()),
        }
    }

    fn note_of_step(&mut self, instance: &Instance, record: &Record, now: u64) -> Result<(), String> {
        let step = self.steps.entry(instance.clone()).or_default();
        if step.has_ended {
            return Err(format!("{instance:?} continues after its end: {record:?}"));
        }
        let set = match record {
            Record::AttemptStarted { attempt, timeout_at, .. } => {
                step.begin(instance, *attempt, now)?;
                timeout_at.map(|at| (Timer::Attempt(instance.clone(), *attempt), at))
            }
            Record::AttemptFailed { attempt, retry_at, .. } => {
                (step.attempt, step.is_out, step.retry_at) = (*attempt, false, retry_at.unwrap_or(0));
                step.has_result &= !self.may_refuse_results;
                retry_at.map(|at| (Timer::Retry(instance.clone(), attempt + 1), at))
            }
            Record::WaitStarted { until, .. } => until.map(|at| (Timer::Sleep(instance.clone()), at)),
            Record::GateOpened { gate, expires_at, .. } => Some((Timer::Gate(instance.clone(), *gate), *expires_at)),
            Record::StepSkipped { .. }
            | Record::StepCompleted { .. }
            | Record::StepFailed { .. }
            | Record::StepCancelled { .. } => {
                (step.is_out, step.has_ended) = (false, true);
                None
            }
            _ => None,
        };
        self.times.extend(set);
        Ok(())
    }

    /// No step, attempt, wait or round starts once the execution is ending.
    fn check_ending(&mut self, record: &Record) -> Result<(), String> {
        let begins = matches!(
            record,
            Record::StepStarted { .. }
                | Record::AttemptStarted { .. }
                | Record::WaitStarted { .. }
                | Record::GateOpened { .. }
                | Record::RoundStarted { .. }
        );
        if self.is_ending && begins {
            return Err(format!("something begins after the end has begun: {record:?}"));
        }
        match record {
            // These steps run after the end has begun, and nothing after them.
            Record::FinallyBegun { .. } => self.is_ending = false,
            Record::FinallyEnded | Record::CancelRequested { .. } | Record::EndingBegun { .. } => self.is_ending = true,
            _ => {}
        }
        Ok(())
    }

    /// A queued execution starts nothing, and only a queued execution is admitted. A child with a waiting parent is
    /// never queued, since it uses the slot of its parent.
    fn check_queue(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::LineageSet { lineage } => {
                self.is_waited_for = lineage.parent.is_some();
                Ok(())
            }
            Record::Queued { .. } if self.is_waited_for => Err("its parent waits for it, and it waits".into()),
            Record::Queued { .. } if !self.steps.is_empty() => {
                Err(format!("it comes into a queue too late: {record:?}"))
            }
            Record::Queued { .. } => {
                self.is_in_a_queue = true;
                Ok(())
            }
            Record::Admitted => match std::mem::take(&mut self.is_in_a_queue) {
                true => Ok(()),
                false => Err("it is admitted, and stands in no queue".into()),
            },
            _ if self.is_in_a_queue && record.instance().is_some() => {
                Err(format!("something happens in a queue: {record:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A signal is accepted once and consumed by one wait.
    fn check_signals(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::SignalKept { id, .. } => match self.signals.insert(id.clone(), false) {
                None => Ok(()),
                Some(_) => Err(format!("the signal `{id}` comes twice")),
            },
            Record::SignalTaken { id, instance } => match self.signals.insert(id.clone(), true) {
                Some(false) => Ok(()),
                Some(true) => Err(format!("the signal `{id}` is used twice, now by {instance:?}")),
                None => Err(format!("{instance:?} uses the signal `{id}`, which never came")),
            },
            _ => Ok(()),
        }
    }
}

impl Step {
    /// Attempts of a step follow each other, start after the recorded delay, and never follow a result.
    fn begin(&mut self, instance: &Instance, attempt: u32, now: u64) -> Result<(), String> {
        if self.has_result {
            return Err(format!("attempt {attempt} of {instance:?} begins, which has a result"));
        }
        if self.is_out || attempt != self.attempt + 1 {
            return Err(format!("attempt {attempt} of {instance:?} begins out of turn: {self:?}"));
        }
        if now < self.retry_at {
            return Err(format!("attempt {attempt} of {instance:?} begins at {now}, and may at {}", self.retry_at));
        }
        (self.attempt, self.is_out) = (attempt, true);
        Ok(())
    }
}
