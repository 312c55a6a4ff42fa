//! Lists whose things are large: a page ends before it holds too much, and all pages together are the list.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    commands::Caller,
    process::{Organization, Server, everywhere},
    starts::{save, start},
};

/// Bytes of content that end a page, and of the largest thing that may be the last on it.
const PAGE_BYTES: usize = 8 << 20;
const THING_BYTES_MAX: usize = 4 << 20;

/// The pages of a list, by its cursors; none is larger than it may be.
fn pages(client: &Client, path: &str, key: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor): (Vec<Vec<Value>>, _) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let asked = if cursor.is_empty() { path.to_string() } else { format!("{path}{sign}cursor={cursor}") };
        let answer = client.get(&asked).expect(200);
        // What goes out beside the content is little.
        assert!(answer.text.len() < PAGE_BYTES + THING_BYTES_MAX + (64 << 10), "{path}: {}", answer.text.len());
        let page = answer.json();
        pages.push(page.get(key).and_then(Value::as_list).unwrap().to_vec());
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(next) => cursor = next.into(),
            None => return pages,
        }
    }
}

fn counts(pages: &[Vec<Value>]) -> Vec<usize> {
    pages.iter().map(Vec::len).collect()
}

fn texts(pages: &[Vec<Value>], key: &str) -> Vec<String> {
    pages.iter().flatten().map(|row| row.get(key).and_then(Value::as_text).unwrap().to_string()).collect()
}

fn letters(letter: &str, kib: usize) -> Value {
    letter.repeat(kib << 10).into()
}

/// Steps of one type, with the same in each.
fn steps(count: usize, fields: &[(&str, Value)]) -> Vec<Value> {
    let step = |number: usize| {
        let id = ("id", Value::from(format!("s{number:02}")));
        Value::map([id].into_iter().chain(fields.iter().cloned()))
    };
    (0..count).map(step).collect()
}

#[test]
fn workflows_and_their_history_come_in_pages_that_end_by_bytes() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let saved = |id: &str, letter: &str| {
            let step = Value::map([("type", Value::from("sleep")), ("durationMs", 1u64.into())]);
            let data = Value::map([("description", letters(letter, 3 << 10)), ("steps", vec![step].into())]);
            owner.post("/api/workflows/sync", &Value::map([("id", Value::from(id)), ("data", data)])).expect(200);
        };
        ["a", "b", "c", "d"].iter().for_each(|id| saved(id, id));
        let found = pages(&owner, "/api/workflows", "workflows");
        assert_eq!((counts(&found), texts(&found, "id").concat().as_str()), (vec![3, 1], "abcd"));
        let found = pages(&owner, "/api/workflows?limit=2", "workflows");
        assert_eq!((counts(&found)[..2].to_vec(), texts(&found, "id").concat().as_str()), (vec![2, 2], "abcd"));
        let listed = Caller::owner(&server).fine(&["workflows"]);
        assert_eq!(listed.lines().count(), 4, "{listed}");
        ["b", "c", "d"].iter().for_each(|letter| saved("a", letter));
        let found = pages(&owner, "/api/workflows/a/history", "history");
        assert_eq!(counts(&found), [3, 1]);
        assert_eq!(texts(&found, "workflowVersion"), ["1.0.3", "1.0.2", "1.0.1", "1.0.0"]);
    });
}

#[test]
fn attempts_come_in_pages_and_commands_read_all_of_them() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let code = "export default function () { return 1; }";
        let fields = [("type", "code".into()), ("code", code.into()), ("input", "@vars.text".into())];
        save(&owner, "large", steps(12, &fields).into());
        let variables = Map::from([("text".to_string(), letters("v", 1 << 10))]);
        let id = start(&owner, "large", "r1", variables).expect(202).text_at("executionId");
        assert_eq!(owner.get(&format!("/api/executions/{id}/wait")).text_at("status"), "completed");
        let path = format!("/api/executions/{id}/steps");
        let found = pages(&owner, &path, "steps");
        let wanted: Vec<String> = (0..12).map(|number| format!("s{number:02}")).collect();
        assert_eq!((counts(&found), texts(&found, "stepId")), (vec![8, 4], wanted.clone()));
        let found = pages(&owner, &format!("{path}?limit=5"), "steps");
        assert_eq!((counts(&found), texts(&found, "stepId")), (vec![5, 5, 2], wanted));
        for asked in ["limit=0", "limit=201", "cursor=x", "from=1"] {
            owner.get(&format!("{path}?{asked}")).expect(400);
        }
        // The values of frames do not go out with them.
        let frames = pages(&owner, &format!("/api/executions/{id}/journal?limit=200"), "frames");
        assert!(frames.len() == 1 && frames[0].len() > 1, "{:?}", counts(&frames));
        let caller = Caller::owner(&server);
        let shown = caller.call(&["show", &id, "--json"]).envelope();
        assert_eq!(shown.get("steps").and_then(Value::as_list).unwrap().len(), 12);
        let shown = caller.fine(&["show", &id]);
        assert!(shown.contains("✓ s00") && shown.contains("✓ s11"), "{shown}");
        let told = caller.fine(&["tail", &id]);
        assert!(told.contains("✓ s11"), "{told}");
        caller.fine(&["verify", &id]);
    });
}

#[test]
fn what_waits_for_people_comes_in_pages_that_end_by_bytes() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let items = Value::List(vec!["@vars.text".into()]);
        let fields = [("type", "approval".into()), ("prompt", "Well?".into()), ("items", items)];
        let both = [("id", "both".into()), ("type", "parallel".into()), ("steps", steps(3, &fields).into())];
        save(&owner, "asks", vec![Value::map(both)].into());
        let asking = |request: &str| {
            let variables = Map::from([("text".to_string(), letters("v", 3 << 10))]);
            let id = start(&owner, "asks", request, variables).expect(202).text_at("executionId");
            assert_eq!(owner.get(&format!("/api/executions/{id}/wait")).text_at("status"), "waiting_approval");
            id
        };
        let (first, second) = (asking("r1"), asking("r2"));
        let found = pages(&owner, "/api/approvals", "approvals");
        let gates = |id: &str| (0..3).map(|number| format!("{id}:s{number:02}:1")).collect::<Vec<_>>();
        assert_eq!(texts(&found, "id"), [gates(&second), gates(&first)].concat());
        assert_eq!(counts(&found), [3, 3]);
        // A gate that is decided between two pages is in nobody's way.
        let page = owner.get("/api/approvals?limit=1").expect(200);
        let decision = Value::map([("approve", Value::Bool(true))]);
        owner.post(&format!("/api/approvals/{second}:s00:1/decide"), &decision).expect(200);
        let rest = owner.get(&format!("/api/approvals?cursor={}", page.text_at("nextCursor"))).expect(200).json();
        let rest = rest.get("approvals").and_then(Value::as_list).unwrap().to_vec();
        assert_eq!(texts(&[rest], "id"), [&gates(&second)[1..], &gates(&first)[..1]].concat());
    });
}

#[test]
fn the_audit_log_and_tokens_come_in_pages_that_end_by_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let scopes = Value::List(vec!["executions:control".into(); 150_000]);
    for number in 0..4 {
        let name = Value::from(format!("t{number}"));
        ours.owner.post("/api/tokens", &Value::map([("name", name), ("scopes", scopes.clone())])).expect(201);
    }
    let found = pages(&ours.owner, "/api/audit", "entries");
    assert!(found.len() > 1, "{:?}", counts(&found));
    let numbers: Vec<u64> =
        found.concat().iter().map(|row| row.get("number").and_then(Value::as_u64).unwrap()).collect();
    assert_eq!(numbers, Vec::from_iter(1..=numbers.len() as u64));
    let found = pages(&ours.owner, "/api/tokens", "tokens");
    let mut names = texts(&found, "name");
    names.sort();
    assert!(found.len() > 1 && names.windows(2).all(|pair| pair[0] != pair[1]) && names.len() == 5, "{names:?}");
}
