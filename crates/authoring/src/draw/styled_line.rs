//! One line of a drawing. Its text has tones, which are rendered as colors or omitted.

use crate::text;
use anstyle::{AnsiColor, Style};

/// The tone of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Default text.
    Plain,
    /// Names.
    Strong,
    /// Secondary text: rails, kinds, references.
    Dim,
    /// Steps that perform attempts or evaluations.
    Work,
    /// A wait for time or a signal.
    Wait,
    /// An approval.
    Gate,
    /// Forks and joins.
    Way,
    /// An end of the execution.
    End,
    /// Edges that are taken after a failure.
    Failure,
}

impl Tone {
    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Work => color(AnsiColor::Green),
            Self::Wait => color(AnsiColor::Blue),
            Self::Gate => color(AnsiColor::Yellow).bold(),
            Self::Way => color(AnsiColor::Cyan),
            Self::End => color(AnsiColor::Magenta),
            Self::Failure => color(AnsiColor::Red),
        }
    }
}

/// Text with tones, without control characters.
#[derive(Debug, Clone, Default)]
pub(super) struct StyledLine {
    /// Prefixes, the outermost last. Every level of nesting prefixes all its lines, so a prefix must be cheap to
    /// add.
    front: Vec<(Tone, String)>,
    spans: Vec<(Tone, String)>,
    columns: usize,
}

impl StyledLine {
    pub(super) fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().with(tone, text)
    }

    pub(super) fn with(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.push(tone, text);
        self
    }

    /// Adds text at the end.
    pub(super) fn push(&mut self, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        self.columns += text::columns(&text);
        self.spans.push((tone, text));
    }

    /// Adds text at the beginning.
    pub(super) fn push_front(&mut self, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        self.columns += text::columns(&text);
        self.front.push((tone, text));
    }

    /// Appends another line.
    pub(super) fn append(&mut self, other: Self) {
        self.columns += other.columns;
        self.spans.extend(other.front.into_iter().rev().chain(other.spans));
    }

    /// Pads with spaces to a width.
    pub(super) fn pad(&mut self, columns: usize) {
        if columns > self.columns {
            self.push(Tone::Plain, " ".repeat(columns - self.columns));
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Cuts the line to a width.
    pub(super) fn cut(self, width: usize, ellipsis: &str) -> Self {
        if self.columns <= width {
            return self;
        }
        let room = width.saturating_sub(text::columns(ellipsis));
        let mut short = Self::default();
        for (tone, text) in self.front.into_iter().rev().chain(self.spans) {
            let left = room - short.columns;
            if text::columns(&text) > left {
                short.push(tone, format!("{}{ellipsis}", text::cut(&text, left, "")));
                break;
            }
            short.push(tone, text);
        }
        short
    }

    /// Writes the line and a line end, without trailing spaces. Adjacent pieces of one style share an escape
    /// sequence.
    pub(super) fn write(&self, color: bool, out: &mut String) {
        let spans = || self.front.iter().rev().chain(&self.spans).filter(|(_, text)| !text.is_empty());
        let is_blank = |text: &str| text.chars().all(|letter| letter == ' ');
        let length = spans().enumerate().filter(|(_, (_, text))| !is_blank(text)).map(|(at, _)| at + 1).last();
        let length = length.unwrap_or(0);
        let mut style = Style::new();
        for (at, (tone, text)) in spans().take(length).enumerate() {
            let text = if at + 1 == length { text.trim_end_matches(' ') } else { text };
            let next = if color { tone.style() } else { Style::new() };
            if next != style {
                out.push_str(&format!("{style:#}{next}"));
                style = next;
            }
            out.push_str(text);
        }
        out.push_str(&format!("{style:#}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: StyledLine, plain: &str, colored: &str) {
        for (color, expected) in [(false, plain), (true, colored)] {
            let mut out = String::new();
            line.write(color, &mut out);
            assert_eq!(out, format!("{expected}\n"));
        }
    }

    #[test]
    fn writing() {
        let line = StyledLine::of(Tone::Strong, "a").with(Tone::Plain, " b");
        check(line.clone(), "a b", "\u{1b}[1ma\u{1b}[0m b");
        check(line.with(Tone::Dim, "  ").with(Tone::Plain, " "), "a b", "\u{1b}[1ma\u{1b}[0m b");
        check(StyledLine::of(Tone::Plain, "a  "), "a", "a");
        check(StyledLine::of(Tone::Plain, "  "), "", "");
    }

    #[test]
    fn cutting() {
        let line = || StyledLine::of(Tone::Plain, "abc").with(Tone::Plain, "def");
        for (width, expected) in [(6, "abcdef"), (5, "abcd…"), (4, "abc…"), (3, "ab…"), (2, "a…"), (1, "…")] {
            let cut = line().cut(width, "…");
            assert!(cut.columns() <= width, "{width}");
            check(cut, expected, expected);
        }
    }
}
