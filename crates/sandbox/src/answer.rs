//! What comes back from a call.

use crate::fault::Fault;
use crate::limits::{CONSOLE_BYTES_MAX, CONSOLE_LINES_MAX};
use crate::text::beginning;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// JSON text, or why there is none.
    pub result: Result<String, Fault>,
    /// What the code wrote to its console; empty when a worker had to be ended.
    pub console: Console,
    /// The ticks that were used; 0 when a worker had to be ended.
    pub ticks: u64,
}

impl Answer {
    /// An answer of no code.
    pub(crate) fn of(result: Result<String, Fault>) -> Answer {
        Answer { result, console: Console::default(), ticks: 0 }
    }
}

/// The console of a call: at most 100 lines, 8 KiB in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Console {
    /// In the order in which they were written.
    pub lines: Vec<Line>,
    /// Whether something was left out at the end.
    pub truncated: bool,
}

/// One line of console. It may have newlines in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which function wrote it.
    pub level: Level,
    /// The arguments, with a space between.
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
    /// All levels.
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
    /// Bytes that still fit; none once something was left out.
    pub(crate) fn room(&self) -> usize {
        if self.truncated || self.lines.len() >= CONSOLE_LINES_MAX {
            return 0;
        }
        CONSOLE_BYTES_MAX - self.lines.iter().map(|line| line.text.len()).sum::<usize>()
    }

    /// Keeps a line, or as much of it as fits.
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

    /// How many lines and bytes are kept of `count` lines of that text, and whether it says that there were more.
    #[track_caller]
    fn check(text: &str, count: usize, expected: (usize, usize, bool)) {
        let mut console = Console::default();
        (0..count).for_each(|_| console.write(Level::Log, text));
        let bytes = console.lines.iter().map(|line| line.text.len()).sum();
        assert_eq!((console.lines.len(), bytes, console.truncated), expected);
    }

    #[test]
    fn lines_and_bytes_are_bounded_and_the_rest_is_said() {
        check("a", CONSOLE_LINES_MAX, (CONSOLE_LINES_MAX, CONSOLE_LINES_MAX, false));
        check("a", CONSOLE_LINES_MAX + 1, (CONSOLE_LINES_MAX, CONSOLE_LINES_MAX, true));
        check("", CONSOLE_LINES_MAX + 1, (CONSOLE_LINES_MAX, 0, true));
        check(&"b".repeat(CONSOLE_BYTES_MAX), 1, (1, CONSOLE_BYTES_MAX, false));
        check(&"b".repeat(CONSOLE_BYTES_MAX + 1), 3, (1, CONSOLE_BYTES_MAX, true));
        check(&format!("{}ä", "b".repeat(CONSOLE_BYTES_MAX - 1)), 1, (1, CONSOLE_BYTES_MAX - 1, true));
    }
}
