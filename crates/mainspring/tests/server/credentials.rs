//! Credentials for a server: stored, found, removed, and protected.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use mainspring_kernel::value::Value;

use super::{
    commands::{Caller, assert_refused, at_a_terminal},
    process::Server,
    support::{Answer, call},
};

fn login(caller: &Caller, url: &str, token: &str) -> Answer {
    call(caller.without_server(&["login", url]), format!("{token}\n").as_bytes())
}

#[test]
fn a_token_is_checked_stored_used_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (caller, token) = (Caller::owner(&server), server.token.clone().unwrap());
    let url = format!("http://{}", server.address);
    let file = caller.folder().join(".config/mainspring/credentials.json");
    let here = |arguments: &[&str]| {
        let mut command: Command = caller.without_server(arguments);
        command.env("MAINSPRING_SERVER", &url);
        call(command, b"")
    };
    assert_refused(&here(&["workflows"]), 20, &["there is no token for", "`mainspring login"]);
    assert_refused(&login(&caller, &url, "msp_wrong"), 20, &["the token is unknown or has expired"]);
    assert_refused(&login(&caller, &url, ""), 20, &["no token was given"]);
    assert_refused(&login(&caller, "localhost:1", &token), 10, &["must be an URL like"]);
    assert!(!file.exists(), "a token that is not valid is not stored");
    let stored = login(&caller, &format!("{url}/"), &token);
    assert!(stored.exit == Some(0) && stored.stdout.contains("you are owner (owner) of default"), "{stored:?}");
    assert!(!stored.stdout.contains(&token) && !stored.stderr.contains(&token));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(here(&["workflows"]).exit, Some(0));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_refused(&here(&["workflows"]), 10, &["chmod 600"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // The environment takes precedence over the file.
    let mut other = caller.without_server(&["workflows", "--server", &url]);
    other.env("MAINSPRING_TOKEN", "msp_wrong");
    assert_refused(&call(other, b""), 20, &["the token is unknown or has expired"]);
    let gone = call(caller.without_server(&["logout"]), b"");
    assert!(gone.exit == Some(0) && gone.stdout.contains("signed out"), "{gone:?}");
    assert_refused(&here(&["workflows"]), 20, &["there is no token for"]);
    assert_refused(&call(caller.without_server(&["logout", &url]), b""), 10, &["there is no stored token"]);
}

#[test]
fn a_narrow_token_is_stored_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let scopes = Value::List(vec!["workflows:read".into()]);
    let made = server.owner().post("/api/tokens", &Value::map([("name", "narrow".into()), ("scopes", scopes)]));
    let (caller, url) = (Caller::owner(&server), format!("http://{}", server.address));
    let stored = login(&caller, &url, &made.expect(201).text_at("token"));
    assert!(stored.exit == Some(0) && stored.stdout.contains("you are owner"), "{stored:?}");
    let here = |command: &str| call(caller.without_server(&[command, "--server", &url]), b"");
    assert_eq!(here("workflows").exit, Some(0));
    assert_refused(&here("list"), 20, &["executions:read"]);
}

#[test]
fn a_typed_token_is_not_echoed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (caller, token) = (Caller::owner(&server), server.token.clone().unwrap());
    let url = format!("http://{}", server.address);
    let mut terminal = at_a_terminal(caller.without_server(&["login", &url]));
    terminal.exp_string("token for").unwrap();
    terminal.exp_string(": ").unwrap();
    terminal.send_line(&token).unwrap();
    let said = terminal.exp_eof().unwrap();
    assert!(said.contains("you are owner") && !said.contains(&token), "{said}");
    let mut terminal = at_a_terminal(caller.without_server(&["login", &url]));
    terminal.exp_string("token for").unwrap();
    terminal.exp_string(": ").unwrap();
    terminal.send_control('c').unwrap();
    terminal.exp_string("nothing is stored").unwrap();
}

#[test]
fn no_token_goes_over_plain_http_to_another_machine() {
    let caller = Caller::new("192.0.2.1:7300", "msp_x");
    // Rejected before any connection: nothing listens at that address.
    caller.refused(&["list"], 20, &["another machine", "--plain-http"]);
    caller.refused(&["login", "http://flows.example.com"], 20, &["another machine", "--plain-http"]);
    caller.refused(&["list", "--server", "http://ada:hunter2@127.0.0.1"], 10, &["has a user or a password in it"]);
    let mut no_flag = caller.without_server(&["list", "--token", "msp_x"]);
    no_flag.env("MAINSPRING_SERVER", "http://127.0.0.1:1");
    assert_refused(&call(no_flag, b""), 10, &["--token"]);
}

#[test]
fn scripts_do_not_see_credentials_of_the_command() {
    let caller = Caller::new("127.0.0.1:1", "msp_x");
    let definition = "steps:\n  - {id: a, type: bash, command: 'echo \"[$MAINSPRING_TOKEN$MAINSPRING_OIDC_CLIENT_SECRET]\"', outputVariable: a}\n";
    fs::write(caller.folder().join("look.yaml"), definition).unwrap();
    let mut command = caller.without_server(&["run", "look.yaml", "--dir", "data"]);
    command.env("MAINSPRING_TOKEN", "msp_x").env("MAINSPRING_OIDC_CLIENT_SECRET", "s3cret");
    let ran = call(command, b"");
    assert!(ran.stdout.contains("\"stdout\": \"[]\\n\""), "{ran:?}");
}
