//! Changes that bypass the rules of the store, like those of a database editor: for tests.

use mainspring_kernel::{key::ExecutionKey, stored_frame::StoredFrame};

use super::MemoryStore;
use crate::HeadRow;

impl MemoryStore {
    /// Changes the head of an execution, if it has one.
    pub fn change_head(&self, execution: ExecutionKey, change: impl FnOnce(&mut HeadRow)) {
        if let Some(head) = self.state().heads.get_mut(&execution) {
            change(head);
        }
    }

    /// Changes the frames of an execution, if it has any.
    pub fn change_frames(&self, execution: ExecutionKey, change: impl FnOnce(&mut Vec<StoredFrame>)) {
        if let Some(frames) = self.state().frames.get_mut(&execution) {
            change(frames);
        }
    }
}
