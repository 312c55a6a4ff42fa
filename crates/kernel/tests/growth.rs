//! Tests that work grows linearly: four times the steps take about four times the work, for compiling and for running
//! definitions that are large in various respects. Work is the CPU time of the thread, which other processes do not
//! affect. Quadratic growth shows as a factor of sixteen or more, so the limit between the two has a wide margin.

#![cfg(target_os = "linux")]

use std::{collections::BTreeMap, fmt::Write, sync::Arc, time::Duration};

use mainspring_kernel::{
    decide::{Action, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    evaluation::Evaluated,
    failure::{Class, Failure},
    hash::Hash,
    input::{Input, Policy, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    state::{ExecutionStatus, State},
    value::{Map, Value},
};

const SMALL: usize = 400;
const LARGE: usize = 4 * SMALL;

/// Between 4 (linear) and 16 (quadratic).
const RATIO_MAX: f64 = 9.0;

/// Returns the CPU time of this thread since its start.
fn worked() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the work of threads");
    Duration::from_nanos(statistics.split(' ').next().and_then(|number| number.parse().ok()).expect("nanoseconds"))
}

/// The number of measurements before a ratio counts. A ratio that is too high by chance does not repeat.
const TRIES: usize = 3;

fn work_of(mut work: impl FnMut()) -> Duration {
    let before = worked();
    work();
    worked() - before
}

/// The measurements with more than linear growth.
#[derive(Default)]
struct TooFast(Vec<String>);

impl TooFast {
    /// Measures the growth of some work.
    fn check(&mut self, what: &str, mut work: impl FnMut(usize)) {
        let mut lines = Vec::new();
        for _ in 0..TRIES {
            let (small, large) = (work_of(|| work(SMALL)), work_of(|| work(LARGE)));
            let ratio = large.as_secs_f64() / small.as_secs_f64().max(0.000_1);
            lines.push(format!("{what}: {small:?} for {SMALL}, {large:?} for {LARGE}: {ratio:.1}"));
            if ratio < RATIO_MAX {
                return;
            }
        }
        self.0.extend(lines);
    }

    /// Measures the growth of running a definition; the number is that of its steps or of the items of its input.
    fn check_run(
        &mut self,
        what: &str,
        max_parallel: u32,
        answers: Answers,
        status: ExecutionStatus,
        shape: impl Fn(usize) -> String,
    ) {
        self.check(what, |count| {
            let state = run(&shape(count), max_parallel, count, answers);
            assert_eq!(state.status(), status, "{what}");
        });
    }

    fn assert_none(self) {
        assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
    }
}

fn listed(count: usize, each: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for at in 0..count {
        let comma = if at == 0 { "" } else { "," };
        write!(text, "{comma}{}", each(at)).expect("a text takes everything");
    }
    text
}

fn tool(at: usize, more: &str) -> String {
    format!(r#"{{"id":"s{at}","type":"tool","tool":"T"{more}}}"#)
}

fn action(at: usize, more: &str) -> String {
    format!(r#"{{"name":"s{at}","action":{{"toolName":"T"}}{more}}}"#)
}

fn sequence(count: usize, more: impl Fn(usize) -> String) -> String {
    format!(r#"{{"steps":[{}]}}"#, listed(count, |at| tool(at, &more(at))))
}

fn dataflow(count: usize, more: impl Fn(usize) -> String) -> String {
    format!(r#"{{"steps":[{}]}}"#, listed(count, |at| action(at, &more(at))))
}

fn graph(nodes: String, edges: String) -> String {
    format!(r#"{{"nodes":[{nodes}],"edges":[{edges}]}}"#)
}

fn edge(from: usize, to: usize, more: &str) -> String {
    format!(r#"{{"from":"s{from}","to":"s{to}"{more}}}"#)
}

fn refers(key: &str, to: usize) -> String {
    format!(r#","{key}":{{"x":"@s{to}.v"}}"#)
}

fn of_first(at: usize, key: &str) -> String {
    if at == 0 { String::new() } else { refers(key, 0) }
}

fn of_previous(at: usize, key: &str) -> String {
    if at == 0 { String::new() } else { refers(key, at - 1) }
}

fn of_all(at: usize, count: usize) -> String {
    let names = || listed(count - 1, |at| format!(r#""@s{at}""#));
    if at + 1 == count { format!(r#","input":{{"x":[{}]}}"#, names()) } else { String::new() }
}

fn compiled(text: &str) -> Plan {
    let document = read(text.as_bytes(), Syntax::Json).unwrap_or_else(|error| panic!("{error:?}"));
    compile(&document).unwrap_or_else(|found| panic!("{:#?}", found.first())).plan
}

/// A function from the number of steps to a definition.
type Shape = fn(usize) -> String;

const BRANCHES: Shape =
    |count| format!(r#"{{"steps":[{{"type":"parallel","steps":[{}]}}]}}"#, listed(count, |at| tool(at, "")));

const SHAPES: &[(&str, Shape)] = &[
    ("a sequence", |count| sequence(count, |at| of_previous(at, "arguments"))),
    ("a sequence about its first step", |count| sequence(count, |at| of_first(at, "arguments"))),
    ("a wide dataflow", |count| dataflow(count, |at| of_first(at, "input"))),
    ("a long dataflow", |count| dataflow(count, |at| of_previous(at, "input"))),
    ("a dataflow that comes together", |count| dataflow(count, |at| of_all(at, count))),
    ("a wide graph", |count| {
        let nodes = listed(count, |at| tool(at, &of_first(at, "arguments")));
        graph(nodes, listed(count - 1, |at| edge(0, at + 1, r#","condition":{"ref":"@s0.ok"}"#)))
    }),
    ("a long graph", |count| {
        let nodes = listed(count, |at| tool(at, &of_previous(at, "arguments")));
        graph(nodes, listed(count - 1, |at| edge(at, at + 1, "")))
    }),
    ("a long graph about its first step", |count| {
        let nodes = listed(count, |at| tool(at, &of_first(at, "arguments")));
        graph(nodes, listed(count - 1, |at| edge(at, at + 1, r#","when":"always","condition":{"ref":"@s0.ok"}"#)))
    }),
    ("a ladder about its first step", |count| {
        let nodes = listed(count, |at| tool(at, &of_first(at, "arguments")));
        let rung = |at: usize| {
            if at == 0 { edge(0, 1, "") } else { format!("{},{}", edge(at - 1, at + 1, ""), edge(at, at + 1, "")) }
        };
        graph(nodes, listed(count - 1, rung))
    }),
    ("a graph that comes together", |count| {
        let nodes = listed(count, |at| tool(at, of_all(at, count).replace("input", "arguments").as_str()));
        graph(nodes, listed(count - 1, |at| edge(at, count - 1, "")))
    }),
    ("branches", BRANCHES),
];

#[test]
fn compiling_grows_with_the_definition() {
    let mut wrong = TooFast::default();
    for (what, shape) in SHAPES {
        wrong.check(what, |count| drop(compiled(&shape(count))));
    }
    wrong.assert_none();
}

#[test]
fn the_work_of_reporting_mistakes_grows_with_their_number() {
    let mut wrong = TooFast::default();
    wrong.check("a circle", |count| {
        let text = dataflow(count, |at| refers("input", (at + 1) % count));
        let document = read(text.as_bytes(), Syntax::Json).expect("JSON");
        assert_eq!(compile(&document).expect_err("a circle").len(), 1);
    });
    let long = "k".repeat(20_000);
    let below = |count: usize, value: &str| {
        let values = listed(20 * count, |_| value.into());
        sequence(1, |_| format!(r#","arguments":{{"{long}":[{values}]}}"#))
    };
    for (what, value) in [("values", "1"), ("references", r#""@vars.x""#), ("unknown references", r#""@nobody.x""#)] {
        wrong.check(&format!("{what} below a long key"), |count| {
            let document = read(below(count, value).as_bytes(), Syntax::Json).expect("JSON");
            let _ = compile(&document);
        });
    }
    wrong.check("schemas without a type", |count| {
        let names = listed(10 * count, |at| format!(r#""p{at}":{{"type":"x"}}"#));
        let text = sequence(1, |_| format!(r#","outputSchema":{{"properties":{{{names}}}}}"#));
        let _ = compile(&read(text.as_bytes(), Syntax::Json).expect("JSON"));
    });
    wrong.check("an alias for each step", |count| {
        let steps = (0..count).map(|at| format!("- {{id: s{at}, type: tool, tool: T, retry: *r}}\n"));
        let text = format!("x: &r {{maxAttempts: 3}}\nsteps:\n{}", steps.collect::<String>());
        assert!(read(text.as_bytes(), Syntax::Yaml).is_ok());
    });
    wrong.check("unknown names", |count| {
        let text = sequence(count, |at| format!(r#","arguments":{{"x":"@nobody{at}"}}"#));
        let document = read(text.as_bytes(), Syntax::Json).expect("JSON");
        assert_eq!(compile(&document).expect_err("unknown names").len(), count);
    });
    wrong.assert_none();
}

/// The answers to calls.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Done,
    Failed,
    /// The first call fails.
    FirstFails,
    /// No call is answered; the execution is canceled, and open attempts stop.
    Cancelled,
}

/// Runs a definition to its end.
fn run(text: &str, max_parallel: u32, items: usize, answers: Answers) -> State {
    let plan = Arc::new(compiled(text));
    let mut state = State::new(ExecutionKey([7; 16]), plan.clone());
    let list: Vec<Value> = (0..items as u64).map(Value::from).collect();
    let start = Start {
        execution_id: "growth".into(),
        workflow_hash: plan.workflow_hash,
        plan_hash: Hash::default(),
        input: Value::map([("list", list.into())]),
        variables: Value::Map(Map::new()),
        trigger: Value::Null,
        policy: Policy { max_steps: 1_000_000, max_parallel, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    };
    let (mut out, mut answered): (BTreeMap<Instance, u32>, usize) = (BTreeMap::new(), 0);
    let mut next = Some((Input::Start(Box::new(start)), 0));
    while let Some((input, now)) = next {
        let turn = decide_with(&mut state, &input, now, |asked| {
            asked.iter().map(|_| Evaluated::of(Ok(Value::map([("v", 1u64.into())])))).collect()
        });
        for action in turn.unwrap_or_else(|illegal| panic!("{}", illegal.message)).actions {
            if let Action::Perform { instance, attempt } = action {
                out.insert(instance, attempt.number);
            }
        }
        next = if state.journal.is_split {
            Some((Input::Continue, now))
        } else if answers == Answers::Cancelled && state.end.ending.is_none() {
            Some((Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() }, now))
        } else if let Some((instance, attempt)) = out.pop_first() {
            let outcome = match answers {
                Answers::Done => done(),
                Answers::FirstFails if answered > 0 => done(),
                Answers::Failed | Answers::FirstFails => Outcome::Failed(Failure::new(Class::Failed, "no", "no")),
                Answers::Cancelled => Outcome::Stopped(Value::Null),
            };
            answered += 1;
            Some((Input::Receipt { instance, attempt, outcome }, now))
        } else {
            state.next_timer().map(|(at, timer)| (Input::Timer(timer.clone()), *at))
        };
    }
    assert!(state.end.ended_at.is_some(), "it hangs");
    state
}

fn done() -> Outcome {
    Outcome::Done(Value::map([("v", 1u64.into()), ("ok", true.into())]))
}

/// Runs each shape with few concurrency slots and with many.
#[test]
fn running_grows_with_the_plan() {
    let mut wrong = TooFast::default();
    for (what, shape) in SHAPES {
        for max_parallel in [4, 10_000] {
            wrong.check_run(
                &format!("{what}, {max_parallel} places"),
                max_parallel,
                Answers::Done,
                ExecutionStatus::Completed,
                shape,
            );
        }
    }
    wrong.assert_none();
}

fn each(body: &str, concurrency: usize) -> String {
    format!(
        r#"{{"steps":[{{"id":"each","type":"loop","forEach":{{"ref":"@input.list","concurrency":{concurrency}}},"steps":[{body}]}}]}}"#
    )
}

const CALL: &str = r#"{"id":"call","type":"tool","tool":"T","arguments":{"x":"@item"}}"#;
const CODE: &str = r#"{"id":"code","type":"code","code":"export default function () {}","input":"@item"}"#;
const NAP: &str = r#"{"id":"nap","type":"sleep","durationMs":1000}"#;
const CHOICE: &str = r#"{"id":"choice","type":"conditional","condition":{"ref":"@item","gt":1},"then":[{"id":"inner","type":"tool","tool":"T"}]}"#;

#[test]
fn running_grows_with_the_items_of_a_loop() {
    let mut wrong = TooFast::default();
    for (name, body) in [("calls", CALL), ("functions", CODE), ("naps", NAP), ("choices", CHOICE)] {
        for concurrency in [1, 10_000] {
            let what = format!("a loop over {name}, {concurrency} at a time");
            wrong.check_run(&what, 10_000, Answers::Done, ExecutionStatus::Completed, |_| each(body, concurrency));
        }
    }
    wrong.assert_none();
}

#[test]
fn running_grows_with_the_rounds_of_a_loop() {
    let mut wrong = TooFast::default();
    for (key, condition) in [("while", "true"), ("until", "false")] {
        wrong.check_run(&format!("rounds by {key}"), 4, Answers::Done, ExecutionStatus::Failed, |count| {
            format!(
                r#"{{"steps":[{{"type":"loop","{key}":{condition},"maxRounds":{count},"steps":[{CODE_OUTSIDE}]}}]}}"#
            )
        });
    }
    wrong.assert_none();
}

const CODE_OUTSIDE: &str = r#"{"id":"code","type":"code","code":"export default function () {}","input":"@index"}"#;

#[test]
fn the_work_of_a_failure_grows_with_open_attempts() {
    let mut wrong = TooFast::default();
    for answers in [Answers::Failed, Answers::FirstFails] {
        let status = ExecutionStatus::Failed;
        wrong.check_run("a loop that fails", 10_000, answers, status, |_| each(CALL, 10_000));
        wrong.check_run("choices that fail", 10_000, answers, status, |_| each(CHOICE, 10_000));
        wrong.check_run("branches that fail", 10_000, answers, status, BRANCHES);
        wrong.check_run("a graph that fails", 10_000, answers, status, |count| {
            graph(listed(count, |at| tool(at, "")), String::new())
        });
        wrong.check_run("a graph that cleans up", 4, answers, status, |count| {
            let nodes = listed(count, |at| tool(at, ""));
            graph(nodes, listed(count - 1, |at| edge(0, at + 1, r#","when":"always""#)))
        });
    }
    let naps = format!("{NAP},{CALL}");
    wrong.check_run("naps that are cancelled", 10_000, Answers::FirstFails, ExecutionStatus::Failed, |_| {
        let steps = format!(
            r#"{CALL_OUTSIDE},{{"type":"loop","forEach":{{"ref":"@input.list","concurrency":10000}},"steps":[{naps}]}}"#
        );
        format!(r#"{{"steps":[{{"type":"parallel","steps":[{steps}]}}]}}"#)
    });
    wrong.assert_none();
}

const CALL_OUTSIDE: &str = r#"{"id":"outside","type":"tool","tool":"T"}"#;

#[test]
fn the_work_of_an_end_grows_with_open_steps() {
    let mut wrong = TooFast::default();
    let status = ExecutionStatus::Cancelled;
    wrong.check_run("calls that are stopped", 10_000, Answers::Cancelled, status, |_| each(CALL, 10_000));
    wrong.check_run("branches that are stopped", 10_000, Answers::Cancelled, status, BRANCHES);
    wrong.check_run("choices that are stopped", 10_000, Answers::Cancelled, status, |_| each(CHOICE, 10_000));
    wrong.check_run("naps that are cancelled", 10_000, Answers::Cancelled, status, |_| each(NAP, 10_000));
    wrong.check_run("a return beside much", 10_000, Answers::Done, ExecutionStatus::Completed, |_| {
        let wait = r#"{"type":"conditional","condition":true,"then":[{"type":"signal","signal":"never"}]}"#;
        let steps = format!(
            r#"{{"type":"loop","forEach":{{"ref":"@input.list","concurrency":10000}},"steps":[{wait}]}},{{"type":"conditional","condition":true,"then":[{CALL_OUTSIDE},{{"type":"return"}}]}}"#
        );
        format!(r#"{{"steps":[{{"type":"parallel","steps":[{steps}]}}]}}"#)
    });
    wrong.assert_none();
}

#[test]
fn the_work_of_skipping_grows_with_skipped_steps() {
    let mut wrong = TooFast::default();
    let skipped = |at: usize| tool(at, r#","when":{"ref":"@input.nothing"}"#);
    wrong.check_run("branches that are skipped", 4, Answers::Done, ExecutionStatus::Completed, |count| {
        format!(r#"{{"steps":[{{"type":"parallel","steps":[{}]}}]}}"#, listed(count, skipped))
    });
    wrong.check_run("nodes that are skipped", 4, Answers::Done, ExecutionStatus::Completed, |count| {
        graph(listed(count, skipped), listed(count - 1, |at| edge(at, at + 1, "")))
    });
    wrong.check_run("naps and calls by turns", 10_000, Answers::Done, ExecutionStatus::Completed, |count| {
        let nap = |at| format!(r#"{{"id":"s{at}","type":"sleep","durationMs":5}}"#);
        graph(listed(count, |at| if at % 2 == 0 { tool(at, "") } else { nap(at) }), String::new())
    });
    wrong.assert_none();
}
