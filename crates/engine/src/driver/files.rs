//! Checks of the store's files, and of the generation of the data folder.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mainspring_store::StoreError;
use tracing::warn;

use super::{Command, Driver, failures};

impl Driver {
    /// Checks that the store still has its files, so that an idle engine stops as well. One check at a time: on a disk
    /// that hangs, further ones would pile up.
    pub(super) fn check_files(&mut self) {
        if self.session.is_some() || std::mem::replace(&mut self.is_checking_files, true) {
            return;
        }
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            // A panic without an answer would prevent all further checks.
            let found = catch_unwind(AssertUnwindSafe(|| store.check_files())).unwrap_or_else(|panic| {
                let why = failures::text(&*panic);
                Err(StoreError::Unavailable(format!("checking the files of the store panicked: {why}")))
            });
            let _ = commands.send(Command::FilesChecked(found));
        });
    }

    pub(super) fn files_checked(&mut self, found: Result<(), StoreError>) {
        self.is_checking_files = false;
        if let Err(error) = found
            && !self.over
        {
            self.stop(error.to_string());
        }
    }

    /// Writes the newest durable frame to the data folder, which detects a restored copy of the store. False if that
    /// fails.
    pub(super) fn has_recorded_frames(&mut self) -> bool {
        let (Some((_, held)), Some(frame)) = (&mut self.data_dir, self.store.newest_frame()) else { return true };
        let raised = held.raise(frame);
        raised.inspect_err(|error| warn!(%error, "the file `generation` of the folder cannot be written")).is_ok()
    }
}
