//! Tests of the conversion between notations: the result compiles to the same plan, also after converting back, or the
//! conversion fails.

use std::{fs, path::PathBuf};

use mainspring_kernel::{
    definition::{
        Notation, Syntax, compile,
        convert::{Converted, convert, normal, text},
        read,
    },
    diagnostic::Diagnostic,
    document::Document,
    plan::Plan,
    value::{Map, Number, Value},
};
use proptest::{collection::vec, prelude::*, sample::select};

fn document(text: &str) -> Document {
    read(text.as_bytes(), Syntax::Yaml).unwrap_or_else(|found| panic!("{found:?}\n{text}"))
}

fn plan(definition: &Value) -> Plan {
    let found = |found| panic!("{found:#?}\n{}", text::yaml(definition));
    compile(&Document::placeless(definition.clone())).unwrap_or_else(found).plan
}

/// Returns the normal form of a plan with renamed steps.
fn renamed(plan: &Plan, renamed: &[(String, String)]) -> Plan {
    let mut plan = plan.clone();
    for step in &mut plan.steps {
        if let Some((_, new)) = renamed.iter().find(|(old, _)| *old == step.id) {
            step.id.clone_from(new);
        }
    }
    normal(&plan)
}

/// Counts of conversion results.
#[derive(Debug, Default)]
struct Seen {
    converted: usize,
    refused: usize,
    came_back_equal: usize,
}

/// Converts a definition to every other notation and back.
fn check(definition: &Value, seen: &mut Seen) {
    let own = Notation::of(definition);
    let before = plan(definition);
    for to in Notation::ALL {
        let Ok(there) = convert(&Document::placeless(definition.clone()), to) else {
            assert_ne!(own, to, "a definition can be said in its own notation");
            seen.refused += 1;
            continue;
        };
        if own == to {
            assert_eq!(&there.definition, definition);
            continue;
        }
        assert_eq!(Notation::of(&there.definition), to);
        let after = plan(&there.definition);
        assert_eq!(normal(&after), renamed(&before, &there.renamed), "{}", text::yaml(&there.definition));
        check_text(&there.definition);
        let back = convert(&Document::placeless(there.definition.clone()), own);
        let Converted { definition: back, renamed: again } =
            back.unwrap_or_else(|found| panic!("{found:#?}\n{}", text::yaml(&there.definition)));
        let back = plan(&back);
        assert_eq!(normal(&back), renamed(&after, &again));
        seen.converted += 1;
        let is_equal = Plan { workflow_hash: before.workflow_hash, ..back } == before;
        seen.came_back_equal += usize::from(is_equal);
    }
}

fn check_text(definition: &Value) {
    for (written, syntax) in [(text::yaml(definition), Syntax::Yaml), (text::json(definition), Syntax::Json)] {
        let back = read(written.as_bytes(), syntax).unwrap_or_else(|found| panic!("{found:?}\n{written}"));
        assert_eq!(&back.value, definition, "{written}");
        assert!(written.ends_with('\n') && !written.ends_with("\n\n"), "{written:?}");
    }
}

/// Returns all valid definitions of the examples and scenarios of the repository.
fn definitions() -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["examples", "conformance/sequence", "conformance/dataflow", "conformance/graph"];
    let more = ["crates/sim/tests/cases", "crates/authoring/tests/drawings"];
    let mut found = Vec::new();
    for folder in folders.into_iter().chain(more) {
        let entries = fs::read_dir(root.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        for path in entries.map(|entry| entry.expect("a folder can be read").path()) {
            let is_ours = path.extension().is_some_and(|extension| extension == "yaml" || extension == "json");
            if is_ours {
                let text = fs::read(&path).expect("a file can be read");
                let document =
                    read(&text, Syntax::Guess).unwrap_or_else(|found| panic!("{}: {found:?}", path.display()));
                collect(&document.value, &mut found);
            }
        }
    }
    found.retain(|definition| compile(&Document::placeless(definition.clone())).is_ok());
    found
}

fn collect(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Map(map) => {
            if map.contains_key("steps") || map.contains_key("nodes") {
                found.push(value.clone());
            }
            map.values().for_each(|field| collect(field, found));
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// Returns the same steps with retries that every notation can express.
fn spelled_out(value: &Value) -> Value {
    match value {
        Value::List(items) => items.iter().map(spelled_out).collect::<Vec<_>>().into(),
        Value::Map(map) => {
            let mut map: Map = map.iter().map(|(key, field)| (key.clone(), spelled_out(field))).collect();
            let kind = map.get("type").and_then(Value::as_text).unwrap_or_default();
            let takes = ["bash", "tool", "http", "agent", "agent_message", "code", "subworkflow"].contains(&kind);
            if takes && !["retry", "retryPolicy", "config"].iter().any(|key| map.contains_key(*key)) {
                map.insert("retry".into(), Value::map([("maxAttempts", 2u32.into())]));
            }
            map.into()
        }
        other => other.clone(),
    }
}

#[test]
fn converted_definitions_compile_to_the_same_plan() {
    let mut seen = Seen::default();
    let definitions = definitions();
    assert!(definitions.len() > 150, "{} definitions", definitions.len());
    for definition in &definitions {
        check(definition, &mut seen);
        check(&spelled_out(definition), &mut seen);
    }
    eprintln!("{} definitions: {seen:?}", definitions.len());
    assert!(seen.converted * 2 > 3 * seen.refused, "{seen:?}");
    assert!(seen.came_back_equal * 10 > seen.converted * 9, "{seen:?}");
}

/// Checks that a conversion fails with the expected diagnostics: the path and a part of the message of each.
#[track_caller]
fn check_refused(text: &str, to: Notation, expected: &[(&str, &str)]) {
    let found: Vec<Diagnostic> = convert(&document(text), to).expect_err("it is refused");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, (path, part)) in found.iter().zip(expected) {
        assert_eq!(found.path.to_string(), *path, "{found:#?}");
        assert!(found.message.contains(part), "{found:#?}");
        assert!(found.place.is_some() && !found.help.is_empty(), "{found:#?}");
    }
}

#[test]
fn unconvertible_positions_are_reported() {
    let once = "retry: {maxAttempts: 1}";
    check_refused(
        "steps: [{type: bash, id: a, command: a}, {type: code, id: b, code: b, retry: {maxAttempts: 4}}]",
        Notation::Graph,
        &[("steps[0]", "10000 ms, then 30000 ms, which is"), ("steps[1].retry", "10000 ms, then 30000 ms")],
    );
    check_refused(
        &format!(
            "steps: [{{type: parallel, id: p, steps: [{{type: bash, command: a, {once}}}, {{type: sleep, durationMs: 1}}]}}]"
        ),
        Notation::Graph,
        &[("steps[0].steps[0]", "a key of what the `parallel` step gives"), ("steps[0].steps[1]", "node[0].steps[1]")],
    );
    check_refused(
        "steps: [{type: sleep, id: a, durationMs: 1}, {type: approval, id: b}]",
        Notation::Dataflow,
        &[("steps", "none of these is a tool")],
    );
    check_refused(
        "{steps: [{name: a, action: {code: x, transformCode: y}}]}",
        Notation::Sequence,
        &[("steps[0].action.transformCode", "`code` step")],
    );
    check_refused("steps: [{type: bsh, command: a}]", Notation::Graph, &[("steps[0].type", "unknown step type")]);
    for (step, why) in [
        (
            format!("{{type: bash, id: a, command: a, when: false, outputVariable: v, {once}}}"),
            "`when` of a may skip it",
        ),
        (format!("{{type: bash, id: a, command: a, onError: continue, outputVariable: v, {once}}}"), "tolerated"),
    ] {
        check_refused(&format!("steps: [{step}]"), Notation::Graph, &[("steps[0]", why)]);
    }
    let inside = format!("{{type: bash, id: a, command: a, outputVariable: v, {once}}}");
    for (around, path, why) in [
        (
            format!("{{type: conditional, id: c, condition: true, then: [{inside}]}}"),
            "steps[0].then[0]",
            "the other branch",
        ),
        (format!("{{type: loop, id: c, until: true, steps: [{inside}]}}"), "steps[0].steps[0]", "again and again in c"),
    ] {
        check_refused(&format!("steps: [{around}]"), Notation::Graph, &[(path, why)]);
    }
}

/// Checks the result of a conversion, as YAML.
#[track_caller]
fn check_written(text: &str, to: Notation, expected: &str) {
    let converted = convert(&document(text), to).unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!(text::yaml(&converted.definition), expected.trim_start());
}

#[test]
fn equivalent_notations_are_converted() {
    check_written(
        "{workflowId: w, planVersion: 3, order: edges, nodes: [{id: a, type: bash, name: Title, command: 'echo @b.y', cwd: /}, {id: b, type: tool, tool: T}], edges: [{from: b, to: a}]}",
        Notation::Dataflow,
        r#"
name: w
version: "3"
order: edges
steps:
  - name: a
    action: {toolName: bash}
    description: Title
    input: {command: "echo @b.y", cwd: /}
  - name: b
    action: {toolName: T}
edges:
  - {from: b, to: a}
"#,
    );
    check_written(
        "{steps: [{name: a, action: {toolName: T, transformCode: f}, input: {x: 1}}, {name: b, action: {return: true}, input: '@a'}]}",
        Notation::Sequence,
        r#"
order: dataflow
steps:
  - id: a
    type: tool
    tool: T
    arguments: {x: 1}
    transform: f
    retry: {maxAttempts: 1}
  - id: b
    type: return
    input: "@a"
output: null
"#,
    );
    // A generated name does not occur in any text, where it would become a reference.
    check_written(
        "steps: [{type: approval, prompt: 'ask me@step_1 or @step_1_'}, {type: sleep, durationMs: 1, forEach: {ref: '@input'}}]",
        Notation::Graph,
        r#"
order: sequence
nodes:
  - id: step_1__
    type: approval
    prompt: "ask me@step_1 or @step_1_"
  - id: step_2
    type: sleep
    forEach: {ref: "@input"}
    durationMs: 1
output: {}
"#,
    );
}

/// Generates texts with characters that have a meaning in YAML or in references.
fn any_text() -> impl Strategy<Value = String> {
    let words =
        ["no", "~", "1e3", "0x1f", ".inf", "a: b", "- x", "#", "@a", "|", "%x", "é", "\u{85}", "\u{feff}", "🎉"];
    let lines = ["line", " in", "\tt", "", "\r", "\\n", "\"q\"", "'", "end ", "\u{1b}[2J", "---", "..."];
    prop_oneof![
        select(words.to_vec()).prop_map(String::from),
        vec(select(lines.to_vec()), 0..5).prop_map(|lines| lines.join("\n")),
        ".{0,12}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any_text().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", Number::double).prop_map(Value::Number),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let keys = prop_oneof![any_text(), select(vec!["steps", "then", "id", "edges"]).prop_map(String::from)];
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((keys, inner), 0..5).prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
}

/// Generates a step of any type with random modifiers. The number determines its id.
fn any_step(number: usize) -> impl Strategy<Value = String> {
    let work = select(vec![
        "type: tool, tool: T, arguments: {n: '@input.n'}",
        "type: tool, tool: T, arguments: {n: '@input.n'}, transform: f",
        "type: bash, command: 'echo @input.n', env: {A: '@vars.a'}",
        "type: tool, tool: bash, arguments: {command: ls}",
        "type: code, code: f, input: {n: 1}",
        "type: http, url: 'https://x.example', expect: [200]",
        "type: subworkflow, workflow: w, wait: false",
        "type: agent, goal: g, context: {a: 1}",
    ]);
    let retry = select(vec![
        "",
        "retry: {maxAttempts: 1}, ",
        "retry: {maxAttempts: 2}, ",
        "retry: {maxAttempts: 3, initialDelayMs: 7, backoff: linear, jitter: 0.125, retryOn: [timeout, 'code:x'], neverOn: [policy]}, ",
        "retryPolicy: {maxAttempts: 2, initialDelayMs: 5, backoff: exponential, retryableErrors: {allow: [e1], deny: [e2]}}, ",
        "config: {maxAttempts: 3, backoffMs: 9, timeoutMs: 50}, ",
        "config: {timeoutMs: 70, onError: continue}, retry: {maxAttempts: 1}, ",
    ]);
    let more = select(vec![
        "",
        "when: {ref: '@input.x', eq: 1}, ",
        "forEach: {ref: '@input.l', concurrency: 2}, ",
        "outputVariable: v, ",
        "bail: {ref: '@input.stop'}, priority: 3, ",
        "outputSchema: {type: object}, onInterrupted: ask, ",
        "name: A title, description: What it is, ",
    ]);
    (work, retry, more, any::<bool>()).prop_map(move |(work, retry, more, has_id)| {
        let id = if has_id { format!("id: s{number}, ") } else { String::new() };
        format!("{{{id}{retry}{more}{work}}}")
    })
}

fn any_sequence() -> impl Strategy<Value = String> {
    let inside = (any_step(10), any_step(11), select(vec!["parallel", "conditional", "loop", "none", "none"]));
    let order = select(vec!["", "order: sequence, ", "order: dataflow, ", "order: edges, "]);
    let output = select(vec!["", "", "output: {given: '@input.x'}, ", "policy: {failOpen: true}, "]);
    (any_step(1), any_step(2), any_step(3), inside, order, output).prop_map(|(a, b, c, (x, y, kind), order, output)| {
        let container = match kind {
            "parallel" => format!(", {{id: p, type: parallel, steps: [{x}, {y}]}}"),
            "conditional" => {
                format!(", {{type: conditional, condition: {{ref: '@input.c'}}, then: [{x}], else: [{y}]}}")
            }
            "loop" => format!(", {{id: l, type: loop, forEach: {{ref: '@input.l'}}, steps: [{x}, {y}]}}"),
            _ => String::new(),
        };
        format!("{{{order}{output}steps: [{a}, {b}, {c}{container}, {{id: end, type: approval}}]}}")
    })
}

proptest! {
    #[test]
    fn written_definitions_parse_to_the_same_value(value in any_value()) {
        check_text(&Value::map([("value", value)]));
    }

    #[test]
    fn generated_definitions_convert_exactly_or_are_refused(text in any_sequence()) {
        let document = document(&text);
        if compile(&document).is_ok() {
            check(&document.value, &mut Seen::default());
        }
    }
}

/// Checks that the property test above covers enough valid definitions and successful conversions.
#[test]
fn generated_definitions_cover_the_language() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut seen) = (0, Seen::default());
    for _ in 0..300 {
        let text = any_sequence().new_tree(&mut runner).expect("a text is made").current();
        let document = document(&text);
        if compile(&document).is_ok() {
            accepted += 1;
            check(&document.value, &mut seen);
        }
    }
    assert!(accepted > 150 && seen.converted > 40, "{accepted} of 300 accepted: {seen:?}");
}
