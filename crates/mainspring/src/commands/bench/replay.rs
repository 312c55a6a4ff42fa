//! The floor of a workload: the recorded batches of the engine, committed again without the engine.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use mainspring_engine::EngineError;
use mainspring_store::{Batch, Fence, PartOutcome, Store};

use super::{load_generator::Measured, recording_store::CommitCallback};
use crate::error::CliError;

/// Frames kept at most, of about a kilobyte of memory each.
const FRAMES_MAX: usize = 200_000;

/// The batches from the first commit on, in order and without a gap.
#[derive(Debug, Default)]
pub(super) struct Recording {
    batches: Vec<Batch>,
    frames: usize,
    is_full: bool,
}

impl Recording {
    /// An empty recording, and the callback that fills it.
    pub(super) fn begin() -> (Arc<Mutex<Self>>, CommitCallback) {
        let recording = Arc::new(Mutex::new(Self::default()));
        let filled = recording.clone();
        let callback = move |batch: &Batch, answers: &[PartOutcome]| {
            filled.lock().unwrap_or_else(PoisonError::into_inner).keep(batch, answers);
        };
        (recording, Box::new(callback))
    }

    /// Keeps durable parts only. A rejected part belongs to an execution that is committed again later.
    fn keep(&mut self, batch: &Batch, answers: &[PartOutcome]) {
        let durable = || batch.parts.iter().zip(answers).filter(|(_, answer)| **answer == PartOutcome::Durable);
        let frames: usize = durable().map(|(part, _)| part.frames.len()).sum();
        self.is_full |= self.frames + frames > FRAMES_MAX && !self.batches.is_empty();
        if self.is_full {
            return;
        }
        self.frames += frames;
        let parts = durable().map(|(part, _)| part.clone()).collect();
        self.batches.push(Batch { fences: batch.fences.clone(), parts, sealing: batch.sealing });
    }

    /// The number of executions that end in the recording.
    pub(super) fn executions(&self) -> usize {
        let parts = self.batches.iter().flat_map(|batch| &batch.parts);
        let ends = parts.filter(|part| {
            let changed = part.change.as_ref().and_then(|change| change.completed_at);
            changed.or(part.row.as_ref().and_then(|row| row.completed_at)).is_some()
        });
        ends.count()
    }

    /// The number of recorded frames.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// Commits the batches to an empty store one by one, and measures each. Only the epochs of the fences are
    /// replaced by those of the store.
    pub(super) fn replay(mut self, store: &dyn Store) -> Result<Measured, CliError> {
        let fences = self.batches.iter().flat_map(|batch| &batch.fences);
        let partitions: BTreeSet<u32> = fences.map(|fence| fence.partition).collect();
        let claim = |partition| Ok(Fence { partition, epoch: store.claim(partition, "bench")? });
        let claimed: Result<Vec<Fence>, EngineError> = partitions.into_iter().map(claim).collect();
        let claimed = claimed?;
        for batch in &mut self.batches {
            let theirs: BTreeSet<u32> = batch.fences.iter().map(|fence| fence.partition).collect();
            batch.fences = claimed.iter().copied().filter(|fence| theirs.contains(&fence.partition)).collect();
        }
        let (began, mut each) = (Instant::now(), Vec::with_capacity(self.batches.len()));
        for batch in &self.batches {
            let sent = Instant::now();
            let answers = store.commit(batch);
            each.push(sent.elapsed());
            let refused =
                |why| CliError::internal("bench_failed", format!("the recorded writes cannot be replayed: {why}"));
            let answers = answers.map_err(|error| refused(error.to_string()))?;
            if let Some(PartOutcome::Refused(error)) = answers.iter().find(|answer| **answer != PartOutcome::Durable) {
                return Err(refused(format!("{error:?}")));
            }
        }
        Ok(Measured { each, all: began.elapsed() })
    }
}
