//! Budgets under many calls at a time: what is spent and reserved never passes a limit, whatever the receipts say, by more
//! than a receipt passes its reservation.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    budget::{Budget, Limits, ModelTerm, ModelTerms, Price, Usage},
    decide::{Action, DECIDE_VERSION, decide_with},
    definition::{Syntax, compile, read},
    effect::{Attempt, ChildEnd, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    input::{Input, Lineage, Pinned, Policy, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::{Decision, Plan},
    record::Record,
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

fn plan_of(text: &str) -> Plan {
    let mut plan = compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan;
    let price = Price { input: 1_000, cached_input: 100, output: 5_000 };
    let term = ModelTerm { max_tokens: Some(1_000), price: Some(price) };
    let models = BTreeMap::from([("m".to_string(), term)]);
    plan.models = Some(ModelTerms { default: Some("m".into()), models, ..ModelTerms::default() });
    // The terms survive the stored form, which executions pin.
    Plan::decode(&plan.encode()).expect("it is read back")
}

fn start(plan: &Plan) -> Input {
    Input::Start(Box::new(Start {
        execution_id: "e".into(),
        workflow_hash: plan.workflow_hash,
        plan_hash: Hash::of(&plan.encode()),
        input: Value::Null,
        variables: Value::Map(Map::new()),
        trigger: Value::map([("type", "manual".into())]),
        policy: Policy { max_steps: 10_000, max_parallel: 64, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "me".into(),
        workspace: None,
        lineage: None,
        queue: None,
    }))
}

/// The start of an execution that may start the workflow `w`, or of a child with a budget.
fn start_with(plan: &Plan, budget: Option<Budget>) -> Input {
    let pinned = Pinned { name: "w".into(), workflow_hash: Hash::of(b"w"), plan_hash: Hash::of(b"p") };
    let lineage = Lineage { parent: None, depth: 0, workflows: vec![pinned], executions: Some(100), budget };
    match start(plan) {
        Input::Start(start) => Input::Start(Box::new(Start { lineage: Some(lineage), ..*start })),
        other => other,
    }
}

/// An execution that is driven by hand.
struct Run {
    state: State,
    now: u64,
    open: Vec<(Instance, Attempt)>,
    /// The budgets of the children that were started.
    shares: Vec<Option<Budget>>,
    dice: u64,
}

impl Run {
    fn new(definition: &str, seed: u64) -> Self {
        Self::of(definition, seed, start)
    }

    fn of(definition: &str, seed: u64, start: impl FnOnce(&Plan) -> Input) -> Self {
        let plan = plan_of(definition);
        let begins = start(&plan);
        let state = State::new(ExecutionKey([7; 16]), Arc::new(plan));
        let mut run = Self { state, now: 1_767_225_600_000, open: Vec::new(), shares: Vec::new(), dice: seed };
        run.take(&begins);
        run
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % bound
    }

    fn take(&mut self, input: &Input) -> Vec<Record> {
        self.now += 10;
        let turn =
            decide_with(&mut self.state, input, self.now, |_| unreachable!("nothing is evaluated")).expect("legal");
        for action in turn.actions {
            if let Action::Perform { instance, attempt } = action {
                self.open.push((instance, *attempt));
            }
        }
        for message in turn.messages {
            if let Input::Start(start) = message.input {
                self.shares.push(start.lineage.and_then(|lineage| lineage.budget));
            }
        }
        turn.records
    }

    fn reserved(&self, instance: &Instance) -> Usage {
        self.state.counts.budgets.reserved.get(instance).copied().unwrap_or_default()
    }

    fn receipt(&mut self, place: usize, outcome: Outcome) -> Vec<Record> {
        let (instance, attempt) = self.open.remove(place);
        self.take(&Input::Receipt { instance, attempt: attempt.number, outcome })
    }
}

fn answer(input: u64, output: u64, calls: u64) -> Outcome {
    let call = |n: u64| {
        let id = n.to_string();
        Value::map([("id", id.as_str().into()), ("name", "web.get".into()), ("arguments", Map::new().into())])
    };
    let usage = Value::map([("inputTokens", input.into()), ("outputTokens", output.into())]);
    let calls: Vec<Value> = (0..calls).map(call).collect();
    Outcome::Done(Value::map([("text", "t".into()), ("toolCalls", calls.into()), ("usage", usage)]))
}

/// 64 agents share a budget of the execution. Each receipt uses at most what was reserved.
#[test]
fn use_and_reservations_stay_within_the_limits() {
    let agents: String = (0..64)
        .map(|n| format!("      - {{id: a{n}, type: agent, goal: g, tools: [web.*], onError: continue}}\n"))
        .collect();
    let definition = format!(
        "constraints: {{budget: {{tokens: 40000, cost: 0.1, modelCalls: 50, toolCalls: 30}}}}\n\
         steps:\n  - id: all\n    type: parallel\n    steps:\n{agents}"
    );
    for seed in 0..40 {
        let mut run = Run::new(&definition, seed);
        let (mut model_calls, mut tool_calls) = (0, 0);
        while !run.open.is_empty() {
            let account = &run.state.counts.budgets.execution;
            let used = account.spent.plus(account.reserved).amounts();
            for (limit, used) in account.limits().0.into_iter().zip(used) {
                assert!(limit.is_none_or(|limit| used <= limit), "seed {seed}: {account:?}");
            }
            let place = run.below(run.open.len() as u64) as usize;
            let (instance, attempt) = run.open[place].clone();
            let reserved = run.reserved(&instance);
            let outcome = if attempt.effect == "agent" {
                model_calls += 1;
                let output =
                    attempt.params.get("maxTokens").and_then(Value::as_u64).unwrap_or(1_000).min(reserved.tokens);
                let output = 1 + run.below(output);
                // The cost of the request is that of the reservation as well.
                let input = run.below(reserved.tokens - output + 1);
                match run.below(10) {
                    0 => Outcome::Interrupted,
                    1 => Outcome::Failed(Failure::new(Class::RateLimited, "model_rate_limited", "busy")),
                    2 => Outcome::Failed(Failure::new(Class::Invalid, "model_answer_invalid", "no JSON")),
                    dice => answer(input, output, dice % 3),
                }
            } else {
                tool_calls += 1;
                Outcome::Done("page".into())
            };
            run.receipt(place, outcome);
        }
        let spent = run.state.counts.budgets.execution.spent;
        assert!(spent.model_calls <= model_calls && spent.tool_calls <= tool_calls, "seed {seed}: {spent:?}");
        assert!(model_calls > 5, "seed {seed}: the budget is used, {model_calls} calls");
    }
}

/// A provider that counts more than was reserved stops the next call.
#[test]
fn a_receipt_beyond_its_reservation_stops_the_next_call() {
    let mut run = Run::new("steps: [{id: a, type: agent, goal: g, tools: [web.*], budget: {tokens: 5000}}]", 1);
    let reserved = run.reserved(&run.open[0].0.clone());
    run.receipt(0, answer(1_000_000, 7, 1));
    assert!(reserved.tokens <= 5_000);
    assert_eq!(run.open.len(), 1, "only the tool call is out");
    assert_eq!(run.open[0].1.effect, "tool");
    run.receipt(0, Outcome::Done("page".into()));
    assert_eq!(run.state.status(), ExecutionStatus::Failed);
}

/// A provider that claims more tokens than any call uses does not use up the budget, and the next call begins.
#[test]
fn an_impossible_number_of_tokens_counts_as_the_reservation() {
    for claimed in [2_000_001, 1_000_000_000_000_000_000, u64::MAX] {
        let mut run = Run::new("steps: [{id: a, type: agent, goal: g, tools: [web.*], budget: {tokens: 50000}}]", 1);
        let reserved = run.reserved(&run.open[0].0.clone());
        run.receipt(0, answer(claimed, 7, 1));
        let spent = run.state.counts.budgets.execution.spent;
        assert_eq!((spent.tokens, spent.cost), (reserved.tokens, reserved.cost));
        run.receipt(0, Outcome::Done("page".into()));
        assert_eq!(run.open.len(), 1, "the next model call begins");
    }
}

/// A lost answer counts at what was reserved for it, and a refused request costs nothing.
#[test]
fn a_lost_answer_counts_and_a_refused_request_does_not() {
    let definition = "steps: [{id: a, type: agent, goal: g, budget: {tokens: 9000}, onInterrupted: retry, \
                      retry: {maxAttempts: 3, initialDelayMs: 0}}]";
    let mut run = Run::new(definition, 1);
    let reserved = run.reserved(&run.open[0].0.clone());
    assert!(reserved.tokens > 1_000 && reserved.model_calls == 1, "{reserved:?}");
    run.receipt(0, Outcome::Interrupted);
    let spent = run.state.counts.budgets.execution.spent;
    assert_eq!((spent.tokens, spent.model_calls), (reserved.tokens, 1));
    assert_eq!(run.open.len(), 1, "the author permits a repetition");
    run.receipt(0, Outcome::Failed(Failure::new(Class::Invalid, "model_request_rejected", "no")));
    assert_eq!(run.state.counts.budgets.execution.spent.tokens, reserved.tokens);
    assert_eq!(run.state.counts.budgets.execution.reserved, Usage::default());
}

/// The tools of a request come from servers, and its key from a secret: without them no request was sent. An execution
/// of an older release keeps its rule.
#[test]
fn a_model_call_that_was_not_sent_uses_nothing() {
    let definition = "steps: [{id: a, type: agent, goal: g, tools: [web.*], budget: {tokens: 9000}}]";
    let spent = |code: &str, version: u32| {
        let mut run = Run::new(definition, 1);
        run.state.decide_version = version;
        run.receipt(0, Outcome::Failed(Failure::new(Class::Unavailable, code, "no")));
        let account = &run.state.counts.budgets.execution;
        assert_eq!(account.reserved, Usage::default(), "{code}");
        (account.spent.model_calls, account.spent.tokens > 0)
    };
    for code in ["tool_server_not_connected", "tool_server_start_timeout", "secret_missing", "http_parameter_invalid"] {
        assert_eq!(spent(code, DECIDE_VERSION), (0, false), "{code}");
        assert_eq!(spent(code, 8), (1, true), "{code}");
    }
    assert_eq!(spent("http_connection_lost", DECIDE_VERSION), (1, true));
}

/// The budget caps the answer, and the executor gets the cap.
#[test]
fn the_remaining_budget_caps_an_answer() {
    let run = Run::new("steps: [{id: a, type: agent, goal: g, budget: {tokens: 500}}]", 1);
    let (instance, attempt) = &run.open[0];
    let cap = attempt.params.get("maxTokens").and_then(Value::as_u64).expect("a cap");
    assert!((256..500).contains(&cap), "{cap}");
    assert_eq!(run.reserved(instance).tokens, 500);
    assert_eq!(attempt.params.get("model").and_then(Value::as_text), Some("m"), "the default is pinned");
    // Too little for an answer: nothing is called.
    let run = Run::new("steps: [{id: a, type: agent, goal: g, budget: {tokens: 200}}]", 1);
    assert!(run.open.is_empty());
    assert_eq!(run.state.status(), ExecutionStatus::Failed);
}

/// A raise adds exactly the amount that the gate shows, and a warning is recorded once for each budget.
#[test]
fn a_raise_adds_the_amount_of_the_gate() {
    let definition = "steps: [{id: a, type: agent, goal: g, tools: [web.*], budget: {modelCalls: 1, onExceeded: ask, warnPercent: 100}}]";
    let mut run = Run::new(definition, 1);
    let records = run.receipt(0, answer(5, 5, 1));
    assert!(records.iter().any(|record| matches!(record, Record::BudgetWarned { agent: Some(_), .. })), "{records:?}");
    run.receipt(0, Outcome::Done("page".into()));
    let (instance, gate) = run
        .state
        .steps
        .iter()
        .find(|(_, step)| step.status == Status::WaitingApproval)
        .map(|(instance, step)| (instance.clone(), step.gate.clone().expect("a gate")))
        .expect("it waits");
    assert_eq!(gate.items.get("raise"), Some(&Value::map([("modelCalls", 1u64.into())])));
    assert!(gate.prompt.contains("budget of the step") && run.open.is_empty(), "{}", gate.prompt);
    let reason = Value::Null;
    let records = run.take(&Input::Decide { instance, gate: 1, decision: Decision::Approve, by: "ann".into(), reason });
    let raised = records.iter().find_map(|record| match record {
        Record::BudgetRaised { amount, agent: Some(_) } => Some(*amount),
        _ => None,
    });
    assert_eq!(raised, Some(Usage { model_calls: 1, ..Usage::default() }));
    assert_eq!(run.open.len(), 1);
    run.receipt(0, answer(5, 5, 0));
    assert_eq!(run.state.status(), ExecutionStatus::Completed);
    let spent = run.state.counts.budgets.execution.spent;
    assert_eq!((spent.tokens, spent.model_calls, spent.tool_calls), (20, 2, 1));
    assert_eq!(spent.cost, 2 * (5 * 1_000 + 5 * 5_000));
}

/// Workflows that a model calls use their shares to the last, and their own calls count as well.
#[test]
fn workflows_that_a_model_calls_stay_within_the_tool_calls() {
    for (limit, calls) in [(1, 1), (1, 3), (4, 3), (5, 2), (6, 20)] {
        let definition = format!(
            "steps: [{{id: a, type: agent, goal: g, tools: [{{workflow: w}}], maxToolCalls: 50, onError: continue, budget: {{toolCalls: {limit}}}}}]"
        );
        let mut run = Run::of(&definition, 1, |plan| start_with(plan, None));
        let call = |n: u64| {
            let id = n.to_string();
            Value::map([("id", id.as_str().into()), ("name", "workflow:w".into()), ("arguments", Map::new().into())])
        };
        let usage = Value::map([("inputTokens", 5u64.into()), ("outputTokens", 5u64.into())]);
        let calls: Vec<Value> = (0..calls).map(call).collect();
        run.receipt(0, Outcome::Done(Value::map([("toolCalls", calls.into()), ("usage", usage)])));
        assert!(!run.shares.is_empty(), "{limit}: a child is started");
        let mut shares = std::mem::take(&mut run.shares).into_iter();
        while let Some(instance) = run.state.open.attempts.iter().next().cloned() {
            let Some(share) = shares.next().flatten() else { break };
            let tool_calls = share.limits.0[3].expect("tool calls are limited");
            let usage = Box::new(Usage { tool_calls, ..Usage::default() });
            let end = ChildEnd::Done(Value::Null);
            let outcome = Outcome::ChildWithUsage { end, executions: 1, usage, raised: Box::default() };
            run.take(&Input::Receipt { instance, attempt: 1, outcome });
            let account = run.state.counts.budgets.execution;
            let used = account.spent.plus(account.reserved).tool_calls;
            assert!(used <= limit, "{limit}: {account:?}");
        }
        assert_eq!(run.state.counts.budgets.execution.reserved.tool_calls, 0, "{limit}");
    }
}

/// The definition of a child asks for more only if its parent does.
#[test]
fn a_child_cannot_ask_for_a_budget_that_fails_its_parent() {
    for (parent_asks, version, waits) in [(false, 9, false), (true, 9, true), (false, 8, true)] {
        let definition = "constraints: {budget: {modelCalls: 5, onExceeded: ask}}\n\
                          steps: [{id: a, type: agent, goal: g}, {id: b, type: agent, goal: g}]";
        let limits = Limits([None, None, Some(1), None, None]);
        let given = Budget { limits, asks: parent_asks, ..Budget::default() };
        let plan = plan_of(definition);
        let begins = start_with(&plan, Some(given));
        let state = State { decide_version: version, ..State::new(ExecutionKey([7; 16]), Arc::new(plan)) };
        let mut run = Run { state, now: 1_767_225_600_000, open: Vec::new(), shares: Vec::new(), dice: 1 };
        run.take(&begins);
        run.receipt(0, answer(5, 5, 0));
        assert!(run.open.is_empty(), "the second call is not made");
        let is_waiting = run.state.steps.values().any(|step| step.status == Status::WaitingApproval);
        assert_eq!(is_waiting, waits, "parent asks: {parent_asks}, version {version}");
    }
}
