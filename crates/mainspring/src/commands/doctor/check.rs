//! A check and its result, and the report of all checks: lines for people, JSON objects for programs, and a
//! verdict.

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use crate::{
    error::Exit,
    output::terminal::{BAD, GOOD, WAITS, bold, dim, paint, print_out},
    output::text::{one_line, paragraph},
};

/// Columns of the longest check name.
const NAME_COLUMNS: usize = 20;

/// The state of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Everything is fine.
    Ok,
    /// It works now, but not reliably or not well.
    Warning,
    /// It does not work, or must not be trusted.
    Broken,
    /// The check could not run.
    Skipped,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    /// The stable name, for programs.
    pub(super) name: &'static str,
    pub(super) state: State,
    /// The message, one sentence.
    pub(super) message: String,
    /// The help: a command or a change.
    help: Option<String>,
    /// Details as data, for programs.
    detail: Map,
}

impl Check {
    /// A check that is fine.
    pub(super) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, state: State::Ok, message: message.into(), help: None, detail: Map::new() }
    }

    /// A check with a warning.
    pub(super) fn warning(name: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Warning, help: Some(help.into()), ..Self::ok(name, message) }
    }

    /// A broken check.
    pub(super) fn broken(name: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Broken, help: Some(help.into()), ..Self::ok(name, message) }
    }

    /// A check that could not run, with the reason.
    pub(super) fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        Self { state: State::Skipped, ..Self::ok(name, why) }
    }

    /// Adds a detail for programs.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(key.into(), value.into());
        self
    }

    fn object(&self) -> Value {
        let mut map = Map::from([
            ("check".to_string(), Value::from(self.name)),
            ("state".to_string(), self.state.word().into()),
            ("message".to_string(), self.message.as_str().into()),
            ("help".to_string(), self.help.as_deref().into()),
        ]);
        if !self.detail.is_empty() {
            map.insert("detail".into(), Value::Map(self.detail.clone()));
        }
        Value::Map(map)
    }
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Broken => "broken",
            Self::Skipped => "skipped",
        }
    }

    fn sign(self) -> String {
        match self {
            Self::Ok => paint(GOOD, "✓"),
            Self::Warning => paint(WAITS, "!"),
            Self::Broken => paint(BAD, "✗"),
            Self::Skipped => dim("○"),
        }
    }
}

/// The report, which prints each check as it arrives.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    told: Vec<(&'static str, State)>,
    /// The reason why the previous check was skipped. Skipped checks that follow with the same reason are not
    /// printed.
    why_skipped: Option<String>,
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self { json, told: Vec::new(), why_skipped: None }
    }

    /// Prints and counts a check.
    pub(super) fn add(&mut self, check: Check) {
        self.told.push((check.name, check.state));
        if self.json {
            print_out!("{}", compact(&check.object()));
            return;
        }
        let why = (check.state == State::Skipped).then(|| check.message.clone());
        if why.is_some() && self.why_skipped == why {
            return;
        }
        self.why_skipped = why;
        let message =
            if check.state == State::Skipped { dim(&one_line(&check.message)) } else { paragraph(&check.message) };
        print_out!("  {} {:<NAME_COLUMNS$} {message}", check.state.sign(), check.name);
        if let Some(help) = &check.help {
            print_out!("    {:<NAME_COLUMNS$} → {}", "", paragraph(help));
        }
    }

    /// Prints the verdict, and returns the exit code.
    pub(super) fn end(self) -> Exit {
        let of = |state: State| -> Vec<&str> {
            self.told.iter().filter(|(_, other)| *other == state).map(|(name, _)| *name).collect()
        };
        let (ok, warnings, broken, skipped) =
            (of(State::Ok), of(State::Warning), of(State::Broken), of(State::Skipped));
        if !self.json {
            let rest = format!("{} ok, {} skipped", ok.len(), skipped.len());
            let verdict = match (broken.is_empty(), warnings.is_empty()) {
                (true, true) => format!("{}  {rest}", paint(GOOD, "ok")),
                (true, false) => format!("{} {}; {rest}", paint(WAITS, "ok with warnings:"), warnings.join(", ")),
                (false, true) => format!("{} {}; {rest}", paint(BAD, "broken:"), bold(&broken.join(", "))),
                (false, false) => {
                    let (broken, warnings) = (bold(&broken.join(", ")), warnings.join(", "));
                    format!("{} {broken}; warnings: {warnings}; {rest}", paint(BAD, "broken:"))
                }
            };
            print_out!("\n{verdict}");
        }
        if broken.is_empty() { Exit::Fine } else { Exit::NotSo }
    }
}

impl Extend<Check> for Report {
    fn extend<T: IntoIterator<Item = Check>>(&mut self, checks: T) {
        checks.into_iter().for_each(|check| self.add(check));
    }
}
