//! The characters of a drawing. Marks and lines are one column wide in both sets.

use mainspring_kernel::plan::EdgeKind;

use crate::text;

/// A set of characters.
#[derive(Debug)]
pub(super) struct Glyphs {
    is_ascii: bool,
    /// The marks of steps.
    pub marks: Marks,
    /// The start of a drawing.
    pub first: &'static str,
    /// The end of a drawing.
    pub last: &'static str,
    /// The line between steps.
    pub rail: &'static str,
    /// Lines around parallel lanes.
    pub both: Ways,
    /// Lines around alternative lanes.
    pub either: Ways,
    /// Marks cut text.
    pub ellipsis: &'static str,
    /// Precedes the sources of a step.
    pub reads: &'static str,
    /// Precedes the output variable of a step.
    pub writes: &'static str,
    /// Separates remarks.
    pub dot: &'static str,
    /// The quotes around prompts.
    pub quotes: [&'static str; 2],
}

/// The marks that precede steps and edges, by their kind.
#[derive(Debug)]
pub(super) struct Marks {
    /// The mark of work.
    pub work: &'static str,
    /// The mark of a wait for time or a signal.
    pub wait: &'static str,
    /// The mark of an approval.
    pub gate: &'static str,
    /// The mark of a branch.
    pub choice: &'static str,
    /// The mark of parallel branches.
    pub parallel: &'static str,
    /// The mark of a loop.
    pub again: &'static str,
    /// Precedes edges that are taken after a failure.
    pub failure: &'static str,
    /// The mark of an early end of the execution.
    pub end: &'static str,
}

/// The lines at which lanes fork and join.
#[derive(Debug)]
pub(super) struct Ways {
    /// The horizontal line.
    pub across: &'static str,
    /// Forks at the first lane, the middle lanes and the last one.
    pub fork: [&'static str; 3],
    /// Joins at the same places.
    pub join: [&'static str; 3],
    /// Joins at a first or middle lane that has ended before.
    pub join_ended: [&'static str; 2],
    /// The vertical line beside stacked lanes.
    pub side: &'static str,
    /// The line from there to a lane.
    pub branch: &'static str,
    /// The line below the last stacked lane.
    pub joined: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    is_ascii: false,
    marks: Marks {
        work: "●", wait: "○", gate: "◆", choice: "◇", parallel: "╪", again: "↻", failure: "✗", end: "■"
    },
    first: "┬",
    last: "┴",
    rail: "│",
    both: Ways {
        across: "═",
        fork: ["╞", "╤", "╕"],
        join: ["╞", "╧", "╛"],
        join_ended: ["╒", "═"],
        side: "║",
        branch: "╠",
        joined: "╨",
    },
    either: Ways {
        across: "─",
        fork: ["├", "┬", "┐"],
        join: ["├", "┴", "┘"],
        join_ended: ["┌", "─"],
        side: "┊",
        branch: "├",
        joined: "┘",
    },
    ellipsis: "…",
    reads: "←",
    writes: "→",
    dot: " · ",
    quotes: ["“", "”"],
};

const ASCII: Glyphs = Glyphs {
    is_ascii: true,
    marks: Marks { work: "*", wait: "o", gate: "!", choice: "?", parallel: "#", again: "%", failure: "x", end: "x" },
    first: "+",
    last: "+",
    rail: "|",
    both: Ways {
        across: "=",
        fork: ["+", "+", "+"],
        join: ["+", "+", "+"],
        join_ended: ["+", "="],
        side: "#",
        branch: "#",
        joined: "#",
    },
    either: Ways {
        across: "-",
        fork: ["+", "+", "+"],
        join: ["+", "+", "+"],
        join_ended: ["+", "-"],
        side: ":",
        branch: "+",
        joined: "+",
    },
    ellipsis: "...",
    reads: "<-",
    writes: "->",
    dot: ", ",
    quotes: ["\"", "\""],
};

impl Glyphs {
    /// Selects the set.
    pub(super) fn of(is_ascii: bool) -> &'static Self {
        if is_ascii { &ASCII } else { &UNICODE }
    }

    /// The phrase for an edge, before the name of its source.
    pub(super) fn lead(&self, kind: EdgeKind) -> String {
        match kind {
            EdgeKind::OnSuccess => "on success of".into(),
            EdgeKind::OnFailure => format!("{} on failure of", self.marks.failure),
            EdgeKind::Always => "always after".into(),
            EdgeKind::Skip => "on skip of".into(),
            EdgeKind::Ended => "after".into(),
        }
    }

    /// Escapes untrusted text for the set.
    pub(super) fn shown(&self, text: &str) -> String {
        if self.is_ascii { text::shown_in_ascii(text) } else { text::shown(text) }
    }

    /// A text in quotes.
    pub(super) fn quoted(&self, text: &str) -> String {
        let [before, after] = self.quotes;
        format!("{before}{text}{after}")
    }
}
