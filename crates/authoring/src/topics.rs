//! The topics of `mainspring explain`: a text and an example for each, one file each in `topics/`.
//!
//! The comment at the top of a file is the text, of which the first line is the summary. The rest is the example, which
//! a test compiles, or runs if it is a scenario.

use include_dir::{Dir, include_dir};

static FOLDER: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/topics");

/// Other names of topics, which authors try first.
const ALIASES: &[(&str, &str)] = &[
    ("4 ways", "scenario"),
    ("abort", "failures"),
    ("absent_steps", "scenario"),
    ("action", "notations"),
    ("actions", "notations"),
    ("after", "scenario"),
    ("approvals", "approval"),
    ("ask", "policy"),
    ("branch", "conditional"),
    ("budgets", "budget"),
    ("call_count", "scenario"),
    ("calls", "scenario"),
    ("cancel", "scenario"),
    ("catch", "failures"),
    ("child", "subworkflow"),
    ("children", "subworkflow"),
    ("class", "retry"),
    ("classes", "settings"),
    ("cleanup", "finally"),
    ("condition", "conditions"),
    ("config", "retry"),
    ("context", "references"),
    ("cost", "budget"),
    ("ctx", "references"),
    ("dataflow", "notations"),
    ("defer", "finally"),
    ("delay", "sleep"),
    ("delays", "scenario"),
    ("denied", "approval"),
    ("deny", "approval"),
    ("duration", "scenario"),
    ("echo", "scenario"),
    ("edge", "edges"),
    ("effects", "scenario"),
    ("ensure", "finally"),
    ("error", "failures"),
    ("error_contains", "scenario"),
    ("errors", "failures"),
    ("expect", "scenario"),
    ("fail", "failures"),
    ("failure", "failures"),
    ("for", "loop"),
    ("foreach", "loop"),
    ("function", "code"),
    ("gate", "approval"),
    ("graph", "edges"),
    ("hang", "scenario"),
    ("if", "conditional"),
    ("inbox", "scenario"),
    ("input_contains", "scenario"),
    ("javascript", "code"),
    ("join", "edges"),
    ("loops", "loop"),
    ("mainspring_config", "settings"),
    ("mainspring_http_allow", "http"),
    ("map", "loop"),
    ("mcp", "settings"),
    ("mcpservers", "settings"),
    ("mock", "scenario"),
    ("models", "settings"),
    ("modes", "scenario"),
    ("node", "edges"),
    ("nodes", "edges"),
    ("onerror", "failures"),
    ("order", "notations"),
    ("outcome", "finally"),
    ("output_contains", "scenario"),
    ("prices", "settings"),
    ("reference", "references"),
    ("request", "http"),
    ("retries", "retry"),
    ("retrying", "retry"),
    ("role", "approval"),
    ("roles", "approval"),
    ("scenarios", "scenario"),
    ("script", "bash"),
    ("scripts", "bash"),
    ("secret", "settings"),
    ("secrets", "settings"),
    ("sequence", "notations"),
    ("shell", "bash"),
    ("signals", "signal"),
    ("switch", "conditional"),
    ("test", "scenario"),
    ("tests", "scenario"),
    ("throw", "failures"),
    ("timeout", "failures"),
    ("tokens", "budget"),
    ("trusted", "settings"),
    ("typescript", "code"),
    ("verdicts", "settings"),
    ("wait", "sleep"),
    ("waves", "scenario"),
    ("ways", "scenario"),
    ("when", "conditions"),
    ("workflows", "scenario"),
];

/// A text about a part of the language, with an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    /// The name, which is that of a step type for topics about one.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    comment: &'static str,
    /// A definition, or a scenario file, as YAML.
    pub example: &'static str,
}

impl Topic {
    /// Returns the text without the marks of a comment and without the summary.
    pub fn text(&self) -> String {
        let lines = self.comment.lines().skip(1);
        let plain: Vec<&str> = lines.map(|line| line.strip_prefix("# ").unwrap_or("")).collect();
        plain.join("\n").trim_matches('\n').to_string()
    }
}

/// Returns all topics, by name.
pub fn topics() -> Vec<Topic> {
    let mut found: Vec<Topic> = FOLDER.files().filter_map(topic_of).collect();
    found.sort_by_key(|topic| topic.name);
    found
}

/// Returns the topic with a name or an alias, in any case.
pub fn topic(name: &str) -> Option<Topic> {
    let name = name.to_ascii_lowercase();
    let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name.as_str(), |(_, own)| own);
    topics().into_iter().find(|topic| topic.name == own)
}

fn topic_of(file: &'static include_dir::File<'static>) -> Option<Topic> {
    let name = file.path().file_stem()?.to_str()?;
    let text = file.contents_utf8()?;
    let end = text.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
    let (comment, example) = text.split_at_checked(end)?;
    let summary = comment.lines().next()?.strip_prefix("# ")?;
    Some(Topic { name, summary, comment, example })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_resolve_to_topics_and_shadow_none() {
        for (alias, own) in ALIASES {
            assert_eq!(topic(alias).map(|topic| topic.name), Some(*own), "{alias}");
            assert!(topics().iter().all(|topic| topic.name != *alias), "{alias} is a topic");
        }
    }
}
