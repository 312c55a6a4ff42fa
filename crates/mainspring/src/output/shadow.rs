//! The report of a shadow run for people: each execution with its differences, then the totals.

use mainspring_kernel::value::Value;

use super::{
    terminal::{BAD, GOOD, WAITS, bold, dim, paint, print_out},
    text::{counted, cut, one_line, shown},
};

/// Characters of a value in a difference.
const VALUE_COLUMNS: usize = 60;

/// Prints a report as [`mainspring_review::shadow::ShadowReport::to_value`] and the API return it.
pub(crate) fn print(report: &Value) {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_list).unwrap_or_default().to_vec();
    for execution in list(report, "executions") {
        let grade = text(&execution, "grade");
        print_out!("{} {}  {}", bold(&shown(&text(&execution, "executionId"))), graded(&grade), dim(&end(&execution)));
        for horizon in list(&execution, "horizon") {
            let number = horizon.get("number").and_then(Value::as_u64).unwrap_or_default();
            let attempt = if number > 1 { format!(" {number}") } else { String::new() };
            let reason = text(&horizon, "reason").replace('_', " ");
            let line = format!("{}{attempt} ({}): {reason}", text(&horizon, "step"), text(&horizon, "kind"));
            print_out!("  no answer: {}", shown(&line));
        }
        for difference in list(&execution, "differences") {
            print_difference(&difference);
        }
        let total = execution.get("differencesTotal").and_then(Value::as_u64).unwrap_or_default();
        let listed = list(&execution, "differences").len() as u64;
        if total > listed {
            print_out!(
                "  {}",
                dim(&format!("… and {}", counted(total - listed, "more difference", "more differences")))
            );
        }
        let not_reached = execution.get("notReached").and_then(Value::as_u64).unwrap_or_default();
        if not_reached > 0 {
            let steps = if not_reached == 1 { "step is" } else { "steps are" };
            print_out!("  {}", dim(&format!("{not_reached} recorded {steps} beyond the missing answers")));
        }
    }
    let counts = report.get("counts").and_then(Value::as_map).cloned().unwrap_or_default();
    let counted = counts.iter().filter(|(_, count)| count.as_u64() != Some(0));
    let counts: Vec<String> =
        counted.map(|(grade, count)| format!("{} {}", count.as_u64().unwrap_or_default(), graded(grade))).collect();
    print_out!("{}", counts.join(", "));
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

fn graded(grade: &str) -> String {
    let style = match grade {
        "same" => GOOD,
        "other_output" | "other_path" | "no_answer" => WAITS,
        _ => BAD,
    };
    paint(style, &shown(&grade.replace('_', " ")))
}

/// The recorded and the replayed end, such as `completed → failed`.
fn end(execution: &Value) -> String {
    let side = |key: &str| {
        let end = execution.get(key)?;
        let reason =
            end.get("reason").and_then(Value::as_text).map(|reason| format!(" ({reason})")).unwrap_or_default();
        Some(format!("{}{reason}", end.get("status")?.as_text()?))
    };
    match (side("recorded"), side("replayed")) {
        (None, None) => shown(&text(execution, "stop")),
        (recorded, replayed) if recorded == replayed => shown(&recorded.unwrap_or_default()),
        (recorded, replayed) => {
            let open = || format!("open at the {}", text(execution, "stop"));
            let recorded = recorded.unwrap_or_else(|| "running".into());
            shown(&format!("{recorded} → {}", replayed.unwrap_or_else(open)))
        }
    }
}

fn print_difference(difference: &Value) {
    let (step, kind) = (shown(&text(difference, "step")), shown(&text(difference, "kind")));
    let places = difference.get("places").and_then(Value::as_list).unwrap_or_default();
    let places: Vec<&str> = places.iter().filter_map(Value::as_text).filter(|place| *place != ".").collect();
    print_out!("  {kind} {} {}", bold(&step), dim(&shown(&places.join(", "))));
    for (sign, key) in [("-", "before"), ("+", "after")] {
        if let Some(value) = difference.get(key).and_then(Value::as_text) {
            print_out!("    {sign} {}", cut(&one_line(value), VALUE_COLUMNS, "…"));
        }
    }
}
