//! The rules that find risks in the difference of two versions, by topic.

use mainspring_kernel::document::Path;

use crate::{
    finding::{Finding, FindingCode},
    matching::Pairs,
    outline::Outline,
};

mod capabilities;
mod edges;
mod gates;
mod plan;
mod retries;
mod steps;
pub(crate) mod text;

/// Two versions with their pairs of steps.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a, 'c> {
    /// The old version.
    pub old: &'a Outline<'c>,
    /// The new version.
    pub new: &'a Outline<'c>,
    /// The counterparts.
    pub pairs: &'a Pairs,
}

/// Applies all rules.
pub(crate) fn all(old: &Outline<'_>, new: &Outline<'_>, pairs: &Pairs) -> Vec<Finding> {
    let sides = Sides { old, new, pairs };
    let mut found = Vec::new();
    plan::find(sides, &mut found);
    capabilities::find(sides, &mut found);
    steps::find(sides, &mut found);
    gates::find(sides, &mut found);
    edges::find(sides, &mut found);
    text::find(sides, &mut found);
    found
}

fn finding(code: &'static FindingCode, path: Path, reason: impl Into<String>) -> Finding {
    Finding { code, path, reason: reason.into() }
}

/// Quotes a name of a definition for a reason; control and invisible characters are escaped.
fn quoted(name: &str) -> String {
    mainspring_kernel::diagnostic::quoted(name)
}
