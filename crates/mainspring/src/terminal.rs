//! What a person sees: lines, colours where there is a terminal, nothing that a value could do to it.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use mainspring_kernel::{
    instance::Instance,
    plan::{Plan, Work},
    record::{FailureFate, Record},
    state::Status,
    trace::Children,
    value::Value,
};

use crate::text::{one_line, paragraph, shown};

/// Prints a line on standard output. A reader that has gone, or a disk that is full, does not change what was done.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stdout().lock(), $($text)*);
    }};
}
pub(crate) use say;

/// Prints a line on standard error, as [`say`] does on standard output.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stderr().lock(), $($text)*);
    }};
}
pub(crate) use tell;

/// How standard output is written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Whether lines may be redrawn.
    pub(crate) is_live: bool,
    /// Whether somebody can be asked.
    pub(crate) can_ask: bool,
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    /// Columns.
    pub(crate) width: usize,
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WAITS: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

impl Terminal {
    /// As the process was started: `NO_COLOR` and `CLICOLOR` are honoured.
    pub(crate) fn of_process() -> Self {
        let choice = anstream::AutoStream::choice(&std::io::stdout());
        let is_live = std::io::stdout().is_terminal();
        let width = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
        Self {
            is_live,
            can_ask: is_live && std::io::stdin().is_terminal(),
            colour: choice != anstream::ColorChoice::Never,
            width: if width == 0 { 100 } else { width },
        }
    }

    /// One line on standard error.
    pub(crate) fn error(&self, message: &str) {
        tell!("{}: {}", paint(BAD, "error"), paragraph(message));
    }

    /// One remark on standard error.
    pub(crate) fn remark(&self, message: &str) {
        tell!("{}", paint(DIM, &paragraph(message)));
    }
}

/// A text in a style; the stream it is printed to drops the style where there is no terminal.
fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A status in its colour.
pub(crate) fn status(status: &str) -> String {
    let style = match status {
        "completed" | "ok" => GOOD,
        "failed" => BAD,
        "waiting_approval" | "needs_approval" | "retrying" | "waiting" => WAITS,
        "cancelled" | "skipped" | "pending" => DIM,
        _ => BOLD,
    };
    paint(style, status)
}

/// What asks for somebody's attention.
pub(crate) fn waits(text: &str) -> String {
    paint(WAITS, text)
}

/// Dimmed text.
pub(crate) fn dim(text: &str) -> String {
    paint(DIM, text)
}

/// Bold text.
pub(crate) fn bold(text: &str) -> String {
    paint(BOLD, text)
}

/// Milliseconds as a person says them.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Shows the steps of an execution as they go: a line for each end, and on a terminal, below them, what runs now.
pub(crate) struct Progress {
    terminal: Terminal,
    began: BTreeMap<Instance, (u64, String)>,
    running: BTreeMap<Instance, Running>,
    children: Children,
    footer: usize,
}

/// An attempt that is out.
struct Running {
    since: Instant,
    /// What is said of it beside its name: the execution that it runs.
    words: String,
}

impl Running {
    fn of(words: String) -> Self {
        Self { since: Instant::now(), words }
    }
}

/// Lines of running steps that are redrawn; more would not fit above the cursor of a small terminal.
const FOOTER_LINES_MAX: usize = 10;

/// Columns beside a name in such a line: its sign and its time.
const FOOTER_MARGIN: usize = 20;

impl Progress {
    /// Nothing shown yet.
    pub(crate) fn new(terminal: Terminal) -> Self {
        let (began, running) = (BTreeMap::new(), BTreeMap::new());
        Self { terminal, began, running, children: Children::default(), footer: 0 }
    }

    /// Shows a record.
    pub(crate) fn record(&mut self, plan: &Plan, record: &Record, now: u64) {
        self.clear_footer();
        if let Some(instance) = record.instance() {
            let name = instance.name(plan);
            self.step(plan, instance, &name, record, now);
        }
        if let Record::CancelRequested { reason, by } = record {
            line(paint(WAITS, "■"), "cancel", &format!("{reason}, asked for by {by}"), None);
        }
        self.draw_footer();
    }

    /// Takes in a record that is not shown, so that what follows from it can be.
    pub(crate) fn remember(&mut self, plan: &Plan, record: &Record, now: u64) {
        let Some(instance) = record.instance() else { return };
        if let Record::StepStarted { .. } = record {
            self.began.insert(instance.clone(), (now, instance.name(plan)));
        }
        let child = self.child(plan, record, now);
        match record {
            Record::AttemptStarted { .. } => drop(self.running.insert(instance.clone(), Running::of(child))),
            _ => drop(self.running.remove(instance)),
        }
    }

    /// Redraws what runs.
    pub(crate) fn tick(&mut self) {
        self.clear_footer();
        self.draw_footer();
    }

    /// Leaves the screen as it is to stay.
    pub(crate) fn finish(&mut self) {
        self.running.clear();
        self.clear_footer();
    }

    /// What is said of the execution that a record starts.
    fn child(&mut self, plan: &Plan, record: &Record, now: u64) -> String {
        self.children.of_record(plan, record, now).map(|child| format!("runs {child}")).unwrap_or_default()
    }

    fn step(&mut self, plan: &Plan, instance: &Instance, name: &str, record: &Record, now: u64) {
        let child = self.child(plan, record, now);
        let took = |progress: &Self| progress.began.get(instance).map(|(at, _)| now.saturating_sub(*at));
        match record {
            Record::StepStarted { .. } => {
                self.began.insert(instance.clone(), (now, name.to_string()));
                if plan.step(instance.step).work.goes_out() {
                    self.running.insert(instance.clone(), Running::of(String::new()));
                }
                return;
            }
            Record::AttemptStarted { attempt, .. } => {
                if !self.terminal.is_live {
                    let again = if *attempt > 1 { format!("attempt {attempt}") } else { String::new() };
                    let words: Vec<_> = [again, child].into_iter().filter(|words| !words.is_empty()).collect();
                    line(dim("▸"), name, &words.join(", "), None);
                } else {
                    self.running.insert(instance.clone(), Running::of(child));
                }
                return;
            }
            Record::AttemptFailed { fault, retry_at, .. } => {
                let next =
                    retry_at.map_or("again".into(), |at| format!("again in {}", duration(at.saturating_sub(now))));
                line(paint(WAITS, "↻"), name, &format!("{}; {next}", fault.code), took(self));
            }
            Record::WaitStarted { until, .. } => {
                line(paint(WAITS, "…"), name, &wait(&plan.step(instance.step).work, *until, now), None);
            }
            Record::GateOpened { question, .. } => {
                let prompt = question.value().get("prompt").and_then(Value::as_text).unwrap_or_default();
                line(paint(WAITS, "?"), name, prompt, None);
            }
            Record::GateDecided { decision, by, .. } => {
                let by = by.as_deref().unwrap_or("the end of its time");
                line(paint(WAITS, "!"), name, &format!("{} by {by}", decision.name()), None);
            }
            Record::StepCompleted { .. } => line(paint(GOOD, "✓"), name, "", took(self)),
            Record::StepFailed { fault, fate, .. } => {
                let through = match fate {
                    FailureFate::Fails => "",
                    FailureFate::LetThrough => " (let through)",
                    FailureFate::Handled => " (a failure edge takes it up)",
                };
                line(paint(BAD, "✗"), name, &format!("{}{through}", fault.failure().message), took(self));
            }
            Record::StepSkipped { reason, .. } => {
                line(dim("○"), name, &format!("skipped: {}", reason.words()), None);
            }
            Record::StepLogged { lines, .. } => {
                for logged in lines.value().as_list().unwrap_or_default() {
                    let text = logged.get("text").and_then(Value::as_text).unwrap_or_default();
                    line(dim("│"), name, text, None);
                }
                return;
            }
            Record::StepCancelled { reason, .. } => line(dim("■"), name, &format!("called off: {reason}"), took(self)),
            _ => return,
        }
        self.running.remove(instance);
    }

    fn draw_footer(&mut self) {
        if !self.terminal.is_live {
            return;
        }
        let room = self.terminal.width.saturating_sub(FOOTER_MARGIN).max(1);
        for (instance, Running { since, words }) in self.running.iter().take(FOOTER_LINES_MAX) {
            let name = self.began.get(instance).map_or("", |(_, name)| name.as_str());
            let name: String = name.chars().take(room).collect();
            // A line that does not fit would take two, and the footer would not be found again.
            let has_room = name.chars().count() + words.chars().count() < room;
            let words = if has_room { words.as_str() } else { "" };
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

/// What a step waits for, and for how long at the most.
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
    say!("  {sign} {}{words}{took}", shown(name));
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The sign of a status.
pub(crate) fn sign(status: Status) -> String {
    match status {
        Status::Completed => paint(GOOD, "✓"),
        Status::Failed => paint(BAD, "✗"),
        Status::Skipped | Status::Pending => dim("○"),
        Status::Cancelled => dim("■"),
        Status::Running => paint(BOLD, "▸"),
        Status::Retrying => paint(WAITS, "↻"),
        Status::Waiting => paint(WAITS, "…"),
        Status::WaitingApproval => paint(WAITS, "?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (ms, text) in
            [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (61_000, "1 min 1 s"), (3_660_000, "1 h 1 min")]
        {
            assert_eq!(duration(ms), text);
        }
    }
}
