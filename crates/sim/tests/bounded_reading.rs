//! The bounds of a text of scenarios: the work and the memory for it do not grow with the product of its parts.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use mainspring_kernel::{
    definition::{self, Syntax},
    document::Document,
    value::Value,
};
use mainspring_sim::{
    Allowance, Bounds, run_case,
    scenario::{Case, Definition, Definitions, read_within},
};

/// One definition for every path, and the number of times that it was requested.
struct Counted {
    definition: Definition,
    requests: AtomicUsize,
}

impl Definitions for Counted {
    fn definition(&self, _: &str) -> Result<Definition, String> {
        self.requests.fetch_add(1, Relaxed);
        Ok(self.definition.clone())
    }

    fn workflow(&self, _: &str, _: &str) -> Option<Definition> {
        None
    }

    fn help(&self) -> String {
        "write the definition in place".into()
    }
}

const FLOW: &str = "steps: [{id: a, type: bash, command: ls, onInterrupted: retry}]\n";

/// Reads a text, and returns the number of definitions that were requested for it.
fn read(text: &str, allowance: &Allowance) -> (Result<Vec<Case>, String>, usize) {
    let document = definition::read(FLOW.as_bytes(), Syntax::Yaml).expect("it is YAML");
    let counted = Arc::new(Counted { definition: Arc::new(Ok(document)), requests: AtomicUsize::new(0) });
    let cases = read_within(text.as_bytes(), Syntax::Yaml, counted.clone(), allowance);
    (cases, counted.requests.load(Relaxed))
}

fn bounded(bounds: Bounds) -> Allowance {
    Allowance::new(|| false, bounds)
}

/// A text with this number of cases, after the keys of the file.
fn cases(keys: &str, count: usize) -> String {
    let case = |number| format!("- {{name: c{number}, definition: f, expect: {{status: completed}}}}\n");
    let cases: String = (0..count).map(case).collect();
    format!("{keys}cases:\n{cases}")
}

#[test]
fn too_many_cases_are_refused_before_parsing() {
    let allowance = bounded(Bounds { cases_max: 3, ..Bounds::default() });
    let (read_cases, requests) = read(&cases("", 3), &allowance);
    assert_eq!((read_cases.expect("they fit").len(), requests), (3, 3));
    let (refused, requests) = read(&cases("", 4), &allowance);
    assert_eq!(requests, 0);
    assert_eq!(refused.unwrap_err(), "there are 4 cases, and at most 3 can run at a time");
    let none = bounded(Bounds { cases_max: 0, ..Bounds::default() });
    let (refused, requests) = read("name: n\ndefinition: f\nexpect: {status: completed}\n", &none);
    assert!(refused.is_err() && requests == 0);
    // A command has no bounds.
    assert_eq!(read(&cases("", 2_000), &Allowance::default()).1, 2_000);
}

#[test]
fn reading_ends_with_the_time() {
    let left = Arc::new(AtomicUsize::new(5));
    let is_over = move || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err();
    let (late, requests) = read(&cases("", 200), &Allowance::new(is_over, Bounds::default()));
    assert!(late.unwrap_err().contains("the time for these cases is over"));
    assert_eq!(requests, 5, "one check for each case");
}

#[test]
fn cases_share_their_definition_and_the_scripts_of_the_file() {
    let text = cases("effects: {a: {return: {stdout: ok}}}\n", 200);
    let cases = read(&text, &Allowance::default()).0.expect("it can be read");
    let scripts = |case: &Case| case.effects.get("a").expect("the file has it").as_ptr();
    for case in &cases {
        assert!(Arc::ptr_eq(&case.definition, &cases[0].definition), "{}", case.name);
        assert_eq!(scripts(case), scripts(&cases[0]), "{}", case.name);
    }
    let copy = cases[1].clone();
    assert_eq!(scripts(&copy), scripts(&cases[0]), "a run copies none of them");
    assert!(run_case(&copy).holds());
}

#[test]
fn the_scripts_of_a_case_precede_those_of_its_file() {
    let text = "effects: {a: {error: {class: failed, message: no}}, b: {return: 1}}\ncases:\n\
        - {name: own, definition: f, effects: {a: {return: {stdout: ok}}}, expect: {status: completed}}\n\
        - {name: of the file, definition: f, expect: {status: failed, error_contains: ['no']}}\n";
    for case in &read(text, &Allowance::default()).0.expect("it can be read") {
        let report = run_case(case);
        assert!(report.holds() && report.warnings.is_empty(), "{report:?}");
    }
}

#[test]
fn mistakes_beyond_a_number_are_counted() {
    let allowance = bounded(Bounds { problems_max: 50, ..Bounds::default() });
    // Each lacks a name, a definition and an expectation.
    let said = read(&format!("cases:\n{}", "- {}\n".repeat(100)), &allowance).0.unwrap_err();
    assert_eq!(said.matches("error[").count(), 50, "{said}");
    assert!(said.ends_with("and 250 more\n"), "{said}");
    let inside = format!("name: n\ndefinition: f\ninbox: [{}0]\nexpect: {{status: completed}}\n", "0, ".repeat(999));
    let said = read(&inside, &allowance).0.unwrap_err();
    assert_eq!(said.matches("error[").count(), 50, "{said}");
    assert!(said.ends_with("and 950 more\n"), "{said}");
    // A command reports all of them.
    let all = read(&format!("cases:\n{}", "- {}\n".repeat(100)), &Allowance::default()).0.unwrap_err();
    assert_eq!((all.matches("error[").count(), all.contains(" more\n")), (300, false));
}

#[test]
fn duplicate_names_are_mistakes() {
    let case = "- {name: n, definition: f, expect: {status: completed}}\n";
    let said = read(&format!("cases:\n{}", case.repeat(4)), &Allowance::default()).0.unwrap_err();
    assert_eq!(said.matches("two cases are called \"n\"").count(), 3, "{said}");
}

/// Children come from the source as well, and are requested while a case runs.
#[test]
fn a_child_is_requested_from_the_source_of_its_case() {
    struct Child(Mutex<Vec<String>>);
    impl Definitions for Child {
        fn definition(&self, path: &str) -> Result<Definition, String> {
            Err(format!("there is no {path}"))
        }

        fn workflow(&self, _: &str, name: &str) -> Option<Definition> {
            self.0.lock().unwrap().push(name.into());
            let step = Value::map([("id", Value::from("r")), ("type", "return".into()), ("input", 1u64.into())]);
            Some(Arc::new(Ok(Document::placeless(Value::map([("steps", vec![step].into())])))))
        }

        fn help(&self) -> String {
            String::new()
        }
    }
    let text =
        "name: n\ndefinition: {steps: [{id: s, type: subworkflow, workflow: child}]}\nexpect: {status: completed}\n";
    let source = Arc::new(Child(Mutex::default()));
    let cases = read_within(text.as_bytes(), Syntax::Yaml, source.clone(), &Allowance::default()).expect("it reads");
    let report = run_case(&cases[0]);
    assert!(report.holds(), "{report:?}");
    assert_eq!(*source.0.lock().unwrap(), ["child"]);
}
