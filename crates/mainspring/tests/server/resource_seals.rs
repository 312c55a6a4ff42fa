//! Members and tokens that a program without the installation's key has changed in the store have no effect.

use mainspring_kernel::value::Value;
use mainspring_store::{Change, ChangeOutcome, Put, ResourceRow, SEAL_BYTES, Store};

use super::{
    process::{Organization, everywhere},
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
