//! Leases of the budgets for a day or a month: requests one before a call that no lease covers, and returns the rest.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Action, Decider, budgets::EXCEEDED};
use crate::{
    apply::IllegalTransition,
    budget::{NAMES, Usage},
    decide_version::LEASES_SINCE,
    failure::{Class, Failure},
    instance::Instance,
    leases::{Lease, LeaseChange, Refusal, WaitingCall},
    limits::{AGENT_TIMEOUT_DEFAULT_MS, APPROVAL_TTL_DEFAULT_MS},
    plan::Decision,
    record::{Purpose, Record},
    state::State,
    value::{Map, Value},
};

/// The keys of a refusal that a gate repeats.
const SHOWN: [&str; 8] = ["budget", "period", "workflow", "workflowName", "raise", "raisedTo", "limits", "edition"];

impl Decider<'_> {
    /// True if the calls of this execution need leases.
    pub(super) fn needs_leases(&self) -> bool {
        let is_set = self.state.plan.models.as_ref().is_some_and(|models| models.needs_leases);
        is_set && self.state.decide_version >= LEASES_SINCE
    }

    /// Returns the amounts for which a call needs a lease. A child leases for its own calls.
    pub(super) fn lease_need(&self, instance: &Instance, need: &Usage) -> Option<Usage> {
        let is_child = self.state.started_workflow(instance).is_some();
        let mut amount = if is_child { self.own_call(instance) } else { *need };
        if !is_child && amount.time_ms == 0 {
            amount.time_ms = AGENT_TIMEOUT_DEFAULT_MS;
        }
        (self.needs_leases() && !amount.is_zero()).then_some(amount)
    }

    /// The milliseconds that a call under the last lease may take, if a budget of a period limits them.
    pub(super) fn leased_ms(&self) -> Option<u64> {
        self.state.counts.budgets.leases.open.last().and_then(Lease::left_ms)
    }

    /// True if a budget of a period limits the cost.
    pub(super) fn leases_cost(&self) -> bool {
        self.state.counts.budgets.leases.open.last().is_some_and(|lease| lease.granted.has_cost())
    }

    /// True if the last lease covers a call.
    pub(super) fn has_lease_for(&self, amount: &Usage) -> bool {
        let now = self.agenda.now;
        self.state.counts.budgets.leases.open.last().is_some_and(|lease| lease.covers(amount, now))
    }

    /// Lets a call wait for a lease, and requests the lease unless another call has.
    pub(super) fn await_lease(
        &mut self,
        instance: &Instance,
        attempt: u32,
        amount: Usage,
    ) -> Result<(), IllegalTransition> {
        let leases = &self.state.counts.budgets.leases;
        let is_new = leases.requested.is_none();
        let lease = leases.last.saturating_add(u32::from(is_new));
        self.record(Record::LeaseAwaited { instance: instance.clone(), attempt, lease, amount })?;
        if is_new {
            let (root, at) = (self.state.root(), self.agenda.now);
            self.agenda.turn.actions.push(Action::Lease { lease, amount, root, at });
        }
        Ok(())
    }

    /// Processes the answer to a request. It counts once, and only for the last request.
    pub(super) fn lease_answered(&mut self, lease: u32, change: &LeaseChange) -> Result<(), IllegalTransition> {
        let leases = &self.state.counts.budgets.leases;
        let is_answer = !matches!(change, LeaseChange::Returned { .. });
        if leases.requested.is_none() || leases.last != lease || !is_answer {
            return Ok(());
        }
        self.record(Record::LeaseChanged { lease, change: change.clone() })
    }

    /// Returns a call whose lease was answered. Calls that are about to be canceled are left out.
    pub(super) fn next_released(&self) -> Option<(Instance, WaitingCall)> {
        let leases = &self.state.counts.budgets.leases;
        let is_answered = |call: &WaitingCall| leases.requested.is_none() || call.lease < leases.last;
        let mut waiting = leases.waiting.iter();
        let found = waiting.find(|(instance, call)| is_answered(call) && self.may_try_again(instance));
        found.map(|(instance, call)| (instance.clone(), call.clone()))
    }

    /// Starts a call whose lease was granted. A call that the refused budget concerns fails or waits for people.
    pub(super) fn take_up(&mut self, instance: &Instance, call: WaitingCall) -> Result<(), IllegalTransition> {
        let refusal = self.state.counts.budgets.leases.refusal.clone();
        match refusal.filter(|refusal| refusal.lease == call.lease && concerns(refusal, &call.amount)) {
            None => self.hand_out(instance, call.attempt),
            Some(refusal) if refusal.notice.get("asks").and_then(Value::as_bool) == Some(true) => {
                self.ask_to_raise_period(instance, &call, &refusal.notice)
            }
            Some(refusal) => {
                let failure = self.period_exceeded(instance, refusal.notice);
                self.fail(instance, failure)
            }
        }
    }

    fn period_exceeded(&self, instance: &Instance, notice: Value) -> Failure {
        let how = match notice.get("source").and_then(Value::as_text) {
            Some("settings") => "raise the limit in `budgets` of the settings file",
            _ => "raise the limit (`mainspring budgets set`)",
        };
        let message = format!(
            "step `{}`: the budget of {} does not suffice for the next call: {} reached its limit; {how}, or wait for the next period",
            instance.name(&self.state.plan),
            subject(&notice),
            words(&notice, "lacks").join(" and ")
        );
        Failure::new(Class::Policy, EXCEEDED, message).with_details(notice)
    }

    /// Opens a gate that asks to raise the budget of a period. It shows numbers only, and no text of a model.
    fn ask_to_raise_period(
        &mut self,
        instance: &Instance,
        call: &WaitingCall,
        notice: &Value,
    ) -> Result<(), IllegalTransition> {
        let raise = notice.get("raise").cloned().unwrap_or_default();
        let prompt = format!(
            "Step `{}` needs more than the budget of {}. Raise the budget by {} and continue?",
            instance.name(&self.state.plan),
            subject(notice),
            crate::json::compact(&raise)
        );
        let mut items: Map =
            SHOWN.iter().filter_map(|key| Some(((*key).to_string(), notice.get(key)?.clone()))).collect();
        items.insert("attempt".into(), call.attempt.into());
        items.insert("call".into(), call.amount.to_value());
        items.insert("usage".into(), notice.get("used").cloned().unwrap_or_default());
        let gate = self.state.steps.get(instance).and_then(|step| step.gate.as_ref()).map_or(1, |gate| gate.number + 1);
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate,
            question: Value::map([("prompt", Value::Text(prompt)), ("items", Value::Map(items))]).into(),
            approvers: Vec::new(),
            count: self.raise_approvals(),
            expires_at: self.agenda.now.saturating_add(APPROVAL_TTL_DEFAULT_MS),
            on_timeout: Decision::Deny,
            purpose: Purpose::Budget,
        })
    }

    /// Returns the leases under which no call is in progress; at the end of the execution, all of them. A lease without
    /// limits holds nothing that could be returned.
    pub(super) fn return_leases(&mut self, is_end: bool) -> Result<(), IllegalTransition> {
        let leases = &self.state.counts.budgets.leases;
        if leases.open.is_empty() || self.state.end.ended_at.is_some() {
            return Ok(());
        }
        let limited = leases.open.iter().filter(|lease| !lease.is_unlimited());
        let over = limited.filter(|lease| is_end || lease.reserved.is_zero());
        let over: Vec<_> = over.map(|lease| (lease.number, lease.spent.plus(lease.reserved))).collect();
        for (lease, spent) in over {
            self.record(Record::LeaseChanged { lease, change: LeaseChange::Returned { spent } })?;
        }
        Ok(())
    }
}

/// True if a refused request says that a call of this amount does not fit either.
fn concerns(refusal: &Refusal, amount: &Usage) -> bool {
    let (refused, amount) = (refusal.amount.amounts(), amount.amounts());
    let lacks = words(&refusal.notice, "lacks");
    let mut places = (0..NAMES.len()).filter(|place| lacks.is_empty() || lacks.contains(&NAMES[*place]));
    places.any(|place| amount[place] > 0 && amount[place] >= refused[place])
}

fn words<'v>(notice: &'v Value, key: &str) -> Vec<&'v str> {
    notice.get(key).and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text).collect()
}

/// The budget of a refusal as people read it.
fn subject(notice: &Value) -> String {
    let text = |key: &str| notice.get(key).and_then(Value::as_text);
    let of = match (text("budget"), text("workflowName").or(text("workflow"))) {
        (Some("workflow"), Some(workflow)) => format!("the workflow `{workflow}`"),
        _ => "the organization".into(),
    };
    format!("{of} for {}", text("period").unwrap_or("its period"))
}

/// A raise of the budget of a period, which a person has approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodRaise {
    /// User id of the person.
    pub by: String,
    /// The workflow of the budget; `None` for the budget of the organization.
    pub workflow: Option<String>,
    /// The day or month, as `2026-11-26` or `2026-11`.
    pub period: String,
    /// The sum of all raises of the period from now on. A second approval of the same question changes nothing.
    pub to: Usage,
    /// The edition of the budget that the question named. The raise has no effect on another one.
    pub edition: u64,
}

/// Returns the raises that these records of a turn approve. The store applies them in the commit of the turn.
pub fn raises(state: &State, records: &[Record]) -> Vec<PeriodRaise> {
    let approved = records.iter().filter_map(|record| match record {
        Record::GateDecided { instance, gate, decision: Decision::Approve, by: Some(by), .. } => {
            Some((instance, *gate, by))
        }
        _ => None,
    });
    let raise = |(instance, number, by): (&Instance, u32, &String)| {
        let gate = state.steps.get(instance)?.gate.as_ref();
        let gate = gate.filter(|gate| gate.number == number && gate.purpose == Purpose::Budget && !gate.is_open)?;
        let text = |key: &str| gate.items.get(key).and_then(Value::as_text).map(ToString::to_string);
        let to = gate.items.get("raisedTo").map(Usage::of_shown)?;
        let edition = text("edition").and_then(|edition| u64::from_str_radix(&edition, 16).ok()).unwrap_or_default();
        Some(PeriodRaise { by: by.clone(), workflow: text("workflow"), period: text("period")?, to, edition })
    };
    approved.filter_map(raise).collect()
}
