//! No unfinished code, no path of one machine, and no test that waits for time instead of an event.

use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::token::{self, Token};

/// Split in two, so that this file has no finding of its own.
const WORDS: [&str; 3] = [concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];

/// Macros by name; the exclamation mark comes from the tokens.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Folders of one user's or machine's files. Split for the same reason.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

/// Functions that wait on the wall clock, as modules and names.
const CLOCKS: [&str; 2] = ["thread", "time"];
const SLEEPS: [&str; 3] = ["sleep", "sleep_ms", "sleep_until"];

/// Prose may contain the words above; code may not.
const PROSE: [&str; 2] = ["md", "txt"];

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let ours = || repository.files.iter().filter(|file| !file.is_given());
    let mut findings: Vec<Finding> = ours().flat_map(machine_paths).collect();
    findings.extend(ours().filter(|file| !PROSE.contains(&file.extension())).flat_map(words));
    for file in repository.rust() {
        if let Some(line) = file.unreadable_at {
            findings.push(Finding::at(&file.path, line, "This is not Rust, so nothing in the file is checked."));
        }
        let places = 0..file.tokens.len();
        let messages = places.filter_map(|start| Some((file.tokens[start].line, at_token(&file.tokens, start)?)));
        findings.extend(messages.map(|(line, message)| Finding::at(&file.path, line, message)));
    }
    findings
}

fn words(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let found =
            line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').find(|word| WORDS.contains(word));
        findings.extend(
            found.map(|word| Finding::at(&file.path, number, format!("{word} is left over: resolve it or remove it."))),
        );
    }
    findings
}

fn machine_paths(file: &File) -> Vec<Finding> {
    let with_path = file.lines().filter(|(_, line)| MACHINE_PATHS.iter().any(|path| names_path(line, path)));
    with_path
        .map(|(number, _)| Finding::at(&file.path, number, "A path of one machine; the next one has others."))
        .collect()
}

/// True if the path is alone, not inside of a longer one, and a name follows it.
fn names_path(line: &str, path: &str) -> bool {
    let continues = |letter: char| letter.is_alphanumeric() || ['.', '_', '-', '~', '}', ')', '*'].contains(&letter);
    line.match_indices(path).any(|(start, _)| {
        let has_name = line[start + path.len()..].starts_with(|letter: char| letter.is_alphanumeric() || letter == '.');
        has_name && !line[..start].ends_with(continues)
    })
}

/// Returns the problem of the code at this token.
fn at_token(tokens: &[Token], start: usize) -> Option<String> {
    let token = &tokens[start];
    let name = token.text.as_str();
    if MACROS.contains(&name) && token::reads(tokens, start + 1, &["!"]) && tokens.get(start + 2)?.text != "=" {
        return Some(format!("{name}! is left over: resolve it or remove it."));
    }
    if token::reads(tokens, start, &["#", "[", "ignore", "]"]) {
        return Some("A test is ignored without a reason; write #[ignore = \"why\"].".to_owned());
    }
    if token.in_test
        && CLOCKS.contains(&name)
        && token::reads(tokens, start + 1, &[":", ":"])
        && names_sleep(tokens, start + 3)
    {
        return Some("A test sleeps; wait for a condition, or use virtual time.".to_owned());
    }
    None
}

/// True if a path ends in a sleep, alone or in the braces of a `use`.
fn names_sleep(tokens: &[Token], start: usize) -> bool {
    let Some(next) = tokens.get(start) else { return false };
    let last = if next.text == "{" { token::closing(tokens, start) } else { start };
    tokens[start..=last].iter().any(|token| SLEEPS.contains(&token.text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{MACHINE_PATHS, WORDS, look};
    use crate::tidy::tests::{assert_found, repository};

    const SOURCE: &str = "crates/a/src/a.rs";

    /// Checks the lines with findings, and a word of each message.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &[(usize, &str)]) {
        let expected: Vec<(&str, usize, &str)> = expected.iter().map(|(line, word)| (path, *line, *word)).collect();
        assert_found(look(&repository(&[(path, text)])), &expected);
    }

    #[test]
    fn leftover_words_are_found() {
        for word in WORDS {
            check(SOURCE, &format!("// fine\n// {word}: later\n"), &[(2, word)]);
            check("a.sql", &format!("-- {word}\n"), &[(1, word)]);
            check(SOURCE, &format!("// {word}A {}\n", word.to_lowercase()), &[]);
            check("CONTRIBUTING.md", &format!("no {word}\n"), &[]);
        }
    }

    #[test]
    fn leftover_macros_are_found() {
        check(SOURCE, "fn a() {\n    todo!()\n}\n", &[(2, "todo!")]);
        check(SOURCE, "fn a() { assert!(unimplemented!(\"b\")) }\n", &[(1, "unimplemented!")]);
        check(SOURCE, "fn a() { dbg!(1); }\n", &[(1, "dbg!")]);
        check(SOURCE, "/// todo!()\nfn todo() { if todo != 1 { say(\"dbg!(x)\") } }\n", &[]);
    }

    #[test]
    fn an_ignored_test_has_a_reason() {
        check(SOURCE, "#[test]\n#[ignore]\nfn a() {}\n", &[(2, "why")]);
        check(SOURCE, "#[test]\n#[ignore = \"needs a network\"]\nfn a() {}\n", &[]);
    }

    #[test]
    fn tests_do_not_sleep() {
        check(SOURCE, "#[test]\nfn a() { std::thread::sleep(b); }\n", &[(2, "sleeps")]);
        check(SOURCE, "#[tokio::test]\nasync fn a() { tokio::time::sleep(b).await; }\n", &[(2, "sleeps")]);
        check(SOURCE, "#[cfg(test)]\nmod tests {\n  use std::thread::{self, sleep};\n}\n", &[(3, "sleeps")]);
        check("crates/a/tests/a.rs", "fn a() { thread::sleep(b); }\n", &[(1, "sleeps")]);
        check(SOURCE, "fn a() { thread::sleep(b); }\n#[test]\nfn b() { plan(sleep(\"nap\")); }\n", &[]);
    }

    #[test]
    fn machine_paths_are_found() {
        for path in MACHINE_PATHS {
            check("a.md", &format!("see {path}ada/notes\n"), &[(1, "machine")]);
            check(SOURCE, &format!("const A: &str = \"file://{path}ada\";\n"), &[(1, "machine")]);
            check("a.md", &format!("docs{path}ada, {{workspace}}{path}ada and {path} alone\n"), &[]);
        }
    }

    #[test]
    fn unparsable_sources_are_reported() {
        check(SOURCE, "fn a() {\n", &[(1, "not Rust")]);
    }
}
