//! The copy of the repository for seeded bugs. It is in the target folder and is kept between bugs, so that unchanged
//! crates are not built again.

use super::table::{FOLDER, PATCH};
use crate::cargo;
use crate::repository::paths_below;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target folder and, inside of it, the copy.
const TARGET: &str = "target/bugs";
const COPY: &str = "repository";

/// Build options that favor build time: the seeds of a bug run faster than a link with full optimization.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];
const TEST: &str = "cluster";
const BUILD: [&str; 8] =
    ["test", "--release", "--package=mainspring-sim", "--test", TEST, "--no-run", "--quiet", "--message-format=json"];

/// A copy of the files of a repository.
pub(super) struct Copy<'a> {
    root: &'a Path,
    target: PathBuf,
    folder: PathBuf,
}

impl<'a> Copy<'a> {
    pub(super) fn of(root: &'a Path) -> Result<Self, String> {
        let target = root.join(TARGET);
        let folder = target.join(COPY);
        fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be created: {error}.", folder.display()))?;
        Ok(Self { root, target, folder })
    }

    /// Copies the files of the repository. Equal files are not written, since cargo compares modification times.
    pub(super) fn renew(&self) -> Result<(), String> {
        mirror(self.root, &self.folder)
            .map_err(|error| format!("{} cannot be written: {error}.", self.folder.display()))
    }

    pub(super) fn apply(&self, name: &str) -> Result<(), String> {
        apply(&self.folder, &self.root.join(format!("{FOLDER}{name}{PATCH}")), false)
    }

    /// Builds the simulator of the copy and returns its path.
    pub(super) fn build(&self) -> Result<PathBuf, String> {
        let mut command = cargo::command();
        command.args(BUILD).current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target).envs(PROFILE);
        let output =
            command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo cannot be run: {error}."))?;
        if !output.status.success() {
            return Err(format!("with this bug the simulator cannot be built: {}", errors(&output.stdout)));
        }
        program(&output.stdout).ok_or_else(|| "cargo does not report the path of the simulator.".to_owned())
    }
}

/// Applies a patch to a folder, or only checks it. git must not find a repository around the folder: it would silently
/// skip the files that are not tracked there.
pub(super) fn apply(folder: &Path, patch: &Path, checks_only: bool) -> Result<(), String> {
    let mut command = Command::new("git");
    command.arg("apply").args(checks_only.then_some("--check")).arg(patch).current_dir(folder);
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder)).env_remove("GIT_DIR");
    let output = command.output().map_err(|error| format!("git cannot be run: {error}. apt-get install git"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} does not apply any more; add the same bug to the current code: {why}", patch.display()))
}

fn mirror(from: &Path, to: &Path) -> std::io::Result<()> {
    let paths: BTreeSet<String> = paths_below(from)?.into_iter().collect();
    for surplus in paths_below(to)?.iter().filter(|path| !paths.contains(*path)) {
        fs::remove_file(to.join(surplus))?;
    }
    for path in &paths {
        let (source, copy) = (from.join(path), to.join(path));
        let bytes = fs::read(&source)?;
        if fs::read(&copy).ok().as_ref() != Some(&bytes) {
            copy.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&copy, bytes)?;
        }
    }
    Ok(())
}

/// Parses cargo's messages, one per line.
fn messages(stdout: &[u8]) -> impl Iterator<Item = serde_json::Value> {
    stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn program(stdout: &[u8]) -> Option<PathBuf> {
    let of_test = |message: &serde_json::Value| message.pointer("/target/name").is_some_and(|name| name == TEST);
    messages(stdout).filter(of_test).find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
}

fn errors(stdout: &[u8]) -> String {
    let rendered = |message: serde_json::Value| Some(message.pointer("/message/rendered")?.as_str()?.to_owned());
    messages(stdout).filter_map(rendered).collect()
}

#[cfg(test)]
mod tests {
    use super::{apply, errors, mirror, program};
    use std::fs;
    use std::path::{Path, PathBuf};

    const PATCH: &str = "--- a/b/one.txt\n+++ b/b/one.txt\n@@ -1 +1 @@\n-one\n+two\n";

    #[test]
    fn a_copy_is_patched_and_restored_without_repository_changes() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::create_dir_all(from.join("b")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join("b/one.txt"), "one\n").unwrap();
        fs::write(root.path().join("a.patch"), PATCH).unwrap();
        fs::write(to.join("surplus"), "").unwrap();
        let read = |folder: &Path| fs::read_to_string(folder.join("b/one.txt")).unwrap();
        mirror(&from, &to).unwrap();
        assert!(!to.join("surplus").exists());
        apply(&to, &root.path().join("a.patch"), true).unwrap();
        assert_eq!(read(&to), "one\n");
        apply(&to, &root.path().join("a.patch"), false).unwrap();
        assert_eq!((read(&from).as_str(), read(&to).as_str()), ("one\n", "two\n"));
        assert!(apply(&to, &root.path().join("a.patch"), true).unwrap_err().contains("does not apply any more"));
        mirror(&from, &to).unwrap();
        assert_eq!(read(&to), "one\n");
    }

    #[test]
    fn cargo_output_gives_the_simulator_or_the_errors() {
        let lines = b"{\"target\":{\"name\":\"other\"},\"executable\":\"/o\"}\n{\"target\":{\"name\":\"cluster\"},\"executable\":\"/c\"}\n{\"message\":{\"rendered\":\"error: no\"}}\n";
        assert_eq!(program(lines), Some(PathBuf::from("/c")));
        assert_eq!(program(b""), None);
        assert_eq!(errors(lines), "error: no");
    }
}
