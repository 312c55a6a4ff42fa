//! Scenario files from an author's view: rejected files with their messages, and reports of cases.

use std::{fs, path::Path};

use mainspring_kernel::definition::Syntax;
use mainspring_sim::{
    run_case,
    scenario::{find, read, read_text},
};

/// Checks the message about a text that is not a valid scenario: every expected part, in order.
#[track_caller]
fn check_refused(text: &str, parts: &[&str]) {
    let said = read_text(text.as_bytes(), Syntax::Guess, Path::new(".")).expect_err("it is refused");
    let mut rest = said.as_str();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => panic!("{part:?} is not said, or not in this order:\n{said}"),
        }
    }
}

/// Checks the failures of a case; none if it passes.
#[track_caller]
fn check_failures(text: &str, parts: &[&str]) {
    let cases = read_text(text.as_bytes(), Syntax::Guess, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    let report = run_case(&cases[0]);
    assert_eq!(report, run_case(&cases[0]), "the same case gives the same report");
    let said = report.failures.join("\n");
    assert_eq!(report.holds(), parts.is_empty(), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not said:\n{said}");
    }
}

fn case(effects: &str, inbox: &str, expect: &str) -> String {
    let steps = "[{id: a, type: tool, tool: A, arguments: {x: 2}}, {id: ok, type: approval}, {id: b, type: bash, command: 'true'}]";
    format!("name: n\ndefinition: {{steps: {steps}}}\neffects: {effects}\ninbox: {inbox}\nexpect: {expect}\n")
}

#[test]
fn mistakes_are_reported_with_their_positions() {
    check_refused(
        "name: n\ndefinition: {steps: []}\nefects: {}\nexpect: {stats: completed}\n",
        &["unknown_key", "efects", "3:1", "effects", "unknown_key", "stats", "4:10", "known here: accepted"],
    );
    check_refused(
        "{\"cases\": [{\"name\": 1}]}",
        &["missing_key", "definition", "missing_key", "expect", "wrong_kind", "cases[0].name"],
    );
    check_refused(
        "name: n\ndefinition: nowhere.json\nexpect: {status: completed}\n",
        &["nowhere.json", "paths begin at"],
    );
    check_refused("name: [", &["unreadable", "1:1"]);
    check_refused("cases: []", &["the file has no cases"]);
    check_refused(&case("{}", "[]", "{}"), &["expects nothing"]);
    check_refused(&case("{}", "[]", "{status: done}"), &["\"done\" is not known here", "completed, failed"]);
    check_refused(&case("{}", "[]", "{accepted: false, status: failed}"), &["`status` cannot hold"]);
    check_refused(&case("{}", "[]", "{duration: 10}"), &["this must be text"]);
    check_refused(&case("{}", "[]", "{duration: 10sec}"), &["10s, 5m"]);
    check_refused(&case("{}", "[]", "{outcome: fine}"), &["with_failures"]);
    let twice = "{\"name\": \"n\", \"definition\": {}, \"expect\": {\"accepted\": false}}";
    check_refused(&format!("{{\"cases\": [{twice}, {twice}]}}"), &["two cases are called \"n\""]);
}

#[test]
fn scripts_and_entries_are_checked() {
    let holds = "{status: waiting_approval}";
    check_refused(&case("{A: {after: 1s}}", "[]", holds), &["says no answer"]);
    check_refused(&case("{A: {return: 1, echo: true}}", "[]", holds), &["two answers to one call"]);
    check_refused(&case("{A: {return: 1, else: {echo: true}}}", "[]", holds), &["goes with `fail_if` only"]);
    check_refused(&case("{A: {error: {class: odd}}}", "[]", holds), &["transient, rate_limited"]);
    check_refused(&case("{A: []}", "[]", holds), &["has no answers"]);
    check_refused(&case("{A: {echo: false}}", "[]", holds), &["can only be true"]);
    check_refused(&case("{A: {is_error: true}}", "[]", holds), &["`text` is missing"]);
    check_refused(&case("{}", "[{tick: true}]", holds), &["`at` is missing"]);
    check_refused(&case("{}", "[{at: {time: 1s}}]", holds), &["this is none"]);
    check_refused(&case("{}", "[{at: {time: 1s}, tick: true, crash: true}]", holds), &["this is several"]);
    check_refused(&case("{}", "[{at: {time: 1s, started: a}, tick: true}]", holds), &["exactly one key"]);
    check_refused(&case("{}", "[{at: {time: 1s}, decide: maybe}]", holds), &["approve, deny"]);
    check_refused(&case("{}", "[{at: {time: 1s}, tick: true, by: me}]", holds), &["means nothing for `tick`"]);
    check_refused(&case("{}", "[{at: {time: 1s}, signal: {payload: 1}}]", holds), &["`name` is missing"]);
}

#[test]
fn forms_of_answers() {
    let output = |script: &str, expected: &str| {
        check_failures(
            &case(&format!("{{a: {script}}}"), "[]", &format!("{{steps: {{a: {{output: {expected}}}}}}}")),
            &[],
        );
    };
    output("{return: {id: 1}, after: 5s}", "{id: 1}");
    output("{echo: true}", "{x: 2}");
    output("{pick: x}", "2");
    output("{content: [{type: text, text: hi}]}", "[{type: text, text: hi}]");
    output("{content: [{type: text, text: '{\"id\": 1}'}]}", "[{type: text, text: '{\"id\": 1}'}]");
    output(
        "{content: [{type: text, text: a}, {type: text, text: b}]}",
        "[{type: text, text: a}, {type: text, text: b}]",
    );
    output("{fail_if: {arg: x, eq: 3}, error: {class: failed, message: three}, else: {pick: x}}", "2");
    output("[{error: {class: transient, message: no}}, {return: 4}]", "4");
    let fails = |script: &str, word: &str| {
        let expect = format!("{{status: failed, error_contains: [{word}, a], absent_steps: [ok, b]}}");
        check_failures(&case(&format!("{{A: {script}}}"), "[]", &expect), &[]);
    };
    fails("{is_error: true, text: no such user}", "no such user");
    fails("{error: {class: failed, message: no, code: odd_code}}", "odd_code");
    fails("{fail_if: {arg: x, eq: 2}, error: {class: failed, message: two}, else: {echo: true}}", "two");
    fails("{hang: true}", "timeout");
    check_failures(&case("{A: {pick: y}}", "[]", "{status: failed}"), &["picks `y`, which the call does not have"]);
    check_failures(&case("{}", "[]", "{status: failed}"), &["step `a` calls \"A\", and no script answers"]);
}

#[test]
fn differences_are_reported() {
    let echo = "{A: {echo: true}, bash: {return: {exitCode: 0}}}";
    let decided = "[{at: {time: 10s}, decide: approve}]";
    let check = |expect: &str, parts: &[&str]| check_failures(&case(echo, decided, expect), parts);
    check("{status: completed, duration: 10s, call_count: 2, waves: [[a], [b]], delays: []}", &[]);
    check("{calls: [{tool: A, args: {x: 2}}, {tool: bash}]}", &[]);
    check("{status: failed}", &["status is completed, expected failed"]);
    check("{outcome: with_failures}", &["outcome is null, expected with_failures"]);
    check("{output: {c: 1}}", &["-  \"c\": 1"]);
    check("{output_contains: {c: 1}}", &["does not contain what was expected"]);
    check("{error_contains: [boom]}", &["there is no error"]);
    check("{steps: {a: failed}}", &["step `a` is completed, expected failed"]);
    check("{steps: {a: {attempts: 2}}}", &["step `a` had 1 attempts, expected 2"]);
    check("{steps: {a: {output: 7}}}", &["-7"]);
    check("{steps: {a: {error_contains: [x]}}}", &["step `a` has no error"]);
    check("{steps: {c: failed}, absent_steps: [d]}", &["has no step `c`", "has no step `d`"]);
    check("{absent_steps: [b]}", &["step `b` was started and must not be"]);
    check("{call_count: 1}", &["2 calls were made, expected 1"]);
    check("{calls: [{tool: A, args: {x: 3}}, {tool: bash}]}", &["-A {\"x\":3}", "+A {\"x\":2}"]);
    check("{waves: [[a, b]]}", &["the waves are others"]);
    check("{delays: [10s]}", &["are [], expected [10s]"]);
    check("{duration: 5s}", &["it took 10s, expected 5s"]);
    check("{accepted: false}", &["was accepted and must not be"]);
    check_failures(
        &case(echo, "[{at: {completed: zz}, tick: true}]", "{status: failed}"),
        &["inbox[0].at: the workflow has no step `zz`"],
    );
    check_failures(
        &case(echo, "[{at: {completed: b}, tick: true}]", "{status: failed}"),
        &["inbox[0] was never taken in"],
    );
    check_failures(
        "name: n\ndefinition: {steps: []}\nexpect: {status: completed}",
        &["the definition was refused", "empty"],
    );
    let refused = |definition: &str, expect: &str| format!("name: n\ndefinition: {definition}\nexpect: {expect}");
    let cycle = refused("{steps: []}", "{accepted: false, diagnostics_contain: [cycle]}");
    check_failures(&cycle, &["\"cycle\" does not appear"]);
    check_failures(&refused("{steps: [{type: emit}]}", "{accepted: false}"), &["only for what is not in this build"]);
}

/// The timeout of a gate does not advance the time; any later event does.
#[test]
fn the_timeout_of_a_gate_does_not_advance_time() {
    let echo = "{A: {echo: true}}";
    check_failures(&case(echo, "[]", "{status: waiting_approval, duration: 0s}"), &[]);
    check_failures(&case(echo, "[{at: {time: 23h}, tick: true}]", "{status: waiting_approval}"), &[]);
    let timed_out = "{status: cancelled, error_contains: [approval_timeout], duration: 24h, absent_steps: [b]}";
    check_failures(&case(echo, "[{at: {time: 25h}, tick: true}]", timed_out), &[]);
    check_failures(&case(echo, "[{at: {time: 25h}, decide: approve}]", timed_out), &[]);
    check_failures(&case(echo, "[{at: {time: 24h}, decide: approve}]", timed_out), &[]);
}

#[test]
fn definitions_are_read_relative_to_their_scenario_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    let sleep = "steps: [{id: s, type: sleep, durationMs: 5}]";
    write("flow.yaml", sleep);
    write("inner/b.scenario.yaml", "name: b\ndefinition: ../flow.yaml\nexpect: {status: completed, duration: 5ms}\n");
    write("a.scenario.json", "{\"name\": \"a\", \"definition\": {\"steps\": 1}, \"expect\": {\"accepted\": false}}");
    write("notes.json", "{}");
    let files = find(&[folder.path().into()]).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.strip_prefix(folder.path()).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.scenario.json", "inner/b.scenario.yaml"]);
    for file in &files {
        for case in read(file).unwrap() {
            let report = run_case(&case);
            assert!(report.holds(), "{report:?}");
        }
    }
    let missing = find(&[folder.path().join("nowhere")]).unwrap_err();
    assert!(missing.to_string().contains("nowhere"), "{missing}");
}

/// The execution continues after the failure and gets the receipt again: a kernel that took a repeated receipt for a
/// new one would start the failed step again.
#[test]
fn a_repeated_receipt_does_not_restart_a_failed_step() {
    let steps = "[{id: a, type: tool, tool: A, onError: continue}, {id: ok, type: approval}]";
    let failing = "{A: {error: {class: failed, message: no}}}";
    let expect = "{status: waiting_approval, call_count: 1, steps: {a: {status: failed, attempts: 1}}}";
    let text = format!("name: n\ndefinition: {{steps: {steps}}}\neffects: {failing}\nexpect: {expect}\n");
    check_failures(&text, &[]);
}

/// Found by seeds 866 and 1093: the decision was for a gate that was cancelled, and the execution was quarantined
/// because of it.
#[test]
fn a_decision_for_a_canceled_gate_is_ignored() {
    let text = r"
name: n
definition:
  steps:
    - id: p
      type: parallel
      steps: [{id: gate, type: approval}, {id: a, type: tool, tool: A}, {id: b, type: tool, tool: B}]
effects: {A: {error: {class: failed, message: no}, after: 1s}, B: {return: 1, after: 5s}}
inbox: [{at: {time: 3s}, decide: approve}, {at: {time: 4s}, decide: deny}]
expect: {status: failed, error_contains: ['no', a, p], duration: 5s, steps: {gate: cancelled, a: failed, b: completed}}
";
    check_failures(text, &[]);
}

/// Found by seed 1454: the step that must not start any more was the only one in its conditional, which was never
/// closed.
#[test]
fn a_step_that_cannot_start_does_not_keep_its_block_open() {
    let text = r"
name: n
definition:
  steps:
    - {id: zero, type: tool, tool: ZERO}
    - id: p
      type: parallel
      steps:
        - {id: out, type: tool, tool: OUT}
        - {id: miss, type: tool, tool: MISS, arguments: {x: '@zero.missing'}}
        - {id: c, type: conditional, condition: true, then: [{id: late, type: tool, tool: LATE}]}
effects: {ZERO: {return: {v: 1}}, OUT: {return: 1, after: 2s}}
expect: {status: failed, error_contains: [missing], duration: 2s, steps: {out: completed, c: cancelled}, absent_steps: [late]}
";
    check_failures(text, &[]);
}

/// A journal as text: its form is part of the report of a failure.
#[test]
fn journals_as_text() {
    let text = case(
        "{A: [{error: {class: transient, message: no}}, {echo: true, after: 2s}], bash: {return: 0}}",
        "[{at: {waiting: ok}, decide: approve}]",
        "{status: completed}",
    );
    let report = run_case(&read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).unwrap()[0]);
    let picture = "\
0 0ms start: started; a begins; a#1 out
1 0ms a#1 failed transient: a#1 failed, next at 10s
2 10s a#2 may begin: a#2 out
3 12s a#2 done: a completed; ok begins; ok gate 1 open until 86412s
4 12s owner approves ok gate 1: ok gate 1 approve; ok completed; b begins; b#1 out
5 12s b#1 done: b completed; ending completed; ended
";
    assert!(report.holds(), "{report:?}");
    assert_eq!(report.modes.len(), 4);
    for mode in &report.modes {
        assert_eq!(mode.picture, picture, "{}", mode.mode.name());
    }
}

/// Checks the warnings of a case that passes.
#[track_caller]
fn check_warned(definition: &str, effects: &str, expect: &str, warning: &str) {
    let text = format!("name: n\ndefinition: {{steps: {definition}}}\neffects: {effects}\nexpect: {expect}\n");
    let cases = read_text(text.as_bytes(), Syntax::Guess, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    let report = run_case(&cases[0]);
    assert_eq!(report.failures, Vec::<String>::new(), "a warning is no failure");
    assert_eq!(report.warnings.join("\n"), warning);
}

#[test]
fn unused_effects_are_reported() {
    let completed = "{status: completed}";
    let steps = "[{id: a, type: tool, tool: A}, {id: b, type: bash, command: 'true'}]";
    for (effects, warning) in [
        ("{A: {return: 1}, b: {return: 2}}", ""),
        ("{a: {return: 1}, bash: {return: 2}}", ""),
        (
            "{A: {return: 1}, b: {return: 2}, bb: {return: 3}, flaki: {return: 4}}",
            "effects of no use: no step that does work, no tool and no kind of effect has the name of \"bb\", \"flaki\"",
        ),
        // The script of the step precedes that of its tool or kind.
        (
            "{a: {return: 1}, A: {return: 1}, b: {return: 2}, bash: {return: 2}}",
            "effects of no use: nothing called \"A\", \"bash\"",
        ),
    ] {
        check_warned(steps, effects, completed, warning);
    }
    let skips = "[{id: a, type: bash, when: false, command: 'true'}, {id: gate, type: conditional, condition: true, then: [{id: b, type: bash, command: 'true'}]}]";
    let effects = "{a: {return: 1}, b: {return: 1}, gate: {return: 1}}";
    let gate = "no step that does work, no tool and no kind of effect has the name of \"gate\"";
    check_warned(skips, effects, completed, &format!("effects of no use: {gate}; nothing called \"a\""));
    for expect in ["{status: completed, steps: {a: skipped}}", "{status: completed, absent_steps: [a]}"] {
        check_warned(skips, effects, expect, &format!("effects of no use: {gate}"));
    }
    // A step after one that waits is left out.
    let waits = "[{id: gate, type: approval}, {id: b, type: bash, command: 'true'}]";
    check_warned(waits, "{b: {return: 1}}", "{status: waiting_approval}", "");
}

#[test]
fn a_call_of_an_unlisted_tool_is_reported_unless_the_case_expects_it() {
    let agent = "[{id: a, type: agent, goal: Go, tools: [http]}]";
    let effects = "{a: [{return: {toolCalls: [{id: c, name: htp, arguments: {url: 'https://example.com'}}]}}, {return: {text: done}}]}";
    let warning = "the tool \"htp\" is not among the tools of the step: http";
    check_warned(agent, effects, "{status: completed}", warning);
    check_warned(agent, effects, "{status: completed, steps: {'a#1.1': failed}}", "");
}
