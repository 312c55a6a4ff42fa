//! Formats a journal as text, one line for each frame, for reports and golden tests.

use mainspring_kernel::{
    effect::{ChildEnd, Outcome, Report},
    frame::Frame,
    input::{Input, Timer},
    instance::Instance,
    json::compact,
    leases::LeaseChange,
    plan::Plan,
    record::{Ending, FailureDisposition, Record},
};

use crate::scenario::duration_text;

/// Formats each frame as one line: its sequence, its time since the start, the input, and the records.
///
/// ```text
/// 0 0ms start: started; a begins; a#1 out
/// 1 20s a#1 done: a completed; ending completed; ended
/// ```
pub fn picture(plan: &Plan, frames: &[Frame]) -> String {
    let start = frames.first().map_or(0, |frame| frame.now);
    let mut out = String::new();
    for frame in frames {
        let records: Vec<String> = frame.records.iter().map(|record| record_words(plan, start, record)).collect();
        let at = duration_text(frame.now.saturating_sub(start));
        let input = input_words(plan, &frame.input);
        out.push_str(&format!("{} {at} {input}: {}\n", frame.sequence, records.join("; ")));
    }
    out
}

fn name(plan: &Plan, instance: &Instance) -> String {
    // Broken journals are formatted too: a step that the plan lacks is shown by its number.
    if (instance.step as usize) < plan.steps.len() { instance.name(plan) } else { format!("step {}", instance.step) }
}

fn input_words(plan: &Plan, input: &Input) -> String {
    match input {
        Input::Start(_) => "start".into(),
        Input::Admit => "admit".into(),
        Input::Receipt { instance, attempt, outcome } => {
            let outcome = match outcome {
                Outcome::Done(_) => "done".into(),
                Outcome::Failed(failure) => format!("failed {}", failure.code),
                Outcome::Stopped(_) => "stopped".into(),
                Outcome::Interrupted => "interrupted".into(),
                Outcome::Reported(report) => match **report {
                    Report::Tools(_) => "found its tools".into(),
                    Report::Continued(_) => "continues".into(),
                    Report::Asked { .. } => "asks for a form".into(),
                },
                Outcome::Cancelled(reason) => format!("cancelled {reason}"),
                Outcome::Child { end, .. } | Outcome::ChildWithUsage { end, .. } => match end {
                    ChildEnd::Done(_) => "done".into(),
                    ChildEnd::Failed(failure) => format!("failed {}", failure.code),
                    ChildEnd::Cancelled(reason) => format!("cancelled {reason}"),
                },
            };
            format!("{}#{attempt} {outcome}", name(plan, instance))
        }
        Input::Timer(timer) => match timer {
            Timer::Deadline => "deadline".into(),
            Timer::Attempt(instance, attempt) => format!("{}#{attempt} time is over", name(plan, instance)),
            Timer::Retry(instance, attempt) => format!("{}#{attempt} may begin", name(plan, instance)),
            Timer::Sleep(instance) => format!("{} wakes", name(plan, instance)),
            Timer::Gate(instance, gate) => format!("{} gate {gate} time is over", name(plan, instance)),
        },
        Input::Decide { instance, gate, decision, by, .. } => {
            format!("{by} {} {} gate {gate}", decision_word(*decision), name(plan, instance))
        }
        Input::Signal { id, name, .. } => format!("signal {name} ({id})"),
        Input::Message { id, .. } => format!("message ({id})"),
        Input::Cancel { reason, .. } => format!("cancel {reason}"),
        Input::SkipCleanup { .. } => "skip cleanup".into(),
        Input::Migrate { reason, .. } => format!("migrate for {reason}"),
        Input::Continue => "continue".into(),
        Input::Lease { lease, change } => format!("lease {lease} {}", lease_word(change)),
        Input::ChildWaits { instance, attempt, count } => {
            format!("{}#{attempt} child {}", name(plan, instance), waiting_word(*count))
        }
    }
}

fn lease_word(change: &LeaseChange) -> String {
    match change {
        LeaseChange::Granted { amount, .. } => format!("granted {}", compact(&amount.to_value())),
        LeaseChange::Refused { .. } => "refused".into(),
        LeaseChange::Returned { spent } => format!("returned, used {}", compact(&spent.to_value())),
    }
}

fn waiting_word(count: u32) -> &'static str {
    if count % 2 == 1 { "waits for people" } else { "goes on" }
}

fn decision_word(decision: mainspring_kernel::plan::Decision) -> &'static str {
    match decision {
        mainspring_kernel::plan::Decision::Approve => "approves",
        mainspring_kernel::plan::Decision::Deny => "denies",
    }
}

fn ending_words(ending: &Ending) -> String {
    match ending {
        Ending::Completed { .. } => "ending completed".into(),
        Ending::Failed { fault, .. } => format!("ending failed {}", fault.code),
        Ending::Cancelled { reason } => format!("ending cancelled {reason}"),
    }
}

fn cleanup_words(start: u64, record: &Record) -> String {
    match record {
        Record::FinallyBegun { outcome, deadline } => {
            format!("finally after {outcome} until {}", duration_text(deadline.saturating_sub(start)))
        }
        Record::FinallyHalted { reason, .. } => format!("finally halted {}", reason.name()),
        _ => "finally ended".into(),
    }
}

fn rarer_words(start: u64, step: &str, record: &Record) -> String {
    match record {
        Record::Migrated { plan, .. } => format!("continues with a plan of {} bytes", plan.0.len()),
        Record::ToolsPinned { tools } => format!("{} tools pinned", tools.len()),
        Record::AttemptContinued { attempt, .. } => format!("{step}#{attempt} continues in its server"),
        Record::AttemptResumed { attempt, .. } => format!("{step}#{attempt} out again"),
        other => cleanup_words(start, other),
    }
}

fn record_words(plan: &Plan, start: u64, record: &Record) -> String {
    let step = record.instance().map(|instance| name(plan, instance)).unwrap_or_default();
    let since = |at: u64| duration_text(at.saturating_sub(start));
    match record {
        Record::Started { deadline: Some(at), .. } => format!("started until {}", since(*at)),
        Record::Started { deadline: None, .. } => "started".into(),
        Record::StepSkipped { .. } => format!("{step} skipped"),
        Record::StepStarted { .. } => format!("{step} begins"),
        Record::BranchTaken { block, .. } => {
            format!("{step} takes {}", if block.is_some() { "a branch" } else { "nothing" })
        }
        Record::AttemptStarted { attempt, .. } => format!("{step}#{attempt} out"),
        Record::AttemptStopping { attempt, .. } => format!("{step}#{attempt} stopping"),
        Record::AttemptFailed { attempt, retry_at: Some(at), .. } => {
            format!("{step}#{attempt} failed, next at {}", since(*at))
        }
        Record::AttemptFailed { attempt, retry_at: None, .. } => format!("{step}#{attempt} failed"),
        Record::WaitStarted { until: Some(at), .. } => format!("{step} waits until {}", since(*at)),
        Record::WaitStarted { until: None, .. } => format!("{step} waits"),
        Record::GateOpened { gate, expires_at, .. } => format!("{step} gate {gate} open until {}", since(*expires_at)),
        Record::GateDecided { gate, decision, .. } => format!("{step} gate {gate} {}", decision.name()),
        Record::StepCompleted { .. } => format!("{step} completed"),
        Record::StepFailed { fault, disposition, .. } => {
            let disposition = match disposition {
                FailureDisposition::Failed => "",
                FailureDisposition::Tolerated => ", tolerated",
                FailureDisposition::Handled => ", handled",
            };
            format!("{step} failed {}{disposition}", fault.code)
        }
        Record::StepLogged { .. } => format!("{step} logs"),
        Record::BudgetReserved { instance, amount } => {
            format!("{} reserves {}", name(plan, instance), compact(&amount.to_value()))
        }
        Record::BudgetSettled { instance, amount } => {
            format!("{} used {}", name(plan, instance), compact(&amount.to_value()))
        }
        Record::BudgetRaised { amount, .. } => format!("budget raised by {}", compact(&amount.to_value())),
        Record::BudgetWarned { .. } => "budget warning".into(),
        Record::LeaseAwaited { lease, .. } => format!("{step} awaits lease {lease}"),
        Record::LeaseChanged { lease, change } => format!("lease {lease} {}", lease_word(change)),
        Record::AnswerRejected { .. } => format!("{step} answer rejected"),
        Record::MessageKept { conversation, .. } => format!("message to {conversation} kept"),
        Record::MessagesRead { count, .. } => format!("{step} reads {count}"),
        Record::ChildWaits { count, .. } => format!("{step} child {}", waiting_word(*count)),
        Record::ParentNotified => "parent told".into(),
        Record::Queued { queue } => format!("queued behind {}", queue.name()),
        Record::Admitted => "admitted".into(),
        Record::RoundStarted { round, .. } => format!("{step}[{round}] begins"),
        Record::RoundEnded { round, .. } => format!("{step}[{round}] ended"),
        Record::FailureBoundReached { fault } => format!("failing {}", fault.code),
        Record::LineageSet { lineage } => format!("{} above", lineage.depth),
        Record::StepCancelled { reason, .. } => format!("{step} cancelled {reason}"),
        Record::SignalKept { name, .. } => format!("signal {name} kept"),
        Record::SignalTaken { id, .. } => format!("{step} takes signal {id}"),
        Record::CancelRequested { reason, .. } => format!("cancel requested {reason}"),
        Record::DeadlineHeld { remaining_ms } => format!("deadline held with {} left", duration_text(*remaining_ms)),
        Record::DeadlineSet { at } => format!("deadline at {}", since(*at)),
        Record::EndingBegun { ending } => ending_words(ending),
        Record::Ended { with_failures } => format!("ended{}", if *with_failures { " with failures" } else { "" }),
        Record::ExecutionsGiven { count, .. } => format!("{step} given {count}"),
        Record::ExecutionsReturned { count, .. } => format!("{step} returned {count}"),
        Record::TurnYielded { results } => format!("yields after {results}"),
        Record::TurnSplit => "split".into(),
        Record::TurnJoined => "joined".into(),
        other => rarer_words(start, &step, other),
    }
}
