//! Reads `budget` of agents and of `constraints`.

use super::{fields::Fields, keys, report::Report};
use crate::{
    budget::{Budget, Limits, NAMES, cost_of},
    diagnostic,
    limits::{BUDGET_MAX, BUDGET_WARN_PERCENT_DEFAULT},
    value::Value,
};

/// Reads an optional budget. One without a limit is an error, since it would limit nothing.
pub(super) fn budget(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Budget> {
    let fields = report.object(fields, "budget")?;
    report.known_keys(&fields, &keys::BUDGET);
    let limits = Limits(NAMES.map(|name| match name {
        "cost" => cost(&fields, report),
        // An agent may do without tools, and not without a model.
        "toolCalls" => report.whole(&fields, name, 0..=BUDGET_MAX),
        _ => report.whole(&fields, name, 1..=BUDGET_MAX),
    }));
    let asks = report.word(&fields, "onExceeded", &[("fail", false), ("ask", true)]).unwrap_or_default();
    let warn_percent = report.whole_32(&fields, "warnPercent", 1..=100).unwrap_or(BUDGET_WARN_PERCENT_DEFAULT);
    if !NAMES.iter().any(|name| fields.has(name)) {
        let help = "set one of tokens, cost, modelCalls, toolCalls and timeMs";
        report.error(diagnostic::MISSING_KEY, &fields.path, "`budget` limits nothing", help);
        return None;
    }
    (!limits.is_empty()).then_some(Budget { limits, asks, warn_percent })
}

fn cost(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<u64> {
    let value = fields.get("cost")?;
    let cost = cost_of(value).filter(|cost| *cost > 0);
    if cost.is_none() {
        let path = fields.path.key("cost");
        match value {
            Value::Number(_) => {
                let message = "`cost` has to be more than 0 and at most 1,000,000";
                let help = "write an amount in the currency of `prices`, such as 2.50";
                report.error(diagnostic::WRONG_VALUE, &path, message, help);
            }
            _ => report.wrong_kind(&path, "cost", "a number", value),
        }
    }
    cost
}
