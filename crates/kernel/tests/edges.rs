//! Tests of all combinations of the rules for edges: outcome of the source, kind, condition, and joins of up to three
//! edges. The expected results come from a table that restates the rules of the language, the actual ones from a plan.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    decide::{Action, Turn, decide_with},
    definition::compile,
    document::Document,
    effect::Outcome,
    failure::{Class, Failure},
    hash::Hash,
    input::{Input, Policy, Start},
    instance::Instance,
    json,
    key::ExecutionKey,
    plan::Plan,
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

/// The outcome of the source of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Completed,
    /// The failure is not handled.
    Failed,
    /// The failure is tolerated (`continueOnError`).
    Tolerated,
    /// Another edge handles the failure.
    Handled,
    Skipped,
    /// It was waiting, and was canceled when another step failed.
    Cancelled,
}

const ENDS: [End; 6] = [End::Completed, End::Failed, End::Tolerated, End::Handled, End::Skipped, End::Cancelled];

const KINDS: [&str; 4] = ["on_success", "on_failure", "always", "skip"];

/// The condition of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    Holds,
    DoesNotHold,
    Unreadable,
}

const ASKED: [Asked; 4] = [Asked::Nothing, Asked::Holds, Asked::DoesNotHold, Asked::Unreadable];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pull {
    Takes,
    Blocks,
    Neutral,
}

/// The expected effect of an edge on its target. A completed source takes `on_success`. A failed one takes `on_failure`
/// and blocks `on_success`, even if the failure is handled. A skipped one takes `skip`. `always` is taken after every
/// outcome. All other combinations are neutral. The rules do not mention a canceled source: it has not succeeded, so it
/// blocks `on_success` as a failed one does.
#[rustfmt::skip]
const TABLE: [(End, [Pull; 4]); 6] = [
    //                 on_success     on_failure     always       skip
    (End::Completed,  [Pull::Takes,   Pull::Neutral, Pull::Takes, Pull::Neutral]),
    (End::Failed,     [Pull::Blocks,  Pull::Takes,   Pull::Takes, Pull::Neutral]),
    (End::Tolerated, [Pull::Blocks,  Pull::Takes,   Pull::Takes, Pull::Neutral]),
    (End::Handled,    [Pull::Blocks,  Pull::Takes,   Pull::Takes, Pull::Neutral]),
    (End::Skipped,    [Pull::Neutral, Pull::Neutral, Pull::Takes, Pull::Takes]),
    (End::Cancelled,  [Pull::Blocks,  Pull::Neutral, Pull::Takes, Pull::Neutral]),
];

/// An edge into the tested step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrow {
    /// The index of its source.
    source: usize,
    end: End,
    kind: &'static str,
    asked: Asked,
}

fn arrows() -> Vec<Arrow> {
    let mut all = Vec::new();
    for end in ENDS {
        for kind in KINDS {
            all.extend(ASKED.map(|asked| Arrow { source: 0, end, kind, asked }));
        }
    }
    all
}

impl Arrow {
    fn from(self, source: usize) -> Self {
        Self { source, ..self }
    }

    fn pull(self) -> Pull {
        let (_, row) = TABLE.iter().find(|(end, _)| *end == self.end).expect("every end has a row");
        row[KINDS.iter().position(|kind| *kind == self.kind).expect("a kind")]
    }

    /// True if it handles a failure of its source.
    fn handles(self) -> bool {
        self.kind == "on_failure" && matches!(self.asked, Asked::Nothing | Asked::Holds)
    }
}

/// The expected result of a join.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    target: Status,
    execution: ExecutionStatus,
    with_failures: bool,
}

/// Returns the edges with final outcomes: a failure that an edge handles becomes a handled one.
fn settled(arrows: &[Arrow]) -> Vec<Arrow> {
    let is_handled = |source| arrows.iter().any(|arrow| arrow.source == source && arrow.handles());
    let end = |arrow: &Arrow| match arrow.end {
        End::Failed | End::Tolerated if is_handled(arrow.source) => End::Handled,
        end => end,
    };
    arrows.iter().map(|arrow| Arrow { end: end(arrow), ..*arrow }).collect()
}

/// True if the execution is failing when the join is decided. Cancellation here is always the result of a failure.
fn is_failing(arrows: &[Arrow]) -> bool {
    arrows.iter().any(|arrow| matches!(arrow.end, End::Failed | End::Cancelled))
}

/// Returns the expected status of the target: all edges settled, none blocks, one is taken. A condition is evaluated
/// after the kind; an unreadable one is an error. A failing execution starts targets of `always` and `on_failure` only.
fn target(arrows: &[Arrow]) -> Status {
    let taken: Vec<_> = arrows.iter().filter(|arrow| arrow.pull() == Pull::Takes).collect();
    if taken.iter().any(|arrow| arrow.asked == Asked::Unreadable) {
        return Status::Failed;
    }
    let taken: Vec<_> = taken.into_iter().filter(|arrow| arrow.asked != Asked::DoesNotHold).collect();
    let is_blocked = arrows.iter().any(|arrow| arrow.pull() == Pull::Blocks);
    let may_begin = !is_failing(arrows) || taken.iter().any(|arrow| matches!(arrow.kind, "always" | "on_failure"));
    if !taken.is_empty() && !is_blocked && may_begin { Status::Completed } else { Status::Skipped }
}

fn expected(arrows: &[Arrow]) -> Expected {
    let arrows = settled(arrows);
    let target = target(&arrows);
    let fails = is_failing(&arrows) || target == Status::Failed;
    Expected {
        target,
        execution: if fails { ExecutionStatus::Failed } else { ExecutionStatus::Completed },
        with_failures: arrows.iter().any(|arrow| arrow.end == End::Tolerated),
    }
}

fn object(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
}

/// A graph under construction.
#[derive(Default)]
struct Nodes {
    nodes: Vec<Value>,
    edges: Vec<Value>,
    /// The steps whose calls fail.
    failing: Vec<String>,
}

impl Nodes {
    fn node(&mut self, id: &str, more: &str) {
        let comma = if more.is_empty() { "" } else { "," };
        self.nodes.push(object(&format!(r#"{{"id":"{id}","type":"tool","tool":"T"{comma}{more}}}"#)));
    }

    /// Adds a step with the given outcome.
    fn source(&mut self, id: &str, end: End) {
        let fails = matches!(end, End::Failed | End::Tolerated | End::Handled);
        self.failing.extend(fails.then(|| id.to_string()));
        match end {
            End::Completed | End::Failed => self.node(id, ""),
            End::Tolerated => self.node(id, r#""continueOnError":true"#),
            End::Skipped => self.node(id, r#""when":{"ref":"@input.no"}"#),
            End::Handled => {
                self.node(id, "");
                self.node(&format!("{id}_fix"), "");
                self.edge(id, &format!("{id}_fix"), "on_failure", Asked::Nothing);
            }
            End::Cancelled => self.nodes.push(object(&format!(r#"{{"id":"{id}","type":"signal","signal":"never"}}"#))),
        }
    }

    fn edge(&mut self, from: &str, to: &str, kind: &str, asked: Asked) {
        let condition = match asked {
            Asked::Nothing => "",
            Asked::Holds => r#","condition":{"ref":"@input.yes","eq":true}"#,
            Asked::DoesNotHold => r#","condition":{"ref":"@input.no","eq":true}"#,
            Asked::Unreadable => r#","condition":{"ref":"@input.nowhere","eq":true}"#,
        };
        self.edges.push(object(&format!(r#"{{"from":"{from}","to":"{to}","when":"{kind}"{condition}}}"#)));
    }

    /// Adds a step that fails, which cancels all waiting steps.
    fn boom(&mut self) {
        self.source("boom", End::Failed);
    }

    fn definition(self, policy: Option<&str>) -> Value {
        let mut definition = Map::new();
        definition.insert("nodes".into(), self.nodes.into());
        definition.insert("edges".into(), self.edges.into());
        definition.extend(policy.map(|policy| ("policy".into(), object(policy))));
        Value::Map(definition)
    }
}

/// An execution whose calls are answered by the test: failing ones first, the others in plan order.
struct Run {
    state: State,
    out: BTreeMap<Instance, u32>,
    /// Steps whose calls fail, and the class of their failures.
    failing: Vec<String>,
    class: Class,
}

impl Run {
    fn begin(definition: Value, failing: Vec<String>) -> Self {
        let compiled = compile(&Document::placeless(definition)).unwrap_or_else(|found| panic!("{found:#?}"));
        let plan = Arc::new(compiled.plan);
        let start = Start {
            execution_id: "edges".into(),
            workflow_hash: plan.workflow_hash,
            plan_hash: Hash::default(),
            input: object(r#"{"yes":true,"no":false}"#),
            variables: Value::Map(Map::new()),
            trigger: Value::Null,
            policy: Policy {
                max_steps: 1_000_000,
                max_parallel: plan.constraints.max_parallel.unwrap_or(10_000),
                timeout_ms: None,
                max_output_bytes: None,
            },
            attempt: 1,
            by: "ann".into(),
            workspace: None,
            lineage: None,
            queue: None,
        };
        let state = State::new(ExecutionKey([7; 16]), plan);
        let mut run = Self { state, out: BTreeMap::new(), failing, class: Class::Failed };
        run.take_in(&Input::Start(Box::new(start)));
        run
    }

    fn take_in(&mut self, input: &Input) -> Turn {
        let now = self.state.now;
        self.take_in_at(input, now)
    }

    fn take_in_at(&mut self, input: &Input, now: u64) -> Turn {
        let turn = decide_with(&mut self.state, input, now, |_| unreachable!("no step has anything to evaluate"))
            .unwrap_or_else(|illegal| panic!("{}", illegal.message));
        for action in &turn.actions {
            if let Action::Perform { instance, attempt } = action {
                self.out.insert(instance.clone(), attempt.number);
            }
        }
        turn
    }

    fn fails(&self, instance: &Instance) -> bool {
        self.failing.iter().any(|id| self.state.plan.id(instance.step) == id)
    }

    /// Answers calls and advances time until the execution waits for nothing.
    fn finish(&mut self) {
        loop {
            let first = self.out.keys().find(|instance| self.fails(instance)).or_else(|| self.out.keys().next());
            if let Some(instance) = first.cloned() {
                self.answer(&instance);
            } else if self.state.journal.is_split {
                self.take_in(&Input::Continue);
            } else if let Some((at, timer)) = self.state.next_timer().cloned() {
                self.take_in_at(&Input::Timer(timer), at);
            } else {
                return;
            }
        }
    }

    fn answer(&mut self, instance: &Instance) {
        let attempt = self.out.remove(instance).expect("it is out");
        let outcome = match self.fails(instance) {
            true => Outcome::Failed(Failure::new(self.class, "boom", "boom")),
            false => Outcome::Done(object(r#"{"ok":true,"list":[1,2]}"#)),
        };
        self.take_in(&Input::Receipt { instance: instance.clone(), attempt, outcome });
    }

    fn status_of(&self, id: &str) -> Status {
        let plan: &Plan = &self.state.plan;
        self.state.step_status(&Instance::parse(id, plan).unwrap_or_else(|| panic!("no step {id}")))
    }
}

/// Tests one join in a graph of its own.
fn check_join(arrows: &[Arrow]) {
    let mut nodes = Nodes::default();
    let mut sources: BTreeMap<usize, End> = BTreeMap::new();
    for arrow in arrows {
        sources.insert(arrow.source, arrow.end);
    }
    if sources.values().any(|end| *end == End::Cancelled) {
        nodes.boom();
    }
    for (number, end) in &sources {
        nodes.source(&format!("s{number}"), *end);
    }
    nodes.node("target", "");
    for arrow in arrows {
        nodes.edge(&format!("s{}", arrow.source), "target", arrow.kind, arrow.asked);
    }
    let failing = std::mem::take(&mut nodes.failing);
    let mut run = Run::begin(nodes.definition(None), failing);
    run.finish();
    let found = Expected {
        target: run.status_of("target"),
        execution: run.state.status(),
        with_failures: run.state.end.with_failures,
    };
    assert_eq!(found, expected(arrows), "{arrows:#?}");
}

#[test]
fn every_edge_by_itself() {
    arrows().into_iter().for_each(|arrow| check_join(&[arrow]));
}

#[test]
fn every_two_edges_from_two_steps() {
    for (at, first) in arrows().into_iter().enumerate() {
        // The order of two edges can matter only for unreadable conditions; these pairs are tested in both orders.
        for (other, second) in arrows().into_iter().enumerate() {
            if other >= at || first.asked == Asked::Unreadable || second.asked == Asked::Unreadable {
                check_join(&[first, second.from(1)]);
            }
        }
    }
}

#[test]
fn every_two_edges_from_one_step() {
    for first in arrows() {
        for second in arrows().into_iter().filter(|second| second.end == first.end) {
            check_join(&[first, second]);
        }
    }
}

/// Tests joins of three edges. Many targets share a graph with three sources for each outcome.
#[test]
fn every_three_edges() {
    let all = arrows();
    let mut joins: [Vec<[Arrow; 3]>; 2] = [Vec::new(), Vec::new()];
    for (a, first) in all.iter().enumerate() {
        for (b, second) in all.iter().enumerate().skip(a) {
            for third in &all[b..] {
                let join = [*first, second.from(1), third.from(2)];
                // A failure edge handles the failure for the whole graph, so it would change the other joins.
                let takes_up = |arrow: &Arrow| arrow.end == End::Failed && arrow.handles();
                if !join.iter().any(takes_up) {
                    joins[usize::from(is_failing(&join))].push(join);
                }
            }
        }
    }
    let [well, failing] = &joins;
    // Combinations with repetition of three of the remaining 94 edges.
    assert_eq!(well.len() + failing.len(), 94 * 95 * 96 / 6);
    for joins in well.chunks(500).chain(failing.chunks(500)) {
        check_joins(joins);
    }
}

fn check_joins(joins: &[[Arrow; 3]]) {
    let mut nodes = Nodes::default();
    let is_failing = is_failing(&joins[0]);
    for end in ENDS.into_iter().filter(|end| is_failing || !matches!(end, End::Failed | End::Cancelled)) {
        (0..3).for_each(|source| nodes.source(&name(source, end), end));
    }
    for (number, join) in joins.iter().enumerate() {
        let target = format!("t{number}");
        // An unreadable condition fails its target, which must not fail the execution of the others.
        nodes.node(&target, r#""continueOnError":true"#);
        for arrow in join {
            nodes.edge(&name(arrow.source, arrow.end), &target, arrow.kind, arrow.asked);
        }
    }
    let failing = std::mem::take(&mut nodes.failing);
    let mut run = Run::begin(nodes.definition(None), failing);
    run.finish();
    for (number, join) in joins.iter().enumerate() {
        assert_eq!(run.status_of(&format!("t{number}")), target(join), "{join:#?}");
    }
    let status = if is_failing { ExecutionStatus::Failed } else { ExecutionStatus::Completed };
    assert_eq!(run.state.status(), status);
}

fn name(source: usize, end: End) -> String {
    format!("{end:?}_{source}")
}

/// A graph, its failing steps, and the expected outcome of each step. Nodes are `id` and `keys`, edges `from kind to`,
/// outcomes `id:status`.
struct Case {
    why: &'static str,
    nodes: &'static [(&'static str, &'static str)],
    edges: &'static [&'static str],
    policy: Option<&'static str>,
    failing: &'static [&'static str],
    steps: &'static str,
    status: ExecutionStatus,
}

const CASES: &[Case] = &[
    Case {
        why: "behind an unhandled failure nothing begins that needs its success, however far behind",
        nodes: &[("a", ""), ("b", ""), ("c", "")],
        edges: &["a on_success b", "b on_success c"],
        policy: None,
        failing: &["a"],
        steps: "a:failed b:skipped c:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "what cleans up runs, and the execution fails all the same",
        nodes: &[("a", ""), ("b", ""), ("clean", "")],
        edges: &["a on_success b", "a always clean"],
        policy: None,
        failing: &["a"],
        steps: "a:failed b:skipped clean:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "what cleans up runs behind a step that the failure kept from beginning",
        nodes: &[("a", ""), ("b", ""), ("clean", "")],
        edges: &["a on_success b", "b always clean"],
        policy: None,
        failing: &["a"],
        steps: "a:failed b:skipped clean:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "cleaning up may take several steps",
        nodes: &[("a", ""), ("clean", ""), ("more", "")],
        edges: &["a always clean", "clean on_success more"],
        policy: None,
        failing: &["a"],
        steps: "a:failed clean:completed more:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a failure elsewhere is still handled while the execution fails",
        nodes: &[("a", ""), ("b", ""), ("fix", ""), ("next", "")],
        edges: &["b on_failure fix", "b on_success next"],
        policy: None,
        failing: &["a", "b"],
        steps: "a:failed b:failed fix:completed next:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a failure that is handled leaves no mark",
        nodes: &[("a", ""), ("fix", ""), ("after", "")],
        edges: &["a on_failure fix", "fix on_success after"],
        policy: None,
        failing: &["a"],
        steps: "a:failed fix:completed after:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "the failure of a handler is unhandled",
        nodes: &[("a", ""), ("fix", "")],
        edges: &["a on_failure fix"],
        policy: None,
        failing: &["a", "fix"],
        steps: "a:failed fix:failed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a failure edge whose condition does not hold handles nothing",
        nodes: &[("a", ""), ("fix", "")],
        edges: &["a on_failure fix {\"ref\":\"@input.no\"}"],
        policy: None,
        failing: &["a"],
        steps: "a:failed fix:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "what failed has null as its output, and a failure edge that asks for that is taken",
        nodes: &[("a", ""), ("fix", "")],
        edges: &["a on_failure fix {\"ref\":\"@a\",\"eq\":null}"],
        policy: None,
        failing: &["a"],
        steps: "a:failed fix:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "a condition that cannot be read fails the step behind it and handles nothing",
        nodes: &[("a", ""), ("fix", "")],
        edges: &["a on_failure fix {\"ref\":\"@a.x\",\"eq\":null}"],
        policy: None,
        failing: &["a"],
        steps: "a:failed fix:failed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a return behind a failure that it handles ends the execution well",
        nodes: &[("a", ""), ("done", "\"type\":\"return\",\"input\":1")],
        edges: &["a on_failure done"],
        policy: None,
        failing: &["a"],
        steps: "a:failed done:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "what waits is cancelled by a failure, and its cleaning up runs",
        nodes: &[("a", ""), ("w", "\"type\":\"signal\",\"signal\":\"s\""), ("clean", ""), ("next", "")],
        edges: &["w always clean", "w on_success next"],
        policy: None,
        failing: &["a"],
        steps: "a:failed w:cancelled clean:completed next:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "cleaning up may wait",
        nodes: &[("a", ""), ("nap", "\"type\":\"sleep\",\"durationMs\":5000"), ("more", "")],
        edges: &["a always nap", "nap on_success more"],
        policy: None,
        failing: &["a"],
        steps: "a:failed nap:completed more:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "cleaning up may consist of steps inside a step",
        nodes: &[
            ("a", ""),
            (
                "p",
                "\"type\":\"parallel\",\"steps\":[{\"id\":\"x\",\"type\":\"tool\",\"tool\":\"T\"},{\"id\":\"y\",\"type\":\"sleep\",\"durationMs\":5}]",
            ),
        ],
        edges: &["a always p"],
        policy: None,
        failing: &["a"],
        steps: "a:failed p:completed x:completed y:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a failure inside a step is taken up by the failure edge of that step",
        nodes: &[
            (
                "p",
                "\"type\":\"parallel\",\"steps\":[{\"id\":\"x\",\"type\":\"tool\",\"tool\":\"T\"},{\"id\":\"y\",\"type\":\"tool\",\"tool\":\"T\"}]",
            ),
            ("fix", ""),
            ("next", ""),
        ],
        edges: &["p on_failure fix", "p on_success next"],
        policy: None,
        failing: &["x"],
        steps: "p:failed x:failed y:completed fix:completed next:skipped",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "continueOnError lets a failure through; success is still what an ordinary edge asks for",
        nodes: &[("a", "\"continueOnError\":true"), ("b", ""), ("c", "")],
        edges: &["a on_success b", "a always c"],
        policy: None,
        failing: &["a"],
        steps: "a:failed b:skipped c:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "failOpen skips the broken branch and continues",
        nodes: &[("a", ""), ("b", ""), ("c", ""), ("d", "")],
        edges: &["a on_success b", "c on_success d"],
        policy: Some("{\"failOpen\":true}"),
        failing: &["a"],
        steps: "a:failed b:skipped c:completed d:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "one failure below the bound is tolerated",
        nodes: &[("a", "\"continueOnError\":true"), ("b", ""), ("c", "")],
        edges: &["a always c", "b on_success c"],
        policy: Some("{\"maxNodeFailures\":2}"),
        failing: &["a"],
        steps: "a:failed b:completed c:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "at the bound the execution fails, what cleans up runs and nothing else begins",
        nodes: &[("a", "\"continueOnError\":true"), ("b", "\"continueOnError\":true"), ("c", ""), ("d", ""), ("e", "")],
        edges: &["a always c", "b always c", "b skip d", "c skip d", "a always e", "b on_success e"],
        policy: Some("{\"maxNodeFailures\":2}"),
        failing: &["a", "b"],
        steps: "a:failed b:failed c:completed d:skipped e:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "handled failures count towards the bound, and their handlers run all the same",
        nodes: &[("a", ""), ("fix", ""), ("after", "")],
        edges: &["a on_failure fix", "fix on_success after"],
        policy: Some("{\"maxNodeFailures\":1}"),
        failing: &["a"],
        steps: "a:failed fix:completed after:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "failOpen lets every failure through and the bound still holds",
        nodes: &[("a", ""), ("b", ""), ("c", "")],
        edges: &["a always c", "b on_success c"],
        policy: Some("{\"failOpen\":true,\"maxNodeFailures\":1}"),
        failing: &["a"],
        steps: "a:failed b:completed c:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a step that has no second attempt has not used up its attempts",
        nodes: &[("a", "\"continueOnError\":true"), ("b", "")],
        edges: &["a always b"],
        policy: Some("{\"maxRetriesExhausted\":1}"),
        failing: &["a"],
        steps: "a:failed b:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "a step that tried again in vain counts",
        nodes: &[
            ("a", "\"continueOnError\":true,\"retryPolicy\":{\"maxAttempts\":2,\"initialDelayMs\":1000}"),
            ("b", ""),
        ],
        edges: &["a always b"],
        policy: Some("{\"maxRetriesExhausted\":1}"),
        failing: &["a"],
        steps: "a:failed b:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "below the bound of steps that tried in vain the execution continues",
        nodes: &[
            ("a", "\"continueOnError\":true,\"retryPolicy\":{\"maxAttempts\":2,\"initialDelayMs\":1000}"),
            ("b", ""),
        ],
        edges: &["a always b"],
        policy: Some("{\"maxRetriesExhausted\":2}"),
        failing: &["a"],
        steps: "a:failed b:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "what is only behind a skip is no cleaning up",
        nodes: &[("a", ""), ("b", ""), ("c", "")],
        edges: &["a on_success b", "b skip c"],
        policy: None,
        failing: &["a"],
        steps: "a:failed b:skipped c:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "there is nothing below what failed, so that an edge that asks for it is not taken and handles nothing",
        nodes: &[("a", ""), ("fix", "")],
        edges: &["a on_failure fix {\"ref\":\"@a.x\",\"exists\":true}"],
        policy: None,
        failing: &["a"],
        steps: "a:failed fix:skipped",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a failure edge that is taken because there is nothing below what failed handles the failure",
        nodes: &[("a", ""), ("fix", "")],
        edges: &["a on_failure fix {\"ref\":\"@a.x\",\"exists\":false}"],
        policy: None,
        failing: &["a"],
        steps: "a:failed fix:completed",
        status: ExecutionStatus::Completed,
    },
    Case {
        why: "a return behind a failure cleans up and does not make the execution a good one",
        nodes: &[("a", ""), ("done", "\"type\":\"return\",\"input\":1")],
        edges: &["a always done"],
        policy: None,
        failing: &["a"],
        steps: "a:failed done:completed",
        status: ExecutionStatus::Failed,
    },
    Case {
        why: "a bail that is read behind a failure does not make the execution a good one",
        nodes: &[("a", ""), ("clean", "\"type\":\"tool\",\"tool\":\"T\",\"bail\":true"), ("more", "")],
        edges: &["a always clean", "clean on_success more"],
        policy: None,
        failing: &["a"],
        steps: "a:failed clean:completed more:completed",
        status: ExecutionStatus::Failed,
    },
];

#[test]
fn cleanup_and_failure_policies() {
    let wrong: Vec<String> = CASES.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the difference between the expected and the actual result of a case.
fn difference(case: &Case) -> Option<String> {
    let mut nodes = Nodes::default();
    for (id, keys) in case.nodes {
        if keys.contains("\"type\"") && !keys.starts_with("\"type\":\"tool\"") {
            nodes.nodes.push(object(&format!(r#"{{"id":"{id}",{keys}}}"#)));
        } else {
            nodes.node(id, keys.trim_start_matches("\"type\":\"tool\",\"tool\":\"T\","));
        }
    }
    for edge in case.edges {
        let words: Vec<&str> = edge.splitn(4, ' ').collect();
        nodes.edge(words[0], words[2], words[1], Asked::Nothing);
        if let (Some(condition), Some(Value::Map(edge))) = (words.get(3), nodes.edges.last_mut()) {
            edge.insert("condition".into(), object(condition));
        }
    }
    let failing: Vec<String> = case.failing.iter().map(|id| id.to_string()).collect();
    let mut run = Run::begin(nodes.definition(case.policy), failing);
    // The class is retryable, so that steps with several attempts exhaust them.
    run.class = Class::Transient;
    run.finish();
    let ids = case.steps.split(' ').map(|step| step.split(':').next().unwrap_or_default());
    let found: Vec<String> = ids.map(|id| format!("{id}:{}", run.status_of(id).name())).collect();
    let (found, status) = (found.join(" "), run.state.status());
    (found != case.steps || status != case.status).then(|| {
        let (expected, expected_status) = (case.steps, case.status.name());
        format!("{}\n  expected {expected_status}: {expected}\n  found    {}: {found}", case.why, status.name())
    })
}

/// An open attempt may succeed after a cancel. Its `bail` must not turn the cancellation into success.
#[test]
fn a_bail_after_a_cancel_ends_nothing() {
    for bail in ["true", r#"{"ref":"@a.nowhere","eq":1}"#] {
        let mut nodes = Nodes::default();
        nodes.node("a", &format!(r#""bail":{bail}"#));
        let mut run = Run::begin(nodes.definition(None), Vec::new());
        run.take_in(&Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() });
        run.finish();
        assert_eq!((run.status_of("a"), run.state.status()), (Status::Completed, ExecutionStatus::Cancelled), "{bail}");
    }
}

/// A failure edge is evaluated when its source fails. Its condition may refer to steps that have ended by that time,
/// but not to other steps that its target waits for.
#[test]
fn a_failure_edge_reads_steps_that_ended_before_its_source_failed() {
    for (asked, is_accepted) in [("before", true), ("a", true), ("beside", false), ("fix", false)] {
        let mut nodes = Nodes::default();
        ["before", "a", "beside", "fix"].into_iter().for_each(|id| nodes.node(id, ""));
        nodes.edge("before", "a", "on_success", Asked::Nothing);
        nodes.edge("beside", "fix", "always", Asked::Nothing);
        nodes.edge("a", "fix", "on_failure", Asked::Nothing);
        if let Some(Value::Map(edge)) = nodes.edges.last_mut() {
            edge.insert("condition".into(), object(&format!(r#"{{"ref":"@{asked}"}}"#)));
        }
        let outcome = compile(&Document::placeless(nodes.definition(None)));
        assert_eq!(outcome.is_ok(), is_accepted, "{asked}: {outcome:?}");
        let found = outcome.err().unwrap_or_default();
        assert!(found.iter().all(|diagnostic| diagnostic.message.contains(asked)), "{asked}: {found:?}");
    }
}

/// With one concurrency slot, a step that waits for a retry keeps the slot, and one that waits for a signal does not.
#[test]
fn a_step_that_waits_for_a_retry_keeps_its_slot() {
    let mut nodes = Nodes::default();
    nodes.nodes.push(object(r#"{"id":"w","type":"signal","signal":"s","priority":9}"#));
    nodes.node("a", r#""retryPolicy":{"maxAttempts":2,"initialDelayMs":1000},"priority":5"#);
    nodes.node("b", "");
    let mut definition = nodes.definition(None);
    if let Value::Map(root) = &mut definition {
        root.insert("constraints".into(), object(r#"{"maxParallel":1}"#));
    }
    let mut run = Run::begin(definition, vec!["a".into()]);
    run.class = Class::Transient;
    let out =
        |run: &Run| run.out.keys().map(|instance| run.state.plan.id(instance.step).to_string()).collect::<Vec<_>>();
    assert_eq!(out(&run), ["a"]);
    run.answer(&Instance::parse("a", &run.state.plan.clone()).expect("a step"));
    assert_eq!((run.status_of("a"), out(&run)), (Status::Retrying, Vec::new()));
}
