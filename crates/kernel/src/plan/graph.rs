//! Edges between the steps of a block, and the table that decides when they are taken.
//!
//! A place is the index of a step in its block.

use alloc::{vec, vec::Vec};

use crate::condition::Condition;

/// An edge from one step of a block to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The place of its source.
    pub from: u32,
    /// The outcome of the source that the edge requires.
    pub kind: EdgeKind,
    /// A condition that must hold as well.
    pub condition: Option<Condition>,
}

/// The outcome of the source that an edge requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// Success. A source that failed blocks the target.
    OnSuccess,
    /// Failure.
    OnFailure,
    /// Any outcome.
    Always,
    /// The source was skipped.
    Skip,
    /// Any outcome that does not fail the execution. Edges from references and `needs` are of this kind.
    Ended,
}

impl EdgeKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::OnSuccess, Self::OnFailure, Self::Always, Self::Skip, Self::Ended];

    /// Returns the name of the kind. `ended` comes from `needs` and references and cannot be written in `edges`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnSuccess => "on_success",
            Self::OnFailure => "on_failure",
            Self::Always => "always",
            Self::Skip => "skip",
            Self::Ended => "ended",
        }
    }

    /// True if the target runs even if the execution is failing: failure handlers and cleanup.
    pub fn outlives_failure(self) -> bool {
        matches!(self, Self::OnFailure | Self::Always)
    }
}

/// The outcome of the source of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceEnd {
    /// It succeeded.
    Completed,
    /// It failed, and the failure is neither handled nor tolerated.
    Failed,
    /// It failed, and the failure was tolerated.
    Tolerated,
    /// It failed, and an `on_failure` edge handles the failure.
    Handled,
    /// It did not run.
    Skipped,
    /// It was canceled.
    Cancelled,
}

impl SourceEnd {
    /// All outcomes.
    pub const ALL: [Self; 6] =
        [Self::Completed, Self::Failed, Self::Tolerated, Self::Handled, Self::Skipped, Self::Cancelled];
}

/// The effect of an edge on its target, before its condition is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// The edge is taken if its condition holds. A step with incoming edges runs only if at least one is taken.
    Takes,
    /// The edge prevents its target from running.
    Blocks,
    /// The edge has no effect.
    Neutral,
}

impl EdgeKind {
    /// The decision table: the effect of each kind of edge for each outcome of its source.
    pub fn pull(self, end: SourceEnd) -> Pull {
        use SourceEnd::{Cancelled, Completed, Failed, Handled, Skipped, Tolerated};
        match (self, end) {
            (Self::Always, _) => Pull::Takes,
            (Self::OnSuccess, Completed) => Pull::Takes,
            (Self::OnSuccess, Skipped) => Pull::Neutral,
            (Self::OnSuccess, Failed | Tolerated | Handled | Cancelled) => Pull::Blocks,
            (Self::OnFailure, Failed | Tolerated | Handled) => Pull::Takes,
            (Self::OnFailure, Completed | Skipped | Cancelled) => Pull::Neutral,
            (Self::Skip, Skipped) => Pull::Takes,
            (Self::Skip, Completed | Failed | Tolerated | Handled | Cancelled) => Pull::Neutral,
            (Self::Ended, Completed | Tolerated | Handled | Skipped) => Pull::Takes,
            (Self::Ended, Failed | Cancelled) => Pull::Blocks,
        }
    }
}

/// The edges of a block, by place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    incoming: Vec<Vec<Edge>>,
    outgoing: Vec<Vec<(u32, u32)>>,
}

impl Graph {
    /// Builds a graph from the edges into each place. Every source must be a place of the block.
    pub fn new(incoming: Vec<Vec<Edge>>) -> Self {
        let mut outgoing = vec![Vec::new(); incoming.len()];
        for (to, edges) in incoming.iter().enumerate() {
            for (number, edge) in edges.iter().enumerate() {
                outgoing[edge.from as usize].push((to as u32, number as u32));
            }
        }
        Self { incoming, outgoing }
    }

    /// Returns the edges into a place, in written order.
    pub fn incoming(&self, place: u32) -> &[Edge] {
        &self.incoming[place as usize]
    }

    /// Returns the edges out of a place, each with its target.
    pub fn outgoing(&self, place: u32) -> impl Iterator<Item = (u32, &Edge)> {
        self.outgoing[place as usize].iter().map(|(to, number)| (*to, &self.incoming[*to as usize][*number as usize]))
    }

    /// True if any step of the block can run even if the execution is failing.
    pub fn outlives_failure(&self) -> bool {
        self.incoming.iter().flatten().any(|edge| edge.kind.outlives_failure())
    }

    /// True if the outcome of one step can skip another one.
    pub fn skips(&self) -> bool {
        self.incoming.iter().flatten().any(|edge| edge.kind != EdgeKind::Ended || edge.condition.is_some())
    }

    /// Returns the places in topological order, and the places that are on a cycle or behind one.
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
