//! Tests of the compiler: rendered diagnostics, plans, hashes, and the conformance cases. `MAINSPRING_UPDATE_GOLDEN=1`
//! rewrites the golden files; their diff must be reviewed.

use std::{collections::BTreeSet, fs, path::Path, time::Instant};

use mainspring_kernel::{
    definition::{
        Compiled, Complaint, Field, FunctionTypes, Inspector, Syntax, compile, compile_with, fields_of, read,
    },
    diagnostic::{CODES, Diagnostic, OF_PLACES},
    document::Document,
    json,
    limits::FINDINGS_MAX,
    plan::Plan,
    value::Value,
};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The folder of the conformance cases, which several implementations share.
const CONFORMANCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");

fn compiled(text: &str) -> Result<Compiled, Vec<Diagnostic>> {
    compile(&read(text.as_bytes(), Syntax::Guess).map_err(|diagnostic| vec![diagnostic])?)
}

/// An inspector with simple rules in place of the real one.
struct Reads;

impl Inspector for Reads {
    fn source(&self, source: &str) -> Result<FunctionTypes, Complaint> {
        if source.trim_start().starts_with("export default") {
            return Ok(FunctionTypes::default());
        }
        let message = "line 1, column 1: the function exports nothing".to_string();
        Err(Complaint { message, help: "write `export default function (input) { … }`".to_string() })
    }

    fn schema(&self, schema: &Value) -> Result<(), Complaint> {
        match schema.get("minimum") {
            Some(bound) if !matches!(bound, Value::Number(_)) => {
                let message = format!("/minimum: {} is not a number", json::compact(bound));
                Err(Complaint { message, help: String::new() })
            }
            _ => Ok(()),
        }
    }

    fn workflow_input(&self, name: &str) -> Option<Value> {
        let schema =
            r#"{"type":"object","properties":{"n":{"type":"integer"},"m":{"default":1}},"required":["n","m"]}"#;
        (name == "known").then(|| json::value(schema.as_bytes()).expect("JSON"))
    }
}

/// The input of a workflow that is known is checked against its schema, as far as no reference is in it.
#[test]
fn inputs_of_known_workflows_match_their_schema() {
    for (input, is_right) in [
        (r#""input":{"m":2},"#, false),
        (r#""input":{"n":"2"},"#, false),
        ("", false),
        (r#""input":{"n":2},"#, true),
        (r#""input":{"n":"@input.n"},"#, true),
        (r#""input":"@input","#, true),
        (r#""input":{"n":2,"k":"x@y"},"#, true),
    ] {
        let step = |name: &str| format!(r#"{{"steps":[{{{input}"type":"subworkflow","workflow":"{name}"}}]}}"#);
        let codes: Vec<_> = findings(&step("known")).iter().map(|found| found.code).collect();
        let expected: &[&str] = if is_right { &[] } else { &["value_not_in_schema"] };
        assert_eq!(codes, expected, "{input}");
        assert_eq!(findings(&step("other")), [], "{input}");
    }
}

/// Returns all diagnostics of a definition, valid or not.
fn findings(text: &str) -> Vec<Diagnostic> {
    let document = match read(text.as_bytes(), Syntax::Guess) {
        Ok(document) => document,
        Err(diagnostic) => return vec![diagnostic],
    };
    compile_with(&document, &Reads).map_or_else(|found| found, |compiled| compiled.warnings)
}

fn is_updating() -> bool {
    std::env::var_os("MAINSPRING_UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

/// Compares a text with a golden file, or rewrites the file.
fn check_golden(path: &Path, text: &str) {
    if is_updating() {
        return fs::write(path, text).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().zip(expected.lines()).enumerate();
    let mut difference = lines
        .filter(|(_, (now, before))| now != before)
        .map(|(at, (now, before))| format!("line {}\n  picture: {before}\n  now:     {now}", at + 1));
    let first = difference.next().unwrap_or_else(|| "one is longer".into());
    assert!(text == expected, "{}: {first}\n(MAINSPRING_UPDATE_GOLDEN=1 writes it anew)", path.display());
}

#[test]
fn diagnostics_match_the_goldens() {
    let mut names: Vec<_> = fs::read_dir(format!("{HERE}/tests/diagnostics"))
        .expect("the folder of pictures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "txt"))
        .collect();
    names.sort();
    let mut codes = BTreeSet::new();
    for path in &names {
        let source = fs::read_to_string(path).expect("a definition");
        let found = findings(&source);
        if found.is_empty() {
            eprintln!("{}: nothing was found", path.display());
        }
        let places: Vec<_> = found.iter().map(|diagnostic| diagnostic.place).collect();
        assert!(places.is_sorted(), "{}: {places:?}", path.display());
        codes.extend(found.iter().map(|diagnostic| diagnostic.code));
        let pictures: Vec<_> = found.iter().map(|diagnostic| diagnostic.render(&source)).collect();
        check_golden(&path.with_extension("txt"), &pictures.join("\n"));
    }
    assert!(names.len() >= 160, "{} pictures", names.len());
    // The compiler has no policy, and this inspector knows no names: tests/effect_policy.rs, tests/flow.rs and
    // tests/outside.rs have the tests of these codes.
    let of_policy = ["policy_denied", "untrusted_flow", "private_flow"];
    let documented: BTreeSet<_> =
        CODES.into_iter().filter(|code| !of_policy.contains(code) && !OF_PLACES.contains(code)).collect();
    assert_eq!(codes, documented, "every code is documented and pictured");
}

#[test]
fn plans_match_the_goldens() {
    for name in ["plan", "sequence", "dataflow", "graph"] {
        let path = format!("{HERE}/tests/golden/{name}.yaml");
        let source = fs::read_to_string(&path).expect("a definition");
        let compiled = compiled(&source).unwrap_or_else(|found| panic!("{name}: {}", pictures(&found)));
        assert_eq!(compiled.warnings, [], "{name}");
        check_golden(&Path::new(&path).with_extension("json"), &(json::pretty(&compiled.plan.to_value()) + "\n"));
        assert_eq!(Plan::decode(&compiled.plan.encode()), Ok(compiled.plan), "{name}");
    }
}

fn pictures(found: &[Diagnostic]) -> String {
    found.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

fn cases(path: &str) -> Vec<Value> {
    let path = format!("{CONFORMANCE}/{path}");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document = json::read(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
    document.value.get("cases").and_then(Value::as_list).expect("cases").to_vec()
}

#[test]
fn hashes_are_those_of_the_vectors() {
    for case in cases("vectors/hashes.json") {
        let text = |key: &str| case.get(key).and_then(Value::as_text).expect("a text").to_string();
        let document = Document::placeless(case.get("definition").expect("a definition").clone());
        let compiled = compile(&document).unwrap_or_else(|found| panic!("{}: {}", text("id"), pictures(&found)));
        assert_eq!(json::canonical(&compiled.normalised), text("canonicalJson"), "{}", text("id"));
        assert_eq!(compiled.workflow_hash.prefixed(), text("workflowHash"), "{}", text("id"));
    }
}

/// Returns the cases of all scenario files in a folder.
fn scenarios(folder: &str) -> Vec<Value> {
    let entries = fs::read_dir(format!("{CONFORMANCE}/{folder}")).expect("a folder of cases");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".scenario.json")).collect();
    names.sort();
    names.iter().flat_map(|name| cases(&format!("{folder}/{name}"))).collect()
}

#[test]
fn scenarios_are_accepted_and_refused_as_declared() {
    let mut accepted = 0;
    for case in ["sequence", "dataflow", "graph"].iter().flat_map(|folder| scenarios(folder)) {
        let expected = case.get("expect").expect("an expectation");
        let outcome = compile(&Document::placeless(case.get("definition").expect("a definition").clone()));
        let found = outcome.as_ref().err().map(|found| pictures(found)).unwrap_or_default();
        let name = case.get("name").and_then(Value::as_text).expect("a name");
        if expected.get("accepted") == Some(&Value::from(false)) {
            assert!(outcome.is_err(), "{name}");
            let words = expected.get("diagnostics_contain").and_then(Value::as_list).unwrap_or_default();
            for word in words.iter().filter_map(Value::as_text) {
                assert!(found.contains(word), "{name}: {word} is not in\n{found}");
            }
        } else {
            assert!(outcome.is_ok(), "{name}: {found}");
            accepted += 1;
        }
    }
    assert!(accepted >= 100, "{accepted}");
}

/// Steps with a part of the expected stored plan.
const ACCEPTED: &[(&str, &str)] = &[
    (r#"{"type":"bash","command":"echo hi"}"#, r#""retry":{"delay":[10000,30000],"maxAttempts":3},"timeoutMs":120000"#),
    (
        r#"{"type":"bash","command":"x","retry":{"maxAttempts":1}}"#,
        r#""retry":{"delay":[10000,30000],"maxAttempts":1}"#,
    ),
    (
        r#"{"type":"bash","command":"x","retry":{"backoff":"linear"}}"#,
        r#""delay":{"backoff":"linear","initialMs":10000,"maxMs":86400000}"#,
    ),
    (
        r#"{"type":"bash","command":"x","retry":{"initialDelayMs":10,"jitter":0.2}}"#,
        r#""delay":{"backoff":"exponential","initialMs":10,"maxMs":86400000},"jitterPermille":200"#,
    ),
    (
        r#"{"type":"bash","command":"x","retry":{"retryOn":["failed"],"neverOn":["timeout"]}}"#,
        r#""neverOn":["timeout"],"retryOn":["failed"]"#,
    ),
    (
        r#"{"type":"bash","command":"x","timeoutMs":600000,"onInterrupted":"ask","onError":"continue"}"#,
        r#""onError":"continue","onInterrupted":"ask""#,
    ),
    (
        r#"{"type":"bash","command":"x","env":{"A":null,"B":1.5,"C":{"k":[1]},"D":"@@x"}}"#,
        r#""env":{"A":"","B":"1.5","C":"{\"k\":[1]}","D":"=@x"}"#,
    ),
    (
        r#"{"type":"bash","command":"x","env":{"A":"@input.a","B":"b@input.b"},"cwd":"@vars.dir"}"#,
        r#"{"command":"x","cwd":"~@{vars.dir}","env":{"A":"~@{input.a}","B":"~b@{input.b}"}}"#,
    ),
    (
        r#"{"type":"bash","command":"echo @vars.name @@here"}"#,
        r#"{"command":"export -n MAINSPRING_REF_0; echo \"${MAINSPRING_REF_0}\" @here","env":{"MAINSPRING_REF_0":"~@{vars.name}"}}"#,
    ),
    (
        r#"{"type":"tool","tool":"bash","arguments":{"command":"x"}}"#,
        r#""effect":"bash","id":"step[0]","params":{"command":"x","env":{}}"#,
    ),
    (r#"{"type":"tool","tool":"T"}"#, r#""params":{"arguments":{},"tool":"T"}"#),
    (r#"{"type":"tool","tool":"T","arguments":"@input"}"#, r#""arguments":"@input""#),
    (
        r#"{"type":"tool","tool":"T","arguments":{"a":"me@example.com","b":"~","c":"=","d":"a@@input b"}}"#,
        r#"{"a":"me@example.com","b":"=~","c":"==","d":"a@input b"}"#,
    ),
    (
        r#"{"type":"agent","message":"do @input.x"}"#,
        r#""params":{"goal":"~do @{input.x}"},"retry":{"delay":[10000,30000],"maxAttempts":3},"timeoutMs":900000"#,
    ),
    (r#"{"type":"agent_message","goal":"hi","await_timeout_ms":1000,"timeoutMs":5}"#, r#""timeoutMs":1000"#),
    (r#"{"type":"conditional","condition":false,"else":[]}"#, r#""else":[],"id":"step[0]","then":[]"#),
    (
        r#"{"type":"conditional","condition":{"ref":"@input.n","gte":1,"lt":"@input.m"},"then":[]}"#,
        r#"{"gte":1,"lt":"@input.m","ref":"@input.n"}"#,
    ),
    (
        r#"{"type":"approval"}"#,
        r#""count":1,"id":"step[0]","items":[],"onTimeout":"deny","prompt":"Approval required for step step[0]","ttlMs":86400000"#,
    ),
    (r#"{"type":"sleep","durationMs":"@input.ms"}"#, r#""durationMs":"@input.ms""#),
    (r#"{"type":"signal","signal":"order.paid"}"#, r#""signal":"order.paid""#),
    (r#"{"type":"return"}"#, r#""output":null"#),
    (
        r#"{"id":"a","type":"bash","command":"x","when":{"not":{"any":[{"variable":"k","equals":null},{"ref":"@input.x","exists":false}]}}}"#,
        r#""when":{"not":{"any":[{"equals":null,"variable":"k"},{"exists":false,"ref":"@input.x"}]}}"#,
    ),
];

#[test]
fn accepted() {
    for (steps, shown) in ACCEPTED {
        let compiled = compiled(&format!("{{\"steps\":[{steps}]}}"))
            .unwrap_or_else(|found| panic!("{steps}: {}", pictures(&found)));
        let form = json::compact(&compiled.plan.to_value());
        assert!(form.contains(*shown), "{steps}: {form}");
        assert_eq!(Plan::decode(&compiled.plan.encode()), Ok(compiled.plan), "{steps}");
    }
}

/// A value that selects the folder of a script selects the files that the script executes.
#[test]
fn folders_with_references_are_reported() {
    let is_taken = |cwd: &str| {
        let step = format!(r#"{{"type":"bash","command":"make; echo @vars.x","cwd":"{cwd}"}}"#);
        compiled(&format!("{{\"steps\":[{step}]}}")).is_ok()
    };
    for cwd in [
        "@vars.d",
        "@vars.d/",
        "a/@vars.d//",
        "@vars.d/.",
        "@vars.d/a/..",
        "../@vars.d",
        "@vars.d/./",
        "@vars.d/../a",
        "@vars.d/app",
        "a/@vars.d/b",
    ] {
        assert!(!is_taken(cwd), "{cwd}");
    }
    for cwd in ["app", "../app"] {
        assert!(is_taken(cwd), "{cwd}");
    }
}

/// Tests which steps may refer to which, for all pairs of steps of one plan.
#[test]
fn references_name_steps_that_always_end_before() {
    const IDS: [&str; 9] = ["first", "choice", "yes1", "yes2", "no", "all", "left", "right", "last"];
    // One row for each referring step; columns are in the order above. `.` is allowed, `l` is later, `s` is the step
    // itself or around it, `p` runs in parallel.
    const TABLE: [&str; 9] = [
        "sllllllll",
        ".slllllll",
        ".ssl.llll",
        ".s.s.llll",
        ".s..sllll",
        ".....slll",
        ".....sspl",
        ".....spsl",
        "........s",
    ];
    for (from, row) in IDS.iter().zip(TABLE) {
        for (to, expected) in IDS.iter().zip(row.chars()) {
            let step = |id: &str, rest: &str| {
                let when = if id == *from { format!(",\"when\":{{\"ref\":\"@{to}\"}}") } else { String::new() };
                format!("{{\"id\":\"{id}\"{when},{rest}}}")
            };
            let leaf = |id: &str| step(id, r#""type":"tool","tool":"T""#);
            let (yes, no) = (format!("{},{}", leaf("yes1"), leaf("yes2")), leaf("no"));
            let choice = step(
                "choice",
                &format!(r#""type":"conditional","condition":{{"variable":"v"}},"then":[{yes}],"else":[{no}]"#),
            );
            let all = step("all", &format!(r#""type":"parallel","steps":[{},{}]"#, leaf("left"), leaf("right")));
            let text = format!("{{\"steps\":[{},{choice},{all},{}]}}", leaf("first"), leaf("last"));
            let found = findings(&text);
            let codes: Vec<_> = found.iter().map(|diagnostic| diagnostic.code).collect();
            let code = match expected {
                '.' => None,
                'l' => Some("reference_to_later"),
                's' => Some("reference_to_itself"),
                _ => Some("reference_into_parallel"),
            };
            // The condition of a container is evaluated before its inner steps run.
            assert_eq!(codes, code.into_iter().collect::<Vec<_>>(), "{from} refers to {to}: {found:?}");
            assert!(found.iter().all(|one| one.message.contains(from) && one.message.contains(to)), "{found:?}");
        }
    }
}

#[test]
fn read_guesses() {
    assert!(read(b" \n{\"steps\": []}", Syntax::Guess).is_ok());
    assert!(read(b"{a: b}", Syntax::Guess).is_err() && read(b"{a: b}", Syntax::Yaml).is_ok());
    assert!(read(b"a: b", Syntax::Json).is_err() && read(b"a: b", Syntax::Guess).is_ok());
    let oops = read(b"{oops", Syntax::Guess).expect_err("no JSON");
    assert_eq!((oops.code, oops.place.map(|place| (place.line, place.column))), ("unreadable", Some((1, 2))));
}

/// Returns a definition of many steps with ids, references, containers and output variables.
fn large(steps: usize) -> String {
    let parts = (0..steps / 4).map(|n| {
        let before = if n == 0 { "input.x".to_string() } else { format!("d{}.x", n - 1) };
        format!(
            r#"{{"id":"a{n}","type":"bash","command":"echo @{before}","outputVariable":"o{n}"}},{{"id":"b{n}","type":"conditional","condition":{{"ref":"@a{n}.exitCode","eq":0}},"then":[{{"id":"c{n}","type":"tool","tool":"T","arguments":{{"x":"@a{n}.stdout","y":"say @{before}","z":[1,2,{{"k":null}}]}}}}]}},{{"id":"d{n}","type":"tool","tool":"T","arguments":{{"x":"@c{n}.y"}}}}"#
        )
    });
    format!("{{\"steps\":[{}]}}", parts.collect::<Vec<_>>().join(","))
}

#[test]
fn large_plans_compile() {
    let text = large(2_000);
    let compiled = compiled(&text).unwrap_or_else(|found| panic!("{}", pictures(&found[..1])));
    assert_eq!(compiled.plan.steps.len(), 2_000);
    assert_eq!(Plan::decode(&compiled.plan.encode()), Ok(compiled.plan));
}

/// Many mistakes of each kind are all reported, without excessive cost.
#[test]
fn many_mistakes_are_reported() {
    let step = r#"{"id":"twin","type":"tool","tool":"T","arguments":"@nobody","outputVariable":"v"}"#;
    let text = format!("{{\"steps\":[{{\"type\":\"parallel\",\"steps\":[{}]}}]}}", vec![step; 2_000].join(","));
    assert_eq!(findings(&text).len(), 3 * 2_000 - 2);
}

/// Large numbers of names are not searched again for each mistake, nor in a valid definition.
#[test]
fn the_cost_of_suggestions_is_bounded() {
    let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(",");
    let nodes = many(5_000, &|n| format!(r#"{{"id":"node_{n}","type":"return"}}"#));
    let edges = many(5_000, &|n| format!(r#"{{"from":"nod_{n}","to":"node_{n}"}}"#));
    assert_eq!(findings(&format!(r#"{{"nodes":[{nodes}],"edges":[{edges}]}}"#)).len(), 5_000);
    let declared = many(5_000, &|n| format!(r#""variable_{n}":{{}}"#));
    let asked = many(5_000, &|n| format!(r#""@vars.variabel_{n}""#));
    let step = format!(r#"{{"type":"return","input":[{asked}]}}"#);
    assert_eq!(findings(&format!(r#"{{"variables":{{{declared}}},"steps":[{step}]}}"#)).len(), 5_000);
    let steps = many(5_000, &|n| format!(r#"{{"name":"step_{n}","action":{{"toolName":"T"}}}}"#));
    let all = many(5_000, &|n| format!(r#""@step_{n}""#));
    let last = format!(r#"{{"name":"last","action":{{"return":true}},"input":[{all}]}}"#);
    assert_eq!(findings(&format!(r#"{{"steps":[{steps},{last}]}}"#)), []);
}

/// If a reachability search exceeds its limit, the diagnostic says so and suggests an edge.
#[test]
fn paths_that_are_not_checked_in_time_are_reported() {
    let count = 3_600;
    let graph = |edges_to_first: bool| {
        let node = |n: usize| format!(r#"{{"id":"n{n}","type":"tool","tool":"T","arguments":{{"x":"@n0.y"}}}}"#);
        let first = r#"{"id":"n0","type":"tool","tool":"T"}"#.to_string();
        let nodes: Vec<_> = std::iter::once(first).chain((1..count).map(node)).collect();
        let mut edges: Vec<_> = (2..count).map(|n| format!(r#"{{"from":"n{}","to":"n{n}"}}"#, n - 1)).collect();
        edges.extend((1..count).filter(|_| edges_to_first).map(|n| format!(r#"{{"from":"n0","to":"n{n}"}}"#)));
        format!(r#"{{"nodes":[{}],"edges":[{}]}}"#, nodes.join(","), edges.join(","))
    };
    let found = findings(&graph(false));
    assert_eq!(found.len(), count - 1);
    let (first, last) = (&found[0], &found[count - 2]);
    assert_eq!((first.code, last.code), ("reference_into_parallel", "too_large"));
    assert!(last.help.contains("add the edge {from: n0, to: n"), "{}", last.help);
    assert_eq!(findings(&graph(true)), []);
}

/// `cargo test --release -p mainspring-kernel --test definition -- --ignored --nocapture` prints the time for 10,000
/// steps. It is a benchmark without assertions on time.
#[test]
#[ignore = "prints figures"]
fn speed() {
    let text = large(10_000);
    let started = Instant::now();
    let document = read(text.as_bytes(), Syntax::Json).expect("JSON");
    let was_read = started.elapsed();
    let compiled = compile(&document).expect("a plan");
    let was_compiled = started.elapsed();
    let bytes = compiled.plan.encode();
    let was_encoded = started.elapsed();
    Plan::decode(&bytes).expect("a plan");
    println!(
        "{} bytes: read {was_read:?}, compile {:?}, encode {:?} ({} bytes), decode {:?}",
        text.len(),
        was_compiled - was_read,
        was_encoded - was_compiled,
        bytes.len(),
        started.elapsed() - was_encoded
    );
}

/// Diagnostics beyond the limit are counted, and the definition is rejected.
#[test]
fn findings_beyond_the_bound_are_counted() {
    let steps = vec!["{}"; FINDINGS_MAX + 5].join(",");
    let found = findings(&format!("{{\"steps\":[{steps}]}}"));
    assert_eq!(found.len(), FINDINGS_MAX + 1);
    let last = found.last().expect("there are findings");
    assert_eq!((last.code, last.message.as_str()), ("too_large", "5 more findings are not listed"));
}

/// Removes and doubles each letter of each field name, and expects an error at every reference that this breaks.
#[test]
fn mutated_references_to_known_shapes_are_refused() {
    const STEPS: &str = r#"
steps:
  - {id: sh, type: bash, command: ls}
  - {id: get, type: http, url: "https://example.com/"}
  - {id: gate, type: approval}
  - {id: each, type: bash, command: ls, forEach: {ref: "@get.body"}}
  - {id: both, type: parallel, steps: [{id: left, type: bash, command: ls}, {id: right, type: bash, command: ls}]}
  - id: one
    type: conditional
    condition: {ref: "@get.body"}
    then: [{id: x, type: bash, command: ls}]
    else: [{id: y, type: bash, command: ls}]
  - {id: typed, type: code, code: "export default () => 1", outputSchema: {type: object, properties: {total: {type: number}}, additionalProperties: false}}
  - {id: reads, type: tool, tool: T, arguments: {value: "@REFERENCE"}}
"#;
    const REFERENCES: [&str; 10] = [
        "sh.stdout",
        "sh.exitCode",
        "get.status",
        "get.body.items.name",
        "gate.decision",
        "each[0].stderr",
        "both.left.stdout",
        "both.right.truncated",
        "one.durationMs",
        "typed.total",
    ];
    // The shape below a `body` is not known.
    let known = |reference: &str| reference.find("body").map_or(reference.len(), |at| at + "body".len());
    let mut mutations = 0;
    for reference in REFERENCES {
        let with = |reference: &str| findings(&STEPS.replace("REFERENCE", reference));
        assert_eq!(with(reference), [], "{reference}");
        let first = reference.find('.').expect("a path") + 1;
        for at in (first..known(reference)).filter(|at| reference.as_bytes()[*at].is_ascii_alphabetic()) {
            let (before, letter, after) = (&reference[..at], &reference[at..=at], &reference[at + 1..]);
            for mutated in [format!("{before}{after}"), format!("{before}{letter}{letter}{after}")] {
                let codes: Vec<_> = with(&mutated).iter().map(|found| found.code).collect();
                assert_eq!(codes, ["path_not_in_schema"], "{mutated}");
                mutations += 1;
            }
        }
    }
    assert!(mutations > 100, "{mutations}");
}

/// Counts the functions and workflows that it is asked about.
#[derive(Default)]
struct Counts(std::cell::Cell<usize>);

impl Inspector for Counts {
    fn source(&self, _: &str) -> Result<FunctionTypes, Complaint> {
        self.0.set(self.0.get() + 1);
        let total = Value::map([("total", Value::map([("type", "number".into())]))]);
        Ok(FunctionTypes { result: Some(Value::map([("type", "object".into()), ("properties", total)])) })
    }

    fn schema(&self, _: &Value) -> Result<(), Complaint> {
        unreachable!("a question about a shape checks no schema")
    }
}

#[test]
fn a_completion_asks_for_the_functions_of_its_reference_only() {
    let step = |number: usize| {
        let fields = [("type", "code".into()), ("code", "export default (x) => x".into())];
        Value::map(fields.into_iter().chain([("id", Value::from(format!("s{number}")))]))
    };
    let steps: Vec<Value> = (0..2_000).map(step).collect();
    let document = Document::placeless(Value::map([("steps", Value::List(steps))]));
    let (inspector, path) = (Counts::default(), mainspring_kernel::document::Path::root().key("steps").index(1_999));
    let names = |reference: &str| fields_of(&document, &inspector, &path, reference);
    assert_eq!(names("s7"), [Field { name: "total".into(), kind: "number".into() }]);
    assert_eq!(inspector.0.get(), 1);
    assert_eq!(names("s7.total"), []);
    assert_eq!((names("nobody"), names("item"), names("")), (Vec::new(), Vec::new(), Vec::new()));
    assert_eq!(inspector.0.get(), 2);
}
