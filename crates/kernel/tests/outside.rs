//! Names of things outside of a definition, as an inspector knows them.

use mainspring_kernel::{
    definition::{Complaint, FunctionTypes, Inspector, Missing, Outside, Syntax, compile_with, read},
    form::Form,
    json,
};

/// Knows the workflow `deploy`, the secret `TOKEN`, the model `fast` with its price, the tool server `files` and the runner
/// `coder`.
struct Known;

impl Inspector for Known {
    fn source(&self, _: &str) -> Result<FunctionTypes, Complaint> {
        Ok(FunctionTypes::default())
    }

    fn schema(&self, _: &mainspring_kernel::value::Value) -> Result<(), Complaint> {
        Ok(())
    }

    fn missing(&self, what: Outside, name: &str) -> Option<Missing> {
        let known = match what {
            Outside::Workflow => "deploy",
            Outside::Secret => "TOKEN",
            Outside::Model => "fast",
            Outside::ToolServer => "files",
            Outside::Runner => "coder",
            Outside::Price => "fast",
        };
        let nearest = mainspring_kernel::definition::nearest(name, [known]).map(Into::into);
        (name != known).then(|| Missing { place: "here".into(), nearest, remedy: "add it".into() })
    }
}

fn check(text: &str, expected: &[&str]) {
    let document = read(text.as_bytes(), Syntax::Yaml).expect("YAML");
    let found = compile_with(&document, &Known).map_or_else(|found| found, |compiled| compiled.warnings);
    let shown: Vec<String> =
        found.iter().map(|found| format!("{} {}: {}", found.code, found.path, found.help)).collect();
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn unknown_names_are_warnings_at_their_places() {
    check("steps: [{id: a, type: subworkflow, workflow: deploy}]", &[]);
    check(
        "steps: [{id: a, type: subworkflow, workflow: deplyo}]",
        &["unknown_workflow steps[0].workflow: write \"deploy\""],
    );
    check("steps: [{id: a, type: subworkflow, workflow: nightly}]", &["unknown_workflow steps[0].workflow: add it"]);
    check("name: own\nsteps: [{id: a, type: subworkflow, workflow: own, when: {ref: \"@input\"}}]", &[]);
    check("allow: [unknown_workflow]\nsteps: [{id: a, type: subworkflow, workflow: deplyo}]", &[]);
    check("allow: [unknown_workflow]\nsteps: [{id: a, type: subworkflow, workflow: deploy}]", &[]);
    check(
        "steps: [{id: a, type: agent, goal: Go, model: fsat, tools: [file.read, files.read, {workflow: deploi}, bash]}]",
        &[
            "unknown_model steps[0].model: write \"fast\"",
            "unknown_tool_server steps[0].tools[0]: write \"files.read\"",
            "unknown_workflow steps[0].tools[2].workflow: write \"deploy\"",
        ],
    );
    check("steps: [{id: a, type: agent, goal: Go, model: \"@input.model\", tools: [files.read]}]", &[]);
    check(
        "steps: [{id: a, type: tool, tool: flies.read}, {id: b, type: tool, tool: read}]",
        &["unknown_tool_server steps[0].tool: write \"files.read\""],
    );
    check(
        "steps: [{id: a, type: http, url: \"https://example.com\", headers: {A: {secret: TOKN}, B: {secret: TOKEN}}}]",
        &["unknown_secret steps[0].headers.A.secret: write \"TOKEN\""],
    );
}

#[test]
fn an_unknown_runner_is_a_warning() {
    check("steps: [{id: a, type: agent, goal: Go, runner: coder}]", &[]);
    check(
        "steps: [{id: a, type: agent, goal: Go, runner: codre}]",
        &["unknown_runner steps[0].runner: write \"coder\""],
    );
}

#[test]
fn a_limit_of_the_cost_without_a_price_is_a_warning_where_the_limit_is() {
    let of_all = |steps: &str| format!("constraints: {{budget: {{cost: 2}}}}\nsteps: [{steps}]");
    let fast = "{id: a, type: agent, goal: Go, model: fast}";
    check(&of_all(fast), &[]);
    let default = "{id: b, type: agent, goal: Go}";
    check(&of_all(&format!("{fast}, {default}")), &["missing_price constraints.budget.cost: add it"]);
    check(
        &of_all(&format!("{default}, {}", default.replace("b,", "c,"))),
        &["missing_price constraints.budget.cost: add it"],
    );
    check(&of_all("{id: a, type: bash, command: ls}"), &[]);
    check(&format!("constraints: {{budget: {{tokens: 2}}}}\nsteps: [{default}]"), &[]);
    check(&format!("steps: [{default}]"), &[]);
    check(
        "steps: [{id: a, type: agent, goal: Go, budget: {cost: 1}}]",
        &["missing_price steps[0].budget.cost: add it"],
    );
    check("allow: [missing_price]\nsteps: [{id: a, type: agent, goal: Go, budget: {cost: 1}}]", &[]);
    check("steps: [{id: a, type: agent, goal: Go, model: \"@input.model\", budget: {cost: 1}}]", &[]);
}

#[test]
fn a_signal_for_which_no_step_waits_is_refused_with_the_nearest_one() {
    let refused = |text: &str, name: &str| {
        let document = read(text.as_bytes(), Syntax::Yaml).expect("YAML");
        compile_with(&document, &Known).expect("a plan").plan.refused_signal(name)
    };
    let waits = "steps: [{id: a, type: signal, signal: paid}, {id: b, type: signal, signal: shipped}]";
    assert_eq!(refused(waits, "shipped"), None, "its step need not have begun");
    assert!(refused(waits, "payd").is_some_and(|why| why.ends_with("did you mean `paid`?")));
    assert!(refused(waits, "other").is_some_and(|why| why.ends_with("its steps wait for `paid`, `shipped`")));
    assert!(
        refused("steps: [{id: a, type: bash, command: ls}]", "x").is_some_and(|why| why.ends_with("any other one"))
    );
    let child = "steps: [{id: a, type: subworkflow, workflow: other}]";
    assert!(refused(child, "ready").is_some_and(|why| why.ends_with("to the id of the child")));
}

#[test]
fn the_sample_of_a_form_is_accepted_by_it() {
    for (schema, expected) in [
        (
            r#"{"type": "object", "required": ["a", "n"], "properties": {
                "a": {"type": "string", "enum": ["x", "y"]}, "n": {"type": "integer", "minimum": 1.5},
                "c": {"type": "boolean"}}}"#,
            r#"{"a":"x","n":2}"#,
        ),
        (
            r#"{"type": "object", "properties": {"mail": {"type": "string", "format": "email"},
                "t": {"type": "string", "minLength": 6}, "low": {"type": "number", "maximum": -2}}}"#,
            r#"{"low":-2,"mail":"ann@example.com","t":"TEXTTE"}"#,
        ),
        (
            r#"{"type": "object", "required": ["m"], "properties": {"m": {"type": "array", "minItems": 2,
                "items": {"type": "string", "enum": ["p", "q", "r"]}}}}"#,
            r#"{"m":["p","q"]}"#,
        ),
    ] {
        let form = Form::of_schema(&json::read(schema.as_bytes()).expect("JSON").value).expect("a form");
        let sample = form.sample();
        assert_eq!((form.check(&sample), json::compact(&sample).as_str()), (Ok(()), expected));
    }
}
