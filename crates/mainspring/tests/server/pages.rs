//! HTML pages: contents, access and content security.

use mainspring_kernel::value::Value;

use super::process::Server;

#[test]
fn the_api_is_described_to_people_by_the_binary_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let nobody = server.nobody();
    assert_eq!(nobody.get("/").expect(303).header("location"), Some("/docs"));
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
