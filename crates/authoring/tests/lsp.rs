//! The work of the language server: how often it compiles, and how much of a long text it reads for one answer.
#![cfg(feature = "language-server")]

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Instant,
};

use lsp_server::{Connection, Message, Notification, Request, RequestId};
use mainspring_authoring::lsp::{Compiler, serve_on};
use mainspring_kernel::{
    definition::{Field, Syntax, Unread, compile, fields_of, read},
    diagnostic::Diagnostic,
    document::{Document, Path},
    value::Value,
};
use serde_json::{Value as Json, json};

const ADDRESS: &str = "file:///flow.yaml";

/// Counts what the server asks for.
#[derive(Default)]
struct Counts {
    checks: AtomicUsize,
    fields: AtomicUsize,
    /// The most steps of a definition that was read for a completion.
    steps: AtomicUsize,
}

impl Compiler for Counts {
    fn check(&self, _: &str, text: &str, syntax: Syntax) -> Vec<Diagnostic> {
        self.checks.fetch_add(1, Relaxed);
        let compiled =
            read(text.as_bytes(), syntax).map_err(|found| vec![found]).and_then(|document| compile(&document));
        compiled.map_or_else(|found| found, |compiled| compiled.warnings)
    }

    fn fields(&self, _: &str, document: &Document, step: &Path, reference: &str) -> Vec<Field> {
        self.fields.fetch_add(1, Relaxed);
        let steps = document.value.get("steps").and_then(Value::as_list).unwrap_or_default();
        self.steps.fetch_max(steps.len(), Relaxed);
        fields_of(document, &Unread, step, reference)
    }
}

/// A client of a server in another thread.
struct Client {
    connection: Connection,
    last_id: i32,
}

impl Client {
    fn notify(&self, method: &str, params: Json) {
        let sent = self.connection.sender.send(Message::Notification(Notification { method: method.into(), params }));
        sent.expect("it is received");
    }

    fn request(&mut self, method: &str, params: Json) -> Json {
        self.last_id += 1;
        let id = RequestId::from(self.last_id);
        let request = Request { id: id.clone(), method: method.into(), params };
        self.connection.sender.send(Message::Request(request)).expect("it is received");
        loop {
            if let Message::Response(response) = self.connection.receiver.recv().expect("an answer")
                && response.id == id
            {
                let response = serde_json::to_value(response).expect("JSON");
                return response.get("result").cloned().unwrap_or_default();
            }
        }
    }

    fn open(&self, text: &str) {
        let document = json!({"uri": ADDRESS, "languageId": "yaml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn change(&self, version: i32, changes: Json) {
        let document = json!({"uri": ADDRESS, "version": version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    /// Waits for the diagnostics of a version, and returns their codes.
    fn diagnostics(&self, version: i32) -> Vec<String> {
        loop {
            if let Message::Notification(Notification { params, .. }) =
                self.connection.receiver.recv().expect("a message")
                && params["version"] == version
            {
                let found = params["diagnostics"].as_array().expect("a list").clone();
                return found.iter().map(|found| found["code"].as_str().unwrap_or_default().to_string()).collect();
            }
        }
    }

    fn complete(&mut self, line: usize, character: usize) -> Vec<String> {
        let position = json!({"line": line, "character": character});
        let params = json!({"textDocument": {"uri": ADDRESS}, "position": position});
        let answer = self.request("textDocument/completion", params);
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap_or_default().to_string()).collect()
    }
}

fn with_server(drive: impl FnOnce(&mut Client, &Counts)) {
    let counts = Counts::default();
    let (server, client) = Connection::memory();
    thread::scope(|threads| {
        let counts = &counts;
        threads.spawn(move || serve_on(&server, counts));
        let mut client = Client { connection: client, last_id: 0 };
        client.request("initialize", json!({"capabilities": {}}));
        client.notify("initialized", json!({}));
        drive(&mut client, counts);
        client.request("shutdown", Json::Null);
        client.notify("exit", Json::Null);
    });
}

/// A definition of many steps, with the line of its last step.
fn long(last: &str) -> (String, usize) {
    let step = |number: u32| format!("  - {{id: s{number}, type: bash, command: \"echo @input.value\"}}\n");
    let steps: String = (0..2_000).map(step).collect();
    (format!("constraints: {{maxSteps: 10000}}\nsteps:\n{steps}{last}\n"), 2_002)
}

#[test]
fn a_completion_compiles_nothing_and_reads_the_steps_that_decide_about_it() {
    with_server(|client, counts| {
        let last = "  - {id: last, type: bash, command: \"echo @s1999.";
        let (text, line) = long(&format!("{last}\"}}"));
        client.open(&text);
        for _ in 0..20 {
            let labels = client.complete(line, last.len());
            assert!(labels.iter().any(|label| label == "stdout"), "{labels:?}");
        }
        assert_eq!(counts.fields.load(Relaxed), 20);
        assert_eq!(counts.steps.load(Relaxed), 2, "the step and the one to which it refers");
        // The server may have been idle for a moment in between, and it compiles a version once.
        assert!(counts.checks.load(Relaxed) <= 1, "{:?}", counts.checks);
    });
}

#[test]
fn the_diagnostics_of_a_version_are_found_once() {
    with_server(|client, counts| {
        client.open("steps:\n  - {id: a, type: bash, comand: ls}\n");
        assert_eq!(client.diagnostics(1), ["unknown_key"]);
        let range = json!({"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 4}});
        let context = json!({"diagnostics": []});
        let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
        for range in [range, whole] {
            let params = json!({"textDocument": {"uri": ADDRESS}, "range": range, "context": context});
            client.request("textDocument/codeAction", params);
        }
        assert_eq!(counts.checks.load(Relaxed), 1);
    });
}

#[test]
fn changes_apply_in_their_order_with_utf_16_columns() {
    with_server(|client, _| {
        // The letter before the key takes two units of UTF-16, and four bytes.
        client.open("# 𝄞\nsteps:\n  - {id: a, description: \"𝄞𝄞\", type: bash, comand: ls}\n");
        assert_eq!(client.diagnostics(1), ["unknown_key"]);
        let at = |line: u32, from: u32, to: u32| json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}});
        // `comand` begins after 46 units: each 𝄞 counts as two.
        let line = "  - {id: a, description: \"𝄞𝄞\", type: bash, ";
        let begin = line.encode_utf16().count() as u32;
        client.change(
            2,
            json!([{"range": at(2, begin, begin + 6), "text": "commandx"},
            {"range": at(2, begin + 7, begin + 8), "text": ""}]),
        );
        assert_eq!(client.diagnostics(2), [] as [&str; 0]);
        client.change(
            3,
            json!([{"text": "steps: []\n"}, {"range": at(0, 7, 9), "text": "[{id: a, type: bsah, command: ls}]"}]),
        );
        assert_eq!(client.diagnostics(3), ["unknown_type"]);
    });
}

#[test]
fn names_of_steps_beyond_the_first_are_completed_by_their_beginning() {
    with_server(|client, _| {
        let last = "  - {id: last, type: bash, command: \"echo @s19";
        let (text, line) = long(&format!("{last}\"}}"));
        client.open(&text);
        let labels = client.complete(line, last.len());
        assert!(labels.iter().any(|label| label == "s1999"), "{labels:?}");
    });
}

/// `cargo test -p mainspring-authoring --features language-server --test lsp -- --ignored --nocapture` prints the time of
/// completions in a file of 2,000 steps, each after a change. It is a benchmark without assertions on time.
#[test]
#[ignore = "prints figures"]
fn speed() {
    let field = "  - {id: last, type: bash, command: \"echo @s1999.";
    let step = "  - {id: last, type: bash, command: \"echo @s19";
    let key = "  - {id: last, type: bash, ";
    for (name, last, end) in [("a field", field, "\"}"), ("a step", step, "\"}"), ("a key", key, "command: ls}")] {
        with_server(|client, _| {
            let (text, line) = long(&format!("{last}{end}"));
            client.open(&text);
            let mut times = Vec::new();
            for version in 2..52 {
                let at = json!({"line": line, "character": last.len()});
                let started = Instant::now();
                client.change(version, json!([{"range": {"start": at, "end": at}, "text": ""}]));
                assert!(!client.complete(line, last.len()).is_empty(), "{name}");
                times.push(started.elapsed());
            }
            times.sort();
            println!("{name}: median {:?}, slowest {:?}", times[times.len() / 2], times[times.len() - 1]);
        });
    }
}
