//! A skeleton as a scenario file in YAML.

use mainspring_kernel::{
    definition::convert::text,
    value::{Map, Value},
};

use super::case::{Case, Skeleton};

/// The fields of a case in reading order.
const ORDER: [&str; 8] = ["input", "variables", "policy", "classes", "prices", "workflows", "effects", "inbox"];

/// The fields of an expectation in reading order.
const EXPECT_ORDER: [&str; 7] = ["status", "outcome", "output", "error_contains", "steps", "call_count", "calls"];

/// Writes a skeleton. `definition` is the path of the workflow from the folder of the scenario, and `comment` the lines at
/// the top.
pub fn yaml(skeleton: &Skeleton, definition: &str, comment: &[String]) -> String {
    let mut out: String = comment.iter().map(|line| format!("# {line}\n")).collect();
    for line in &skeleton.uncovered {
        out.push_str(&format!("# Not covered: {}\n", line.replace(['\n', '\r'], " ")));
    }
    out.push_str("cases:\n");
    for (number, case) in skeleton.cases.iter().enumerate() {
        out.push_str(if number > 0 { "\n" } else { "" });
        write_case(case, definition, &mut out);
    }
    out
}

fn write_case(case: &Case, definition: &str, out: &mut String) {
    let mut lines = field("name", &case.name.as_str().into());
    lines.push_str(&field("definition", &definition.into()));
    write_ordered(&case.fields, &ORDER, "", &mut lines);
    lines.push_str("expect:\n");
    write_ordered(&case.expect, &EXPECT_ORDER, "  ", &mut lines);
    for (number, line) in lines.lines().enumerate() {
        let margin = match (number, line) {
            (0, _) => "  - ",
            (_, "") => "",
            _ => "    ",
        };
        out.push_str(&format!("{margin}{line}\n"));
    }
}

fn write_ordered(map: &Map, order: &[&str], margin: &str, out: &mut String) {
    let rest = map.keys().map(String::as_str).filter(|key| !order.contains(key));
    for key in order.iter().copied().chain(rest) {
        if let Some(value) = map.get(key) {
            for line in field(key, value).lines() {
                out.push_str(&format!("{}{line}\n", if line.is_empty() { "" } else { margin }));
            }
        }
    }
}

fn field(key: &str, value: &Value) -> String {
    text::yaml(&Value::map([(key, value.clone())]))
}
