//! Rejected requests are audited in the organization of their credential, in bounded number.

use mainspring_kernel::value::Value;

use super::{
    client::Client,
    process::{Organization, Server, everywhere},
};

/// The audit entries of rejected requests: action, actor, target and detail.
fn refusals(owner: &Client) -> Vec<(String, String, String, Value)> {
    let log = owner.get("/api/audit?limit=200").expect(200).json();
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    let entries = log.get("entries").and_then(Value::as_list).unwrap().to_vec();
    let refused = entries.into_iter().filter(|entry| text(entry, "action").ends_with(".refused"));
    refused
        .map(|entry| {
            let [action, actor, target] = ["action", "actor", "target"].map(|key| text(&entry, key));
            (action, actor, target, entry.get("detail").cloned().unwrap_or_default())
        })
        .collect()
}

fn detail(by: &str, code: &str, address: &str) -> Value {
    Value::map([("by", Value::from(by)), ("code", code.into()), ("address", address.into())])
}

fn create_token(client: &Client, fields: &[(&str, Value)]) -> (String, String) {
    let name = [("name", Value::from("n"))];
    let made = client.post("/api/tokens", &Value::map(name.into_iter().chain(fields.iter().cloned()))).expect(201);
    (made.text_at("id"), made.text_at("token"))
}

#[test]
fn rejected_credentials_are_audited_in_their_organization() {
    everywhere(|place| {
        let server = place.start();
        let (ours, others) = (Organization::new(&server, "acme"), Organization::new(&server, "globex"));
        let vic = ours.member("vic", "viewer");
        let ((id, token), (other, signs_in)) = (create_token(&vic, &[]), create_token(&vic, &[]));
        let vic = server.client(&token);
        vic.put("/api/members/vic", &Value::map([("role", Value::from("owner"))])).expect(403);
        vic.get("/api/audit").expect(403);
        for id in [&id, &other] {
            ours.owner.send("DELETE", &format!("/api/tokens/{id}"), &[], None).expect(204);
        }
        vic.get("/api/executions").expect(401);
        let sign_in = Value::map([("token", Value::from(signs_in.as_str()))]);
        server.nobody().post("/api/session", &sign_in).expect(401);
        // Without an organization: an unknown token, a known id with another secret, and no token.
        server.client(&format!("msp_{}_{}", "0".repeat(18), "0".repeat(64))).get("/api/executions").expect(401);
        server.client(&format!("msp_{id}_{}", "0".repeat(64))).get("/api/executions").expect(401);
        server.nobody().get("/api/executions").expect(401);
        let here = "127.0.0.1";
        let (forbidden, unauthorized) = (detail(&id, "forbidden", here), detail(&id, "unauthorized", here));
        let entry = |action: &str, target: &str, detail: &Value| {
            (action.to_string(), "vic".to_string(), target.to_string(), detail.clone())
        };
        let found = refusals(&ours.owner);
        assert_eq!(
            found,
            [
                entry("access.refused", "PUT /api/members/{id}", &forbidden),
                entry("access.refused", "GET /api/audit", &forbidden),
                entry("session.refused", "GET /api/executions", &unauthorized),
                entry("session.refused", "sign-in", &detail(&other, "unauthorized", here)),
            ]
        );
        assert!(refusals(&others.owner).is_empty() && refusals(&server.owner()).is_empty());
        let proof = ours.owner.get("/api/audit/verify").expect(200).json();
        assert_eq!(proof.get("ok"), Some(&Value::Bool(true)), "{proof:?}");
    });
}

#[test]
fn expired_credentials_are_audited_and_repeated_refusals_merged() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--anonymous-rate-limit-per-second", "0"]);
    let ours = Organization::new(&server, "acme");
    // The member is removed with all tokens.
    let bob = ours.member("bob", "member");
    ours.owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
    bob.get("/api/executions").expect(401);
    // The token has expired.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let soon = mainspring_kernel::time::rfc3339(now + 1_500);
    let (id, token) = create_token(&ours.owner, &[("expiresAt", soon.as_str().into())]);
    let short = server.client(&token);
    let over = std::iter::repeat_with(|| short.get("/api/me")).find(|reply| reply.status != 200).unwrap();
    over.expect(401);
    let found = refusals(&ours.owner);
    let seen: Vec<_> = found.iter().map(|(action, actor, ..)| (action.as_str(), actor.as_str())).collect();
    assert_eq!(seen, [("session.refused", "bob"), ("session.refused", "ada")]);
    assert_eq!(found[1].3.get("by"), Some(&Value::from(id.as_str())));
    let vic = ours.member("vic", "viewer");
    for _ in 0..40 {
        vic.get("/api/audit").expect(403);
        short.get("/api/me").expect(401);
    }
    // Three entries per token in ten minutes. The next entry of another caller contains the number of suppressed
    // ones.
    assert_eq!(refusals(&ours.owner).len(), 1 + 3 + 3);
    ours.member("eve", "viewer").get("/api/audit").expect(403);
    let (_, actor, _, detail) = refusals(&ours.owner).pop().unwrap();
    assert_eq!((actor.as_str(), detail.get("suppressed")), ("eve", Some(&Value::from(37 + 38u64))));
    // Other organizations have their own bound.
    let others = Organization::new(&server, "globex");
    others.member("eve", "viewer").get("/api/audit").expect(403);
    assert_eq!(refusals(&others.owner).len(), 1);
}
