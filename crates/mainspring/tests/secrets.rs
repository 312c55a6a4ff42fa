//! Secrets at the command line: they reach the effect alone, and are found in nothing that is recorded or shown.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    process::Command,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

mod support;
#[path = "secrets/vault.rs"]
mod vault;

use support::{Answer, TestDir, call};

/// Planted values, each with the parts of its encoded forms that the test searches for.
const OF_ENV: &str = "planted/env+value=1";
const OF_FILE: &str = "planted file & value";
const OF_COMMAND: &str = "planted-command-value";

const CONFIG: &str = r#"
secrets:
  OF_ENV: {env: PLANTED}
  OF_FILE: {file: ../../values/file}
  OF_COMMAND: {command: [cat, ../../values/command]}
  OTHERS: {env: PLANTED, workflows: [other]}
  UNSET: {env: NOT_SET}
  PIPE: {file: ../../values/pipe}
mcpServers:
  echo: {command: bash, args: [../server.sh], env: {TOKEN: {secret: OF_COMMAND}}}
policy:
  classes: {echo.say: read}
"#;

/// A tool server that returns its variable, as it is and encoded, and prints it to standard error.
const SERVER: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply '{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      echo "$TOKEN" >&2
      printf %s "$TOKEN" > ../../values/of-tool
      reply "{\"content\":[],\"structuredContent\":{\"it\":\"$TOKEN\",\"$TOKEN\":\"$(printf %s "user:$TOKEN" | base64 -w0)\"}}" ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

struct Bench {
    /// The parent of everything, which the searches leave out where values are planted.
    outer: tempfile::TempDir,
    dir: TestDir,
}

impl Bench {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let dir = TestDir::new();
        fs::create_dir(outer.path().join("values")).unwrap();
        fs::write(outer.path().join("values/file"), format!("{OF_FILE}\n")).unwrap();
        fs::write(outer.path().join("values/command"), OF_COMMAND).unwrap();
        let at = |text: &str| text.replace("../../values", &outer.path().join("values").display().to_string());
        fs::write(dir.root().join("server.sh"), at(SERVER)).unwrap();
        fs::write(dir.root().join("config.yaml"), at(CONFIG)).unwrap();
        Self { outer, dir }
    }

    fn mainspring(&self, arguments: &[&str]) -> Command {
        let mut command = self.dir.mainspring(arguments);
        command.env("MAINSPRING_CONFIG", self.dir.root().join("config.yaml")).env("PLANTED", OF_ENV);
        command.env("MAINSPRING_HTTP_ALLOW", "127.0.0.1").env("MAINSPRING_LOG", "trace");
        command.current_dir(self.dir.workspace());
        command
    }

    fn run(&self, id: &str, definition: &str) -> Answer {
        fs::write(self.dir.workspace().join("wf.yaml"), definition).unwrap();
        call(self.mainspring(&["run", "wf.yaml", "--id", id, "--json"]), b"")
    }

    fn value(&self, name: &str) -> String {
        fs::read_to_string(self.outer.path().join("values").join(name)).unwrap_or_default()
    }
}

/// Asserts that no form of a planted value is in some bytes.
#[track_caller]
fn assert_absent(bytes: &[u8], place: &str) {
    let forms = [
        OF_ENV,
        OF_FILE,
        OF_COMMAND,
        "cGxhbnRlZ",
        "BsYW50ZWQ",
        "wbGFudGVk",
        "planted%2Fenv",
        "706c616e746564",
        "planted%20file",
        "planted+file",
    ];
    for form in forms {
        let found = bytes.windows(form.len()).position(|part| part == form.as_bytes());
        let around =
            found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..(at + 100).min(bytes.len())]));
        assert!(found.is_none(), "{form} is in {place}: {around:?}");
    }
}

/// Searches all files below a folder.
fn assert_absent_below(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => assert_absent(&fs::read(&path).unwrap_or_default(), &path.display().to_string()),
            }
        }
    }
}

/// A server of HTTP that answers requests with their own head, and sends each head to the test.
fn echo_server(requests: usize) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (seen, heads) = channel();
    thread::spawn(move || {
        for _ in 0..requests {
            let (mut connection, _) = listener.accept().unwrap();
            connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).is_ok_and(|count| count == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let body = head.clone();
            let _ = write!(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Echo: {OF_ENV}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            seen.send(head).unwrap();
        }
    });
    (address, heads)
}

#[test]
fn a_value_reaches_the_effect_and_nothing_else() {
    let bench = Bench::new();
    let (address, heads) = echo_server(1);
    let values = bench.outer.path().join("values").display().to_string();
    let definition = format!(
        r#"
steps:
  - id: script
    type: bash
    command: |
      printf %s "$TOKEN" > "{values}/of-script"
      echo "$TOKEN $FILE"
      echo "$TOKEN" | base64
      printf %s "$TOKEN" | od -An -tx1 | tr -d ' \n'
      echo "x$FILE" >&2
    env: {{TOKEN: {{secret: OF_ENV}}, FILE: {{secret: OF_FILE}}}}
  - id: request
    type: http
    url: "{address}/echo"
    headers: {{Authorization: {{secret: OF_ENV, prefix: "Bearer "}}}}
    query: {{key: {{secret: OF_FILE}}}}
  - {{id: tool, type: tool, tool: echo.say, arguments: {{}}}}
  - id: fails
    type: bash
    command: "echo \"no $TOKEN\" >&2; exit 3"
    env: {{TOKEN: {{secret: OF_ENV}}}}
    onError: continue
  - {{id: done, type: return, input: {{script: "@script", request: "@request", tool: "@tool"}}}}
"#
    );
    let ran = bench.run("e1", &definition);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bench.value("of-script"), OF_ENV);
    assert_eq!(bench.value("of-tool"), OF_COMMAND);
    let head = heads.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(head.contains(&format!("authorization: Bearer {OF_ENV}")), "{head}");
    assert!(head.contains("key=planted+file+%26+value"), "{head}");
    assert!(ran.stdout.contains("***"), "the outputs had values: {}", ran.stdout);

    let mut said = format!("{}{}", ran.stdout, ran.stderr);
    for arguments in [
        &["show", "e1", "--json"][..],
        &["show", "e1"],
        &["tail", "e1", "--json"],
        &["verify", "e1", "--json"],
        &["list", "--json"],
        &["secret", "list", "--json"],
        &["secret", "list"],
        &["plan", "wf.yaml"],
        &["doctor", "--json"],
    ] {
        let answer = call(bench.mainspring(arguments), b"");
        said += &format!("{arguments:?}\n{}{}\n", answer.stdout, answer.stderr);
    }
    assert!(said.contains("OF_ENV"), "the names are shown");
    assert_absent(said.as_bytes(), "an output");
    assert_absent_below(bench.dir.root());
}

#[test]
fn a_secret_that_cannot_be_used_fails_the_step_before_its_effect() {
    let bench = Bench::new();
    let values = bench.outer.path().join("values").display().to_string();
    for (name, code) in [("NOWHERE", "secret_missing"), ("UNSET", "secret_missing"), ("OTHERS", "secret_not_permitted")]
    {
        let definition = format!(
            "name: mine\nsteps:\n  - {{id: a, type: bash, command: \"touch {values}/ran\", env: {{A: {{secret: {name}}}}}}}\n"
        );
        let ran = bench.run(name, &definition);
        assert_ne!(ran.exit, Some(0), "{name}");
        assert!(ran.stdout.contains(code) && ran.stdout.contains(name), "{name}: {}", ran.stdout);
        assert!(!bench.outer.path().join("values/ran").exists(), "{name}: nothing runs");
        assert_absent(format!("{}{}", ran.stdout, ran.stderr).as_bytes(), name);
    }
    let permitted =
        "name: other\nsteps:\n  - {id: a, type: bash, command: \"test -n \\\"$A\\\"\", env: {A: {secret: OTHERS}}}\n";
    assert_eq!(bench.run("permitted", permitted).exit, Some(0));
}

/// Only the author of a definition refers to secrets. Data of the same shape stays data.
#[test]
fn data_in_the_form_of_a_reference_reads_no_secret() {
    let bench = Bench::new();
    let (address, heads) = echo_server(1);
    let reads = format!(
        r#"
steps:
  - id: data
    type: code
    code: "export default () => ({{headers: {{A: {{secret: 'OF_ENV'}}}}, text: '{{secret: OF_ENV}}'}})"
  - {{id: request, type: http, url: "{address}", headers: "@data.headers", onError: continue}}
  - {{id: body, type: http, method: POST, url: "{address}", body: "@data.headers"}}
  - {{id: script, type: bash, command: "echo \"$A\"", env: {{A: "@data.headers.A", B: "@data.text"}}}}
  - {{id: done, type: return, input: ["@body.body", "@script.stdout"]}}
"#
    );
    let ran = bench.run("e1", &reads);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    let head = heads.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(head.starts_with("POST"), "a header that is no text is refused: {head}");
    assert!(ran.stdout.contains(r#"{\"secret\":\"OF_ENV\"}"#), "{}", ran.stdout);
    for (definition, code) in [
        ("steps: [{id: a, type: bash, command: x, env: {A: {secret: \"@input.name\"}}}]", "misplaced_reference"),
        ("steps: [{id: a, type: bash, command: x, env: {A: {secret: 'a b'}}}]", "bad_secret"),
        ("steps: [{id: a, type: bash, command: x, env: {BASH_ENV: {secret: A}}}]", "bad_secret"),
        ("steps: [{id: a, type: http, url: 'http://x', headers: {A: {secret: A, suffix: b}}}]", "bad_secret"),
        ("steps: [{id: a, type: http, url: 'http://x', secrets: {headers: {A: {secret: A}}}}]", "unknown_key"),
    ] {
        fs::write(bench.dir.workspace().join("wf.yaml"), definition).unwrap();
        let refused = call(bench.mainspring(&["validate", "wf.yaml", "--json"]), b"");
        assert!(refused.stdout.contains(code), "{definition}: {}{}", refused.stdout, refused.stderr);
    }
}

#[test]
fn a_mistake_in_the_settings_is_named() {
    let bench = Bench::new();
    fs::write(bench.dir.root().join("config.yaml"), "secrets: {A: the-value-itself}").unwrap();
    let ran = bench.run("e1", "steps: [{id: a, type: bash, command: \"true\"}]");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.exit != Some(0) && said.contains("secrets.A") && !said.contains("the-value-itself"), "{said}");
}

#[test]
fn the_command_line_has_no_session_with_a_token() {
    let bench = Bench::new();
    let definition = "steps: [{id: a, type: bash, env: {T: {secret: 'session:token'}}, command: 'touch ran'}]\n";
    let answer = bench.run("e", definition);
    assert_ne!(answer.exit, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("secret_missing") && answer.stdout.contains("only executions of a server"),
        "{answer:?}"
    );
    assert!(!bench.dir.workspace().join("ran").exists());
}

/// A read of a named pipe would wait for a writer.
#[test]
fn a_file_that_is_no_regular_file_is_refused_at_once() {
    let bench = Bench::new();
    let made = Command::new("mkfifo").arg(bench.outer.path().join("values/pipe")).status().unwrap();
    assert!(made.success());
    let answer = bench.run("pipe", "steps: [{id: a, type: bash, env: {X: {secret: PIPE}}, command: echo no}]");
    assert!(answer.stdout.contains("secret_missing") && answer.stdout.contains("not a regular file"), "{answer:?}");
}
