//! Leases of the budgets of a day or a month: a call begins only under a granted lease, what is not used is returned, and
//! no answer of the store counts twice.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    budget::{Limits, ModelTerm, ModelTerms, Price, Usage},
    decide::{Action, decide_with, raises, usage_of},
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    effect_policy::EffectPolicy,
    hash::Hash,
    input::{Input, Policy, Start},
    instance::Instance,
    key::ExecutionKey,
    leases::LeaseChange,
    plan::{Decision, Plan},
    record::{Payload, Record},
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

const AGENT: &str = "steps: [{id: a, type: agent, goal: g, tools: [web.*]}]";
const TWO_AGENTS: &str = "steps: [{id: all, type: parallel, steps: [{id: a, type: agent, goal: g, onError: continue}, \
                          {id: b, type: agent, goal: g, onError: continue}]}]";

fn plan_of(text: &str) -> Plan {
    let mut plan = compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan;
    let price = Price { input: 1_000, cached_input: 100, output: 5_000 };
    let models = BTreeMap::from([("m".to_string(), ModelTerm { max_tokens: Some(1_000), price: Some(price) })]);
    plan.models = Some(ModelTerms { default: Some("m".into()), models, needs_leases: true, ..ModelTerms::default() });
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

/// An execution that is driven by hand.
struct Run {
    state: State,
    now: u64,
    open: Vec<(Instance, Attempt)>,
    /// The requests that are not answered: number and amount.
    requests: Vec<(u32, Usage)>,
    returned: Vec<(u32, Usage)>,
}

impl Run {
    fn new(definition: &str) -> Self {
        let plan = plan_of(definition);
        let begins = start(&plan);
        let state = State::new(ExecutionKey([7; 16]), Arc::new(plan));
        let mut run = Self { state, now: 1_767_225_600_000, open: vec![], requests: vec![], returned: vec![] };
        run.take(&begins);
        run
    }

    fn take(&mut self, input: &Input) -> Vec<Record> {
        self.now += 10;
        // Every input survives its stored form.
        let input = &Input::decode(&input.encode()).expect("it is read back");
        let turn = decide_with(&mut self.state, input, self.now, |_| unreachable!("nothing is evaluated"));
        let turn = turn.expect("legal");
        for action in turn.actions {
            match action {
                Action::Perform { instance, attempt } => self.open.push((instance, *attempt)),
                Action::Lease { lease, amount, .. } => self.requests.push((lease, amount)),
                Action::Stop { .. } => {}
            }
        }
        self.returned.extend(turn.records.iter().filter_map(|record| match record {
            Record::LeaseChanged { lease, change: LeaseChange::Returned { spent } } => Some((*lease, *spent)),
            _ => None,
        }));
        turn.records
    }

    fn grant(&mut self, tokens: Option<u64>, for_ms: u64) -> Vec<Record> {
        let (lease, _) = self.requests.pop().expect("a request");
        let notice = Payload::Known(Value::List(vec![]));
        let until = self.now + for_ms;
        // A budget of calls applies besides, so that the lease is one with limits.
        let amount = Limits([tokens, None, Some(1_000), None, None]);
        self.take(&Input::Lease { lease, change: LeaseChange::Granted { amount, until, notice } })
    }

    /// Answers that these amounts are granted, of a budget that has so much left beside them.
    fn grant_of(&mut self, amount: Limits, until: u64, left: Value) -> Vec<Record> {
        let (lease, _) = self.requests.pop().expect("a request");
        let budget = Value::map([("budget", "organization".into()), ("period", "2026-01".into()), ("left", left)]);
        let notice = Payload::Known(Value::List(if amount.is_empty() { vec![] } else { vec![budget] }));
        self.take(&Input::Lease { lease, change: LeaseChange::Granted { amount, until, notice } })
    }

    fn refuse(&mut self, asks: bool) -> Vec<Record> {
        let (lease, _) = self.requests.pop().expect("a request");
        let notice = Value::map([
            ("budget", "workflow".into()),
            ("workflow", "w1".into()),
            ("period", "2026-01".into()),
            ("asks", asks.into()),
            ("lacks", Value::List(vec!["tokens".into()])),
            ("raise", Value::map([("tokens", 500u64.into())])),
            ("raisedTo", Value::map([("tokens", 700u64.into())])),
        ]);
        self.take(&Input::Lease { lease, change: LeaseChange::Refused { notice: Payload::Known(notice) } })
    }

    fn receipt(&mut self, outcome: Outcome) -> Vec<Record> {
        let (instance, attempt) = self.open.remove(0);
        self.take(&Input::Receipt { instance, attempt: attempt.number, outcome })
    }

    fn failure(&self, step: &str) -> String {
        let found = self.state.steps.iter().find(|(instance, _)| self.state.plan.id(instance.step) == step);
        found.and_then(|(_, step)| step.failure.as_ref()).map(|failure| failure.code.clone()).unwrap_or_default()
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

#[test]
fn a_call_begins_under_a_lease_and_the_rest_is_returned() {
    let mut run = Run::new(AGENT);
    assert!(run.open.is_empty() && run.state.has_work_out(), "the store is asked before the call");
    assert_eq!(run.state.wake_at(), Some(0), "another node repeats the request");
    let (number, amount) = run.requests[0];
    assert!(number == 1 && amount.tokens > 1_000 && amount.model_calls == 1 && amount.time_ms == 900_000, "{amount:?}");
    run.grant(Some(20_000), 1_000);
    assert_eq!(run.open.len(), 1);
    run.receipt(answer(30, 12, 1));
    assert_eq!(run.open[0].1.effect, "tool", "the tool call begins under the same lease");
    run.receipt(Outcome::Done("page".into()));
    run.receipt(answer(40, 8, 0));
    assert_eq!(run.state.status(), ExecutionStatus::Completed);
    let spent = Usage { tokens: 90, cost: 70 * 1_000 + 20 * 5_000, model_calls: 2, tool_calls: 1, time_ms: 30 };
    assert_eq!((run.returned.as_slice(), run.requests.len()), (&[(1, spent)][..], 0));
    assert_eq!(run.state.counts.budgets.own.tokens, 90);
}

#[test]
fn a_used_lease_is_followed_by_another_and_none_is_exceeded() {
    let mut run = Run::new(TWO_AGENTS);
    assert_eq!(run.requests.len(), 1, "calls at a time share a request");
    let need = run.requests[0].1.tokens;
    run.grant(Some(need), 1_000);
    assert_eq!((run.open.len(), run.requests.len()), (1, 1), "the block suffices for one of them");
    assert_eq!(run.requests[0].0, 2);
    run.grant(Some(need), 1_000);
    assert_eq!(run.open.len(), 2);
    run.receipt(answer(1, 2, 0));
    assert_eq!(run.returned.len(), 1, "a lease without a call is returned at once");
    run.receipt(answer(1, 2, 0));
    assert_eq!(run.returned.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn no_call_begins_under_a_lease_that_has_ended() {
    let mut run = Run::new(AGENT);
    run.grant(None, 5_000);
    run.now += 10_000;
    run.receipt(answer(30, 12, 1));
    assert_eq!((run.open.len(), run.requests.len()), (0, 1), "the tool call needs the lease of the new period");
    assert_eq!(run.returned, [(1, Usage { tokens: 42, cost: 90_000, model_calls: 1, tool_calls: 0, time_ms: 10_010 })]);
    run.grant(None, 5_000);
    assert_eq!(run.open.len(), 1);
}

#[test]
fn a_late_or_repeated_answer_changes_nothing() {
    let mut run = Run::new(AGENT);
    let request = run.requests[0];
    run.grant(Some(20_000), 1_000);
    run.requests.push(request);
    assert_eq!(run.grant(Some(20_000), 1_000), []);
    run.requests.push((7, request.1));
    assert_eq!(run.refuse(false), []);
    assert_eq!(run.state.counts.budgets.leases.open.len(), 1);
}

#[test]
fn a_hard_limit_fails_the_step_and_an_end_awaits_no_lease() {
    let mut run = Run::new(AGENT);
    run.refuse(false);
    assert_eq!((run.failure("a").as_str(), run.state.status()), ("budget_exceeded", ExecutionStatus::Failed));
    let mut run = Run::new(AGENT);
    run.take(&Input::Cancel { reason: "user_cancelled".into(), by: "me".into() });
    assert_eq!((run.state.status(), run.state.wake_at()), (ExecutionStatus::Cancelled, None));
}

#[test]
fn a_raise_continues_the_same_call() {
    let mut run = Run::new(AGENT);
    run.refuse(true);
    assert_eq!(run.state.status(), ExecutionStatus::WaitingApproval);
    let waiting = run.state.steps.iter().find(|(_, step)| step.status == Status::WaitingApproval);
    let (instance, gate) =
        waiting.map(|(instance, step)| (instance.clone(), step.gate.clone().expect("a gate"))).expect("it waits");
    assert!(gate.prompt.contains("the workflow `w1` for 2026-01"), "{}", gate.prompt);
    let (by, reason) = ("ann".to_string(), Value::Null);
    let records = run.take(&Input::Decide { instance, gate: 1, decision: Decision::Approve, by, reason });
    let raised = raises(&run.state, &records);
    assert_eq!((raised[0].workflow.as_deref(), raised[0].period.as_str()), (Some("w1"), "2026-01"));
    assert_eq!((raised[0].by.as_str(), raised[0].to), ("ann", Usage { tokens: 700, ..Usage::default() }));
    assert_eq!(run.state.counts.budgets.execution.raised, Usage::default(), "it is no budget of the execution");
    assert_eq!((run.open.len(), run.requests.len()), (0, 1));
    run.grant(Some(20_000), 1_000);
    run.receipt(answer(1, 1, 0));
    assert_eq!(run.state.status(), ExecutionStatus::Completed);
}

#[test]
fn a_refusal_concerns_calls_of_the_same_size_only() {
    let mut run = Run::new(AGENT);
    run.grant(Some(20_000), 5_000);
    run.now += 10_000;
    run.receipt(answer(30, 12, 2));
    assert_eq!(run.requests.len(), 1, "two tool calls wait");
    run.refuse(false);
    assert_eq!(run.requests.len(), 1, "tool calls use no tokens, so they ask again");
}

#[test]
fn an_unlimited_lease_is_used_to_its_end() {
    let mut run = Run::new("steps: [{id: a, type: agent, goal: g}, {id: b, type: agent, goal: g}]");
    let until = run.now + 60_000;
    run.grant_of(Limits::default(), until, Value::Null);
    run.receipt(answer(1, 1, 0));
    assert_eq!((run.open.len(), run.requests.len()), (1, 0), "the second agent begins under the same lease");
    run.receipt(answer(1, 1, 0));
    assert_eq!((run.state.status(), run.returned.len()), (ExecutionStatus::Completed, 0));
    // A lease without budgets ends as well, and the store is asked again.
    let mut run = Run::new("steps: [{id: a, type: agent, goal: g}, {id: b, type: agent, goal: g}]");
    let until = run.now + 15;
    run.grant_of(Limits::default(), until, Value::Null);
    run.receipt(answer(1, 1, 0));
    assert_eq!((run.open.len(), run.requests.len()), (0, 1));
    run.grant(Some(20_000), 1_000);
    assert_eq!(run.state.counts.budgets.leases.open.len(), 1, "the lease that has ended is forgotten");
}

#[test]
fn a_call_is_limited_by_the_time_of_its_lease() {
    let mut run = Run::new(TWO_AGENTS);
    let until = run.now + 60_000;
    run.grant_of(Limits([None, None, None, None, Some(700)]), until, Value::Null);
    assert_eq!((run.open.len(), run.requests.len()), (1, 1), "the first call may take all of it");
    let instance = &run.open[0].0;
    assert_eq!(run.state.steps[instance].times.timeout_at, Some(run.now + 700));
    run.grant_of(Limits([None, None, None, None, Some(300)]), until, Value::Null);
    assert_eq!(run.open.len(), 2);
    run.receipt(answer(1, 1, 0));
    run.receipt(answer(1, 1, 0));
    let spent: Vec<_> = run.returned.iter().map(|(number, spent)| (*number, spent.time_ms)).collect();
    assert_eq!(spent, [(1, 20), (2, 20)]);
}

#[test]
fn an_agent_reads_its_remaining_period_budgets() {
    let mut run = Run::new("steps: [{id: a, type: agent, goal: g, tools: [budget]}]");
    let left = Value::map([("tokens", 5_000u64.into()), ("cost", 2_000_000u64.into())]);
    let until = run.now + 60_000;
    run.grant_of(Limits([Some(3_000), Some(7_000_000_000), None, None, None]), until, left);
    let call = Value::map([("id", "1".into()), ("name", "budget".into()), ("arguments", Map::new().into())]);
    let usage = Value::map([("inputTokens", 400u64.into()), ("outputTokens", 100u64.into())]);
    let output = [("text", "".into()), ("toolCalls", Value::List(vec![call])), ("usage", usage)];
    let records = run.receipt(Outcome::Done(Value::map(output)));
    let outputs = records.iter().filter_map(|record| match record {
        Record::StepCompleted { output, .. } => Some(output.value().clone()),
        _ => None,
    });
    let periods = outputs.filter_map(|output| output.get("left")?.get("periods")?.as_list().map(<[Value]>::to_vec));
    let periods: Vec<_> = periods.flatten().collect();
    let [period] = &periods[..] else { panic!("{periods:?}") };
    // The account has 5,000 left, and the lease 3,000 - 500.
    assert_eq!(period.get("left").and_then(|left| left.get("tokens")), Some(&Value::from(7_500u64)));
    // A sum beyond what one budget may be.
    let cost = period.get("left").and_then(|left| left.get("cost")?.as_number().map(|cost| cost.as_double()));
    let spent = 400.0 * 1_000.0 + 100.0 * 5_000.0;
    assert_eq!(cost, Some(2_000_007.0 - spent / 1e9));
    assert_eq!(period.get("period"), Some(&"2026-01".into()));
}

#[test]
fn a_raise_needs_the_approvers_of_the_policy() {
    let policy = EffectPolicy::read(&Value::map([("raises", Value::map([("approvals", 2u64.into())]))]));
    let policy = policy.expect("a policy").with_leases();
    let plan = compile(&read(AGENT.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan;
    let plan = policy.guarded(&Arc::new(plan), None);
    let plan = Plan::decode(&plan.encode()).expect("it is read back");
    let begins = start(&plan);
    let state = State::new(ExecutionKey([7; 16]), Arc::new(plan));
    let mut run = Run { state, now: 1_767_225_600_000, open: vec![], requests: vec![], returned: vec![] };
    run.take(&begins);
    run.refuse(true);
    let waiting = run.state.steps.iter().find(|(_, step)| step.status == Status::WaitingApproval);
    let instance = waiting.map(|(instance, _)| instance.clone()).expect("it waits");
    let mut approve = |by: &str| {
        let (instance, by) = (instance.clone(), by.to_string());
        let decide = Input::Decide { instance, gate: 1, decision: Decision::Approve, by, reason: Value::Null };
        let records = run.take(&decide);
        (raises(&run.state, &records).len(), run.requests.len())
    };
    assert_eq!([approve("ann"), approve("ann"), approve("bob")], [(0, 0), (0, 0), (1, 1)]);
    for (value, place) in [
        (Value::map([("approvals", 0u64.into())]), "policy.raises.approvals"),
        (Value::map([("approvals", 101u64.into())]), "policy.raises.approvals"),
        (Value::map([("people", 2u64.into())]), "policy.raises.people"),
    ] {
        let errors = EffectPolicy::read(&Value::map([("raises", value)])).expect_err("refused");
        assert_eq!(errors[0].path, place);
    }
}

#[test]
fn the_usage_of_each_step_is_shown() {
    let mut run = Run::new("steps: [{id: a, type: agent, goal: g, tools: [web.*]}, {id: b, type: agent, goal: g}]");
    let until = run.now + 60_000;
    run.grant_of(Limits::default(), until, Value::Null);
    run.receipt(answer(30, 12, 1));
    run.receipt(Outcome::Done("page".into()));
    run.receipt(answer(40, 8, 0));
    run.receipt(answer(5, 5, 0));
    let usage = usage_of(&run.state).expect("a usage");
    let of = |step: &str, name: &str| usage.get("steps")?.get(step)?.get(name)?.as_u64();
    assert_eq!([of("a", "tokens"), of("a", "modelCalls"), of("a", "toolCalls")], [Some(90), Some(2), Some(1)]);
    assert_eq!([of("b", "tokens"), of("b", "modelCalls"), of("b", "toolCalls")], [Some(10), Some(1), None]);
}
