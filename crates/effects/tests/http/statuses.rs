//! Classes of failures for statuses and broken responses, which decide about retries.

use super::{
    server::{Server, response},
    *,
};

#[tokio::test]
async fn every_status_has_its_class() {
    let server = Server::start(|asked| response(asked.path()[1..].parse().unwrap(), &[], "why").into()).await;
    for (status, class) in [
        (300, Class::Failed),
        (302, Class::Failed),
        (304, Class::Failed),
        (400, Class::Failed),
        (401, Class::Failed),
        (403, Class::Failed),
        (404, Class::Failed),
        (408, Class::Timeout),
        (409, Class::Failed),
        (418, Class::Failed),
        (425, Class::Transient),
        (429, Class::RateLimited),
        (499, Class::Failed),
        (500, Class::Transient),
        (501, Class::Transient),
        (502, Class::Transient),
        (503, Class::Unavailable),
        (504, Class::Transient),
        (599, Class::Transient),
        (600, Class::Failed),
        (999, Class::Failed),
    ] {
        let url = server.url(&format!("/{status}"));
        let failure = assert_failed(run(&url, []).await, &format!("http_status:{status}"), class);
        assert!(failure.message.starts_with(&format!("{url} answered {status}")), "{}", failure.message);
        assert_eq!(at(&failure.details, "status"), &Value::from(status as u64));
        if status != 304 {
            assert_eq!(at(&failure.details, "body"), &Value::from("why"));
        }
        assert_eq!(failure.details.get("truncated"), None);
    }
    for status in [200, 201, 204, 206, 299] {
        assert_eq!(at(&done(run(&server.url(&format!("/{status}")), []).await), "status"), &Value::from(status as u64));
    }
}

#[tokio::test]
async fn only_expected_statuses_are_success() {
    let server = Server::start(|asked| response(asked.path()[1..].parse().unwrap(), &[], "").into()).await;
    let expect = || [("expect", Value::List(vec![404u64.into(), "5xx".into()]))];
    for status in [404, 500, 599] {
        done(run(&server.url(&format!("/{status}")), expect()).await);
    }
    for status in [200, 403, 405] {
        let code = format!("http_status:{status}");
        assert_failed(run(&server.url(&format!("/{status}")), expect()).await, &code, Class::Failed);
    }
}

#[tokio::test]
async fn retry_after_sets_the_delay() {
    let dates = ["Date: Fri, 31 Dec 1999 23:59:00 GMT", "Retry-After: Fri, 31 Dec 1999 23:59:30 GMT"];
    for (status, headers, delay_ms) in [
        (429, &["Retry-After: 7"][..], Some(7_000u64)),
        (429, &dates, Some(30_000)),
        (503, &["Retry-After: 120"], Some(120_000)),
        (500, &["Retry-After: 1"], Some(1_000)),
        (429, &["Retry-After: soon"], None),
        (429, &[], None),
        (404, &["Retry-After: 7"], None),
    ] {
        let server = Server::with(response(status, headers, "")).await;
        let failure = failed(run(&server.url("/"), []).await);
        assert_eq!(failure.details.get("retryAfterMs"), delay_ms.map(Value::from).as_ref(), "{status} {headers:?}");
    }
}

#[tokio::test]
async fn error_bodies_are_stored_up_to_a_bound() {
    let large = format!("X-Large: {}", "h".repeat(20_000));
    let server = Server::with(response(500, &["Content-Type: application/json", &large], "[1]")).await;
    let details = failed(run(&server.url("/"), []).await).details;
    assert_eq!(at(&details, "body"), &Value::List(vec![1u64.into()]));
    assert_eq!((at(&details, "headers").get("x-large"), at(&details, "truncated")), (None, &Value::from(true)));
    let body = "ä".repeat(1_000_000);
    let server = Server::with(response(404, &["Content-Type: application/json"], body)).await;
    let details = assert_failed(run(&server.url("/"), []).await, "http_status:404", Class::Failed).details;
    assert_eq!(at(&details, "body"), &Value::from("ä".repeat(8 * 1024)));
    assert_eq!(at(&details, "truncated"), &Value::from(true));
    // The status was received and counts, although the rest never arrived.
    let server = Server::with("HTTP/1.1 503 Any\r\nContent-Length: 100\r\n\r\nhalf").await;
    let details = assert_failed(run(&server.url("/"), []).await, "http_status:503", Class::Unavailable).details;
    assert_eq!((at(&details, "body"), at(&details, "truncated")), (&Value::from("half"), &Value::from(true)));
}

#[tokio::test]
async fn broken_responses_have_distinct_codes() {
    for (bytes, code, class) in [
        ("", "http_connection_lost", Class::Unavailable),
        ("HTTP/1.1 200 OK\r\nContent-", "http_connection_lost", Class::Unavailable),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "http_connection_lost", Class::Unavailable),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", "http_connection_lost", Class::Unavailable),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "http_response_invalid", Class::Invalid),
        ("HTTP/1.1 200 OK\r\nA B: c\r\n\r\n", "http_response_invalid", Class::Invalid),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "http_response_invalid", Class::Invalid),
    ] {
        let server = Server::with(bytes).await;
        let failure = assert_failed(run(&server.url("/"), []).await, code, class);
        let tells = failure.message.contains("may have been received");
        assert_eq!(tells, code == "http_connection_lost", "{}", failure.message);
    }
}

#[tokio::test]
async fn a_missing_server_is_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_failed(run(&url, []).await, "http_connect_failed", Class::Unavailable);
    let unknown = HttpOptions { resolver: Scripted::new(&[]), ..HttpOptions::default() };
    let outcome = perform(&Http::new(unknown), &attempt("http://a.test/", [])).await;
    assert_failed(outcome, "http_dns_failed", Class::Unavailable);
}
