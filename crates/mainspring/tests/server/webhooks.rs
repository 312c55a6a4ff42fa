//! Webhooks: verification, identity of deliveries, the log, and deliveries that are repeated.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use mainspring_kernel::value::{Map, Value};
use mainspring_store::memory::MemoryStore;
use ring::hmac;

use super::{
    client::{Client, Reply},
    process::{Server, everywhere},
    schedules::Nodes,
    start::{echo, save},
    triggers::create,
};

fn signature(secret: &str, body: &str) -> String {
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body.as_bytes());
    code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn deliver(nobody: &Client, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    nobody.send("POST", &format!("/webhooks/{path}"), headers, Some(body))
}

const MAPPED: &str = r#", "variableMapping": {"name": "$.who"}"#;

#[test]
fn concurrent_deliveries_with_one_id_start_one_execution() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "w1", echo());
        let id = create(&owner, "w1", r#"{"type": "webhook", "path": "race"}"#, MAPPED).expect(201).text_at("id");
        let nobody = server.nobody();
        let replies: Vec<Reply> = thread::scope(|scope| {
            let send = || deliver(&nobody, "race", &[("x-delivery-id", "d-1")], r#"{"who": "Ada"}"#);
            let threads: Vec<_> = (0..64).map(|_| scope.spawn(send)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let executions: BTreeSet<String> = replies.iter().map(|reply| reply.text_at("executionId")).collect();
        assert_eq!(executions.len(), 1);
        assert_eq!(replies.iter().filter(|reply| reply.status == 202).count(), 1);
        let listed = owner.get("/api/executions").expect(200).json();
        assert_eq!(listed.get("executions").and_then(Value::as_list).unwrap().len(), 1);
        let log = owner.get(&format!("/api/triggers/{id}/deliveries")).expect(200).json();
        let log = log.get("deliveries").and_then(Value::as_list).unwrap();
        let outcomes = |wanted: &str| log.iter().filter(|run| run.get("outcome") == Some(&wanted.into())).count();
        assert_eq!((outcomes("started"), outcomes("duplicate")), (1, 63));
    });
}

#[test]
fn a_signature_is_verified_over_the_raw_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, nobody) = (server.owner(), server.nobody());
    save(&owner, "w1", echo());
    let github = r#"{"type": "webhook", "path": "gh", "secrets": ["new", "old"], "signature": {"scheme": "github"}}"#;
    create(&owner, "w1", github, MAPPED).expect(201);
    create(&owner, "w1", r#"{"type": "webhook", "path": "own", "secret": "new"}"#, MAPPED).expect(201);
    let headers = r#"{"type": "webhook", "path": "key", "headers": {"X-Api-Key": "k1"}}"#;
    create(&owner, "w1", headers, MAPPED).expect(201);
    let body = r#"{"who": "Ada", "space":  1}"#;
    let signed = |secret: &str| format!("sha256={}", signature(secret, body));
    let gh = |signature: &str, id: &str, body: &str| {
        deliver(&nobody, "gh", &[("x-hub-signature-256", signature), ("x-github-delivery", id)], body)
    };
    let first = gh(&signed("new"), "g-1", body).expect(202).text_at("executionId");
    // A captured request under another id starts nothing.
    assert_eq!(gh(&signed("new"), "g-2", body).expect(200).text_at("executionId"), first);
    // The sender has changed its secret since the first attempt.
    assert_eq!(gh(&signed("old"), "g-3", body).expect(200).text_at("executionId"), first);
    gh(&signed("other"), "g-4", body).expect(401);
    gh(&signed("new"), "g-5", &body.replace("  ", " ")).expect(401);
    deliver(&nobody, "gh", &[], body).expect(401);
    deliver(&nobody, "own", &[("x-signature", &signature("new", body))], body).expect(202);
    deliver(&nobody, "own", &[("x-signature", &signature("old", body))], body).expect(401);
    deliver(&nobody, "key", &[("x-api-key", "k1")], body).expect(202);
    deliver(&nobody, "key", &[("x-api-key", "k2")], body).expect(401);
}

#[test]
fn a_short_secret_is_saved_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    let warnings = |reply: &Reply| {
        let body = reply.json();
        let listed = body.get("warnings").and_then(Value::as_list).expect("warnings").to_vec();
        listed.iter().map(|text| text.as_text().unwrap().to_string()).collect::<Vec<_>>()
    };
    let config = |secret: &str| format!(r#"{{"type": "webhook", "path": "p", "secret": "{secret}"}}"#);
    let made = create(&owner, "w1", &config("123456789012345"), MAPPED).expect(201);
    assert!(warnings(&made)[0].contains("fewer than 16 bytes") && warnings(&made)[0].contains("openssl"), "{made:?}");
    let path = format!("/api/triggers/{}", made.text_at("id"));
    assert_eq!(warnings(&owner.get(&path).expect(200)), [] as [&str; 0], "a read does not open the secrets");
    let change =
        |config: &str| owner.send("PATCH", &path, &[], Some(&format!(r#"{{"config": {config}}}"#))).expect(200);
    assert_eq!(warnings(&change(&config("1234567890123456"))), [] as [&str; 0]);
    let both = r#"{"type": "webhook", "path": "p", "secrets": ["a", "b", "1234567890123456"]}"#;
    assert!(warnings(&change(both))[0].starts_with("2 secrets have"), "the stored one is replaced");
}

#[test]
fn a_delivery_without_an_id_is_recognized_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, nobody) = (server.owner(), server.nobody());
    save(&owner, "w1", echo());
    create(&owner, "w1", r#"{"type": "webhook", "path": "p"}"#, MAPPED).expect(201);
    let one = deliver(&nobody, "p", &[], r#"{"who": "Ada"}"#).expect(202).text_at("executionId");
    assert_eq!(deliver(&nobody, "p", &[], r#"{"who": "Ada"}"#).expect(200).text_at("executionId"), one);
    let other = |path: &str, body: &str| deliver(&nobody, path, &[], body).expect(202).text_at("executionId");
    let all = BTreeSet::from([one, other("p", r#"{"who": "Bob"}"#), other("p?a=1", r#"{"who": "Ada"}"#)]);
    assert_eq!(all.len(), 3);
    let get = nobody.get("/webhooks/p").expect(405);
    assert_eq!(get.header("allow"), Some("POST"));
    nobody.get("/webhooks/unknown").expect(404);
    deliver(&nobody, "p", &[("x-delivery-id", &"d".repeat(201))], "{}").expect(400);
    deliver(&nobody, "p", &[("content-type", "image/png")], "{}").expect(415);
    let large = format!(r#"{{"who": "{}"}}"#, "a".repeat(100 * 1024));
    deliver(&nobody, "p", &[], &large).expect(202);
    deliver(&nobody, "p", &[], &format!("\"{}\"", "a".repeat(256 * 1024))).expect(413);
}

#[test]
fn outcomes_are_logged_and_a_delivery_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, nobody) = (server.owner(), server.nobody());
    save(&owner, "w1", echo());
    let config = r#"{"type": "webhook", "path": "p", "secret": "s", "respond": "wait"}"#;
    let id = create(&owner, "w1", config, MAPPED).expect(201).text_at("id");
    let path = format!("/api/triggers/{id}");
    let body = r#"{"who": "Ada"}"#;
    let signed = signature("s", body);
    let send = || deliver(&nobody, "p", &[("x-signature", &signed)], body);
    let done = send().expect(200);
    assert!(done.text.contains(r#""output":{"said":{"name":"Ada"}}"#) && done.text_at("status") == "ok", "{done:?}");
    deliver(&nobody, "p", &[("x-signature", "00")], body).expect(401);
    let runs = || {
        let log = owner.get(&format!("{path}/deliveries")).expect(200).json();
        log.get("deliveries").and_then(Value::as_list).unwrap().to_vec()
    };
    let text = |run: &Value, key: &str| run.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    let outcomes = || runs().iter().map(|run| text(run, "outcome")).collect::<Vec<_>>();
    assert_eq!(outcomes(), ["refused", "started"]);
    let (refused, started) = (text(&runs()[0], "id"), text(&runs()[1], "id"));
    let redeliver = |run: &str| owner.post(&format!("{path}/deliveries/{run}/redeliver"), &Value::Map(Map::new()));
    let again = redeliver(&started).expect(202).text_at("executionId");
    assert_ne!(again, done.text_at("executionId"));
    let ended = owner.get(&format!("/api/executions/{again}/wait")).expect(200);
    assert!(ended.text.contains(r#""said":{"name":"Ada"}"#), "{ended:?}");
    assert!(!ended.text.contains(&signed), "signatures stay out of journals");
    redeliver(&refused).expect(409);
    redeliver("none").expect(404);
    // A disabled trigger, and a disabled workflow, start nothing.
    owner.post(&format!("{path}/disable"), &Value::Map(Map::new())).expect(200);
    assert_eq!(send().expect(409).text_at("code"), "TRIGGER_DISABLED");
    redeliver(&started).expect(409);
    owner.post(&format!("{path}/enable"), &Value::Map(Map::new())).expect(200);
    owner.put("/api/workflows/w1", &Value::map([("enabled", false)].map(|(key, flag)| (key, flag.into())))).expect(200);
    let other = r#"{"who": "Bob"}"#;
    let refused = deliver(&nobody, "p", &[("x-signature", &signature("s", other))], other).expect(409);
    assert_eq!(refused.text_at("code"), "WORKFLOW_DISABLED");
}

/// Stripe signs each retry again, with the time of the retry.
#[test]
fn a_retry_with_another_time_starts_nothing() {
    static NOW: AtomicU64 = AtomicU64::new(1_771_929_000_000);
    let nodes = Nodes::start(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
    let owner = &nodes.owner;
    save(owner, "w1", echo());
    let config = r#"{"type": "webhook", "path": "pay", "secret": "s", "signature": {"scheme": "stripe"}}"#;
    create(owner, "w1", config, MAPPED).expect(201);
    let send = |query: &str, body: &str| {
        let seconds = NOW.load(Ordering::SeqCst) / 1000;
        let signed = format!("t={seconds},v1={}", signature("s", &format!("{seconds}.{body}")));
        deliver(owner, &format!("pay{query}"), &[("stripe-signature", &signed)], body)
    };
    let body = r#"{"id": "evt_1", "who": "Ada"}"#;
    let first = send("", body).expect(202).text_at("executionId");
    NOW.fetch_add(3_600_000, Ordering::SeqCst);
    assert_eq!(send("", body).expect(200).text_at("executionId"), first);
    send("", r#"{"id": "evt_2", "who": "Ada"}"#).expect(202);
    // Without an id the time names the delivery. The query is not signed, and a captured request can have another one.
    let unnamed = send("", r#"{"who": "Bob"}"#).expect(202).text_at("executionId");
    assert_eq!(send("?again", r#"{"who": "Bob"}"#).expect(200).text_at("executionId"), unnamed);
}

/// A value that is nested too deeply would be written and could never be read again.
#[test]
fn an_event_that_is_nested_too_deeply_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    create(&owner, "w1", r#"{"type": "webhook", "path": "whole"}"#, "").expect(201);
    create(&owner, "w1", r#"{"type": "webhook", "path": "mapped"}"#, r#", "variableMapping": {"name": "$.a"}"#)
        .expect(201);
    let nobody = server.nobody();
    let (mut accepted, mut refused) = (0, 0);
    for levels in 85..=101 {
        let deep = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let manual = format!(
            r#"{{"workflowId": "w1", "clientRequestId": "r{levels}", "variables": {{"name": "n"}}, "metadata": {{"a": {deep}}}}}"#
        );
        for reply in [
            deliver(&nobody, "whole", &[], &format!(r#"{{"a": {deep}}}"#)),
            deliver(&nobody, "mapped", &[], &format!(r#"{{"a": {deep}}}"#)),
            owner.send("POST", "/api/triggers/manual/run", &[], Some(&manual)),
        ] {
            if reply.status != 202 {
                assert_eq!(reply.status, 400, "{levels}: {reply:?}");
                refused += 1;
                continue;
            }
            accepted += 1;
            let id = reply.text_at("executionId");
            for path in ["", "/steps", "/journal", "/receipts"] {
                owner.get(&format!("/api/executions/{id}{path}")).expect(200);
            }
        }
    }
    assert!(accepted >= 12 && refused >= 12, "{accepted} {refused}");
}

/// A sender tries a new address. The answer is what it expects, nothing starts, and the log says so.
#[test]
fn a_handshake_is_answered_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    let id = create(&owner, "w1", r#"{"type": "webhook", "path": "gh"}"#, "").expect(201).text_at("id");
    let deliver = |event: &str| {
        let headers = [("x-github-event", event), ("x-github-delivery", event)];
        server.nobody().send("POST", "/webhooks/gh", &headers, Some(r#"{"zen": "z"}"#))
    };
    assert_eq!(deliver("ping").expect(200).text_at("status"), "acknowledged");
    let log = owner.get(&format!("/api/triggers/{id}/deliveries")).expect(200).text;
    assert!(log.contains(r#""outcome":"skipped""#) && log.contains("`ping`"), "{log}");
    deliver("push").expect(202);
    let started = owner.get("/api/executions").expect(200).json();
    assert_eq!(started.get("executions").and_then(Value::as_list).map(<[Value]>::len), Some(1));
}
