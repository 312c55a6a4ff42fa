//! Links to approvals: opening one decides nothing, and shows nothing without a sign-in.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
    start::{save, start},
};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// An approval whose items contain markup, with optional named approvers.
fn gate(approvers: &[&str]) -> Value {
    let approvers: Vec<Value> = approvers.iter().map(|name| Value::from(*name)).collect();
    let items = Value::List(vec![Value::map([("note", Value::from("</pre><script>alert(1)</script>"))])]);
    let step = [("id", Value::from("gate")), ("type", "approval".into()), ("prompt", "Ship <b>1.2</b>?".into())];
    let named = (!approvers.is_empty()).then_some(("approvers", Value::List(approvers)));
    Value::List(vec![Value::map(step.into_iter().chain([("items", items)]).chain(named))])
}

/// Starts an execution. Returns its id, and the path of its approval link.
fn asking(owner: &Client, request: &str) -> (String, String) {
    let id = start(owner, "ship", request, Map::new()).expect(202).text_at("executionId");
    owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    let listed = owner.get("/api/approvals").expect(200).json();
    let of_it = |one: &&Value| one.get("executionId").and_then(Value::as_text) == Some(&id);
    let open = listed.get("approvals").and_then(Value::as_list).unwrap().iter().find(of_it).unwrap();
    let url = open.get("url").and_then(Value::as_text).unwrap();
    let place = url.find("/approve/").unwrap();
    (id, url[place..].to_string())
}

fn hidden(page: &Reply, name: &str) -> Option<String> {
    let rest = page.text.split(&format!("name=\"{name}\" value=\"")).nth(1)?;
    Some(rest.split('"').next()?.to_string())
}

fn status(owner: &Client, id: &str) -> String {
    owner.get(&format!("/api/executions/{id}")).expect(200).text_at("status")
}

#[test]
fn the_approval_page_shows_the_request_and_decides() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        save(&ours.owner, "ship", gate(&[]));
        let (id, link) = asking(&ours.owner, "r1");
        let browser = ours.owner.signed_in();
        let page = browser.get(&link).expect(200);
        assert!(page.text.contains("Ship &lt;b&gt;1.2&lt;/b&gt;?") && page.text.contains("alert(1)"), "{page:?}");
        assert!(!page.text.contains("<script") && !page.text.contains("<b>"), "{page:?}");
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
        assert_eq!(status(&ours.owner, &id), "waiting_approval", "to look is not to decide");
        let token = hidden(&page, "resumeToken").unwrap();
        let send = |client: &Client, body: &str| client.send("POST", &link, &[FORM], Some(body));
        for (body, status) in [
            (format!("decision=approve&resumeToken={token}&other=1"), 400),
            (format!("decision=approve&decision=deny&resumeToken={token}"), 400),
            (format!("decision=maybe&resumeToken={token}"), 400),
            ("decision=approve&resumeToken=wrf_rt_guess".into(), 409),
            ("decision=approve".into(), 409),
        ] {
            send(&browser, &body).expect(status);
        }
        let body = format!("decision=approve&reason=looks+good&resumeToken={token}");
        // A request from another site, the session of the execution, an agent, and a viewer.
        let evil = [FORM, ("cookie", browser.cookie()), ("origin", "http://evil.example")];
        server.nobody().send("POST", &link, &evil, Some(&body)).expect(403);
        for client in [ours.session_of(&id), ours.member("robot", "agent"), ours.member("eve", "viewer")] {
            let seen = client.get(&link).expect(200);
            assert_eq!(hidden(&seen, "resumeToken"), None, "{seen:?}");
            send(&client, &body).expect(403);
            send(&client.signed_in(), &body).expect(403);
        }
        assert_eq!(status(&ours.owner, &id), "waiting_approval");
        assert!(send(&browser, &body).expect(200).text.contains("approved"));
        let ended = ours.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "completed");
        let steps = ours.owner.get(&format!("/api/executions/{id}/steps")).expect(200);
        assert!(steps.text.contains("approve by ada: looks good"), "{steps:?}");
        let late = send(&browser, &body).expect(409);
        assert!(late.text.contains("was already decided: approved by ada"), "{late:?}");
        assert!(browser.get(&link).expect(404).text.contains("Nothing waits here"));
        let (other, link) = asking(&ours.owner, "r2");
        let token = hidden(&browser.get(&link).expect(200), "resumeToken").unwrap();
        let body = format!("decision=deny&reason=&resumeToken={token}");
        browser.send("POST", &link, &[FORM], Some(&body)).expect(200);
        let ended = ours.owner.get(&format!("/api/executions/{other}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "cancelled");
    });
}

#[test]
fn anonymous_visitors_see_only_the_sign_in_page() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "ship", gate(&["bob"]));
    let (_, link) = asking(&owner, "r1");
    let nobody = server.nobody();
    let page = nobody.get(&link).expect(401);
    assert!(page.text.contains("action=\"/sign-in\"") && !page.text.contains("Ship"), "{page:?}");
    // Existing and missing approvals look the same.
    let none = nobody.get("/approve/none").expect(401);
    assert_eq!(none.text, page.text.replace(&hidden(&page, "next").unwrap(), "/approve/none"));
    // From another site, the browser is redirected once to the same page, where it sends its cookie.
    let from_mail = nobody.send("GET", &link, &[("sec-fetch-site", "cross-site")], None).expect(401);
    assert!(from_mail.text.contains("http-equiv=\"refresh\"") && from_mail.text.contains("?again=1"), "{from_mail:?}");
    let again = nobody.send("GET", &format!("{link}?again=1"), &[("sec-fetch-site", "same-origin")], None).expect(401);
    assert!(!again.text.contains("refresh"), "{again:?}");
    let next = hidden(&page, "next").unwrap();
    let enter = |token: &str, next: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([FORM]).collect();
        nobody.send("POST", "/sign-in", &headers, Some(&format!("token={token}&next={next}")))
    };
    let token = server.token.as_deref().unwrap();
    assert!(enter("msp_0_0", &next, &[]).expect(401).text.contains("not known"));
    enter(token, &next, &[("origin", "http://evil.example")]).expect(403);
    for elsewhere in ["https://evil.example/", "//evil.example", "/docs", "/approve/x%0d%0aset-cookie:%20a=b"] {
        let reply = enter(token, elsewhere, &[]).expect(400);
        assert_eq!(reply.header("set-cookie"), None);
    }
    let entered = enter(token, &next, &[]).expect(303);
    assert_eq!(entered.header("location"), Some(link.as_str()));
    let cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap();
    // The owner is no named approver.
    let seen = nobody.send("GET", &link, &[("cookie", cookie)], None).expect(200);
    assert!(seen.text.contains("not decide") && hidden(&seen, "resumeToken").is_none(), "{seen:?}");
}
