//! The report of a review for people: findings, then differences, then the risk.

use mainspring_kernel::{json::compact, value::Value};

use super::{
    terminal::{BAD, GOOD, WAITS, bold, dim, paint, print_out},
    text::{cut, one_line, paragraph, shown},
};

/// Characters of a value in a difference.
const VALUE_COLUMNS: usize = 60;

/// Prints a report as [`mainspring_review::Report::to_value`] and the API return it.
pub(crate) fn print(report: &Value) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    let list = |key: &str| report.get(key).and_then(Value::as_list).unwrap_or_default();
    for finding in list("findings") {
        let (code, severity) = (text(finding, "code"), text(finding, "severity"));
        print_out!("{} {} {}", rated(&severity), bold(&shown(&code)), dim(&shown(&text(finding, "path"))));
        print_out!("  {}", paragraph(&text(finding, "reason")));
    }
    left_out(report, "findings", "findingsTotal");
    if !list("findings").is_empty() && !list("changes").is_empty() {
        print_out!("");
    }
    for change in list("changes") {
        let field = change.get("field").and_then(Value::as_text).map(|field| format!(".{field}")).unwrap_or_default();
        let what = text(change, "kind").replace('_', " ");
        let step = change.get("step").and_then(Value::as_text).map(|step| format!(" {step}")).unwrap_or_default();
        print_out!("{}{}{} {}", shown(&what), bold(&shown(&step)), shown(&field), dim(&shown(&text(change, "path"))));
        for (sign, key) in [("-", "before"), ("+", "after")] {
            if let Some(value) = change.get(key) {
                print_out!("  {sign} {}", brief(value));
            }
        }
    }
    left_out(report, "changes", "changesTotal");
    if list("changes").is_empty() {
        print_out!("{}", dim("no difference in meaning"));
    }
    print_out!("risk: {}", rated(&text(report, "risk")));
}

/// Colors the name of a risk.
pub(crate) fn rated(risk: &str) -> String {
    let style = match risk {
        "high" => BAD,
        "medium" => WAITS,
        _ => GOOD,
    };
    paint(style, &shown(risk))
}

fn brief(value: &Value) -> String {
    let text = value.as_text().map_or_else(|| compact(value), String::from);
    cut(&one_line(&text), VALUE_COLUMNS, "…")
}

fn left_out(report: &Value, list: &str, total: &str) {
    let shown = report.get(list).and_then(Value::as_list).unwrap_or_default().len() as u64;
    let total = report.get(total).and_then(Value::as_u64).unwrap_or(shown);
    if total > shown {
        print_out!("{}", dim(&format!("… and {} more {list}", total - shown)));
    }
}
