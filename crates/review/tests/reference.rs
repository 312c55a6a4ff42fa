//! The reference of findings is generated from the table of codes.

use std::{fmt::Write as _, fs, path::Path};

use mainspring_review::CODES;

const PAGE: &str = "docs/reference/findings.md";

/// Replaces the page instead of comparing it.
const UPDATE: &str = "MAINSPRING_UPDATE_GOLDEN";

fn page() -> String {
    let mut page = String::from(
        "# Findings\n\nCodes of a [review](../how-to/review-changes.md), generated from the table in `crates/review`. The risk of a change is the\nhighest severity of its findings, and `low` without findings.\n\n| code | severity | meaning | check |\n|---|---|---|---|\n",
    );
    for code in CODES {
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", code.code, code.severity.name(), code.meaning, code.check);
    }
    page
}

#[test]
fn the_reference_is_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&file, page()).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap_or_default() == page(), "{PAGE} is not the table: run with {UPDATE}=1");
}

#[test]
fn codes_are_unique_and_cover_the_required_ones() {
    let mut codes: Vec<&str> = CODES.iter().map(|code| code.code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), CODES.len());
    for required in [
        "tool_added",
        "host_added",
        "secret_added",
        "model_added",
        "agent_added",
        "workflow_added",
        "class_raised",
        "gate_removed",
        "gate_moved",
        "approvers_weakened",
        "approval_time_changed",
        "limit_raised",
        "budget_raised",
        "script_changed",
        "code_changed",
        "value_to_shell",
        "condition_changed",
        "retry_loosened",
        "timeout_loosened",
        "cleanup_removed",
        "failure_tolerated",
        "trust_cleared",
        "self_modification_enabled",
    ] {
        assert!(codes.contains(&required), "{required}");
    }
}
