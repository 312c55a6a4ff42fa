//! The files of a folder, by their kind.
//!
//! ```text
//! NAME.yaml            a definition; NAME is the slug. Also in folders
//! NAME.scenario.yaml   its scenarios, beside it
//! triggers/NAME.yaml   a trigger
//! organization.yaml    features, limits and policy of the organization
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use mainspring_kernel::{definition::read, value::Value};

use crate::{definitions::syntax_of, error::CliError, read_limited};

/// Files of a folder. A larger set does not fit into one request.
const FILES_MAX: usize = 1_000;

/// Folders inside each other.
const DEPTH_MAX: usize = 8;

/// The endings of files.
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// The files of a folder, each kind in the order of their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) definitions: Vec<PathBuf>,
    pub(super) scenarios: Vec<PathBuf>,
    /// `None` for a folder without triggers, which leaves those of the server alone.
    pub(super) triggers: Option<Vec<PathBuf>>,
    pub(super) organization: Option<PathBuf>,
}

impl Files {
    /// Finds the files. Hidden files, symbolic links and other irregular files are left out: a read of a named pipe
    /// would wait forever.
    pub(super) fn find(folder: &Path) -> Result<Self, CliError> {
        let mut files = Self::default();
        files.search(folder, 0)?;
        if files == Self::default() {
            let message = format!("{}: there is no *.yaml, *.yml or *.json file in it", folder.display());
            return Err(CliError::bad_input("no_file", message));
        }
        Ok(files)
    }

    fn search(&mut self, folder: &Path, depth: usize) -> Result<(), CliError> {
        if depth > DEPTH_MAX {
            return Err(unreadable(folder, &format!("it is more than {DEPTH_MAX} folders deep")));
        }
        for (path, name, is_folder) in entries(folder)? {
            match (is_folder, depth) {
                (true, 0) if name == "triggers" => self.triggers = Some(trigger_files(&path)?),
                (true, _) => self.search(&path, depth + 1)?,
                (false, 0) if ENDINGS.iter().any(|end| name == format!("organization{end}")) => {
                    if let Some(other) = self.organization.replace(path.clone()) {
                        return Err(unreadable(
                            &path,
                            &format!("{} has the settings of the organization too", other.display()),
                        ));
                    }
                }
                (false, _) if name.contains(".scenario.") => self.scenarios.push(path),
                (false, _) => self.definitions.push(path),
            }
            if self.definitions.len() > FILES_MAX {
                return Err(unreadable(folder, &format!("it has more than {FILES_MAX} definitions")));
            }
        }
        Ok(())
    }
}

fn trigger_files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for (path, _, is_folder) in entries(folder)? {
        if is_folder {
            return Err(unreadable(&path, "the folder of triggers has no folders inside"));
        }
        files.push(path);
    }
    match files.len() {
        count if count > FILES_MAX => Err(unreadable(folder, &format!("it has more than {FILES_MAX} triggers"))),
        _ => Ok(files),
    }
}

/// Regular files with one of the endings and folders, in the order of their names; true for a folder.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, String, bool)>, CliError> {
    let refused = |error: std::io::Error| unreadable(folder, &error.to_string());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type().map_err(refused)?);
        let is_named = kind.is_file() && ENDINGS.iter().any(|end| name.ends_with(end));
        if !name.starts_with('.') && (kind.is_dir() || is_named) {
            found.push((entry.path(), name, kind.is_dir()));
        }
    }
    found.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(found)
}

/// The name of a file without its ending.
pub(super) fn stem(file: &Path) -> Result<String, CliError> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).map(String::from);
    stem.ok_or_else(|| CliError::bad_input("no_slug", format!("{}: its name is not UTF-8", file.display())))
}

/// Reads a file as YAML or JSON.
pub(super) fn document(file: &Path) -> Result<Value, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let document = read(&text, syntax_of(file));
    Ok(document.map_err(|why| unreadable(file, &why.to_string()))?.value)
}

/// The error of a file or a folder.
pub(super) fn unreadable(file: &Path, why: &str) -> CliError {
    CliError::bad_input("unreadable", format!("{}: {why}", file.display()))
}
