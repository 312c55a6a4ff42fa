//! Organizations: creation and changes of their settings.

use mainspring_kernel::{json::compact, value::Map};

use super::{
    client::{Client, Reply},
    process::{Organization, Server},
    start::{echo, save, start},
};

fn patch(client: &Client, body: &str) -> Reply {
    client.send("PATCH", "/api/organization", &[], Some(body))
}

#[test]
fn a_new_organization_starts_nothing_until_enabled() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let make = |body: &str| owner.send("POST", "/api/organizations", &[], Some(body));
    make(r#"{"id": "acme", "owner": "ada", "features": {"other": true}}"#).expect(400);
    let ada = server.client(&make(r#"{"id": "acme", "owner": "ada"}"#).expect(201).text_at("token"));
    save(&ada, "hello", echo());
    let refused = start(&ada, "hello", "r1", Map::new()).expect(409);
    assert_eq!(refused.text_at("code"), "WORKFLOW_RUNTIME_DISABLED");
    patch(&ada, r#"{"features": {"workflow_runtime_v1": true}}"#).expect(200);
    start(&ada, "hello", "r1", Map::new()).expect(202);
    let on = r#"{"id": "globex", "owner": "ada", "features": {"workflow_runtime_v1": true}}"#;
    let ada = server.client(&make(on).expect(201).text_at("token"));
    save(&ada, "hello", echo());
    start(&ada, "hello", "r1", Map::new()).expect(202);
    // The first organization can start workflows at once.
    save(&owner, "hello", echo());
    start(&owner, "hello", "r1", Map::new()).expect(202);
}

#[test]
fn limits_are_changed_individually() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Organization::new(&server, "acme").owner;
    for (limits, expected) in [
        (r#"{"perUser": 3}"#, r#"{"perOrganization":50,"perUser":3}"#),
        (r#"{"perWorkflow": 2}"#, r#"{"perOrganization":50,"perUser":3,"perWorkflow":2}"#),
        (r#"{"perOrganization": 9}"#, r#"{"perOrganization":9,"perUser":3,"perWorkflow":2}"#),
        (r#"{"perWorkflow": null}"#, r#"{"perOrganization":9,"perUser":3}"#),
    ] {
        let changed = patch(&owner, &format!(r#"{{"limits": {limits}}}"#)).expect(200).json();
        assert_eq!(compact(changed.get("limits").unwrap()), expected);
    }
    for limits in [r#"{"perUser": 0}"#, r#"{"perWorkflow": 0}"#, r#"{"perDay": 1}"#] {
        patch(&owner, &format!(r#"{{"limits": {limits}}}"#)).expect(400);
    }
}
