//! Location of the server's files, shared limits of scripts, and removal of workspaces.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    escapes::{output_of, run, running, until},
    process::Server,
    start::{save, start},
};

fn step(name: &str, fields: &[(&str, Value)]) -> Value {
    let usual = [("id", name), ("type", "bash"), ("onError", "continue"), ("outputVariable", name)];
    let usual = usual.map(|(key, value)| (key.to_string(), Value::from(value)));
    Value::map(usual.into_iter().chain(fields.iter().map(|(key, value)| (key.to_string(), value.clone()))))
}

/// Runs steps, and returns them with their results.
fn steps_of(client: &Client, workflow: &str, steps: Vec<Value>) -> Vec<Value> {
    save(client, workflow, Value::List(steps));
    let id = start(client, workflow, "once", Map::new()).expect(202).text_at("executionId");
    client.get(&format!("/api/executions/{id}/wait")).expect(200);
    let page = client.get(&format!("/api/executions/{id}/steps?limit=200")).expect(200).json();
    page.get("steps").and_then(Value::as_list).unwrap().to_vec()
}

/// The standard output of a step.
fn printed(steps: &[Value], name: &str) -> String {
    let told = output_of(steps, name);
    told.split("\"stdout\":\"").nth(1).and_then(|told| told.split('"').next()).unwrap_or_default().to_owned()
}

/// A folder that every container shows; `None` if this user cannot create one.
fn shown_folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in("/usr/local").ok();
    if folder.is_none() {
        println!("not tested: this user may make no folder in /usr/local");
    }
    folder
}

#[test]
fn server_files_in_mounted_folders_are_hidden() {
    let Some(folder) = shown_folder() else { return };
    let environment = [("MAINSPRING_SCRIPTS_KEEP_MINUTES", "60")];
    let server = Server::start_as(folder.path(), "data", &[], &environment);
    let (_, laid) = run(&server.owner(), "prey", &[("lay", "echo tr3asure > secret; pwd")]);
    let laid = output_of(&laid, "lay");
    let other = laid.split('"').find_map(|text| text.strip_suffix("\\n")).expect("its folder").to_owned();
    assert!(Path::new(&other).join("secret").exists(), "{laid}");
    let root = folder.path();
    let seen = |path: &Path| format!("cat '{0}' || ls '{0}' && echo ESCAPED || echo contained", path.display());
    let tries = [
        ("store", seen(&root.join("data/journal.db"))),
        ("log", seen(&root.join("data/journal.db-wal"))),
        ("notes", seen(&root.join("data/processes"))),
        ("key", seen(&root.join(".config/mainspring/key"))),
        ("other", seen(&Path::new(&other).join("secret"))),
        (
            "list",
            format!("ls '{}' | grep -v workspaces && echo ESCAPED || echo contained", root.join("data").display()),
        ),
        ("write", format!("echo x > '{}' && echo ESCAPED || echo contained", root.join("data/made").display())),
        ("own", "echo mine > file && cat file && pwd".to_owned()),
    ];
    let scripts: Vec<_> = tries.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let (_, steps) = run(&server.owner(), "hunter", &scripts);
    for (name, _) in &tries[..7] {
        assert_eq!(printed(&steps, name), "contained\\n", "{}", output_of(&steps, name));
    }
    assert!(output_of(&steps, "own").contains("mine"), "{steps:?}");
}

/// A file cannot be hidden reliably. If the key is in a folder that containers show, scripts are off.
#[test]
fn a_key_in_a_mounted_folder_disables_scripts() {
    let Some(shown) = shown_folder() else { return };
    let folder = tempfile::tempdir().unwrap();
    let key = shown.path().join("key");
    let environment = [("MAINSPRING_KEY_FILE", key.to_str().unwrap())];
    let mut server = Server::start_as(folder.path(), "data", &[], &environment);
    let owner = server.token.clone().unwrap();
    let (_, steps) = run(&server.client(&owner), "first", &[("read", &format!("wc -c '{}'", key.display()))]);
    let told = output_of(&steps, "read");
    assert!(told.contains("Permission denied"), "it was made after the trial, and is covered: {told}");
    server.stop();
    let server = Server::start_as(folder.path(), "data", &[], &environment);
    let (_, steps) = run(&server.client(&owner), "second", &[("read", "echo ran")]);
    let told = output_of(&steps, "read");
    assert!(told.contains("scripts_off") && told.contains("move it"), "{told}");
}

/// A preloaded library of a step is not loaded by the programs that build the container.
#[test]
fn a_preloaded_library_does_not_escape_the_container() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let key = folder.path().join(".config/mainspring/key");
    let source = format!(
        "cat > l.c <<'X'\n#include <unistd.h>\n#include <fcntl.h>\n__attribute__((constructor)) static void l(void) {{ \
         close(open(\"loaded\", O_CREAT, 0600)); if (!access(\"{}\", F_OK)) close(open(\"escaped\", O_CREAT, 0600)); }}\nX\n\
         cc -shared -fPIC -o l.so l.c",
        key.display()
    );
    let preloaded = Value::map([("LD_PRELOAD", Value::from("./l.so"))]);
    let steps = vec![
        step("lay", &[("command", source.as_str().into())]),
        step("load", &[("command", "ls".into()), ("env", preloaded)]),
        step("see", &[("command", "ls".into())]),
    ];
    let steps = steps_of(&server.owner(), "preload", steps);
    let told = output_of(&steps, "see");
    assert!(key.exists() && told.contains("loaded"), "the library was never loaded: {steps:?}");
    assert!(!told.contains("escaped"), "{told}");
}

/// A link in the workspace reveals nothing about the host.
#[test]
fn a_symlinked_working_folder_reveals_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let links =
        "ln -s /root there; ln -s /nowhere gone; ln -s ../.. up; mkdir in; ln -s \"$PWD/in\" back; ln -s in near";
    let at = |name: &str, cwd: &str| step(name, &[("command", "pwd".into()), ("cwd", cwd.into())]);
    let names = ["there", "gone", "up", "back", "near", "in", "missing"];
    let steps = [step("lay", &[("command", links.into())])].into_iter().chain(names.map(|name| at(name, name)));
    let steps = steps.chain([at("absolute", "/root"), at("nowhere", "/nowhere")]).collect();
    let steps = steps_of(&server.owner(), "links", steps);
    for name in ["there", "gone", "up"] {
        let told = output_of(&steps, name);
        assert!(told.contains("cwd_outside_workspace") && !told.contains("/root"), "{told}");
        assert!(told.contains(&format!("`cwd` {name} is not in the workspace")), "{told}");
    }
    for name in ["absolute", "nowhere"] {
        assert!(output_of(&steps, name).contains("cwd_outside_workspace"), "{steps:?}");
    }
    for name in ["back", "near", "in"] {
        assert!(output_of(&steps, name).contains("/in\\n"), "{}", output_of(&steps, name));
    }
    assert!(output_of(&steps, "missing").contains("bash_missing_cwd"), "{steps:?}");
}

/// A folder tree that is too deep is found when the script has ended, since periodic checks rarely see it in so
/// short a time.
#[test]
fn a_workspace_is_checked_after_its_script() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let deep = "mkdir closed; echo kept > kept; perl -e 'chdir \"closed\"; for (1..300) { mkdir \"d\" x 99 or die; \
                chdir \"d\" x 99 or die } print \"made\"'; chmod 000 closed";
    let (_, steps) = run(&server.owner(), "deep", &[("deep", deep), ("after", "cat kept; find . | wc -l")]);
    let told = output_of(&steps, "deep");
    assert!(told.contains("script_limit_exceeded") && told.contains("more than 100 deep"), "{told}");
    println!("it printed {:?}", printed(&steps, "deep"));
    assert!(printed(&steps, "after").starts_with("kept\\n"), "{}", output_of(&steps, "after"));
    assert!(!output_of(&steps, "after").contains("script_limit"), "{}", output_of(&steps, "after"));
}

/// Names of removed folders that a script guesses do not prevent the removal, and its `PATH` reveals nothing about
/// the host.
#[test]
fn existing_folders_do_not_prevent_a_removal() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let deep = "mkdir -p .mainspring-removed-{0..6}-0/x; mkdir way; cd way; perl -e 'for (1..330) { mkdir \"d\" or die; \
                chdir \"d\" or die } print \"made\"'";
    let path = "for f in ${PATH//:/ }; do [ -d \"$f\" ] || case $f in /usr/*|/bin|/sbin) ;; *) echo \"told $f\";; esac; done; \
                echo seen; cd way; find . | wc -l";
    let (_, steps) = run(&server.owner(), "deep", &[("deep", deep), ("after", path)]);
    let told = output_of(&steps, "deep");
    assert!(told.contains("more than 100 deep") && !told.contains("cannot be removed"), "{told}");
    let after = output_of(&steps, "after");
    assert!(printed(&steps, "after").starts_with("seen") && !after.contains("script_limit"), "{after}");
}

#[test]
fn memory_of_several_processes_is_counted_together() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let one = "/usr/bin/python3 -c 'import time; x = b\"x\" * (1200 << 20); time.sleep(600)'";
    let memory = format!("for i in 1 2 3; do {one} & done; wait; echo survived");
    let (_, steps) = run(&server.owner(), "greedy", &[("memory", memory.as_str())]);
    let told = output_of(&steps, "memory");
    assert!(told.contains("script_limit_exceeded") && told.contains("memory"), "{told}");
}

#[test]
#[ignore = "it makes half a million files"]
fn entries_of_a_workspace_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let files = "mkdir -m 300 hidden; perl -e 'for (1..500001) { symlink(\"x\", \"hidden/$_\") or die }'; echo made";
    let (_, steps) = run(&server.owner(), "greedy", &[("files", files), ("after", "echo fine > file")]);
    let told = output_of(&steps, "files");
    assert!(told.contains("script_limit_exceeded") && told.contains("files and folders"), "{told}");
    assert!(
        !output_of(&steps, "after").contains("script_limit"),
        "what was too much is gone: {}",
        output_of(&steps, "after")
    );
}

/// Memory files count for their container, even if no process has them open or they are in flight on a socket.
#[test]
fn memory_that_no_process_has_is_counted_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let script = r#"/usr/bin/python3 - <<'X'
import array, os, socket
pairs, block = [], b"x" * (1 << 20)
for number in range(5):
    fd = os.memfd_create("m")
    for _ in range(1024): os.write(fd, block)
    pair = socket.socketpair()
    pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
    pairs.append(pair)
print("ESCAPED")
X"#;
    let (_, steps) = run(&server.owner(), "memory", &[("files", script)]);
    let told = output_of(&steps, "files");
    assert_eq!(printed(&steps, "files"), "", "{told}");
}

/// Memory that belongs to no process, without control groups to count it.
#[test]
fn uncounted_memory_is_refused_without_control_groups() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_as_nobody(folder.path());
    let script = r#"/usr/bin/python3 - <<'X'
import ctypes, mmap, os
def attempt(name, what):
    try: print(name, "had" if what() else "refused")
    except OSError as error: print(name, "refused")
libc = ctypes.CDLL(None)
attempt("anonymous", lambda: mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
attempt("zero", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 1 << 20, flags=mmap.MAP_SHARED))
attempt("file", lambda: os.memfd_create("m"))
attempt("semaphores", lambda: libc.semget(0, 32000, 0o1600) >= 0)
attempt("queue", lambda: libc.msgget(0, 0o1600) >= 0)
attempt("private", lambda: mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
X
head -c 3 /dev/zero | od -An -tx1"#;
    let (_, steps) = run(&server.owner(), "memory", &[("take", script)]);
    let told = printed(&steps, "take");
    if told.contains("file had") {
        println!("not tested: this user may make control groups");
        return;
    }
    for name in ["anonymous", "zero", "file", "semaphores", "queue"] {
        assert!(told.contains(&format!("{name} refused")), "{}", output_of(&steps, "take"));
    }
    assert!(told.contains("private had") && told.contains("00 00 00"), "{}", output_of(&steps, "take"));
}

fn score_of(process: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap().trim().to_owned()
}

/// If memory or processor time is short, scripts and workflow code yield to the server.
#[test]
fn scripts_are_killed_before_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let script = "cat /proc/self/oom_score_adj /proc/1/oom_score_adj; nice";
    let (_, steps) = run(&owner, "see", &[("see", script)]);
    assert_eq!(printed(&steps, "see"), "1000\\n1000\\n19\\n", "{}", output_of(&steps, "see"));
    let code = [("id", "code"), ("type", "code"), ("code", "export default function () { return 1; }")]
        .map(|(key, value)| (key, Value::from(value)));
    steps_of(&owner, "code", vec![Value::map(code)]);
    assert_ne!(score_of(&server.pid().to_string()), "1000");
    let workers: Vec<_> = children_of(&server).iter().map(|child| score_of(child)).collect();
    assert!(!workers.is_empty() && workers.iter().all(|score| score == "1000"), "{workers:?}");
}

fn children_of(server: &Server) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().flatten();
    let children: String = threads.filter_map(|one| fs::read_to_string(one.path().join("children")).ok()).collect();
    children.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The allocator of the executable reserves memory at its start, which counts against the address space of a worker.
#[test]
fn a_worker_of_the_executable_starts_far_below_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let code = [("id", "code"), ("type", "code"), ("code", "export default function () { return 1; }")]
        .map(|(key, value)| (key, Value::from(value)));
    steps_of(&server.owner(), "code", vec![Value::map(code)]);
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.split_ascii_whitespace().next().unwrap().parse().unwrap()
    };
    let workers = children_of(&server);
    assert!(!workers.is_empty());
    for worker in workers {
        let read = |name: &str| fs::read_to_string(format!("/proc/{worker}/{name}")).unwrap();
        let bound = number(&read("limits"), "Max address space");
        let used = number(&read("status"), "VmSize:") * 1_024;
        assert!(used < bound / 2, "{used} of {bound} bytes");
    }
}

#[test]
#[ignore = "it writes 10 GB"]
fn bytes_of_a_workspace_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let write = "mkdir -m 300 x; for i in 1 2 3 4 5 6; do dd if=/dev/zero of=x/f$i bs=1M count=2000 status=none; done; echo wrote";
    let (_, steps) = run(&server.owner(), "writer", &[("write", write), ("after", "chmod 700 x; du -sm x")]);
    let told = output_of(&steps, "write");
    assert!(told.contains("script_limit_exceeded") && told.contains("workspace holds"), "{told}");
    println!("{}", output_of(&steps, "after"));
    assert!(!output_of(&steps, "after").contains("script_limit"), "{steps:?}");
}

/// The memory control group of a process, in either version of control groups.
fn group_of(process: &str) -> String {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let of = |prefix: &str| groups.lines().find_map(|line| line.split_once(prefix)).map(|(_, path)| path.to_owned());
    of(":memory:").or_else(|| of("0::")).unwrap()
}

#[test]
fn scripts_stay_below_the_control_group_of_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "long", Value::List(vec![step("s", &[("command", "sleep 950001".into())])]));
    let id = start(&owner, "long", "once", Map::new()).expect(202).text_at("executionId");
    until("it does not begin", || running("sleep\x00950001") == 1);
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_it = |pid: &String| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("sleep\x00950001"))
    };
    let script = all.filter(|name| name.parse::<u32>().is_ok()).find(is_it).expect("it runs");
    let (script, own) = (group_of(&script), group_of(&server.pid().to_string()));
    let own = own.trim_end_matches("/mainspring-server");
    assert!(script.starts_with(own), "{script} is not below {own}");
    if let Some((_, within)) = script.split_once("/mainspring-steps/") {
        let lengths: Vec<_> = within.split('/').map(str::len).collect();
        assert_eq!(lengths, [64, 64], "its own group is in one of its organization");
    }
    println!("the script is in {script}, the server in {own}");
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", Value::from("enough"))])).expect(200);
    owner.get(&format!("/api/executions/{id}/wait")).expect(200);
}

fn workspaces(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("data/workspaces")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// A server removes workspaces at its start and periodically.
#[test]
fn workspaces_are_removed_with_their_execution() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_with(folder.path(), &["--scripts-keep-minutes", "5"]);
    let owner = server.owner();
    run(&owner, "short", &[("make", "mkdir -p a/b; chmod 000 a; echo x > f; ln -s /etc link")]);
    let sleep = [("id", Value::from("wait")), ("type", "sleep".into()), ("durationMs", 3_600_000_u64.into())];
    let lay = step("lay", &[("command", "echo kept > kept".into())]);
    save(&owner, "open", Value::List(vec![lay, Value::map(sleep)]));
    start(&owner, "open", "once", Map::new()).expect(202);
    let kept = || workspaces(folder.path()).into_iter().any(|path| path.join("kept").exists());
    until("it does not begin", kept);
    assert_eq!(workspaces(folder.path()).len(), 2);
    server.stop();
    let mut server = Server::start_with(folder.path(), &["--scripts-keep-minutes", "5"]);
    server.stop();
    assert_eq!(workspaces(folder.path()).len(), 2, "they are kept for as long as that is asked for");
    // A server that was killed while it removed a deep workspace leaves such a folder.
    fs::create_dir_all(folder.path().join("data/workspaces/.mainspring-removed-0-0/x")).unwrap();
    let _server = Server::start(folder.path());
    until("it is not removed", || workspaces(folder.path()).len() == 1);
    assert!(kept(), "an unfinished execution keeps its workspace");
    let entries = || fs::read_dir(folder.path().join("data/workspaces")).unwrap().count();
    until("a note goes with its folder", || entries() == 2);
}
