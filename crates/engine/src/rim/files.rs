//! The files of the store, where it has files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mainspring_store::StoreError;
use tracing::warn;

use super::{Command, Rim, failing};

impl Rim {
    /// Whether the store still has its files, so that an engine with nothing to write stops as well. One look at a time:
    /// where the disk does not answer, further ones would wait beside it.
    pub(super) fn look_at_files(&mut self) {
        if self.member.is_some() || std::mem::replace(&mut self.is_looking_at_files, true) {
            return;
        }
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            // A look that nobody hears of any more would be the last one.
            let found = catch_unwind(AssertUnwindSafe(|| store.check_files())).unwrap_or_else(|panic| {
                let why = failing::text(&*panic);
                Err(StoreError::Unavailable(format!("looking at the files of the store panicked: {why}")))
            });
            let _ = commands.send(Command::LookedAtFiles(found));
        });
    }

    pub(super) fn looked_at_files(&mut self, found: Result<(), StoreError>) {
        self.is_looking_at_files = false;
        if let Err(error) = found
            && !self.over
        {
            self.stop(error.to_string());
        }
    }

    /// Whether the folder knows which frames are durable, so that an older copy of the store is noticed.
    pub(super) fn has_noted_frames(&mut self) -> bool {
        let (Some((_, held)), Some(frame)) = (&mut self.home, self.store.newest_frame()) else { return true };
        let raised = held.raise(frame);
        raised.inspect_err(|error| warn!(%error, "the file `generation` of the folder cannot be written")).is_ok()
    }
}
