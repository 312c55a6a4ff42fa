//! Draws plans: for a terminal, as a Mermaid flowchart, as a Graphviz graph. All functions are pure, from a plan to
//! text.
//!
//! All names and values of a plan are untrusted text. Control characters are escaped in every drawing, and each
//! notation has one function that quotes for it.
//!
//! | file | content |
//! |---|---|
//! | `words` | conditions, durations and templates as readable text |
//! | `remark` | the remarks of a step: only what differs from the defaults |
//! | `line` | text with tones, and their rendering as colors |
//! | `glyphs` | the characters of a drawing, in Unicode and in ASCII |
//! | `caption` | all text of one step |
//! | `each` | steps with `forEach`, which are two steps of a plan |
//! | `edges` | levels of steps that are ordered by edges, and their incoming edges as text |
//! | `preamble` | the properties of the whole plan |
//! | `extent` | the widths of steps, measured once |
//! | `terminal` | the drawing for a terminal |
//! | `levels` | the drawing for a terminal of steps that are ordered by edges |
//! | `graph` | nodes, edges and clusters, for the notations |
//! | `mermaid`, `dot` | the two notations |

mod caption;
mod details;
mod dot;
mod edges;
mod for_each;
mod glyphs;
mod graph;
mod header;
mod levels;
mod mermaid;
mod phrases;
mod styled_line;
mod terminal;
mod widths;

pub use dot::dot;
pub use mermaid::mermaid;
pub use phrases::{condition_text, duration};
pub use terminal::terminal;

/// The style of a drawing for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// True for colors, as ANSI escape sequences.
    pub color: bool,
    /// Columns of the terminal; at least 40 are used.
    pub width: usize,
    /// True for ASCII characters only; all others are escaped.
    pub ascii: bool,
}
