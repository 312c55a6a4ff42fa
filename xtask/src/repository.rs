//! The repository as the checks see it: files with their text and tokens, and crates with their dependencies.
//!
//! It is read once. Every check is a function of it, so a test of a check builds a small repository.

use crate::cargo;
use crate::token::{self, Comment, Token};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// Generated folders, which are not checked in.
const FOLDERS_PASSED_OVER: [&str; 5] = [GIT, "target", "dist", "node_modules", "mutants.out"];

/// A folder, or in a second worktree a file with the path of that folder.
const GIT: &str = ".git";

/// The conformance cases, which are given and kept byte for byte. No rule applies to them.
pub(crate) const CASES: &str = "conformance/";

/// The only file in that folder that is not given.
pub(crate) const UNCOVERED: &str = "conformance/uncovered.txt";

/// The number of commits that are read: more than a change has, and few enough that old mistakes expire.
const COMMITS_READ: &str = "-30";

/// The branch that changes land on.
const MAIN: &str = "main";

/// The files and the crates of a checkout.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    /// In order of their paths.
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
    /// The last commits; empty without a git history.
    pub(crate) commits: Vec<Commit>,
    /// The tracked files that differ from the branch `main`; empty without that branch.
    pub(crate) changed: BTreeSet<String>,
}

/// One file of the checkout.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the repository, with `/`.
    pub(crate) path: String,
    /// Empty for a file that is not text.
    pub(crate) text: String,
    /// True if its owner may run it.
    pub(crate) may_be_run: bool,
    /// Empty for a file that is not Rust.
    pub(crate) tokens: Vec<Token>,
    /// Empty for a file that is not Rust.
    pub(crate) comments: Vec<Comment>,
    /// The line at which a Rust file cannot be read.
    pub(crate) unreadable_at: Option<usize>,
}

/// One crate of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Names of dependencies of all kinds: normal, build and dev.
    pub(crate) uses: BTreeSet<String>,
}

/// A commit, as `git log` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The first eight digits.
    pub(crate) hash: String,
    /// The first line of its message.
    pub(crate) subject: String,
}

impl Repository {
    /// Reads a checkout. Fails with a sentence when a file cannot be read or cargo cannot describe the workspace.
    pub(crate) fn read(root: &Path) -> Result<Repository, String> {
        let mut files = Vec::new();
        for path in
            paths_below(root).map_err(|error| format!("The folder {} cannot be read: {error}.", root.display()))?
        {
            files.push(File::read(root, &path).map_err(|error| format!("The file {path} cannot be read: {error}."))?);
        }
        let (commits, changed) = (commits(root), changed(root));
        Ok(Repository { commits, changed, ..Repository::of(files, packages(root)?) })
    }

    /// Sorts the files and marks those that are tests as a whole.
    pub(crate) fn of(mut files: Vec<File>, packages: Vec<Package>) -> Repository {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let test_modules: Vec<String> = files.iter().flat_map(test_modules).collect();
        for file in &mut files {
            let is_test =
                |module: &String| file.path == format!("{module}.rs") || file.path.starts_with(&format!("{module}/"));
            if file.path.contains("/tests/") || test_modules.iter().any(is_test) {
                file.tokens.iter_mut().for_each(|token| token.in_test = true);
            }
        }
        Repository { files, packages, ..Repository::default() }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files of the project.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

impl File {
    pub(crate) fn of(path: &str, text: &str) -> File {
        let mut file = File {
            path: path.to_owned(),
            text: text.to_owned(),
            may_be_run: false,
            tokens: Vec::new(),
            comments: Vec::new(),
            unreadable_at: None,
        };
        if file.is_rust() {
            match token::tokens(text) {
                Ok((tokens, comments)) => (file.tokens, file.comments) = (tokens, comments),
                Err(line) => file.unreadable_at = Some(line),
            }
        }
        file
    }

    fn read(root: &Path, path: &str) -> io::Result<File> {
        let on_disk = root.join(path);
        let text = String::from_utf8(fs::read(&on_disk)?).unwrap_or_default();
        let may_be_run = may_be_run(&fs::metadata(&on_disk)?);
        Ok(File { may_be_run, ..File::of(path, &text) })
    }

    pub(crate) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// The lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// True for a given conformance case.
    pub(crate) fn is_given(&self) -> bool {
        self.path.starts_with(CASES) && self.path != UNCOVERED
    }

    /// The crate of the file, as `crates/engine`; elsewhere the top folder, or the file itself in the root.
    pub(crate) fn area(&self) -> &str {
        let depth = if self.path.starts_with("crates/") { 2 } else { 1 };
        let end = self.path.match_indices('/').nth(depth - 1).map_or(self.path.len(), |(end, _)| end);
        &self.path[..end]
    }

    /// True for a comment in a test, or directly above one.
    pub(crate) fn is_of_test(&self, comment: &Comment) -> bool {
        let first = if comment.is_trailing { comment.before - 1 } else { comment.before };
        // Skips the sign of an attribute to reach the words that mark a test.
        let mut rest = self.tokens.iter().skip(first).skip_while(|token| token.text == "#" || token.text == "!");
        rest.next().or(self.tokens.last()).is_some_and(|token| token.in_test)
    }

    fn is_rust(&self) -> bool {
        self.extension() == "rs" && (self.path.starts_with("crates/") || self.path.starts_with("xtask/"))
    }
}

/// The files of `#[cfg(test)] mod name;`, without `.rs`.
fn test_modules(file: &File) -> Vec<String> {
    let stem = file.path.trim_end_matches(".rs");
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let home = if ["lib", "main", "mod"].contains(&name) { folder } else { stem };
    let is_declared = |words: &&[Token]| words[0].text == "mod" && words[2].text == ";" && words[0].in_test;
    file.tokens.windows(3).filter(is_declared).map(|words| format!("{home}/{}", words[1].text)).collect()
}

pub(crate) fn paths_below(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && !FOLDERS_PASSED_OVER.contains(&name.as_str()) {
                folders.push(format!("{folder}{name}/"));
            } else if kind.is_file() && name != GIT {
                paths.push(format!("{folder}{name}"));
            }
        }
    }
    Ok(paths)
}

#[cfg(unix)]
fn may_be_run(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

/// Systems without executable bits always pass.
#[cfg(not(unix))]
fn may_be_run(_: &fs::Metadata) -> bool {
    true
}

/// The last commits; empty without git.
fn commits(root: &Path) -> Vec<Commit> {
    let log = git(root, &["log", "--no-merges", "--abbrev=8", COMMITS_READ, "--format=%h%x09%s"]).unwrap_or_default();
    let commit = |line: &str| {
        let (hash, subject) = line.split_once('\t')?;
        Some(Commit { hash: hash.to_owned(), subject: subject.to_owned() })
    };
    log.lines().filter_map(commit).collect()
}

fn changed(root: &Path) -> BTreeSet<String> {
    let base = git(root, &["merge-base", "HEAD", MAIN]);
    let names = base.and_then(|base| git(root, &["diff", "--name-only", base.trim()]));
    names.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The output of git; `None` if it fails.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The crates of the workspace, as cargo reports them.
fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = cargo::command().args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("cargo metadata cannot be run: {error}."))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata printed no JSON: {error}."))?;
    packages_of(&metadata).ok_or_else(|| "cargo metadata printed another shape than expected.".to_owned())
}

fn packages_of(metadata: &serde_json::Value) -> Option<Vec<Package>> {
    let name_of = |value: &serde_json::Value| Some(value.get("name")?.as_str()?.to_owned());
    let package_of = |value: &serde_json::Value| {
        let uses = value.get("dependencies")?.as_array()?.iter().map(name_of).collect::<Option<BTreeSet<_>>>()?;
        Some(Package { name: name_of(value)?, uses })
    };
    metadata.get("packages")?.as_array()?.iter().map(package_of).collect()
}

#[cfg(test)]
mod tests {
    use super::{File, Package, Repository, packages_of, paths_below};
    use std::fs;

    #[test]
    fn generated_folders_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a.rs", ".git", "crates/b/src/lib.rs", "crates/b/target/made.rs", "dist/made"] {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), "").unwrap();
        }
        let mut found = paths_below(root.path()).unwrap();
        found.sort();
        assert_eq!(found, ["a.rs", "crates/b/src/lib.rs"]);
    }

    #[test]
    fn a_module_included_for_tests_is_a_test() {
        let files = [
            ("crates/a/src/lib.rs", "mod plain;\n#[cfg(test)]\nmod checks;\n"),
            ("crates/a/src/checks.rs", "mod deep;"),
            ("crates/a/src/checks/deep.rs", "fn a() {}"),
            ("crates/a/src/plain.rs", "fn a() {}\n#[cfg(test)]\nmod own;"),
            ("crates/a/src/plain/own.rs", "fn a() {}"),
            ("crates/a/tests/outside.rs", "fn a() {}"),
        ];
        let repository = Repository::of(files.map(|(path, text)| File::of(path, text)).into(), Vec::new());
        let is_test = |path: &str| repository.file(path).unwrap().tokens[0].in_test;
        let found: Vec<bool> = files.map(|(path, _)| is_test(path)).into();
        assert_eq!(found, [false, true, true, false, true, true]);
    }

    #[test]
    fn dependencies_of_every_kind_count() {
        let metadata = serde_json::json!({"packages": [{"name": "a", "dependencies": [
            {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"},
        ]}]});
        let expected = Package { name: "a".to_owned(), uses: ["b", "c", "d"].map(str::to_owned).into() };
        assert_eq!(packages_of(&metadata), Some(vec![expected]));
        assert_eq!(packages_of(&serde_json::json!({"packages": [{"name": "a"}]})), None);
    }
}
