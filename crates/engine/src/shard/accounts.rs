//! Changes of the accounts of an organization, which a commit makes together with the frames that they follow from.

use std::collections::BTreeMap;

use mainspring_kernel::{budget::Usage, decide::raises, instance::Instance, record::Record, state::State};
use mainspring_store::{AccountChange, LeaseUse};

use super::{
    entry::LoadedExecution,
    leased_calls::{LeasedCall, calls_of},
};
use crate::{audit, evaluator::tenant_of, period_budgets::Period};

/// Adds what a turn changes to the draft of its commit.
pub(super) fn note(loaded: &mut LoadedExecution, records: &[Record], now: u64) {
    let state = &loaded.state;
    let own = state.counts.budgets.own;
    let used = own.minus(std::mem::replace(&mut loaded.before_turn.used, own));
    let calls = std::mem::replace(&mut loaded.before_turn.calls, calls_of(state));
    let (days, leases) = uses(state, records, &calls, (used, now));
    let raised = raises(state, records);
    let needs_leases = state.plan.models.as_ref().is_some_and(|models| models.needs_leases);
    let is_end = needs_leases && state.end.ended_at.is_some();
    if days.is_empty() && leases.is_empty() && raised.is_empty() && !is_end {
        return;
    }
    loaded.draft.audit.extend(raised.iter().filter_map(|raise| audit::of_raise(state, raise)));
    let account = loaded.draft.receipts.account.get_or_insert_with(|| {
        Box::new(AccountChange {
            organization: tenant_of(state).to_owned(),
            workflow: state.workflow().unwrap_or_default().to_owned(),
            ..AccountChange::default()
        })
    });
    for (day, used) in days {
        let of_day = account.used.entry(day).or_default();
        *of_day = of_day.plus(used);
    }
    for (lease, LeaseUse { settled, returned }) in leases {
        let known = account.leases.entry(lease).or_default();
        *known = LeaseUse { settled: known.settled.plus(settled), returned: returned.or(known.returned) };
    }
    account.raised.extend(raised);
    account.is_end |= is_end;
}

/// Returns the used amounts by day, and the use of leases. A call counts for the day on which it began.
fn uses(
    state: &State,
    records: &[Record],
    calls: &BTreeMap<Instance, LeasedCall>,
    (mut used, now): (Usage, u64),
) -> (BTreeMap<String, Usage>, BTreeMap<u32, LeaseUse>) {
    let (mut days, mut leases) = (BTreeMap::<String, Usage>::new(), BTreeMap::<u32, LeaseUse>::new());
    let mut began_at = now;
    for record in records {
        match record {
            Record::BudgetSettled { instance, amount } => match calls.get(instance) {
                Some(call) => {
                    let own = call.own(*amount);
                    used = used.minus(own);
                    let of_day = days.entry(call.day.clone()).or_default();
                    *of_day = of_day.plus(own);
                    if let Some(lease) = call.lease {
                        let of_lease = leases.entry(lease).or_default();
                        of_lease.settled = of_lease.settled.plus(own);
                    }
                }
                None => began_at = state.steps.get(instance).map_or(now, |step| step.times.handed_out_at),
            },
            Record::LeaseChanged { lease, change } => {
                if let Some(amount) = change.returned() {
                    leases.entry(*lease).or_default().returned = Some(amount);
                }
            }
            _ => {}
        }
    }
    // Calls of executions without leases.
    if !used.is_zero() {
        let of_day = days.entry(Period::Day.at(began_at)).or_default();
        *of_day = of_day.plus(used);
    }
    days.retain(|_, used| !used.is_zero());
    (days, leases)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mainspring_kernel::{
        definition::{Syntax, compile, read},
        key::ExecutionKey,
        time::parse_rfc3339,
    };

    use super::*;

    #[test]
    fn a_call_across_midnight_counts_for_the_day_of_its_lease() {
        let definition = "name: n\nsteps: [{id: a, type: agent, goal: g}]";
        let plan = compile(&read(definition.as_bytes(), Syntax::Yaml).unwrap()).unwrap().plan;
        let state = State::new(ExecutionKey([1; 16]), Arc::new(plan));
        let instance = Instance::of_step(0);
        let amount = Usage { tokens: 30, model_calls: 1, time_ms: 900, ..Usage::default() };
        let reserved = Usage { tokens: 50, model_calls: 1, time_ms: 1_000, ..Usage::default() };
        let call = LeasedCall { lease: Some(3), reserved, day: "2026-11-26".into() };
        let records = [Record::BudgetSettled { instance: instance.clone(), amount }];
        let now = parse_rfc3339("2026-11-27T00:00:05Z").unwrap();
        let (days, leases) = uses(&state, &records, &BTreeMap::from([(instance, call)]), (amount, now));
        assert_eq!(days, BTreeMap::from([("2026-11-26".to_owned(), amount)]));
        assert_eq!(leases, BTreeMap::from([(3, LeaseUse { settled: amount, returned: None })]));
        // Without a lease and without a step, the day of the receipt is all that is known.
        let (days, leases) = uses(&state, &[], &BTreeMap::new(), (amount, now));
        assert_eq!((days, leases.len()), (BTreeMap::from([("2026-11-27".to_owned(), amount)]), 0));
    }
}
