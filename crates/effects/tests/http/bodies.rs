//! Bodies: their conversion and their bounds.

use std::io::Write;

use super::{
    server::{Server, response},
    *,
};
use flate2::{Compression, write::GzEncoder};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Performs a request with this bound and this response.
async fn outcome_of(headers: &[&str], body: &[u8], bytes_max: Option<u64>) -> Outcome {
    let server = Server::with(response(200, headers, body)).await;
    run(&server.url("/"), [("maxResponseBytes", bytes_max.into())]).await
}

#[track_caller]
fn assert_too_large(outcome: Outcome) {
    assert_failed(outcome, "http_response_too_large", Class::Policy);
}

#[tokio::test]
async fn bodies_become_values() {
    for (content_type, body, expected) in [
        ("application/json", &b"[1]"[..], Value::List(vec![1u64.into()])),
        ("application/problem+json", b"null", Value::Null),
        ("application/json", b"[1", "[1".into()),
        ("text/plain", b"[1]", "[1]".into()),
        ("application/octet-stream", b"\xff\x00", Value::map([("base64", Value::from("/wA="))])),
        ("application/json", b"", Value::Null),
    ] {
        let header = format!("Content-Type: {content_type}");
        let result = done(outcome_of(&[&header], body, None).await);
        assert_eq!(at(&result, "body"), &expected);
    }
}

#[tokio::test]
async fn decoded_responses_drop_the_coding_headers() {
    let headers = ["Content-Encoding: gzip", "Content-Type: application/json"];
    let result = done(outcome_of(&headers, &gzip(b"{\"a\":1}"), None).await);
    assert_eq!(at(&result, "body/a"), &Value::from(1u64));
    let kept = at(&result, "headers");
    assert_eq!((kept.get("content-encoding"), kept.get("content-length")), (None, None));
    // A body with an unknown coding is not decoded.
    let result = done(outcome_of(&["Content-Encoding: zstd"], b"(\xb5/\xfd", None).await);
    assert_eq!(at(&result, "body/base64"), &Value::from("KLUv/Q=="));
    assert_eq!(at(&result, "headers/content-encoding"), &Value::from("zstd"));
    let outcome = outcome_of(&["Content-Encoding: gzip"], b"plain", None).await;
    assert_failed(outcome, "http_response_invalid", Class::Invalid);
    let torn = &gzip(b"some text")[..20];
    assert_failed(outcome_of(&["Content-Encoding: gzip"], torn, None).await, "http_response_invalid", Class::Invalid);
}

#[tokio::test]
async fn the_bound_is_exact() {
    done(outcome_of(&[], &[b'x'; 1000], Some(1000)).await);
    assert_too_large(outcome_of(&[], &[b'x'; 1001], Some(1000)).await);
    done(outcome_of(&["Content-Encoding: gzip"], &gzip(&[b'x'; 1000]), Some(1000)).await);
    assert_too_large(outcome_of(&["Content-Encoding: gzip"], &gzip(&[b'x'; 1001]), Some(1000)).await);
    let whole = vec![b'x'; 220 * 1024 + 1];
    done(outcome_of(&[], &whole[1..], None).await);
    assert_too_large(outcome_of(&[], &whole, None).await);
}

#[tokio::test]
async fn decompressed_bodies_are_bounded() {
    let bomb = gzip(&vec![0; 50_000_000]);
    assert!(bomb.len() < 100_000);
    assert_too_large(outcome_of(&["Content-Encoding: gzip"], &bomb, None).await);
    let details = {
        let server = Server::with(response(500, &["Content-Encoding: gzip"], gzip(&[b'x'; 1_000_000]))).await;
        assert_failed(run(&server.url("/"), []).await, "http_status:500", Class::Transient).details
    };
    assert_eq!(at(&details, "body"), &Value::from("x".repeat(16 * 1024)));
}

/// The bound holds for the stored value too: short numbers of JSON grow when they are stored.
#[tokio::test]
async fn bodies_are_bounded_by_the_size_of_their_value() {
    let numbers = format!("[{}0]", "0.1,".repeat(50_000));
    let json = ["Content-Type: application/json"];
    assert_too_large(outcome_of(&json, numbers.as_bytes(), None).await);
    assert_too_large(outcome_of(&[], &vec![0xff; 215 * 1024], None).await);
    assert_too_large(outcome_of(&[], &vec![b'x'; 300 * 1024], Some(1024 * 1024)).await);
    // White space is not stored.
    let spaced = format!("[{}0]", " ".repeat(500_000));
    done(outcome_of(&json, spaced.as_bytes(), Some(1024 * 1024)).await);
}

#[tokio::test]
async fn response_headers_are_bounded() {
    let header = |length: usize| format!("X-Large: {}", "x".repeat(length));
    done(outcome_of(&[&header(20_000)], b"", None).await);
    assert_too_large(outcome_of(&[&header(25_000)], b"", None).await);
    assert_too_large(outcome_of(&[&header(200_000)], b"", None).await);
}

#[tokio::test]
async fn bodies_end_with_the_connection_or_in_chunks_too() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
    for answer in ["HTTP/1.0 200 OK\r\n\r\nabcde", chunked] {
        let server = Server::with(answer).await;
        assert_eq!(at(&done(run(&server.url("/"), []).await), "body"), &Value::from("abcde"));
    }
    let server = Server::with("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\nContent-Encoding: gzip\r\n\r\n").await;
    assert_eq!(at(&done(run(&server.url("/"), [("method", "HEAD".into())]).await), "body"), &Value::Null);
}
