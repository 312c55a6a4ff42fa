//! Start, address, stop and configuration of a server.

use std::{os::unix::fs::PermissionsExt, process::Command};

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::{
    commands::at_a_terminal,
    process::Server,
    start::{save, start},
    support::MAINSPRING,
};

fn call(folder: &std::path::Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(MAINSPRING);
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", folder);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn one_server_runs_per_folder_and_the_owner_is_permanent() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let me = server.owner().get("/api/me").expect(200);
    assert_eq!((me.text_at("organizationId"), me.text_at("role")), ("default".into(), "owner".into()));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.nobody().get(path).expect(200).text_at("status"), "ok");
    }
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let second = call(folder.path(), &["up", "--listen", "127.0.0.1:0", "--dir", data], &[]);
    assert!(second.0 == Some(40) && second.2.contains("in use by the process"), "{second:?}");
    // An operator with the folder can create a token while the server runs.
    let (exit, token, _) = call(folder.path(), &["token", "--dir", data], &[]);
    assert_eq!(exit, Some(0));
    server.client(token.trim()).get("/api/me").expect(200);
    let unknown = call(folder.path(), &["token", "nobody", "--dir", data], &[]);
    assert!(unknown.0 == Some(10) && unknown.2.contains("no member `nobody`"), "{unknown:?}");
    assert!(unknown.2.contains("organization `default`. Its members are `owner`"), "{unknown:?}");
    let elsewhere = call(folder.path(), &["token", "--organization", "acme", "--dir", data], &[]);
    assert!(elsewhere.2.contains("no organization `acme`. There are `default`"), "{elsewhere:?}");
    let body = Value::map([("name", "ci"), ("userId", "nobody")].map(|(key, value)| (key, Value::from(value))));
    let refused = server.owner().post("/api/tokens", &body).expect(404).text_at("error");
    assert!(refused.contains("no member `nobody` in this organization"), "{refused}");
    assert_eq!(server.stop(), Some(0));
    let again = Server::start(folder.path());
    assert_eq!(again.token, None);
    again.client(token.trim()).get("/api/me").expect(200);
}

#[test]
fn an_opened_folder_is_closed_with_all_its_files() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let owner = server.owner();
    assert_eq!(server.stop(), Some(0));
    // Such modes follow from a restore by `cp -r`, or from a volume that is mounted with group permissions.
    let data = folder.path().join("data");
    for mode in [0o755, 0o2770] {
        fs::set_permissions(&data, fs::Permissions::from_mode(mode)).unwrap();
        let mut again = Server::start(folder.path());
        owner.at(&again.address).get("/api/me").expect(200);
        assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
        again.kill();
    }
}

#[test]
fn watchers_do_not_delay_shutdown_and_executions_continue() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let (owner, token) = (server.owner(), server.token.clone().unwrap());
    let gate = Value::List(vec![Value::map([("id", Value::from("gate")), ("type", "approval".into())])]);
    save(&owner, "flow", gate);
    let id = start(&owner, "flow", "r1", Map::new()).expect(202).text_at("executionId");
    let mut watcher = owner.open("GET", &format!("/api/executions/{id}/events"), &[], None);
    assert_eq!(super::client::head(&mut watcher).0, 200);
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(folder.path());
    let seen = server.client(&token).get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(seen.text_at("status"), "waiting_approval");
}

#[test]
fn each_setting_shows_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    std::fs::write(&file, "listen: 127.0.0.1:7001\nleaseSeconds: 20\nbaseUrl: https://flows.example.com/\n").unwrap();
    let file = file.to_str().unwrap();
    let variables = [("MAINSPRING_LISTEN", "127.0.0.1:7002"), ("MAINSPRING_STORE", "postgres://a:secret@h/d")];
    let (exit, stdout, stderr) =
        call(folder.path(), &["config", "--json", "--config", file, "--lease-seconds", "30"], &variables);
    assert_eq!(exit, Some(0), "{stderr}");
    let told = json::read(stdout.as_bytes()).unwrap().value;
    let of = |name: &str, what: &str| {
        let text = told.get(name).and_then(|one| one.get(what)).and_then(Value::as_text);
        text.unwrap_or_default().to_string()
    };
    assert_eq!((of("listen", "value"), of("listen", "origin")), ("127.0.0.1:7002".into(), "MAINSPRING_LISTEN".into()));
    assert_eq!((of("leaseSeconds", "value"), of("leaseSeconds", "origin")), ("30".into(), "flag".into()));
    assert_eq!((of("baseUrl", "value"), of("baseUrl", "origin")), ("https://flows.example.com/".into(), file.into()));
    assert!(of("store", "value").contains("//h:") && !stdout.contains("secret"), "{stdout}");
    assert_eq!(of("dataDir", "origin"), "default");
    assert_eq!(
        (of("rateLimitPerSecond", "value"), of("anonymousRateLimitPerSecond", "value")),
        ("1000".into(), "10".into())
    );
    for (given, word) in [
        ("--rate-limit-per-second=-1", "`-1`"),
        ("--trusted-proxies=::1, proxy.test", "`proxy.test`"),
        ("--base-url=flows.test:80", "baseUrl"),
    ] {
        let refused = call(folder.path(), &["config", given], &[]);
        assert!(refused.0 == Some(10) && refused.2.contains(word), "{refused:?}");
    }
    for (text, word) in
        [("listne: x", "`listne` is not a setting"), ("listen: [1]", "must be a text"), ("- a", "object")]
    {
        std::fs::write(file, text).unwrap();
        let refused = call(folder.path(), &["config", "--config", file], &[]);
        assert!(refused.0 == Some(10) && refused.2.contains(word), "{refused:?}");
    }
    let missing = call(folder.path(), &["up", "--config", "/nowhere/settings.yaml"], &[]);
    assert!(missing.0 == Some(10) && missing.2.contains("/nowhere/settings.yaml"), "{missing:?}");
}

#[test]
fn unreadable_requests_have_one_error_format() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let code = |reply: super::client::Reply| (reply.status, reply.text_at("code"));
    let sync = "/api/workflows/sync";
    let send = |body: &str, headers: &[(&str, &str)]| code(owner.send("POST", sync, headers, Some(body)));
    assert_eq!(send("{", &[]), (400, "VALIDATION_ERROR".into()));
    assert_eq!(send("{}", &[("content-type", "text/plain")]), (415, "UNSUPPORTED_MEDIA_TYPE".into()));
    assert_eq!(send(r#"{"data": {"steps": []}, "steps": []}"#, &[]), (400, "VALIDATION_ERROR".into()));
    assert_eq!(send(r#"{"data": {"steps": []}}"#, &[]), (400, "INVALID_DEFINITION".into()));
    assert_eq!(send(r#"{"id": "../x", "data": {"steps": []}}"#, &[]), (400, "VALIDATION_ERROR".into()));
    assert_eq!(send(&format!("\"{}\"", "x".repeat(5 << 20)), &[]), (413, "PAYLOAD_TOO_LARGE".into()));
    let deep = format!(r#"{{"data": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    assert_eq!(send(&deep, &[]), (400, "VALIDATION_ERROR".into()));
    assert_eq!(code(owner.get("/api/nothing")), (404, "NOT_FOUND".into()));
    assert_eq!(code(owner.send("DELETE", "/api/workflows", &[], None)), (405, "METHOD_NOT_ALLOWED".into()));
    assert_eq!(code(owner.get("/api/workflows?limit=0")), (400, "VALIDATION_ERROR".into()));
    assert_eq!(code(owner.get("/api/workflows?other=1")), (400, "VALIDATION_ERROR".into()));
    assert_eq!(code(owner.get("/api/executions?status=done")), (400, "VALIDATION_ERROR".into()));
    assert_eq!(code(server.client("msp_0_0").get("/api/me")), (401, "UNAUTHORIZED".into()));
    assert_eq!(
        code(owner.post("/api/workflows/x/rollback", &Value::map([("workflowHash", "sha256:0".into())]))),
        (404, "NOT_FOUND".into())
    );
}

#[test]
fn a_stale_edit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "hello", super::start::echo());
    let tag = owner.get("/api/workflows/hello").expect(200).header("etag").unwrap().to_string();
    let edit = |tag: &str, name: &str| {
        let body = format!(r#"{{"name": "{name}"}}"#);
        owner.send("PUT", "/api/workflows/hello", &[("if-match", tag)], Some(&body))
    };
    let edited = edit(&tag, "first").expect(200);
    assert_eq!(edit(&tag, "second").expect(412).text_at("code"), "PRECONDITION_FAILED");
    edit(edited.header("etag").unwrap(), "third").expect(200);
    assert_eq!(owner.get("/api/workflows/hello").text_at("name"), "third");
    // The history contains changes of the definition, and not of the name.
    let history = owner.get("/api/workflows/hello/history").expect(200).json();
    assert_eq!(history.get("history").and_then(Value::as_list).unwrap().len(), 1);
    // The id is reused by another workflow, with versions of its own.
    owner.send("DELETE", "/api/workflows/hello", &[], None).expect(204);
    save(&owner, "hello", super::start::echo());
    edit(&tag, "fourth").expect(412);
    let all = owner.send("POST", "/api/workflows/sync-all", &[("if-match", &tag)], Some(r#"{"workflows": []}"#));
    assert!(all.expect(400).text.contains("If-Match"));
    owner.get("/api/workflows/hello").expect(200);
}

/// Output that is no terminal may be a log, which is stored and read by others.
#[test]
fn the_first_token_goes_to_a_terminal_or_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    // A file of a deleted store exists, readable by everyone.
    let file = folder.path().join("data/first-token");
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::set_permissions(folder.path().join("data"), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(&file, "old").unwrap();
    let server = Server::start(folder.path());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&file).unwrap();
    server.client(token.trim()).get("/api/me").expect(200);
    drop(server);
    let told = call(folder.path(), &["doctor", "--json", "--dir", folder.path().join("data").to_str().unwrap()], &[]).1;
    assert!(told.contains(r#""check":"first token""#) && !told.contains("msp_"), "{told}");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(MAINSPRING);
    command.args(["up", "--listen", "127.0.0.1:0", "--dir"]).arg(folder.path().join("data"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", folder.path());
    let mut terminal = at_a_terminal(command);
    terminal.exp_string("this is your token").unwrap();
    terminal.exp_string("msp_").unwrap();
    assert!(!folder.path().join("data/first-token").exists());
    terminal.send_control('c').unwrap();
    terminal.exp_eof().unwrap();
}

#[test]
fn passwords_on_the_command_line_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["postgres://ada:s3cret@h/d", "postgres://ada@h/d?password=s3cret"] {
        for arguments in
            [&["list", "--store", address][..], &["up", "--store", address], &["config", "--store", address]]
        {
            let (exit, stdout, stderr) = call(folder.path(), arguments, &[]);
            assert!(exit == Some(10) && stderr.contains("MAINSPRING_STORE="), "{arguments:?}: {exit:?} {stderr}");
            assert!(!stdout.contains("s3cret") && !stderr.contains("s3cret"), "{stdout} {stderr}");
        }
        let by_variable = call(folder.path(), &["config"], &[("MAINSPRING_STORE", address)]);
        assert_eq!(by_variable.0, Some(0), "{by_variable:?}");
    }
    let without = call(folder.path(), &["config", "--store", "postgres://ada@h/d"], &[]);
    assert_eq!(without.0, Some(0), "{without:?}");
}
