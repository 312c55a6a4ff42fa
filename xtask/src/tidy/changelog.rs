//! `CHANGELOG.md` has a section for current changes: `Unreleased`, or one for the version of the workspace.

use crate::finding::Finding;
use crate::repository::Repository;

const PATH: &str = "CHANGELOG.md";
const UNRELEASED: &str = "Unreleased";

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let Some(changelog) = repository.file(PATH) else {
        return vec![Finding::of_file(PATH, "There is no changelog.")];
    };
    let version = repository.file("Cargo.toml").and_then(|manifest| version_of(&manifest.text)).unwrap_or(UNRELEASED);
    let headings = changelog.text.lines().filter_map(|line| line.strip_prefix("## "));
    let names = |heading: &str| heading.split([' ', '[', ']']).any(|word| word == version || word == UNRELEASED);
    if headings.into_iter().any(names) {
        return Vec::new();
    }
    vec![Finding::of_file(PATH, format!("No entry `## {UNRELEASED}` or `## {version}`."))]
}

/// Returns the version that the crates of the workspace inherit.
fn version_of(manifest: &str) -> Option<&str> {
    let section = manifest.lines().skip_while(|line| *line != "[workspace.package]").skip(1);
    let mut lines = section.take_while(|line| !line.starts_with('['));
    lines
        .find_map(|line| line.strip_prefix("version")?.trim_start().strip_prefix('='))
        .map(|value| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::tidy::tests::{assert_found, repository};

    #[track_caller]
    fn check(changelog: &str, accepted: bool) {
        let manifest = "[workspace.lints]\nversion = \"9.9.9\"\n[workspace.package]\nversion = \"1.2.0\"\n";
        let findings = look(&repository(&[("Cargo.toml", manifest), ("CHANGELOG.md", changelog)]));
        let expected: &[(&str, usize, &str)] = if accepted { &[] } else { &[("CHANGELOG.md", 0, "1.2.0")] };
        assert_found(findings, expected);
    }

    #[test]
    fn the_changelog_names_the_current_version() {
        check("# Changelog\n\n## Unreleased\n", true);
        check("# Changelog\n\n## [1.2.0] - 2030-01-01\n", true);
        check("# Changelog\n\n## 1.1.0\n", false);
        check("# Changelog\n\n## 9.9.9\n", false);
        check("Unreleased\n", false);
    }

    #[test]
    fn a_missing_changelog_is_a_finding() {
        assert_found(look(&repository(&[])), &[("CHANGELOG.md", 0, "no changelog")]);
    }
}
