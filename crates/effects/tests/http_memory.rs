//! Bounds the memory of one request against hostile servers: bodies that grow when decoded, endless bodies, endless
//! heads. The allocator of this program measures the peak of the whole process, so everything is one test.

use std::{io::Write, time::Duration};

use flate2::{Compression, write::GzEncoder};
use mainspring_effects::{
    CancelHandle, Executor,
    http::{Http, HttpOptions},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    key::ExecutionKey,
    value::Value,
};
use peak_alloc::PeakAlloc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes for a request and a response of up to 225,280 bytes: the growing buffer, the decoded body and the value.
const MEMORY_MAX: usize = 6 * 1024 * 1024;

/// The length at which endless bodies stop: far more than [`MEMORY_MAX`].
const ENDLESS: usize = 64 * 1024 * 1024;

/// Time for one request that sends 64 MiB over the loopback interface.
const PATIENCE: Duration = Duration::from_secs(60);

fn gzip(bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 64 * 1024];
    for _ in 0..bytes / zeros.len() {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

/// Answers one request with some bytes, and then with a piece repeatedly.
async fn serve(listener: TcpListener, head: Vec<u8>, piece: &'static [u8]) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut asked = [0; 4096];
    let _ = stream.read(&mut asked).await;
    if stream.write_all(&head).await.is_err() {
        return;
    }
    for _ in 0..ENDLESS.checked_div(piece.len()).unwrap_or_default() {
        if stream.write_all(piece).await.is_err() {
            return;
        }
    }
}

async fn outcome_of(head: Vec<u8>, piece: &'static [u8]) -> (Outcome, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let server = tokio::spawn(serve(listener, head, piece));
    let http = Http::new(HttpOptions { allow: "127.0.0.1".parse().unwrap(), ..HttpOptions::default() });
    let attempt = Attempt {
        execution: ExecutionKey([5; 16]),
        root: ExecutionKey([5; 16]),
        execution_id: "memory".into(),
        organization: None,
        workflow_id: None,
        step: "fetch".into(),
        number: 1,
        effect: "http".into(),
        params: Value::map([("url", Value::from(url))]),
        intent: Hash([1; 32]),
        flags: AttemptFlags::default(),
        handed_out_at: u64::MAX,
        workspace: None,
        secrets: mainspring_kernel::secret::SecretUses::default(),
        progress: None,
    };
    let (_cancel_handle, stop) = CancelHandle::pair();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let outcome = timeout(PATIENCE, http.perform(&attempt, stop)).await.expect("a request comes to an end");
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    server.abort();
    (outcome, peak)
}

#[tokio::test]
async fn a_request_takes_bounded_memory() {
    let bomb = gzip(ENDLESS);
    let coded = |status: &str| {
        let length = bomb.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n");
        [head.into_bytes(), bomb.clone()].concat()
    };
    let plain = |head: &str| head.as_bytes().to_vec();
    for (what, head, piece) in [
        ("a body that grows when it is decoded", coded("200 OK"), &b""[..]),
        ("one of a failure", coded("500 Oops"), b""),
        ("a body without an end", plain("HTTP/1.1 200 OK\r\n\r\n"), &[b'x'; 4096]),
        ("one of a failure without an end", plain("HTTP/1.1 500 Oops\r\n\r\n"), &[b'x'; 4096]),
        ("chunks of one byte", plain("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), b"1\r\nx\r\n"),
        ("a head without an end", plain("HTTP/1.1 200 OK\r\n"), b"X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n"),
        ("a field without an end", plain("HTTP/1.1 200 OK\r\nX: "), &[b'x'; 4096]),
    ] {
        let (outcome, peak) = outcome_of(head, piece).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{what}: {outcome:?}");
        assert!(peak < MEMORY_MAX, "{what}: {peak} bytes");
    }
}
