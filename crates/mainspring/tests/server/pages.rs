//! HTML pages: contents, access and content security.

use mainspring_kernel::value::Value;

use super::process::Server;

/// One page of the console has more files than the limit of anonymous requests per second.
const CONSOLE_REQUESTS: usize = 40;

#[test]
fn the_console_is_served_by_the_binary_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let nobody = server.nobody();
    let page = nobody.get("/").expect(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(
        page.text,
        nobody.get("/executions/some-id?view=journal").expect(200).text,
        "all pages are one document"
    );
    let sources: Vec<&str> = page.text.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert!(sources.len() >= 3, "{}", page.text);
    for path in sources.iter().cycle().take(CONSOLE_REQUESTS) {
        assert!(nobody.get(path).expect(200).header("cache-control").unwrap().contains("immutable"), "{path}");
    }
    nobody.get("/assets/no-such-file.js").expect(404);
    assert_eq!(nobody.get("/no-such-page").expect(404).json().get("code").and_then(Value::as_text), Some("NOT_FOUND"));
}

#[test]
fn the_api_is_described_to_people_by_the_binary_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let nobody = server.nobody();
    let page = nobody.get("/docs").expect(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.text.contains("<script") && !page.text.contains("src="), "nothing runs, nothing is fetched");
    assert!(nobody.get("/style.css").expect(200).header("content-type").unwrap().starts_with("text/css"));
    // Every route, with its permission and a sample call.
    let described = nobody.get("/openapi.json").expect(200).json();
    for (path, item) in described.get("paths").and_then(Value::as_map).unwrap() {
        for (method, operation) in item.as_map().unwrap() {
            let Some(permission) = operation.get("x-permission").and_then(Value::as_text) else { continue };
            let method = method.to_uppercase();
            assert!(page.text.contains(&format!("<summary><code>{method} {path}</code>")), "{method} {path}");
            assert!(page.text.contains(&format!("curl -X {method} &#39;http://{}{path}&#39;", server.address)));
            assert!(permission == "public" || page.text.contains(&format!("Asks for <code>{permission}</code>")));
        }
    }
    for shape in described.get("components").and_then(|all| all.get("schemas")).and_then(Value::as_map).unwrap().keys()
    {
        assert!(page.text.contains(&format!("<h3 id=\"{shape}\">")), "{shape}");
    }
}
