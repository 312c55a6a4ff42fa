//! Privilege escalation: sessions, scopes, identities of others, former roles.

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::{
    client::Client,
    process::{Organization, Server},
    start::{echo, save, start},
};

fn gate() -> Value {
    Value::List(vec![Value::map([("id", Value::from("gate")), ("type", "approval".into())])])
}

fn token(client: &Client, fields: &[(&str, Value)]) -> super::client::Reply {
    let named = [("name", Value::from("t"))].into_iter().chain(fields.iter().cloned());
    client.post("/api/tokens", &Value::map(named))
}

fn role(ours: &Organization, member: &str, role: &str) {
    ours.owner.put(&format!("/api/members/{member}"), &Value::map([("role", Value::from(role))])).expect(200);
}

#[test]
fn a_session_has_its_members_rights_for_its_own_execution() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let bob = ours.member("bob", "member");
    save(&bob, "gated", gate());
    let mine = start(&bob, "gated", "r1", Map::new()).expect(202).text_at("executionId");
    let other = start(&bob, "gated", "r2", Map::new()).expect(202).text_at("executionId");
    let made = token(&bob, &[("sessionOf", mine.as_str().into())]).expect(201);
    let session = server.client(&made.text_at("token"));
    let cancel =
        |id: &str| session.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", Value::from("x"))]));
    cancel(&other).expect(403);
    // A session cannot change the workflow of its execution.
    let body = Value::map([("id", Value::from("gated")), ("data", Value::map([("steps", echo())]))]);
    session.post("/api/workflows/sync", &body).expect(403);
    token(&session, &[]).expect(403);
    role(&ours, "bob", "viewer");
    start(&session, "gated", "r3", Map::new()).expect(403);
    cancel(&mine).expect(403);
    role(&ours, "bob", "member");
    cancel(&mine).expect(200);
}

#[test]
fn members_cannot_change_names_used_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let agent = ours.member("robot", "agent");
    let sync = |client: &Client, id: &str, slug: Option<&str>, steps: Value| {
        let body = [("id", Value::from(id)), ("slug", slug.into()), ("data", Value::map([("steps", steps)]))];
        client.post("/api/workflows/sync", &Value::map(body))
    };
    sync(&ours.owner, "w-guard", Some("guard"), gate()).expect(200);
    let child = Value::map([("type", Value::from("subworkflow")), ("workflow", "guard".into())]);
    save(&ours.owner, "parent", Value::List(vec![child]));
    sync(&agent, "guard", None, echo()).expect(409);
    sync(&agent, "w-other", Some("parent"), echo()).expect(409);
    // The same slug of another member is another workflow, and the owner's steps still start the owner's.
    sync(&agent, "w-robot", Some("guard"), echo()).expect(200);
    let id = start(&ours.owner, "parent", "r1", Map::new()).expect(202).text_at("executionId");
    let seen = ours.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(seen.text_at("status"), "waiting_approval", "{seen:?}");
    assert_eq!(ours.owner.get("/api/workflows/guard").expect(200).text_at("id"), "w-guard");
    ours.owner.put("/api/members/bob:x", &Value::map([("role", Value::from("member"))])).expect(400);
}

#[test]
fn a_lost_role_revokes_its_grants() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let put = |client: &Client, member: &str, role: &str| {
        client.put(&format!("/api/members/{member}"), &Value::map([("role", Value::from(role))]))
    };
    put(&owner, "eve", "owner").expect(200);
    put(&owner, "adm", "admin").expect(200);
    let of = |member: &str| server.client(&token(&owner, &[("userId", member.into())]).expect(201).text_at("token"));
    let admin = of("adm");
    // An admin cannot change an owner's role or tokens.
    put(&admin, "eve", "viewer").expect(403);
    token(&admin, &[("userId", "eve".into())]).expect(403);
    let tokens = owner.get("/api/tokens").expect(200).json();
    let of_owner = tokens.get("tokens").and_then(Value::as_list).unwrap().iter();
    let of_owner =
        of_owner.filter(|one| one.get("userId") == Some(&"owner".into())).find_map(|one| one.get("id")?.as_text());
    admin.send("DELETE", &format!("/api/tokens/{}", of_owner.unwrap()), &[], None).expect(403);
    // Promotion to owner revokes tokens that an admin created for the member before, and tokens created with those.
    put(&owner, "bob", "member").expect(200);
    let planted = token(&admin, &[("userId", "bob".into())]).expect(201);
    let id = planted.text_at("id");
    let planted = server.client(&planted.text_at("token"));
    let second = server.client(&token(&planted, &[]).expect(201).text_at("token"));
    let browser = second.signed_in();
    let all = [planted, second, browser];
    all.iter().for_each(|one| drop(one.get("/api/me").expect(200)));
    put(&owner, "bob", "owner").expect(200);
    all.iter().for_each(|one| drop(one.get("/api/me").expect(401)));
    let log = owner.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap();
    let is_change = |entry: &&Value| entry.get("action") == Some(&"member.put".into());
    let last = entries.iter().rfind(is_change).unwrap().get("detail").unwrap().clone();
    assert!(last.get("revoked").and_then(Value::as_list).unwrap().contains(&id.as_str().into()), "{last:?}");
}

#[test]
fn only_operators_grant_and_revoke_the_operator_role() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let put = |client: &Client, member: &str, field: (&str, Value)| {
        client.put(&format!("/api/members/{member}"), &Value::map([field]))
    };
    let remove = |client: &Client, path: &str| client.send("DELETE", path, &[], None);
    let found = |client: &Client, id: &str| {
        let body = Value::map([("id", Value::from(id)), ("owner", "ada".into())]);
        client.post("/api/organizations", &body)
    };
    let of = |member: &str| server.client(&token(&owner, &[("userId", member.into())]).expect(201).text_at("token"));
    put(&owner, "eve", ("role", "owner".into())).expect(200);
    put(&owner, "bob", ("role", "member".into())).expect(200);
    let (eve, id) = (of("eve"), token(&owner, &[]).expect(201).text_at("id"));
    // An owner who is not an operator cannot remove an operator, in any way.
    put(&eve, "owner", ("role", "viewer".into())).expect(403);
    put(&eve, "eve", ("operator", true.into())).expect(403);
    token(&eve, &[("userId", "owner".into())]).expect(403);
    remove(&eve, "/api/members/owner").expect(403);
    remove(&eve, &format!("/api/tokens/{id}")).expect(403);
    found(&eve, "acme").expect(403);
    // The last operator stays, and stays an owner.
    for field in [("role", Value::from("admin")), ("operator", false.into())] {
        let last = put(&owner, "owner", field).expect(409);
        assert!(last.text.contains("the last operator of the installation"), "{last:?}");
    }
    remove(&owner, "/api/members/owner").expect(409);
    put(&owner, "bob", ("operator", true.into())).expect(400);
    // A new operator loses all earlier credentials.
    let made = put(&owner, "eve", ("operator", true.into())).expect(200);
    assert_eq!(made.json().get("operator"), Some(&true.into()));
    eve.get("/api/me").expect(401);
    let eve = of("eve");
    found(&eve, "acme").expect(201);
    put(&eve, "owner", ("role", "viewer".into())).expect(200);
    found(&owner, "globex").expect(403);
    put(&eve, "owner", ("role", "owner".into())).expect(200);
    remove(&eve, "/api/members/eve").expect(409);
}

#[test]
fn a_credential_creates_none_with_a_later_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let until = "2999-01-01T00:00:00.000Z";
    let short = token(&owner, &[("expiresAt", until.into())]).expect(201);
    let made = token(&server.client(&short.text_at("token")), &[]).expect(201);
    assert_eq!(made.text_at("expiresAt"), until, "{}", compact(&made.json()));
}

/// A requested expiry later than that of the creating token is reduced to it.
#[test]
fn a_requested_expiry_is_bounded_by_the_creating_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let at = |year: u32| format!("{year}-01-01T00:00:00.000Z");
    let short = token(&owner, &[("expiresAt", at(2998).into())]).expect(201);
    let short = server.client(&short.text_at("token"));
    for (asked, given) in [(2999, 2998), (2998, 2998), (2997, 2997)] {
        let made = token(&short, &[("expiresAt", at(asked).into())]).expect(201);
        assert_eq!(made.text_at("expiresAt"), at(given), "{asked}");
    }
    assert_eq!(token(&owner, &[("expiresAt", at(2999).into())]).expect(201).text_at("expiresAt"), at(2999));
}

#[test]
fn admins_see_all_credentials_and_members_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (ours, theirs) = (Organization::new(&server, "acme"), Organization::new(&server, "globex"));
    let clients = [("bob", "member"), ("eve", "viewer"), ("adm", "admin")].map(|(id, role)| ours.member(id, role));
    let [bob, eve, adm] = &clients;
    theirs.member("bob", "member");
    token(bob, &[]).expect(201);
    let seen = |client: &Client| {
        let listed = client.get("/api/tokens").expect(200).json();
        let of = |one: &Value| one.get("userId").and_then(Value::as_text).unwrap().to_string();
        let mut users: Vec<_> = listed.get("tokens").and_then(Value::as_list).unwrap().iter().map(of).collect();
        users.sort();
        users.join(" ")
    };
    assert_eq!([bob, eve].map(seen), ["bob bob", "eve"]);
    assert_eq!([adm, &ours.owner].map(seen), ["ada adm bob bob eve"; 2]);
    assert_eq!(seen(&theirs.owner), "ada bob");
}

/// An admin can create tokens for other members. If those could decide, the admin could act as all approvers.
#[test]
fn tokens_created_by_an_admin_for_others_cannot_decide() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let adm = ours.member("adm", "admin");
    // Tokens created by an owner can decide, since an owner may change the approvers anyway.
    let (p, q) = (ours.member("p", "member"), ours.member("q", "member"));
    let step = r#"{"steps":[{"type":"approval","id":"a","approvers":["p","q"],"count":2}]}"#;
    let steps = mainspring_kernel::json::read(step.as_bytes()).unwrap().value.get("steps").unwrap().clone();
    save(&adm, "pay", steps.clone());
    let id = start(&adm, "pay", "r1", Map::new()).expect(202).text_at("executionId");
    adm.get(&format!("/api/executions/{id}/wait")).expect(200);
    let made = |client: &Client, user: &str| {
        let made = token(client, &[("userId", user.into())]).expect(201);
        server.client(&made.text_at("token"))
    };
    let of_p = made(&adm, "p");
    let through = made(&of_p, "p");
    let decide = |client: &Client, token: &str| {
        let body = [("approve", Value::Bool(true)), ("resumeToken", token.into())];
        client.post(&format!("/api/executions/{id}/approve"), &Value::map(body))
    };
    let opener = p.get(&format!("/api/executions/{id}")).text_at("resumeToken");
    for client in [&of_p, &through, &of_p.signed_in()] {
        assert!(!client.get(&format!("/api/executions/{id}")).text.contains("wrf_rt_"));
        assert!(!client.get("/api/me").text.contains("approvals:decide"));
        let refused = decide(client, &opener).expect(403);
        assert!(refused.text_at("error").contains("adm"), "{refused:?}");
        let by_name = Value::map([("approve", Value::Bool(true))]);
        client.post(&format!("/api/approvals/{id}:a:1/decide"), &by_name).expect(403);
    }
    decide(&p, &opener).expect(200);
    let opener = q.get(&format!("/api/executions/{id}")).text_at("resumeToken");
    decide(&q, &opener).expect(200);
    let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap();
    let decided = |entry: &&Value| entry.get("action").and_then(Value::as_text) == Some("approval.decide");
    let makers: Vec<_> =
        entries.iter().filter(decided).map(|entry| entry.get("detail").unwrap().get("madeBy").cloned()).collect();
    assert_eq!(makers, [Some("ada".into()), Some("ada".into())]);
    // Every entry names the creator of the credential.
    save(&of_p, "by-p", steps);
    let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap();
    let created = entries.iter().find(|entry| entry.get("target").and_then(Value::as_text) == Some("by-p")).unwrap();
    assert_eq!(created.get("detail").unwrap().get("madeBy"), Some(&"adm".into()), "{created:?}");
    // Tokens that an admin creates for themselves can decide.
    let own = made(&adm, "adm");
    assert!(own.get("/api/me").text.contains("approvals:decide"));
}

#[test]
fn a_chain_of_tokens_names_its_first_creator() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let first = ours.member("pat", "member");
    let second = first.post("/api/tokens", &Value::map([("name", Value::from("second"))])).expect(201).text_at("token");
    let third = server.client(&second).post("/api/tokens", &Value::map([("name", Value::from("third"))])).expect(201);
    let listed = ours.owner.get("/api/tokens?limit=200").expect(200).json();
    let tokens = listed.get("tokens").and_then(Value::as_list).unwrap();
    let id = Value::from(third.text_at("id"));
    let token = tokens.iter().find(|token| token.get("id") == Some(&id)).unwrap();
    assert_eq!(token.get("madeBy"), Some(&"ada".into()), "{token:?}");
}
