//! Repositories that try to run code, to leave the workspace or to fill the disk.

use std::{env, fs, io::Write, os::unix::fs::symlink, process::Stdio};

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::{
    git_remote::Fixture,
    repositories::{Bench, set, settled, stdout, text},
    start::{save, start},
    support::yaml,
};

/// Runs a script in a repository, and returns the execution.
pub(super) fn run(bench: &Bench, name: &str, script: &str) -> Value {
    let owner = bench.server.owner();
    let script = compact(&Value::from(script));
    save(
        &owner,
        name,
        yaml(&format!("[{{id: s, type: bash, command: {script}, outputVariable: s, retry: {{maxAttempts: 1}}}}]")),
    );
    set(&owner, name, &format!(r#"{{"fullName": "acme/{name}"}}"#)).expect(200);
    let id = start(&owner, name, "r1", Map::new()).expect(202).text_at("executionId");
    settled(&owner, &id)
}

/// Checks that a commit is refused by Git, with a word of the reason, and that no script has run in it.
fn check_refused(bench: &Bench, name: &str, word: &str) {
    let ended = run(bench, name, "touch ran; ls -A");
    let error = ended.get("error").cloned().unwrap_or_default();
    assert_eq!(
        (text(&ended, "status"), text(&error, "code")),
        ("failed".into(), "repository_refused".into()),
        "{name}"
    );
    assert!(text(&error, "message").contains(word), "{name}: {}", compact(&error));
}

#[test]
fn code_of_a_repository_does_not_run() {
    let bench = Bench::new("");
    let fixture = bench.remote.repository("hooks");
    let hook = "#!/bin/sh\ntouch /tmp/hooked \"$PWD/hooked\"\n";
    for path in ["hooks/post-checkout", ".githooks/post-checkout", "templates/hooks/post-checkout", ".gitconfig"] {
        fixture.commit(path, if path == ".gitconfig" { "[core]\n\thooksPath = .githooks\n" } else { hook });
        fixture.git(&["update-index", "--chmod=+x", path]);
    }
    fixture.commit(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n*.evil filter=evil\n*.txt ident\n");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    fixture.commit("large.bin", pointer);
    fixture.commit("x.evil", "kept\n");
    fixture.commit_all();
    let ended =
        run(&bench, "hooks", "ls hooked 2>&1; ls .git/hooks 2>&1; cat large.bin x.evil; git config --list --local");
    let said = stdout(&ended, "s");
    assert!(said.contains("cannot access 'hooked'") && said.contains("cannot access '.git/hooks'"), "{said}");
    assert!(said.contains(&format!("{pointer}kept\n")), "{said}");
    assert!(!said.contains("hookspath") && !said.contains("filter"), "{said}");
}

#[test]
fn submodules_stay_empty_and_are_not_asked_for() {
    let bench = Bench::new("");
    let other = bench.remote.repository("other");
    let commit = other.head();
    let fixture = bench.remote.repository("modules");
    fixture.commit(".gitmodules", &format!("[submodule \"m\"]\n\tpath = m\n\turl = {}\n", bench.remote.url("other")));
    fixture.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},m")]);
    fixture.git(&["commit", "--quiet", "--message", "m"]);
    let ended = run(&bench, "modules", "ls -A m | wc -l; cat file");
    assert_eq!(stdout(&ended, "s"), "0\none\n", "{}", compact(&ended));
    assert_eq!(bench.remote.requests_with("/acme/other.git"), 0);
    let hostile = bench.remote.repository("options");
    hostile.commit(".gitmodules", "[submodule \"m\"]\n\tpath = m\n\turl = --upload-pack=touch${IFS}x\n");
    check_refused(&bench, "options", "gitmodules");
}

#[test]
fn trees_that_git_would_not_write_are_refused() {
    let bench = Bench::new("");
    let make = |name: &str, lines: &dyn Fn(&Fixture, &str) -> String| {
        let fixture = bench.remote.repository(name);
        let blob = fixture.blob("[core]\n\tfsmonitor = touch /tmp/ran\n\tsshCommand = touch /tmp/ran\n");
        let lines = lines(&fixture, &blob);
        fixture.commit_tree(&lines);
    };
    let tree = |fixture: &Fixture, lines: &str| fixture.git_with(&["mktree"], lines.as_bytes());
    make("config", &|fixture, blob| {
        format!("040000 tree {}\t.git\n", tree(fixture, &format!("100644 blob {blob}\tconfig\n")))
    });
    make("capitals", &|fixture, blob| {
        format!("040000 tree {}\t.GIT\n", tree(fixture, &format!("100644 blob {blob}\tconfig\n")))
    });
    make("dots", &|fixture, blob| {
        format!("040000 tree {}\t..\n", tree(fixture, &format!("100644 blob {blob}\tescaped\n")))
    });
    // A link and a folder of one name: the second would be written through the first.
    make("through", &|fixture, blob| {
        let link = fixture.blob("/tmp");
        let inner = tree(fixture, &format!("100644 blob {blob}\tescaped\n"));
        format!("120000 blob {link}\ta\n040000 tree {inner}\ta\n")
    });
    make("modules", &|fixture, _| format!("120000 blob {}\t.gitmodules\n", fixture.blob("/etc/passwd")));
    for (name, word) in [
        ("config", "hasDotgit"),
        ("capitals", "hasDotgit"),
        ("dots", "hasDotdot"),
        ("through", "duplicateEntries"),
        ("modules", "gitmodulesSymlink"),
    ] {
        check_refused(&bench, name, word);
    }
}

#[test]
fn links_out_of_the_workspace_lead_nowhere() {
    let bench = Bench::new("");
    let fixture = bench.remote.repository("links");
    let data = bench.folder.path().join("data");
    fs::write(bench.folder.path().join("outside"), "host").unwrap();
    symlink(bench.folder.path().join("outside"), fixture.path("absolute")).unwrap();
    symlink("../../../outside", fixture.path("relative")).unwrap();
    symlink(&data, fixture.path("data")).unwrap();
    symlink("link", fixture.path("link")).unwrap();
    symlink("file", fixture.path("inside")).unwrap();
    fixture.commit_all();
    let script = "readlink absolute > /dev/null && cat inside; cat absolute relative data/journal.db link 2>/dev/null; \
                  echo x > absolute; echo x > relative; echo x > data/journal.db; echo end";
    let ended = run(&bench, "links", script);
    assert_eq!(stdout(&ended, "s"), "one\nend\n", "{}", compact(&ended));
    assert_eq!(fs::read_to_string(bench.folder.path().join("outside")).unwrap(), "host");
}

#[test]
fn names_with_any_bytes_are_files() {
    let bench = Bench::new("");
    let fixture = bench.remote.repository("names");
    let names = ["a\nb", "-rf", "$(touch ran)", "`id`", "' \"", "*", " ", "ä", "\u{202e}x", ":(glob)x", "--", "\t"];
    for name in names {
        fs::write(fixture.path(name), "x").unwrap();
    }
    fixture.commit_all();
    let ended = run(
        &bench,
        "names",
        "find . -path ./.git -prune -o -type f -print0 | tr -dc '\\0' | wc -c; git status --porcelain | wc -l",
    );
    assert_eq!(stdout(&ended, "s"), format!("{}\n0\n", names.len() + 1), "{}", compact(&ended));
}

/// Adds commits with random content of a size in MiB, which the last commit removes.
fn add_history(fixture: &Fixture, mib: u64) {
    let mut import = std::process::Command::new("git");
    import.current_dir(fixture.path("")).args(["-c", "core.bigFileThreshold=1", "-c", "core.compression=0"]);
    let mut import = import.args(["fast-import", "--quiet", "--force"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    let (mut state, mut block) = (0x9e37_79b9_7f4a_7c15_u64, vec![0; 1 << 20]);
    for number in 0..mib {
        for word in block.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let from = if number == 0 { "from refs/heads/main^0\n" } else { "" };
        write!(input, "commit refs/heads/main\ncommitter t <t@example.com> {number} +0000\ndata 1\nm\n{from}").unwrap();
        write!(input, "M 100644 inline big\ndata {}\n", block.len()).unwrap();
        input.write_all(&block).unwrap();
        writeln!(input).unwrap();
    }
    writeln!(input, "commit refs/heads/main\ncommitter t <t@example.com> 9 +0000\ndata 1\nm\nD big").unwrap();
    drop(input);
    assert!(import.wait().unwrap().success());
}

#[test]
fn history_stays_at_the_remote_and_large_commits_are_refused() {
    let bench = Bench::new(", maxBytes: 4194304");
    let mib = env::var("MAINSPRING_HISTORY_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let fixture = bench.remote.repository("history");
    add_history(&fixture, mib);
    let ended = run(
        &bench,
        "history",
        "cat file; git log --oneline | wc -l; test $(du -sk .git | cut -f1) -lt 2000 && echo small",
    );
    assert_eq!(stdout(&ended, "s"), "one\n1\nsmall\n", "{}", compact(&ended));
    // The bound is one of bytes as they are received.
    let large = bench.remote.repository("large");
    add_history(&large, 5);
    let mut all = String::new();
    for number in 0..5 {
        let blob = large.git(&["rev-parse", &format!("main~{}:big", number + 1)]);
        all += &format!("100644 blob {blob}\tbig{number}\n");
    }
    large.commit_tree(&all);
    check_refused(&bench, "large", "more than 4 MiB");
    let kept: Vec<_> = fs::read_dir(bench.folder.path().join("data/repositories")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1, "no partial download is left");
}

#[test]
fn a_remote_that_is_no_repository_is_refused() {
    let bench = Bench::new("");
    // A repository without a commit.
    bench.remote.repository("missing").git(&["update-ref", "-d", "refs/heads/main"]);
    let owner = bench.server.owner();
    save(&owner, "missing", yaml("[{id: s, type: bash, command: ls}]"));
    set(&owner, "missing", r#"{"fullName": "acme/missing"}"#).expect(200);
    let refused = start(&owner, "missing", "r1", Map::new()).expect(422);
    assert!(refused.text.contains("no default branch"), "{}", refused.text);
    // A commit that the remote does not have is found to be missing when its files are asked for.
    bench.remote.repository("absent");
    save(&owner, "absent", yaml("[{id: s, type: bash, command: ls, retry: {maxAttempts: 1}}]"));
    set(&owner, "absent", &format!(r#"{{"fullName": "acme/absent", "ref": "{}"}}"#, "2".repeat(40))).expect(200);
    let id = start(&owner, "absent", "r1", Map::new()).expect(202).text_at("executionId");
    let ended = settled(&owner, &id);
    assert_eq!(text(ended.get("error").unwrap(), "code"), "repository_not_found", "{}", compact(&ended));
}
