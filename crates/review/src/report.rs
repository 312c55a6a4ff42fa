//! The report of a review: difference, findings and risk.

use mainspring_kernel::{definition::Compiled, hash::Hash, json, value::Value};

use crate::{
    change::{Change, changes},
    finding::{Finding, Risk},
    limits::{CHANGES_MAX, FINDINGS_MAX},
    matching::Pairs,
    outline::Outline,
    rules,
    text_diff::unified,
    version::Version,
};

/// A review of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Hash of the old definition.
    pub base_hash: Hash,
    /// Hash of the new definition.
    pub proposed_hash: Hash,
    /// The rating: that of the most severe finding, and low without findings.
    pub risk: Risk,
    /// The findings, the most severe first, then in the order of the definition; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// The number of all findings.
    pub findings_total: usize,
    /// The differences; at most [`CHANGES_MAX`].
    pub changes: Vec<Change>,
    /// The number of all differences.
    pub changes_total: usize,
    /// The difference of the two definitions as text.
    pub diff: String,
}

/// Compares two versions of a workflow.
pub fn review(old: Version<'_>, new: Version<'_>) -> Report {
    let (before, after) = (Outline::of(old.compiled), Outline::of(new.compiled));
    let pairs = Pairs::of(&before, &after);
    let mut changes = changes(&before, &after, &pairs);
    let mut findings = rules::all(&before, &after, &pairs);
    findings.extend(rules::text::comments(old, new, &findings));
    findings.sort_by(|a, b| {
        let order = |finding: &Finding| std::cmp::Reverse(finding.code.severity);
        (order(a), &a.path, a.code.code, &a.reason).cmp(&(order(b), &b.path, b.code.code, &b.reason))
    });
    findings.dedup();
    let risk = findings.iter().map(|finding| finding.code.severity).max().unwrap_or(Risk::Low);
    let (findings_total, changes_total) = (findings.len(), changes.len());
    findings.truncate(FINDINGS_MAX);
    changes.truncate(CHANGES_MAX);
    Report {
        base_hash: old.compiled.workflow_hash,
        proposed_hash: new.compiled.workflow_hash,
        risk,
        findings,
        findings_total,
        changes,
        changes_total,
        diff: unified(&text_of(old.compiled), &text_of(new.compiled)),
    }
}

fn text_of(compiled: &Compiled) -> String {
    let mut text = json::pretty(&compiled.normalised);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

impl Report {
    /// Returns the report as data.
    pub fn to_value(&self) -> Value {
        Value::map([
            ("baseHash", Value::from(self.base_hash.prefixed())),
            ("proposedHash", self.proposed_hash.prefixed().into()),
            ("risk", self.risk.name().into()),
            ("findings", self.findings.iter().map(Finding::to_value).collect::<Vec<_>>().into()),
            ("findingsTotal", (self.findings_total as u64).into()),
            ("changes", self.changes.iter().map(Change::to_value).collect::<Vec<_>>().into()),
            ("changesTotal", (self.changes_total as u64).into()),
            ("diff", self.diff.as_str().into()),
        ])
    }

    /// Returns the hash of the report. Equal definitions give an equal hash in every build with equal rules.
    pub fn hash(&self) -> Hash {
        Hash::of(json::canonical(&self.to_value()).as_bytes())
    }
}
