//! Browser sessions: the rights of a cookie, its protection, and its end.

use mainspring_kernel::value::Value;

use super::process::{Organization, Server, everywhere};

#[test]
fn a_cookie_is_valid_as_long_as_its_token() {
    everywhere(|place| {
        let mut server = place.start();
        let token = server.token.clone().unwrap();
        let ours = Organization::new(&server, "acme");
        let bob = ours.member("bob", "member");
        let (first, second) = (bob.signed_in(), bob.signed_in());
        let me = first.get("/api/me").expect(200);
        assert_eq!((me.text_at("userId"), me.text_at("role")), ("bob".into(), "member".into()));
        assert_eq!(me.text, bob.get("/api/me").expect(200).text, "it carries what the token carries");
        assert!(!first.cookie().contains("msp_"), "{}", first.cookie());
        // Signing out ends the session of this browser only.
        first.send("DELETE", "/api/session", &[], None).expect(204);
        first.get("/api/me").expect(401);
        first.send("DELETE", "/api/session", &[], None).expect(204);
        second.get("/api/me").expect(200);
        // Sessions are stored, so a restart ends none.
        server.kill();
        let server = place.start();
        let ada = ours.owner.moved_to(&server.address);
        let second = second.moved_to(&server.address);
        second.get("/api/me").expect(200);
        // Audit entries of a session name its token.
        let name = Value::map([("name", Value::from("by a browser"))]);
        let made = second.post("/api/tokens", &name).expect(201).text_at("id");
        let audit = ada.get("/api/audit?limit=200").expect(200).text;
        assert!(audit.contains("session.create") && audit.contains("session.delete") && audit.contains(&made));
        // Removing the member ends the session, and so does revoking its token.
        ada.send("DELETE", "/api/members/bob", &[], None).expect(204);
        second.get("/api/me").expect(401);
        let owner = server.client(&token);
        let made = owner.post("/api/tokens", &name).expect(201);
        let browser = server.client(&made.text_at("token")).signed_in();
        browser.get("/api/me").expect(200);
        owner.send("DELETE", &format!("/api/tokens/{}", made.text_at("id")), &[], None).expect(204);
        browser.get("/api/me").expect(401);
    });
}

#[test]
fn signing_in_takes_a_valid_token_from_the_same_origin() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let nobody = server.nobody();
    let sign_in = |token: &str, headers: &[(&str, &str)]| {
        nobody.send("POST", "/api/session", headers, Some(&format!(r#"{{"token": "{token}"}}"#)))
    };
    let token = server.token.clone().unwrap();
    sign_in("msp_0_0", &[]).expect(401);
    let (rest, last) = token.split_at(token.len() - 1);
    sign_in(&format!("{rest}{}", if last == "0" { "1" } else { "0" }), &[]).expect(401);
    sign_in(&token, &[("origin", "http://evil.example")]).expect(403);
    let signed = sign_in(&token, &[("origin", &format!("http://{}", server.address))]).expect(201);
    let cookie = signed.header("set-cookie").unwrap();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let scoped = Value::map([("name", Value::from("n")), ("scopes", Value::List(vec!["workflows:read".into()]))]);
    let scoped = server.owner().post("/api/tokens", &scoped).expect(201).text_at("token");
    let browser = server.client(&scoped).signed_in();
    browser.get("/api/workflows").expect(200);
    browser.get("/api/executions").expect(403);
    // At most twenty sessions exist, and the oldest is ended.
    let browsers: Vec<_> = (0..21).map(|_| server.client(&scoped).signed_in()).collect();
    browser.get("/api/workflows").expect(401);
    browsers[0].get("/api/workflows").expect(401);
    browsers[1].get("/api/workflows").expect(200);
    // A token in the request takes precedence over cookies.
    let both = [("cookie", browsers[1].cookie())];
    server.client("msp_0_0").send("GET", "/api/workflows", &both, None).expect(401);
    server.owner().send("GET", "/api/executions", &both, None).expect(200);
}
