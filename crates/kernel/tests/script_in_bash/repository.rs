//! Runs `git` with a repository and a remote. A value names no more than one branch, tag or path in its position.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Stdio},
};

use mainspring_kernel::script::{Surroundings, VARIABLE_PREFIX, prepare};

use super::{Folder, is_known};

/// Values that git may interpret as more than a name.
const VALUES: [&str; 11] = [
    "new",
    "*",
    ":/",
    ":(glob)**",
    ":refs/tags/evil",
    "docs:refs/tags/evil",
    // A file of the seed, where the value follows `HEAD:refs/heads/`.
    "p:refs/tags/evil",
    "--receive-pack=touch PWNED; git-receive-pack",
    "-d",
    "; touch PWNED",
    "new\nside",
];

/// Commands with the prefix of the only name that may be created or changed: a ref of the remote, a ref of the
/// repository, or a file in the last commit.
const PUSHES: [(&str, &str); 9] = [
    ("git push -f origin \"main:refs/heads/@vars.x\"", "refs/heads/"),
    ("git push origin HEAD:@vars.x", "refs/heads/"),
    ("git push -f origin v1:@vars.x", "refs/"),
    ("git push origin refs/tags/v@vars.x:refs/tags/v@vars.x", "refs/tags/v"),
    ("git push -f origin \"refs/heads/@vars.x:refs/heads/@vars.x\"", "refs/heads/"),
    ("git push origin \"refs/tags/v@vars.x^{object}:refs/tags/v@vars.x\"", "refs/tags/v"),
    ("x=@vars.x; git push -q origin -- \"HEAD:refs/heads/a/${x//:/^}\"", "refs/heads/a/"),
    ("git push origin v@vars.x", "refs/tags/v"),
    ("git tag -- v@vars.x; git push origin \"HEAD:refs/tags/v@vars.x\"", "refs/tags/v"),
];

const FETCHES: [(&str, &str); 7] = [
    ("git fetch --prune origin \"refs/heads/@vars.x:refs/heads/@vars.x\"", "refs/heads/"),
    ("git fetch -f origin \"refs/tags/v@vars.x:refs/tags/v@vars.x\"", "refs/tags/v"),
    ("git fetch origin main:refs/heads/@vars.x", "refs/heads/"),
    ("git fetch origin main:@vars.x", "refs/heads/"),
    ("git tag -a -m @vars.x v@vars.x", "refs/tags/v"),
    ("git checkout -q -b @vars.x", "refs/heads/"),
    ("git branch -D -- @vars.x", "refs/heads/"),
];

const COMMITS: [(&str, &str); 4] = [
    ("git commit -m a -- @vars.x", ""),
    ("git commit -m a docs/@vars.x", "docs/"),
    ("git --literal-pathspecs commit -m a -- docs/@vars.x", "docs/"),
    ("git --literal-pathspecs add -- docs/@vars.x; git commit -m @vars.x", "docs/"),
];

/// A repository and a remote. Each has branches and tags that the other lacks.
const SEED: &str = "git init -q -b main . && mkdir -p docs refs/heads && echo 1 > refs/heads/p \
    && echo 1 > f && echo 1 > docs/f && echo 1 > docs/g && git add . \
    && git commit -qm a && git tag v1 && git tag v2 && git branch side && git branch other \
    && git init -q --bare -b main origin.git && git remote add origin ./origin.git && git push -q origin main \
    && git config remote.origin.tagOpt --no-tags && git -C origin.git branch there && git -C origin.git branch elsewhere \
    && git -C origin.git tag v8 && git -C origin.git tag v9 && git checkout -q --detach && echo 2 | tee f docs/f docs/g";

/// Prints the state of the seed, then runs the script once for each value in a copy of the seed and prints the state of
/// the copy.
const EACH: &str = "(cd ../seed; eval \"$LOOK\"); for value in \"$@\"; do cp -a ../seed here; \
    (cd here; export REF0=\"$value\" REF1=\"$value\"; eval \"$SCRIPT\") > ../log 2>&1; echo ==; \
    (cd here; eval \"$LOOK\"); find here -name PWNED; rm -rf here; done";

const REMOTE: &str = "git -C origin.git for-each-ref --format='%(refname) %(objecttype) %(objectname)'";
const REFS: &str = "git for-each-ref --format='%(refname) %(objecttype) %(objectname)'";
const FILES: &str = "git ls-tree -r HEAD --format='%(path) file %(objectname)'";

fn bash(folder: &Path, script: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", script, "bash"]).current_dir(folder).stdin(Stdio::null());
    bash.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
        bash.env(format!("GIT_{name}"), "a");
    }
    bash
}

/// Parses the printed state: lines by their first word.
fn state(lines: &str) -> BTreeMap<&str, &str> {
    lines.lines().map(|line| line.split_once(' ').unwrap_or((line, "found"))).collect()
}

/// Returns the names whose lines differ between two states.
fn changed<'a>(before: &BTreeMap<&'a str, &str>, after: &BTreeMap<&'a str, &str>) -> BTreeSet<&'a str> {
    let names = before.keys().chain(after.keys()).copied();
    names.filter(|name| before.get(name) != after.get(name)).collect()
}

/// Runs each accepted command with each value and compares the output of `look` before and after.
fn check(name: &str, table: &[(&str, &str)], look: &str, accepted_min: usize) {
    let folder = Folder::new(name);
    for name in ["seed", "work"] {
        fs::create_dir_all(folder.0.join(name)).expect("the folder of tests is writable");
    }
    assert!(bash(&folder.0.join("seed"), SEED).stdout(Stdio::null()).status().is_ok_and(|status| status.success()));
    let (mut accepted, mut harmful) = (0, Vec::new());
    for (command, prefix) in table {
        let Ok(script) = prepare(command, Surroundings::default(), is_known) else { continue };
        accepted += 1;
        let mut bash = bash(&folder.0.join("work"), &EACH.replace("REF", VARIABLE_PREFIX));
        let output = bash.env("SCRIPT", script.text).env("LOOK", look).args(VALUES).output().expect("bash is there");
        let output = String::from_utf8_lossy(&output.stdout);
        let mut states = output.split("==\n").map(state);
        let before = states.next().expect("the seed comes first");
        assert!(!before.is_empty() && states.clone().count() == VALUES.len(), "{command}: {output}");
        for (value, after) in VALUES.iter().zip(states) {
            let changed = changed(&before, &after);
            let is_one = changed.len() < 2 && changed.iter().all(|name| name.starts_with(prefix));
            let is_named = after.values().all(|of| !of.starts_with("tree") && !of.starts_with("blob"));
            if !is_one || !is_named {
                harmful.push(format!("{command} with {value:?}: {changed:?}"));
            }
        }
    }
    assert!(harmful.is_empty(), "{harmful:#?}");
    assert!(accepted >= accepted_min, "{accepted} accepted");
}

#[test]
fn a_value_is_one_ref_of_a_remote() {
    check("pushes", &PUSHES, REMOTE, 4);
}

#[test]
fn a_value_is_one_ref_of_a_repository() {
    check("fetches", &FETCHES, REFS, 5);
}

#[test]
fn a_value_is_one_path_of_a_commit() {
    check("commits", &COMMITS, FILES, 2);
}
