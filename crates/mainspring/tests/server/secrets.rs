//! Secrets of a server: set by the command line, used by the workflows that may, and found in no response and no file.

use std::{fs, path::Path};

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    commands::Caller,
    process::{Organization, Server},
    start::{save, start},
    support::{call, yaml},
};

const VALUE: &str = "planted-value-of-a-server";

/// Forms of the value that the steps print.
const FORMS: [&str; 4] = [VALUE, "cGxhbnRlZC12YWx1ZS", "706c616e7465642d", "planted%2D"];

/// Prints the variable in several forms, and writes it to a file of the test.
fn uses(folder: &Path, name: &str) -> Value {
    let file = folder.join("received").display().to_string();
    yaml(&format!(
        r#"
- id: use
  type: bash
  command: |
    printf %s "$TOKEN" > "{file}"
    echo "$TOKEN"; printf %s "$TOKEN" | base64; printf %s "$TOKEN" | od -An -tx1 | tr -d ' \n'
  env: {{TOKEN: {{secret: {name}}}}}
  retry: {{maxAttempts: 1}}
"#
    ))
}

fn settled(client: &Client, workflow: &str, request: &str) -> (String, String) {
    let id = start(client, workflow, request, Map::new()).expect(202).text_at("executionId");
    let status = client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
    (id, status)
}

#[track_caller]
fn assert_absent(bytes: &[u8], place: &str) {
    for form in FORMS {
        assert!(!bytes.windows(form.len()).any(|part| part == form.as_bytes()), "{form} is in {place}");
    }
}

fn assert_absent_below(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => assert_absent_below(&path),
            false => assert_absent(&fs::read(&path).unwrap_or_default(), &path.display().to_string()),
        }
    }
}

fn set(caller: &Caller, arguments: &[&str]) -> super::support::Answer {
    call(caller.command(&[&["secret", "set"], arguments].concat()), format!("{VALUE}\n").as_bytes())
}

#[test]
fn a_secret_is_used_by_its_workflows_and_shown_to_no_client() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--scripts", "uncontained", "--log", "trace"]);
    let (owner, caller) = (server.owner(), Caller::owner(&server));
    save(&owner, "mine", uses(folder.path(), "TOKEN"));
    save(&owner, "other", uses(folder.path(), "TOKEN"));
    let answer = set(&caller, &["TOKEN", "--workflow", "mine"]);
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let mut said = format!("{}{}", answer.stdout, answer.stderr);

    let (id, status) = settled(&owner, "mine", "r1");
    assert_eq!(status, "completed");
    assert_eq!(fs::read_to_string(folder.path().join("received")).unwrap(), VALUE);
    fs::remove_file(folder.path().join("received")).unwrap();
    let (refused, status) = settled(&owner, "other", "r2");
    assert_eq!(status, "failed");
    let steps = owner.get(&format!("/api/executions/{refused}/steps")).expect(200).text;
    assert!(steps.contains("secret_not_permitted"), "{steps}");
    assert!(!folder.path().join("received").exists(), "nothing runs");

    for path in ["", "/steps", "/journal"] {
        said += &owner.get(&format!("/api/executions/{id}{path}")).text;
    }
    assert!(said.contains("***"), "the output had the value: {said}");
    let audit = owner.get("/api/audit").expect(200).text;
    assert!(audit.contains("secret.set") && audit.contains("secret.use") && audit.contains(&id), "{audit}");
    let listed = caller.fine(&["secret", "list", "--json"]);
    assert!(listed.contains("TOKEN") && listed.contains("mine"), "{listed}");
    said += &format!("{audit}{listed}{}{}", caller.fine(&["secret", "list"]), owner.get("/api/secrets").text);
    said += &caller.fine(&["show", &id, "--json"]);
    assert_absent(said.as_bytes(), "an answer");
    assert_absent_below(folder.path());

    caller.fine(&["secret", "rm", "TOKEN"]);
    let (gone, status) = settled(&owner, "mine", "r3");
    assert_eq!(status, "failed");
    assert!(owner.get(&format!("/api/executions/{gone}/steps")).expect(200).text.contains("secret_missing"));
    assert_ne!(caller.call(&["secret", "rm", "TOKEN"]).exit, Some(0), "it is gone");
}

#[test]
fn secrets_belong_to_their_organization_and_its_admins() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("value"), "value-of-the-operator").unwrap();
    let value = folder.path().join("value").display().to_string();
    let config = folder.path().join("config.yaml");
    fs::write(&config, format!("secrets: {{OPERATORS: {{file: {value}, organizations: [acme]}}}}")).unwrap();
    let config = config.display().to_string();
    let server = Server::start_with(folder.path(), &["--scripts", "uncontained", "--config", &config]);
    let (acme, globex) = (Organization::new(&server, "acme"), Organization::new(&server, "globex"));
    let body = Value::map([("value", Value::from(VALUE)), ("workflows", Value::Null)]);
    acme.owner.put("/api/secrets/TOKEN", &body).expect(201);
    acme.owner.put("/api/secrets/TOKEN", &body).expect(200);
    let member = acme.member("bob", "member");
    member.put("/api/secrets/TOKEN", &body).expect(403);
    member.send("DELETE", "/api/secrets/TOKEN", &[], None).expect(403);
    assert!(member.get("/api/secrets").expect(200).text.contains("TOKEN"));
    assert!(!globex.owner.get("/api/secrets").expect(200).text.contains("TOKEN"));
    for (body, word) in [
        (r#"{"value": "short", "workflows": null}"#, "8 bytes"),
        (r#"{"value": "long enough", "workflows": []}"#, "workflows"),
        (r#"{"value": "long enough", "workflows": ["nowhere"]}"#, "nowhere"),
    ] {
        let refused = acme.owner.send("PUT", "/api/secrets/X", &[], Some(body)).expect(400);
        assert!(refused.text.contains(word) && !refused.text.contains("long enough"), "{refused:?}");
    }
    acme.owner.put("/api/secrets/a%20b", &body).expect(400);

    for (organization, name, expected) in [
        (&acme, "TOKEN", "completed"),
        (&acme, "OPERATORS", "completed"),
        (&globex, "TOKEN", "secret_missing"),
        (&globex, "OPERATORS", "secret_missing"),
    ] {
        let workflow = name.to_lowercase();
        save(&organization.owner, &workflow, uses(folder.path(), name));
        let (id, status) = settled(&organization.owner, &workflow, "r1");
        let steps = organization.owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
        assert!(status == expected || steps.contains(expected), "{name} {status} {steps}");
    }
}
