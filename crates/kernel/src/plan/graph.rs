//! Edges between the steps of a block.

use alloc::{vec, vec::Vec};

use crate::condition::Condition;

/// The way from one step of a block to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The place in the block of the step that it comes from.
    pub from: u32,
    /// How that step must end.
    pub kind: EdgeKind,
    /// What must hold in addition.
    pub condition: Option<Condition>,
}

/// How its source must end for an edge to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// Well. A source that failed blocks the target.
    OnSuccess,
    /// Badly.
    OnFailure,
    /// In any way.
    Always,
    /// By being skipped.
    Skip,
    /// In any way that does not fail the execution: what a reference and `needs` ask for.
    Ended,
}

impl EdgeKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::OnSuccess, Self::OnFailure, Self::Always, Self::Skip, Self::Ended];

    /// Its word. `ended` is written as `needs` or as a reference, and never as an edge.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnSuccess => "on_success",
            Self::OnFailure => "on_failure",
            Self::Always => "always",
            Self::Skip => "skip",
            Self::Ended => "ended",
        }
    }

    /// Whether what it leads to runs although the execution is going to fail: what handles and what cleans up.
    pub fn outlives_failure(self) -> bool {
        matches!(self, Self::OnFailure | Self::Always)
    }
}

/// How the source of an edge has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceEnd {
    /// Well.
    Completed,
    /// Badly, and nobody has taken the failure up.
    Failed,
    /// Badly, and the failure was let through.
    LetThrough,
    /// Badly, and a failure edge has taken the failure up.
    Handled,
    /// It did not run.
    Skipped,
    /// It was called off.
    Cancelled,
}

impl SourceEnd {
    /// Every end.
    pub const ALL: [Self; 6] =
        [Self::Completed, Self::Failed, Self::LetThrough, Self::Handled, Self::Skipped, Self::Cancelled];
}

/// What an edge does to its target, before its condition is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// It is taken, if its condition holds: one that is taken must lead to a step for it to run.
    Takes,
    /// It forbids its target to run.
    Blocks,
    /// It does neither.
    Neutral,
}

impl EdgeKind {
    /// The whole table.
    pub fn pull(self, end: SourceEnd) -> Pull {
        use SourceEnd::{Cancelled, Completed, Failed, Handled, LetThrough, Skipped};
        match (self, end) {
            (Self::Always, _) => Pull::Takes,
            (Self::OnSuccess, Completed) => Pull::Takes,
            (Self::OnSuccess, Skipped) => Pull::Neutral,
            (Self::OnSuccess, Failed | LetThrough | Handled | Cancelled) => Pull::Blocks,
            (Self::OnFailure, Failed | LetThrough | Handled) => Pull::Takes,
            (Self::OnFailure, Completed | Skipped | Cancelled) => Pull::Neutral,
            (Self::Skip, Skipped) => Pull::Takes,
            (Self::Skip, Completed | Failed | LetThrough | Handled | Cancelled) => Pull::Neutral,
            (Self::Ended, Completed | LetThrough | Handled | Skipped) => Pull::Takes,
            (Self::Ended, Failed | Cancelled) => Pull::Blocks,
        }
    }
}

/// The edges of a block, by the places of its steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    incoming: Vec<Vec<Edge>>,
    outgoing: Vec<Vec<(u32, u32)>>,
}

impl Graph {
    /// The graph of a block with the edges that lead into each of its steps. Every source is a place of the block.
    pub fn new(incoming: Vec<Vec<Edge>>) -> Self {
        let mut outgoing = vec![Vec::new(); incoming.len()];
        for (to, edges) in incoming.iter().enumerate() {
            for (number, edge) in edges.iter().enumerate() {
                outgoing[edge.from as usize].push((to as u32, number as u32));
            }
        }
        Self { incoming, outgoing }
    }

    /// The edges into a place, in the order in which they were written.
    pub fn incoming(&self, place: u32) -> &[Edge] {
        &self.incoming[place as usize]
    }

    /// The edges out of a place, each with the place that it leads to.
    pub fn outgoing(&self, place: u32) -> impl Iterator<Item = (u32, &Edge)> {
        self.outgoing[place as usize].iter().map(|(to, number)| (*to, &self.incoming[*to as usize][*number as usize]))
    }

    /// Whether anything in the block can run although the execution is going to fail.
    pub fn outlives_failure(&self) -> bool {
        self.incoming.iter().flatten().any(|edge| edge.kind.outlives_failure())
    }

    /// Whether a step can be left out because of how another one ended.
    pub fn skips(&self) -> bool {
        self.incoming.iter().flatten().any(|edge| edge.kind != EdgeKind::Ended || edge.condition.is_some())
    }

    /// Places in an order in which every edge leads forwards, and the places that stand on a circle or behind one.
    pub fn sorted(&self) -> (Vec<u32>, Vec<u32>) {
        let mut left: Vec<usize> = self.incoming.iter().map(Vec::len).collect();
        let places = 0..self.incoming.len() as u32;
        let mut sorted: Vec<u32> = places.clone().filter(|place| left[*place as usize] == 0).collect();
        let mut next = 0;
        while let Some(place) = sorted.get(next).copied() {
            next += 1;
            for (to, _) in &self.outgoing[place as usize] {
                left[*to as usize] -= 1;
                if left[*to as usize] == 0 {
                    sorted.push(*to);
                }
            }
        }
        (sorted, places.filter(|place| left[*place as usize] > 0).collect())
    }
}
