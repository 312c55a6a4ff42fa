//! The definitions to which a scenario refers by a path or by the name of a workflow.

use std::{
    fs,
    io::{self, Read},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use mainspring_kernel::{
    definition::{self, Syntax},
    diagnostic::Diagnostic,
    document::Document,
    limits::DEFINITION_BYTES_MAX,
};

/// A definition, or the reason why its text cannot be parsed. Cases with the same definition share it.
pub type Definition = Arc<Result<Document, Diagnostic>>;

/// A source of definitions. A text that is neither YAML nor JSON is a definition too: a rejected one.
pub trait Definitions: Send + Sync {
    /// Returns the definition of a path in a scenario.
    ///
    /// # Errors
    /// Fails with the reason, a part of a sentence, if there is none.
    fn definition(&self, path: &str) -> Result<Definition, String>;

    /// Returns the workflow that a definition starts by this name. `beside` is the path of that definition; empty if the
    /// scenario contains it.
    fn workflow(&self, beside: &str, name: &str) -> Option<Definition>;

    /// The help for a path without a definition.
    fn help(&self) -> String;
}

/// A folder: paths begin there, and a workflow is NAME.yaml beside the definition that starts it.
#[derive(Debug, Clone)]
pub struct Folder(pub PathBuf);

/// Extensions of definition files, in the order in which a start tries them.
const DEFINITION_ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

impl Definitions for Folder {
    fn definition(&self, path: &str) -> Result<Definition, String> {
        let text = bounded(&self.0.join(path)).map_err(|error| error.to_string())?;
        Ok(Arc::new(definition::read(&text, Syntax::Guess)))
    }

    fn workflow(&self, beside: &str, name: &str) -> Option<Definition> {
        // A name is not a path, so nothing outside of the folder is read.
        if name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
            return None;
        }
        let path = self.0.join(beside);
        let folder = path.parent().unwrap_or(&self.0);
        let files = DEFINITION_ENDINGS.iter().map(|ending| folder.join(format!("{name}.{ending}")));
        let text = files.filter(|file| file.is_file()).find_map(|file| bounded(&file).ok())?;
        Some(Arc::new(definition::read(&text, Syntax::Guess)))
    }

    fn help(&self) -> String {
        "paths begin at the scenario's folder".into()
    }
}

/// Reads a file up to the size limit of a definition, which is ample for a handwritten file.
pub(super) fn bounded(file: &FilePath) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(file)?.take(DEFINITION_BYTES_MAX as u64 + 1).read_to_end(&mut text)?;
    if text.len() > DEFINITION_BYTES_MAX {
        return Err(io::Error::other(format!("more than {DEFINITION_BYTES_MAX} bytes")));
    }
    Ok(text)
}
