//! Members as resources, and concurrent creation of tokens for one member.

use mainspring_kernel::value::Value;

use super::process::{Organization, Server, everywhere};

/// Tokens that are created concurrently.
const AT_ONCE: usize = 10;

#[test]
fn members_are_edited_with_an_etag() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let put = |tag: &str, body: &str| ours.owner.send("PUT", "/api/members/bob", &[("if-match", tag)], Some(body));
    let remove = |tag: &str| ours.owner.send("DELETE", "/api/members/bob", &[("if-match", tag)], None);
    put("*", r#"{"name": "Bob"}"#).expect(400);
    put("\"1\"", r#"{"role": "member"}"#).expect(412);
    let made = put("*", r#"{"role": "member"}"#).expect(200);
    let seen = ours.owner.get("/api/members/bob").expect(200);
    assert_eq!((&seen.text, seen.header("etag")), (&made.text, made.header("etag")));
    assert_eq!(seen.json().get("operator"), Some(&Value::Bool(false)));
    let tag = seen.header("etag").unwrap();
    // Absent fields stay unchanged.
    let named = put(tag, r#"{"name": "Bob"}"#).expect(200);
    assert_eq!((named.text_at("role"), named.text_at("name")), ("member".into(), "Bob".into()));
    put(tag, r#"{"role": "viewer"}"#).expect(412);
    remove(tag).expect(412);
    let tag = named.header("etag").unwrap();
    let changed = put(tag, r#"{"role": "viewer"}"#).expect(200);
    assert_eq!((changed.text_at("role"), changed.text_at("name")), ("viewer".into(), "Bob".into()));
    remove(changed.header("etag").unwrap()).expect(204);
    ours.owner.get("/api/members/bob").expect(404);
    // The tag of a removed member does not match a new one with the same name.
    put(tag, r#"{"role": "member"}"#).expect(412);
    put("*", r#"{"role": "member"}"#).expect(200);
    put(made.header("etag").unwrap(), r#"{"role": "admin"}"#).expect(412);
}

#[test]
fn concurrent_token_creations_all_succeed() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let bob = ours.member("bob", "member");
        let body = Value::map([("name", Value::from("one of many"))]);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| bob.post("/api/tokens", &body).status)).collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        assert_eq!(statuses, [201; AT_ONCE]);
    });
}
