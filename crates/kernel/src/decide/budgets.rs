//! Budgets: reserves what a call may use before it begins, settles the reservation with its receipt, and divides what is
//! left among children.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::Decider;
use crate::{
    agent::{contents, input_estimate, tokens_of},
    apply::IllegalTransition,
    budget::{Account, Budget, Limits, NAMES, Price, TIME, Usage},
    decide_version::{BUDGETS_SINCE, CHILD_BUDGETS_SINCE, PLAUSIBLE_TOKENS_SINCE, UNSENT_CALLS_SINCE},
    effect::Outcome,
    failure::{Class, Failure},
    input::Lineage,
    instance::Instance,
    limits::{AGENT_ANSWER_TOKENS_DEFAULT, AGENT_ANSWER_TOKENS_MIN, APPROVAL_TTL_DEFAULT_MS, CALL_TOKENS_PLAUSIBLE},
    plan::{AgentPart, Decision, Loop, Over, Work},
    record::{Purpose, Record, StopReason},
    state::State,
    value::Value,
};

/// The code of a failure for lack of budget.
pub(super) const EXCEEDED: &str = "budget_exceeded";

/// The multiple of its reserved tokens up to which a receipt is believed.
const TOKENS_OF_RESERVATION_MAX: u64 = 10;

/// The most that a model call may use, apart from its time.
struct ModelNeed {
    input: u64,
    output: u64,
    price: Option<Price>,
}

impl ModelNeed {
    fn usage(&self) -> Usage {
        let cost = self.price.map_or(0, |price| price.cost(self.input, 0, self.output));
        Usage { tokens: self.input.saturating_add(self.output), cost, model_calls: 1, ..Usage::default() }
    }
}

impl Decider<'_> {
    fn has_budgets(&self) -> bool {
        self.state.decide_version >= BUDGETS_SINCE
    }

    /// The accounts of a call: that of the agent around it, if it has one, and that of the execution.
    fn accounts(&self, instance: &Instance) -> Vec<(Option<Instance>, Account)> {
        let accounts = &self.state.counts.budgets;
        let agent = instance.agent(&self.state.plan);
        let of_agent =
            agent.and_then(|agent| accounts.agents.get(&agent).map(|account| (Some(agent.clone()), *account)));
        of_agent.into_iter().chain([(None, accounts.execution)]).collect()
    }

    /// Reserves what an attempt may use, and returns the milliseconds that it may take, if they are limited. Returns
    /// `None` if the budget does not suffice; the step then waits for people or has failed.
    pub(super) fn reserve(
        &mut self,
        instance: &Instance,
        attempt: u32,
    ) -> Result<Option<Option<u64>>, IllegalTransition> {
        let accounts = self.accounts(instance);
        let Some(mut need) = self.need(instance).filter(|_| self.has_budgets()) else { return Ok(Some(None)) };
        let of_period = self.lease_need(instance, &need);
        if of_period.is_none() && accounts.iter().all(|(_, account)| account.budget.limits.is_empty()) {
            return Ok(Some(None));
        }
        let is_priced = need.model_calls == 0 || self.model_need(instance).is_some_and(|need| need.price.is_some());
        let limits_cost = accounts.iter().any(|(_, account)| account.budget.limits.has_cost()) || self.leases_cost();
        if !is_priced && limits_cost {
            let message = format!(
                "step `{}`: its budget limits the cost, and the settings have no price for its model; add it to `prices`, or limit \
                 tokens",
                self.state.plan.id(instance.step)
            );
            self.fail(instance, Failure::new(Class::Invalid, "budget_price_missing", message))?;
            return Ok(None);
        }
        // A call may take the time that is left, so only an empty budget of time refuses it.
        let left_ms = accounts.iter().filter_map(|(_, account)| account.left().0[TIME]).min();
        if let Some(left_ms) = left_ms {
            need.time_ms = need.time_ms.min(left_ms).max(1);
        }
        let lacking = accounts.iter().find_map(|(agent, account)| {
            let lacks = account.lacks(&need);
            (!lacks.is_empty()).then(|| (agent.clone(), *account, lacks))
        });
        let Some((agent, account, lacks)) = lacking else {
            if let Some(amount) = of_period {
                if !self.has_lease_for(&amount) {
                    return self.await_lease(instance, attempt, amount).map(|()| None);
                }
                need.time_ms = amount.time_ms;
            }
            let left_ms = left_ms.into_iter().chain(of_period.and_then(|_| self.leased_ms())).min();
            if let Some(left_ms) = left_ms {
                need.time_ms = need.time_ms.min(left_ms).max(1);
            }
            // A child reserves its share.
            if self.state.started_workflow(instance).is_some() {
                return Ok(Some(None));
            }
            self.record(Record::BudgetReserved { instance: instance.clone(), amount: need })?;
            return Ok(Some(left_ms.map(|_| need.time_ms)));
        };
        if account.budget.asks && self.may_try_again(instance) {
            self.ask_to_raise(instance, attempt, agent.is_some(), (&account, &need, &lacks))?;
        } else {
            let failure = self.exceeded(instance, &account, &lacks);
            self.fail(instance, failure)?;
        }
        Ok(None)
    }

    fn exceeded(&self, instance: &Instance, account: &Account, lacks: &[usize]) -> Failure {
        let names: Vec<&str> = lacks.iter().map(|place| NAMES[*place]).collect();
        let message = format!(
            "step `{}`: the budget does not suffice for the next call: {} reached its limit; raise `budget`, or set `onExceeded: ask`",
            instance.name(&self.state.plan),
            names.join(" and ")
        );
        Failure::new(Class::Policy, EXCEEDED, message).with_details(account.to_value())
    }

    /// Opens a gate that asks to raise a budget. It shows numbers only, and no text of a model.
    fn ask_to_raise(
        &mut self,
        instance: &Instance,
        attempt: u32,
        is_of_agent: bool,
        (account, need, lacks): (&Account, &Usage, &[usize]),
    ) -> Result<(), IllegalTransition> {
        let wanted = account.spent.plus(account.reserved).plus(*need).amounts();
        let (limits, own, need) = (account.limits().0, account.budget.limits.0, need.amounts());
        let mut raise = [0; NAMES.len()];
        for place in lacks {
            // A receipt may have passed the limit, and the raise has to make up for that as well.
            let missing = wanted[*place].saturating_sub(limits[*place].unwrap_or_default());
            raise[*place] = missing.max(own[*place].unwrap_or_default());
        }
        let raise = Usage::of_amounts(raise).to_value();
        let scope = if is_of_agent { "step" } else { "execution" };
        let prompt = format!(
            "Step `{}` needs more than the budget of the {scope}. Raise the budget by {} and continue?",
            instance.name(&self.state.plan),
            crate::json::compact(&raise)
        );
        let items = Value::map([
            ("attempt", attempt.into()),
            ("budget", scope.into()),
            ("call", Usage::of_amounts(need).to_value()),
            ("raise", raise),
            ("usage", account.to_value()),
        ]);
        let gate = self.state.steps.get(instance).and_then(|step| step.gate.as_ref()).map_or(1, |gate| gate.number + 1);
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate,
            question: Value::map([("prompt", Value::Text(prompt)), ("items", items)]).into(),
            approvers: Vec::new(),
            count: self.raise_approvals(),
            expires_at: self.agenda.now.saturating_add(APPROVAL_TTL_DEFAULT_MS),
            on_timeout: Decision::Deny,
            purpose: Purpose::Budget,
        })
    }

    /// The number of people who have to approve a raise.
    pub(super) fn raise_approvals(&self) -> u32 {
        self.state.plan.models.as_ref().and_then(|models| models.raise_approvals).unwrap_or(1)
    }

    /// Raises a budget by the amounts that the gate has shown, and starts the attempt that was refused.
    pub(super) fn raise_budget(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let items = self.state.steps.get(instance).and_then(|step| step.gate.as_ref()).map(|gate| gate.items.clone());
        let items = items.unwrap_or_default();
        let amount = items.get("raise").map(Usage::of_value).unwrap_or_default();
        let is_of_agent = items.get("budget").and_then(Value::as_text) == Some("step");
        let agent = if is_of_agent { instance.agent(&self.state.plan) } else { None };
        // The budget of a period is raised in the store, with the commit of the decision.
        if items.get("period").is_none() {
            self.record(Record::BudgetRaised { agent, amount })?;
        }
        if !self.may_try_again(instance) {
            return Ok(());
        }
        let attempt = items.get("attempt").and_then(Value::as_u64).and_then(|attempt| u32::try_from(attempt).ok());
        self.hand_out(instance, attempt.unwrap_or(1))
    }

    /// Answers a model that requests its remaining budget. Nothing is called.
    pub(super) fn show_budget(&mut self, instance: &Instance, input: Value) -> Result<(), IllegalTransition> {
        let of = |(agent, account): (Option<Instance>, Account)| {
            let scope = if agent.is_some() { "step" } else { "execution" };
            (!account.budget.limits.is_empty()).then(|| (scope, account.left().to_value()))
        };
        let mut left: Vec<(&str, Value)> = self.accounts(instance).into_iter().filter_map(of).collect();
        let periods = self.state.counts.budgets.leases.left();
        left.extend((!periods.is_empty()).then_some(("periods", Value::List(periods))));
        self.started(instance, input, None)?;
        self.complete(instance, Value::map([("left", Value::map(left))]))
    }

    /// Fails a step for which people have not raised the budget.
    pub(super) fn budget_denied(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let id = instance.name(&self.state.plan);
        let message = format!("step `{id}`: the budget was used up, and it was not raised");
        self.fail(instance, Failure::new(Class::Policy, EXCEEDED, message))
    }

    /// The most that an attempt may use; `None` for steps that no budget concerns.
    fn need(&self, instance: &Instance) -> Option<Usage> {
        let planned = self.state.plan.step(instance.step);
        let time_ms = planned.timeout_ms.unwrap_or(0);
        let mut need = match (self.state.plan.agent_part(instance.step), &planned.work) {
            (Some(AgentPart::Call), _) => Usage { tool_calls: 1, ..Usage::default() },
            (Some(AgentPart::Model), _) => self.model_need(instance)?.usage(),
            (None, Work::Effect { effect, .. }) if effect == "agent" => self.model_need(instance)?.usage(),
            _ => return None,
        };
        need.time_ms = if self.state.started_workflow(instance).is_some() { 0 } else { time_ms };
        Some(need)
    }

    /// Estimates the tokens and the cost of a model call.
    fn model_need(&self, instance: &Instance) -> Option<ModelNeed> {
        let plan = &self.state.plan;
        let recorded = self.state.steps.get(instance).map(|step| &step.input);
        let null = Value::Null;
        let (settings, input) = match instance.agent(plan) {
            Some(owner) => {
                let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &plan.step(owner.step).work else {
                    return None;
                };
                let turns = self.state.blocks.loops.get(&owner).map_or(&[][..], |turns| &turns.outputs);
                let settings = self.state.steps.get(&owner).map_or(&null, |step| &step.input);
                let said = self.state.blocks.loops.get(&owner).map(|turns| turns.opening.iter());
                let past = self.state.conversation_of_agent(&owner).map(|(_, conversation)| conversation.past.iter());
                let before = said.into_iter().chain(past).flatten().map(tokens_of).sum();
                let messages = self.state.messages_to_send(instance);
                let unread = if messages.is_empty() { 0 } else { tokens_of(&contents(messages)) };
                let is_bounded = self.state.decide_version >= PLAUSIBLE_TOKENS_SINCE;
                let plausible = if is_bounded { CALL_TOKENS_PLAUSIBLE } else { u64::MAX };
                (settings, input_estimate(settings, before, turns, agent, plausible).saturating_add(unread))
            }
            None => {
                let params = recorded.unwrap_or(&null);
                (params, tokens_of(params))
            }
        };
        let model = settings.get("model").and_then(Value::as_text);
        let term = plan.models.as_ref().and_then(|models| models.of(model)).copied().unwrap_or_default();
        let own = settings.get("maxTokens").and_then(Value::as_u64);
        let capped = recorded.and_then(|input| input.get("maxTokens")).and_then(Value::as_u64);
        let output = capped.or(own).or(term.max_tokens).unwrap_or(AGENT_ANSWER_TOKENS_DEFAULT);
        Some(ModelNeed { input, output, price: term.price })
    }

    /// Returns the maximum tokens of an answer if the budget leaves less than the settings allow, and still enough for an
    /// answer.
    pub(super) fn answer_cap(&self, instance: &Instance) -> Option<u64> {
        let need = self.model_need(instance).filter(|_| self.has_budgets())?;
        let of_account = |account: &Account| {
            let left = account.left().0;
            let by_tokens = left[0].map(|left| left.saturating_sub(need.input));
            let by_cost = left[1]
                .zip(need.price.filter(|price| price.output > 0))
                .map(|(left, price)| left.saturating_sub(price.cost(need.input, 0, 0)) / price.output);
            by_tokens.into_iter().chain(by_cost).min()
        };
        let most = self.accounts(instance).iter().filter_map(|(_, account)| of_account(account)).min()?;
        (most < need.output && most >= AGENT_ANSWER_TOKENS_MIN.min(need.output)).then_some(most)
    }

    /// Settles the reservation of an attempt with what it has used.
    pub(super) fn settle(&mut self, instance: &Instance, outcome: &Outcome) -> Result<(), IllegalTransition> {
        if !self.has_budgets() {
            return Ok(());
        }
        let reserved = self.state.counts.budgets.reserved.get(instance).copied();
        // A workflow that a model calls is a tool call as well.
        let tool_calls = u64::from(self.state.plan.agent_part(instance.step) == Some(AgentPart::Call));
        let own = Usage { tool_calls, ..Usage::default() };
        let used = match outcome {
            Outcome::ChildWithUsage { usage, raised, .. } => {
                if !raised.is_zero() {
                    self.record(Record::BudgetRaised { agent: None, amount: **raised })?;
                }
                usage.plus(own)
            }
            // A quarantined child can be released and continue, so its share stays reserved.
            Outcome::Failed(failure) if failure.code == super::CHILD_QUARANTINED => return Ok(()),
            Outcome::Child { .. } | Outcome::Cancelled(_) => reserved.unwrap_or(own),
            // The child has not started.
            _ if self.state.started_workflow(instance).is_some() => own,
            outcome => match self.used(instance, outcome, reserved) {
                Some(used) => used,
                None => return Ok(()),
            },
        };
        if used.is_zero() && reserved.is_none() {
            return Ok(());
        }
        self.record(Record::BudgetSettled { instance: instance.clone(), amount: used })?;
        self.warn(instance)
    }

    /// Returns the amounts that a model call or a tool call has used. A call whose answer is lost counts as its
    /// reservation.
    fn used(&self, instance: &Instance, outcome: &Outcome, reserved: Option<Usage>) -> Option<Usage> {
        let need = self.need(instance)?;
        let step = self.state.steps.get(instance)?;
        let time_ms = self.agenda.now.saturating_sub(step.times.handed_out_at);
        let lost = Usage { time_ms, ..reserved.unwrap_or(Usage { tokens: 0, cost: 0, ..need }) };
        if need.tool_calls > 0 {
            return Some(Usage { tool_calls: 1, time_ms, ..Usage::default() });
        }
        Some(match outcome {
            Outcome::Done(output) => {
                let number = |key: &str| output.get("usage").and_then(|usage| usage.get(key)).and_then(Value::as_u64);
                let [input, answer, cached] = ["inputTokens", "outputTokens", "cachedInputTokens"].map(number);
                let (input, answer) = (input.unwrap_or_default(), answer.unwrap_or_default());
                if input == 0 && answer == 0 {
                    // The provider does not say what it counted.
                    return Some(lost);
                }
                let most = reserved.unwrap_or(need);
                if self.is_impossible(input.saturating_add(answer), most.tokens) {
                    return Some(Usage { time_ms, ..most });
                }
                let price = self.model_need(instance)?.price;
                let cost = price.map_or(0, |price| price.cost(input, cached.unwrap_or_default(), answer));
                Usage { tokens: input.saturating_add(answer), cost, model_calls: 1, tool_calls: 0, time_ms }
            }
            Outcome::Failed(failure) if step.stopping != Some(StopReason::Timeout) && self.is_free(failure) => {
                Usage { time_ms, ..Usage::default() }
            }
            _ => lost,
        })
    }

    /// True for a number of tokens that no call of this size uses. The tools of tool servers are not part of the estimate, so
    /// a call may use many times its reservation.
    fn is_impossible(&self, tokens: u64, reserved: u64) -> bool {
        let most = reserved.saturating_mul(TOKENS_OF_RESERVATION_MAX).max(CALL_TOKENS_PLAUSIBLE);
        self.state.decide_version >= PLAUSIBLE_TOKENS_SINCE && tokens > most
    }

    /// True if a model call certainly used nothing.
    fn is_free(&self, failure: &Failure) -> bool {
        let is_unsent = || self.state.decide_version >= UNSENT_CALLS_SINCE && is_unsent(failure);
        is_free(failure) || is_unsent()
    }

    /// Records a warning once for each account that is near a limit.
    fn warn(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        for (agent, account) in self.accounts(instance) {
            if !account.is_warned && account.is_near_limit() {
                self.record(Record::BudgetWarned { agent, usage: account.spent })?;
            }
        }
        Ok(())
    }

    /// Reserves the share of a child, and returns the budget of the child.
    pub(super) fn give_budget(
        &mut self,
        instance: &Instance,
        waits: bool,
    ) -> Result<Option<Budget>, IllegalTransition> {
        let accounts: Vec<Account> = self.accounts(instance).into_iter().map(|(_, account)| account).collect();
        let own_call = self.own_call(instance);
        let Some(account) = accounts.iter().find(|account| !account.budget.limits.is_empty()) else {
            if self.needs_leases() && !own_call.is_zero() {
                self.record(Record::BudgetReserved { instance: instance.clone(), amount: own_call })?;
            }
            return Ok(None);
        };
        if !self.has_budgets() {
            return Ok(None);
        }
        let budget = account.budget;
        let places = self.places_beside(instance, waits, true).max(1);
        let share = accounts.iter().fold(Limits::default(), |share, account| {
            let (limits, left, own_call) = (account.limits().0, account.left().0, own_call.amounts());
            let own = core::array::from_fn(|place| {
                let left = left[place]?.saturating_sub(own_call[place]);
                Some((limits[place]? / places).max(1).min(left))
            });
            share.min(Limits(own))
        });
        let amount = Usage::of_amounts(share.0.map(Option::unwrap_or_default)).plus(own_call);
        self.record(Record::BudgetReserved { instance: instance.clone(), amount })?;
        Ok(Some(Budget { limits: share, ..budget }))
    }

    /// The part of a share that the child does not get: a workflow that a model calls is a tool call as well.
    pub(super) fn own_call(&self, instance: &Instance) -> Usage {
        let is_call = self.state.plan.agent_part(instance.step) == Some(AgentPart::Call);
        let counts = is_call && self.state.decide_version >= CHILD_BUDGETS_SINCE;
        Usage { tool_calls: u64::from(counts), ..Usage::default() }
    }

    /// Returns the lineage with the budget of the execution. The definition of a child may tighten the share that its
    /// parent gave it.
    pub(super) fn with_budget(&self, lineage: Lineage) -> Lineage {
        let own = self.state.plan.constraints.budget.filter(|_| self.has_budgets());
        let budget = match (own, lineage.budget) {
            (Some(own), Some(given)) => {
                let asks = own.asks && (given.asks || self.state.decide_version < CHILD_BUDGETS_SINCE);
                Some(Budget { limits: own.limits.min(given.limits), asks, ..own })
            }
            (own, given) => own.or(given),
        };
        Lineage { budget, ..lineage }
    }

    /// The failure of an agent with a budget in an execution of older rules.
    pub(super) fn needs_newer_rules(&self, has_own: bool) -> Option<Failure> {
        let has_budget = has_own || self.state.plan.constraints.budget.is_some();
        let message: String = "budgets need a newer release on every node; upgrade the other nodes".into();
        (has_budget && !self.has_budgets()).then(|| Failure::new(Class::Unavailable, "budgets_need_upgrade", message))
    }
}

/// True for a failure after which the provider charges nothing: the request was not accepted. Any other one counts as
/// what was reserved.
fn is_free(failure: &Failure) -> bool {
    const NOT_ACCEPTED: [&str; 6] = [
        "model_unknown",
        "model_key_missing",
        "model_request_invalid",
        "model_not_authorized",
        "model_request_rejected",
        "model_context_too_long",
    ];
    const NOT_CONNECTED: [&str; 5] =
        ["http_dns_failed", "http_connect_failed", "http_connect_timeout", "http_tls_failed", "http_address_refused"];
    matches!(failure.class, Class::RateLimited)
        || failure.code == "model_unavailable"
        || NOT_ACCEPTED.contains(&failure.code.as_str())
        || NOT_CONNECTED.contains(&failure.code.as_str())
}

/// True for a failure of a model call before its request: the executor first asks tool servers for the tools of the
/// request, and reads the key of the model. A model answers with no code of these origins.
fn is_unsent(failure: &Failure) -> bool {
    let origins = ["tool_", "secret_"];
    origins.iter().any(|origin| failure.code.starts_with(origin)) || failure.code == "http_parameter_invalid"
}

/// Returns the usage of the execution and its children for views, as [`Account::to_value`] and by step; `None` for one
/// without agents and budgets.
pub fn usage_of(state: &State) -> Option<Value> {
    let account = &state.counts.budgets.execution;
    let is_silent = account.spent.is_zero() && account.reserved.is_zero() && account.budget.limits.is_empty();
    if is_silent {
        return None;
    }
    let mut usage = account.to_value();
    let steps = &state.counts.budgets.steps;
    if let (Value::Map(map), false) = (&mut usage, steps.is_empty()) {
        let steps = steps.iter().map(|(step, used)| (state.plan.id(*step).to_string(), used.to_value()));
        map.insert("steps".into(), Value::Map(steps.collect()));
    }
    Some(usage)
}
