//! Limits of one member and of one request, on a server process.

use mainspring_kernel::value::Value;

use super::{
    process::{Organization, Server},
    start::save,
};

#[test]
fn a_member_has_at_most_fifty_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let vic = ours.member("vic", "viewer");
    let make = || vic.post("/api/tokens", &Value::map([("name", Value::from("n"))]));
    let ids: Vec<String> = (1..50).map(|_| make().expect(201).text_at("id")).collect();
    let refused = make().expect(409);
    assert!(refused.text_at("code") == "CONFLICT" && refused.text.contains("revoke"), "{refused:?}");
    let others = ours.owner.post("/api/tokens", &Value::map([("name", Value::from("n")), ("userId", "vic".into())]));
    others.expect(409);
    ours.owner.post("/api/tokens", &Value::map([("name", Value::from("n"))])).expect(201);
    vic.send("DELETE", &format!("/api/tokens/{}", ids[0]), &[], None).expect(204);
    make().expect(201);
    make().expect(409);
}

#[test]
fn a_version_is_a_semantic_version() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "hello", super::start::echo());
    let edit = |version: &str| {
        owner.put("/api/workflows/hello", &Value::map([("version", Value::from(version)), ("data", data(1, version))]))
    };
    for wrong in ["1.2", "01.0.0", "1.0.0-01", "1.0.0-", "1.0.0+a+b"] {
        let refused = edit(wrong).expect(400);
        assert!(refused.text.contains("SemVer") && refused.text.contains("\"version\""), "{refused:?}");
    }
    edit("2.0.0-rc.1+build.01").expect(200);
}

/// A definition whose schema has a number of regular expressions.
fn data(patterns: usize, title: &str) -> Value {
    let property = |number: usize| (format!("p{number}"), Value::map([("pattern", Value::from("^a$"))]));
    let properties: std::collections::BTreeMap<String, Value> = (0..patterns).map(property).collect();
    let schema = Value::map([("title", Value::from(title)), ("properties", Value::map(properties))]);
    let step = [("id", Value::from("s")), ("type", "code".into()), ("code", "export default () => ({})".into())];
    let step = Value::map(step.into_iter().chain([("outputSchema", schema)]));
    Value::map([("steps", Value::List(vec![step]))])
}

#[test]
fn definitions_of_one_request_share_the_compile_budget() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let workflow = |id: &str, patterns: usize| Value::map([("id", Value::from(id)), ("data", data(patterns, id))]);
    let all = |patterns: [usize; 2]| {
        let workflows = vec![workflow("one", patterns[0]), workflow("two", patterns[1])];
        owner.post("/api/workflows/sync-all", &Value::map([("workflows", Value::List(workflows))]))
    };
    let refused = all([500, 501]).expect(400);
    assert!(refused.text.contains("1000 regular expressions"), "{refused:?}");
    all([500, 500]).expect(200);
}
