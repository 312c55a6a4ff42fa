//! Tool servers as processes at a server: contained as scripts are, with the workspace of the execution.

use std::{fs, net::TcpListener, path::PathBuf, process::Command};

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};
use tempfile::TempDir;

use super::{
    process::{Organization, Server},
    start::{save, start},
    support::{MAINSPRING, yaml},
};

/// A tool server in bash with one tool. It runs its argument `do` as a command, so that a test can try anything, and returns
/// the output in which each character that JSON escapes is a space.
const TOOL_SERVER: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      [[ $line =~ \"do\":\"([^\"]*)\" ]]
      said=$(eval "${BASH_REMATCH[1]}" 2>&1 | head -c 2000 | LC_ALL=C tr -c 'A-Za-z0-9/:.,_=$-' ' ')
      reply "{\"content\":[],\"structuredContent\":{\"said\":\"$said\"}}" ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// A server with one tool server that is a process.
struct Bench {
    folder: TempDir,
    server: Server,
}

/// An execution that has ended or waits for an approval.
struct Settled {
    status: String,
    steps: String,
}

impl Bench {
    /// A bench whose tool server works in the workspace.
    fn new(scripts: &str) -> Self {
        Self::with(scripts, &[("cwd", ".".into()), ("env", Value::map([("MINE", "given".into())]))])
    }

    fn with(scripts: &str, more: &[(&'static str, Value)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        let settings = [("command", Value::from("bash")), ("args", vec![Value::from("-c"), TOOL_SERVER.into()].into())];
        let settings = Value::map(settings.into_iter().chain(more.iter().cloned()));
        let policy = Value::map([("classes", Value::map([("shell.run", "read".into())]))]);
        let secrets = Value::map([("TOKEN", Value::map([("env", "OUR_TOKEN".into())]))]);
        let servers = Value::map([("shell", settings)]);
        let settings = Value::map([("mcpServers", servers), ("policy", policy), ("secrets", secrets)]);
        fs::write(&config, compact(&settings)).unwrap();
        let arguments = ["--scripts", scripts, "--config", config.to_str().unwrap()];
        let server = Server::start_as(
            folder.path(),
            "data",
            &arguments,
            &[("OURS", "hidden"), ("OUR_TOKEN", "c2VjcmV0LXRva2Vu")],
        );
        Self { folder, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs commands in the tool server, one call after another, in one execution.
    fn run(&self, workflow: &str, commands: &[&str], last: &str) -> Settled {
        let owner = self.server.owner();
        let call = |(place, command): (usize, &&str)| {
            let retry = "retry: {maxAttempts: 1}, onError: continue";
            let arguments = compact(&Value::map([("do", Value::from(*command))]));
            let step =
                yaml(&format!("[{{id: s{place}, type: tool, tool: shell.run, arguments: {arguments}, {retry}}}]"));
            step.as_list().unwrap()[0].clone()
        };
        let mut steps: Vec<Value> = commands.iter().enumerate().map(call).collect();
        steps.extend(yaml(last).as_list().unwrap().iter().cloned());
        save(&owner, workflow, Value::List(steps));
        let id = start(&owner, workflow, workflow, Map::new()).expect(202).text_at("executionId");
        let status = owner.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
        let steps = owner.get(&format!("/api/executions/{id}/steps?limit=200")).expect(200).text;
        Settled { status, steps }
    }

    fn workspaces(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("data/workspaces")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
}

/// Commands that show what a process of the server's user can see. Each prints `ESCAPED` if it succeeds.
fn escapes(bench: &Bench, other_workspace: &str, port: u16) -> Vec<String> {
    let data = bench.path("data").display().to_string();
    let config = bench.path("config.yaml").display().to_string();
    let key = bench.path(".config/mainspring/key").display().to_string();
    let server = bench.server.pid();
    vec![
        format!("head -c 15 {data}/journal.db | grep -q SQLite && echo ESC''APED"),
        format!("test -e {data}/journal.db && echo ESC''APED"),
        format!("test -e {key} && echo ESC''APED"),
        format!("test -e {config} && echo ESC''APED"),
        format!("cat {other_workspace}/mine | grep -q theirs && echo ESC''APED"),
        format!("ls {data}/workspaces | wc -l | grep -q 1 || echo ESC''APED"),
        format!("tr -d a-z < /proc/{server}/environ | grep -q . && echo ESC''APED"),
        format!("kill -0 {server} && echo ESC''APED"),
        "test x$OURS = xhidden && echo ESC''APED".into(),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo ESC''APED"),
        "touch /usr/escaped && rm /usr/escaped && echo ESC''APED".into(),
        "mount -t tmpfs none /mnt && echo ESC''APED".into(),
        "unshare -U true && echo ESC''APED".into(),
    ]
}

const WAITS: &str = "[{id: gate, type: approval}]";

#[test]
fn a_contained_tool_server_sees_only_its_workspace() {
    let bench = Bench::new("contained");
    let first = bench.run("first", &["echo theirs > mine && cat mine && pwd && echo $MINE"], WAITS);
    assert_eq!(first.status, "waiting_approval", "{}", first.steps);
    assert!(first.steps.contains("theirs") && first.steps.contains("/data/workspaces/"), "{}", first.steps);
    assert!(first.steps.contains("given"), "the variables of its settings: {}", first.steps);
    let [other] = bench.workspaces().try_into().expect("one workspace");
    assert_eq!(fs::read_to_string(other.join("mine")).unwrap(), "theirs\n", "it is the workspace of the execution");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tries = escapes(&bench, other.to_str().unwrap(), port);
    let tries: Vec<&str> = tries.iter().map(String::as_str).collect();
    let second = bench.run("second", &tries, "[]");
    assert_eq!(second.status, "completed", "{}", second.steps);
    assert_eq!(second.steps.matches("\"said\"").count(), tries.len(), "all were tried: {}", second.steps);
    assert!(!second.steps.contains("ESCAPED"), "{}", second.steps);
}

/// The same commands succeed without a container, so they can show a leak.
#[test]
fn an_uncontained_tool_server_sees_all_files_of_its_user() {
    let bench = Bench::new("uncontained");
    let first = bench.run("first", &["echo theirs > mine"], WAITS);
    assert_eq!(first.status, "waiting_approval", "{}", first.steps);
    let [other] = bench.workspaces().try_into().expect("it works in the workspace as well");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tries = escapes(&bench, other.to_str().unwrap(), listener.local_addr().unwrap().port());
    let first_tries: Vec<&str> = tries.iter().take(6).map(String::as_str).collect();
    let second = bench.run("second", &first_tries, "[]");
    assert_eq!(second.steps.matches("ESCAPED").count(), first_tries.len(), "{}", second.steps);
}

/// Many programs run code of their working directory, and workflows choose the files of the workspace. The values of secrets
/// would go to that code.
#[test]
fn a_tool_server_with_secrets_starts_outside_of_the_workspace() {
    let secret = || Value::map([("TOKEN", Value::map([("secret", "TOKEN".into())]))]);
    let bench = Bench::with("contained", &[("env", secret())]);
    let here = "[{id: plant, type: bash, command: 'echo planted > here'}]";
    let first = bench.run("first", &["pwd", "ls -A | wc -l", "echo $TOKEN | wc -c", "ls $MAINSPRING_WORKSPACE"], here);
    assert_eq!(first.status, "completed", "{}", first.steps);
    let said: Vec<&str> =
        first.steps.split("\"said\":\"").skip(1).map(|part| part.split('"').next().unwrap()).collect();
    assert!(said.iter().any(|said| said.trim() == "/tmp/home"), "{said:?}");
    assert!(said.iter().any(|said| said.trim() == "0") && said.iter().any(|said| said.trim() == "17"), "{said:?}");
    let both = Bench::with("contained", &[("cwd", ".".into()), ("env", secret())]);
    let refused = both.run("second", &["echo started"], "[]");
    assert!(refused.steps.contains("tool_server_not_started"), "{}", refused.steps);
    assert!(
        refused.steps.contains("its `env` has secrets") && !refused.steps.contains("started "),
        "{}",
        refused.steps
    );
}

/// Scripts and tool servers of one execution work in one folder.
#[test]
fn scripts_and_tool_servers_share_the_workspace() {
    let bench = Bench::new("contained");
    let script = "[{id: script, type: bash, command: 'cat made-by-tool'}]";
    let ended = bench.run("both", &["echo shared > made-by-tool"], script);
    assert_eq!(ended.status, "completed", "{}", ended.steps);
    assert!(ended.steps.contains(r#""stdout":"shared\n""#), "{}", ended.steps);
}

/// A tool is no script of a member: its server is the operator's choice. So members without `scripts:run` may call it.
#[test]
fn a_tool_needs_no_permission_for_scripts() {
    let bench = Bench::new("contained");
    let acme = Organization::new(&bench.server, "acme");
    let agent = acme.member("robot", "agent");
    let steps = yaml("[{id: s0, type: tool, tool: shell.run, arguments: {do: 'pwd'}}]");
    save(&acme.owner, "tools", steps);
    let id = acme.owner.get("/api/workflows/tools").expect(200).text_at("id");
    let id = start(&agent, &id, "r1", Map::new()).expect(202).text_at("executionId");
    let ended = acme.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "completed", "{ended:?}");
    let script =
        yaml("[{id: s0, type: tool, tool: shell.run, arguments: {do: 'pwd'}}, {id: b, type: bash, command: id}]");
    save(&acme.owner, "scripts", script);
    let id = acme.owner.get("/api/workflows/scripts").expect(200).text_at("id");
    let refused = start(&agent, &id, "r2", Map::new()).expect(403);
    assert!(refused.text.contains("scripts:run"), "{refused:?}");
}

#[test]
fn a_program_missing_in_the_container_is_named_with_help() {
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tool");
    fs::write(&tool, "#!/bin/sh\nexit 0\n").unwrap();
    let config = folder.path().join("config.yaml");
    let text = format!("mcpServers:\n  far: {{command: {}}}\npolicy: {{classes: {{far.x: read}}}}\n", tool.display());
    fs::write(&config, text).unwrap();
    let server = Server::start_as(folder.path(), "data", &["--config", config.to_str().unwrap()], &[]);
    let owner = server.owner();
    save(&owner, "far", yaml("[{id: s0, type: tool, tool: far.x, retry: {maxAttempts: 1}}]"));
    let id = start(&owner, "far", "r1", Map::new()).expect(202).text_at("executionId");
    assert_eq!(owner.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status"), "failed");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
    assert!(steps.contains("tool_server_not_connected") && steps.contains("--scripts-read"), "{steps}");
}

/// Nothing of a tool server outlives the server.
#[test]
fn a_contained_tool_server_ends_with_a_killed_server() {
    let mut bench = Bench::new("contained");
    let first = bench.run("first", &["echo started"], WAITS);
    assert!(first.steps.contains("started"), "{}", first.steps);
    let data = bench.path("data").display().to_string();
    let belongs = |process: &PathBuf| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("bwrap") && line.contains(&data)
    };
    let containers = || -> Vec<PathBuf> {
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes.filter(belongs).collect()
    };
    assert!(!containers().is_empty(), "it runs in a container");
    bench.server.kill();
    while !containers().is_empty() {
        std::thread::yield_now();
    }
}

/// The tools of a contained server are listed without an execution, so that its annotations count.
#[test]
fn a_contained_tool_server_is_checked_in_an_empty_folder() {
    let bench = Bench::with("contained", &[]);
    let check = |bench: &Bench| {
        bench.server.owner().post("/api/tool-servers/shell/check", &Value::Map(Map::new())).expect(200).text
    };
    let checked = check(&bench);
    assert!(checked.contains("\"ok\":true") && checked.contains("shell.run"), "{checked}");
    let in_workspace = check(&Bench::new("contained"));
    assert!(in_workspace.contains("its `cwd` is in the workspace of an execution"), "{in_workspace}");
}

#[test]
fn doctor_shows_the_mode_of_tool_servers() {
    let bench = Bench::new("contained");
    let doctor = |mode: &str| {
        let mut doctor = Command::new(MAINSPRING);
        doctor.args(["doctor", "--json", "--scripts", mode, "--dir"]).arg(bench.path("data"));
        doctor.env("MAINSPRING_CONFIG", bench.path("config.yaml")).env("HOME", bench.folder.path());
        String::from_utf8_lossy(&doctor.output().unwrap().stdout).into_owned()
    };
    assert!(
        doctor("contained").contains("a server runs `shell` in containers, in the workspace"),
        "{}",
        doctor("contained")
    );
    assert!(doctor("off").contains("a server does not start `shell`"), "{}", doctor("off"));
    assert!(doctor("uncontained").contains("a server runs `shell` as this user"), "{}", doctor("uncontained"));
}
