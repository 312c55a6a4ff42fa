//! Following an execution of a server: its events as they come, until it rests.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mainspring_kernel::{
    json::compact, record::FailureFate, state::ExecutionStatus, time::parse_rfc3339, trace::AttemptTrace, value::Value,
};
use tokio::{
    sync::mpsc::Receiver,
    time::{interval, sleep, timeout},
};

use crate::{
    exit::Refusal,
    progress::{Happened, Progress},
    remote::{
        Client, Trouble,
        events::{Event, FINISHED, watch},
        execution::{Execution, attempts},
    },
    runner::{Signals, print_event},
    terminal::{Terminal, duration, say},
};

/// How events are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// As lines for people.
    Lines,
    /// As they are, on standard output.
    Out,
    /// On standard error, beside an envelope: gates and the end of what waits are told with that.
    Beside,
}

/// Why following has come to its end.
pub(super) enum Rest {
    /// It has ended, or nothing but gates is left.
    Rests(Box<Execution>),
    /// This process was asked to stop.
    Interrupted,
}

/// How often the times of running steps are redrawn.
const REDRAW: Duration = Duration::from_millis(100);

/// How long events of what rests already may be on their way.
const LATE: Duration = Duration::from_secs(10);

/// How long is waited until a server is asked again that does not answer, or whose execution is about to move; and how
/// often in a row it may not answer. Whether there is any use in it is found out by who reads the events.
const AGAIN: Duration = Duration::from_millis(200);
const UNANSWERED_MAX: u32 = 300;

/// Types of steps of which no attempt goes out. All others are effects, also of types that a newer server has.
const STAYS: [&str; 8] = ["approval", "code", "conditional", "loop", "parallel", "return", "signal", "sleep"];

/// Types of steps that wait for what is no person.
const WAITS: [&str; 2] = ["signal", "sleep"];

/// One who follows an execution.
pub(super) struct Following<'a> {
    client: &'a Client,
    id: String,
    events: Receiver<Result<Event, Trouble>>,
    is_over: bool,
    told: Told,
    progress: Progress,
    terminal: &'a Terminal,
    seen: Seen,
}

/// What was told: which attempts have ended, and which steps have asked.
#[derive(Default)]
struct Seen {
    ended: BTreeSet<(String, u64)>,
    asked: BTreeSet<String>,
}

impl<'a> Following<'a> {
    /// From the beginning.
    pub(super) fn new(client: &'a Client, id: &str, told: Told, terminal: &'a Terminal) -> Self {
        Self {
            client,
            id: id.into(),
            events: watch(client, id, *terminal),
            is_over: false,
            told,
            progress: Progress::new(*terminal),
            terminal,
            seen: Seen::default(),
        }
    }

    /// Tells what happens until it rests.
    pub(super) async fn until_rest(&mut self, signals: &mut Signals) -> Result<Rest, Refusal> {
        let mut tick = interval(REDRAW);
        let resting = resting(self.client.clone(), self.id.clone());
        tokio::pin!(resting);
        let is_redrawn = self.terminal.is_live && self.told == Told::Lines;
        loop {
            tokio::select! {
                () = signals.any() => {
                    self.progress.finish();
                    return Ok(Rest::Interrupted);
                }
                event = self.events.recv(), if !self.is_over => self.take(event).await?,
                rested = &mut resting => {
                    let execution = rested?;
                    self.catch_up(&execution).await?;
                    self.progress.finish();
                    return Ok(Rest::Rests(Box::new(execution)));
                }
                _ = tick.tick(), if is_redrawn => self.progress.tick(),
            }
        }
    }

    /// Tells what has happened until now.
    pub(super) async fn as_it_stands(&mut self) -> Result<Execution, Refusal> {
        let execution = Execution::get(self.client, &self.id).await?;
        self.catch_up(&execution).await?;
        self.progress.finish();
        Ok(execution)
    }

    /// Events come on another way than the word that it rests: those that are part of the picture are waited for.
    async fn catch_up(&mut self, execution: &Execution) -> Result<(), Refusal> {
        let attempts = match execution.has_ended() {
            true => Vec::new(),
            false => attempts(self.client, &self.id).await?.1,
        };
        let own_gates: Vec<&str> =
            execution.gates.iter().filter(|gate| !gate.is_childs).map(|gate| gate.path.as_str()).collect();
        let is_told = |seen: &Seen| {
            let has_ended = |row: &AttemptTrace| row.ended_at.is_some();
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
        // What does not come for so long is not waited for: the last lines say how it stands.
        timeout(LATE, read).await.unwrap_or(Ok(()))
    }

    /// Takes an event in, with all that have come after it.
    async fn take(&mut self, event: Option<Result<Event, Trouble>>) -> Result<(), Refusal> {
        let Some(event) = event else {
            self.is_over = true;
            return Ok(());
        };
        let mut batch = vec![event?];
        let mut trouble = None;
        while let Ok(next) = self.events.try_recv() {
            match next {
                Ok(event) => batch.push(event),
                Err(found) => trouble = Some(found),
            }
        }
        let details = self.details(&batch).await?;
        for event in &batch {
            self.seen.note(event);
            self.is_over |= event.kind == FINISHED;
            match self.told {
                Told::Lines => self.show(event, &details),
                Told::Out => say!("{}", compact(&event.data)),
                Told::Beside if event.kind == "approval.required" => {}
                Told::Beside => print_event(&event.data),
            }
        }
        trouble.map_or(Ok(()), |trouble| Err(trouble.into()))
    }

    /// What events do not say of the attempts that they are about: lines that functions wrote, what is waited for.
    async fn details(&self, batch: &[Event]) -> Result<BTreeMap<(String, u64), AttemptTrace>, Refusal> {
        let is_wanted = |event: &Event| {
            let waits = event.kind == "step.started" && WAITS.contains(&text(event, "stepType"));
            waits || event.data.get("logLines").is_some()
        };
        if self.told != Told::Lines || !batch.iter().any(is_wanted) {
            return Ok(BTreeMap::new());
        }
        match attempts(self.client, &self.id).await {
            Ok((_, rows)) => Ok(rows.into_iter().map(|row| ((row.step.clone(), row.attempt.into()), row)).collect()),
            // They are shown without: `show` has them.
            Err(trouble) if trouble.may_pass() => Ok(BTreeMap::new()),
            Err(trouble) => Err(trouble.into()),
        }
    }

    fn show(&mut self, event: &Event, details: &BTreeMap<(String, u64), AttemptTrace>) {
        let step = text(event, "stepId");
        let row = details.get(&(step.to_string(), attempt_of(event)));
        let now = parse_rfc3339(text(event, "ts")).unwrap_or_default();
        match event.kind.as_str() {
            "execution.queued" => self.progress.queue(Some(text(event, "waitingFor"))),
            "execution.admitted" => self.progress.queue(None),
            "execution.cancel_requested" => self.progress.cancelling(text(event, "reason"), text(event, "by")),
            _ => {}
        }
        for happened in happened(event, row, now) {
            self.progress.step(step, happened, now);
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

/// An execution as soon as it rests.
async fn resting(client: Client, id: String) -> Result<Execution, Refusal> {
    let mut unanswered = 0;
    loop {
        match client.wait(&id).await {
            Ok(value) => {
                unanswered = 0;
                let execution = Execution::read(&client, &value)?;
                // One that waits for people and has no gate is about to move.
                let waits = execution.listed.status == ExecutionStatus::WaitingApproval;
                match execution.rests() {
                    true if !waits || !execution.gates.is_empty() => return Ok(execution),
                    true => sleep(AGAIN).await,
                    false => {}
                }
            }
            Err(trouble) if trouble.may_pass() && unanswered < UNANSWERED_MAX => {
                unanswered += 1;
                sleep(AGAIN).await;
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
}

/// What an event says of a step.
fn happened(event: &Event, row: Option<&AttemptTrace>, now: u64) -> Vec<Happened> {
    let of_error = |key: &str| {
        let error = event.data.get("error").and_then(|error| error.get(key));
        error.and_then(Value::as_text).unwrap_or_default().to_string()
    };
    let owned = |key: &str| text(event, key).to_string();
    let last = match event.kind.as_str() {
        "step.started" => return started(event, row),
        "step.completed" => Happened::Completed,
        "step.failed" => Happened::Failed { message: of_error("message"), fate: fate(text(event, "fate")) },
        "step.retrying" => {
            let at = parse_rfc3339(text(event, "retryAt"));
            Happened::Retried { code: of_error("code"), in_ms: at.map(|at| at.saturating_sub(now)) }
        }
        "step.skipped" => Happened::Skipped { reason: owned("reason") },
        "step.cancelled" => Happened::Cancelled { reason: owned("reason") },
        "approval.required" => Happened::Asks { prompt: owned("prompt") },
        "approval.approved" | "approval.denied" => {
            let decision = if event.kind == "approval.approved" { "approve" } else { "deny" };
            let by = event.data.get("by").and_then(Value::as_text).map(ToString::to_string);
            Happened::Decided { decision: decision.into(), by }
        }
        _ => return Vec::new(),
    };
    let lines: Vec<String> = row.filter(|_| event.data.get("logLines").is_some()).map(lines).unwrap_or_default();
    let logged = (!lines.is_empty()).then_some(Happened::Logged { lines });
    logged.into_iter().chain([last]).collect()
}

fn started(event: &Event, row: Option<&AttemptTrace>) -> Vec<Happened> {
    let kind = text(event, "stepType");
    if STAYS.contains(&kind) {
        let note = row.and_then(|row| row.note.as_deref().map(|note| waits(note, row.started_at)));
        let waits = note.filter(|_| WAITS.contains(&kind)).map(|words| Happened::Waits { words });
        return [Happened::Began { goes_out: false }].into_iter().chain(waits).collect();
    }
    let attempt = u32::try_from(attempt_of(event)).unwrap_or(u32::MAX);
    let child = event.data.get("childExecutionId").and_then(Value::as_text).map(ToString::to_string);
    let began = (attempt <= 1).then_some(Happened::Began { goes_out: true });
    began.into_iter().chain([Happened::Attempt { attempt, child }]).collect()
}

/// The words of a trace for a wait, which name its end, as those of one who watches, which name its length.
fn waits(note: &str, began_ms: u64) -> String {
    let until = note.rsplit_once(" until ").and_then(|(what, until)| Some((what, parse_rfc3339(until)?)));
    let Some((what, until)) = until else { return note.to_string() };
    let length = duration(until.saturating_sub(began_ms));
    if what == "waits" { format!("waits for {length}") } else { format!("{what}, at most {length}") }
}

fn lines(row: &AttemptTrace) -> Vec<String> {
    let text = |line: &Value| line.get("text").and_then(Value::as_text).unwrap_or_default().to_string();
    row.log.iter().map(text).collect()
}

fn fate(word: &str) -> FailureFate {
    match word {
        "let_through" => FailureFate::LetThrough,
        "handled" => FailureFate::Handled,
        _ => FailureFate::Fails,
    }
}

fn text<'e>(event: &'e Event, key: &str) -> &'e str {
    event.data.get(key).and_then(Value::as_text).unwrap_or_default()
}

/// The attempt that an event is about; 0 for a step that was not begun.
fn attempt_of(event: &Event) -> u64 {
    event.data.get("attempt").and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_say_how_long() {
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
