//! The characters of a drawing. Marks and lines take one column in both sets.

use mainspring_kernel::plan::EdgeKind;

use crate::text;

/// A set of characters.
#[derive(Debug)]
pub(super) struct Glyphs {
    is_ascii: bool,
    /// Work in the world.
    pub work: &'static str,
    /// Waiting for time or a message.
    pub wait: &'static str,
    /// Waiting for people.
    pub gate: &'static str,
    /// One way or the other.
    pub choice: &'static str,
    /// All ways at the same time.
    pub parallel: &'static str,
    /// Again and again.
    pub again: &'static str,
    /// Before what is for a failure.
    pub failure: &'static str,
    /// The end of the execution, in the middle of a plan.
    pub end: &'static str,
    /// Where a drawing begins.
    pub first: &'static str,
    /// Where it ends.
    pub last: &'static str,
    /// From one step to the next.
    pub rail: &'static str,
    /// The lines around lanes that run at the same time.
    pub both: Ways,
    /// The lines around lanes of which one is taken.
    pub either: Ways,
    /// Where a text was cut.
    pub ellipsis: &'static str,
    /// Before what a step reads.
    pub reads: &'static str,
    /// Before what it is kept as.
    pub writes: &'static str,
    /// Between remarks.
    pub dot: &'static str,
    /// Around what people are told.
    pub quotes: [&'static str; 2],
}

/// The lines where a way becomes several and where these become one again.
#[derive(Debug)]
pub(super) struct Ways {
    /// Across.
    pub across: &'static str,
    /// Forks at the first lane, at those between, and at the last.
    pub fork: [&'static str; 3],
    /// Joins there.
    pub join: [&'static str; 3],
    /// Joins at a first lane or one between that does not come this far, because its way has ended.
    pub join_ended: [&'static str; 2],
    /// Down the side of lanes that stand below each other.
    pub side: &'static str,
    /// From there to a lane.
    pub branch: &'static str,
    /// Below the last of them.
    pub joined: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    is_ascii: false,
    work: "●",
    wait: "○",
    gate: "◆",
    choice: "◇",
    parallel: "╪",
    again: "↻",
    failure: "✗",
    end: "■",
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
    work: "*",
    wait: "o",
    gate: "!",
    choice: "?",
    parallel: "#",
    again: "%",
    failure: "x",
    end: "x",
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
    /// The set to draw with.
    pub(super) fn of(is_ascii: bool) -> &'static Self {
        if is_ascii { &ASCII } else { &UNICODE }
    }

    /// What an edge asks of its source, before the source's name.
    pub(super) fn lead(&self, kind: EdgeKind) -> String {
        match kind {
            EdgeKind::OnSuccess => "on success of".into(),
            EdgeKind::OnFailure => format!("{} on failure of", self.failure),
            EdgeKind::Always => "always after".into(),
            EdgeKind::Skip => "on skip of".into(),
            EdgeKind::Ended => "after".into(),
        }
    }

    /// Somebody's text, as it may be shown.
    pub(super) fn shown(&self, text: &str) -> String {
        if self.is_ascii { text::shown_in_ascii(text) } else { text::shown(text) }
    }

    /// A text in quotes.
    pub(super) fn quoted(&self, text: &str) -> String {
        let [before, after] = self.quotes;
        format!("{before}{text}{after}")
    }
}
