//! Drawings of plans: for a terminal, as a Mermaid flowchart, as a Graphviz graph. Pure functions from a plan to text.
//!
//! Everything in a plan is somebody's text. No drawing passes on what a terminal, a browser or a layout program would
//! obey: control characters are shown escaped, and each notation has one function that quotes for it.
//!
//! | file | holds |
//! |---|---|
//! | `words` | conditions, durations and templates in readable words |
//! | `remark` | what is worth saying of a step: only what differs from the defaults |
//! | `line` | text with tones, and how it becomes colours |
//! | `glyphs` | the characters of a drawing, in Unicode and in ASCII |
//! | `caption` | all the text that stands at one step |
//! | `each` | steps that run for each item, which are two in a plan |
//! | `edges` | levels of steps that go by edges, and what leads to each |
//! | `preamble` | what holds for the whole plan |
//! | `extent` | how much room steps want, measured once |
//! | `terminal` | the drawing for a terminal |
//! | `levels` | the same for steps that go by edges |
//! | `graph` | nodes, edges and clusters, for the notations below |
//! | `mermaid`, `dot` | the two notations |

mod caption;
mod dot;
mod each;
mod edges;
mod extent;
mod glyphs;
mod graph;
mod levels;
mod line;
mod mermaid;
mod preamble;
mod remark;
mod terminal;
mod words;

pub use dot::dot;
pub use mermaid::mermaid;
pub use terminal::terminal;
pub use words::{condition_text, duration};

/// How a drawing for a terminal looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether it has colours, as ANSI escape sequences.
    pub colour: bool,
    /// Columns of the terminal; fewer than 40 are taken for 40.
    pub width: usize,
    /// Whether it is of ASCII alone; what is not is escaped.
    pub ascii: bool,
}
