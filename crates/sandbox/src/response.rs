//! The result of a call.

use crate::fault::Fault;
use crate::limits::{CONSOLE_BYTES_MAX, CONSOLE_LINES_MAX};
use crate::text::beginning;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The result as JSON text, or the failure.
    pub result: Result<String, Fault>,
    /// The console output of the code; empty if the worker was killed.
    pub console: Console,
    /// The ticks that were used; 0 if the worker was killed.
    pub ticks: u64,
}

impl Response {
    /// Makes an answer of a call that ran no code.
    pub(crate) fn of(result: Result<String, Fault>) -> Response {
        Response { result, console: Console::default(), ticks: 0 }
    }
}

/// The console output of a call: at most 100 lines, 8 KiB in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Console {
    /// The lines in the order in which they were written.
    pub lines: Vec<Line>,
    /// True if output at the end was left out.
    pub truncated: bool,
}

/// One call of a console function. Its text may contain newlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The function that wrote it.
    pub level: Level,
    /// The arguments, separated by spaces.
    pub text: String,
}

/// The functions of `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `console.log`
    Log,
    /// `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
    /// `console.debug`
    Debug,
}

impl Level {
    /// All levels, in the order in which `console` gets its functions.
    pub const ALL: [Level; 5] = [Level::Log, Level::Info, Level::Warn, Level::Error, Level::Debug];

    /// The name of the function.
    pub fn name(self) -> &'static str {
        match self {
            Level::Log => "log",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
            Level::Debug => "debug",
        }
    }
}

impl Console {
    /// Returns the bytes that still fit; 0 once output was left out.
    pub(crate) fn room(&self) -> usize {
        if self.truncated || self.lines.len() >= CONSOLE_LINES_MAX {
            return 0;
        }
        CONSOLE_BYTES_MAX - self.lines.iter().map(|line| line.text.len()).sum::<usize>()
    }

    /// Appends a line, or as much of it as fits.
    pub(crate) fn write(&mut self, level: Level, text: &str) {
        let room = self.room();
        if self.truncated || self.lines.len() >= CONSOLE_LINES_MAX {
            self.truncated = true;
            return;
        }
        let kept = beginning(text, room);
        self.truncated = kept.len() < text.len();
        self.lines.push(Line { level, text: kept.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Console, Level};
    use crate::limits::{CONSOLE_BYTES_MAX, CONSOLE_LINES_MAX};

    /// Checks the number of kept lines and bytes, and the flag, after `count` lines of a text.
    #[track_caller]
    fn check(text: &str, count: usize, expected: (usize, usize, bool)) {
        let mut console = Console::default();
        (0..count).for_each(|_| console.write(Level::Log, text));
        let bytes = console.lines.iter().map(|line| line.text.len()).sum();
        assert_eq!((console.lines.len(), bytes, console.truncated), expected);
    }

    #[test]
    fn console_output_is_bounded_and_marked_as_cut() {
        check("a", CONSOLE_LINES_MAX, (CONSOLE_LINES_MAX, CONSOLE_LINES_MAX, false));
        check("a", CONSOLE_LINES_MAX + 1, (CONSOLE_LINES_MAX, CONSOLE_LINES_MAX, true));
        check("", CONSOLE_LINES_MAX + 1, (CONSOLE_LINES_MAX, 0, true));
        check(&"b".repeat(CONSOLE_BYTES_MAX), 1, (1, CONSOLE_BYTES_MAX, false));
        check(&"b".repeat(CONSOLE_BYTES_MAX + 1), 3, (1, CONSOLE_BYTES_MAX, true));
        check(&format!("{}ä", "b".repeat(CONSOLE_BYTES_MAX - 1)), 1, (1, CONSOLE_BYTES_MAX - 1, true));
    }
}
