//! Workflows as resources: saving, editing and listing.

use std::collections::BTreeSet;

use mainspring_kernel::value::Value;

use super::{
    client::Client,
    process::{Server, everywhere},
    start::{echo, save},
};

/// Some fields of a workflow as texts; empty for null.
fn fields(body: &Value) -> [String; 4] {
    ["slug", "name", "description", "version"]
        .map(|key| body.get(key).and_then(Value::as_text).unwrap_or_default().to_string())
}

fn tags(body: &Value) -> usize {
    body.get("tags").and_then(Value::as_list).unwrap().len()
}

#[test]
fn optional_fields_of_a_workflow_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let put = |body: &str| owner.send("PUT", "/api/workflows/w1", &[], Some(body)).expect(200).json();
    save(&owner, "w1", echo());
    let full = r#"{"slug": "ship", "name": "Ship", "description": "It ships.", "tags": ["a", "b"]}"#;
    let all = ["ship", "Ship", "It ships.", "1.0.0"];
    assert!(fields(&put(full)) == all);
    // Absent fields stay unchanged, and null clears a field.
    let kept = put(r#"{"enabled": false}"#);
    assert!(fields(&kept) == all && tags(&kept) == 2, "{kept:?}");
    let less = put(r#"{"slug": null, "description": null, "tags": null}"#);
    assert!(fields(&less) == ["", "Ship", "", "1.0.0"] && tags(&less) == 0, "{less:?}");
    owner.get("/api/workflows/ship").expect(404);
    // A save replaces all fields except `enabled`.
    put(full);
    let whole = save(&owner, "w1", echo()).json();
    assert!(fields(&whole) == ["", "w1", "", "1.0.0"] && tags(&whole) == 0, "{whole:?}");
    assert_eq!(whole.get("enabled"), Some(&Value::Bool(false)));
}

#[test]
fn the_last_page_of_a_history_is_not_empty() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    save(&owner, "w1", Value::List(vec![Value::map([("type", Value::from("sleep")), ("durationMs", 1u64.into())])]));
    let (mut cursor, mut found) = (String::new(), 0);
    loop {
        let page = owner.get(&format!("/api/workflows/w1/history?limit=1{cursor}")).expect(200).json();
        found += page.get("history").and_then(Value::as_list).unwrap().len();
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, 2);
    owner.get("/api/workflows/w2/history").expect(404);
}

/// A definition that sleeps for a duration.
fn sleeps(ms: u64) -> Value {
    Value::List(vec![Value::map([("id", Value::from("nap")), ("type", "sleep".into()), ("durationMs", ms.into())])])
}

/// The entries of a history, the newest first: version and hash.
fn history(owner: &Client, id: &str) -> Vec<(String, String)> {
    let page = owner.get(&format!("/api/workflows/{id}/history?limit=200")).expect(200).json();
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_text).unwrap().to_string();
    let entries = page.get("history").and_then(Value::as_list).unwrap();
    entries.iter().map(|entry| (text(entry, "workflowVersion"), text(entry, "workflowHash"))).collect()
}

#[test]
fn a_history_has_each_definition_once_and_a_version_is_one_definition() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let saved = |ms: u64| save(&owner, "w", sleeps(ms)).text_at("version");
        assert_eq!([1, 1, 2, 1, 3].map(saved), ["1.0.0", "1.0.0", "1.0.1", "1.0.0", "1.0.2"]);
        let versions: Vec<String> = history(&owner, "w").into_iter().map(|(version, _)| version).collect();
        assert_eq!(versions, ["1.0.2", "1.0.1", "1.0.0"]);
        // A definition that is saved again gets its former version.
        save(&owner, "w", sleeps(1));
        let first = history(&owner, "w").pop().unwrap();
        let now = owner.get("/api/workflows/w").expect(200);
        assert_eq!((now.text_at("version"), now.text_at("workflowHash")), first);
        let put = |version: &str, ms: Option<u64>| {
            let data = ms.map(|ms| ("data", Value::map([("steps", sleeps(ms))])));
            owner.put("/api/workflows/w", &Value::map([("version", version.into())].into_iter().chain(data)))
        };
        let refused = put("1.0.1", Some(9)).expect(409);
        assert!(refused.text.contains("1.0.1 of the workflow `w` is another definition"), "{refused:?}");
        let refused = put("5.0.0", None).expect(409);
        assert!(refused.text.contains("this definition is version 1.0.0"), "{refused:?}");
        put("1.0.0", None).expect(200);
        assert_eq!(put("5.0.0", Some(9)).expect(200).text_at("version"), "5.0.0");
        // The same applies to a workflow that was deleted and created again.
        owner.send("DELETE", "/api/workflows/w", &[], None).expect(204);
        assert_eq!([2, 7].map(saved), ["1.0.1", "1.0.3"]);
    });
}

#[test]
fn saves_at_the_same_moment_give_no_version_twice() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "w", sleeps(1));
        const SAVES: u64 = 6;
        const TRIES: usize = 500;
        std::thread::scope(|scope| {
            for client in 0..4 {
                let owner = owner.clone();
                scope.spawn(move || {
                    for save in 0..SAVES {
                        // Two clients save each definition. A save that loses every race is an error, and repeated.
                        let data = Value::map([("steps", sleeps(2 + save + (client % 2) * SAVES))]);
                        let body = Value::map([("id", Value::from("w")), ("data", data)]);
                        let is_saved = (0..TRIES).any(|_| owner.post("/api/workflows/sync", &body).status == 200);
                        assert!(is_saved, "it is outrun again and again");
                    }
                });
            }
        });
        let entries = history(&owner, "w");
        let (versions, hashes): (BTreeSet<_>, BTreeSet<_>) = entries.iter().cloned().unzip();
        assert_eq!((versions.len(), hashes.len(), entries.len()), (13, 13, 13), "{entries:?}");
    });
}

#[test]
fn a_name_is_never_both_an_id_and_a_slug() {
    /// Rounds of the race.
    const ROUNDS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let whole = |id: &str, slug: Option<&str>| {
        let data = Value::map([("steps", echo())]);
        Value::map([("id", Value::from(id)), ("slug", slug.into()), ("data", data)])
    };
    let both = Value::List(vec![whole("w1", Some("w2")), whole("w2", None)]);
    let refused = owner.post("/api/workflows/sync-all", &Value::map([("workflows", both)])).expect(400);
    assert!(refused.text.contains("two of them have `w2`"), "{refused:?}");
    save(&owner, "other", echo());
    for round in 0..ROUNDS {
        let name = format!("n{round}");
        let statuses = std::thread::scope(|scope| {
            let id = scope.spawn(|| owner.post("/api/workflows/sync", &whole(&name, None)).status);
            let slug = format!(r#"{{"slug": "{name}"}}"#);
            let slug = owner.send("PUT", "/api/workflows/other", &[], Some(&slug)).status;
            [id.join().unwrap(), slug]
        });
        assert!(statuses == [200, 409] || statuses == [409, 200], "{name}: {statuses:?}");
    }
}

#[test]
fn workflows_with_an_unconditional_cycle_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let starts = |child: &str, when: Option<bool>| {
        let step = [("type", Value::from("subworkflow")), ("id", "c".into()), ("workflow", child.into())];
        let when = when.map(|when| ("when", Value::from(when)));
        Value::map([("steps", Value::List(vec![Value::map(step.into_iter().chain(when))]))])
    };
    let whole = |id: &str, data: Value| Value::map([("id", Value::from(id)), ("data", data)]);
    let save = |id: &str, data: Value| owner.post("/api/workflows/sync", &whole(id, data));
    let refused = save("a", starts("a", None)).expect(400);
    assert!(refused.text.contains("start each other"), "{refused:?}");
    save("a", starts("b", None)).expect(200);
    save("b", starts("c", None)).expect(200);
    let refused = save("c", starts("a", None)).expect(400);
    assert!(refused.text.contains("`a`") && refused.text.contains("`b`"), "{refused:?}");
    save("c", starts("a", Some(false))).expect(200);
    // Both workflows in one request.
    let all = vec![whole("d", starts("e", None)), whole("e", starts("d", None))];
    let refused = owner.post("/api/workflows/sync-all", &Value::map([("workflows", Value::List(all))])).expect(400);
    assert!(refused.text.contains("start each other"), "{refused:?}");
}

/// A picture of a workflow, which a browser shows without running anything in it.
#[test]
fn a_workflow_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", sleeps(60_000));
    let drawn = owner.get("/api/workflows/w1/drawing").expect(200);
    assert_eq!(drawn.header("content-type"), Some("image/svg+xml"));
    assert_eq!(drawn.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    assert!(drawn.text.starts_with("<svg ") && drawn.text.contains(">nap</text>"), "{}", drawn.text);
    let whole = |steps| Value::map([("definition", Value::map([("steps", steps)]))]);
    let unsaved = owner.post("/api/definitions/drawing", &whole(sleeps(60_000))).expect(200);
    assert!(unsaved.text.contains(">nap</text>"), "{}", unsaved.text);
    owner.get("/api/workflows/w2/drawing").expect(404);
    let invalid = whole(Value::List(vec![Value::map([("type", Value::from("slep"))])]));
    assert_eq!(owner.post("/api/definitions/drawing", &invalid).expect(400).text_at("code"), "INVALID_DEFINITION");
}

/// A client that has only the API learns the language from it, and saves the text that it has written.
#[test]
fn a_definition_is_saved_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let sync = |data: &str| {
        owner.post("/api/workflows/sync", &Value::map([("slug", Value::from("t")), ("data", data.into())]))
    };
    let saved = sync("# a comment\nsteps:\n  - {id: a, type: sleep, durationMs: 1}\n").expect(200);
    assert!(
        saved.json().get("data").is_some_and(|data| data.as_map().is_some()),
        "it is stored as an object: {saved:?}"
    );
    let refused = sync("steps:\n  - {id: a, type: slep}\n").expect(400);
    assert!(refused.text.contains("\"line\":2"), "diagnostics have a place: {refused:?}");
    let refused = sync("- 1").expect(400);
    assert!(refused.text.contains("The definition is invalid: a definition"), "{refused:?}");
    let language = owner.get("/llms.txt?tag=language").expect(200);
    for word in ["finally", "onInterrupted", "durationMs", "@ctx.outcome", "/definition.schema.json"] {
        assert!(language.text.contains(word), "{word}");
    }
    assert!(owner.get("/llms.txt").expect(200).text.contains("tag=language"));
    let unknown = owner.get("/llms.txt?tag=nope").expect(400);
    assert!(unknown.text.contains("language, "), "{unknown:?}");
    assert!(owner.get("/definition.schema.json").expect(200).text.contains("\"$schema\""));
    let wait = owner.post("/api/triggers/manual/run?wait=true", &Value::map([("workflowId", Value::from("t"))]));
    assert!(wait.text.contains("it must be a whole number"), "{wait:?}");
}

/// The parts of an agent and the body of a `forEach` are not steps of the author.
#[test]
fn the_order_has_each_written_step_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let text = "steps:\n  - {id: each, type: sleep, durationMs: 1, forEach: {ref: '@input.all'}}\n  - {id: ask, type: agent, goal: g}\n";
    let body = Value::map([("definition", Value::from(text))]);
    let found = server.owner().post("/api/definitions/validate", &body).expect(200).json();
    let order = Value::List(vec!["each".into(), "ask".into()]);
    assert_eq!(found.get("stepOrder"), Some(&order), "{found:?}");
}
