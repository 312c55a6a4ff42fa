//! Redirects: their targets, and the headers that they keep.

use super::{
    server::{Asked, Server, redirect, response},
    *,
};

/// Starts a server that redirects everything except `/end` to it, with this status.
async fn sending_on(status: u16) -> Server {
    Server::start(move |asked| match asked.path() {
        "/end" => response(200, &[], "end").into(),
        _ => redirect(status, "/end").into(),
    })
    .await
}

/// Returns the request that arrives after a redirect with this status, sent with this method.
async fn arriving(status: u16, method: &str) -> Asked {
    let mut server = sending_on(status).await;
    let headers = Value::map([("Content-Language", Value::from("en")), ("Authorization", "mine".into())]);
    let params = [("method", method.into()), ("body", "data".into()), ("headers", headers)];
    let result = done(run(&server.url("/"), params).await);
    assert_eq!(at(&result, "redirects"), &Value::from(1u64));
    assert_eq!(at(&result, "url"), &Value::from(server.url("/end")));
    server.next_request().await;
    server.next_request().await
}

#[tokio::test]
async fn methods_change_by_the_standard() {
    for (status, method, expected) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (303, "GET", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ] {
        let asked = arriving(status, method).await;
        assert_eq!(asked.line, format!("{expected} /end HTTP/1.1"), "{status} {method}");
        let has_body = method == expected;
        assert_eq!(asked.body, if has_body { "data" } else { "" }, "{status} {method}");
        assert_eq!(asked.header("content-type").is_some(), has_body);
        assert_eq!(asked.header("content-language").is_some(), has_body);
        // The origin is still the same.
        assert_eq!(asked.header("authorization"), Some("mine"));
        assert!(asked.header("idempotency-key").is_some());
    }
    let mut server = sending_on(303).await;
    done(run(&server.url("/"), [("method", "HEAD".into())]).await);
    server.next_request().await;
    assert_eq!(server.next_request().await.line, "HEAD /end HTTP/1.1");
}

#[tokio::test]
async fn credentials_are_dropped_after_a_change_of_origin() {
    let mut other_origin = Server::start(|asked| match asked.path() {
        // Redirects back to the first server.
        path if path.starts_with("/back") => redirect(307, &path["/back?".len()..]).into(),
        _ => response(200, &[], "").into(),
    })
    .await;
    let back = |port: u16| format!("http://127.0.0.1:{port}/end");
    let target = other_origin.url("/back?");
    let mut home = Server::start(move |asked| match asked.path() {
        "/end" => response(200, &[], "").into(),
        _ => redirect(
            307,
            &format!("{target}{}", back(asked.header("host").unwrap().rsplit_once(':').unwrap().1.parse().unwrap())),
        )
        .into(),
    })
    .await;
    let headers = ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "Accept"];
    let params = [
        ("method", "POST".into()),
        ("body", "data".into()),
        ("headers", Value::map(headers.map(|name| (name, Value::from("mine"))))),
    ];
    done(run(&home.url("/"), params).await);
    let (first, abroad, last) =
        (home.next_request().await, other_origin.next_request().await, home.next_request().await);
    for name in ["authorization", "cookie", "proxy-authorization", "x-api-key", "idempotency-key"] {
        assert!(first.header(name).is_some(), "{name}");
        assert_eq!((abroad.header(name), last.header(name)), (None, None), "{name}");
    }
    for asked in [abroad, last] {
        assert_eq!((asked.header("accept"), asked.body.as_str()), (Some("mine"), "data"));
        assert_eq!(asked.header("content-type"), Some("text/plain; charset=utf-8"));
    }
}

#[tokio::test]
async fn redirect_chains_are_bounded() {
    let server = Server::start(|asked| {
        let count: u32 = asked.path()[1..].parse().unwrap();
        match count {
            0 => response(200, &[], "end").into(),
            _ => redirect(302, &format!("/{}", count - 1)).into(),
        }
    })
    .await;
    let result = done(run(&server.url("/5"), []).await);
    assert_eq!(at(&result, "redirects"), &Value::from(5u64));
    assert_failed(run(&server.url("/6"), []).await, "http_redirects_too_many", Class::Failed);
}

#[tokio::test]
async fn expected_redirects_are_results() {
    let server = sending_on(302).await;
    let params = || [("followRedirects", false.into())];
    let failure = assert_failed(run(&server.url("/"), params()).await, "http_status:302", Class::Failed);
    assert_eq!(at(&failure.details, "headers/location"), &Value::from("/end"));
    let params = [("followRedirects", false.into()), ("expect", Value::List(vec!["3xx".into()]))];
    let result = done(run(&server.url("/"), params).await);
    assert_eq!(at(&result, "status"), &Value::from(302u64));
    // Without a `Location` it is a final response.
    let server = Server::with(response(302, &[], "")).await;
    assert_failed(run(&server.url("/"), []).await, "http_status:302", Class::Failed);
}

#[tokio::test]
async fn invalid_locations_are_refused() {
    for location in ["ftp://a.test/", "http://user:secret@a.test/", "http://", "file:///etc/passwd", "http://a:0/"] {
        let server = Server::with(redirect(302, location)).await;
        let failure = assert_failed(run(&server.url("/"), []).await, "http_redirect_invalid", Class::Invalid);
        assert!(!failure.message.contains("secret"));
    }
}
