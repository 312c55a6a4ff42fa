//! Members and tokens that a program without the installation's key has changed in the store have no effect.

use mainspring_kernel::value::{Map, Value};
use mainspring_store::{Change, ChangeOutcome, Put, ResourceRow, SEAL_BYTES, Store};

use super::{
    client::Client,
    limits::asks,
    process::{Organization, everywhere},
    start::{save, start},
    support::call,
};

fn row(store: &dyn Store, (kind, organization, id): (&str, &str, &str)) -> ResourceRow {
    store.catalogue().resource(kind, organization, id).unwrap().unwrap_or_else(|| panic!("no {kind} {id}"))
}

/// Writes a body over the stored one.
fn write(store: &dyn Store, at: (&str, &str, &str), body: Vec<u8>) {
    let row = row(store, at);
    let puts = vec![Put { expected: row.version, resource: ResourceRow { body, ..row } }];
    assert_eq!(store.catalogue().change(&Change { puts, ..Change::default() }), Ok(ChangeOutcome::Done));
}

/// Replaces a text in the content, which must contain it. `keeps` keeps the seal.
fn replaced(row: &ResourceRow, (old, new): (&str, &str), keeps: bool) -> Vec<u8> {
    let (seal, content) = row.body.split_at(SEAL_BYTES);
    let content = std::str::from_utf8(content).unwrap();
    assert!(content.contains(old), "{content}");
    let seal = if keeps { seal } else { &[] };
    [seal, content.replace(old, new).as_bytes()].concat()
}

#[test]
fn members_and_tokens_that_were_changed_in_the_store_have_no_effect() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let store = place.raw_store();
        let users = ["kept", "bare", "promoted"];
        let clients = users.map(|user| ours.member(user, "viewer"));
        let id = |client: usize| clients[client].token().split('_').nth(1).unwrap().to_string();
        let (kept, bare) = (id(0), id(1));
        // Two viewers become the owner, and one gets another role.
        let changes = [
            (("token", "", kept.as_str()), (r#""user":"kept""#, r#""user":"ada""#), true),
            (("token", "", bare.as_str()), (r#""user":"bare""#, r#""user":"ada""#), false),
            (("member", "acme", "promoted"), (r#""viewer""#, r#""owner""#), true),
        ];
        let before = changes.map(|(at, ..)| row(&*store, at).body);
        for (at, text, keeps) in changes {
            let body = replaced(&row(&*store, at), text, keeps);
            write(&*store, at, body);
        }
        for client in &clients {
            let refused = client.get("/api/me").expect(500);
            assert!(refused.text.contains("cannot read its stored data"), "{refused:?}");
            client.put("/api/members/mallory", &Value::map([("role", Value::from("owner"))])).expect(500);
        }
        assert_eq!(ours.owner.get("/api/me").expect(200).text_at("role"), "owner");
        let mut doctor = place.reading_command(&["doctor", "--deep", "--json"]);
        doctor.env_remove("MAINSPRING_TOKEN");
        let report = call(doctor, b"");
        assert_ne!(report.exit, Some(0), "{report:?}");
        for (kind, id) in [("token", &kept), ("token", &bare)] {
            assert!(report.stdout.contains(&format!(r#"{kind} \"{id}\": it has no valid seal"#)), "{report:?}");
        }
        assert!(report.stdout.contains(r#"member acme/\"promoted\": it has no valid seal"#), "{report:?}");
        // The rows as they were are valid again.
        for ((at, ..), body) in changes.into_iter().zip(before) {
            write(&*store, at, body);
        }
        for client in &clients {
            assert_eq!(client.get("/api/me").expect(200).text_at("role"), "viewer");
        }
    });
}

/// The columns of an execution have no seal. Those that decide who may act on it are compared with its journal.
#[test]
fn an_execution_with_another_initiator_in_the_store_cannot_be_acted_on() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let mallory = ours.member("mallory", "member");
        let theirs = Organization::new(&server, "globex");
        let gate = Value::List(vec![Value::map([("id", Value::from("ask")), ("type", "approval".into())])]);
        save(&ours.owner, "pay", gate);
        let id = start(&ours.owner, "pay", "r", Map::new()).expect(202).text_at("executionId");
        let token = asks(&ours.owner, &id).text_at("resumeToken");
        let decide = |client: &Client| {
            let body = Value::map([("approve", Value::from(true)), ("resumeToken", token.as_str().into())]);
            client.post(&format!("/api/executions/{id}/approve"), &body)
        };
        let cancel = |client: &Client| client.post(&format!("/api/executions/{id}/cancel"), &Value::Map(Map::new()));
        decide(&mallory).expect(403);
        cancel(&mallory).expect(403);
        let session = ours.session_of(&id);
        session.get("/api/me").expect(200);
        let changes =
            [("initiator_user_id", "ada", "mallory", &mallory), ("organization", "acme", "globex", &theirs.owner)];
        for (column, own, forged, client) in changes {
            place.run_sql(&format!("UPDATE executions SET {column} = '{forged}'"));
            for refused in [decide(client), cancel(client)] {
                let text = refused.expect(500).text;
                assert!(text.contains("cannot read its stored data"), "{column}: {text}");
            }
            place.run_sql(&format!("UPDATE executions SET {column} = '{own}'"));
        }
        decide(&ours.owner).expect(200);
    });
}

/// The records of a revocation and of a removal outlive the rows that they ended.
#[test]
fn a_removed_member_and_a_revoked_token_stay_so_if_their_rows_come_back() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let store = place.raw_store();
        let eve = ours.member("eve", "admin");
        let token = eve.token().split('_').nth(1).unwrap().to_string();
        let rows = [("member", "acme", "eve"), ("token", "", token.as_str())].map(|at| row(&*store, at));
        ours.owner.send("DELETE", "/api/members/eve", &[], None).expect(204);
        eve.get("/api/me").expect(401);
        for row in rows {
            let puts = vec![Put { expected: 0, resource: row }];
            assert_eq!(store.catalogue().change(&Change { puts, ..Change::default() }), Ok(ChangeOutcome::Done));
            eve.get("/api/me").expect(401);
        }
    });
}
