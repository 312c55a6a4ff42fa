//! Live progress of an execution: one line for each result of a step, and on a terminal a redrawn footer of running
//! steps.

use std::{
    collections::BTreeMap,
    io::Write,
    time::{Duration, Instant},
};

use anstyle::AnsiColor;
use mainspring_kernel::{
    history::Children,
    plan::{Plan, Work},
    record::{FailureDisposition, Record},
    value::Value,
};

use crate::{
    output::terminal::{BAD, GOOD, Terminal, WAITS, dim, duration, paint, print_out},
    output::text::{columns, ending, one_line, shown},
};

/// Prints the progress of an execution.
pub(crate) struct Progress {
    terminal: Terminal,
    /// The start of each step, in milliseconds since the epoch.
    began: BTreeMap<String, u64>,
    /// Running steps, in the order of their start.
    running: Vec<(String, Running)>,
    children: Children,
    footer: usize,
}

/// An event of a step, as far as it is shown. It comes from a record, or from an event of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepEvent {
    /// The step started. `goes_out` is true if it performs attempts.
    Began { goes_out: bool },
    /// An attempt started; `child` is the execution that it runs.
    Attempt { attempt: u32, child: Option<String> },
    /// An attempt failed, and the step did not. Without a time the next attempt starts at once, or a person is asked first.
    Retried { code: String, in_ms: Option<u64> },
    /// The step waits; `words` names the reason.
    Waits { words: String },
    /// The step opened an approval.
    Asks { prompt: String },
    /// An approval was decided; `by` is `None` if it timed out.
    Decided { decision: String, by: Option<String> },
    /// The step completed.
    Completed,
    /// The step failed.
    Failed { message: String, disposition: FailureDisposition },
    /// The step was skipped.
    Skipped { reason: String },
    /// The function of the step logged lines.
    Logged { lines: Vec<String> },
    /// The step was canceled.
    Cancelled { reason: String },
}

/// A running attempt.
struct Running {
    since: Instant,
    /// The text beside the name: the execution that the attempt runs.
    words: String,
    /// The end of the output of a model so far.
    partial: String,
}

impl Running {
    fn of(words: String) -> Self {
        Self { since: Instant::now(), words, partial: String::new() }
    }
}

/// Footer lines. More would not fit above the cursor of a small terminal.
const FOOTER_LINES_MAX: usize = 10;

/// Bytes of the text of a model that are kept: more than one line of any terminal.
const PARTIAL_BYTES_MAX: usize = 4 * 1024;

/// Columns of a footer line that are not its name: the sign and the duration.
const FOOTER_MARGIN: usize = 20;

impl Progress {
    /// An empty progress display.
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, began: BTreeMap::new(), running: Vec::new(), children: Children::default(), footer: 0 }
    }

    /// Shows the event of a record.
    pub(crate) fn record(&mut self, plan: &Plan, record: &Record, now: u64) {
        if let Record::CancelRequested { reason, by } = record {
            self.cancelling(reason, by);
        }
        match record {
            Record::Queued { queue } => self.queue(Some(queue.name())),
            Record::Admitted => self.queue(None),
            Record::Migrated { version, reason, .. } => self.migrated(version.as_deref().unwrap_or_default(), reason),
            _ => {}
        }
        if let Some((name, step_event)) = self.step_event(plan, record, now) {
            self.step(&name, step_event, now);
        }
    }

    /// Shows that a cancel was requested.
    pub(crate) fn cancelling(&mut self, reason: &str, by: &str) {
        self.clear_footer();
        line(paint(WAITS, "■"), "cancel", &format!("{reason}, asked for by {by}"), None);
        self.draw_footer();
    }

    /// Shows that the execution continues with another definition.
    pub(crate) fn migrated(&mut self, version: &str, reason: &str) {
        self.clear_footer();
        let what = if version.is_empty() { "another definition".into() } else { format!("version {version}") };
        line(paint(GOOD, "⇢"), "migrate", &format!("continues with {what}: {reason}"), None);
        self.draw_footer();
    }

    /// Shows that the execution waits for admission, or with `None` that it was admitted.
    pub(crate) fn queue(&mut self, waiting_for: Option<&str>) {
        self.clear_footer();
        match waiting_for {
            Some("draining") => {
                line(paint(WAITS, "…"), "queue", "waits until executions of the older definition have ended", None);
            }
            Some("admission") => line(paint(WAITS, "…"), "queue", "waits to be admitted", None),
            Some(whose) => {
                line(paint(WAITS, "…"), "queue", &waits_for_limit(whose), None);
            }
            None => line(paint(GOOD, "✓"), "queue", "admitted", None),
        }
        self.draw_footer();
    }

    /// Shows an event of a step.
    pub(crate) fn step(&mut self, name: &str, step_event: StepEvent, now: u64) {
        self.clear_footer();
        self.print(name, &step_event, now);
        self.take_in(name, &step_event, now);
        self.draw_footer();
    }

    /// Applies a record without showing it, so that later events have their context.
    pub(crate) fn remember(&mut self, plan: &Plan, record: &Record, now: u64) {
        if let Some((name, step_event)) = self.step_event(plan, record, now) {
            self.take_in(&name, &step_event, now);
        }
    }

    /// Appends output of a model. It is drawn with the next [`tick`](Self::tick).
    pub(crate) fn partial(&mut self, name: &str, text: &str) {
        let Some((_, running)) = self.running.iter_mut().find(|(running, _)| running == name) else { return };
        running.partial.push_str(text);
        let from = running.partial.len().saturating_sub(PARTIAL_BYTES_MAX);
        running.partial.drain(..running.partial.ceil_char_boundary(from));
    }

    /// Redraws the footer.
    pub(crate) fn tick(&mut self) {
        self.clear_footer();
        self.draw_footer();
    }

    /// Removes the footer, so that only finished lines remain on the screen.
    pub(crate) fn finish(&mut self) {
        self.running.clear();
        self.clear_footer();
    }

    /// The step that a record is about, and its event.
    fn step_event(&mut self, plan: &Plan, record: &Record, now: u64) -> Option<(String, StepEvent)> {
        let instance = record.instance()?;
        let child = self.children.of_record(plan, record, now);
        let work = &plan.step(instance.step).work;
        Some((instance.name(plan), of_record(work, record, child.map(|child| child.to_string()), now)?))
    }

    fn take_in(&mut self, name: &str, step_event: &StepEvent, now: u64) {
        let running = match step_event {
            StepEvent::Began { goes_out } => {
                self.began.insert(name.to_string(), now);
                goes_out.then(|| Running::of(String::new()))
            }
            StepEvent::Attempt { child, .. } => Some(Running::of(runs(child))),
            StepEvent::Logged { .. } => return,
            _ => None,
        };
        let place = self.running.iter().position(|(running, _)| running == name);
        match (place, running) {
            (Some(place), Some(running)) => self.running[place].1 = running,
            (Some(place), None) => drop(self.running.remove(place)),
            (None, Some(running)) => self.running.push((name.to_string(), running)),
            (None, None) => {}
        }
    }

    fn print(&self, name: &str, step_event: &StepEvent, now: u64) {
        let took = || self.began.get(name).map(|at| now.saturating_sub(*at));
        match step_event {
            StepEvent::Began { .. } => {}
            StepEvent::Attempt { attempt, child } => {
                if !self.terminal.is_live {
                    let again = if *attempt > 1 { format!("attempt {attempt}") } else { String::new() };
                    let words: Vec<_> = [again, runs(child)].into_iter().filter(|words| !words.is_empty()).collect();
                    line(dim("▸"), name, &words.join(", "), None);
                }
            }
            StepEvent::Retried { code, in_ms } => {
                let next = in_ms.map_or_else(String::new, |ms| format!("; again in {}", duration(ms)));
                line(paint(WAITS, "↻"), name, &format!("{code}{next}"), took());
            }
            StepEvent::Waits { words } => line(paint(WAITS, "…"), name, words, None),
            StepEvent::Asks { prompt } => line(paint(WAITS, "?"), name, prompt, None),
            StepEvent::Decided { decision, by } => {
                let by = by.as_deref().unwrap_or("the end of its time");
                line(paint(WAITS, "!"), name, &format!("{decision} by {by}"), None);
            }
            StepEvent::Completed => line(paint(GOOD, "✓"), name, "", took()),
            StepEvent::Failed { message, disposition } => {
                let through = match disposition {
                    FailureDisposition::Failed => "",
                    FailureDisposition::Tolerated => " (tolerated)",
                    FailureDisposition::Handled => " (a failure edge takes it up)",
                };
                line(paint(BAD, "✗"), name, &format!("{message}{through}"), took());
            }
            StepEvent::Skipped { reason } => line(dim("○"), name, &format!("skipped: {reason}"), None),
            StepEvent::Logged { lines } => lines.iter().for_each(|text| line(dim("│"), name, text, None)),
            StepEvent::Cancelled { reason } => line(dim("■"), name, &format!("cancelled: {reason}"), took()),
        }
    }

    fn draw_footer(&mut self) {
        if !self.terminal.is_live {
            return;
        }
        let room = self.terminal.width.saturating_sub(FOOTER_MARGIN).max(1);
        for (name, Running { since, words, partial }) in self.running.iter().take(FOOTER_LINES_MAX) {
            let name: String = name.chars().take(room).collect();
            // A line that wraps would take two rows, and clearing the footer would then miss one.
            let left = room.saturating_sub(columns(&shown(&name)) + 2);
            let said = one_line(partial);
            let words = if words.is_empty() { ending(&said, left) } else { words.as_str() };
            let words = if columns(words) <= left { words } else { "" };
            line(paint(AnsiColor::Cyan.on_default(), "▸"), &name, words, Some(millis(since.elapsed())));
        }
        self.footer = self.running.len().min(FOOTER_LINES_MAX);
        let _ = std::io::stdout().flush();
    }

    fn clear_footer(&mut self) {
        if self.footer > 0 {
            let mut out = anstream::stdout().lock();
            let _ = write!(out, "\x1b[{}A\x1b[J", self.footer);
            let _ = out.flush();
            self.footer = 0;
        }
    }
}

fn of_record(work: &Work, record: &Record, child: Option<String>, now: u64) -> Option<StepEvent> {
    Some(match record {
        Record::StepStarted { .. } => StepEvent::Began { goes_out: work.goes_out() },
        Record::AttemptStarted { attempt, .. } => StepEvent::Attempt { attempt: *attempt, child },
        Record::AttemptFailed { fault, retry_at, .. } => {
            StepEvent::Retried { code: fault.code.clone(), in_ms: retry_at.map(|at| at.saturating_sub(now)) }
        }
        Record::WaitStarted { until, .. } => StepEvent::Waits { words: wait(work, *until, now) },
        Record::GateOpened { question, .. } => {
            let prompt = question.value().get("prompt").and_then(Value::as_text).unwrap_or_default();
            StepEvent::Asks { prompt: prompt.to_string() }
        }
        Record::GateDecided { decision, by, .. } => {
            StepEvent::Decided { decision: decision.name().into(), by: by.clone() }
        }
        Record::StepCompleted { .. } => StepEvent::Completed,
        Record::StepFailed { fault, disposition, .. } => {
            StepEvent::Failed { message: fault.failure().message, disposition: *disposition }
        }
        Record::StepSkipped { reason, .. } => StepEvent::Skipped { reason: reason.description().into() },
        Record::StepLogged { lines, .. } => {
            let text = |logged: &Value| logged.get("text").and_then(Value::as_text).unwrap_or_default().to_string();
            StepEvent::Logged { lines: lines.value().as_list().unwrap_or_default().iter().map(text).collect() }
        }
        Record::StepCancelled { reason, .. } => StepEvent::Cancelled { reason: reason.clone() },
        _ => return None,
    })
}

/// The text for an attempt that runs an execution.
fn runs(child: &Option<String>) -> String {
    child.as_ref().map(|child| format!("runs {child}")).unwrap_or_default()
}

/// The text for a step that waits: the signal or time, and the timeout.
fn wait(work: &Work, until: Option<u64>, now: u64) -> String {
    let time = until.map(|at| duration(at.saturating_sub(now)));
    match (work, time) {
        (Work::Signal { name }, None) => format!("waits for the signal {name}"),
        (Work::Signal { name }, Some(time)) => format!("waits for the signal {name}, at most {time}"),
        (_, time) => format!("waits for {}", time.unwrap_or_default()),
    }
}

fn line(sign: String, name: &str, words: &str, took: Option<u64>) {
    let took = took.map(|ms| dim(&format!("  {}", duration(ms)))).unwrap_or_default();
    let words = if words.is_empty() { String::new() } else { format!("  {}", one_line(words)) };
    print_out!("  {sign} {}{words}{took}", shown(name));
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The line of an execution that waits because a limit is reached.
fn waits_for_limit(whose: &str) -> String {
    format!(
        "waits: the limit of the {whose}'s running executions is reached, which counts those that wait for approval; starts when \
         one ends"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_text_is_cut_at_its_start() {
        let terminal = Terminal { is_live: false, can_ask: false, color: false, width: 80 };
        let mut progress = Progress::new(terminal);
        progress.partial("ask#1", "nobody runs");
        progress.step("ask#1", StepEvent::Began { goes_out: true }, 0);
        (0..PARTIAL_BYTES_MAX).for_each(|_| progress.partial("ask#1", "ä\u{1b}[2J"));
        let said = &progress.running[0].1.partial;
        assert!((PARTIAL_BYTES_MAX - 6..=PARTIAL_BYTES_MAX).contains(&said.len()), "{}", said.len());
        assert!(!one_line(said).contains('\u{1b}'), "terminals obey nothing of it");
    }
}
