//! Tests that the compiler rejects cycles and reports the steps on them, for all kinds of dependencies: references in
//! inputs, conditions, lists and `bail`, `needs`, edges, and inner steps.

use mainspring_kernel::{
    definition::{Syntax, compile, read},
    diagnostic::{CYCLE, PATH_NOT_IN_SCHEMA, Severity},
};

/// Dependencies from `a` on `b`, each of which closes the cycle.
const WAYS_BACK: &[(&str, &str)] = &[
    ("a reference in an input", r#"{"name":"a","action":{"toolName":"T"},"input":{"x":{"y":["text @b.v"]}}}"#),
    ("a condition", r#"{"name":"a","action":{"toolName":"T"},"when":{"ref":"@b.ok"}}"#),
    (
        "what a condition is compared with",
        r#"{"name":"a","action":{"toolName":"T"},"when":{"ref":"@input.x","eq":"@b.v"}}"#,
    ),
    (
        "a condition inside conditions",
        r#"{"name":"a","action":{"toolName":"T"},"when":{"any":[true,{"not":{"all":[{"ref":"@b"}]}}]}}"#,
    ),
    ("a bail", r#"{"name":"a","action":{"toolName":"T"},"bail":{"ref":"@b.stop"}}"#),
    ("a list", r#"{"name":"a","action":{"toolName":"T"},"forEach":{"ref":"@b.items"}}"#),
    (
        "what is done for each item",
        r#"{"name":"a","action":{"toolName":"T"},"input":{"x":"@b"},"forEach":{"ref":"@input.l"}}"#,
    ),
    (
        "a condition about the item and about a step",
        r#"{"name":"a","action":{"toolName":"T"},"forEach":{"ref":"@input.l"},"when":{"ref":"@item","eq":"@b"}}"#,
    ),
    ("a need", r#"{"name":"a","action":{"toolName":"T"},"needs":["b"]}"#),
    ("a return", r#"{"name":"a","action":{"return":true},"input":"@b"}"#),
    ("code", r#"{"name":"a","action":{"code":"export default function () {}"},"input":{"x":"@b"}}"#),
    ("a script", r#"{"name":"a","type":"bash","command":"echo @b.v"}"#),
    ("the environment of a script", r#"{"name":"a","type":"bash","command":"true","env":{"V":"@b.v"}}"#),
    ("a request", r#"{"name":"a","type":"http","url":"https://example.com/@b.v"}"#),
    ("a child's variables", r#"{"name":"a","type":"subworkflow","workflow":"w","variables":{"v":"@b"}}"#),
    ("a question", r#"{"name":"a","type":"approval","prompt":"ship @b.v?"}"#),
    ("what is approved", r#"{"name":"a","type":"approval","items":["@b"]}"#),
    ("a time", r#"{"name":"a","type":"sleep","durationMs":"@b.ms"}"#),
    ("a moment", r#"{"name":"a","type":"sleep","until":"@b.at"}"#),
    (
        "the condition of a conditional",
        r#"{"name":"a","type":"conditional","condition":{"ref":"@b.ok"},"then":[{"type":"tool","tool":"T"}]}"#,
    ),
    (
        "a step in a branch",
        r#"{"name":"a","type":"conditional","condition":true,"else":[{"type":"tool","tool":"T","arguments":{"x":"@b"}}]}"#,
    ),
    (
        "a step deep inside",
        r#"{"name":"a","type":"parallel","steps":[{"type":"loop","while":true,"steps":[{"type":"tool","tool":"T","when":{"ref":"@b.ok"}}]}]}"#,
    ),
    (
        "the condition of a loop",
        r#"{"name":"a","type":"loop","until":{"ref":"@b.ok"},"steps":[{"type":"tool","tool":"T"}]}"#,
    ),
    ("the list of a loop", r#"{"name":"a","type":"loop","forEach":{"ref":"@b"},"steps":[{"type":"tool","tool":"T"}]}"#),
    (
        "the list of a loop inside",
        r#"{"name":"a","type":"parallel","steps":[{"type":"loop","forEach":{"ref":"@b"},"steps":[{"type":"tool","tool":"T"}]}]}"#,
    ),
];

/// Dependencies from `b` on `a`, of the step itself or of an inner step.
const WAYS_THERE: &[&str] = &[
    r#"{"name":"b","action":{"toolName":"T"},"input":{"x":"@a"}}"#,
    r#"{"name":"b","type":"parallel","steps":[{"name":"inner","type":"tool","tool":"T","arguments":{"x":"@a"}}]}"#,
    r#"{"name":"b","action":{"toolName":"T"},"forEach":{"ref":"@input.l"},"bail":{"ref":"@a"}}"#,
];

/// Returns the messages of all errors, which must be about cycles.
fn circles(definition: &str) -> Vec<String> {
    let document = read(definition.as_bytes(), Syntax::Json).unwrap_or_else(|error| panic!("{definition}: {error}"));
    let mut found = compile(&document).err().unwrap_or_default();
    // A step may lack the field that a reference to it names, which is another error.
    found.retain(|diagnostic| diagnostic.severity == Severity::Error && diagnostic.code != PATH_NOT_IN_SCHEMA);
    assert!(found.iter().all(|diagnostic| diagnostic.code == CYCLE), "{definition}: {found:#?}");
    found.into_iter().map(|diagnostic| diagnostic.message).collect()
}

/// Returns the step names in a message, in order.
fn path_of(message: &str) -> Vec<&str> {
    let way = message.rsplit_once(": ").map_or("", |(_, way)| way);
    way.split(" → ").map(|name| name.trim_matches(['`', '\'', '"'])).collect()
}

#[test]
fn every_cycle_is_refused_with_its_path() {
    let start = r#"{"name":"start","action":{"toolName":"T"}}"#;
    for (what, back) in WAYS_BACK {
        for there in WAYS_THERE {
            for steps in [format!("{start},{back},{there}"), format!("{there},{start},{back}")] {
                let found = circles(&format!(r#"{{"steps":[{steps}]}}"#));
                let [message] = found.as_slice() else { panic!("{what}: {found:?} in {steps}") };
                let way = path_of(message);
                assert!(way == ["a", "b", "a"] || way == ["b", "a", "b"], "{what}: {message}");
            }
            // Without the other dependency there is no cycle.
            let alone = r#"{"name":"b","action":{"toolName":"T"}}"#;
            assert_eq!(circles(&format!(r#"{{"steps":[{start},{back},{alone}]}}"#)), Vec::<String>::new(), "{what}");
        }
    }
}

/// A reference to an inner step is a dependency on its outermost step.
#[test]
fn a_cycle_through_two_nested_blocks_is_refused() {
    let branches = |name: &str, inner: &str, refers: &str| {
        format!(
            r#"{{"name":"{name}","type":"parallel","steps":[{{"name":"{inner}","type":"tool","tool":"T","arguments":{{"x":"@{refers}"}}}}]}}"#
        )
    };
    let action = r#"{"name":"z","action":{"toolName":"T"}}"#;
    let (p, q) = (branches("p", "x", "y"), branches("q", "y", "x"));
    let found = circles(&format!(r#"{{"steps":[{action},{p},{q}]}}"#));
    let [message] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        [["p", "q", "p"], ["q", "p", "q"]].contains(&path_of(message).try_into().expect("three names")),
        "{message}"
    );
}

#[test]
fn edges_form_cycles_alone_and_with_references() {
    let node = |id: &str, more: &str| format!(r#"{{"id":"{id}","type":"tool","tool":"T"{more}}}"#);
    let nodes = |needs: &str| [node("start", ""), node("a", ""), node("b", needs), node("c", "")].join(",");
    for kind in ["on_success", "on_failure", "always", "skip"] {
        let edge = |from: &str, to: &str| format!(r#"{{"from":"{from}","to":"{to}","when":"{kind}"}}"#);
        let there = format!("{},{},{}", edge("start", "a"), edge("a", "b"), edge("b", "c"));
        let graph = |nodes: String, edges: String| format!(r#"{{"nodes":[{nodes}],"edges":[{edges}]}}"#);
        for (found, what) in [
            (circles(&graph(nodes(""), format!("{there},{}", edge("c", "a")))), "an edge"),
            (circles(&graph(nodes(r#","needs":["c"]"#), there.clone())), "a need"),
        ] {
            let [message] = found.as_slice() else { panic!("{what}: {found:?}") };
            let way = path_of(message);
            assert_eq!(way.first(), way.last(), "{what}: {message}");
            let on_it = if what == "an edge" { ["a", "b", "c"].as_slice() } else { &["b", "c"] };
            assert!(on_it.iter().all(|id| way.contains(id)) && way.len() == on_it.len() + 1, "{what}: {message}");
        }
        assert_eq!(circles(&graph(nodes(""), there)), Vec::<String>::new());
        let referring = node("b", r#","arguments":{"x":"@c"}"#);
        let mixed = format!(
            r#"{{"order":"dataflow","nodes":[{},{referring},{}],"edges":[{}]}}"#,
            node("a", ""),
            node("c", ""),
            edge("b", "c")
        );
        let found = circles(&mixed);
        assert!(found.len() == 1 && path_of(&found[0]).len() == 3, "{found:?}");
    }
}

/// The message lists exactly the steps on the cycle, even of a long one, and no steps that only depend on it.
#[test]
fn the_reported_path_is_only_the_cycle() {
    let step = |name: String, of: String| {
        format!(r#"{{"name":"{name}","action":{{"toolName":"T"}},"input":{{"x":"@{of}"}}}}"#)
    };
    let circle = (0..30).map(|at| step(format!("c{at}"), format!("c{}", (at + 29) % 30)));
    let behind = (0..30).map(|at| step(format!("t{at}"), if at == 0 { "c7".into() } else { format!("t{}", at - 1) }));
    let steps: Vec<String> = behind.chain(circle).collect();
    let found = circles(&format!(r#"{{"steps":[{}]}}"#, steps.join(",")));
    let [message] = found.as_slice() else { panic!("{found:?}") };
    let way = path_of(message);
    assert_eq!((way.len(), way.first()), (31, way.last()), "{message}");
    let number = |name: &str| name.trim_start_matches('c').parse::<usize>().expect("a step of the circle");
    assert!(way.windows(2).all(|link| number(link[1]) == (number(link[0]) + 1) % 30), "{message}");
}
