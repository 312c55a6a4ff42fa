//! Servers that have exited, disconnect, or send invalid responses: the command line reports it, loses nothing, and
//! interprets no control characters.

use std::net::TcpListener;

use mainspring_kernel::{json, value::Value};

use super::{
    commands::{Caller, SHIP, WAITS, assert_refused},
    fault_proxy::{Between, Fault},
    process::Server,
};

/// A server with workflows, and a proxy before it.
fn behind(
    fault: impl Fn(&str, usize) -> Fault + Send + Sync + 'static,
) -> (tempfile::TempDir, Server, Between, Caller) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let between = Between::new(&server.address, fault);
    let caller = Caller::new(&between.address, server.token.as_deref().unwrap());
    caller.save("ship", SHIP);
    caller.save("waits", WAITS);
    (folder, server, between, caller)
}

fn answer(status: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{more}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[test]
fn an_unreachable_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let caller = Caller::new(&address, "msp_x");
    for arguments in [vec!["list"], vec!["run", "ship"], vec!["tail", "x"], vec!["approve", "x"]] {
        caller.refused(&arguments, 40, &["cannot be reached", &address, "`mainspring up`"]);
    }
    let told = caller.call(&["list", "--json"]);
    assert_eq!((told.exit, told.text("error.code").as_str()), (Some(40), "server_unreachable"));
}

#[test]
fn invalid_responses_are_errors_and_are_escaped() {
    let html = "<html>\u{1b}[2J</html>";
    for (said, exit, words) in [
        (b"\x00\xff\xfe garbage".to_vec(), 40, "no response from the server"),
        (Vec::new(), 40, "no response from the server"),
        (answer("200 OK", "", html), 40, "its response is not JSON"),
        (answer("502 Bad Gateway", "", html), 40, "status 502"),
        (answer("200 OK", "", "[]"), 40, "`executions` of a page of executions is not a list"),
        (
            answer("200 OK", "", "{\"executions\": [{}], \"nextCursor\": null}"),
            40,
            "`status` of an execution is not a text",
        ),
        (answer("200 OK", "", "{\"executions\": [{\"status\": \"odd\"}]}"), 40, "is not one of pending"),
        (answer("302 Found", "location: https://elsewhere.example\r\n", ""), 40, "points to https://elsewhere.example"),
        (
            answer("400 Bad Request", "", "{\"error\": \"No\\u001b[2J.\", \"code\": \"VALIDATION_ERROR\"}"),
            10,
            "No\\u{1b}[2J",
        ),
        (answer("418 Teapot", "", "{\"error\": \"I am new.\", \"code\": \"TEAPOT\"}"), 20, "I am new"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{".to_vec(), 40, "no response from the server"),
    ] {
        let between = Between::saying(&said);
        let caller = Caller::new(&between.address, "msp_x");
        let told = caller.call(&["list"]);
        assert_refused(&told, exit, &[words]);
        assert!(!told.stderr.contains('\u{1b}'), "{told:?}");
    }
}

#[test]
fn a_cyclic_list_ends() {
    let row = r#"{"id": "a", "status": "running", "workflowHash": "h", "triggerType": "manual", "startedAt": "2026-01-01T00:00:00.000Z"}"#;
    let between =
        Between::saying(&answer("200 OK", "", &format!("{{\"executions\": [{row}], \"nextCursor\": \"c\"}}")));
    let caller = Caller::new(&between.address, "msp_x");
    assert_eq!(caller.fine(&["list", "--json", "--limit", "100000"]).lines().count(), 2);
}

#[test]
fn rate_limited_requests_are_retried() {
    let away =
        answer("429 Too Many Requests", "retry-after: 0\r\n", "{\"error\": \"Full.\", \"code\": \"RATE_LIMITED\"}");
    let (_folder, _server, between, caller) =
        behind(
            move |head, before| {
                if head.contains("/manual/run") && before < 2 { Fault::Say(away.clone()) } else { Fault::Pass }
            },
        );
    caller.fine(&["run", "ship", "--detach", "--var", "name=Ada"]);
    assert_eq!(between.requests_with("/manual/run").len(), 3);
    let full =
        answer("429 Too Many Requests", "retry-after: 3600\r\n", "{\"error\": \"Full.\", \"code\": \"RATE_LIMITED\"}");
    let full = Between::saying(&full);
    Caller::new(&full.address, "msp_x").refused(&["list"], 30, &["Full; try again later"]);
}

#[test]
fn a_start_with_a_lost_response_is_repeated_and_starts_once() {
    let (_folder, _server, between, caller) =
        behind(|head, before| if head.contains("/manual/run") && before == 0 { Fault::Swallow } else { Fault::Pass });
    caller.fine(&["run", "ship", "--detach", "--var", "name=Ada"]);
    assert_eq!(between.requests_with("/manual/run").len(), 2);
    assert_eq!(caller.fine(&["list", "--json"]).lines().count(), 1);
}

#[test]
fn a_decision_with_a_lost_response_is_not_repeated() {
    let (_folder, _server, between, caller) =
        behind(|head, _| if head.contains("/approve ") { Fault::Swallow } else { Fault::Pass });
    caller.fine(&["run", "ship", "--var", "name=Ada"]);
    caller.refused(&["approve", "last"], 40, &["the result is unknown", "`mainspring show ID`"]);
    assert_eq!(between.requests_with("/approve ").len(), 1);
    assert!(caller.fine(&["tail", "last"]).contains("approve by owner"), "the server has taken it");
}

#[test]
fn a_broken_stream_resumes_after_the_last_event() {
    let (_folder, _server, between, caller) = behind(|head, before| match before {
        0 if head.contains("/events") => Fault::CutBehind("\"stepId\":\"greet\""),
        1 if head.contains("/events") => Fault::CutBehind("\n\n"),
        _ => Fault::Pass,
    });
    let ran = caller.call(&["run", "ship", "--yes", "--var", "name=Ada"]);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    for line in ["✓ greet", "? ask", "! ask  approve by owner", "✓ ask", "✓ last"] {
        assert_eq!(ran.stdout.matches(line).count(), 1, "{line:?} once: {}", ran.stdout);
    }
    let streams = between.requests_with("/events");
    assert!(streams.len() >= 3 && !streams[0].contains("last-event-id"), "{streams:?}");
    assert!(streams[1].contains("last-event-id: 0.0") && streams[2].contains("last-event-id: "), "{streams:?}");
    assert_ne!(streams[1], streams[2], "the second one brought something");
}

#[test]
fn a_lost_connection_is_reported_once() {
    let (_folder, _server, between, caller) =
        behind(|head, before| if head.contains("/events") && before < 4 { Fault::Swallow } else { Fault::Pass });
    let ran = caller.call(&["run", "ship", "--yes", "--var", "name=Ada"]);
    assert!(ran.exit == Some(0) && ran.stdout.contains("✓ last"), "{ran:?}");
    assert_eq!(ran.stderr.matches("is lost; trying again").count(), 1, "{ran:?}");
    assert_eq!(between.requests_with("/events").len(), 5);
}

#[test]
fn repeated_events_are_not_printed_again() {
    let (_folder, server, _between, caller) = behind(|_, _| Fault::Pass);
    let id = caller.call(&["run", "ship", "--yes", "--json", "--var", "name=Ada"]).text("executionId");
    // A server that ignores `Last-Event-ID` and sends all events again.
    let stream = server.owner().get(&format!("/api/executions/{id}/events")).expect(200).text;
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", stream.len());
    let again = (head + &stream).into_bytes();
    let between = Between::new(&server.address, move |head, before| match before {
        0 if head.contains("/events") => Fault::CutBehind("\"approval.required\""),
        _ if head.contains("/events") => Fault::Say(again.clone()),
        _ => Fault::Pass,
    });
    let seen = Caller::new(&between.address, server.token.as_deref().unwrap()).fine(&["tail", &id]);
    assert!(between.requests_with("/events").len() == 2 && seen.contains("✓ last"), "{seen}");
    for line in ["✓ greet", "? ask", "✓ ask"] {
        assert_eq!(seen.matches(line).count(), 1, "{line:?} once: {seen}");
    }
}

#[test]
fn a_chain_changed_in_transit_does_not_verify() {
    let (_folder, server, _between, caller) = behind(|_, _| Fault::Pass);
    let id = caller.call(&["run", "ship", "--detach", "--json", "--var", "name=Ada"]).text("executionId");
    caller.fine(&["tail", &id]);
    caller.fine(&["approve", &id]);
    caller.fine(&["tail", &id]);
    let journal = server.owner().get(&format!("/api/executions/{id}/journal")).expect(200).text;
    let frames =
        |text: &str| json::read(text.as_bytes()).unwrap().value.get("frames").unwrap().as_list().unwrap().to_vec();
    let told = |frames: Vec<Value>| {
        let body = json::compact(&Value::map([
            ("executionId", Value::from(id.as_str())),
            ("frames", frames.into()),
            ("nextCursor", Value::Null),
        ]));
        let saying = body.clone();
        let between = Between::new(&server.address, move |head, _| {
            if head.contains("/journal") { Fault::Say(answer("200 OK", "", &saying)) } else { Fault::Pass }
        });
        Caller::new(&between.address, server.token.as_deref().unwrap()).call(&["verify", &id])
    };
    let all = frames(&journal);
    assert!(all.len() > 1);
    assert_eq!(told(all.clone()).exit, Some(0));
    let first = all[0].get("frame").and_then(Value::as_text).unwrap();
    let (kept, last) = first.split_at(first.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    let changed = journal.replace(first, &format!("{kept}{other}"));
    assert!(told(frames(&changed)).stdout.contains("does not have the hash"));
    assert!(told(all[1..].to_vec()).stdout.contains("frame 0 is not there"));
    let twice = vec![all[0].clone(), all[0].clone()];
    assert_eq!(told(twice).exit, Some(1));
    assert_eq!(told(Vec::new()).exit, Some(1));
}
