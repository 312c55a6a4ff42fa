//! The commit thread, so that the node continues while the disk is busy. It also signs receipts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_store::{Batch, CommitError, PartOutcome, Store};
use tokio::sync::mpsc;

use crate::{
    driver::{metrics, telemetry::count_commit},
    receipts::Signer,
};

/// A commit for the thread: its number, its batch, the pause before it, and the time of submission.
pub(in crate::driver) type SubmittedCommit = (u64, Arc<Batch>, Duration, Instant);

/// The result of a commit.
pub(in crate::driver) type Answered = (u64, Result<Vec<PartOutcome>, CommitError>);

/// The channels of the thread.
pub(in crate::driver) struct Commits {
    pub(in crate::driver) submitted: std::sync::mpsc::Sender<SubmittedCommit>,
    pub(in crate::driver) answers: mpsc::UnboundedReceiver<Answered>,
}

impl Commits {
    /// Starts the thread. It ends with the driver.
    pub(in crate::driver) fn start(store: Arc<dyn Store>, mut signer: Signer, metrics: metrics::Commits) -> Self {
        let (submitted, receiver) = std::sync::mpsc::channel::<SubmittedCommit>();
        let (sender, answers) = mpsc::unbounded_channel();
        let work = move || {
            for (commit_id, batch, pause, handed_over) in receiver {
                std::thread::sleep(pause);
                signer.sign(&batch);
                let answer = store.commit(&batch);
                signer.committed(&batch, &answer);
                count_commit(&metrics, &batch, handed_over);
                // The shard then drops the last reference and frees the memory on the thread that allocated it.
                drop(batch);
                if sender.send((commit_id, answer)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("commit".into()).spawn(work).expect("a process can start a thread");
        Self { submitted, answers }
    }

    pub(in crate::driver) fn send(&self, commit_id: u64, batch: Arc<Batch>, pause_ms: u64) {
        let _ = self.submitted.send((commit_id, batch, Duration::from_millis(pause_ms), Instant::now()));
    }

    /// Waits for the next result. `None` if the thread has ended.
    pub(in crate::driver) async fn next(&mut self) -> Option<Answered> {
        self.answers.recv().await
    }

    /// Returns a result that has arrived.
    pub(in crate::driver) fn try_next(&mut self) -> Option<Answered> {
        self.answers.try_recv().ok()
    }
}
