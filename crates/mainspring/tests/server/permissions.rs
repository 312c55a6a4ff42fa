//! Every route for every role, on resources of the own and of another organization. The table is built from the
//! server's OpenAPI description.

use std::collections::BTreeMap;

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    process::{Organization, Server},
    start::{echo, save, start},
    triggers::create,
};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const ROLES: [&str; 5] = ["owner", "admin", "member", "viewer", "agent"];

/// The roles of each permission, written independently of the code so that a change of either is noticed.
const MAY: [(&str, &str); 21] = [
    ("credential", "owner admin member viewer agent"),
    ("workflows:read", "owner admin member viewer agent"),
    ("workflows:write", "owner admin member agent"),
    ("proposals:write", "owner admin member agent"),
    ("executions:read", "owner admin member viewer agent"),
    ("executions:start", "owner admin member agent"),
    ("executions:control", "owner admin member agent"),
    ("scripts:run", "owner admin member"),
    ("executions:repair", "owner admin"),
    ("executions:erase", "owner admin"),
    ("executions:report", "agent"),
    ("approvals:decide", "owner admin member"),
    ("members:read", "owner admin member viewer"),
    ("members:write", "owner admin"),
    ("tokens:own", "owner admin member viewer"),
    ("secrets:read", "owner admin member"),
    ("secrets:write", "owner admin"),
    ("audit:read", "owner admin"),
    ("organization:read", "owner admin member viewer agent"),
    ("organization:write", "owner admin"),
    ("installation:write", ""),
];

/// The status of public routes for a request without meaning.
const OPEN: [(&str, &str, u16); 11] = [
    ("POST", "/api/session", 400),
    ("DELETE", "/api/session", 204),
    ("GET", "/healthz", 200),
    ("GET", "/readyz", 200),
    ("POST", "/sign-in", 415),
    ("GET", "/sign-in/oidc", 404),
    ("GET", "/sign-in/oidc/callback", 404),
    ("GET", "/webhooks/{path}", 404),
    ("POST", "/webhooks/{path}", 404),
    ("PUT", "/webhooks/{path}", 404),
    ("PATCH", "/webhooks/{path}", 404),
];

/// A route with its permission.
struct Route {
    method: String,
    path: String,
    permission: String,
}

fn routes(server: &Server) -> Vec<Route> {
    let described = server.nobody().get("/openapi.json").expect(200).json();
    let mut routes = Vec::new();
    for (path, item) in described.get("paths").and_then(Value::as_map).unwrap() {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let permission = operation.get("x-permission").and_then(Value::as_text);
            let permission = permission.unwrap_or_else(|| panic!("{method} {path} does not say who may")).to_string();
            routes.push(Route { method: method.to_uppercase(), path: path.clone(), permission });
        }
    }
    routes
}

/// Existing resources of an organization, by the path prefixes that name them.
fn create_resources(ours: &Organization) -> BTreeMap<&'static str, String> {
    save(&ours.owner, "flow", echo());
    let gate = Value::List(vec![Value::map([("id", Value::from("gate")), ("type", "approval".into())])]);
    save(&ours.owner, "gated", gate);
    let execution = start(&ours.owner, "gated", "r1", Map::new()).expect(202).text_at("executionId");
    ours.owner.get(&format!("/api/executions/{execution}/wait")).expect(200);
    let approvals = ours.owner.get("/api/approvals").expect(200).json();
    let approval = &approvals.get("approvals").and_then(Value::as_list).unwrap()[0];
    let approval = approval.get("id").and_then(Value::as_text).unwrap().to_string();
    let tokens = ours.owner.get("/api/tokens").expect(200).json();
    let token = &tokens.get("tokens").and_then(Value::as_list).unwrap()[0];
    let token = token.get("id").and_then(Value::as_text).unwrap().to_string();
    let trigger = create(&ours.owner, "flow", r#"{"type": "manual"}"#, "").expect(201).text_at("id");
    let subscription = r#"{"name": "n", "url": "https://example.com/", "types": ["workflow.*"]}"#;
    let subscription = ours.owner.send("POST", "/api/event-subscriptions", &[], Some(subscription)).expect(201);
    BTreeMap::from([
        ("/api/event-subscriptions/", subscription.text_at("id")),
        ("/api/triggers/", trigger),
        ("/api/workflows/", "flow".to_string()),
        ("/api/sessions/", format!("sess_{execution}")),
        ("/api/executions/", execution),
        ("/approve/", approval.clone()),
        ("/api/approvals/", approval),
        ("/api/members/", "ada".into()),
        ("/api/tokens/", token),
    ])
}

fn path_of(route: &Route, things: &BTreeMap<&'static str, String>) -> String {
    let thing = things.iter().find(|(prefix, _)| route.path.starts_with(**prefix)).map(|(_, id)| id.as_str());
    route
        .path
        .replace("{id}", thing.unwrap_or("none"))
        .replace("{proposalId}", "p1")
        .replace("{deliveryId}", "d1")
        .replace("{failedId}", "f1")
        .replace("{rolloutId}", "ro1")
}

/// The path for a permitted caller. Deletions and streams get a missing resource, so that nothing is deleted and no
/// stream stays open.
fn path_for_who_may(route: &Route, things: &BTreeMap<&'static str, String>) -> String {
    if route.method == "DELETE" || route.path.ends_with("/events") {
        return path_of(route, &BTreeMap::new());
    }
    path_of(route, things)
}

/// Sends a request with an invalid body. A permitted caller gets a validation error, and others are rejected
/// before. Requests without a body reach the resource.
fn ask(client: &Client, route: &Route, path: &str) -> u16 {
    let body = (route.method != "GET" && route.method != "DELETE").then_some(r#"{"no such field": 1}"#);
    client.send(&route.method, path, &[], body).status
}

/// The error of a public route with an unexpected status.
fn open_to(who: &str, client: &Client, route: &Route) -> Option<String> {
    let told = OPEN.iter().find(|(method, path, _)| (*method, *path) == (&*route.method, &*route.path));
    let Some((.., told)) = told else {
        return Some(format!("{} {} is open, and not said to be", route.method, route.path));
    };
    let status = ask(client, route, &route.path);
    (status != *told).then(|| format!("{who} {} {}: {status}", route.method, route.path))
}

/// A request with a cookie that changes something must be rejected unless its origin is the server, for every role.
fn asked_by_another_site(server: &Server, browser: &Client, route: &Route, path: &str) -> Option<String> {
    let body = (route.method != "DELETE").then_some("{}");
    for said in [vec![("origin", "http://evil.example")], vec![("sec-fetch-site", "same-site")], vec![]] {
        let headers: Vec<_> = said.iter().copied().chain([("cookie", browser.cookie())]).collect();
        let reply = server.nobody().send(&route.method, path, &headers, body);
        if reply.status != 403 || !reply.text.contains("--base-url") {
            return Some(format!("another site {} {} {said:?}: {reply:?}", route.method, route.path));
        }
    }
    None
}

#[test]
fn every_route_checks_every_role_and_anonymous_callers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--anonymous-rate-limit-per-second", "0"]);
    let ours = Organization::new(&server, "acme");
    let things = create_resources(&ours);
    let mut wrong = Vec::new();
    let mut cells = 0;
    // A token and its cookie have the same rights.
    for (role, has_cookie) in ROLES.into_iter().flat_map(|role| [(role, false), (role, true)]) {
        let by_token = if role == "owner" { ours.owner.clone() } else { ours.member(role, role) };
        let client = if has_cookie { by_token.signed_in() } else { by_token.clone() };
        let (open, closed): (Vec<_>, Vec<_>) =
            routes(&server).into_iter().partition(|route| route.permission == "public");
        for route in &open {
            // Signing out ends the session, so each route gets its own.
            let client = if has_cookie { by_token.signed_in() } else { client.clone() };
            wrong.extend(open_to(role, &client, route));
            cells += 1;
        }
        for route in &closed {
            let may = MAY.iter().find(|(name, _)| *name == route.permission).map(|(_, roles)| *roles);
            let may = may
                .unwrap_or_else(|| panic!("`{}` is in no table", route.permission))
                .split(' ')
                .any(|one| one == role);
            let path = if may { path_for_who_may(route, &things) } else { path_of(route, &things) };
            if has_cookie && route.method != "GET" && role == "owner" {
                wrong.extend(asked_by_another_site(&server, &client, route, &path));
            }
            let status = ask(&client, route, &path);
            cells += 1;
            if (status == 403) == may && route.permission != "executions:report" {
                wrong.push(format!("{role} {} {} ({}): {status}", route.method, route.path, route.permission));
            }
            if status == 401 || status >= 500 && status != 501 {
                wrong.push(format!("{role} {} {}: {status}", route.method, route.path));
            }
        }
    }
    for route in routes(&server) {
        cells += 1;
        if route.permission == "public" {
            wrong.extend(open_to("nobody", &server.nobody(), &route));
            continue;
        }
        let status = ask(&server.nobody(), &route, &path_of(&route, &things));
        if status != 401 {
            wrong.push(format!("nobody {} {}: {status}", route.method, route.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cells > 300, "{cells}");
}

#[test]
fn resources_of_other_organizations_do_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (ours, theirs) = (Organization::new(&server, "acme"), Organization::new(&server, "globex"));
    let things = create_resources(&ours);
    let mut wrong = Vec::new();
    let before = ours.owner.get("/api/audit").expect(200).text;
    for route in
        routes(&server).iter().filter(|route| route.path.contains("{id}") && route.permission != "executions:report")
    {
        let path = path_of(route, &things);
        // The body is valid, so that only the missing resource is reported.
        let body = match (route.method.as_str(), route.path.rsplit('/').next().unwrap()) {
            ("GET" | "DELETE", _) => None,
            (_, "proposals") => Some(r#"{"baseWorkflowHash": "sha256:0", "proposal": {"proposedWorkflow": {}}}"#),
            (_, "write") => Some(r#"{"intent": "x"}"#),
            (_, "review") => Some(r#"{"approve": true}"#),
            (_, "rollback") => Some(r#"{"workflowHash": "sha256:0"}"#),
            (_, "approve") => Some(r#"{"approve": true, "resumeToken": "wrf_rt_0"}"#),
            (_, "decide") => Some(r#"{"approve": true}"#),
            _ if route.path.starts_with("/approve/") => Some("decision=approve&resumeToken=wrf_rt_0"),
            (_, "signal") => Some(r#"{"id": "s", "name": "go"}"#),
            (_, "messages") => Some(r#"{"id": "m", "content": "x"}"#),
            (_, "release" | "end" | "erase" | "promote" | "abort") => Some(r#"{"reason": "why"}"#),
            (_, "scenarios") => Some(r#"{"files": {"a": "name: n"}}"#),
            _ => Some("{}"),
        };
        if route.path == "/api/members/{id}" && route.method == "PUT" {
            // The route would create another member with the same name.
            continue;
        }
        let is_gone = |status: u16| status == 404 || status == 501;
        let is_form = body.is_some() && route.path.starts_with("/approve/");
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let status = theirs.owner.send(&route.method, &path, if is_form { &form } else { &[] }, body).status;
        let is_own_name = route.path == "/api/members/{id}";
        if !is_gone(status) && !is_own_name {
            wrong.push(format!("{} {}: {status}", route.method, route.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(ours.owner.get("/api/audit").expect(200).text, before, "nothing of ours was changed");
    // The same id names another resource there.
    save(&theirs.owner, "flow", echo());
    theirs.owner.send("DELETE", "/api/workflows/flow", &[], None).expect(204);
    ours.owner.get("/api/workflows/flow").expect(200);
    for list in ["/api/workflows", "/api/executions", "/api/approvals"] {
        let text = theirs.owner.get(list).expect(200).text;
        assert!(!text.contains(&things["/api/executions/"]) && !text.contains("gated"), "{list}: {text}");
    }
}

#[test]
fn credentials_end_when_they_are_revoked_expire_or_lose_their_member() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let bob = ours.member("bob", "member");
    bob.get("/api/me").expect(200);
    let narrow = Value::map([("name", Value::from("n")), ("scopes", Value::List(vec!["workflows:read".into()]))]);
    let made = bob.post("/api/tokens", &narrow).expect(201);
    let narrow = server.client(&made.text_at("token"));
    narrow.get("/api/workflows").expect(200);
    let me = narrow.get("/api/me").expect(200).json();
    assert_eq!(me.get("permissions"), Some(&Value::List(vec!["workflows:read".into()])));
    narrow.get("/api/executions").expect(403);
    narrow.get("/api/tokens").expect(403);
    let past = Value::map([("name", Value::from("p")), ("expiresAt", "2020-01-01T00:00:00Z".into())]);
    bob.post("/api/tokens", &past).expect(400);
    bob.send("DELETE", &format!("/api/tokens/{}", made.text_at("id")), &[], None).expect(204);
    narrow.get("/api/workflows").expect(401);
    ours.owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
    bob.get("/api/me").expect(401);
    let last = ours.owner.send("DELETE", "/api/members/ada", &[], None).expect(409);
    assert!(last.text.contains("last owner"), "{last:?}");
}
