//! Contained scripts: their abilities, the permission to start them, and the reports of a server.

use std::{fs, process::Command, time::Instant};

use mainspring_kernel::value::{Map, Value};

use super::{
    escapes::{output_of, run},
    process::{Organization, Server},
    start::{save, start},
    support::MAINSPRING,
};

/// Steps of ordinary builds, without a network.
const BUILDS: &[(&str, &str, &str)] = &[
    (
        "git",
        "git init -q a && cd a && git config user.email a@b && git config user.name a && echo 1 > f && git add f && git commit -qm one && cd .. && git clone -q a b && cat b/f",
        "1\\n",
    ),
    (
        "git_branches",
        "cd a && git checkout -qb x && echo 2 > f && git commit -qam two && git merge-base HEAD x >/dev/null && git log --oneline | wc -l",
        "2\\n",
    ),
    ("git_worktree", "cd a && git worktree add -q ../w HEAD~1 && cat ../w/f && git gc -q && git fsck", "1\\n"),
    (
        "python",
        "/usr/bin/python3 -c 'import json, tempfile, subprocess; t = tempfile.mkdtemp(); print(json.dumps(subprocess.run([\"echo\", \"hi\"], capture_output=True, text=True).stdout))'",
        "hi",
    ),
    (
        "python_threads",
        "/usr/bin/python3 -c 'import multiprocessing as m, threading\nwith m.Pool(2) as p: print(sum(p.map(abs, [-1, -2, -3])))'",
        "6\\n",
    ),
    ("make", "printf 'all: out\\nout:\\n\\techo built > out\\n' > Makefile && make -j4 -s && cat out", "built"),
    (
        "compiler",
        "printf '#include <stdio.h>\\nint main(void) { puts(\"compiled\"); }' > m.c && cc -O1 -o m m.c && ./m",
        "compiled",
    ),
    ("tar", "mkdir -p d && echo x > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f", "x\\n"),
    ("gzip", "echo packed | gzip -9 | gunzip", "packed"),
    ("pipes", "seq 1 1000 | sort -rn | head -1 | tee last | xargs echo got", "got 1000"),
    ("substitution", "diff <(echo a) <(echo a) && cat <<< same", "same"),
    ("temporary", "f=$(mktemp) && echo t > \"$f\" && cat \"$f\" && d=$(mktemp -d) && rmdir \"$d\"", "t\\n"),
    ("links", "mkdir -p l && echo 1 > l/a && ln l/a l/b && ln -s a l/c && mv l/a l/d && cat l/b l/d", "1\\n1\\n"),
    ("modes", "echo '#!/bin/sh\necho ran' > r && chmod +x r && ./r", "ran"),
    ("fifo", "mkfifo p && (echo through > p &) && cat p", "through"),
    (
        "own_server",
        "/usr/bin/python3 -c 'import socket, threading; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); c = socket.create_connection(s.getsockname()); print(\"connected\")'",
        "connected",
    ),
    (
        "shell_tools",
        "awk 'BEGIN { print 6 * 7 }' && echo a,b | cut -d, -f2 && date -u +%Y >/dev/null && basename /a/b",
        "42\\nb\\nb\\n",
    ),
    ("home", "cd && pwd && echo x > ~/.config-file && test -w \"$HOME\" && echo \"$TMPDIR\"", "/tmp/home\\n/tmp\\n"),
    ("background", "sleep 0.01 & wait $! && echo waited", "waited"),
    (
        "shared_memory",
        "/usr/bin/python3 -c 'from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=4096); print(m.size); m.unlink()'",
        "4096",
    ),
    ("network", "curl -sS --max-time 5 http://example.com 2>&1; echo \"exit $?\"", "exit 6"),
    ("loopback", "curl -sS --max-time 5 http://127.0.0.1:1 2>&1; echo \"exit $?\"", "exit 7"),
    (
        "docker",
        "if command -v docker >/dev/null; then docker ps 2>&1; else echo 'docker is not there'; fi; test -e /var/run/docker.sock || echo no socket",
        "no socket",
    ),
];

#[test]
fn ordinary_builds_work_in_a_container() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let theirs = Organization::new(&server, "acme").owner;
    let scripts: Vec<_> = BUILDS.iter().map(|(name, script, _)| (*name, *script)).collect();
    let (_, steps) = run(&theirs, "build", &scripts);
    let mut wrong = String::new();
    for (name, _, expected) in BUILDS {
        let told = output_of(&steps, name);
        if !told.contains(expected) || told.contains("\"status\":\"failed\"") {
            wrong.push_str(&format!("{name}: {told}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Toolchains outside of the system's folders are readable if the configuration lists them.
#[test]
fn listed_toolchains_are_mounted() {
    let (folder, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(tools.path().join("bin")).unwrap();
    let tool = tools.path().join("bin/tool");
    fs::write(&tool, "#!/bin/sh\necho tooled\n").unwrap();
    Command::new("chmod").arg("755").arg(tools.path()).arg(&tool).status().unwrap();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = String::from_utf8(sysroot.stdout).unwrap().trim().to_owned();
    let shown = format!("{}:{sysroot}", tools.path().display());
    let server = Server::start_with(folder.path(), &["--scripts-read", &shown]);
    let cargo = format!(
        "export PATH={sysroot}/bin:$PATH && cargo init -q --vcs none hello && cd hello && cargo run -q --offline"
    );
    let (tool, write) = (tool.display().to_string(), format!("echo x >> '{}'", tool.display()));
    let (_, steps) = run(&server.owner(), "tool", &[("tool", &tool), ("write", &write), ("cargo", &cargo)]);
    assert!(output_of(&steps, "tool").contains("tooled"), "{steps:?}");
    assert!(output_of(&steps, "write").contains("Read-only"), "{steps:?}");
    assert!(output_of(&steps, "cargo").contains("Hello, world!"), "{}", output_of(&steps, "cargo"));
}

fn script(text: &str) -> Value {
    let script = [("id", "here"), ("type", "bash"), ("command", text), ("outputVariable", "here")];
    Value::List(vec![Value::map(script.map(|(key, value)| (key, Value::from(value))))])
}

/// Members with the permission may start scripts in every organization. Agents and sessions may not, not even
/// inside of a subworkflow or a branch.
#[test]
fn scripts_need_a_permission() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let acme = Organization::new(&server, "acme");
    save(&acme.owner, "here", script("pwd"));
    let nested = [("id", Value::from("child")), ("type", "subworkflow".into()), ("workflow", "here".into())];
    save(&acme.owner, "nested", Value::List(vec![Value::map(nested)]));
    let asked = [("id", Value::from("if")), ("type", "conditional".into()), ("condition", true.into())];
    let asked = asked.into_iter().chain([("then", script("pwd"))]);
    save(&acme.owner, "asked", Value::List(vec![Value::map(asked)]));
    let id = start(&acme.owner, "here", "r1", Map::new()).expect(202).text_at("executionId");
    let ended = acme.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "completed", "{ended:?}");
    assert!(ended.text.contains("/data/workspaces/"), "it works in a folder of its own: {ended:?}");
    let mode = fs::metadata(folder.path().join("data/workspaces")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o700);
    let member = acme.member("bob", "member");
    start(&member, &here(&member), "r2", Map::new()).expect(202);
    let agent = acme.member("robot", "agent");
    let session = acme.session_of(&id);
    for (who, caller) in [("agent", &agent), ("session", &session)] {
        for workflow in ["here", "nested", "asked"] {
            let id = acme.owner.get(&format!("/api/workflows/{workflow}")).expect(200).text_at("id");
            let refused = start(caller, &id, &format!("{who}-{workflow}"), Map::new()).expect(403);
            assert!(refused.text.contains("scripts:run"), "{who}: {refused:?}");
        }
    }
    let unscripted = [("id", Value::from("s")), ("type", "sleep".into()), ("durationMs", 1u64.into())];
    save(&agent, "plain", Value::List(vec![Value::map(unscripted)]));
    start(&agent, "plain", "r3", Map::new()).expect(202);
}

/// Saves a workflow with a script as this client.
fn here(client: &super::client::Client) -> String {
    save(client, "bobs", script("pwd"));
    "bobs".into()
}

#[test]
fn scripts_are_off_by_setting_or_without_containers() {
    let folder = tempfile::tempdir().unwrap();
    let bare = tempfile::tempdir().unwrap();
    for program in ["bash", "sh", "sleep"] {
        std::os::unix::fs::symlink(format!("/bin/{program}"), bare.path().join(program)).unwrap();
    }
    let path = bare.path().to_str().unwrap();
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 3] = [
        ("off", &["--scripts", "off"], &[], "scripts: off"),
        ("missing", &[], &[("PATH", path)], "bubblewrap is not installed"),
        ("said", &[], &[("MAINSPRING_SCRIPTS", "off")], "scripts: off"),
    ];
    for (name, arguments, environment, why) in cases {
        let server = Server::start_as(folder.path(), name, arguments, environment);
        let owner = server.owner();
        save(&owner, "here", script("echo ran"));
        let id = start(&owner, "here", "r1", Map::new()).expect(202).text_at("executionId");
        let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "failed", "{name}: {ended:?}");
        let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
        assert!(steps.text.contains("scripts_off") && steps.text.contains(why), "{name}: {}", steps.text);
        assert!(steps.text.contains("policy"), "{name}: {}", steps.text);
    }
    let server = Server::start_as(folder.path(), "free", &["--scripts", "uncontained"], &[]);
    let (_, steps) = run(&server.owner(), "free", &[("see", "ls -d /root /home")]);
    assert!(output_of(&steps, "see").contains("/root"), "{steps:?}");
    let mut doctor = Command::new(MAINSPRING);
    doctor.args(["doctor", "--json", "--scripts", "off", "--dir"]).arg(folder.path().join("free"));
    let doctor = doctor.env("HOME", folder.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("scripts of a server are off"), "{doctor:?}");
}

/// A step with a contained script takes at most 15 ms more than one without a container. Run it on a quiet machine
/// with a release build: `MAINSPRING_BINARY=target/release/mainspring cargo test --test server -- --ignored
/// --nocapture cost_of_a_container`.
#[test]
#[ignore = "it measures: with a release build, on a quiet machine"]
fn cost_of_a_container() {
    let folder = tempfile::tempdir().unwrap();
    let contained = Server::start_in(folder.path(), "contained", &[]);
    let free = Server::start_in(folder.path(), "free", &["--scripts", "uncontained"]);
    let names: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let scripts: Vec<_> = names.iter().map(|name| (name.as_str(), "true")).collect();
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..5 {
        for (server, times) in [&contained, &free].into_iter().zip(&mut times) {
            let began = Instant::now();
            run(&server.owner(), &format!("w{round}"), &scripts);
            times.push(began.elapsed().as_secs_f64() * 1_000.0 / scripts.len() as f64);
        }
    }
    let [contained, free] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("contained {contained:.1} ms, uncontained {free:.1} ms, ratio {:.2}", contained / free);
    assert!(contained - free <= 15.0);
}
