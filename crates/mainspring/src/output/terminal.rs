//! Terminal output: lines, colors, and the escaping of values that contain control characters.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use mainspring_kernel::state::Status;

use crate::output::text::paragraph;

/// Prints a line on standard output. A closed pipe or a full disk does not change the result of the command.
macro_rules! print_out {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stdout().lock(), $($text)*);
    }};
}
pub(crate) use print_out;

/// Prints a line on standard error. Write errors are ignored, as in [`print_out`].
macro_rules! print_err {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stderr().lock(), $($text)*);
    }};
}
pub(crate) use print_err;

/// The properties of the terminal of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// True if standard output is a terminal, so lines can be redrawn.
    pub(crate) is_live: bool,
    /// True if input and output are terminals, so the user can be prompted.
    pub(crate) can_ask: bool,
    /// True if colors are enabled.
    pub(crate) color: bool,
    /// Width in columns; 100 if it is unknown.
    pub(crate) width: usize,
}

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const WAITS: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

impl Terminal {
    /// Reads the properties of the process's standard streams. `NO_COLOR` and `CLICOLOR` are respected.
    pub(crate) fn of_process() -> Self {
        let choice = anstream::AutoStream::choice(&std::io::stdout());
        let is_live = std::io::stdout().is_terminal();
        let width = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
        Self {
            is_live,
            can_ask: is_live && std::io::stdin().is_terminal(),
            color: choice != anstream::ColorChoice::Never,
            width: if width == 0 { 100 } else { width },
        }
    }

    /// Prints an error message on standard error.
    pub(crate) fn error(&self, message: &str) {
        print_err!("{}: {}", paint(BAD, "error"), paragraph(message));
    }

    /// Prints a dimmed note on standard error.
    pub(crate) fn note(&self, message: &str) {
        print_err!("{}", paint(DIM, &paragraph(message)));
    }
}

/// A text with a style. The output stream removes the style unless it is a terminal.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A status in its color.
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

/// A text in the color of warnings.
pub(crate) fn waits(text: &str) -> String {
    paint(WAITS, text)
}

pub(crate) fn dim(text: &str) -> String {
    paint(DIM, text)
}

pub(crate) fn bold(text: &str) -> String {
    paint(BOLD, text)
}

/// Milliseconds in readable units.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

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
