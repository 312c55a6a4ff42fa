//! The language server, through a client of its protocol.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

const ADDRESS: &str = "file:///flow.yaml";

/// A client with one open text.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainspring"));
        command.arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("MAINSPRING_SERVER");
        let mut server = command.spawn().expect("it starts");
        let input = server.stdin.take().expect("a stream");
        let output = BufReader::new(server.stdout.take().expect("a stream"));
        let mut client = Self { server, input, output, last_id: 0 };
        let answer = client.request("initialize", Value::map([("capabilities", Map::new().into())]));
        assert!(answer.get("capabilities").is_some(), "{answer:?}");
        client.notify("initialized", Map::new().into());
        client
    }

    fn send(&mut self, message: Value) {
        let text = json::compact(&message);
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it is sent");
        self.input.flush().expect("it is sent");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a header");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(count) => length = count.parse().expect("a number"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("a message");
        json::read(&text).expect("JSON").value
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(Value::map([("jsonrpc", "2.0".into()), ("method", method.into()), ("params", params)]));
    }

    /// Sends a request, and returns its result, or its error as `{error}`.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let head = [("jsonrpc", "2.0".into()), ("id", id.into()), ("method", method.into())];
        self.send(Value::map(head.into_iter().chain([("params", params)])));
        loop {
            let message = self.receive();
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                let error = message.get("error").map(|error| Value::map([("error", error.clone())]));
                return error.unwrap_or_else(|| message.get("result").cloned().unwrap_or_default());
            }
        }
    }

    /// Opens or replaces the text, and returns the diagnostics of it as `CODE at LINE:COLUMN`.
    fn open(&mut self, text: &str) -> Vec<String> {
        let document =
            [("uri", ADDRESS.into()), ("languageId", "yaml".into()), ("version", 1u64.into()), ("text", text.into())];
        self.notify("textDocument/didOpen", Value::map([("textDocument", Value::map(document))]));
        loop {
            let message = self.receive();
            if message.get("method").and_then(Value::as_text) == Some("textDocument/publishDiagnostics") {
                let found = message.get("params").and_then(|params| params.get("diagnostics")).cloned();
                let found = found.as_ref().and_then(Value::as_list).expect("a list").to_vec();
                return found.iter().map(shown).collect();
            }
        }
    }

    fn at(&mut self, method: &str, text: &str, more: Option<(&str, &str)>) -> Value {
        let (before, _) = text.split_once('|').expect("a cursor");
        let line = before.matches('\n').count() as u64;
        let character = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count() as u64;
        let position = Value::map([("line", line.into()), ("character", character.into())]);
        let mut params = vec![("textDocument", Value::map([("uri", ADDRESS.into())])), ("position", position)];
        params.extend(more.map(|(key, value)| (key, value.into())));
        self.request(method, Value::map(params))
    }

    /// Opens a text with `|` for the cursor, and returns the labels of the completions.
    fn complete(&mut self, text: &str) -> Vec<String> {
        self.open(&text.replacen('|', "", 1));
        let answer = self.at("textDocument/completion", text, None);
        let items = answer.get("items").and_then(Value::as_list).unwrap_or_default();
        items.iter().filter_map(|item| item.get("label").and_then(Value::as_text)).map(String::from).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn shown(found: &Value) -> String {
    let start = found.get("range").and_then(|range| range.get("start")).cloned().unwrap_or_default();
    let number = |key: &str| start.get(key).and_then(Value::as_u64).unwrap_or_default();
    let code = found.get("code").and_then(Value::as_text).unwrap_or_default();
    format!("{code} at {}:{}", number("line"), number("character"))
}

const FLOW: &str = "name: flow
inputSchema: {type: object, properties: {city: {type: string}}}
steps:
  - id: fetch
    type: bash
    command: curl example.org
  - {id: check, type: conditional, condition: {ref: \"@fetch.exitCode\", eq: 0}, then: [{id: say, type: bash, command: echo ok}]}
output: {text: \"@fetch.stdout\"}
";

#[test]
fn diagnostics_come_with_an_open_text() {
    let mut client = Client::start();
    assert_eq!(client.open(FLOW), [] as [&str; 0]);
    let found = client.open(&FLOW.replace("command: curl", "comand: curl"));
    assert_eq!(found, ["unknown_key at 5:4"]);
    let found = client.open("steps:\n  - {id: a, type: bash, command: echo @b.stdout}\n  - {id: €, type: tool\n");
    assert!(found.len() == 1 && found[0].starts_with("unreadable"), "{found:?}");
    assert_eq!(client.open("services: {web: {image: x}}\n"), [] as [&str; 0], "another YAML file is left alone");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    let exit = client.server.wait().expect("it ends");
    assert!(exit.success(), "{exit}");
}

#[test]
fn completion_of_keys_types_values_and_references() {
    let mut client = Client::start();
    let mut check = |text: &str, has: &[&str], lacks: &[&str]| {
        let labels = client.complete(text);
        for label in has {
            assert!(labels.iter().any(|known| known == label), "{text}: no {label} in {labels:?}");
        }
        for label in lacks {
            assert!(labels.iter().all(|known| known != label), "{text}: {label} in {labels:?}");
        }
    };
    check("name: x\n|", &["steps", "inputSchema", "constraints"], &["name", "command"]);
    check("steps:\n  - id: a\n    type: bash\n    |", &["command", "env", "retry", "when"], &["id", "tool", "steps"]);
    check("steps:\n  - id: a\n    type: bash\n    com|\n  - id: b\n", &["command"], &["prompt"]);
    check("steps:\n  - id: a\n    type: |\n", &["bash", "approval", "loop"], &["event"]);
    check("steps:\n  - {id: a, type: ba|}\n", &["bash"], &[]);
    check("steps:\n  - {id: a, type: approval, |}\n", &["prompt", "ttlMs"], &["command", "type"]);
    check("steps:\n  - id: a\n    type: approval\n    onTimeout: |\n", &["approve", "deny"], &[]);
    check("steps:\n  - id: a\n    type: bash\n    retry:\n      |\n", &["maxAttempts", "retryOn"], &["command"]);
    check("steps:\n  - id: a\n    type: bash\n    when:\n      |\n", &["ref", "all", "gte"], &["command"]);
    check(
        "steps:\n  - {id: a, type: bash, command: x}\n  - {id: b, type: bash, env: {X: \"@|\"}}\n",
        &["a", "input", "vars"],
        &["bash"],
    );
    check(
        "steps:\n  - {id: a, type: bash, command: x}\n  - {id: b, type: bash, env: {X: \"@a.|\"}}\n",
        &["stdout", "exitCode"],
        &["a"],
    );
    check(
        "steps:\n  - {id: a, type: bash, command: x, forEach: {ref: \"@input\"}}\n  - {id: b, type: tool, tool: T, forEach: {ref: \"@a\"}, arguments: {x: \"@item.|\"}}\n",
        &["stdout", "exitCode"],
        &["a", "body"],
    );
    check(
        "steps:\n  - id: sum\n    type: code\n    code: \"export default (x): {lines: {price: number}[]} => x\"\n  - id: b\n    type: bash\n    env:\n      X: \"@sum.lines[0].|\n",
        &["price"],
        &["lines"],
    );
    check(
        "variables: {region: {type: string}}\nsteps:\n  - {id: a, type: bash, command: \"echo @vars.|\"}\n",
        &["region"],
        &[],
    );
    check("steps:\n  - {id: a, type: bash, command: \"echo @ctx.|\"}\n", &["now", "attempt"], &["stdout"]);
    check("inputSchema: {type: object, properties: {city: {}}}\noutput: \"@input.|\"\n", &["city"], &[]);
    check("nodes:\n  - {id: a, type: bash, command: x}\nedges:\n  - {from: |}\n", &["a"], &["bash"]);
    check(
        "nodes:\n  - {id: a, type: bash, command: x}\nedges:\n  - {from: a, to: a, when: |}\n",
        &["on_failure", "always"],
        &[],
    );
    check("{\"steps\": [{\"id\": \"a\", \"type\": \"|\"}]}", &["bash"], &[]);
    check("steps:\n  - name: a\n    action: {toolName: bash}\n    |\n", &["input", "needs"], &["command", "type"]);
    check("nodes:\n  - id: a\n    type: bash\n    needs: [|]\n  - id: b\n", &["a", "b"], &[]);
}

#[test]
fn hover_definition_and_rename() {
    let mut client = Client::start();
    client.open(FLOW);
    let at = |mark: &str| FLOW.replacen(mark, &format!("{}|{}", &mark[..1], &mark[1..]), 1);
    let hover = json::compact(&client.at("textDocument/hover", &at("command: curl"), None));
    assert!(hover.contains("The script, run as"), "{hover}");
    let hover = json::compact(&client.at("textDocument/hover", &at("bash\n"), None));
    assert!(hover.contains("exitCode, stdout"), "{hover}");
    let found = client.at("textDocument/definition", &at("fetch.stdout"), None);
    assert_eq!(
        json::compact(found.get("range").expect("a range")),
        r#"{"end":{"character":13,"line":3},"start":{"character":8,"line":3}}"#
    );
    let renamed = client.at("textDocument/rename", &at("fetch.exitCode"), Some(("newName", "load")));
    let edits =
        renamed.get("changes").and_then(|changes| changes.get(ADDRESS)).and_then(Value::as_list).expect("edits");
    let lines: Vec<u64> =
        edits.iter().filter_map(|edit| edit.get("range")?.get("start")?.get("line")?.as_u64()).collect();
    assert_eq!(lines, [3, 6, 7]);
    for (name, why) in [("input", "is no name"), ("a b", "is no name"), ("say", "another step")] {
        let refused = client.at("textDocument/rename", &at("fetch.exitCode"), Some(("newName", name)));
        assert!(json::compact(&refused).contains(why), "{refused:?}");
    }
    let refused = client.at("textDocument/rename", &at("name: flow"), Some(("newName", "x")));
    assert!(json::compact(&refused).contains("only ids of steps"), "{refused:?}");
}

#[test]
fn completion_in_a_file_of_two_thousand_steps() {
    let mut client = Client::start();
    let step = |number: u32| {
        format!("  - id: s{number}\n    type: bash\n    env: {{V: \"@input.value\"}}\n    command: 'echo \"$V\"'\n")
    };
    let steps: String = (0..2_000).map(step).collect();
    for (typed, label) in
        [("|", "command"), ("env: {X: \"@s1999.|\"}", "stdout"), ("env: {X: \"@item.|\"}", "exitCode")]
    {
        let last = "  - id: last\n    type: bash\n    forEach: {ref: \"@each\"}\n";
        let each = "  - {id: each, type: bash, command: ls, forEach: {ref: \"@input\"}}\n";
        let text = format!("constraints: {{maxSteps: 10000}}\nsteps:\n{steps}{each}{last}    {typed}\n");
        client.open(&text.replacen('|', "", 1));
        for _ in 0..5 {
            let started = Instant::now();
            let answer = client.at("textDocument/completion", &text, None);
            // Printed and not asserted: a test does not depend on the clock of a busy machine.
            println!("completion of {typed} took {:?}", started.elapsed());
            assert!(json::compact(&answer).contains(label), "{typed}: {answer:?}");
        }
    }
}

/// Changes by ranges, in YAML and in JSON. `𝄞` takes two units of UTF-16 and four bytes.
#[test]
fn ranges_count_in_utf_16_in_yaml_and_json() {
    for (address, text, wrong) in [
        ("file:///flow.yaml", "steps:\n  - {id: a, description: \"𝄞\", type: bash, comand: echo}\n", "comand"),
        (
            "file:///flow.json",
            "{\"steps\": [\n{\"id\": \"a\", \"description\": \"𝄞\", \"type\": \"bash\", \"comand\": \"echo\"}]}",
            "comand",
        ),
    ] {
        let mut client = Client::start();
        let name = Value::map([("uri", address.into())]);
        let open =
            [("uri", address.into()), ("languageId", "x".into()), ("version", 1u64.into()), ("text", text.into())];
        client.notify("textDocument/didOpen", Value::map([("textDocument", Value::map(open))]));
        let diagnostics = |client: &mut Client| loop {
            let message = client.receive();
            if let Some(found) = message.get("params").and_then(|params| params.get("diagnostics")) {
                return found.as_list().expect("a list").to_vec();
            }
        };
        let found = diagnostics(&mut client);
        let line = text.lines().nth(1).expect("a line");
        let before = line.split(wrong).next().expect("a key");
        let at = before.encode_utf16().count() as u64;
        let range = found.first().and_then(|found| found.get("range")).cloned().expect("a range");
        let start =
            range.get("start").and_then(|start| start.get("character")).and_then(Value::as_u64).expect("a number");
        // In JSON a key is placed with its quote.
        assert!(found.len() == 1 && (start == at || start + 1 == at), "{address}: {found:?}");
        let context = Value::map([("diagnostics", Value::List(Vec::new()))]);
        let params = [("textDocument", name.clone()), ("range", range), ("context", context)];
        let actions = client.request("textDocument/codeAction", Value::map(params));
        let edits = actions.as_list().and_then(|actions| actions.first()?.get("edit")?.get("changes")?.get(address));
        let edit = edits.and_then(Value::as_list).and_then(|edits| edits.first()).cloned().expect("an edit");
        // The edit of the action is sent back as a change.
        let (range, new_text) = (edit.get("range").cloned(), edit.get("newText").cloned());
        let change = Value::map([("range", range.expect("a range")), ("text", new_text.expect("a text"))]);
        let version = Value::map([("uri", Value::from(address)), ("version", 2u64.into())]);
        let params = [("textDocument", version), ("contentChanges", Value::List(vec![change]))];
        client.notify("textDocument/didChange", Value::map(params));
        assert_eq!(diagnostics(&mut client), Vec::<Value>::new(), "{address}");
    }
}
