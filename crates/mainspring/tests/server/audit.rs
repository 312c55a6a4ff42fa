//! Audit logs outside of the server: an exported file is verified by itself.

use std::{io::BufRead, os::unix::fs::PermissionsExt, path::Path, process::Command};

use mainspring_kernel::value::{Map, Value};

use super::{
    process::{Organization, Server, everywhere},
    start::{echo, save, start},
    support::MAINSPRING,
};

/// More than two pages.
const MEMBERS: usize = 450;

fn verify(file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(MAINSPRING);
    command.args(["audit", "verify", "--json"]).arg(file).args(more).env_clear();
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_export_is_complete_and_verifies_offline() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let viewer = Value::map([("role", Value::from("viewer"))]);
        for number in 0..MEMBERS {
            ours.owner.put(&format!("/api/members/m{number}"), &viewer).expect(200);
        }
        let exported = ours.owner.get("/api/audit/export").expect(200);
        assert_eq!(exported.header("content-type"), Some("application/x-ndjson"));
        let lines: Vec<&str> = exported.text.lines().collect();
        assert_eq!(lines.len(), 2 + MEMBERS, "the head, the organization's beginning, and every member");
        let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
        let first = &log.get("entries").and_then(Value::as_list).unwrap()[0];
        assert!(lines[1].contains(first.get("hash").and_then(Value::as_text).unwrap()));
        assert!(!exported.text.contains("default"), "nothing of another organization");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.ndjson");
        std::fs::write(&file, &exported.text).unwrap();
        let (exit, told) = verify(&file, &[]);
        assert!(exit == Some(0) && told.contains("\"isSealed\":false"), "{told}");
        let key = place.key_file();
        let (exit, told) = verify(&file, &["--key", key.to_str().unwrap()]);
        assert!(exit == Some(0) && told.contains("\"isSealed\":true"), "{told}");
        let other = folder.path().join("key");
        std::fs::write(&other, std::fs::read_to_string(&key).unwrap().chars().rev().collect::<String>().trim())
            .unwrap();
        assert_ne!(verify(&file, &["--key", other.to_str().unwrap()]).0, Some(0));
        std::fs::write(&file, exported.text.replace("\"m7\"", "\"m8\"")).unwrap();
        let (exit, told) = verify(&file, &[]);
        assert!(exit == Some(1) && told.contains("line 10"), "{told}");
    });
}

/// A detached child is audited as an execution of its own, with the user who started its parent. A child that its
/// parent waits for is part of the parent.
#[test]
fn detached_children_are_audited() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        save(&ours.owner, "child", echo());
        let step = |id: &str, waits: bool| {
            let fields = [("id", Value::from(id)), ("type", "subworkflow".into()), ("workflow", "child".into())];
            let variables = Value::map([("name", Value::from("Ada"))]);
            Value::map(fields.into_iter().chain([("wait", waits.into()), ("variables", variables)]))
        };
        save(&ours.owner, "parent", Value::List(vec![step("aside", false), step("within", true)]));
        let bob = ours.member("bob", "member");
        let parent = start(&bob, "parent", "r1", Map::new()).expect(202).text_at("executionId");
        let ended = bob.get(&format!("/api/executions/{parent}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "completed", "{ended:?}");
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        let rows = || {
            let listed = ours.owner.get("/api/executions").expect(200).json();
            listed.get("executions").and_then(Value::as_list).unwrap().to_vec()
        };
        let is_done = |rows: &Vec<Value>| rows.len() == 3 && rows.iter().all(|row| text(row, "status") == "completed");
        let rows = std::iter::repeat_with(rows).find(is_done).unwrap();
        let aside = rows.iter().find(|row| text(row, "triggerType") == "subworkflow_detached").unwrap();
        let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
        let entries = log.get("entries").and_then(Value::as_list).unwrap();
        let starts: Vec<&Value> = entries.iter().filter(|entry| text(entry, "action") == "execution.start").collect();
        let targets: Vec<String> = starts.iter().map(|entry| text(entry, "target")).collect();
        assert_eq!(targets, [parent.clone(), text(aside, "id")]);
        assert_eq!(text(starts[1], "actor"), "bob");
        let detail = starts[1].get("detail").unwrap();
        let said = ["by", "parentExecutionId", "parentStepId"].map(|key| text(detail, key));
        assert_eq!(said, ["workflow".to_string(), parent, "aside".into()]);
        let proof = ours.owner.get("/api/audit/verify").expect(200).json();
        assert_eq!(proof.get("ok"), Some(&Value::Bool(true)), "{proof:?}");
    });
}

#[test]
fn the_log_has_an_entry_for_each_change_and_for_each_credential() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    ours.member("bob", "member");
    let until = "2999-01-01T00:00:00.000Z";
    let scopes = Value::List(vec!["workflows:read".into()]);
    let of_bob =
        [("name", "n".into()), ("userId", "bob".into()), ("scopes", scopes.clone()), ("expiresAt", until.into())];
    let made = ours.owner.post("/api/tokens", &Value::map(of_bob)).expect(201).text_at("id");
    for change in [r#"{"limits": {"perWorkflow": 3}, "name": "Acme"}"#, r#"{"limits": {"perWorkflow": null}}"#] {
        ours.owner.send("PATCH", "/api/organization", &[], Some(change)).expect(200);
    }
    ours.owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
    let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
    let last = log.get("entries").and_then(Value::as_list).unwrap().iter().rev().take(4).rev();
    let last: Vec<_> = last.map(|entry| (entry.get("action").unwrap(), entry.get("detail").unwrap())).collect();
    let by = last[0].1.get("by").unwrap();
    let said = |action: &str, fields: &[(&str, Value)]| {
        // The owner of the installation has created the organization with the token of its owner.
        let detail = fields.iter().cloned().chain([("by", by.clone()), ("madeBy", "installation/owner".into())]);
        (Value::from(action), Value::map(detail))
    };
    let limits = |limit: Value| ("limits", Value::map([("perWorkflow", limit)]));
    let expected = [
        said("token.create", &[("user", "bob".into()), ("scopes", scopes), ("expiresAt", until.into())]),
        said("organization.update", &[("name", "Acme".into()), limits(3u64.into())]),
        said("organization.update", &[limits(Value::Null)]),
    ];
    assert!(last[..3].iter().zip(&expected).all(|(found, said)| *found == (&said.0, &said.1)), "{last:?}");
    let revoked = last[3].1.get("revoked").and_then(Value::as_list).unwrap();
    assert!(revoked.len() == 2 && revoked.contains(&made.as_str().into()), "{last:?}");
}

#[test]
fn audit_and_journal_pages_use_the_common_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let sleep = [("type", Value::from("sleep")), ("durationMs", 1u64.into())];
    save(&owner, "rest", Value::List(vec![Value::map(sleep)]));
    let id = start(&owner, "rest", "r1", Map::new()).expect(202).text_at("executionId");
    owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    for (path, key, filter) in [
        ("/api/audit".to_string(), "entries", "after=1"),
        (format!("/api/executions/{id}/journal"), "frames", "from=1"),
    ] {
        let rows = |page: &Value| page.get(key).and_then(Value::as_list).unwrap().to_vec();
        let all = rows(&owner.get(&path).expect(200).json());
        assert!(all.len() > 1, "{path}");
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = owner.get(&format!("{path}?limit=1{cursor}")).expect(200).json();
            found.extend(rows(&page));
            match page.get("nextCursor").and_then(Value::as_text) {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, all, "{path}");
        assert_eq!(rows(&owner.get(&format!("{path}?{filter}")).expect(200).json()), all[1..], "{path}");
        owner.get(&format!("{path}?cursor=x")).expect(400);
    }
}

/// Copies the contents of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The old store is consistent in itself, so only the marks outside of it detect the rollback.
#[test]
fn a_rollback_of_the_log_is_detected() {
    let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::start(folder.path());
    let (owner, token) = (server.owner(), server.token.clone().unwrap());
    let viewer = Value::map([("role", Value::from("viewer"))]);
    owner.put("/api/members/bob", &viewer).expect(200);
    assert_eq!(server.stop(), Some(0));
    let data = folder.path().join("data");
    copy(&data, &kept.path().join("data"));
    let mut server = Server::start(folder.path());
    server.client(&token).put("/api/members/eve", &viewer).expect(200);
    assert_eq!(server.stop(), Some(0));
    let proof = |server: &Server| server.client(&token).get("/api/audit/verify").expect(200);
    let mut server = Server::start(folder.path());
    assert_eq!(proof(&server).json().get("ok"), Some(&Value::Bool(true)), "what was added is no fault");
    assert_eq!(server.stop(), Some(0));
    std::fs::remove_dir_all(&data).unwrap();
    copy(&kept.path().join("data"), &data);
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    let server = Server::start(folder.path());
    let told = proof(&server);
    assert_eq!(told.json().get("ok"), Some(&Value::Bool(false)));
    assert!(told.text_at("error").contains("rolled back"), "{told:?}");
}

#[test]
fn creation_and_exports_of_an_organization_are_audited() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let entries = || {
        let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
        log.get("entries").and_then(Value::as_list).unwrap().to_vec()
    };
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    let first = entries().remove(0);
    assert_eq!((text(&first, "action"), text(&first, "actor")), ("organization.create".into(), "owner".into()));
    let detail = first.get("detail").unwrap();
    assert_eq!(text(detail, "owner"), "ada");
    assert!(server.token.clone().unwrap().contains(&text(detail, "by")), "by the operator's credential");
    ours.owner.get("/api/audit/export").expect(200);
    let last = entries().pop().unwrap();
    assert_eq!((text(&last, "action"), text(&last, "actor")), ("audit.export".into(), "ada".into()));
}

#[test]
fn an_export_is_audited_and_needs_a_same_origin_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let mut head = String::new();
    owner.open("HEAD", "/api/audit/export", &[("connection", "close")], None).read_line(&mut head).unwrap();
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
    let browser = owner.signed_in();
    browser.send("GET", "/api/audit/export", &[("sec-fetch-site", "same-site")], None).expect(403);
    browser.get("/api/audit/export").expect(200);
    let log = owner.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap();
    let exports = entries.iter().filter(|entry| entry.get("action") == Some(&"audit.export".into())).count();
    assert_eq!(exports, 1);
}
