//! Warnings about parts of a definition that have no effect, or another one than their author may expect.
//!
//! A warning must be rare to be read. Each of these checks reports only what certainly holds for the definition as it is
//! written, and its help text names a change after which the warning is gone.

use super::{outline::Outline, outside, report::Report};
use crate::plan::Plan;

mod denials;
mod edges;
mod gates;
mod interruptions;
mod retries;
mod rules;
mod timeouts;
mod unreachable;

pub(super) use denials::{APPROVED, decision_of};

/// Reports the warnings of a plan. Called only if the definition has no error.
pub(super) fn check(plan: &Plan, outline: &Outline<'_>, report: &mut Report<'_>) {
    for (number, entry) in outline.entries.iter().enumerate() {
        let step = &plan.steps[number];
        retries::check(plan, step, entry, report);
        interruptions::check(step, entry, report);
        gates::check(step, entry, report);
        timeouts::check(plan, step, entry, report);
        unreachable::check_conditions(step, entry, report);
    }
    unreachable::check_blocks(plan, outline, report);
    edges::check(plan, outline, report);
    denials::check(plan, outline, report);
    rules::check(plan, report);
    outside::check_prices(&plan.constraints, outline, report);
}
