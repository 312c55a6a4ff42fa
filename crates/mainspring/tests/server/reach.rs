//! The allowlist of `http` steps applies to one organization at a time.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
};

use mainspring_kernel::{json, value::Value};

use super::{
    client::Client,
    process::{Organization, Server},
    start::{save, start},
};

/// An HTTP server on its own port, which responds with 200 or redirects.
fn serve(to: Option<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = |mut stream: TcpStream, to: Option<&str>| {
        let reader = BufReader::new(stream.try_clone()?);
        reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
        match to {
            Some(to) => write!(stream, "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"),
            None => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        }
    };
    // The thread lives as long as the test process.
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(answer(stream, to.as_deref())));
    });
    port
}

fn steps(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap().value
}

/// Runs a workflow that sends a request. Returns its status, and the code and message of its failure.
fn run_request(client: &Client, workflow: &str) -> (String, String, String) {
    let id = start(client, workflow, workflow, Default::default()).expect(202).text_at("executionId");
    let ended = client.get(&format!("/api/executions/{id}/wait")).expect(200);
    let error = |key: &str| {
        let error = ended.json().get("error").cloned().unwrap_or_default();
        error.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
    };
    (ended.text_at("status"), error("code"), error("message"))
}

#[test]
fn allowlist_entries_apply_to_their_organization_only() {
    let hidden = serve(None);
    let on = serve(Some(format!("http://127.0.0.1:{hidden}/")));
    let allow = format!("127.0.0.1:{hidden},acme=127.0.0.1:{on}");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_as(folder.path(), "data", &[], &[("MAINSPRING_HTTP_ALLOW", allow.as_str())]);
    let acme = Organization::new(&server, "acme").owner;
    let save_asking = |client: &Client, id: &str, port: u16| {
        let step =
            format!(r#"[{{"id":"a","type":"http","url":"http://127.0.0.1:{port}/","retry":{{"maxAttempts":1}}}}]"#);
        save(client, id, steps(&step));
        let child = format!(r#"[{{"id":"sub","type":"subworkflow","workflow":"{id}"}}]"#);
        save(client, &format!("parent-of-{id}"), steps(&child));
    };
    for client in [&server.owner(), &acme] {
        save_asking(client, "hidden", hidden);
        save_asking(client, "on", on);
    }
    let refused = |workflow: &str, client: &Client, entry: &str| {
        let (status, code, message) = run_request(client, workflow);
        assert_eq!((status.as_str(), code.as_str()), ("failed", "http_address_refused"), "{workflow}: {message}");
        assert!(message.contains(&format!("MAINSPRING_HTTP_ALLOW={entry}")), "{message}");
    };
    // A child belongs to its parent's organization.
    for of in ["", "parent-of-"] {
        let (status, ..) = run_request(&server.owner(), &format!("{of}hidden"));
        assert_eq!(status, "completed");
        refused(&format!("{of}on"), &server.owner(), &format!("127.0.0.1:{on}"));
        refused(&format!("{of}hidden"), &acme, &format!("acme=127.0.0.1:{hidden}"));
        // The first hop is allowed, and redirects to an address that is allowed for `default` only.
        refused(&format!("{of}on"), &acme, &format!("acme=127.0.0.1:{hidden}"));
    }
}
