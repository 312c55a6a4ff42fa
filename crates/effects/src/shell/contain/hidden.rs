//! The server's own files, kept out of containers wherever they lie.
//!
//! A folder of the server below one that scripts are shown (`/usr/local/data`) is covered by an empty one. A single file
//! cannot be covered for good, as the cover goes away when the file is replaced: it is refused.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::mounts::{self, Mount};

/// The device and the number of a file: its identity, by whatever path.
pub(super) type Identity = (u64, u64);

/// Paths of the server's own files, and which of them are covered in containers.
#[derive(Debug, Clone, Default)]
pub(super) struct Hidden {
    /// Every real path of every file and folder, by bind mounts too.
    pub(super) paths: Vec<PathBuf>,
    /// Paths inside of a container that are to be covered, none of them in another one.
    covered: Vec<PathBuf>,
    /// Of the files and folders that exist.
    identities: Vec<Identity>,
}

/// The real path of a file, also of one that is not there yet.
pub(super) fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => real(parent).join(name),
        (real, ..) => real.unwrap_or_else(|_| path.to_owned()),
    }
}

/// The identity of a file, or nothing where there is none.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Hidden {
    /// What is to be hidden from containers that are shown these paths. The error is a sentence on what cannot be hidden.
    pub(super) fn of(hidden: &[PathBuf], shown: &[PathBuf]) -> Result<Self, String> {
        Self::with(hidden, shown, &mounts::all()?)
    }

    fn with(hidden: &[PathBuf], shown: &[PathBuf], mounts: &[Mount]) -> Result<Self, String> {
        let mut found = Self::default();
        let shown: Vec<(PathBuf, &PathBuf)> =
            shown.iter().filter_map(|path| Some((path.canonicalize().ok()?, path))).collect();
        for path in hidden {
            let path = real(path);
            found.identities.extend(identity(&path));
            for alias in mounts::paths_of(&path, mounts) {
                if let Some((_, shown)) = shown.iter().find(|(source, _)| source.starts_with(&alias)) {
                    let (shown, alias) = (shown.display(), alias.display());
                    return Err(format!(
                        "scripts need {shown}, which is in {alias}, the server's own: keep the server's files elsewhere"
                    ));
                }
                for (source, shown) in &shown {
                    let Ok(rest) = alias.strip_prefix(source) else { continue };
                    found.covered.push(shown.join(rest));
                }
                found.paths.push(alias);
            }
        }
        found.covered.sort();
        // The folder itself comes before what is in it.
        let covered = std::mem::take(&mut found.covered);
        for path in covered {
            if !found.covered.last().is_some_and(|folder| path.starts_with(folder)) {
                found.covered.push(path);
            }
        }
        match found.covered.iter().find(|path| fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir())) {
            Some(file) => Err(format!(
                "{}, which is the server's own, is in a folder that scripts are shown: move it to a folder elsewhere, as \
                 below /etc or /var",
                file.display()
            )),
            None => Ok(found),
        }
    }

    /// The folders, and the files, that are covered now. One that is not there yet shows nothing.
    pub(super) fn covered(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.covered.iter().filter_map(|path| Some((path.as_path(), fs::metadata(path).ok()?.is_dir())))
    }

    /// Whether a path is, contains or lies in what is hidden.
    pub(super) fn overlaps(&self, path: &Path) -> bool {
        self.paths.iter().any(|hidden| path.starts_with(hidden) || hidden.starts_with(path))
    }

    /// Of what was seen inside of a container, the first that is the server's own.
    pub(super) fn leaked(&self, seen: &[Option<Identity>]) -> Option<&Path> {
        let seen = self.paths.iter().zip(seen);
        let own = |(_, identity): &(_, &Option<Identity>)| identity.is_some_and(|one| self.identities.contains(&one));
        seen.into_iter().find(own).map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_covered_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().canonicalize().unwrap().join(name);
        for name in ["shown/data/workspaces", "else", "shown/etc"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("shown/etc/key"), "k").unwrap();
        std::os::unix::fs::symlink(at("shown/data"), at("else/link")).unwrap();
        std::os::unix::fs::symlink(at("shown"), at("alias")).unwrap();
        let of = |hidden: &[&str], shown: &[&str]| {
            let paths = |names: &[&str]| names.iter().map(|name| at(name)).collect::<Vec<_>>();
            Hidden::with(&paths(hidden), &paths(shown), &[]).map(|hidden| {
                hidden.covered().map(|(path, _)| path.strip_prefix(at("")).unwrap().to_owned()).collect::<Vec<_>>()
            })
        };
        let covered = |paths: &[&str]| Ok(paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["else"], &["shown"]), covered(&[]));
        assert_eq!(of(&["shown/data", "shown/data/workspaces"], &["shown"]), covered(&["shown/data"]));
        assert_eq!(of(&["else/link"], &["shown"]), covered(&["shown/data"]), "by a link");
        assert_eq!(of(&["shown/data"], &["alias"]), covered(&["alias/data"]), "shown by another name");
        assert_eq!(of(&["shown/later/data"], &["shown"]), covered(&[]), "not there yet");
        assert!(of(&["shown/etc/key"], &["shown"]).is_err_and(|why| why.contains("shown/etc/key")));
        assert!(of(&["shown"], &["shown/etc"]).is_err_and(|why| why.contains("elsewhere")));
    }
}
