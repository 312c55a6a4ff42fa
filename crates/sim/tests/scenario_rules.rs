//! Rules of scenarios that a passing case would hide: the policy of the definition, entries without an effect, classes
//! of failures, children beside the definition, and the same rules on the simulated cluster.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use mainspring_engine::evaluator::{Evaluator, InProcess};
use mainspring_kernel::definition::Syntax;
use mainspring_sim::{
    Allowance, Bounds, CaseReport,
    cluster::Size,
    run_case, run_case_within,
    scenario::{read, read_text},
    simulate::Simulation,
};

fn report(text: &str) -> CaseReport {
    let cases = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    run_case(&cases[0])
}

#[track_caller]
fn check_fails(text: &str, part: &str) {
    let report = report(text);
    assert!(!report.holds(), "{text}");
    let said = report.failures.join("\n");
    assert!(said.contains(part), "{part:?} is not said:\n{said}");
}

#[track_caller]
fn check_refused(text: &str, part: &str) {
    let said = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).expect_err("it is refused");
    assert!(said.contains(part), "{part:?} is not said:\n{said}");
}

#[test]
fn a_case_needs_the_decisions_that_a_run_needs() {
    let case = |policy: &str, inbox: &str| {
        format!(
            "name: n\ndefinition:\n  policy: {{effects: {{{policy}}}}}\n  steps: [{{id: lint, type: bash, command: ls}}]\n\
             effects: {{lint: {{return: {{stdout: ok}}}}}}\ninbox: {inbox}\nexpect: {{status: completed}}\n"
        )
    };
    check_fails(&case("execute: ask", "[]"), "status is waiting_approval (waits at lint), expected completed");
    check_fails(&case("bash: deny", "[]"), "policy_denied");
    let approved = "[{at: {waiting: lint}, decide: approve}]";
    assert!(report(&case("execute: ask", approved)).holds());
    // Nothing waits, so the decision is for nothing.
    check_fails(&case("payment: ask", approved), "inbox[0] was never taken in: `lint` was never waiting");
    let early = "[{at: {time: 1s}, decide: approve}]";
    check_fails(&case("payment: ask", early), "inbox[0] decided nothing: no gate was open");
    check_refused(&(case("payment: ask", "[]") + "classes: {x: reed}\n"), "`reed` is not known here");
}

#[test]
fn a_case_under_faults_has_the_same_gates() {
    let text = "name: n\ndefinition:\n  policy: {effects: {execute: ask}}\n  steps: [{id: lint, type: bash, command: ls, onInterrupted: retry}]\n\
                effects: {lint: {return: {stdout: ok}}}\ninbox: [{at: {waiting: lint}, decide: deny}]\nexpect: {status: cancelled}\n";
    let cases = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).expect("it reads");
    let simulation = Simulation::of(&cases[0]).expect("it ends");
    for seed in 0..3 {
        let report = simulation.run(seed, Size { executions: 3, nodes: 2, partitions: 2 }, &[]);
        assert_eq!((report.failures.as_slice(), report.calls), (&[][..], 0), "{seed}");
    }
}

#[test]
fn prices_are_checked_at_their_places() {
    let case =
        |prices: &str| format!("name: n\ndefinition: {{steps: []}}\nprices: {prices}\nexpect: {{status: completed}}\n");
    check_refused(&case("{date: 1, currency: USD, models: {}}"), "3:16 prices.date");
    check_refused(&case("{date: 2026-11-01, currency: USD, models: {a: {input: 1}}}"), "`output` is missing");
    check_refused(&case("{date: 2026-11-01, currency: USD, prizes: {}}"), "this key is not known");
    check_refused(&case("[]"), "this is not a map");
    let without = "name: n\ndefinition: {steps: [{id: rate, type: agent, goal: g, budget: {cost: 1}}]}\n\
                   effects: {rate: {return: {text: a}}}\nexpect: {status: completed}\n";
    check_fails(without, "write `prices: {date:");
}

#[test]
fn the_class_of_a_status_is_its_own() {
    let case = |class: &str, status: u16| {
        format!(
            "name: n\ndefinition: {{steps: []}}\neffects: {{a: {{error: {{class: {class}, code: \"http_status:{status}\"}}}}}}\n\
             expect: {{status: completed}}\n"
        )
    };
    let classes = [
        ("timeout", 408),
        ("rate_limited", 429),
        ("unavailable", 503),
        ("transient", 500),
        ("transient", 425),
        ("failed", 404),
    ];
    for (class, status) in classes {
        assert!(read_text(case(class, status).as_bytes(), Syntax::Yaml, Path::new(".")).is_ok(), "{class} {status}");
        check_refused(&case("policy", status), &format!("write class: {class}"));
    }
}

#[test]
fn names_that_are_not_reached_are_known() {
    let warned = |name: &str| {
        let text = format!(
            "name: n\ndefinition:\n  steps:\n    - {{id: poll, type: loop, while: false, steps: [{{id: state, type: bash, command: ls}}]}}\n    \
             - {{id: ask, type: agent, goal: g, tools: [bash]}}\n\
             effects: {{ask: {{return: {{text: a}}}}, {name}: {{return: 1}}}}\nexpect: {{status: completed}}\n"
        );
        report(&text).warnings.join("\n")
    };
    for name in ["\"poll[0].state\"", "\"ask#1.1\"", "\"ask#2\""] {
        assert!(warned(name).contains("nothing called"), "{name}: {}", warned(name));
    }
    let unknown = warned("\"poll[0].stat\"");
    assert!(unknown.contains("has the name of") && unknown.contains("poll[0].stat"), "{unknown}");
}

#[test]
fn parts_of_a_step_are_compared() {
    let case = |expected: &str| {
        format!(
            "name: n\ndefinition: {{steps: [{{id: a, type: bash, env: {{ID: '@input.id'}}, command: 'echo \"$ID\"'}}]}}\n\
             input: {{id: x1}}\neffects: {{a: {{return: {{stdout: ok, exitCode: 0}}}}}}\nexpect: {{steps: {{a: {{{expected}}}}}}}\n"
        )
    };
    assert!(report(&case("input_contains: {env: {ID: x1}}, output_contains: {stdout: ok}")).holds());
    check_fails(&case("input_contains: {env: {ID: x2}}"), "the input of step `a` does not contain what was expected");
    check_fails(&case("output_contains: {stdout: no}"), "the output of step `a` does not contain what was expected");
}

#[test]
fn children_are_found_beside_the_definition() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("parent.yaml", "name: parent\nsteps: [{id: sub, type: subworkflow, workflow: child}]\n");
    write("child.yaml", "name: child\nsteps: [{id: work, type: bash, command: ls}]\n");
    let case =
        "name: n\ndefinition: parent.yaml\neffects: {work: {return: {stdout: ok}}}\nexpect: {status: completed}\n";
    let run = |text: &str| {
        write("n.scenario.yaml", text);
        run_case(&read(&folder.path().join("n.scenario.yaml")).expect("it reads")[0])
    };
    let found = run(case);
    assert!(found.holds(), "{:?}", found.failures);
    // The key decides alone where it stands.
    let given = run(&(case.to_string() + "workflows: {}\n"));
    assert!(
        given.failures.join("\n").contains("the workflow `child` is started and not given"),
        "{:?}",
        given.failures
    );
    fs::remove_file(folder.path().join("child.yaml")).expect("it goes");
    assert!(!run(case).holds());
}

#[test]
fn results_are_checked_like_real_ones() {
    let case = |step: &str, result: &str, expect: &str| {
        format!(
            "name: n\ndefinition: {{steps: [{{id: a, {step}}}]}}\neffects: {{a: {{return: {result}}}}}\nexpect: {{{expect}}}\n"
        )
    };
    let (get, script) = ("type: http, url: 'http://x/'", "type: bash, command: ls");
    let once = "retry: {maxAttempts: 1}";
    let failed = |code: &str| {
        format!("status: failed, error_contains: [\"{code}\"], steps: {{a: {{status: failed, attempts: 1}}}}")
    };
    for (step, result, expect) in [
        (format!("{get}, {once}"), "{status: 500}", failed("http_status:500")),
        (format!("{get}, {once}, expect: [200, \"4xx\"]"), "{status: 301}", failed("http_status:301")),
        (format!("{get}, expect: [200, \"4xx\"]"), "{status: 404}", "status: completed".into()),
        (get.into(), "{status: 204}", "status: completed".into()),
        // Without a status the answer is taken as it is.
        (get.into(), "{body: 1}", "status: completed".into()),
        (format!("{script}, {once}"), "{exitCode: 3}", failed("bash_exit_code:3")),
        (script.into(), "{exitCode: 0, stdout: ok}", "status: completed".into()),
    ] {
        let found = report(&case(&step, result, &expect));
        assert!(found.holds(), "{step} {result}: {:?}", found.failures);
    }
    // The class of the status decides about retries, as for a real answer.
    let retried = "retry: {maxAttempts: 2, initialDelayMs: 10}";
    let expect = "status: failed, steps: {a: {attempts: 2}}";
    assert!(report(&case(&format!("{get}, {retried}"), "{status: 503}", expect)).holds());
    check_fails(&case(get, "{status: ok}", "status: completed"), "is a number from 100 to 599");
}

#[test]
fn answers_of_models_have_the_keys_of_real_ones() {
    let case = |answer: &str| {
        format!(
            "name: n\ndefinition: {{steps: [{{id: ask, type: agent, goal: g, tools: [bash]}}]}}\n\
             effects: {{ask: {{return: {answer}}}, bash: {{return: {{stdout: ok, exitCode: 0}}}}}}\nexpect: {{status: completed}}\n"
        )
    };
    assert!(report(&case("{text: done, usage: {outputTokens: 3}}")).holds());
    assert!(report(&case("done")).holds());
    check_fails(&case("{tool_calls: []}"), "the key \"tool_calls\" is none of a model's answer");
    check_fails(&case("{tool_calls: []}"), "write `toolCalls`");
    check_fails(&case("{content: hi}"), "write `text`");
    check_fails(&case("{text: hi, foo: 1}"), "the key \"foo\" is none of a model's answer");
}

#[test]
fn a_case_that_waits_names_the_unclassified_call() {
    let text = "name: n\ndefinition:\n  policy: {effects: {payment: deny}}\n  steps: [{id: pay, type: tool, tool: shop.pay}]\n\
                effects: {pay: {return: 1}}\nexpect: {status: completed}\n";
    check_fails(text, "waits at pay: shop.pay has no class");
    check_fails(text, "write `classes: {\"shop.pay\": read}` in the case");
}

#[test]
fn effects_of_a_file_are_those_of_all_its_cases() {
    let text = "effects: {a: {return: {stdout: shared}}, unused: {return: 1}}\ncases:\n  \
                - {name: shared, definition: {steps: [{id: a, type: bash, command: ls}]}, expect: {steps: {a: {output: {stdout: shared}}}}}\n  \
                - {name: own, definition: {steps: [{id: a, type: bash, command: ls}]}, effects: {a: {return: {stdout: own}}}, expect: {steps: {a: {output: {stdout: own}}}}}\n";
    let cases = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).expect("it reads");
    for case in &cases {
        let report = run_case(case);
        assert!(report.holds() && report.warnings.is_empty(), "{}: {report:?}", case.name);
    }
    check_refused("inbox: []\ncases: []\n", "the key \"inbox\" means nothing here");
}

#[test]
fn mistakes_of_a_child_name_its_workflow() {
    let text = "name: n\ndefinition: {steps: [{id: s, type: subworkflow, workflow: child}]}\n\
                workflows: {child: {steps: [{id: w, type: bash, comand: ls}]}}\nexpect: {status: completed}\n";
    check_fails(text, "in the workflow `child`: unknown key \"comand\"");
}

#[test]
fn a_bounded_case_ends_at_its_bound() {
    let text = "name: n\ndefinition: {steps: [{id: a, type: bash, command: ls, onInterrupted: retry}]}\n\
                effects: {a: {return: {stdout: ok}}}\nexpect: {status: completed}\n";
    let cases = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).expect("it reads");
    let evaluator: Arc<dyn Evaluator> = Arc::new(InProcess);
    let bytes = |journal_bytes_max| Bounds { journal_bytes_max, ..Bounds::default() };
    let failures = |allowance: &Allowance| run_case_within(&cases[0], &evaluator, allowance).failures;
    assert_eq!(failures(&Allowance::new(|| false, bytes(1_000_000))), Vec::<String>::new());
    let small = failures(&Allowance::new(|| false, bytes(10))).join("\n");
    assert!(small.contains("more than 10 bytes"), "{small}");
    // At each point at which the time can be over, the case fails for that reason alone.
    for calls in [0, 1, 2, 5, 10, 20] {
        let left = Arc::new(AtomicUsize::new(calls));
        let is_over = move || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err();
        let late = failures(&Allowance::new(is_over, bytes(1_000_000))).join("\n");
        assert!(late.contains("the time for these cases is over"), "{calls}: {late}");
    }
}
