//! A file outside of a store which records that the store has seals.
//!
//! The store alone cannot prove that it was upgraded before: an attacker who can write to it can remove the seals and the
//! marks, and can set its format back. The file is beside the installation's key, where that attacker may not write.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use mainspring_kernel::hash::Hash;

use crate::{error::EngineError, inbox::Unsealed};

/// The folder of the files, beside the key.
const FOLDER: &str = "sealed-stores";

/// The content of a file. Its existence counts, and the text is for people.
const TEXT: &str =
    "mainspring sealed-stores 1: a store of this installation has seals; see `mainspring upgrade --help`\n";

/// The place of the file of one store.
#[derive(Debug, Clone)]
pub struct SealNote {
    /// The first is written. A file in any of them counts.
    places: Vec<PathBuf>,
    writes: bool,
}

impl SealNote {
    /// `store` distinguishes stores that share a key: the path of a folder, or an address. With `writes`, a process that
    /// has sealed the store writes the file into the first folder.
    pub fn of(folders: &[&Path], store: &str, writes: bool) -> Self {
        let name = Hash::of(store.as_bytes()).hex();
        let places = folders.iter().map(|folder| folder.join(FOLDER).join(&name[..16]));
        Self { places: places.collect(), writes }
    }

    /// The treatment of inbox messages and resources without a seal at a start.
    ///
    /// # Errors
    /// Fails if a place cannot be read, since the file may be there.
    pub fn unsealed(&self) -> Result<Unsealed, EngineError> {
        for place in &self.places {
            match place.symlink_metadata() {
                Ok(_) => return Ok(Unsealed::Refused),
                Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {}
                Err(error) => return Err(EngineError::Folder { path: place.clone(), why: error.to_string() }),
            }
        }
        Ok(Unsealed::OfThisUpgrade)
    }

    /// Records that the store has seals. Does nothing if that is recorded, and for a process that does not write.
    pub fn record(&self) -> Result<(), EngineError> {
        let Some(place) = self.places.first().filter(|_| self.writes) else { return Ok(()) };
        if self.unsealed()? == Unsealed::Refused {
            return Ok(());
        }
        write(place).map_err(|error| EngineError::Folder { path: place.clone(), why: error.to_string() })
    }
}

fn write(place: &Path) -> io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(place) {
        Ok(mut file) => {
            file.write_all(TEXT.as_bytes())?;
            file.sync_all()?;
            fs::File::open(folder)?.sync_all()
        }
        // Another process of the store was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_any_folder_refuses_what_has_no_seal() {
        let [beside, data] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let note = |folders: &[&Path], store, writes| SealNote::of(folders, store, writes);
        let both = [beside.path(), data.path()];
        note(&both, "/state", false).record().unwrap();
        assert_eq!(note(&both, "/state", true).unsealed(), Ok(Unsealed::OfThisUpgrade));
        note(&both[1..], "/state", true).record().unwrap();
        assert_eq!(note(&both, "/state", true).unsealed(), Ok(Unsealed::Refused));
        assert_eq!(note(&both, "/other", true).unsealed(), Ok(Unsealed::OfThisUpgrade), "each store has a file");
        assert_eq!(note(&both[..1], "/state", true).unsealed(), Ok(Unsealed::OfThisUpgrade));
        note(&both[..1], "/state", true).record().unwrap();
        note(&both[..1], "/state", true).record().unwrap();
        assert_eq!(note(&both[..1], "/state", true).unsealed(), Ok(Unsealed::Refused));
    }
}
