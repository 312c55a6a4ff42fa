//! Follows an execution of a server: prints its events until it ends or waits only for approvals.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mainspring_kernel::{
    history::AttemptHistory, json::compact, record::FailureDisposition, state::ExecutionStatus, time::parse_rfc3339,
    value::Value,
};
use tokio::{
    sync::mpsc::Receiver,
    time::{interval, sleep, timeout},
};

use crate::{
    client::{
        Client, ClientError,
        events::{Event, FINISHED, PROGRESS, watch},
        execution::{Execution, attempts},
    },
    context::Context,
    error::CliError,
    output::{
        progress::{Progress, StepEvent},
        terminal::{duration, print_out},
    },
    runner::print_event,
};

/// The output format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventOutput {
    /// Progress lines for people.
    Lines,
    /// JSON on standard output.
    StandardOutput,
    /// JSON on standard error, where the envelope follows on standard output. Open gates and the end of the wait are
    /// printed together with the envelope.
    StandardError,
}

/// The reason for the end.
pub(super) enum Followed {
    /// The execution has ended, or only gates are open.
    Settled(Box<Execution>),
    /// This process was asked to stop.
    Interrupted,
}

/// Interval at which the times of running steps are redrawn.
const REDRAW: Duration = Duration::from_millis(100);

/// Maximum wait for events that precede the end.
const LATE: Duration = Duration::from_secs(10);

/// Delay before a request is repeated, and the maximum number of failed requests in a row. The reader of the event
/// stream detects a permanent failure earlier.
const AGAIN: Duration = Duration::from_millis(200);
const UNANSWERED_MAX: u32 = 300;

/// Step types without attempts at an executor. Other types, including those of a newer server, have them.
const STAYS: [&str; 8] = ["approval", "code", "conditional", "loop", "parallel", "return", "signal", "sleep"];

/// Step types that wait for an event and not for an approval.
const WAITS: [&str; 2] = ["signal", "sleep"];

/// An execution that is followed, with the state of its output.
pub(super) struct Following<'a> {
    client: &'a Client,
    id: String,
    events: Receiver<Result<Event, ClientError>>,
    is_over: bool,
    event_output: EventOutput,
    progress: Progress,
    context: &'a Context,
    seen: Seen,
}

/// The printed events: ended attempts and opened gates.
#[derive(Default)]
struct Seen {
    ended: BTreeSet<(String, u64)>,
    asked: BTreeSet<String>,
}

impl<'a> Following<'a> {
    /// Subscribes to the events from the first one on.
    pub(super) fn new(client: &'a Client, id: &str, event_output: EventOutput, context: &'a Context) -> Self {
        Self {
            client,
            id: id.into(),
            events: watch(client, id, context.terminal, context.terminal.is_live && event_output == EventOutput::Lines),
            is_over: false,
            event_output,
            progress: Progress::new(context.terminal),
            context,
            seen: Seen::default(),
        }
    }

    /// Prints events until only gates are open, the execution ends, or a signal interrupts the process.
    pub(super) async fn until_settled(&mut self) -> Result<Followed, CliError> {
        let mut tick = interval(REDRAW);
        let settled = settled(self.client.clone(), self.id.clone());
        tokio::pin!(settled);
        let is_redrawn = self.context.terminal.is_live && self.event_output == EventOutput::Lines;
        loop {
            tokio::select! {
                () = self.context.signals.any() => {
                    self.progress.finish();
                    return Ok(Followed::Interrupted);
                }
                event = self.events.recv(), if !self.is_over => self.take(event).await?,
                settled = &mut settled => {
                    let execution = settled?;
                    self.catch_up(&execution).await?;
                    self.progress.finish();
                    return Ok(Followed::Settled(Box::new(execution)));
                }
                _ = tick.tick(), if is_redrawn => self.progress.tick(),
            }
        }
    }

    /// Prints all events up to now.
    pub(super) async fn as_it_stands(&mut self) -> Result<Execution, CliError> {
        let execution = Execution::get(self.client, &self.id).await?;
        self.catch_up(&execution).await?;
        self.progress.finish();
        Ok(execution)
    }

    /// Waits for the events up to the given state of the execution. They come by another connection, so they may be
    /// late.
    async fn catch_up(&mut self, execution: &Execution) -> Result<(), CliError> {
        let attempts = match execution.has_ended() {
            true => Vec::new(),
            false => attempts(self.client, &self.id).await?.1,
        };
        let own_gates: Vec<&str> =
            execution.gates.iter().filter(|gate| !gate.is_childs).map(|gate| gate.path.as_str()).collect();
        let is_told = |seen: &Seen| {
            let has_ended = |row: &AttemptHistory| row.ended_at.is_some();
            let ends = attempts.iter().filter(|row| has_ended(row));
            !execution.has_ended()
                && ends.into_iter().all(|row| seen.ended.contains(&(row.step.clone(), row.attempt.into())))
                && own_gates.iter().all(|gate| seen.asked.contains(*gate))
        };
        let read = async {
            while !self.is_over && !is_told(&self.seen) {
                let event = self.events.recv().await;
                self.take(event).await?;
            }
            Ok(())
        };
        // After the timeout missing events are skipped: the final lines show the result.
        timeout(LATE, read).await.unwrap_or(Ok(()))
    }

    /// Prints an event and all others that are available.
    async fn take(&mut self, event: Option<Result<Event, ClientError>>) -> Result<(), CliError> {
        let Some(event) = event else {
            self.is_over = true;
            return Ok(());
        };
        let mut batch = vec![event?];
        let mut error = None;
        while let Ok(next) = self.events.try_recv() {
            match next {
                Ok(event) => batch.push(event),
                Err(found) => error = Some(found),
            }
        }
        let details = self.details(&batch).await?;
        for event in &batch {
            if event.kind == PROGRESS {
                self.show_progress(event);
                continue;
            }
            self.seen.note(event);
            self.is_over |= event.kind == FINISHED;
            match self.event_output {
                EventOutput::Lines => self.show(event, &details),
                EventOutput::StandardOutput => print_out!("{}", compact(&event.data)),
                EventOutput::StandardError if event.kind == "approval.required" => {}
                EventOutput::StandardError => print_event(&event.data),
            }
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Reads the details that events lack: console output of functions, and the reason of a wait.
    async fn details(&self, batch: &[Event]) -> Result<BTreeMap<(String, u64), AttemptHistory>, CliError> {
        let is_wanted = |event: &Event| {
            let waits = event.kind == "step.started" && WAITS.contains(&text(event, "stepType"));
            waits || event.data.get("logLines").is_some()
        };
        if self.event_output != EventOutput::Lines || !batch.iter().any(is_wanted) {
            return Ok(BTreeMap::new());
        }
        match attempts(self.client, &self.id).await {
            Ok((_, rows)) => Ok(rows.into_iter().map(|row| ((row.step.clone(), row.attempt.into()), row)).collect()),
            // Events are printed without details if the server is unavailable; `mainspring show` prints them.
            Err(error) if error.is_transient() => Ok(BTreeMap::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Shows the output of models. It is drawn with the next tick.
    fn show_progress(&mut self, event: &Event) {
        for said in event.data.get("texts").and_then(Value::as_list).unwrap_or_default() {
            let part = |key: &str| said.get(key).and_then(Value::as_text).unwrap_or_default();
            self.progress.partial(part("stepId"), part("text"));
        }
    }

    fn show(&mut self, event: &Event, details: &BTreeMap<(String, u64), AttemptHistory>) {
        let step = text(event, "stepId");
        let row = details.get(&(step.to_string(), attempt_of(event)));
        let now = parse_rfc3339(text(event, "ts")).unwrap_or_default();
        match event.kind.as_str() {
            "execution.queued" => self.progress.queue(Some(text(event, "waitingFor"))),
            "execution.admitted" => self.progress.queue(None),
            "execution.migrated" => self.progress.migrated(text(event, "version"), text(event, "reason")),
            "execution.cancel_requested" => self.progress.cancelling(text(event, "reason"), text(event, "by")),
            _ => {}
        }
        for step_event in step_event(event, row, now) {
            self.progress.step(step, step_event, now);
        }
    }
}

impl Seen {
    fn note(&mut self, event: &Event) {
        let step = text(event, "stepId").to_string();
        match event.kind.as_str() {
            "step.completed" | "step.failed" | "step.retrying" | "step.skipped" | "step.cancelled" => {
                self.ended.insert((step, attempt_of(event)));
            }
            "approval.required" => drop(self.asked.insert(step)),
            _ => {}
        }
    }
}

/// Waits until the execution ends or only gates are open.
async fn settled(client: Client, id: String) -> Result<Execution, CliError> {
    let mut unanswered = 0;
    loop {
        match client.wait(&id).await {
            Ok(value) => {
                unanswered = 0;
                let execution = Execution::read(&client, &value)?;
                // The next step is about to start if the execution waits for an approval and has no open gate.
                let waits = execution.listed.status == ExecutionStatus::WaitingApproval;
                match execution.is_settled() {
                    true if !waits || !execution.gates.is_empty() => return Ok(execution),
                    true => sleep(AGAIN).await,
                    false => {}
                }
            }
            Err(error) if error.is_transient() && unanswered < UNANSWERED_MAX => {
                unanswered += 1;
                sleep(AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Converts an event to progress of a step.
fn step_event(event: &Event, row: Option<&AttemptHistory>, now: u64) -> Vec<StepEvent> {
    let of_error = |key: &str| {
        let error = event.data.get("error").and_then(|error| error.get(key));
        error.and_then(Value::as_text).unwrap_or_default().to_string()
    };
    let owned = |key: &str| text(event, key).to_string();
    let last = match event.kind.as_str() {
        "step.started" => return started(event, row),
        "step.completed" => StepEvent::Completed,
        "step.failed" => {
            StepEvent::Failed { message: of_error("message"), disposition: disposition(text(event, "disposition")) }
        }
        "step.retrying" => {
            let at = parse_rfc3339(text(event, "retryAt"));
            StepEvent::Retried { code: of_error("code"), in_ms: at.map(|at| at.saturating_sub(now)) }
        }
        "step.skipped" => StepEvent::Skipped { reason: owned("reason") },
        "step.cancelled" => StepEvent::Cancelled { reason: owned("reason") },
        "approval.required" => StepEvent::Asks { prompt: owned("prompt") },
        "approval.approved" | "approval.denied" => {
            let decision = if event.kind == "approval.approved" { "approve" } else { "deny" };
            let by = event.data.get("by").and_then(Value::as_text).map(ToString::to_string);
            StepEvent::Decided { decision: decision.into(), by }
        }
        _ => return Vec::new(),
    };
    let lines: Vec<String> = row.filter(|_| event.data.get("logLines").is_some()).map(lines).unwrap_or_default();
    let logged = (!lines.is_empty()).then_some(StepEvent::Logged { lines });
    logged.into_iter().chain([last]).collect()
}

fn started(event: &Event, row: Option<&AttemptHistory>) -> Vec<StepEvent> {
    let kind = text(event, "stepType");
    if STAYS.contains(&kind) {
        let note = row.and_then(|row| row.note.as_deref().map(|note| waits(note, row.started_at)));
        let waits = note.filter(|_| WAITS.contains(&kind)).map(|words| StepEvent::Waits { words });
        return [StepEvent::Began { goes_out: false }].into_iter().chain(waits).collect();
    }
    let attempt = u32::try_from(attempt_of(event)).unwrap_or(u32::MAX);
    let child = event.data.get("childExecutionId").and_then(Value::as_text).map(ToString::to_string);
    let began = (attempt <= 1).then_some(StepEvent::Began { goes_out: true });
    began.into_iter().chain([StepEvent::Attempt { attempt, child }]).collect()
}

/// Replaces the end of a wait in a note by its length, as in the progress of a local execution.
fn waits(note: &str, began_ms: u64) -> String {
    let until = note.rsplit_once(" until ").and_then(|(what, until)| Some((what, parse_rfc3339(until)?)));
    let Some((what, until)) = until else { return note.to_string() };
    let length = duration(until.saturating_sub(began_ms));
    if what == "waits" { format!("waits for {length}") } else { format!("{what}, at most {length}") }
}

fn lines(row: &AttemptHistory) -> Vec<String> {
    let text = |line: &Value| line.get("text").and_then(Value::as_text).unwrap_or_default().to_string();
    row.log.iter().map(text).collect()
}

fn disposition(word: &str) -> FailureDisposition {
    match word {
        "tolerated" => FailureDisposition::Tolerated,
        "handled" => FailureDisposition::Handled,
        _ => FailureDisposition::Failed,
    }
}

fn text<'e>(event: &'e Event, key: &str) -> &'e str {
    event.data.get(key).and_then(Value::as_text).unwrap_or_default()
}

/// Returns the attempt of an event; 0 for a step that was not started.
fn attempt_of(event: &Event) -> u64 {
    event.data.get("attempt").and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_show_their_duration() {
        for (note, words) in [
            ("waits until 1970-01-01T00:00:05.000Z", "waits for 4.0 s"),
            (
                "waits for the signal a until b until 1970-01-01T00:00:05.000Z",
                "waits for the signal a until b, at most 4.0 s",
            ),
            ("waits for the signal until", "waits for the signal until"),
        ] {
            assert_eq!(waits(note, 1_000), words);
        }
    }
}
