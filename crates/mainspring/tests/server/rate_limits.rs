//! Rate limits: the rejected callers, their `Retry-After`, and the callers that are not affected.

use super::{client::Reply, process::Server};

/// More requests than a burst at the smallest rate, the refill while they are sent included.
const MORE_THAN_A_BURST: usize = 200;

fn is_rate_limited(reply: &Reply) -> bool {
    if reply.status != 429 {
        return false;
    }
    assert_eq!(reply.text_at("code"), "RATE_LIMITED", "{reply:?}");
    let number = |name: &str| reply.header(name).and_then(|text| text.parse::<u64>().ok());
    assert!(number("retry-after").is_some_and(|seconds| (1..=10).contains(&seconds)), "{reply:?}");
    assert_eq!((number("ratelimit-limit"), number("ratelimit-remaining")), (Some(10), Some(0)), "{reply:?}");
    true
}

#[test]
fn guessed_credentials_are_rate_limited_without_affecting_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--anonymous-rate-limit-per-second", "1"]);
    let owner = server.owner();
    owner.get("/api/me").expect(200);
    let guess = format!("msp_{}_{}", "0".repeat(18), "0".repeat(64));
    // Unknown and missing credentials, missing routes and public routes share one bucket by address.
    let (guesser, nobody) = (server.client(&guess), server.nobody());
    let mut guesses = (0..MORE_THAN_A_BURST).map(|_| guesser.get("/api/me"));
    assert!(guesses.any(|reply| is_rate_limited(&reply)));
    for path in ["/api/me", "/api/nothing", "/openapi.json"] {
        assert!((0..MORE_THAN_A_BURST).any(|_| is_rate_limited(&nobody.get(path))), "{path}");
    }
    assert!((0..MORE_THAN_A_BURST).any(|_| is_rate_limited(&nobody.send("DELETE", "/api/workflows", &[], None))));
    // An authenticated caller from the same address, and health checks.
    for _ in 0..MORE_THAN_A_BURST {
        let me = owner.get("/api/me").expect(200);
        assert_eq!(me.header("ratelimit-limit"), Some("10000"));
        nobody.get("/healthz").expect(200);
    }
    nobody.get("/readyz").expect(200);
}

#[test]
fn a_token_has_a_rate_limit_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--rate-limit-per-second", "1", "--anonymous-rate-limit-per-second", "0"];
    let server = Server::start_with(folder.path(), &arguments);
    let (owner, nobody) = (server.owner(), server.nobody());
    let other = owner.post("/api/tokens", &mainspring_kernel::value::Value::map([("name", "other".into())]));
    let other = server.client(&other.expect(201).text_at("token"));
    assert!((0..MORE_THAN_A_BURST).any(|_| is_rate_limited(&owner.get("/api/me"))));
    other.get("/api/me").expect(200);
    for _ in 0..MORE_THAN_A_BURST {
        assert_eq!(nobody.get("/api/me").expect(401).header("ratelimit-limit"), None);
    }
}
