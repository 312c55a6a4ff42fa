//! Sign-in by OpenID Connect, with a test provider over real connections: the successful flow, and every flow that
//! must fail.

mod provider;

use std::{cell::RefCell, collections::BTreeMap, net::TcpListener, path::Path, process::Command};

use mainspring_kernel::value::{Map, Value};
use tempfile::TempDir;

use self::provider::{CLIENT, Key, Mood, Provider, SECRET, Sign, encoded, now_s};
use super::{
    client::{Client, Reply},
    process::{Organization, Server},
    secured::before,
    start::{save, start},
    support::MAINSPRING,
};

/// A server with a provider.
struct TestDir {
    _folder: TempDir,
    provider: Provider,
    server: Server,
}

impl TestDir {
    /// Starts both, with further arguments of the server.
    fn new(more: &[&str]) -> Self {
        let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::start());
        let server = begin(folder.path(), "data", &provider.issuer(), more);
        Self { _folder: folder, provider, server }
    }

    /// Adds a member of `default`.
    fn member(&self, id: &str, role: &str) {
        let role = Value::map([("role", Value::from(role))]);
        self.server.owner().put(&format!("/api/members/{}", encoded(id)), &role).expect(200);
    }

    fn browser(&self) -> Browser {
        Browser::new(&self.server)
    }

    fn tokens(&self) -> Vec<Value> {
        let listed = self.server.owner().get("/api/tokens?limit=200").expect(200).json();
        listed.get("tokens").and_then(Value::as_list).unwrap().to_vec()
    }

    fn audit(&self) -> String {
        self.server.owner().get("/api/audit?limit=200").expect(200).text
    }
}

fn begin(folder: &Path, name: &str, issuer: &str, more: &[&str]) -> Server {
    begin_as(folder, name, issuer, more, &[])
}

fn begin_as(folder: &Path, name: &str, issuer: &str, more: &[&str], environment: &[(&str, &str)]) -> Server {
    let secret = folder.join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let file = secret.display().to_string();
    let all = ["--oidc-issuer", issuer, "--oidc-client-id", CLIENT, "--oidc-client-secret-file", &file];
    let rates = ["--anonymous-rate-limit-per-second", "0"];
    let all = all.iter().chain(&rates).chain(more).copied().collect::<Vec<_>>();
    Server::start_as(folder, name, &all, environment)
}

/// A browser with cookies.
#[derive(Clone)]
struct Browser {
    address: String,
    cookies: RefCell<BTreeMap<String, String>>,
}

impl Browser {
    fn new(server: &Server) -> Self {
        Self { address: server.address.clone(), cookies: RefCell::default() }
    }

    fn get(&self, path: &str) -> Reply {
        let cookies = self.cookies.borrow().iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        let reply = Client::new(&self.address, None).send("GET", path, &[("cookie", &cookies.join("; "))], None);
        for (_, line) in reply.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => self.cookies.borrow_mut().remove(name),
                value => self.cookies.borrow_mut().insert(name.into(), value.into()),
            };
        }
        reply
    }

    fn has(&self, cookie: &str) -> bool {
        self.cookies.borrow().contains_key(cookie)
    }

    /// Visits the provider and consents. Returns the path of the callback.
    fn callback_path(&self, next: &str) -> String {
        let away = self.get(&format!("/sign-in/oidc?next={}", encoded(next))).expect(303);
        let (provider, path) = split(away.header("location").unwrap());
        let back = Client::new(&provider, None).get(&path).expect(302);
        split(back.header("location").unwrap()).1
    }

    /// Runs the whole sign-in.
    fn sign_in(&self) -> Reply {
        let back = self.callback_path("/");
        self.get(&back)
    }

    fn is_in(&self) -> bool {
        self.has("mainspring") && self.get("/api/me").status == 200
    }
}

/// Splits a URL into authority and path.
fn split(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
    let place = rest.find('/').unwrap();
    (rest[..place].to_string(), rest[place..].to_string())
}

#[test]
fn a_member_signs_in_works_and_signs_out() {
    let dir = TestDir::new(&[]);
    dir.member("ada@example.com", "member");
    // Addresses are compared without case.
    dir.provider.claims(&[("email", "Ada@Example.com".into())]);
    let browser = dir.browser();
    let away = browser.get("/sign-in/oidc?next=/approve/x%3Fagain=1").expect(303);
    let cookie = away.header("set-cookie").unwrap();
    for word in ["mainspring-oidc=", "HttpOnly", "SameSite=Lax", "Max-Age=600", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let back = browser.callback_path("/approve/x?again=1");
    let page = browser.get(&back).expect(200);
    assert!(page.text.contains("content=\"0; url=/approve/x?again=1\""), "{page:?}");
    let lines: Vec<_> = page.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, line)| line).collect();
    assert!(
        lines.iter().any(|line| line.starts_with("mainspring=mss_") && line.contains("; HttpOnly; SameSite=Strict"))
    );
    assert!(lines.iter().any(|line| line.starts_with("mainspring-oidc=;") && line.contains("Max-Age=0")), "{lines:?}");
    let me = browser.get("/api/me").expect(200);
    assert_eq!((me.text_at("userId"), me.text_at("role")), ("ada@example.com".into(), "member".into()));
    assert_eq!(me.text_at("organizationId"), "default");
    // The session is a token in the list, with a readable name and an expiry.
    let listed = browser.get("/api/tokens").expect(200).json();
    let token = listed.get("tokens").and_then(Value::as_list).unwrap()[0].clone();
    assert_eq!(token.get("name").and_then(Value::as_text), Some("signed in by 127.0.0.1"));
    assert!(token.get("expiresAt").and_then(Value::as_text).is_some(), "{token:?}");
    let audit = dir.audit();
    let issuer = dir.provider.issuer();
    assert!(audit.contains("\"oidc\"") && audit.contains(&issuer) && audit.contains("session.create"), "{audit}");
    assert!(!audit.contains("248289761001") && !audit.contains(SECRET), "{audit}");
    // Signing out deletes the token.
    let cookie = format!("mainspring={}", browser.cookies.borrow()["mainspring"]);
    let origin = format!("http://{}", dir.server.address);
    let before = dir.tokens().len();
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    dir.server.nobody().send("DELETE", "/api/session", &headers, None).expect(204);
    assert!(!browser.is_in() && dir.tokens().len() == before - 1);
    // Revoking the token or removing the member ends the session too.
    browser.sign_in().expect(200);
    assert!(browser.is_in());
    let id = dir.tokens().iter().find_map(|token| {
        let is_ours = token.get("userId").and_then(Value::as_text) == Some("ada@example.com");
        token.get("id").and_then(Value::as_text).filter(|_| is_ours).map(ToString::to_string)
    });
    let owner = dir.server.owner();
    owner.send("DELETE", &format!("/api/tokens/{}", id.unwrap()), &[], None).expect(204);
    assert!(!browser.is_in());
    browser.sign_in().expect(200);
    owner.send("DELETE", "/api/members/ada@example.com", &[], None).expect(204);
    assert!(!browser.is_in());
    browser.sign_in().expect(403);
}

#[test]
fn keys_of_each_kind_sign_and_new_ones_are_found() {
    let dir = TestDir::new(&[]);
    dir.member("ada@example.com", "viewer");
    dir.browser().sign_in().expect(200);
    dir.browser().sign_in().expect(200);
    assert_eq!(dir.provider.ways().asked_for_keys, 1, "they are kept");
    for (place, key) in [Key::p256("second"), Key::ed25519("third"), Key::p256("fourth")].into_iter().enumerate() {
        dir.provider.ways().keys.push(key);
        let browser = dir.browser();
        browser.sign_in().expect(200);
        assert!(browser.is_in());
        assert_eq!(dir.provider.ways().asked_for_keys, 2 + place, "they are asked for where one is missing");
    }
    // A member has at most twenty sessions; the oldest is ended.
    let browsers: Vec<_> = (0..21).map(|_| dir.browser()).collect();
    browsers.iter().for_each(|browser| drop(browser.sign_in().expect(200)));
    assert!(!browsers[0].is_in() && browsers[1].is_in() && browsers[20].is_in());
    assert_eq!(dir.tokens().len(), 21, "and the owner's");
}

#[test]
fn unknown_users_get_the_configured_role() {
    let closed = TestDir::new(&[]);
    let browser = closed.browser();
    let page = browser.sign_in().expect(403);
    assert!(page.text.contains("ask an admin") && !browser.has("mainspring"), "{page:?}");
    assert!(!closed.audit().contains("session.create") && closed.tokens().len() == 1);
    let open = TestDir::new(&[
        "--oidc-organization",
        "default",
        "--oidc-first-role",
        "viewer",
        "--oidc-email-domains",
        "example.com, b.example",
    ]);
    let browser = open.browser();
    browser.sign_in().expect(200);
    assert_eq!(browser.get("/api/me").expect(200).text_at("role"), "viewer");
    let audit = open.audit();
    assert!(audit.contains("member.put") && audit.contains("\"viewer\""), "{audit}");
    // A role that an admin has set later is kept.
    open.member("ada@example.com", "member");
    browser.sign_in().expect(200);
    assert_eq!(browser.get("/api/me").expect(200).text_at("role"), "member");
    for email in ["ada@evil.example", "ada@example.com.evil.example", "ada@sub.example.com", "example.com", "a@b@evil"]
    {
        open.provider.claims(&[("email", email.into())]);
        let page = open.browser().sign_in().expect(403);
        assert!(page.text.contains("domain"), "{email}: {page:?}");
    }
}

/// A deviation of the ID token or its signature, the expected status, and the expected reason.
type Case = (&'static str, fn(&mut provider::Ways), u16, &'static str);

/// Sets a claim to another value.
fn says(ways: &mut provider::Ways, name: &'static str, value: impl Into<Value>) {
    ways.claims.insert(name, value.into());
}

fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|text| Value::from(*text)).collect())
}

const REFUSED: [Case; 24] = [
    ("another nonce", |ways| says(ways, "nonce", "n"), 401, "nonce"),
    ("no nonce", |ways| says(ways, "nonce", Value::Null), 401, "nonce"),
    ("another audience", |ways| says(ways, "aud", "others"), 401, "another client"),
    ("no audience", |ways| says(ways, "aud", Value::Null), 401, "lacks one"),
    ("two audiences", |ways| says(ways, "aud", list(&[CLIENT, "others"])), 401, "azp"),
    ("another party", |ways| says(ways, "azp", "others"), 401, "azp"),
    ("another issuer", |ways| says(ways, "iss", "https://evil.example"), 401, "another issuer"),
    ("two issuers", |ways| says(ways, "iss", list(&["https://evil.example"])), 401, ""),
    ("expired", |ways| says(ways, "exp", now_s() - 120), 401, "expired"),
    ("never expires", |ways| says(ways, "exp", Value::Null), 401, "lacks one"),
    ("expires as a text", |ways| says(ways, "exp", "9999999999"), 401, ""),
    ("not yet", |ways| says(ways, "nbf", now_s() + 3600), 401, "not valid yet"),
    ("from the future", |ways| says(ways, "iat", now_s() + 3600), 401, "future"),
    ("from no time", |ways| says(ways, "iat", Value::Null), 401, "iat"),
    ("nobody", |ways| says(ways, "sub", Value::Null), 401, "lacks one"),
    ("no signature", |ways| ways.sign = Sign::None, 401, "head"),
    ("signed with our secret", |ways| ways.sign = Sign::Shared(SECRET.into()), 401, "RS256"),
    ("signed with the public key", |ways| ways.sign = Sign::Shared(ways.keys[0].public()), 401, "RS256"),
    ("signed by somebody else", |ways| ways.sign = Sign::Other(Key::p256("first").into()), 401, "publishes"),
    ("unverified e-mail", |ways| says(ways, "email_verified", false), 403, "email_verified"),
    ("e-mail of unknown standing", |ways| says(ways, "email_verified", Value::Null), 403, "email_verified"),
    ("verified as a text", |ways| says(ways, "email_verified", "true"), 403, "email_verified"),
    ("no e-mail", |ways| says(ways, "email", Value::Null), 403, "email"),
    ("a program", |ways| says(ways, "email", "bot@example.com"), 403, "program"),
];

#[test]
fn unproven_claims_are_rejected() {
    let dir = TestDir::new(&[]);
    dir.member("ada@example.com", "member");
    dir.member("bot@example.com", "agent");
    let mut wrong = Vec::new();
    for (name, change, status, why) in REFUSED {
        change(&mut dir.provider.ways());
        let browser = dir.browser();
        let page = browser.sign_in();
        if page.status != status || !page.text.contains(why) || browser.has("mainspring") {
            wrong.push(format!("{name}: {page:?}"));
        }
        if page.text.contains(SECRET) || page.text.contains("eyJ") || page.text.contains("248289761001") {
            wrong.push(format!("{name} says too much: {page:?}"));
        }
        dir.provider.claims(&[]);
        dir.provider.ways().sign = Sign::Key;
    }
    // A forged signature by a key of the same type, under the published key id.
    dir.provider.ways().keys.push(Key::p256("second"));
    dir.provider.ways().sign = Sign::Other(Key::p256("second").into());
    let page = dir.browser().sign_in();
    if page.status != 401 || !page.text.contains("signature") {
        wrong.push(format!("forged: {page:?}"));
    }
    // A signature by an unpublished key.
    let hidden = dir.provider.ways().keys.pop().unwrap();
    dir.provider.ways().keys.insert(0, Key::ed25519("third"));
    dir.provider.ways().sign = Sign::Other(hidden.into());
    let page = dir.browser().sign_in();
    if page.status != 401 || !page.text.contains("publishes") {
        wrong.push(format!("hidden: {page:?}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(dir.tokens().len(), 1, "nothing was made");
    dir.provider.ways().sign = Sign::Key;
    says(&mut dir.provider.ways(), "aud", list(&[CLIENT, "others"]));
    says(&mut dir.provider.ways(), "azp", CLIENT);
    dir.browser().sign_in().expect(200);
}

#[test]
fn a_callback_is_bound_to_its_browser_and_works_once() {
    let dir = TestDir::new(&[]);
    dir.member("ada@example.com", "member");
    let mut wrong = Vec::new();
    let mut check = |name: &str, browser: &Browser, back: &str, status: u16, why: &str| {
        let page = browser.get(back);
        if page.status != status || !page.text.contains(why) || browser.has("mainspring") {
            wrong.push(format!("{name}: {page:?}"));
        }
    };
    // Without its cookie, and with the cookie of another browser that is signing in.
    let back = dir.browser().callback_path("/");
    check("no cookie", &dir.browser(), &back, 400, "No sign-in of this browser is pending");
    let (one, other) = (dir.browser(), dir.browser());
    let (back, _) = (one.callback_path("/"), other.callback_path("/"));
    check("another browser", &other, &back, 400, "state");
    check("it was the one chance", &other, &back, 400, "No sign-in of this browser is pending");
    let forged = dir.browser();
    forged.callback_path("/");
    forged.cookies.borrow_mut().values_mut().for_each(|value| value.replace_range(20..24, "AAAA"));
    check("a forged cookie", &forged, &back, 400, "No sign-in of this browser is pending");
    for (name, from, to, status, why) in [
        ("another state", "&state=", "&state=0", 400, "state"),
        ("no state", "&state=", "&estate=", 400, "state"),
        ("another provider", "&iss=", "&iss=x", 400, "iss"),
        ("another code", "code=", "code=x", 401, "code"),
        ("no code", "code=", "edoc=", 400, "code"),
        ("an error", "code=", "error=access_denied&code=", 403, "access_denied"),
        ("an error without a state", "&state=", "&error=login_required&estate=", 403, "login_required"),
        ("an error of its own", "code=", "error=%3Cb%3E&code=", 403, "an error of its own"),
        ("twice", "&state=", "&state=a&state=", 400, "query"),
    ] {
        let browser = dir.browser();
        let back = browser.callback_path("/").replacen(from, to, 1);
        check(name, &browser, &back, status, why);
    }
    let browser = dir.browser();
    let back = browser.callback_path("/");
    let again = browser.clone();
    browser.get(&back).expect(200);
    check("a code again", &again, &back, 401, "code");
    let in_already = browser.get(&back).expect(400);
    assert!(in_already.text.contains("No sign-in of this browser is pending") && browser.is_in(), "{in_already:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn redirects_to_other_sites_are_refused() {
    let dir = TestDir::new(&[]);
    for next in
        ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)", ""]
    {
        let browser = dir.browser();
        let page = browser.get(&format!("/sign-in/oidc?next={}", encoded(next))).expect(400);
        assert!(page.header("location").is_none() && !browser.has("mainspring-oidc"), "{next}: {page:?}");
    }
    dir.browser().get("/sign-in/oidc?to=/docs").expect(400);
    dir.member("ada@example.com", "member");
    let browser = dir.browser();
    let back = browser.callback_path("/a?b=\"><script>alert(1)</script>".replace(' ', "").as_str());
    let page = browser.get(&back).expect(200);
    assert!(!page.text.contains("<script>"), "{page:?}");
}

/// Returns true if a page says that the provider is not available, without details of the provider.
fn is_general(page: &Reply) -> bool {
    page.text.contains("the OpenID Connect provider is not available") && !page.text.contains("127.0.0.1")
}

#[test]
fn an_unresponsive_provider_blocks_no_other_request() {
    let dir = TestDir::new(&[]);
    dir.member("ada@example.com", "member");
    let tries = [
        (Mood::NoJson, "not JSON"),
        (Mood::Elsewhere, "302"),
        (Mood::Endless, "too large"),
        (Mood::Silent, "longer than 5 s"),
    ];
    for (place, (mood, why)) in tries.into_iter().enumerate() {
        dir.provider.ways().mood = mood;
        let page = dir.browser().get("/sign-in/oidc").expect(503);
        assert!(is_general(&page) && !page.text.contains(why), "{page:?}");
        // Admins read the reason, and the number of log entries is bounded.
        assert_eq!(dir.audit().contains(why), place < 3, "{why}");
        dir.server.owner().get("/api/me").expect(200);
    }
    dir.provider.ways().mood = Mood::Well;
    dir.provider.ways().calls_itself = Some("https://evil.example".into());
    let page = dir.browser().get("/sign-in/oidc").expect(503);
    assert!(is_general(&page) && !page.text.contains("evil.example"), "{page:?}");
    assert_eq!(dir.audit().matches("session.failed").count(), 3);
    dir.provider.ways().calls_itself = None;
    // The metadata are cached from now on, so only the token request fails.
    let browser = dir.browser();
    let back = browser.callback_path("/");
    dir.provider.ways().mood = Mood::NoJson;
    browser.get(&back).expect(503);
    dir.provider.ways().mood = Mood::Well;
    dir.browser().sign_in().expect(200);
    // A provider that is unreachable.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let server = begin(folder.path(), "data", &format!("http://{nobody}"), &[]);
    let page = Browser::new(&server).get("/sign-in/oidc").expect(503);
    let audit = server.owner().get("/api/audit?limit=200").expect(200).text;
    assert!(is_general(&page) && audit.contains("refused"), "{page:?} {audit}");
}

#[test]
fn a_configured_claim_names_members_and_never_operators() {
    let dir = TestDir::new(&["--oidc-claim", "sub", "--oidc-organization", "default", "--oidc-first-role", "member"]);
    dir.provider.claims(&[("email", Value::Null)]);
    let browser = dir.browser();
    browser.sign_in().expect(200);
    assert_eq!(browser.get("/api/me").expect(200).text_at("userId"), "248289761001");
    for (sub, why) in [("owner", "operator of the installation"), ("a:b", "colon"), ("ä", "letter"), ("a b", "letter")]
    {
        dir.provider.claims(&[("sub", sub.into())]);
        let browser = dir.browser();
        let page = browser.sign_in().expect(403);
        assert!(page.text.contains(why) && !browser.has("mainspring"), "{page:?}");
    }
}

#[test]
fn users_sign_in_only_to_the_named_organization() {
    let dir = TestDir::new(&["--oidc-organization", "acme", "--oidc-first-role", "member"]);
    let page = dir.browser().sign_in().expect(503);
    assert!(is_general(&page) && !page.text.contains("acme"), "{page:?}");
    let ours = Organization::new(&dir.server, "acme");
    let browser = dir.browser();
    browser.sign_in().expect(200);
    assert_eq!(browser.get("/api/me").expect(200).text_at("organizationId"), "acme");
    // The page of an approval leads to the provider and back.
    let gate = Value::List(vec![Value::map([("id", Value::from("gate")), ("type", "approval".into())])]);
    save(&ours.owner, "ship", gate);
    let id = start(&ours.owner, "ship", "r1", Map::new()).expect(202).text_at("executionId");
    ours.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    let listed = ours.owner.get("/api/approvals").expect(200).json();
    let approval = listed.get("approvals").and_then(Value::as_list).unwrap()[0].clone();
    let link = split(approval.get("url").and_then(Value::as_text).unwrap()).1;
    let other = dir.browser();
    let page = other.get(&link).expect(401);
    let way = format!("/sign-in/oidc?next={}", encoded(&link));
    assert!(page.text.contains(&format!("<a href=\"{way}\">Sign in with 127.0.0.1</a>")), "{page:?}");
    let back = other.callback_path(&link);
    other.get(&back).expect(200);
    assert!(other.get(&link).expect(200).text.contains("<h2>Request</h2>"));
}

#[test]
fn a_callback_may_arrive_at_another_node() {
    // Both have one key, and share neither memory nor store.
    let more = ["--oidc-organization", "default", "--oidc-first-role", "viewer"];
    let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::start());
    // Behind a load balancer both have one address; here they have two.
    provider.ways().looks_at_addresses = false;
    let [first, second] = ["data", "other"].map(|name| begin(folder.path(), name, &provider.issuer(), &more));
    let browser = Browser::new(&first);
    let back = browser.callback_path("/docs");
    let moved = Browser { address: second.address.clone(), ..browser };
    moved.get(&back).expect(200);
    assert!(moved.is_in());
    // A server with another key rejects the cookie.
    let elsewhere = tempfile::tempdir().unwrap();
    let server = begin(elsewhere.path(), "data", &provider.issuer(), &more);
    let browser = Browser::new(&first);
    let back = browser.callback_path("/docs");
    Browser { address: server.address.clone(), ..browser }.get(&back).expect(400);
}

#[test]
fn secrets_are_sent_only_to_a_provider_with_a_trusted_certificate() {
    let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::start());
    let (public, certificate) = before(&provider.address);
    provider.ways().public = Some(public.clone());
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, certificate).unwrap();
    let trusting = [("SSL_CERT_FILE", file.to_str().unwrap())];
    let more = ["--oidc-organization", "default", "--oidc-first-role", "viewer"];
    let server = begin_as(folder.path(), "data", &public, &more, &trusting);
    let browser = Browser::new(&server);
    browser.sign_in().expect(200);
    assert!(browser.is_in());
    let server = begin(folder.path(), "other", &public, &more);
    let page = Browser::new(&server).get("/sign-in/oidc").expect(503);
    let audit = |server: &Server| server.owner().get("/api/audit?limit=200").expect(200).text;
    assert!(is_general(&page) && audit(&server).contains("certificate"), "{page:?} {}", audit(&server));
    // The metadata name a plain HTTP endpoint on another machine for codes and the client secret.
    provider.ways().token_endpoint = Some("http://192.0.2.1/token".into());
    let server = begin_as(folder.path(), "third", &public, &more, &trusting);
    let page = Browser::new(&server).get("/sign-in/oidc").expect(503);
    assert!(is_general(&page) && audit(&server).contains("is not https"), "{page:?} {}", audit(&server));
}

#[test]
fn the_client_secret_uses_the_method_of_the_provider() {
    let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::start());
    provider.ways().takes_forms = true;
    let more = ["--oidc-organization", "default", "--oidc-first-role", "viewer"];
    let server = begin(folder.path(), "data", &provider.issuer(), &more);
    Browser::new(&server).sign_in().expect(200);
    // The server has cached the metadata, and the provider now rejects its authentication method.
    provider.ways().takes_forms = false;
    let page = Browser::new(&server).sign_in().expect(503);
    let audit = server.owner().get("/api/audit?limit=200").expect(200).text;
    assert!(is_general(&page) && audit.contains("client id and secret") && !audit.contains(SECRET), "{page:?} {audit}");
    // The same key with another issuer: a sign-in that started at the first server does not complete here.
    let browser = Browser::new(&server);
    let back = browser.callback_path("/");
    let other = begin(folder.path(), "other", &format!("{}/", provider.issuer()), &more);
    Browser { address: other.address.clone(), ..browser }.get(&back).expect(400);
}

#[test]
fn sign_in_routes_do_not_exist_without_a_provider() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for path in ["/sign-in/oidc", "/sign-in/oidc/callback?code=a&state=b", "/sign-in/oidc?next=//evil.example"] {
        let reply = server.nobody().get(path).expect(404);
        assert_eq!(reply.text_at("code"), "NOT_FOUND");
        assert!(reply.text.contains("oidcIssuer"), "{reply:?}");
    }
    assert!(!server.nobody().get("/approve/x").expect(401).text.contains("/sign-in/oidc"));
}

#[test]
fn invalid_settings_are_refused_without_showing_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    let file = secret.display().to_string();
    let config = |arguments: &[&str], secret: Option<&str>| {
        let mut command = Command::new(MAINSPRING);
        command.env_clear().env("HOME", folder.path()).arg("config").args(arguments);
        command.envs(secret.map(|secret| ("MAINSPRING_OIDC_CLIENT_SECRET", secret)));
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code(), text)
    };
    let good = ["--oidc-issuer", "https://id.example", "--oidc-client-id", "flows"];
    let with = |more: &[&'static str]| good.iter().chain(more).copied().collect::<Vec<_>>();
    for json in [&[][..], &["--json"]] {
        let (code, text) = config(&with(json), Some(SECRET));
        assert_eq!(code, Some(0), "{text}");
        assert!(!text.contains(SECRET) && text.contains("MAINSPRING_OIDC_CLIENT_SECRET"), "{text}");
        assert!(text.contains("https://id.example") && text.contains("openid email profile"), "{text}");
    }
    let by_file = good.iter().chain(&["--oidc-client-secret-file", &file]).copied().collect::<Vec<_>>();
    let (code, text) = config(&by_file, None);
    assert!(code == Some(0) && !text.contains(SECRET) && text.contains(&file), "{text}");
    for (arguments, secret, why) in [
        (with(&[]), None, "MAINSPRING_OIDC_CLIENT_SECRET"),
        (by_file.clone(), Some(SECRET), "remove one of them"),
        (vec!["--oidc-client-id", "flows"], None, "oidcIssuer"),
        (vec!["--oidc-issuer", "https://id.example"], Some(SECRET), "oidcClientId"),
        (with(&["--oidc-client-secret-file", "/no/such/file"]), None, "/no/such/file"),
        (with(&["--oidc-first-role", "owner"]), Some(SECRET), "oidcFirstRole"),
        // Scripts are not granted through an organization that is only the default.
        (with(&["--oidc-first-role", "viewer"]), Some(SECRET), "oidcOrganization"),
        (
            with(&["--oidc-first-role", "member", "--scripts", "contained"]),
            Some(SECRET),
            "organization of the operators",
        ),
        (
            with(&["--oidc-first-role", "member", "--oidc-organization", "acme", "--scripts", "uncontained"]),
            Some(SECRET),
            "all rights of this user",
        ),
        (with(&["--oidc-scopes", "openid"]), Some(SECRET), "oidcScopes"),
        (vec!["--oidc-issuer", "http://id.example", "--oidc-client-id", "a"], Some(SECRET), "https"),
    ] {
        let (code, text) = config(&arguments, secret);
        assert!(code == Some(10) && text.contains(why) && !text.contains(SECRET), "{arguments:?}: {code:?} {text}");
    }
    for more in [
        &["--oidc-first-role", "member", "--oidc-organization", "default"][..],
        &["--oidc-first-role", "member", "--scripts", "off"],
        &["--oidc-first-role", "none", "--scripts", "uncontained"],
        &["--oidc-first-role", "viewer", "--oidc-organization", "acme", "--scripts", "uncontained"],
        &["--scripts", "uncontained"],
    ] {
        let (code, text) = config(&with(more), Some(SECRET));
        assert_eq!(code, Some(0), "{more:?}: {text}");
    }
    // There is no flag for the secret, since arguments are visible to other users.
    assert_ne!(config(&with(&["--oidc-client-secret", "x"]), None).0, Some(0));
}

#[test]
fn doctor_checks_the_provider() {
    let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::start());
    let look = |issuer: &str| {
        let mut command = Command::new(MAINSPRING);
        command.env_clear().env("HOME", folder.path()).env("MAINSPRING_OIDC_CLIENT_SECRET", SECRET);
        command.args(["doctor", "--json", "--oidc-issuer", issuer, "--oidc-client-id", CLIENT]);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let line = text.lines().find(|line| line.contains("\"check\":\"oidc\""));
        line.unwrap_or_else(|| panic!("the provider is not checked: {text}")).to_string()
    };
    let usual = provider.issuer();
    let told = look(&usual);
    assert!(told.contains("\"state\":\"ok\"") && told.contains("\"keys\":"), "{told}");
    let check = |change: fn(&mut provider::Ways), why: &str| {
        let provider = Provider::start();
        change(&mut provider.ways());
        let told = look(&provider.issuer());
        assert!(told.contains("\"state\":\"broken\"") && told.contains(why), "{why}: {told}");
    };
    check(|ways| ways.calls_itself = Some("https://other.example".into()), "https://other.example");
    check(|ways| ways.keys.clear(), "no key");
    check(|ways| ways.mood = Mood::NoJson, "its description");
    check(|ways| ways.token_endpoint = Some("http://plain.example/token".into()), "not https");
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let told = look(&format!("http://{unreachable}"));
    assert!(told.contains("\"state\":\"broken\"") && told.contains("oidc"), "{told}");
}

#[test]
fn removed_members_return_only_through_an_admin() {
    let dir = TestDir::new(&["--oidc-organization", "default", "--oidc-first-role", "viewer"]);
    let ada = &format!("/api/members/{}", encoded("ada@example.com"));
    dir.browser().sign_in().expect(200);
    dir.server.owner().send("DELETE", ada, &[], None).expect(204);
    let page = dir.browser().sign_in().expect(403);
    assert!(page.text.contains("was removed"), "{page:?}");
    dir.member("ada@example.com", "member");
    dir.browser().sign_in().expect(200);
    // The e-mail address belongs to another person now.
    dir.provider.claims(&[("sub", "another".into())]);
    let page = dir.browser().sign_in().expect(403);
    assert!(page.text.contains("somebody else") && page.text.contains("forgetIdentity"), "{page:?}");
    let kept = dir.tokens().len();
    let forgotten = Value::map([("forgetIdentity", Value::Bool(true))]);
    dir.server.owner().put(ada, &forgotten).expect(200);
    dir.browser().sign_in().expect(200);
    assert!(dir.tokens().len() > kept, "no credential was revoked");
    assert!(dir.audit().contains("forgotIssuer"));
    dir.provider.claims(&[("sub", "a third".into())]);
    dir.browser().sign_in().expect(403);
    dir.server.owner().send("DELETE", ada, &[], None).expect(204);
    dir.member("ada@example.com", "member");
    dir.browser().sign_in().expect(200);
}
