//! `mainspring dev`: a folder of definitions is saved as it changes.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use mainspring_kernel::{json, value::Value};

use super::{client::Client, support::MAINSPRING};

const GOOD: &str = "steps:\n  - {id: hello, type: bash, command: echo hello}\n";
const MISTAKEN: &str = "steps:\n  - {id: hello, type: bsh, command: echo hello}\n";
const SCENARIO: &str = "\
cases:
  - name: greets
    definition: good.yaml
    effects: {hello: {return: {stdout: hello}}}
    expect: {status: completed}
";

/// A running `mainspring dev`, killed on drop.
struct Dev {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Dev {
    fn start(home: &Path, folder: &Path) -> Self {
        let mut command = Command::new(MAINSPRING);
        command
            .args(["dev", "--json", "--no-open", "--listen", "127.0.0.1:0", "--dir"])
            .arg(home.join("data"))
            .arg(folder);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended");
        json::read(line.as_bytes()).unwrap_or_else(|_| panic!("{line}")).value
    }

    /// The next line that has a key.
    fn line_with(&mut self, key: &str) -> Value {
        loop {
            let value = self.line();
            if value.get(key).is_some() {
                return value;
            }
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_else(|| panic!("{key} in {value:?}")).to_string()
}

#[test]
fn definitions_are_saved_as_they_change_and_the_console_signs_in_once() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
    write("good.yaml", GOOD);
    write("good.scenario.yaml", SCENARIO);
    write("mistaken.yaml", MISTAKEN);
    write("settings.yaml", "models: {}\n");
    let mut dev = Dev::start(home.path(), folder.path());
    let greeting = dev.line_with("listening");
    let address = text(&greeting, "listening").trim_start_matches("http://").to_string();
    let token = fs::read_to_string(text(&greeting, "tokenFile")).unwrap();
    let (owner, nobody) = (Client::new(&address, Some(token.trim())), Client::new(&address, None));

    let console = text(&dev.line_with("console"), "console");
    let code = console.split_once("/login#code=").unwrap().1.to_string();
    let sign_in = || nobody.post("/api/session", &Value::map([("code", code.as_str().into())]));
    sign_in().expect(201);
    sign_in().expect(401);
    let both = Value::map([("code", code.as_str().into()), ("token", token.trim().into())]);
    nobody.post("/api/session", &both).expect(400);

    let good = dev.line_with("file");
    assert_eq!(text(&good, "file"), "good.yaml");
    owner.get(&format!("/api/workflows/{}", text(&good, "workflowId"))).expect(200);
    let mistaken = dev.line_with("file");
    assert_eq!((text(&mistaken, "file"), mistaken.get("workflowId")), ("mistaken.yaml".into(), Some(&Value::Null)));
    assert_eq!(dev.line_with("ok").get("ok"), Some(&Value::from(true)), "the scenario beside the definition");

    write("mistaken.yaml", GOOD);
    let corrected = dev.line_with("workflowId");
    owner.get(&format!("/api/workflows/{}", text(&corrected, "workflowId"))).expect(200);

    write("good.yaml", MISTAKEN);
    let broken = dev.line_with("diagnostics");
    assert_eq!(text(&broken, "workflowId"), text(&good, "workflowId"), "the saved version stays");
    dev.line_with("ok");
    let listed = owner.get("/api/dev/files").expect(200);
    let listed = listed.json();
    let files = listed.get("files").and_then(Value::as_list).unwrap_or_default();
    let names: Vec<String> = files.iter().map(|file| text(file, "name")).collect();
    assert!(names.iter().all(|name| name == "good.yaml" || name == "mistaken.yaml"), "{names:?}");
}

#[test]
fn a_file_and_a_shared_store_are_refused() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("flow.yaml"), GOOD).unwrap();
    let call = |arguments: &[&str]| {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).current_dir(home.path()).env_clear().env("HOME", home.path());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (exit, said) = call(&["dev", "flow.yaml"]);
    assert!(exit == Some(10) && said.contains("name the folder"), "{said}");
    let (exit, said) = call(&["dev", ".", "--store", "postgres://h/d"]);
    assert!(exit == Some(10) && said.contains("shared store"), "{said}");
}

/// A function that never ends is stopped after ten seconds, four times: the other file is saved long before.
#[test]
fn a_long_scenario_delays_neither_the_server_nor_other_files() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
    write("long.yaml", "steps:\n  - {id: a, type: code, code: 'export default () => { for (;;); }'}\n");
    write("long.scenario.yaml", "cases:\n  - {name: ends, definition: long.yaml, expect: {status: failed}}\n");
    let mut dev = Dev::start(home.path(), folder.path());
    let address = text(&dev.line_with("listening"), "listening").trim_start_matches("http://").to_string();
    assert_eq!(text(&dev.line_with("file"), "file"), "long.yaml");
    write("good.yaml", GOOD);
    // Lines of files have diagnostics, and those of scenarios have a result.
    let next = loop {
        let line = dev.line();
        if line.get("diagnostics").is_some() || line.get("ok").is_some() {
            break line;
        }
    };
    assert_eq!(next.get("file").and_then(Value::as_text), Some("good.yaml"), "{next:?}");
    Client::new(&address, None).get("/healthz").expect(200);
    // Another file of the same name would be the same workflow.
    write("good.yml", "steps:\n  - {id: other, type: sleep, durationMs: 1}\n");
    let second = dev.line_with("diagnostics");
    assert_eq!((text(&second, "file"), second.get("workflowId")), ("good.yml".into(), Some(&Value::Null)));
}
