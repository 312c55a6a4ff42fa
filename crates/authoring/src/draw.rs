//! Draws plans: for a terminal, as a Mermaid flowchart, as a Graphviz graph, as an SVG picture. All functions are pure,
//! from a plan to text.
//!
//! All names and values of a plan are untrusted text. Control characters are escaped in every drawing, and each
//! notation has one function that quotes for it.
//!
//! | file | content |
//! |---|---|
//! | `phrases` | conditions, durations and templates as readable text |
//! | `details` | the remarks of a step: only what differs from the defaults |
//! | `styled_line` | text with tones, and their rendering as colors |
//! | `glyphs` | the characters of a drawing, in Unicode and in ASCII |
//! | `caption` | all text of one step |
//! | `for_each` | steps with `forEach`, which are two steps of a plan |
//! | `edges` | levels of steps that are ordered by edges, and their incoming edges as text |
//! | `header` | the properties of the whole plan |
//! | `widths` | the widths of steps, measured once |
//! | `terminal` | the drawing for a terminal |
//! | `levels` | the drawing for a terminal of steps that are ordered by edges |
//! | `graph` | nodes, edges and clusters, for the notations and the picture |
//! | `mermaid`, `dot` | the two notations |
//! | `placement`, `svg` | the picture: places in the plane, and their markup |

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
mod placement;
mod styled_line;
mod svg;
mod terminal;
mod widths;

pub use dot::dot;
pub use mermaid::mermaid;
pub use phrases::{condition_text, duration};
pub use svg::svg;
pub use terminal::{Style, terminal};
