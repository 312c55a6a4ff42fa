//! Explanations, templates, examples and schemas of the binary, as a person without the documentation uses them.

use std::{fs, path::Path, process::Command};

use mainspring_authoring::{templates::templates, topics::topic};
use mainspring_kernel::{definition::Syntax, json, value::Value};
use mainspring_sim::{run_case, scenario};

/// Runs the binary, and returns its exit code and its standard streams.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainspring"));
    command.args(arguments).current_dir(folder).env("XDG_STATE_HOME", folder).env_remove("MAINSPRING_SERVER");
    let output = command.output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn envelope(out: &str) -> Value {
    assert_eq!(out.lines().count(), 1, "one envelope and nothing else: {out}");
    json::read(out.as_bytes()).expect("JSON").value
}

#[test]
fn the_cases_of_the_topic_scenario_hold() {
    let topic = topic("scenario").expect("the topic");
    let cases = scenario::read_text(topic.example.as_bytes(), Syntax::Yaml, Path::new(".")).expect("it is readable");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let report = run_case(&case);
        assert!(report.holds() && report.warnings.is_empty(), "{report:?}");
    }
}

#[test]
fn every_template_validates_and_passes_its_test() {
    let folder = tempfile::tempdir().expect("a folder");
    for template in templates() {
        let name = template.name;
        let (code, out, _) = run(folder.path(), &["init", name, "made"]);
        assert_eq!(code, 0, "{out}");
        let (code, _, err) = run(folder.path(), &["validate", &format!("made/{name}.yaml")]);
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
        let (code, out, err) = run(folder.path(), &["test", &format!("made/{name}.scenario.yaml")]);
        assert_eq!(code, 0, "{name}: {out}{err}");
        assert!(out.contains("0 failed") && !out.contains("warning"), "{name}: {out}");
    }
}

#[test]
fn init_names_the_steps_that_come_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, out, _) = run(folder.path(), &["init", "script"]);
    assert!(out.contains("next: mainspring test ./script.scenario.yaml; mainspring run ./script.yaml"), "{out}");
    // Without a model an agent cannot run, and its scenario can.
    let (_, out, _) = run(folder.path(), &["init", "agent"]);
    let next = out.lines().find(|line| line.starts_with("next: ")).expect("the next step");
    assert!(next.contains("mainspring test") && !next.contains("mainspring run"), "{out}");
    assert!(out.contains("then: add a model to `models` in ") && out.contains("mainspring models try NAME"), "{out}");
}

#[test]
fn init_replaces_files_only_with_force() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("script.scenario.yaml"), "mine").expect("it writes");
    let (code, _, err) = run(folder.path(), &["init", "script"]);
    assert!(code == 10 && err.contains("script.scenario.yaml exists"), "{code} {err}");
    assert!(!folder.path().join("script.yaml").exists(), "nothing is written if one of the files exists");
    let (code, out, _) = run(folder.path(), &["init", "script", "--force", "--json"]);
    assert_eq!(code, 0);
    assert_eq!(envelope(&out).get("files").and_then(Value::as_list).map(<[Value]>::len), Some(2));
    assert_ne!(fs::read_to_string(folder.path().join("script.scenario.yaml")).expect("it reads"), "mine");
    let (code, _, err) = run(folder.path(), &["init", "scirpt"]);
    assert!(code == 10 && err.contains("mainspring init script"), "{err}");
}

#[test]
fn explanations_examples_and_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, out, _) = run(folder.path(), &["explain"]);
    assert!(code == 0 && out.contains("references") && out.contains("subworkflow"), "{out}");
    let (code, _, err) = run(folder.path(), &["explain", "retyr"]);
    assert!(code == 10 && err.contains("mainspring explain retry"), "{err}");
    let (code, out, _) = run(folder.path(), &["explain", "unknown_topic", "--json"]);
    let explanation = envelope(&out).get("explanation").cloned().expect("an explanation");
    assert_eq!(code, 0);
    assert_eq!(explanation.get("codes").and_then(Value::as_list).map(<[Value]>::len), Some(1));
    let (code, out, _) = run(folder.path(), &["examples", "retry"]);
    assert!(code == 0 && out.contains("steps:"), "{out}");
    let (code, out, _) = run(folder.path(), &["examples", "retry", "--scenario"]);
    assert!(code == 0 && out.contains("cases:"), "{out}");
    let (code, _, err) = run(folder.path(), &["examples", "retri"]);
    assert!(code == 10 && err.contains("mainspring examples retry"), "{err}");
    let (code, out, _) = run(folder.path(), &["schema", "graph"]);
    let schema = json::read(out.as_bytes()).expect("JSON").value;
    assert_eq!(schema.get("title").and_then(Value::as_text), Some("Mainspring graph"));
    assert_eq!(code, 0);
}

/// Writes the skeleton of a workflow, and returns it after its test has passed without a warning.
fn skeleton_of(folder: &Path, definition: &str) -> String {
    let target = format!("{definition}.made.scenario.yaml");
    let (code, out, err) = run(folder, &["scenario", "new", definition, "--output", &target]);
    assert_eq!(code, 0, "{definition}: {out}{err}");
    let text = fs::read_to_string(folder.join(&target)).expect("it was written");
    let (code, out, err) = run(folder, &["test", &target]);
    assert_eq!(code, 0, "{definition}: {out}{err}\n{text}");
    text
}

#[test]
fn a_skeleton_covers_branches_and_gates_and_passes_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for template in templates() {
        assert_eq!(run(folder.path(), &["init", template.name]).0, 0);
        let text = skeleton_of(folder.path(), &format!("{}.yaml", template.name));
        let covered: &[&str] = match template.name {
            "script" => &["name: main path", "size takes then", "long", "short"],
            "approval" => &["ask is denied", "approval_denied", "decide: deny"],
            "agent" => &["confirm is skipped", "confirm is denied"],
            "graph" => &["deploy fails", "roll_back: completed"],
            "fan-out" => &["greet fails", "with_failures"],
            _ => &["name: main path"],
        };
        for part in covered {
            assert!(text.contains(part), "{}: no {part:?} in\n{text}", template.name);
        }
        assert!(!text.contains("Not covered"), "{}: {text}", template.name);
    }
    let (code, _, err) = run(folder.path(), &["scenario", "new", "script.yaml"]);
    assert!(code == 10 && err.contains("exists"), "the scenario of the template is kept: {err}");
}

/// The gates of the policy and the prices of budgets are in the skeleton, and a denied call is refused as by a start.
#[test]
fn a_skeleton_has_the_gates_and_prices_that_a_run_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it writes");
    let lint = "steps: [{id: lint, type: bash, command: echo lint}]\n";
    write("ask.yaml", &format!("policy: {{effects: {{execute: ask}}}}\n{lint}"));
    let text = skeleton_of(folder.path(), "ask.yaml");
    for part in ["{at: {waiting: lint}, decide: approve}", "lint is denied", "decide: deny", "approval_denied"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    write("deny.yaml", &format!("policy: {{effects: {{bash: deny}}}}\n{lint}"));
    let (code, _, err) = run(folder.path(), &["scenario", "new", "deny.yaml"]);
    assert!(code == 10 && err.contains("policy_denied"), "{err}");
    let agent = "steps: [{id: triage, type: agent, goal: Rate it, model: claude, tools: [issues.comment], budget: {cost: 0.5}}]\n";
    write("agent.yaml", &format!("policy: {{effects: {{issues.comment: ask}}}}\n{agent}"));
    let text = skeleton_of(folder.path(), "agent.yaml");
    for part in ["triage#1.1", "a tool call of triage is denied", "claude: {input: 3, output: 15}", "currency: USD"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("Not covered"), "{text}");
}

#[test]
fn topics_for_testers_and_operators_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let parts = [
        ("settings", "mcpServers"),
        ("prices", "cachedInput"),
        ("mcp", "readOnlyHint"),
        ("MAINSPRING_HTTP_ALLOW", "127.0.0.1"),
        ("budget", "onExceeded (fail or ask"),
        ("waves", "[[a], [b, c]]"),
        ("4 ways", "inputs_twice"),
        ("needs", "only orders"),
        ("edges", "one taken edge is enough"),
        ("http", "unavailable for 503, transient for 425"),
        ("retry_does_not_apply", "Fixed:"),
        ("agent", "list whose items are"),
        ("approval", "eq: denied"),
    ];
    for (query, part) in parts {
        let (code, out, err) = run(folder.path(), &["explain", query]);
        assert!(code == 0 && out.contains(part), "{query}: no {part:?} in {out}{err}");
    }
    let (_, out, _) = run(folder.path(), &["explain", "untrusted_flow"]);
    assert!(out.contains("Fixed:") && !out.contains("The mistake:"), "{out}");
}

#[test]
fn skeletons_of_all_examples_pass_at_once() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut cases, mut uncovered) = (0, Vec::new());
    for example in mainspring_authoring::examples::examples() {
        let file = format!("{}.yaml", example.name);
        fs::copy(examples.join(&file), folder.path().join(&file)).expect("it is copied");
        let text = skeleton_of(folder.path(), &file);
        cases += text.matches("  - name: ").count();
        uncovered.extend(
            text.lines().filter(|line| line.starts_with("# Not covered")).map(|line| format!("{file}: {line}")),
        );
    }
    println!("{cases} cases\n{}", uncovered.join("\n"));
    assert!(cases >= 45 && uncovered.len() <= 10, "{cases} cases\n{}", uncovered.join("\n"));
}

#[test]
fn a_recorded_test_fails_after_a_changed_call_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let flow = r#"
name: recorded
steps:
  - {id: count, type: bash, command: printf 3}
  - {id: ask, type: approval, prompt: "Send @count.stdout?"}
  - {id: each, type: bash, forEach: {ref: "@input.names"}, env: {NAME: "@item"}, command: 'printf "hello %s" "$NAME"'}
output: {said: "@each"}
"#;
    fs::write(folder.path().join("flow.yaml"), flow).expect("it writes");
    let input = r#"{"names": ["ann", "bob"]}"#;
    let (code, out, err) = run(folder.path(), &["run", "flow.yaml", "--input", input, "--yes"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = run(folder.path(), &["scenario", "new", "flow.yaml", "--from", "last"]);
    assert_eq!(code, 0, "{out}{err}");
    let text = fs::read_to_string(folder.path().join("flow.scenario.yaml")).expect("it was written");
    assert!(text.contains("each[1]") && text.contains("hello bob") && text.contains("decide: approve"), "{text}");
    let (code, out, _) = run(folder.path(), &["test", "flow.scenario.yaml"]);
    assert_eq!(code, 0, "{out}\n{text}");
    fs::write(folder.path().join("flow.yaml"), flow.replace("hello %s", "bye %s")).expect("it writes");
    let (code, out, _) = run(folder.path(), &["test", "flow.scenario.yaml"]);
    assert!(code == 1 && out.contains("the calls are others"), "{out}");
    let (code, out, err) = run(folder.path(), &["scenario", "new", "flow.yaml", "--from", "last", "--force"]);
    assert!(code == 1 && err.contains("is not made with these arguments any more"), "{out}{err}");
}

#[test]
fn unknown_names_in_scenarios_give_the_right_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |case: &str, expected: &str| {
        let definition = "definition: {steps: [{id: build, type: bash, command: make}]}";
        let text = format!("name: a\n{definition}\n{case}\n");
        fs::write(folder.path().join("a.scenario.yaml"), &text).expect("it writes");
        let (code, out, err) = run(folder.path(), &["test", "a.scenario.yaml"]);
        assert!(code != 0 && format!("{out}{err}").contains(expected), "{text}: {expected}: {out}{err}");
    };
    let expect = "expect: {status: completed}";
    check(&format!("mocks: {{}}\n{expect}"), "write `effects`");
    check(&format!("effects: {{build: {{result: 1}}}}\n{expect}"), "write `return`");
    check(&format!("effects: {{biuld: {{return: 1}}}}\n{expect}"), "is \"biuld\" meant for it?");
    check("effects: {build: {return: 1}}\nexpect: {status: success}", "write `completed`");
    check("effects: {build: {return: 1}}\nexpect: {steps: {biuld: completed}}", "is it `build`?");
    check(
        &format!("effects: {{build: {{return: 1}}}}\ninbox: [{{at: {{waiting: bild}}, decide: approve}}]\n{expect}"),
        "is it `build`?",
    );
}

#[test]
fn short_help_begins_with_the_first_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, out, _) = run(folder.path(), &["-h"]);
    assert!(code == 0 && out.contains("mainspring init") && out.lines().count() < 30, "{out}");
    let (_, short, _) = run(folder.path(), &["validate", "-h"]);
    let (_, long, _) = run(folder.path(), &["validate", "--help"]);
    assert!(!short.contains("--otlp") && !short.contains("--store") && short.contains("--json"), "{short}");
    assert!(long.contains("--otlp") && long.contains("--store"), "{long}");
    // The flags are described once, and named in the help of each command.
    let (_, all, _) = run(folder.path(), &["--help"]);
    let (_, nested, _) = run(folder.path(), &["scenario", "new", "--help"]);
    for (help, is_described) in [(&all, true), (&long, false), (&nested, false)] {
        assert_eq!(help.contains("OpenTelemetry"), is_described, "{help}");
    }
    assert!(nested.contains("mainspring --help") && nested.contains("--from"), "{nested}");
}

#[test]
fn equal_diagnostics_are_shown_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps: String = (0..9).map(|number| format!("  - {{id: s{number}, type: bash, comand: make}}\n")).collect();
    fs::write(folder.path().join("flow.yaml"), format!("steps:\n{steps}")).expect("it writes");
    let (code, _, err) = run(folder.path(), &["validate", "flow.yaml"]);
    assert_eq!(code, 10);
    assert_eq!(err.matches("error[unknown_key]").count(), 1, "{err}");
    assert!(err.contains("the same at") && err.contains("and 3 more places"), "{err}");
    let (_, out, _) = run(folder.path(), &["validate", "flow.yaml", "--json"]);
    let errors = envelope(&out).get("errors").and_then(Value::as_list).map(<[Value]>::len);
    assert!(errors >= Some(9), "the envelope has all of them: {out}");
}

#[test]
fn a_run_that_waits_has_the_chosen_exit_code_and_a_brief_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let flow = "steps: [{id: big, type: bash, command: 'printf %05000d 7'}, {id: ask, type: approval, prompt: 'Publish?'}]\noutput: '@big'";
    fs::write(folder.path().join("flow.yaml"), flow).expect("it writes");
    assert_eq!(run(folder.path(), &["run", "flow.yaml"]).0, 0);
    let (code, out, err) = run(folder.path(), &["run", "flow.yaml", "--exit-code-waiting", "3"]);
    assert_eq!(code, 3, "{out}{err}");
    let (code, out, _) = run(folder.path(), &["show", "last", "--brief"]);
    assert!(code == 0 && out.contains("waits: ask: Publish?") && out.chars().count() < 3_500, "{out}");
    assert_eq!(run(folder.path(), &["run", "flow.yaml", "--yes", "--exit-code-waiting", "3"]).0, 0);
    let (_, out, _) = run(folder.path(), &["show", "last", "--brief"]);
    assert!(out.contains("more characters") && out.chars().count() < 3_500, "{out}");
    let (_, out, _) = run(folder.path(), &["show", "last", "--brief", "--json"]);
    let summary = envelope(&out);
    assert_eq!(summary.get("status").and_then(Value::as_text), Some("completed"));
    assert_eq!(summary.get("attempts").map(json::compact), Some(r#"{"completed":2}"#.into()));
}

#[test]
fn validate_checks_the_workflows_that_are_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it writes");
    let check = |arguments: &[&str], expected: i32, part: &str| {
        let (code, out, err) = run(folder.path(), arguments);
        assert_eq!(code, expected, "{out}{err}");
        assert!(format!("{out}{err}").contains(part), "{part}: {out}{err}");
    };
    write("parent.yaml", "name: parent\nsteps: [{id: s, type: subworkflow, workflow: child}]\n");
    check(&["validate", "parent.yaml"], 0, "`child` is started and not checked: there is no child.yaml");
    write("child.yaml", "name: child\nsteps: [{id: s, type: subworkflow, workflow: grandchild}]\n");
    write("grandchild.yaml", "name: grandchild\nsteps: [{id: w, type: bash, comand: ls}]\n");
    check(&["validate", "parent.yaml"], 10, "grandchild.yaml:2:29");
    check(&["validate", "parent.yaml"], 10, "grandchild.yaml is started by this workflow, and it is invalid");
    let (code, out, _) = run(folder.path(), &["validate", "parent.yaml", "--json"]);
    assert_eq!((code, envelope(&out).get("ok").and_then(Value::as_bool)), (10, Some(false)));
    write("grandchild.yaml", "name: grandchild\nsteps: [{id: w, type: subworkflow, workflow: parent}]\n");
    check(&["validate", "parent.yaml"], 0, "parent ok");
}

#[test]
fn validate_counts_the_steps_that_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name: n\nsteps:\n  - {id: ask, type: agent, goal: g, tools: [bash]}\n  \
                - {id: each, type: bash, command: ls, forEach: {ref: '@input.list'}, onInterrupted: retry}\n";
    fs::write(folder.path().join("n.yaml"), text).expect("it writes");
    let (code, out, err) = run(folder.path(), &["validate", "n.yaml"]);
    assert!(code == 0 && out.contains("n ok 2 steps"), "{code} {out}{err}");
}

#[test]
fn shapes_of_functions_items_and_other_workflows_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it writes");
    put(
        "child.yaml",
        "name: child\nsteps:\n  - {id: a, type: bash, command: ls, outputVariable: listing}\n  \
         - {id: b, type: subworkflow, workflow: parent}\noutput: {listing: \"@a.stdout\", deeper: \"@b.total\"}\n",
    );
    let parent = "name: parent\nsteps:\n  - {id: sub, type: subworkflow, workflow: child}\n  - id: sum\n    type: code\n    code: \"export default (x): {total: number} => x\"\n  - {id: each, type: bash, forEach: {ref: \"@input\"}, command: ls}\n  - {id: again, type: tool, tool: T, forEach: {ref: \"@each\"}, arguments: {out: \"@item.stdout\"}}\noutput: {total: \"@sum.total\", listing: \"@sub.listing\"}\n";
    put("parent.yaml", parent);
    let (code, out, err) = run(folder.path(), &["plan", "parent.yaml", "--format", "json"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let plan = json::read(out.as_bytes()).expect("JSON").value;
    let at =
        |key: &str, id: &str| plan.get(key).and_then(|shapes| shapes.get(id)).map(json::compact).unwrap_or_default();
    assert!(at("shapes", "sub").contains(r#""listing":{"type":"string"}"#), "{}", at("shapes", "sub"));
    assert!(at("shapes", "sum").contains(r#""total":{"type":"number"}"#), "{}", at("shapes", "sum"));
    assert!(at("itemShapes", "again").contains(r#""stdout":{"type":"string"}"#), "{}", at("itemShapes", "again"));
    assert!(at("outputShape", "properties").contains(r#""total":{"type":"number"}"#), "{out}");
    for (right, wrong) in
        [("@sub.listing", "@sub.lisitng"), ("@sum.total", "@sum.totla"), ("@item.stdout", "@item.stdot")]
    {
        put("wrong.yaml", &parent.replacen(right, wrong, 1));
        let (_, _, err) = run(folder.path(), &["validate", "wrong.yaml"]);
        assert!(err.contains("path_not_in_schema") && err.contains(&wrong[1..]), "{wrong}: {err}");
    }
}
