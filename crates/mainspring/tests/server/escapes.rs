//! Attempts of scripts to escape from their containers, through a server process. A successful attempt prints
//! `ESCAPED`; other output is in the history of its step.

use std::{
    fs,
    net::TcpListener,
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr, unix::net::UnixListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use mainspring_kernel::value::{Map, Value};
use tempfile::TempDir;

use super::{
    client::Client,
    process::{Organization, Server},
    start::{save, start},
};

/// One attempt.
struct Try {
    name: &'static str,
    script: String,
}

/// A step with a script. The workflow continues after its failure.
fn step(name: &str, script: &str) -> Value {
    let fields =
        [("id", name), ("type", "bash"), ("command", script), ("onError", "continue"), ("outputVariable", name)];
    Value::map(fields.map(|(key, value)| (key, Value::from(value))))
}

/// Runs scripts one after another in one execution. Returns the execution and its steps.
pub(crate) fn run(client: &Client, workflow: &str, scripts: &[(&str, &str)]) -> (Value, Vec<Value>) {
    let steps = scripts.iter().map(|(name, script)| step(name, script)).collect();
    save(client, workflow, Value::List(steps));
    let id = start(client, workflow, "once", Map::new()).expect(202).text_at("executionId");
    let ended = loop {
        let seen = client.get(&format!("/api/executions/{id}/wait")).expect(200);
        if !["pending", "running"].contains(&seen.text_at("status").as_str()) {
            break seen.json();
        }
    };
    let mut steps = Vec::new();
    let mut path = format!("/api/executions/{id}/steps?limit=200");
    loop {
        let page = client.get(&path).expect(200).json();
        steps.extend(page.get("steps").and_then(Value::as_list).unwrap().iter().cloned());
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(cursor) => path = format!("/api/executions/{id}/steps?limit=200&cursor={cursor}"),
            None => break (ended, steps),
        }
    }
}

/// The output and the failure of a step, as one text.
pub(crate) fn output_of(steps: &[Value], name: &str) -> String {
    let step = steps.iter().find(|step| step.get("stepId").and_then(Value::as_text) == Some(name));
    mainspring_kernel::json::compact(step.unwrap_or_else(|| panic!("no step {name}")))
}

/// A server with secrets to find.
struct Target {
    folder: TempDir,
    server: Server,
    organization: Organization,
    /// A process of the server's user.
    victim: Child,
    loopback: TcpListener,
    _abstract: UnixListener,
}

const SECRET: &str = "tr3asure";

impl Target {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let secrets = ["MYSECRET_DB", "AWS_SECRET_ACCESS_KEY", "MAINSPRING_TOKEN"].map(|name| (name, SECRET));
        // Workspaces of ended executions are kept as targets.
        let environment = [&secrets[..], &[("MAINSPRING_SCRIPTS_KEEP_MINUTES", "60")]].concat();
        let server = Server::start_as(folder.path(), "data", &[], &environment);
        let organization = Organization::new(&server, "acme");
        fs::write(folder.path().join("outside"), SECRET).unwrap();
        let victim = Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().unwrap();
        let name = SocketAddr::from_abstract_name(format!("mainspring-test-{}", server.pid())).unwrap();
        let _abstract = UnixListener::bind_addr(&name).unwrap();
        let loopback = TcpListener::bind("127.0.0.1:0").unwrap();
        loopback.set_nonblocking(true).unwrap();
        Self { folder, server, organization, victim, loopback, _abstract }
    }

    fn workspaces(&self) -> PathBuf {
        self.folder.path().join("data/workspaces")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Runs a system call by its number, and prints the result.
fn call(what: &str, number: i64, arguments: &str) -> String {
    format!(
        "perl -e 'my $r = syscall({number}{}{arguments}); print $r >= 0 ? \"ESCAPED {what}\\n\" : \"{what}: $!\\n\"'",
        if arguments.is_empty() { "" } else { ", " }
    )
}

/// Tries to read a file.
fn read(path: &Path) -> String {
    format!("cat '{0}' >/dev/null && echo ESCAPED read || echo contained", path.display())
}

fn plain(name: &'static str, script: String) -> Try {
    Try { name, script }
}

/// Tries to write to a file.
fn write(path: &str) -> String {
    format!("(echo x > '{path}') 2>&1 && echo ESCAPED write || echo contained")
}

/// Files of the server, of other organizations and of the system.
fn of_files(target: &Target, other: &Path) -> Vec<Try> {
    let (root, outside) = (target.folder.path(), target.folder.path().join("outside"));
    let list = |path: &str| format!("ls '{path}' 2>&1 && echo ESCAPED list || echo contained");
    vec![
        plain("key", read(&root.join(".config/mainspring/key"))),
        plain("store", read(&root.join("data/journal.db"))),
        plain("store_wal", read(&root.join("data/journal.db-wal"))),
        plain("other_workspace", read(&other.join("secret"))),
        plain(
            "workspaces",
            format!(
                "[ \"$(ls '{}' | wc -l)\" -le 1 ] && echo contained || echo ESCAPED",
                target.workspaces().display()
            ),
        ),
        plain("outside_read", read(&outside)),
        // The script may create a file of this name in its own `/tmp`; the file outside is checked below.
        plain("outside_write", format!("echo x > '{}'; echo contained", outside.display())),
        plain("passwords", read(Path::new("/etc/shadow"))),
        plain("home_of_root", list(&["", "root", ".ssh"].join("/"))),
        plain("system_write", write("/usr/bin/owned")),
        plain("etc_write", write("/etc/passwd")),
        plain("root_write", write("/owned")),
        plain(
            "symbolic_link",
            format!("ln -s '{0}' link && cat link && echo ESCAPED || echo contained", outside.display()),
        ),
        plain(
            "hard_link",
            format!(
                "ln '{0}' hard 2>&1 && echo ESCAPED || echo contained; ln /usr/bin/env hard2 2>&1 && echo ESCAPED || echo contained",
                outside.display()
            ),
        ),
        plain("dot_dot", "cat ../*/secret 2>&1 && echo ESCAPED || echo contained".into()),
        plain(
            "root_by_proc",
            format!("cat /proc/1/root'{0}' 2>&1 && echo ESCAPED || echo contained", outside.display()),
        ),
    ]
}

/// Other processes: memory, environments and descriptors.
fn of_processes(target: &Target) -> Vec<Try> {
    let (server, victim) = (target.server.pid(), target.victim.id());
    vec![
        plain("server_environment", format!("cat /proc/{server}/environ 2>&1 | grep -a {SECRET} && echo ESCAPED || echo contained")),
        plain("parent_environment", format!("cat /proc/$PPID/environ /proc/1/environ 2>&1 | grep -a {SECRET} && echo ESCAPED || echo contained")),
        plain("own_environment", format!("env | grep {SECRET} && echo ESCAPED || echo contained")),
        plain("server_memory", format!("head -c 1 /proc/{server}/mem 2>&1 && echo ESCAPED || echo contained")),
        plain("processes", "[ \"$(ls -d /proc/[0-9]* | wc -l)\" -lt 12 ] && echo contained || echo ESCAPED".into()),
        plain("signal_server", format!("kill -9 {server} 2>&1 && echo ESCAPED || echo contained")),
        plain("signal_victim", format!("kill -9 {victim} 2>&1 && echo ESCAPED || echo contained")),
        plain("ptrace", call("ptrace", 101, "16, 1, 0, 0")),
        plain("process_memory", call("process_vm_readv", 310, "1, 0, 0, 0, 0, 0")),
        plain("descriptors", "ls -l /proc/self/fd; for fd in /proc/self/fd/*; do n=${fd##*/}; [ \"$n\" -gt 3 ] && [ -e \"$fd\" ] && echo ESCAPED \"$n\"; done; echo contained".into()),
        plain("terminal_input", call("TIOCSTI", 16, "0, 0x5412, my $c = \"x\"")),
        plain("terminal", "(echo x > /dev/tty) 2>&1 && echo ESCAPED || echo contained".into()),
    ]
}

/// Addresses and sockets outside of the container.
fn of_the_network(target: &Target) -> Vec<Try> {
    let (server, api) = (target.server.pid(), target.server.address.clone());
    let port = target.loopback.local_addr().unwrap().port();
    let tcp = |to: &str| format!("(exec 3<>/dev/tcp/{to}) 2>&1 && echo ESCAPED connect || echo contained");
    vec![
        plain("metadata", tcp("169.254.169.254/80")),
        plain("loopback", tcp(&format!("127.0.0.1/{port}"))),
        plain("server_api", tcp(&api.replace(':', "/"))),
        plain("internet", tcp("1.1.1.1/53")),
        plain(
            "abstract_socket",
            format!(
                "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); print connect($s, pack_sockaddr_un(\"\\0mainspring-test-{server}\")) ? \"ESCAPED\\n\" : \"contained: $!\\n\"'"
            ),
        ),
        plain("vsock", call("vsock", 41, "40, 1, 0")),
        plain("packet_socket", call("packet", 41, "17, 3, 0")),
    ]
}

/// Mounts, namespaces and other kernel interfaces.
fn of_the_kernel() -> Vec<Try> {
    vec![
        plain("mount", "mount -t tmpfs none /tmp 2>&1 && echo ESCAPED || echo contained".into()),
        plain("mount_call", call("mount", 165, "my $a = \"none\", my $b = \"/tmp\", my $c = \"tmpfs\", 0, 0")),
        plain("remount", "mount -o remount,rw / 2>&1 && echo ESCAPED || echo contained".into()),
        plain("new_mount", call("fsopen", 430, "my $a = \"tmpfs\", 0")),
        plain("unshare", "unshare -Ur id 2>&1 && echo ESCAPED || echo contained".into()),
        plain("clone_namespace", call("clone", 56, "0x10000011, 0, 0, 0, 0")),
        plain("clone3", call("clone3", 435, "0, 0")),
        plain("clone_x32", call("clone_x32", 0x4000_0038, "0x10000011, 0, 0, 0, 0")),
        // System calls with numbers of x32 only: ioctl, ptrace, process_vm_readv.
        plain("ioctl_x32", call("ioctl_x32", 0x4000_0202, "1, 0x5401, my $c = \"\" x 64")),
        plain("ptrace_x32", call("ptrace_x32", 0x4000_0209, "0, 0, 0, 0")),
        plain("read_x32", call("process_vm_readv_x32", 0x4000_021b, "$$, 0, 0, 0, 0, 0")),
        plain("openat2", call("openat2", 437, "-100, my $a = \".\", my $b = \"\\0\" x 24, 24")),
        plain("setns", call("setns", 308, "0, 0")),
        plain("keyctl", call("keyctl", 250, "0, -3, 1")),
        plain("add_key", call("add_key", 248, "my $a = \"user\", my $b = \"k\", my $c = \"v\", 1, -3")),
        plain("bpf", call("bpf", 321, "0, 0, 0")),
        plain("perf", call("perf_event_open", 298, "0, 0, -1, -1, 0")),
        plain("io_uring", call("io_uring_setup", 425, "1, 0")),
        plain("io_setup", call("io_setup", 206, "1, my $c = \"\\0\" x 8")),
        plain("mounts", call("listmount", 458, "my $a = \"\\x18\" . \"\\0\" x 7 . \"\\xff\" x 8 . \"\\0\" x 8, my $b = \"\\0\" x 64, 8, 0")),
        plain("unknown_calls", "perl -e 'for (467 .. 480, 1000) { syscall($_, 0, 0, 0, 0, 0); print \"ESCAPED $_: $!\\n\" unless $!{ENOSYS} } print \"asked\\n\"'".into()),
        plain("userfaultfd", call("userfaultfd", 323, "1")),
        plain("kernel_log", call("syslog", 103, "3, 0, 0")),
        plain("kernel_messages", "head -c 1 /dev/kmsg /proc/kmsg 2>&1 && echo ESCAPED || echo contained".into()),
        plain("module", call("init_module", 175, "0, 0, 0")),
        plain("reboot", call("reboot", 169, "0xfee1dead, 672274793, 0, 0")),
        plain("chroot", call("chroot", 161, "my $a = \"/tmp\"")),
        plain("pivot_root", call("pivot_root", 155, "my $a = \"/tmp\", my $b = \"/tmp\"")),
        plain("set_clock", call("settimeofday", 164, "0, 0")),
        plain("device_node", "mknod disk b 8 0 2>&1 && echo ESCAPED || echo contained".into()),
        plain("disk_device", "ls /dev | grep -E '^(sd|vd|nvme|mem|kvm|fuse)' && echo ESCAPED || echo contained".into()),
        plain("core_pattern", write("/proc/sys/kernel/core_pattern")),
        plain("sysrq", write("/proc/sysrq-trigger")),
        plain("kernel_memory", "head -c 1 /proc/kcore | grep -q . && echo ESCAPED || echo contained".into()),
        plain("sys", "ls /sys/fs/cgroup 2>&1 && echo ESCAPED || echo contained".into()),
        plain(
            "release_agent",
            "find / -name release_agent 2>/dev/null | grep . && echo ESCAPED || echo contained".into(),
        ),
        plain("id_map", write("/proc/self/uid_map")),
    ]
}

/// Requests of ioctl(2) that allocate disk space without growing a file.
const PREALLOCATE: &str = r#"/usr/bin/python3 - <<'X'
import fcntl, os, struct
fd = os.open("room", os.O_CREAT | os.O_RDWR)
for request in [0x40305828, 0x4030582a, 0x40305839, 0x4030580a, 0x40305824, 0xcafe00000000 | 0x40305828]:
    try:
        fcntl.ioctl(fd, request & 0xffffffff, struct.pack("hhxxxxqqiI4I", 0, 0, 0, 1 << 20, 0, 0, 0, 0, 0, 0))
    except OSError as error:
        print(hex(request), error)
print("ESCAPED" if os.fstat(fd).st_blocks else "contained")
X"#;

/// More rights, and more disk space.
fn of_rights_and_room() -> Vec<Try> {
    vec![
        plain("set_uid", "cp /usr/bin/id su; chmod u+s su && echo ESCAPED; chmod 2755 su && echo ESCAPED; find . -perm /6000 | grep . && echo ESCAPED; echo contained".into()),
        plain("set_uid_program", "find /usr/bin -perm /4000 | grep -q . || echo none; perl -e 'exit 0' && su -c id </dev/null 2>&1 | grep uid=0 && echo ESCAPED; echo contained".into()),
        plain("set_uid_new", "perl -e 'use Fcntl; umask 0; sysopen(my $f, \"made\", O_CREAT|O_WRONLY, 04755) and print \"ESCAPED\\n\"; syscall(133, my $n = \"node\", 0104755, 0) == 0 and print \"ESCAPED\\n\"; syscall(452, -100, my $m = \"su\", 04755, 0) == 0 and print \"ESCAPED\\n\"'; find . -perm /6000 | grep . && echo ESCAPED; echo contained".into()),
        plain("allocate", "fallocate -l 1G big 2>&1 && echo ESCAPED || echo contained; rm -f big".into()),
        plain("preallocate", PREALLOCATE.into()),
        plain("core_dump", "grep -E 'core file size +1 +1 ' /proc/self/limits || echo ESCAPED".into()),
        plain("capabilities", "grep -E '^Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000 && echo ESCAPED || echo contained".into()),
        plain("new_rights", "grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'Seccomp:.2' /proc/self/status && echo contained || echo ESCAPED".into()),
        plain("raise_limits", "ulimit -n 100000 2>&1 && echo ESCAPED; ulimit -u 100000 2>&1 && echo ESCAPED; echo contained".into()),
        plain("fill_tmp", "dd if=/dev/zero of=/tmp/big bs=1M count=600 2>&1 && echo ESCAPED || echo contained; rm -f /tmp/big".into()),
        plain("fill_shm", "dd if=/dev/zero of=/dev/shm/big bs=1M count=100 2>&1 && echo ESCAPED || echo contained".into()),
        plain("fill_dev", "dd if=/dev/zero of=/dev/big bs=1M count=100 2>&1 && echo ESCAPED || echo contained".into()),
        plain("large_file", "truncate -s 3G big 2>&1 && echo ESCAPED || echo contained; rm -f big".into()),
        plain("much_memory", "perl -e 'my $x = \"x\" x (3 << 30); print \"ESCAPED\"' 2>&1 || echo contained".into()),
        plain("message_queues", "find /dev/mqueue 2>&1 && echo ESCAPED || echo contained".into()),
    ]
}

fn tries(target: &Target, other: &Path) -> Vec<Try> {
    let some = [of_files(target, other), of_processes(target), of_the_network(target), of_the_kernel()];
    some.into_iter().flatten().chain(of_rights_and_room()).collect()
}

#[test]
fn scripts_cannot_escape_their_container() {
    let mut target = Target::new();
    let owner = &target.organization.owner;
    let (_, steps) = run(owner, "prey", &[("lay", "echo tr3asure > secret; pwd")]);
    let laid = output_of(&steps, "lay");
    let other = laid.split('"').find_map(|text| text.strip_suffix("\\n")).expect("its folder").to_owned();
    assert!(Path::new(&other).join("secret").exists(), "{laid}");
    let tries = tries(&target, Path::new(&other));
    assert!(tries.len() >= 40);
    let scripts: Vec<_> = tries.iter().map(|one| (one.name, one.script.as_str())).collect();
    let mut wrong = String::new();
    // The default limit of steps in a sequence.
    for (number, some) in scripts.chunks(40).enumerate() {
        let (ended, steps) = run(owner, &format!("hunter-{number}"), some);
        for (name, _) in some {
            let told = output_of(&steps, name);
            let out = told.split("\"stdout\":\"").nth(1).unwrap_or_default();
            if out.is_empty() || out.starts_with('"') || out.contains("ESCAPED") {
                wrong.push_str(&format!("{name}: {told}\n"));
            }
        }
        assert!(ended.get("status").is_some());
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(fs::read_to_string(target.folder.path().join("outside")).unwrap(), SECRET);
    assert!(target.victim.try_wait().unwrap().is_none(), "a process of the host was ended");
    assert!(target.loopback.accept().is_err(), "a service of the host was reached");
}

/// Processes of the host whose command line contains a word.
pub(crate) fn running(word: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(word)).count()
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed().as_secs() < 60, "{what}");
        thread::yield_now();
    }
}

#[test]
fn no_process_outlives_its_step() {
    let target = Target::new();
    let (one, two, three) = (910_001, 910_002, 910_003);
    let scripts = [
        ("daemon", format!("setsid sleep {one} >/dev/null 2>&1 & disown; echo left")),
        ("twice", format!("(setsid bash -c '(nohup sleep {two} >/dev/null 2>&1 &)' &); echo left")),
        ("group", format!("set -m; trap '' TERM HUP; nohup sleep {three} >/dev/null 2>&1 & echo left")),
    ];
    let scripts: Vec<_> = scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let (_, steps) = run(&target.organization.owner, "leaver", &scripts);
    scripts.iter().for_each(|(name, _)| assert!(output_of(&steps, name).contains("left"), "{steps:?}"));
    for word in [one, two, three] {
        assert_eq!(running(&format!("sleep\0{word}")), 0, "a process has outlived its step");
    }
}

#[test]
fn a_contained_script_ends_with_a_cancel_and_with_its_server() {
    let mut target = Target::new();
    let owner = &target.organization.owner;
    let begin = |name: &str, script: &str| {
        save(owner, name, Value::List(vec![step("s", script)]));
        start(owner, name, "once", Map::new()).expect(202).text_at("executionId")
    };
    let id = begin("polite", "trap 'echo asked; exit 3' TERM; setsid sleep 920001 & sleep 920001 & wait");
    until("it does not begin", || running("sleep\x00920001") == 2);
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", Value::from("enough"))])).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "cancelled");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
    assert!(steps.text.contains("asked"), "it was asked before it was ended: {}", steps.text);
    assert_eq!(running("sleep\x00920001"), 0);
    begin("stubborn", "trap '' TERM; setsid sleep 920002 & while :; do sleep 920002; done");
    until("it does not begin", || running("sleep\x00920002") == 2);
    target.server.kill();
    until("it outlives its server", || running("sleep\x00920002") == 0);
}

#[test]
fn scripts_above_a_limit_are_ended_with_the_reason() {
    let target = Target::new();
    let owner = &target.organization.owner;
    let scripts = [("bomb", "bomb() { bomb | bomb & }; bomb; sleep 930001"), ("after", "echo fine")];
    let (_, steps) = run(owner, "bomber", &scripts);
    let told = output_of(&steps, "bomb");
    assert!(told.contains("script_limit_exceeded") && told.contains("processes"), "{told}");
    assert!(output_of(&steps, "after").contains("fine"), "{steps:?}");
    assert_eq!(running("bomb() {"), 0);
}
