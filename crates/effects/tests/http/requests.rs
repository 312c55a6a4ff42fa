//! Sent requests, and the results of plain responses.

use super::{
    server::{Server, response},
    *,
};

#[tokio::test]
async fn a_request_is_sent_unchanged() {
    let mut server = Server::with(response(200, &[], "")).await;
    let headers = Value::map([("X-Own", Value::from("1")), ("Authorization", "Bearer secret".into())]);
    let query = Value::map([("q", Value::from("a b"))]);
    let params = [
        ("method", "put".into()),
        ("headers", headers),
        ("query", query),
        ("body", Value::map([("a", Value::from(1u64))])),
    ];
    done(run(&server.url("/p?x=%20#fragment"), params).await);
    let asked = server.next_request().await;
    assert_eq!(asked.line, "PUT /p?x=%20&q=a+b HTTP/1.1");
    assert_eq!(asked.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
    assert_eq!(asked.header("x-own"), Some("1"));
    assert_eq!(asked.header("authorization"), Some("Bearer secret"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("accept-encoding"), Some("gzip, br, deflate"));
    assert_eq!(asked.body, r#"{"a":1}"#);
}

#[tokio::test]
async fn content_length_is_sent_with_bodies_only() {
    let mut server = Server::with(response(200, &[], "")).await;
    for (method, body, length) in [
        ("GET", None, None),
        ("HEAD", None, None),
        ("DELETE", None, None),
        ("GET", Some("x"), Some("1")),
        ("POST", None, Some("0")),
        ("POST", Some("ä"), Some("2")),
    ] {
        let mut params = [("method", method.into()), ("headers", Value::Null)];
        if let Some(body) = body {
            params[1] = ("body", body.into());
        }
        done(run(&server.url("/"), params).await);
        let asked = server.next_request().await;
        assert_eq!((asked.header("content-length"), asked.header("transfer-encoding")), (length, None), "{method}");
        assert_eq!(asked.body, body.unwrap_or_default());
    }
}

#[tokio::test]
async fn attempts_share_the_key_unless_configured_per_attempt() {
    let mut server = Server::with(response(200, &[], "")).await;
    let http = http_to("127.0.0.1");
    let mut keys = Vec::new();
    for (number, key_per_attempt) in [(1, false), (2, false), (1, true), (2, true)] {
        let attempt = attempt_number(number, &server.url("/"), [("method", "POST".into())]);
        let flags = AttemptFlags { key_per_attempt, ..AttemptFlags::default() };
        done(perform(&http, &Attempt { flags, ..attempt }).await);
        keys.push(server.next_request().await.header("idempotency-key").unwrap().to_owned());
    }
    let key = "ab".repeat(32);
    assert_eq!(keys, [key.clone(), key.clone(), format!("{key}-1"), format!("{key}-2")]);
}

#[tokio::test]
async fn a_result_has_exactly_six_fields() {
    let json = ["Content-Type: application/json", "X-A: 1", "x-a: 2", "Set-Cookie: a", "Set-Cookie: b"];
    let server = Server::with(response(201, &json, r#"{"id":9007199254740993}"#)).await;
    let result = done(run(&server.url("/p?secret=1"), []).await);
    let keys: Vec<&str> = result.as_map().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["body", "durationMs", "headers", "redirects", "status", "url"]);
    assert_eq!(at(&result, "status"), &Value::from(201u64));
    assert_eq!(at(&result, "body/id"), &Value::from(9_007_199_254_740_993u64));
    assert_eq!(at(&result, "headers/x-a"), &Value::from("1, 2"));
    assert_eq!(at(&result, "headers/set-cookie"), &Value::from("a\nb"));
    assert_eq!(at(&result, "redirects"), &Value::from(0u64));
    assert_eq!(at(&result, "url"), &Value::from(server.url("/p")));
    assert!(at(&result, "durationMs").as_u64().is_some());
}

#[tokio::test]
async fn invalid_requests_are_not_sent() {
    let server = Server::with(response(200, &[], "")).await;
    let params = [("headers", Value::map([("Host", Value::from("other.test"))]))];
    let failure = assert_failed(run(&server.url("/"), params).await, "http_parameter_invalid", Class::Invalid);
    assert!(failure.message.starts_with("`headers.Host`: "), "{}", failure.message);
    assert_eq!(server.unread_requests(), 0);
}

#[tokio::test]
async fn failures_show_neither_queries_nor_headers() {
    let server = Server::with(response(404, &["X-A: 1"], "gone")).await;
    let params = || {
        [
            ("headers", Value::map([("Authorization", Value::from("Bearer secret"))])),
            ("query", Value::map([("key", Value::from("secret"))])),
        ]
    };
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for url in [server.url("/p?token=secret"), format!("http://{closed}/?secret"), "http://10.0.0.1/?secret".into()] {
        let failure = failed(run(&url, params()).await);
        assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
        assert!(failure.message.contains("http://"), "{failure:?}");
    }
}

#[test]
fn only_http_steps_are_performed() {
    let mut attempt = attempt("http://a.test", []);
    assert!(http_to("").performs(&attempt));
    attempt.effect = "bash".into();
    assert!(!http_to("").performs(&attempt));
}
