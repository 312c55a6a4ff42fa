//! Changes of the accounts of an organization, which a commit makes together with the frames that they follow from.

use mainspring_kernel::{decide::raises, record::Record};
use mainspring_store::AccountChange;

use super::entry::LoadedExecution;
use crate::{audit, evaluator::tenant_of, period_budgets::Period};

/// Adds what a turn changes to the draft of its commit.
pub(super) fn note(loaded: &mut LoadedExecution, records: &[Record], now: u64) {
    let state = &loaded.state;
    let own = state.counts.budgets.own;
    let used = own.minus(std::mem::replace(&mut loaded.before_turn.used, own));
    let returned = records.iter().filter_map(|record| match record {
        Record::LeaseChanged { lease, change } => Some((*lease, change.returned()?)),
        _ => None,
    });
    let returned: Vec<_> = returned.collect();
    let raised = raises(state, records);
    let needs_leases = state.plan.models.as_ref().is_some_and(|models| models.needs_leases);
    let is_end = needs_leases && state.end.ended_at.is_some();
    if used.is_zero() && returned.is_empty() && raised.is_empty() && !is_end {
        return;
    }
    loaded.draft.audit.extend(raised.iter().filter_map(|raise| audit::of_raise(state, raise)));
    let account = loaded.draft.receipts.account.get_or_insert_with(|| {
        Box::new(AccountChange {
            organization: tenant_of(state).to_owned(),
            workflow: state.workflow().unwrap_or_default().to_owned(),
            day: Period::Day.at(now),
            ..AccountChange::default()
        })
    });
    account.used = account.used.plus(used);
    account.returned.extend(returned);
    account.raised.extend(raised);
    account.is_end |= is_end;
}
