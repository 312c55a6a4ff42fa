//! Workflows as things that are saved, edited and listed.

use mainspring_kernel::value::Value;

use super::{
    process::Server,
    starts::{echo, save},
};

/// Some fields of a workflow, as texts; what is null is empty.
fn fields(body: &Value) -> [String; 4] {
    ["slug", "name", "description", "version"]
        .map(|key| body.get(key).and_then(Value::as_text).unwrap_or_default().to_string())
}

fn tags(body: &Value) -> usize {
    body.get("tags").and_then(Value::as_list).unwrap().len()
}

#[test]
fn what_a_workflow_need_not_have_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let put = |body: &str| owner.send("PUT", "/api/workflows/w1", &[], Some(body)).expect(200).json();
    save(&owner, "w1", echo());
    let full = r#"{"slug": "ship", "name": "Ship", "description": "It ships.", "tags": ["a", "b"]}"#;
    let all = ["ship", "Ship", "It ships.", "1.0.0"];
    assert!(fields(&put(full)) == all);
    // What is not named stays; null takes away.
    let kept = put(r#"{"enabled": false}"#);
    assert!(fields(&kept) == all && tags(&kept) == 2, "{kept:?}");
    let less = put(r#"{"slug": null, "description": null, "tags": null}"#);
    assert!(fields(&less) == ["", "Ship", "", "1.0.0"] && tags(&less) == 0, "{less:?}");
    owner.get("/api/workflows/ship").expect(404);
    // Saved as a whole, it is what was said, but for whether it can be started.
    put(full);
    let whole = save(&owner, "w1", echo()).json();
    assert!(fields(&whole) == ["", "w1", "", "1.0.0"] && tags(&whole) == 0, "{whole:?}");
    assert_eq!(whole.get("enabled"), Some(&Value::Bool(false)));
}

#[test]
fn a_history_ends_with_a_page_that_is_there() {
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

#[test]
fn no_name_is_an_id_and_a_slug_however_they_are_given() {
    /// So often two try at the same moment.
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
