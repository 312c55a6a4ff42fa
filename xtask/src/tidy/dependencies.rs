//! Each dependency has a reason and a version in the root manifest, and no version elsewhere. A separate workspace has
//! both in its own root.

use crate::finding::Finding;
use crate::repository::{File, Repository};

const ROOT: &str = "Cargo.toml";
const SECTION: &str = "workspace.dependencies";

/// The dependency section of a workspace with a single crate.
const SECTION_OF_OWN: &str = "dependencies";

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let mut findings = repository.file(ROOT).map(|root| reasons(root, SECTION)).unwrap_or_default();
    let is_below = |file: &&File| file.path.ends_with("/Cargo.toml") && !file.is_given();
    findings.extend(repository.files.iter().filter(is_below).flat_map(|manifest| match is_root(manifest) {
        true => reasons(manifest, SECTION_OF_OWN),
        false => versions(manifest),
    }));
    findings
}

fn is_root(manifest: &File) -> bool {
    manifest.lines().any(|(_, line)| header(line) == Some("workspace"))
}

/// A group of dependencies starts after a comment and ends with an empty line or the next comment.
fn reasons(manifest: &File, of_dependencies: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut section = "";
    let mut has_reason = false;
    for (number, line) in manifest.lines() {
        if let Some(header) = header(line) {
            section = header;
            let is_unexplained = header.starts_with(&format!("{of_dependencies}.")) && !has_reason;
            findings.extend(is_unexplained.then(|| unexplained(manifest, number)));
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else if line.is_empty() {
            has_reason = false;
        } else if section == of_dependencies && begins_entry(line) && !has_reason {
            findings.push(unexplained(manifest, number));
        }
    }
    findings
}

fn unexplained(manifest: &File, line: usize) -> Finding {
    Finding::at(&manifest.path, line, "Give the reason for this dependency in a comment above it.")
}

/// Finds versions, paths and repositories outside of the root manifest.
fn versions(manifest: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    for (number, line) in manifest.lines() {
        if let Some(header) = header(line) {
            in_dependencies = header.contains("dependencies");
        } else if in_dependencies && decides_a_version(line) {
            let message = "Write `workspace = true`; versions are decided in the root manifest.";
            findings.push(Finding::at(&manifest.path, number, message));
        }
    }
    findings
}

fn decides_a_version(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else { return false };
    let is_plain = begins_entry(line) && value.trim_start().starts_with('"');
    let keys = ["version", "path", "git"];
    is_plain
        || keys.contains(&name.trim())
        || value.split(['{', ',']).any(|part| keys.iter().any(|key| has_key(part, key)))
}

fn has_key(part: &str, key: &str) -> bool {
    part.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
}

fn header(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

/// Continuation lines of a long entry are indented or begin with a bracket.
fn begins_entry(line: &str) -> bool {
    line.starts_with(|letter: char| letter.is_alphanumeric() || letter == '"')
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::tidy::tests::{assert_found, repository};

    #[track_caller]
    fn check(path: &str, text: &str, lines: &[usize]) {
        let word = if path == "crates/a/Cargo.toml" { "workspace = true" } else { "reason" };
        let expected: Vec<(&str, usize, &str)> = lines.iter().map(|line| (path, *line, word)).collect();
        assert_found(look(&repository(&[(path, text)])), &expected);
    }

    #[test]
    fn each_dependency_has_a_reason() {
        let section = "[workspace.dependencies]\n";
        check("Cargo.toml", &format!("{section}# Why.\na = \"1\"\n# Why.\nb = [\n  \"c\",\n]\n"), &[]);
        check("Cargo.toml", &format!("{section}# Why these.\na = \"1\"\nb = \"1\"\n"), &[]);
        check("Cargo.toml", &format!("{section}a = [\n  \"c\",\n]\n"), &[2]);
        check("Cargo.toml", &format!("# Of the section.\n{section}a = \"1\"\n"), &[3]);
        check("Cargo.toml", &format!("{section}# Why.\na = \"1\"\n\nb = \"1\"\n"), &[5]);
        check("Cargo.toml", "# Why.\n[workspace.dependencies.a]\nversion = \"1\"\n[workspace.dependencies.b]\n", &[4]);
        check("Cargo.toml", "[workspace]\nresolver = \"3\"\n", &[]);
    }

    #[test]
    fn a_separate_workspace_has_versions_and_reasons() {
        let own = "[package]\n[workspace]\n[dependencies]\n";
        check("fuzz/Cargo.toml", &format!("{own}# Why.\na = \"1\"\nb = {{ path = \"../b\" }}\n"), &[]);
        check("fuzz/Cargo.toml", &format!("{own}a = \"1\"\n"), &[4]);
    }

    #[test]
    fn versions_are_decided_in_one_place() {
        let member = "crates/a/Cargo.toml";
        check(
            member,
            "[package]\nversion = \"1\"\n[dependencies]\na.workspace = true\nb = { workspace = true }\n",
            &[],
        );
        check(member, "[dependencies]\na = \"1\"\nb = { version = \"1\" }\nc = { path = \"../c\" }\n", &[2, 3, 4]);
        check(member, "[dev-dependencies.a]\nversion = \"1\"\n", &[2]);
    }
}
