//! Lists of large items: a page ends at a byte limit, and all pages together are the list. One store is enough
//! here, since the conformance suite tests that stores read no more than requested.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    commands::Caller,
    process::{Organization, Server},
    start::{save, start},
};

/// Bytes that end a page, and bytes of the largest item that can be the last on it.
const PAGE_BYTES: usize = 8 << 20;
const THING_BYTES_MAX: usize = 4 << 20;

/// KiB of a large item: three of them end a page, and two do not. Large items are slow, so each list has only three
/// of them, and small ones.
const LARGE_KIB: usize = 2_750;

const _: () = assert!((2 * LARGE_KIB) << 10 < PAGE_BYTES && (3 * LARGE_KIB) << 10 > PAGE_BYTES);

/// One page of a list.
fn page(client: &Client, path: &str, key: &str) -> Vec<Value> {
    client.get(path).expect(200).json().get(key).and_then(Value::as_list).unwrap().to_vec()
}

/// All pages of a list, by their cursors. Checks the size of each.
fn pages(client: &Client, path: &str, key: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor): (Vec<Vec<Value>>, _) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let asked = if cursor.is_empty() { path.to_string() } else { format!("{path}{sign}cursor={cursor}") };
        let answer = client.get(&asked).expect(200);
        // A response has little data besides the items.
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

/// Steps of one type with equal fields.
fn steps(count: usize, fields: &[(&str, Value)]) -> Vec<Value> {
    let step = |number: usize| {
        let id = ("id", Value::from(format!("s{number:02}")));
        Value::map([id].into_iter().chain(fields.iter().cloned()))
    };
    (0..count).map(step).collect()
}

#[test]
fn workflows_and_their_history_are_paged_by_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let saved = |id: &str, letter: &str, kib: usize| {
        let step = Value::map([("type", Value::from("sleep")), ("durationMs", 1u64.into())]);
        let data = Value::map([("description", letters(letter, kib)), ("steps", vec![step].into())]);
        owner.post("/api/workflows/sync", &Value::map([("id", Value::from(id)), ("data", data)])).expect(200);
    };
    saved("a", "a", 1);
    ["b", "c", "d"].iter().for_each(|letter| saved("a", letter, LARGE_KIB));
    let found = pages(&owner, "/api/workflows/a/history", "history");
    assert_eq!(counts(&found), [3, 1]);
    assert_eq!(texts(&found, "workflowVersion"), ["1.0.3", "1.0.2", "1.0.1", "1.0.0"]);
    ["b", "c"].iter().for_each(|id| saved(id, id, LARGE_KIB));
    ["d", "e", "f"].iter().for_each(|id| saved(id, id, 1));
    let found = pages(&owner, "/api/workflows", "workflows");
    assert_eq!((counts(&found), texts(&found, "id").concat().as_str()), (vec![3, 3], "abcdef"));
    let found = page(&owner, "/api/workflows?limit=2&cursor=c", "workflows");
    assert_eq!(texts(&[found], "id"), ["d", "e"]);
    let listed = Caller::owner(&server).fine(&["workflows"]);
    assert_eq!(listed.lines().count(), 6, "{listed}");
}

#[test]
fn attempts_are_paged_and_commands_read_all_pages() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let code = "export default function () { return 1; }";
    let mut all = steps(6, &[("type", "code".into()), ("code", code.into())]);
    for step in &mut all[2..5] {
        let Value::Map(step) = step else { unreachable!("a step is a map") };
        step.insert("input".into(), "@vars.text".into());
    }
    save(&owner, "large", all.into());
    let variables = Map::from([("text".to_string(), letters("v", LARGE_KIB))]);
    let id = start(&owner, "large", "r1", variables).expect(202).text_at("executionId");
    assert_eq!(owner.get(&format!("/api/executions/{id}/wait")).text_at("status"), "completed");
    let path = format!("/api/executions/{id}/steps");
    let found = pages(&owner, &path, "steps");
    let wanted: Vec<String> = (0..6).map(|number| format!("s{number:02}")).collect();
    assert_eq!((counts(&found), texts(&found, "stepId")), (vec![5, 1], wanted));
    assert_eq!(texts(&[page(&owner, &format!("{path}?limit=2"), "steps")], "stepId"), ["s00", "s01"]);
    assert_eq!(texts(&[page(&owner, &format!("{path}?limit=1&cursor=5"), "steps")], "stepId"), ["s05"]);
    for asked in ["limit=0", "limit=201", "cursor=x", "from=1"] {
        owner.get(&format!("{path}?{asked}")).expect(400);
    }
    // The journal route returns frames without their values.
    let frames = pages(&owner, &format!("/api/executions/{id}/journal?limit=200"), "frames");
    assert!(frames.len() == 1 && frames[0].len() > 1, "{:?}", counts(&frames));
    let caller = Caller::owner(&server);
    let shown = caller.call(&["show", &id, "--json"]).envelope();
    assert_eq!(shown.get("steps").and_then(Value::as_list).unwrap().len(), 6);
    let shown = caller.fine(&["show", &id]);
    assert!(shown.contains("✓ s00") && shown.contains("✓ s05"), "{shown}");
    let told = caller.fine(&["tail", &id]);
    assert!(told.contains("✓ s05"), "{told}");
    caller.fine(&["verify", &id]);
}

#[test]
fn open_approvals_are_paged_by_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let items = Value::List(vec!["@vars.text".into()]);
    let fields = [("type", "approval".into()), ("prompt", "Well?".into()), ("items", items)];
    let both = [("id", "both".into()), ("type", "parallel".into()), ("steps", steps(4, &fields).into())];
    save(&owner, "asks", vec![Value::map(both)].into());
    let asking = |request: &str, kib: usize| {
        let variables = Map::from([("text".to_string(), letters("v", kib))]);
        let id = start(&owner, "asks", request, variables).expect(202).text_at("executionId");
        assert_eq!(owner.get(&format!("/api/executions/{id}/wait")).text_at("status"), "waiting_approval");
        id
    };
    let (first, second) = (asking("r1", 1), asking("r2", LARGE_KIB));
    let found = pages(&owner, "/api/approvals", "approvals");
    let gates = |id: &str| (0..4).map(|number| format!("{id}:s{number:02}:1")).collect::<Vec<_>>();
    assert_eq!(texts(&found, "id"), [gates(&second), gates(&first)].concat());
    // The first page ends between gates of one execution, and the next starts with its fourth.
    assert_eq!(counts(&found), [3, 5]);
    // A decision between two pages does not break the pagination.
    let next = owner.get("/api/approvals?limit=1").expect(200).text_at("nextCursor");
    let decision = Value::map([("approve", Value::Bool(true))]);
    owner.post(&format!("/api/approvals/{second}:s00:1/decide"), &decision).expect(200);
    let rest = page(&owner, &format!("/api/approvals?cursor={next}"), "approvals");
    assert_eq!(texts(&[rest], "id"), gates(&second)[1..]);
}

#[test]
fn the_audit_log_and_tokens_are_paged_by_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let scope = "executions:control";
    for (number, kib) in [LARGE_KIB, LARGE_KIB, LARGE_KIB, 1].into_iter().enumerate() {
        let (name, scopes) = (Value::from(format!("t{number}")), vec![Value::from(scope); (kib << 10) / scope.len()]);
        ours.owner.post("/api/tokens", &Value::map([("name", name), ("scopes", scopes.into())])).expect(201);
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
