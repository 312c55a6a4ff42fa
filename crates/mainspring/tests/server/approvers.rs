//! Approvals with approvers who cannot decide: saving, validating, starting and showing give warnings, and no
//! errors.

use std::fs;

use mainspring_engine::keys;
use mainspring_kernel::{
    json,
    value::{Map, Value},
};
use mainspring_store::{Catalogue, Change, ChangeOutcome, Put, ResourceRow, seal_resource, sqlite::SqliteStore};

use super::{
    client::{Client, Reply},
    commands::Caller,
    process::{Organization, Server, everywhere},
    start::start,
};

const CANNOT: &str = "approver_cannot_decide";
const TOO_FEW: &str = "too_few_approvers";

/// Ada is the owner, bob a member, eve a viewer, robot an agent. There are no other members.
fn organization(server: &Server) -> Organization {
    let ours = Organization::new(server, "acme");
    for (id, role) in [("bob", "member"), ("eve", "viewer"), ("robot", "agent")] {
        ours.member(id, role);
    }
    ours
}

/// Definitions with their expected warnings, in order.
const WARNED: [(&str, &[(&str, &str)]); 10] = [
    (r#"{"steps":[{"type":"approval","id":"a","approvers":["bob"]}]}"#, &[]),
    (r#"{"steps":[{"type":"approval","id":"a","approvers":["bob","ada"],"count":2}]}"#, &[]),
    (r#"{"steps":[{"type":"approval","id":"a"}]}"#, &[]),
    (r#"{"steps":[{"type":"approval","id":"a","approvers":["bob","zoe"]}]}"#, &[(CANNOT, "steps[0].approvers[1]")]),
    (
        r#"{"steps":[{"type":"approval","id":"a","approvers":["bob","eve"],"count":2}]}"#,
        &[(TOO_FEW, "steps[0].approvers"), (CANNOT, "steps[0].approvers[1]")],
    ),
    (
        r#"{"steps":[{"type":"approval","id":"a","approvers":["robot"]}]}"#,
        &[(TOO_FEW, "steps[0].approvers"), (CANNOT, "steps[0].approvers[0]")],
    ),
    // At most two users can decide: the owner, and the user who starts the execution.
    (r#"{"steps":[{"type":"approval","id":"a","count":3}]}"#, &[(TOO_FEW, "steps[0].count")]),
    (
        r#"{"steps":[
            {"type":"parallel","id":"p","steps":[
                {"type":"loop","id":"l","forEach":{"ref":"@vars.list"},"steps":[
                    {"type":"conditional","id":"c","condition":{"ref":"@vars.yes"},
                     "then":[{"type":"sleep","id":"s","durationMs":1}],
                     "else":[{"type":"approval","id":"a","approvers":["bob","eve"]}]}]}]}]}"#,
        &[(CANNOT, "steps[0].steps[0].steps[0].else[0].approvers[1]")],
    ),
    (
        r#"{"nodes":[{"id":"do","type":"sleep","durationMs":1},{"id":"tidy","type":"approval","approvers":["eve","bob"]}],
            "edges":[{"from":"do","to":"tidy","when":"always"}]}"#,
        &[(CANNOT, "nodes[1].approvers[0]")],
    ),
    (
        r#"{"steps":[{"name":"a","type":"approval","approvers":["zoe","bob"]},{"name":"b","type":"approval","approvers":["zoe","bob"]}],
            "order":"dataflow"}"#,
        &[(CANNOT, "steps[0].approvers[0]"), (CANNOT, "steps[1].approvers[0]")],
    ),
];

fn definition(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap().value
}

fn list(value: &Value, key: &str) -> Vec<Value> {
    value.get(key).and_then(Value::as_list).unwrap_or_else(|| panic!("no `{key}`: {value:?}")).to_vec()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

/// Codes and paths of warnings, in order.
fn places(answer: &Value) -> Vec<(String, String)> {
    let mut found: Vec<_> = list(answer, "warnings")
        .iter()
        .map(|warning| {
            assert_eq!(text(warning, "severity"), "warning", "{warning:?}");
            assert!(!text(warning, "message").is_empty() && !text(warning, "help").is_empty(), "{warning:?}");
            (text(warning, "path"), text(warning, "code"))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(path, code)| (code, path)).collect()
}

fn saved(client: &Client, id: &str, text: &str) -> Value {
    let body = Value::map([("id", Value::from(id)), ("data", definition(text))]);
    client.post("/api/workflows/sync", &body).expect(200).json()
}

#[test]
fn checks_saves_and_starts_warn_of_unable_approvers() {
    everywhere(|place| {
        let server = place.start();
        let ours = organization(&server);
        let owner = &ours.owner;
        for (number, (definition_text, expected)) in WARNED.iter().enumerate() {
            let data = definition(definition_text);
            let expected: Vec<_> = expected.iter().map(|(code, path)| (code.to_string(), path.to_string())).collect();
            let asked = Value::map([("definition", data.clone())]);
            let id = format!("w{number}");
            let whole = Value::map([("id", Value::from(id.as_str())), ("data", data.clone())]);
            let all = Value::map([("workflows", Value::List(vec![whole.clone()]))]);
            let checked = owner.post("/api/definitions/validate", &asked).expect(200);
            assert_eq!(checked.text_at("status"), "valid", "{checked:?}");
            let answers = [
                ("validate", checked.json()),
                ("plan", owner.post("/api/definitions/plan", &asked).expect(200).json()),
                ("sync", owner.post("/api/workflows/sync", &whole).expect(200).json()),
                ("put", owner.put(&format!("/api/workflows/{id}"), &Value::map([("data", data)])).expect(200).json()),
                (
                    "sync-all",
                    list(&owner.post("/api/workflows/sync-all", &all).expect(200).json(), "workflows").remove(0),
                ),
            ];
            for (way, answer) in answers {
                assert_eq!(places(&answer), expected, "{way} {definition_text}");
            }
            let variables = Map::from([("list".into(), Value::List(Vec::new())), ("yes".into(), true.into())]);
            let started = start(owner, &id, "r", variables).expect(202).json();
            assert_eq!(places(&started), expected, "start {definition_text}");
        }
    });
}

/// Without named approvers the owner of an execution and the admins decide. The owner is known at the start only.
/// The owner is the only one who can start and decide.
#[test]
fn a_gate_for_two_in_an_organization_of_one_is_a_warning_when_saved() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let save_it = || saved(&ours.owner, "two", r#"{"steps":[{"type":"approval","id":"a","count":2}]}"#);
    assert_eq!(places(&save_it()), [(TOO_FEW.to_string(), "steps[0].count".to_string())]);
    ours.member("eve", "viewer");
    assert_eq!(places(&save_it()).len(), 1);
    ours.member("bob", "member");
    assert_eq!(places(&save_it()), []);
}

#[test]
fn the_initiator_counts_as_an_approver() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = organization(&server);
    let few = [(TOO_FEW.to_string(), "steps[0].count".to_string())];
    let saved = saved(&ours.owner, "two", r#"{"steps":[{"type":"approval","id":"a","count":2}]}"#);
    assert_eq!(places(&saved), []);
    for (client, expected) in
        [(&ours.owner, &few[..]), (&ours.member("robot", "agent"), &few), (&ours.member("bob", "member"), &[])]
    {
        assert_eq!(places(&start(client, "two", "r", Map::new()).expect(202).json()), expected);
    }
}

/// The position is for every caller, and the reason only as far as the caller may see members.
#[test]
fn a_warning_names_members_only_to_permitted_callers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = organization(&server);
    let yaml = "steps:\n  - type: approval\n    approvers: [zoe, eve]\n    onTimeout: approve\n";
    let told = |client: &Client| {
        let asked = Value::map([("definition", Value::from(yaml))]);
        let checked = client.post("/api/definitions/validate", &asked).expect(200).json();
        let each = |found: &Value| {
            let number = |key: &str| found.get(key).and_then(Value::as_u64).unwrap();
            format!("{}:{} {}", number("line"), number("column"), text(found, "message"))
        };
        list(&checked, "warnings").iter().map(each).collect::<Vec<_>>()
    };
    let few = "3:16 0 of the 2 named can decide here, and 1 must approve: the gate would wait until its time is over, and be \
        approved by itself";
    let [zoe, eve] =
        ["3:17 \"zoe\" is no member of this organization, and cannot decide", "3:22 \"eve\" cannot decide as viewer"];
    assert_eq!(told(&ours.owner), [few, zoe, eve]);
    assert_eq!(told(&ours.member("eve", "viewer")), [few, zoe, eve]);
    let [zoe, eve] = ["3:17 \"zoe\"", "3:22 \"eve\""].map(|who| format!("{who} cannot decide in this organization"));
    assert_eq!(told(&ours.member("robot", "agent")), [few.to_string(), zoe, eve]);
}

#[test]
fn subworkflows_are_checked_at_each_start() {
    everywhere(|place| {
        let server = place.start();
        let ours = organization(&server);
        let owner = &ours.owner;
        let calls = |name: &str, more: &str| {
            format!(
                r#"{{"steps":[{{"type":"sleep","id":"s","durationMs":1}},{{"type":"subworkflow","id":"{name}","workflow":"{name}"{more}}}]}}"#
            )
        };
        saved(owner, "last", r#"{"steps":[{"type":"approval","id":"a","approvers":["zoe"]}]}"#);
        saved(owner, "middle", &calls("last", r#","wait":false"#));
        let first = saved(owner, "first", &calls("middle", ""));
        let expected = [CANNOT, TOO_FEW].map(|code| (code.to_string(), "steps[1]".to_string()));
        assert_eq!(places(&first), expected);
        let warning = list(&first, "warnings").remove(0);
        assert!(
            text(&warning, "message").starts_with("in \"last\", which it starts, at steps[0].approvers"),
            "{warning:?}"
        );
        // A workflow that starts itself gives one warning.
        let own = r#"{"steps":[{"type":"approval","id":"a","approvers":["zoe","bob"]},{"type":"subworkflow","id":"b","workflow":"again","when":{"ref":"@input.more"}}]}"#;
        saved(owner, "again", own);
        assert_eq!(places(&saved(owner, "again", own)), [(CANNOT.to_string(), "steps[0].approvers[0]".to_string())]);
        let begin = |request: &str| places(&start(owner, "first", request, Map::new()).expect(202).json());
        assert_eq!(begin("r1"), expected);
        ours.member("zoe", "member");
        assert_eq!(begin("r2"), []);
        owner.send("DELETE", "/api/members/zoe", &[], None).expect(204);
        assert_eq!(begin("r3"), expected);
    });
}

/// Workflows that are saved together are checked in their new versions.
#[test]
fn workflows_saved_together_are_checked_in_their_new_versions() {
    everywhere(|place| {
        let server = place.start();
        let ours = organization(&server);
        let one = |id: &str, text: &str| Value::map([("id", Value::from(id)), ("data", definition(text))]);
        let caller = r#"{"steps":[{"type":"subworkflow","id":"s","workflow":"asks"}]}"#;
        let asks = |who: &str| format!(r#"{{"steps":[{{"type":"approval","id":"a","approvers":["{who}","bob"]}}]}}"#);
        let synced = |all: Vec<Value>| {
            let answer = ours.owner.post("/api/workflows/sync-all", &Value::map([("workflows", all.into())]));
            places(&list(&answer.expect(200).json(), "workflows")[0])
        };
        let told = [(CANNOT.to_string(), "steps[0]".to_string())];
        assert_eq!(synced(vec![one("calls", caller), one("asks", &asks("zoe"))]), told);
        assert_eq!(synced(vec![one("calls", caller), one("asks", &asks("ada"))]), []);
        assert_eq!(synced(vec![one("calls", caller), one("asks", &asks("eve"))]), told);
        let gone = [("unknown_workflow".to_string(), "steps[0].workflow".to_string())];
        assert_eq!(synced(vec![one("calls", caller)]), gone, "what it starts is gone");
        // A workflow that starts itself gives one warning, about its new version.
        let own = |who: &str| {
            format!(
                r#"{{"steps":[{{"type":"approval","id":"a","approvers":["{who}","bob"]}},{{"type":"subworkflow","id":"b","workflow":"again","when":{{"ref":"@input.more"}}}}]}}"#
            )
        };
        saved(&ours.owner, "again", &own("zoe"));
        assert_eq!(places(&saved(&ours.owner, "again", &own("ada"))), []);
    });
}

/// If a save fails, nothing is saved.
#[test]
fn a_failed_approver_lookup_saves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let token = server.token.clone().unwrap();
    let asks = |who: &str| format!(r#"{{"steps":[{{"type":"approval","id":"a","approvers":["{who}"]}}]}}"#);
    let whole = |id: &str, who: &str| Value::map([("id", Value::from(id)), ("data", definition(&asks(who)))]);
    server.owner().put("/api/members/bob", &Value::map([("role", Value::from("member"))])).expect(200);
    let before = saved(&server.owner(), "kept", &asks("zoe"));
    assert_eq!(server.stop(), Some(0));
    let store = SqliteStore::open(&folder.path().join("data/journal.db")).unwrap();
    let bob = store.resource("member", "default", "bob").unwrap().unwrap();
    let key = keys::load(&folder.path().join(".config/mainspring/key")).unwrap();
    let (expected, broken) = (bob.version, ResourceRow { body: b"{".to_vec(), ..bob });
    let puts = vec![Put { resource: ResourceRow { body: seal_resource(&key, &broken), ..broken }, expected }];
    assert_eq!(store.change(&Change { puts, ..Change::default() }), Ok(ChangeOutcome::Done));
    drop(store);
    let server = Server::start(folder.path());
    let owner = server.client(&token);
    let all = Value::map([("workflows", Value::List(vec![whole("new", "zoe"), whole("kept", "bob")]))]);
    let update = Value::map([("data", definition(&asks("bob")))]);
    for refused in [
        owner.post("/api/workflows/sync", &whole("new", "bob")),
        owner.post("/api/workflows/sync", &whole("kept", "bob")),
        owner.post("/api/workflows/sync-all", &all),
        owner.put("/api/workflows/kept", &update),
    ] {
        assert!(refused.expect(500).text.contains("The stored member `bob` cannot be read"));
    }
    owner.get("/api/workflows/new").expect(404);
    let kept = owner.get("/api/workflows/kept").expect(200).json();
    assert_eq!(kept.get("workflowHash"), before.get("workflowHash"));
    assert_eq!(list(&owner.get("/api/workflows/kept/history").expect(200).json(), "history").len(), 1);
}

/// More approvers than are looked up one by one.
#[test]
fn many_approvers_are_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = organization(&server);
    let mut names: Vec<Value> = (0..400).map(|number| Value::from(format!("zoe{number}"))).collect();
    names.extend([Value::from("bob"), "ada".into()]);
    let gate = |id: &str, approvers: Vec<Value>| {
        let step = [("id", Value::from(id)), ("type", "approval".into()), ("count", 2u64.into())];
        Value::map(step.into_iter().chain([("approvers", Value::List(approvers))]))
    };
    let steps = [gate("a", names.clone()), gate("b", vec!["bob".into(), "ada".into()])];
    let body = Value::map([("definition", Value::map([("steps", Value::List(steps.to_vec()))]))]);
    let checked = ours.owner.post("/api/definitions/validate", &body).expect(200).json();
    let found = places(&checked);
    assert_eq!(found.len(), 100, "an answer has a bound");
    assert!(found.iter().all(|(code, path)| code == CANNOT && path.starts_with("steps[0].")), "{found:?}");
}

fn gate_of(client: &Client, id: &str) -> Value {
    let listed = list(&client.get("/api/approvals").expect(200).json(), "approvals");
    let found = listed.into_iter().find(|gate| text(gate, "executionId") == id).unwrap();
    let single = client.get(&format!("/api/approvals/{}", text(&found, "id"))).expect(200).json();
    assert_eq!(single, found);
    found
}

/// Each approver of a gate as `name role approved decides`, and true if the gate can be approved.
fn pictured(gate: &Value) -> (Vec<String>, bool) {
    let each = |one: &Value| {
        let is = |key: &str| one.get(key).and_then(Value::as_bool).unwrap();
        let role = one.get("role").unwrap().as_text().unwrap_or("-").to_string();
        format!("{} {role} {} {}", text(one, "userId"), is("hasApproved"), is("canDecide"))
    };
    let all = list(gate, "approvers").iter().map(each).collect();
    (all, gate.get("canBeApproved").and_then(Value::as_bool).unwrap())
}

fn approve(client: &Client, gate: &Value) -> Reply {
    let body = Value::map([("approve", Value::Bool(true))]);
    client.post(&format!("/api/approvals/{}/decide", text(gate, "id")), &body)
}

#[test]
fn an_open_gate_lists_able_approvers_and_their_sufficiency() {
    everywhere(|place| {
        let server = place.start();
        let ours = organization(&server);
        let begin = |name: &str, definition: &str| {
            saved(&ours.owner, name, definition);
            let id = start(&ours.owner, name, "r", Map::new()).expect(202).text_at("executionId");
            ours.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
            id
        };
        let id =
            begin("named", r#"{"steps":[{"type":"approval","id":"a","approvers":["bob","eve","zoe"],"count":2}]}"#);
        let gate = gate_of(&ours.owner, &id);
        let told = |lines: [&str; 3], is_enough: bool| (lines.map(String::from).to_vec(), is_enough);
        let short = told(["bob member false true", "eve viewer false false", "zoe - false false"], false);
        assert_eq!(pictured(&gate), short);
        let page = format!("/approve/{}", text(&gate, "id"));
        let warns = |client: &Client| client.get(&page).expect(200).text.contains("Too few");
        assert!(warns(&ours.owner));
        // A caller who may not list members sees who can decide, without roles.
        let robot = ours.member("robot", "agent");
        assert_eq!(
            pictured(&gate_of(&robot, &id)),
            told(["bob - false true", "eve - false false", "zoe - false false"], false)
        );
        let (bob, zoe) = (ours.member("bob", "member"), ours.member("zoe", "admin"));
        let enough = told(["bob member false true", "eve viewer false false", "zoe admin false true"], true);
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), enough);
        assert!(!warns(&ours.owner));
        approve(&bob, &gate).expect(200);
        let half = told(["bob member true false", "eve viewer false false", "zoe admin false true"], true);
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), half);
        // Bob has approved, and cannot approve a second time.
        ours.member("zoe", "viewer");
        let few = told(["bob member true false", "eve viewer false false", "zoe viewer false false"], false);
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), few);
        ours.member("zoe", "admin");
        // An approval by a user stays valid after the user is removed.
        ours.owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
        let gone = told(["bob - true false", "eve viewer false false", "zoe admin false true"], true);
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), gone);
        approve(&zoe, &gate).expect(200);
        // Without named approvers: the owner of the execution and the admins.
        let id = begin("open", r#"{"steps":[{"type":"approval","id":"a","count":3}]}"#);
        let gate = gate_of(&ours.owner, &id);
        assert_eq!(pictured(&gate), (Vec::new(), false));
        ours.member("cem", "admin");
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), (Vec::new(), true));
        approve(&zoe, &gate).expect(200);
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), (Vec::new(), true));
        ours.member("cem", "member");
        assert_eq!(pictured(&gate_of(&ours.owner, &id)), (Vec::new(), false));
    });
}

#[test]
fn the_command_line_prints_server_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let caller = Caller::owner(&server);
    let file = caller.folder().join("ship.yaml");
    fs::write(file, "steps:\n  - {type: approval, id: ask, approvers: [zoe]}\n").unwrap();
    let address = format!("http://{}", server.address);
    let said = |arguments: &[&str]| {
        let answer = caller.call(arguments);
        assert_eq!(answer.exit, Some(0), "{answer:?}");
        let warns = answer.stderr.matches("warning[approver_cannot_decide]: \"zoe\" is no member").count();
        (warns, answer)
    };
    for (arguments, times) in [
        (&["validate", "ship.yaml", "--server", &address][..], 1),
        (&["validate", "ship.yaml"], 0),
        (&["plan", "ship.yaml", "--server", &address], 1),
        (&["save", "ship.yaml"], 1),
        (&["save", "ship.yaml", "--json"], 1),
        (&["run", "ship", "--detach"], 1),
        (&["run", "ship.yaml", "--save", "--detach"], 1),
    ] {
        let (warned, answer) = said(arguments);
        assert_eq!(warned, times, "{arguments:?} {answer:?}");
        assert!(times == 0 || answer.stderr.contains("steps[0].approvers[0]"), "{answer:?}");
    }
    for arguments in [&["validate", "ship.yaml", "--json", "--server", &address][..], &["save", "ship.yaml", "--json"]]
    {
        let (_, answer) = said(arguments);
        let told = places(&json::read(answer.stdout.as_bytes()).unwrap().value);
        assert_eq!(told.iter().map(|(code, _)| code.as_str()).collect::<Vec<_>>(), [TOO_FEW, CANNOT]);
    }
}
