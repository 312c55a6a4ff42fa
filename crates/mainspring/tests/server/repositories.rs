//! Repositories of executions: the pinned commit, its priority, its credential, triggers and the cache.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use mainspring_effects::{
    git::{Host, PACK_BYTES_DEFAULT, Repositories, RepositoryOptions},
    http::HttpOptions,
    sandbox::Profiles,
    shell::contain::{Container, ContainerSettings, Network},
};
use mainspring_kernel::{
    json::compact,
    time::parse_rfc3339,
    value::{Map, Value},
};
use mainspring_store::memory::MemoryStore;
use ring::hmac;
use tempfile::TempDir;

use super::{
    client::{Client, Reply},
    commands::Caller,
    git_remote::Remote,
    orchestrator_prompts::local_client,
    process::{Organization, Server},
    schedules::{Nodes, Outside, save_ending},
    start::{save, start},
    support::{MAINSPRING, WORKFLOW, yaml},
};

/// Shows the files, the variables and Git's own state of a workspace.
const SHOW: &str = "cat file; printf '%s|' $SOURCE_REPO_FULL_NAME $SOURCE_REF $SOURCE_COMMIT_SHA; git rev-parse HEAD; \
                    git status --porcelain | wc -l; git config --list --local";

/// A server with a remote.
pub(super) struct Bench {
    pub(super) remote: Remote,
    pub(super) folder: TempDir,
    pub(super) server: Server,
}

impl Bench {
    pub(super) fn new(more: &str) -> Self {
        let (remote, folder) = (Remote::start(), tempfile::tempdir().unwrap());
        let server = start_server(&remote, folder.path(), more);
        Self { remote, folder, server }
    }
}

/// Writes the settings file of a server or a node, with more keys of `repositories`.
fn configure(remote: &Remote, folder: &Path, more: &str) -> PathBuf {
    let config = folder.join("config.yaml");
    let port = remote.port();
    fs::write(&config, format!("repositories: {{hosts: [\"http://127.0.0.1:{port}\"]{more}}}\n")).unwrap();
    config
}

fn start_server(remote: &Remote, folder: &Path, more: &str) -> Server {
    start_configured(remote, folder, &configure(remote, folder, more))
}

fn start_configured(remote: &Remote, folder: &Path, config: &Path) -> Server {
    let port = remote.port();
    let allowed = format!("127.0.0.1:{port},acme=127.0.0.1:{port}");
    let arguments = ["--scripts", "contained", "--config", config.to_str().unwrap()];
    Server::start_as(folder, "data", &arguments, &[("MAINSPRING_HTTP_ALLOW", &allowed)])
}

fn object(text: &str) -> Value {
    mainspring_kernel::json::data(text.as_bytes()).unwrap()
}

/// Sets the repository of a saved workflow.
pub(super) fn set(client: &Client, workflow: &str, repository: &str) -> Reply {
    client.put(&format!("/api/workflows/{workflow}"), &Value::map([("repository", object(repository))]))
}

/// Starts a workflow with a repository in the request.
fn start_in(client: &Client, workflow: &str, request: &str, repository: &str) -> Reply {
    let body =
        [("workflowId", workflow.into()), ("clientRequestId", request.into()), ("repository", object(repository))];
    client.post("/api/triggers/manual/run", &Value::map(body))
}

/// Waits until an execution has ended or only gates are open.
pub(super) fn settled(client: &Client, id: &str) -> Value {
    loop {
        let seen = client.get(&format!("/api/executions/{id}/wait")).expect(200);
        if !["pending", "running"].contains(&seen.text_at("status").as_str()) {
            return seen.json();
        }
    }
}

pub(super) fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

/// The output of a step of an execution.
pub(super) fn stdout(execution: &Value, step: &str) -> String {
    let output = execution.get("outputs").and_then(|outputs| outputs.get(step));
    output.map(|output| text(output, "stdout")).unwrap_or_else(|| panic!("no {step} in {}", compact(execution)))
}

fn approve(client: &Client, execution: &Value) {
    let body = Value::map([("approve", Value::from(true)), ("resumeToken", text(execution, "resumeToken").into())]);
    client.post(&format!("/api/executions/{}/approve", text(execution, "id")), &body).expect(200);
}

/// Two scripts with a gate between them.
fn steps() -> Value {
    let show = compact(&Value::from(SHOW));
    yaml(&format!(
        "[{{id: first, type: bash, command: {show}, outputVariable: first}}, {{id: gate, type: approval}}, \
         {{id: second, type: bash, command: {show}, outputVariable: second}}]"
    ))
}

/// The bytes of all files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_start_works_on_the_commit_that_it_has_pinned() {
    let bench = Bench::new("");
    let (owner, remote) = (bench.server.owner(), &bench.remote);
    let fixture = remote.repository("app");
    let pinned = fixture.head();
    // The value of the secret, and the form in which it is sent.
    let (token, sent) = ("t0ken-of-the-remote", "eC1hY2Nlc3MtdG9rZW46dDBrZW4tb2YtdGhlLXJlbW90ZQ==");
    remote.require(&format!("Basic {sent}"));
    owner.put("/api/secrets/GIT", &Value::map([("value", Value::from(token)), ("workflows", Value::Null)])).expect(201);
    save(&owner, "w", steps());
    let url = remote.url("app");
    set(&owner, "w", &format!(r#"{{"url": "{url}", "ref": "main", "credential": {{"secret": "GIT"}}}}"#)).expect(200);
    let id = start(&owner, "w", "r1", Map::new()).expect(202).text_at("executionId");
    let waiting = settled(&owner, &id);
    // The branch moves while the execution waits, and its workspace does not.
    let moved = fixture.commit("file", "two\n");
    approve(&owner, &waiting);
    let ended = settled(&owner, &id);
    assert_eq!(text(&ended, "status"), "completed", "{}", compact(&ended));
    for key in ["first", "second"] {
        let said = stdout(&ended, key);
        let lines: Vec<&str> = said.lines().collect();
        let variables = format!("acme/app|refs/heads/main|{pinned}|{pinned}");
        assert_eq!(lines[..3], ["one", &variables, "0"], "{said}");
        assert!(said.contains(&format!("remote.origin.url={url}")) && !said.contains(token), "{said}");
    }
    let shown = ["sourceRepoFullName", "ref", "commitSha"].map(|key| text(&ended, key));
    assert_eq!(shown, ["acme/app", "refs/heads/main", &pinned]);
    // Another start pins the moved branch.
    let id = start(&owner, "w", "r2", Map::new()).expect(202).text_at("executionId");
    let other = settled(&owner, &id);
    assert_eq!((text(&other, "commitSha"), stdout(&other, "first").starts_with("two")), (moved, true));
    let journal = owner.get(&format!("/api/executions/{id}/journal")).text;
    assert!(!journal.contains(token) && !journal.contains(sent), "{journal}");
    assert!(owner.get("/api/audit").expect(200).text.contains("startOf"), "the use at the start is recorded");
    assert_eq!(files_with(&bench.folder.path().join("data"), token), [""; 0]);
    assert_eq!(files_with(&bench.folder.path().join("data"), sent), [""; 0]);
}

#[test]
fn a_start_without_a_commit_is_refused_with_the_reason() {
    let bench = Bench::new("");
    let (owner, remote) = (bench.server.owner(), &bench.remote);
    remote.repository("app");
    let url = remote.url("app");
    save(&owner, "w", steps());
    save(&owner, "plain", steps());
    set(&owner, "w", &format!(r#"{{"url": "{url}", "ref": "main"}}"#)).expect(200);
    for (repository, status, word) in [
        (r#"{"ref": "other"}"#.into(), 400, "the workflow names the ref"),
        (format!(r#"{{"url": "{}"}}"#, remote.url("lib")), 400, "the workflow names the repository"),
        (format!(r#"{{"url": "{url}", "credential": {{"secret": "GIT"}}}}"#), 400, "credential"),
    ] {
        let refused = start_in(&owner, "w", "r1", &repository).expect(status);
        assert!(refused.text.contains(word), "{}", refused.text);
    }
    for (repository, status, word) in [
        (format!(r#"{{"url": "{url}", "ref": "gone"}}"#), 422, "no branch and no tag `gone`"),
        (format!(r#"{{"url": "{}"}}"#, remote.url("none")), 422, "does not show a repository (HTTP 404)"),
        (r#"{"url": "https://example.com/a/b"}"#.into(), 400, "not permitted"),
        (r#"{"url": "file:///etc"}"#.into(), 400, "over https"),
        (r#"{"fullName": "acme/app", "ref": "--upload-pack=id"}"#.into(), 400, "repository.ref"),
    ] {
        let refused = start_in(&owner, "plain", "r1", &repository).expect(status);
        assert!(refused.text.contains(word), "{}", refused.text);
    }
    // A refused start has started nothing, so its id is free.
    let started = start_in(&owner, "plain", "r1", r#"{"fullName": "acme/app", "ref": "main"}"#).expect(202);
    let ended = settled(&owner, &started.text_at("executionId"));
    assert!(stdout(&ended, "first").starts_with("one"), "{}", compact(&ended));
    // A wrong credential, which the remote repeats in its answer.
    remote.require("Basic other");
    owner.put("/api/secrets/GIT", &Value::map([("value", Value::from("t0ken-of-the-remote"))])).expect(201);
    set(&owner, "w", &format!(r#"{{"url": "{url}", "credential": {{"secret": "GIT"}}}}"#)).expect(200);
    let refused = start(&owner, "w", "r2", Map::new()).expect(422).text;
    assert!(refused.contains("does not accept the credential") && !refused.contains("t0ken"), "{refused}");
    // A server that names no hosts.
    let folder = tempfile::tempdir().unwrap();
    let other = Server::start(folder.path());
    save(&other.owner(), "w", steps());
    let refused = set(&other.owner(), "w", r#"{"fullName": "acme/app"}"#).expect(501);
    assert!(refused.text.contains("names no hosts"), "{}", refused.text);
}

#[test]
fn the_command_line_starts_in_a_repository() {
    let bench = Bench::new("");
    bench.remote.repository("app").git(&["branch", "feature"]);
    let owner = bench.server.owner();
    save(
        &owner,
        "w",
        yaml("[{id: show, type: bash, command: 'echo \"$SOURCE_REF\"; cat file', outputVariable: show}]"),
    );
    let caller = Caller::owner(&bench.server);
    let said = caller.fine(&["run", "w", "--repository", "acme/app", "--ref", "feature"]);
    assert!(said.contains("refs/heads/feature") || said.contains("completed"), "{said}");
    let listed = owner.get("/api/executions").expect(200).json();
    let id = text(&listed.get("executions").and_then(Value::as_list).unwrap()[0], "id");
    assert_eq!(stdout(&settled(&owner, &id), "show"), "refs/heads/feature\none\n");
}

#[test]
fn a_pack_is_received_once_for_each_organization() {
    let bench = Bench::new("");
    let remote = &bench.remote;
    remote.repository("app");
    let acme = Organization::new(&bench.server, "acme");
    let begin = |client: &Client, request: &str| {
        let id = start(client, "w", request, Map::new()).expect(202).text_at("executionId");
        let ended = settled(client, &id);
        assert!(stdout(&ended, "first").starts_with("one"), "{}", compact(&ended));
    };
    for client in [&bench.server.owner(), &acme.owner] {
        save(client, "w", steps());
        set(client, "w", r#"{"fullName": "acme/app"}"#).expect(200);
    }
    begin(&bench.server.owner(), "r1");
    assert_eq!(remote.fetches(), 1);
    begin(&bench.server.owner(), "r2");
    assert_eq!(remote.fetches(), 1, "the cache has the pack");
    begin(&acme.owner, "r1");
    assert_eq!(remote.fetches(), 2, "the cache is that of an organization");
    let packs = fs::read_dir(bench.folder.path().join("data/repositories")).unwrap().count();
    assert_eq!(packs, 2);
}

#[test]
fn parallel_and_child_scripts_share_one_checkout() {
    let bench = Bench::new(", cacheBytes: 0");
    let owner = bench.server.owner();
    bench.remote.repository("app");
    save(&owner, "child", yaml("[{id: child, type: bash, command: cat file, outputVariable: child}]"));
    let branch = |name: &str| format!("{{id: {name}, type: bash, command: cat file, outputVariable: {name}}}");
    let child = "{id: c, type: subworkflow, workflow: child, outputVariable: c}";
    let branches = format!("{}, {}, {child}", branch("a"), branch("b"));
    save(&owner, "w", yaml(&format!("[{{id: p, type: parallel, steps: [{branches}]}}]")));
    set(&owner, "w", r#"{"fullName": "acme/app"}"#).expect(200);
    let id = start(&owner, "w", "r1", Map::new()).expect(202).text_at("executionId");
    let ended = settled(&owner, &id);
    assert_eq!((stdout(&ended, "a"), stdout(&ended, "b")), ("one\n".into(), "one\n".into()));
    assert_eq!(bench.remote.fetches(), 1);
    let listed = owner.get("/api/executions?workflowId=child").expect(200).json();
    let child = text(&listed.get("executions").and_then(Value::as_list).unwrap()[0], "id");
    let child = settled(&owner, &child);
    assert_eq!((text(&child, "commitSha"), stdout(&child, "child")), (text(&ended, "commitSha"), "one\n".into()));
}

/// Settings with a sandbox profile of the organization `default`.
fn configure_sandbox(remote: &Remote, folder: &Path, workspace: &str) -> PathBuf {
    let config = configure(remote, folder, "");
    let profile = format!(
        "sandboxes: {{test: {{command: {WORKFLOW}, args: [serve, --scripts, uncontained], workspace: {workspace}, \
         organizations: [default]}}}}\n"
    );
    fs::write(&config, fs::read_to_string(&config).unwrap() + &profile).unwrap();
    config
}

#[test]
fn a_sandbox_has_the_files_of_a_repository_or_runs_no_script() {
    let (remote, folder) = (Remote::start(), tempfile::tempdir().unwrap());
    remote.repository("app");
    let config = configure_sandbox(&remote, folder.path(), "shared");
    let server = start_configured(&remote, folder.path(), &config);
    let (owner, token) = (server.owner(), server.token.clone().unwrap());
    let show = "cat file; echo $SOURCE_REPO_FULL_NAME; tr '\\\\0' ' ' < /proc/$PPID/cmdline";
    let script = |id: &str| format!("{{id: {id}, type: bash, command: \"{show}\", outputVariable: {id}}}");
    save(&owner, "w", yaml(&format!("[{}, {{id: gate, type: approval}}, {}]", script("first"), script("second"))));
    set(&owner, "w", r#"{"fullName": "acme/app"}"#).expect(200);
    let id = start(&owner, "w", "r1", Map::new()).expect(202).text_at("executionId");
    let waiting = settled(&owner, &id);
    assert!(!text(&waiting, "resumeToken").is_empty(), "{}", compact(&waiting));
    drop(server);
    // A sandbox with a folder of its own would run the second script without the files.
    let config = configure_sandbox(&remote, folder.path(), "own");
    let server = start_configured(&remote, folder.path(), &config);
    let owner = server.client(&token);
    approve(&owner, &waiting);
    let ended = settled(&owner, &id);
    let first = stdout(&ended, "first");
    assert!(first.starts_with("one\nacme/app\n") && first.contains("serve"), "{first}");
    let error = ended.get("error").cloned().unwrap_or_default();
    assert_eq!(text(&error, "code"), "repository_refused", "{}", compact(&ended));
    assert!(text(&error, "message").contains("`test` with `workspace: own`"), "{}", compact(&error));
    let refused = start(&owner, "w", "r2", Map::new()).expect(422);
    assert!(refused.text.contains("`workspace: own`"), "{}", refused.text);
}

#[test]
fn a_node_removes_old_packs() {
    let (remote, folder) = (Remote::start(), tempfile::tempdir().unwrap());
    let config = configure(&remote, folder.path(), "");
    let packs = folder.path().join("data/repositories");
    fs::create_dir_all(&packs).unwrap();
    let (old, used) = (packs.join("0-1.pack"), packs.join("0-2.pack"));
    for path in [&old, &used] {
        fs::write(path, "PACK").unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
    File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    let mut command = Command::new(MAINSPRING);
    command.args(["node", "--scripts", "contained", "--dir"]).arg(folder.path().join("data")).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder.path()).env("MAINSPRING_CONFIG", config);
    let mut node = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while old.exists() && node.try_wait().unwrap().is_none() {
        thread::yield_now();
    }
    let is_running = node.try_wait().unwrap().is_none();
    node.kill().unwrap();
    node.wait().unwrap();
    assert_eq!((is_running, old.exists(), used.exists()), (true, false, true));
}

/// A push as GitHub sends it, shortened.
fn push(commit: &str) -> String {
    format!(
        r#"{{"ref": "refs/heads/main", "before": "{}", "after": "{commit}", "repository": {{"id": 1, "name": "app",
        "full_name": "acme/app", "private": false, "default_branch": "main"}}, "pusher": {{"name": "ada"}}, "commits": []}}"#,
        "0".repeat(40)
    )
}

#[test]
fn a_push_from_github_runs_in_its_commit_and_is_approved() {
    let bench = Bench::new("");
    let (owner, nobody) = (bench.server.owner(), bench.server.nobody());
    let fixture = bench.remote.repository("app");
    let (pushed, _) = (fixture.commit("file", "pushed\n"), fixture.commit("file", "later\n"));
    save(&owner, "w", steps());
    // The trigger precedes the workflow.
    set(&owner, "w", r#"{"fullName": "acme/other", "ref": "main"}"#).expect(200);
    let trigger = r#"{"workflowId": "w", "name": "pushes",
        "config": {"type": "webhook", "path": "github", "secret": "s3cret", "signature": {"scheme": "github"}},
        "repository": {"fullName": "acme/app", "refFrom": "$.after"}}"#;
    let created = owner.send("POST", "/api/triggers", &[], Some(trigger)).expect(201);
    let id = created.text_at("id");
    let shown = object(r#"{"fullName": "acme/app", "refFrom": "$.after"}"#);
    assert_eq!(created.json().get("repository"), Some(&shown));
    let deliver = |body: &str, delivery: &str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret");
        let code: String =
            hmac::sign(&key, body.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let signature = format!("sha256={code}");
        let headers = [
            ("x-github-event", "push"),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", signature.as_str()),
            ("content-type", "application/json"),
            ("user-agent", "GitHub-Hookshot/044aadd"),
        ];
        nobody.send("POST", "/webhooks/github", &headers, Some(body))
    };
    let execution = deliver(&push(&pushed), "72d3162e-cc78-11e3-81ab-4c9367dc0958").expect(202).text_at("executionId");
    let waiting = settled(&owner, &execution);
    assert_eq!(
        (text(&waiting, "commitSha"), text(&waiting, "sourceRepoFullName")),
        (pushed.clone(), "acme/app".into())
    );
    approve(&owner, &waiting);
    let ended = settled(&owner, &execution);
    assert_eq!(text(&ended, "status"), "completed");
    assert!(stdout(&ended, "second").starts_with("pushed"), "{}", compact(&ended));
    // Events without a commit: a deleted branch, and another event.
    deliver(&push(&"0".repeat(40)), "d-2").expect(422);
    let refused = deliver(r#"{"zen": "Design for failure."}"#, "d-3").expect(422);
    assert!(refused.text.contains("`$.after`"), "{}", refused.text);
    let log = owner.get(&format!("/api/triggers/{id}/deliveries")).expect(200).text;
    assert!(log.contains("no ref at `$.after`"), "{log}");
    // A prompt has no repository, and a workflow has no event.
    set(&owner, "w", r#"{"fullName": "acme/app", "refFrom": "$.after"}"#).expect(400);
    let none = Value::map([("repository", Value::Null)]);
    let changed = owner.send("PATCH", &format!("/api/triggers/{id}"), &[], Some(&compact(&none)));
    assert_eq!(changed.expect(200).json().get("repository"), Some(&Value::Null));
}

#[test]
fn a_schedule_whose_repository_cannot_be_resolved_fails_at_once() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.store(parse_rfc3339("2026-02-24T09:59:30Z").unwrap(), Ordering::SeqCst);
    let (remote, folder) = (Remote::start(), tempfile::tempdir().unwrap());
    let fixture = remote.repository("app");
    fs::create_dir_all(folder.path().join("workspaces")).unwrap();
    let container = Container::probe(ContainerSettings {
        search_path: std::env::var_os("PATH").unwrap(),
        helper: MAINSPRING.into(),
        readable: Vec::new(),
        hidden: Vec::new(),
        workspaces: folder.path().join("workspaces"),
        network: Network::None,
        may_arrange_cgroups: false,
        is_memory_counted: false,
    });
    let allow = format!("127.0.0.1:{}", remote.port()).parse().unwrap();
    let repositories = Repositories::new(RepositoryOptions {
        hosts: Host::parse_all([format!("http://127.0.0.1:{}", remote.port()).as_str()]).unwrap(),
        http: HttpOptions { allow, ..HttpOptions::default() },
        container: Arc::new(container.unwrap()),
        sandboxes: Profiles::default(),
        secrets: None,
        cache: folder.path().join("repositories"),
        pack_bytes_max: PACK_BYTES_DEFAULT,
        cache_bytes_max: PACK_BYTES_DEFAULT,
        timeout: Duration::from_secs(60),
    });
    let outside = Outside { repositories, ..Outside::of(local_client()) };
    let nodes = Nodes::start_with(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &outside);
    save_ending(&nodes.owner);
    set(&nodes.owner, "ends", r#"{"fullName": "acme/app", "ref": "release"}"#).expect(200);
    let trigger = nodes.schedule("ends", r#""cron": "* * * * *""#);
    for second in ["05", "25", "45"] {
        nodes.set(&format!("2026-02-24T10:00:{second}Z"));
        nodes.poll();
    }
    assert_eq!(nodes.log(&trigger), ["refused 2026-02-24T10:00"], "it is not tried again");
    assert_eq!(remote.requests_with("command=ls-refs"), 1);
    let log = nodes.owner.get(&format!("/api/triggers/{trigger}/deliveries")).expect(200).text;
    assert!(log.contains("no branch and no tag `release`"), "{log}");
    assert_eq!(nodes.minutes(&trigger), [""; 0]);
    // The next tick finds the branch.
    fixture.git(&["branch", "release"]);
    nodes.set("2026-02-24T10:01:05Z");
    nodes.poll();
    assert_eq!(nodes.minutes(&trigger), ["2026-02-24T10:01"]);
}
