//! The files of the folder that `mainspring dev` watches, with the mistakes that keep them from being saved.

use std::sync::{Mutex, PoisonError};

use mainspring_kernel::diagnostic::Diagnostic;

/// Most diagnostics of a file. Its author reads the first ones first.
const DIAGNOSTICS_MAX: usize = 50;

/// A definition file of the watched folder.
#[derive(Debug, Clone, PartialEq)]
pub struct DevFile {
    /// Name of the file.
    pub name: String,
    /// Id of the workflow that the file was saved as last; `None` if it was never saved.
    pub workflow_id: Option<String>,
    /// The mistakes of the present content. A file without mistakes is saved.
    pub diagnostics: Vec<Diagnostic>,
    /// Number of scenario cases that passed, and of those that failed.
    pub cases: (usize, usize),
}

/// The files of this process; none without `mainspring dev`.
#[derive(Default)]
pub(crate) struct DevFiles(Mutex<Vec<DevFile>>);

impl DevFiles {
    /// Replaces all files. Further diagnostics of a file are dropped.
    pub(crate) fn replace(&self, mut files: Vec<DevFile>) {
        files.iter_mut().for_each(|file| file.diagnostics.truncate(DIAGNOSTICS_MAX));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Returns the files.
    pub(crate) fn list(&self) -> Vec<DevFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
