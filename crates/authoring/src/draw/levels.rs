//! Draws steps that are ordered by edges: the levels one below the other, and side by side the steps that fit
//! uncut. Text at each step names its predecessors, because lines would cross too often.

use mainspring_kernel::plan::Graph;

use super::{
    details::counted,
    edges,
    styled_line::{StyledLine, Tone},
    terminal::{Drawer, Drawing},
    widths::GAP_COLUMNS,
};

impl<'p> Drawer<'p> {
    /// Draws the steps of a graph.
    pub(super) fn levels(&mut self, graph: &Graph, steps: &'p [u32], width: usize) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for (at, level) in edges::levels(graph, steps).into_iter().enumerate() {
            lines.extend((at > 0).then(StyledLine::default));
            lines.push(self.rule(at + 1, level.len(), width));
            for (at, row) in self.rows(&level, width).into_iter().enumerate() {
                lines.extend((at > 0).then(StyledLine::default));
                lines.extend(self.row(&row, width));
            }
        }
        lines
    }

    /// `── level 2 ── 3 steps ─────────`
    fn rule(&self, number: usize, steps: usize, width: usize) -> StyledLine {
        let across = self.glyphs.either.across;
        let count = if steps > 1 { format!(" {} {}", across.repeat(2), counted(steps, "step")) } else { String::new() };
        let text = format!("{} level {number}{count} ", across.repeat(2));
        let rest = width.saturating_sub(crate::text::columns(&text));
        StyledLine::of(Tone::Way, format!("{text}{}", across.repeat(rest)))
    }

    /// Divides the steps of a level into rows, as many per row as fit uncut.
    fn rows(&self, level: &[u32], width: usize) -> Vec<Vec<u32>> {
        let mut rows: Vec<Vec<u32>> = Vec::new();
        let mut taken = 0;
        for number in level {
            let columns = self.extents[*number as usize].natural;
            match rows.last_mut() {
                Some(row) if taken + GAP_COLUMNS + columns <= width => {
                    row.push(*number);
                    taken += GAP_COLUMNS + columns;
                }
                _ => {
                    rows.push(vec![*number]);
                    taken = columns;
                }
            }
        }
        rows
    }

    fn row(&mut self, row: &[u32], width: usize) -> Vec<StyledLine> {
        if let [one] = row {
            return self.step(*one, width).lines;
        }
        let mut start = 0;
        let mut drawings: Vec<(usize, Drawing)> = Vec::new();
        for number in row {
            let columns = self.extents[*number as usize].natural;
            // The rail does not continue below the last step of a row.
            drawings.push((start, Drawing { flows: false, ..self.step(*number, columns) }));
            start += columns + GAP_COLUMNS;
        }
        self.side_by_side(drawings)
    }
}
