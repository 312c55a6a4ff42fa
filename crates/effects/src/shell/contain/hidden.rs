//! Keeps the server's own files out of containers.
//!
//! A folder of the server inside of a folder that scripts see (`/usr/local/data`) is covered by an empty folder. A
//! single file cannot be covered safely, since the cover disappears when the file is replaced, so such a configuration
//! is rejected.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::mounts::{self, Mount};

/// Device and inode number of a file: its identity under every path.
pub(super) type Identity = (u64, u64);

/// Paths of the server's own files, and those of them that containers cover.
#[derive(Debug, Clone, Default)]
pub(super) struct Hidden {
    /// Every real path of every file and folder, including the paths through bind mounts.
    pub(super) paths: Vec<PathBuf>,
    /// Paths inside of a container to cover, none of them inside of another one.
    covered: Vec<PathBuf>,
    /// The identities of those files and folders that exist.
    identities: Vec<Identity>,
}

/// Resolves the real path of a file, also if the file does not exist yet.
pub(super) fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => real(parent).join(name),
        (real, ..) => real.unwrap_or_else(|_| path.to_owned()),
    }
}

/// Returns the identity of a file, or `None` if it does not exist.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Hidden {
    /// Computes which paths to cover in containers that show the paths `shown`. The error is a sentence about a path
    /// that cannot be covered.
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
        // Sorting puts a folder before its content.
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

    /// Lists the covered paths that exist now, each with whether it is a folder. A path that does not exist yet shows
    /// nothing.
    pub(super) fn covered(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.covered.iter().filter_map(|path| Some((path.as_path(), fs::metadata(path).ok()?.is_dir())))
    }

    /// Returns whether a path is a hidden one, contains one or is in one.
    pub(super) fn overlaps(&self, path: &Path) -> bool {
        self.paths.iter().any(|hidden| path.starts_with(hidden) || hidden.starts_with(path))
    }

    /// Returns the first of the server's own files among those seen inside of a container.
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
    fn hidden_paths_below_shown_ones_are_covered_or_rejected() {
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
