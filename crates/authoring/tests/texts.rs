//! Every topic, template and example compiles without a remark, and every step type and code has an explanation.

use mainspring_authoring::{
    examples::examples,
    explain::{explain, render_list},
    language::{Language, NOTATIONS, OBJECTS},
    schemas::SCHEMAS,
    templates::templates,
    topics::{topic, topics},
};
use mainspring_kernel::{
    definition::{Syntax, compile, keys, read},
    error_codes, json,
};

fn check(name: &str, definition: &str) {
    let document = read(definition.as_bytes(), Syntax::Yaml).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let compiled = compile(&document).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    assert_eq!(compiled.warnings, [], "{name}");
}

#[test]
fn every_example_compiles_without_warnings() {
    // The cases of the topic `scenario` are run by a test of the simulator's users.
    topics().iter().filter(|topic| topic.name != "scenario").for_each(|topic| check(topic.name, topic.example));
    templates().iter().for_each(|template| check(template.name, template.definition));
    examples().iter().for_each(|example| check(example.name, example.definition));
    assert!(examples().len() >= 30 && examples().iter().all(|example| !example.summary.is_empty()));
    let names: Vec<&str> = templates().iter().map(|template| template.name).collect();
    assert_eq!(names, ["agent", "approval", "dataflow", "fan-out", "graph", "script"]);
}

#[test]
fn every_step_type_and_every_code_is_explained() {
    for step_type in keys::step_types() {
        let explanation = explain(step_type).unwrap_or_else(|_| panic!("{step_type} has no topic"));
        let text = explanation.render();
        assert!(explanation.topic.is_some() && text.contains("Example:"), "{step_type}: {text}");
        assert!(render_list().contains(&format!("  {step_type} ")), "{step_type} is not in the list");
    }
    for code in error_codes::all() {
        let explanation = explain(code.code).unwrap_or_else(|_| panic!("{} is unknown", code.code));
        assert!(explanation.render().contains(code.meaning), "{}", code.code);
    }
    for topic in topics() {
        assert!(topic.summary.ends_with('.') || topic.summary.ends_with(':'), "{}: {}", topic.name, topic.summary);
        assert!(topic.text().lines().all(|line| !line.starts_with('#')), "{}", topic.name);
    }
}

#[test]
fn queries() {
    let found = |query: &str| explain(query).map(|explanation| explanation.name);
    assert_eq!(found("bash_exit_code:3"), Ok("bash_exit_code:3".into()));
    assert_eq!(found("approvals"), Ok("approval".into()));
    assert_eq!(found("Loops"), Ok("loop".into()));
    assert_eq!(found("maxrounds"), Ok("maxrounds".into()));
    assert_eq!(found("bahs"), Err(Some("bash".into())));
    assert_eq!(found("unknown_keys"), Err(Some("unknown_key".into())));
    assert_eq!(found("zzzzzzzz"), Err(None));
    let places = explain("timeoutMs").expect("a key").render();
    for part in ["In bash:", "In constraints:", "120000", "600000"] {
        assert!(places.contains(part), "{part}: {places}");
    }
    assert_eq!(topic("GATE").map(|topic| topic.name), Some("approval"));
}

#[test]
fn every_key_has_a_description_and_a_kind() {
    let language = Language::default();
    let check = |place: &str, keys: Vec<mainspring_authoring::language::Key>| {
        assert!(!keys.is_empty(), "{place}");
        for key in keys {
            assert!(!key.description.is_empty() && !key.kind.is_empty(), "{place}: {}", key.line());
        }
    };
    for notation in NOTATIONS {
        check(notation.name(), language.root(notation));
        for step_type in keys::step_types() {
            check(step_type, language.step(notation, step_type));
            assert!(!language.step_type(step_type).is_empty(), "{step_type}");
        }
    }
    OBJECTS.iter().for_each(|object| check(object.name, language.object(*object)));
    keys::actions().iter().for_each(|(_, step_type)| check(step_type, language.step_with_action(step_type)));
    check("condition", language.condition());
    for schema in SCHEMAS {
        assert!(json::read(schema.text.as_bytes()).is_ok(), "{}", schema.name);
    }
}
