//! Measures the widths of steps once, from the inside out, so that drawing is linear in the size of a plan of any
//! depth.

use mainspring_kernel::plan::{Plan, Work};

use crate::text::columns;

use super::{
    caption::{Caption, SPACE},
    edges::Leads,
    for_each::worker,
    glyphs::Glyphs,
};

/// Columns of the rail or the mark before text, the space included.
pub(super) const RAIL_COLUMNS: usize = 2;

/// The indent of lanes that are stacked.
pub(super) const INDENT_COLUMNS: usize = 3;

/// Columns between lanes that are side by side.
pub(super) const GAP_COLUMNS: usize = 2;

/// Lanes are not drawn side by side if text would be cut to less than this.
const LANE_COLUMNS_MIN: usize = 22;

/// The same bound for the heading of a container, which is more important than its lanes.
const CONTAINER_COLUMNS_MIN: usize = 36;

/// The label of an empty lane: `├ then ─`.
const LABEL_COLUMNS: usize = 7;

/// The width of some steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepWidths {
    /// Columns in which nothing is cut.
    pub natural: usize,
    /// Columns in which the text is still readable.
    pub least: usize,
}

/// The lanes of a container. Each is a list of steps.
pub(super) fn lanes(plan: &Plan, number: u32) -> Vec<&[u32]> {
    let steps = |block: u32| plan.block(block).steps.as_slice();
    match &plan.step(worker(plan, number)).work {
        Work::Parallel { block } => steps(*block).chunks(1).collect(),
        work if work.is_agent() => Vec::new(),
        Work::Loop(of) => vec![steps(of.block)],
        Work::Conditional { then, otherwise, .. } => vec![steps(*then), otherwise.map_or(&[], steps)],
        _ => Vec::new(),
    }
}

/// The widths of all steps. Containers have lower numbers than their contents, so the loop runs backwards.
pub(super) fn measure(plan: &Plan, captions: &[Caption], glyphs: &Glyphs) -> Vec<StepWidths> {
    let mut extents = vec![StepWidths::default(); plan.steps.len()];
    for number in (0..plan.steps.len()).rev() {
        let mut extent = of_caption(&captions[number], glyphs);
        let inside: Vec<StepWidths> =
            lanes(plan, number as u32).into_iter().map(|lane| of_lane(lane, &extents)).collect();
        if !inside.is_empty() {
            let gaps = GAP_COLUMNS * (inside.len() - 1);
            let beside: usize = gaps + inside.iter().map(|lane| lane.least).sum::<usize>();
            let below = INDENT_COLUMNS + inside.iter().map(|lane| lane.least).max().unwrap_or(0);
            extent.least = extent.natural.min(CONTAINER_COLUMNS_MIN);
            extent.natural = extent.natural.max(gaps + inside.iter().map(|lane| lane.natural).sum::<usize>());
            extent.least = extent.least.max(beside.min(below));
        }
        extents[number] = extent;
    }
    extents
}

fn of_caption(caption: &Caption, glyphs: &Glyphs) -> StepWidths {
    let reads = if caption.reads.is_empty() { 0 } else { SPACE.len() + columns(&caption.reads) };
    let heading = caption.heading_columns() + reads;
    let remarks = caption.remarks.iter().map(|remark| columns(remark) + columns(glyphs.dot)).sum();
    let incoming = caption.incoming.iter().chain(&caption.outgoing).map(Leads::columns);
    let widest =
        caption.body.iter().map(|line| columns(line)).chain(incoming).chain([heading, remarks]).max().unwrap_or(0);
    let natural = RAIL_COLUMNS + widest;
    StepWidths { natural, least: natural.min(LANE_COLUMNS_MIN) }
}

/// The width of a list of steps.
pub(super) fn of_lane(steps: &[u32], extents: &[StepWidths]) -> StepWidths {
    let label = StepWidths { natural: LABEL_COLUMNS, least: LABEL_COLUMNS };
    steps
        .iter()
        .map(|step| extents[*step as usize])
        .fold(label, |a, b| StepWidths { natural: a.natural.max(b.natural), least: a.least.max(b.least) })
}

/// Divides the width among lanes that are side by side; `None` if they do not fit. Columns beyond the minimum go
/// first to the lanes that need few more.
pub(super) fn share(wanted: &[StepWidths], width: usize) -> Option<Vec<usize>> {
    let gaps = GAP_COLUMNS * wanted.len().saturating_sub(1);
    let least: usize = wanted.iter().map(|lane| lane.least).sum();
    let mut rest = width.checked_sub(gaps + least)?;
    let mut columns: Vec<usize> = wanted.iter().map(|lane| lane.least).collect();
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|lane| wanted[*lane].natural - wanted[*lane].least);
    for (done, lane) in order.into_iter().enumerate() {
        let more = (wanted[lane].natural - wanted[lane].least).min(rest / (wanted.len() - done));
        columns[lane] += more;
        rest -= more;
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &[(usize, usize)], width: usize, expected: Option<&[usize]>) {
        let wanted: Vec<StepWidths> =
            wanted.iter().map(|(least, natural)| StepWidths { natural: *natural, least: *least }).collect();
        assert_eq!(share(&wanted, width).as_deref(), expected);
    }

    #[test]
    fn sharing() {
        check(&[(10, 10), (10, 10)], 80, Some(&[10, 10]));
        check(&[(10, 10), (10, 10)], 22, Some(&[10, 10]));
        check(&[(10, 10), (10, 10)], 21, None);
        check(&[(10, 50), (10, 12), (10, 50)], 54, Some(&[19, 12, 19]));
        check(&[(10, 50), (10, 12)], 80, Some(&[50, 12]));
        check(&[], 10, Some(&[]));
    }
}
