//! Compares the registry of error codes with the sources of all crates, and generates the tables of
//! `docs/reference/errors.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use mainspring_kernel::{
    diagnostic,
    error_codes::{self, ErrorCode, Origin},
    failure::Class,
};

const PAGE: &str = "docs/reference/errors.md";

/// The variable by which tests write golden files instead of comparing them.
const WRITE_VARIABLE: &str = "MAINSPRING_UPDATE_GOLDEN";

/// Calls whose first argument is the code of an error of the command line, each with the exit code.
const COMMAND_CALLS: [(&str, u8); 3] = [("bad_input(", 10), ("contract(", 20), ("internal(", 40)];

/// Codes that sources build from parts, each with the part that they contain.
const BUILT: [(&str, &str); 3] = [("bash_timeout", "_timeout"), ("http_timeout", "_timeout"), ("code_", "")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of the crates that report errors, without their unit tests.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in ["acp", "effects", "engine", "kernel", "mainspring", "mcp", "models", "sandbox", "server", "store"] {
        let mut folders = vec![root().join("crates").join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("the folder is read") {
                let path = entry.expect("an entry").path();
                let is_registry = path.to_string_lossy().contains("src/error_codes");
                match path.is_dir() {
                    true => folders.push(path),
                    false if path.extension().is_some_and(|extension| extension == "rs") && !is_registry => {
                        let text = fs::read_to_string(&path).expect("the file is read");
                        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
                        found.push((name.to_string(), text[..end].to_string()));
                    }
                    false => {}
                }
            }
        }
    }
    found
}

/// The code at the beginning of a text literal, without the number after a colon; `None` for other expressions and for
/// sentences.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let text = text.strip_prefix('&').unwrap_or(text);
    let text = text.strip_prefix("format!(").unwrap_or(text).trim_start();
    let (inside, _) = text.strip_prefix('"')?.split_once('"')?;
    let code = inside.split(':').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_code.then_some(code)
}

fn after<'t>(text: &'t str, mark: &'static str) -> impl Iterator<Item = &'t str> {
    text.match_indices(mark).map(move |(at, _)| &text[at + mark.len()..])
}

/// The classes of failures with the codes that follow them.
fn failures(text: &str) -> impl Iterator<Item = (Class, &str)> {
    after(text, "Class::").filter_map(|rest| {
        let (name, rest) = rest.split_once(',')?;
        let class = Class::ALL.into_iter().find(|class| format!("{class:?}") == name)?;
        Some((class, literal(rest)?))
    })
}

fn entry(code: &str, is_it: impl Fn(Origin) -> bool) -> Option<&'static ErrorCode> {
    error_codes::all().find(|known| known.code == code && is_it(known.origin))
}

#[test]
fn a_code_has_one_entry_for_each_origin() {
    let mut seen = BTreeSet::new();
    for known in error_codes::all() {
        let origin = std::mem::discriminant(&known.origin);
        assert!(seen.insert((known.code, format!("{origin:?}"))), "`{}` has two entries", known.code);
        for text in [known.meaning, known.help] {
            assert!(text.ends_with('.') && !text.contains(['|', '\n']), "`{}`: {text}", known.code);
        }
    }
    assert_eq!(error_codes::find("bash_exit_code:3").len(), 1);
    assert_eq!(error_codes::find("not_found").first().map(|known| known.code), Some("NOT_FOUND"));
    assert_eq!(error_codes::find("bash_exit_code:3")[0].title(), "bash exit code");
}

#[test]
fn every_code_in_the_sources_has_an_entry() {
    let mut missing = BTreeSet::new();
    let mut found = 0;
    for (name, text) in sources() {
        for (class, code) in failures(&text) {
            found += 1;
            let is_known = match name.as_str() {
                "mainspring" => error_codes::all().any(|known| known.code == code),
                _ => entry(code, |origin| origin == Origin::Execution { class }).is_some(),
            };
            if !is_known {
                missing.insert(format!("{name}: {code} ({})", class.name()));
            }
        }
        for (call, exit) in COMMAND_CALLS.iter().filter(|_| name == "mainspring") {
            for code in after(&text, call).filter_map(literal) {
                found += 1;
                if entry(code, |origin| matches!(origin, Origin::Command { .. })).is_none() {
                    missing.insert(format!("{name}: {code} (exit code {exit})"));
                }
            }
        }
    }
    assert!(found > 150, "{found} codes");
    assert!(missing.is_empty(), "add these to crates/kernel/src/error_codes: {missing:#?}");
}

#[test]
fn every_entry_is_a_code_of_the_sources() {
    let all: String = sources().into_iter().map(|(_, text)| text).collect();
    for known in error_codes::all().filter(|known| !matches!(known.origin, Origin::Api { .. })) {
        let is_built = BUILT.iter().any(|(code, part)| known.code.starts_with(code) && all.contains(part));
        let is_there = all.contains(&format!("\"{}\"", known.code)) || all.contains(&format!("\"{}:", known.code));
        assert!(is_built || is_there, "no source has `{}`: remove its entry", known.code);
    }
}

#[test]
fn diagnostics_are_those_of_the_compiler() {
    let known: BTreeSet<_> = error_codes::all()
        .filter(|known| matches!(known.origin, Origin::Diagnostic { .. }))
        .map(|known| known.code)
        .collect();
    assert_eq!(known, diagnostic::CODES.into_iter().chain(diagnostic::OF_SERVERS).collect());
}

/// `NotFound` as `NOT_FOUND`.
fn screaming(variant: &str) -> String {
    let mut text = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

#[test]
fn codes_of_the_api_are_those_of_the_server_and_of_its_client() {
    let exits = [("BadInput", 10), ("Contract", 20), ("Policy", 30), ("Failed", 40)];
    let (mut of_server, mut of_client) = (BTreeSet::new(), BTreeMap::new());
    for (name, text) in sources() {
        let statuses = text.split_once("const STATUSES").map(|(_, rest)| rest).filter(|_| name == "server");
        let statuses = statuses.and_then(|rest| rest.split_once("];")).map_or("", |(inside, _)| inside);
        of_server.extend(after(statuses, "(Code::").filter_map(|rest| Some(screaming(rest.split_once(',')?.0))));
        let problems = text.split_once("const PROBLEMS").map(|(_, rest)| rest).filter(|_| name == "mainspring");
        let problems = problems.and_then(|rest| rest.split_once("\n];")).map_or("", |(inside, _)| inside);
        for rest in after(problems, "Exit::") {
            let before = &problems[..problems.len() - rest.len()];
            let code = before.rsplit('"').nth(1).expect("the code before its exit code");
            let exit = exits.iter().find(|(exit, _)| rest.starts_with(exit)).expect("a known exit code");
            of_client.insert(code.to_string(), exit.1);
        }
    }
    let known: BTreeMap<_, _> = error_codes::all()
        .filter_map(|known| match known.origin {
            Origin::Api { exit_code, .. } => Some((known.code.to_string(), exit_code)),
            _ => None,
        })
        .collect();
    assert_eq!(known.keys().cloned().collect::<BTreeSet<_>>(), of_server);
    assert_eq!(known, of_client);
}

/// The rows of a table, one for each code of the origin.
fn table(name: &str) -> String {
    let (head, columns) = match name {
        "executions" => ("| code | class | meaning | help |", 4),
        "diagnostics" => ("| code | severity | meaning | help |", 4),
        "api" => ("| code | status | exit code | meaning | help |", 5),
        "commands" => ("| code | exit code | meaning | help |", 4),
        other => panic!("{PAGE} has an unknown table `{other}`"),
    };
    let rows = error_codes::all().filter_map(|known| {
        let ErrorCode { code, origin, meaning, help, .. } = known;
        let properties = match (name, origin) {
            ("executions", Origin::Execution { class }) => format!("`{}`", class.name()),
            ("diagnostics", Origin::Diagnostic { severity }) => severity.name().to_string(),
            ("api", Origin::Api { status, exit_code }) => format!("{status} | {exit_code}"),
            ("commands", Origin::Command { exit_code }) => exit_code.to_string(),
            _ => return None,
        };
        Some(format!("| `{code}` | {properties} | {meaning} | {help} |\n"))
    });
    format!("{head}\n{}|\n{}", "|---".repeat(columns), rows.collect::<String>())
}

#[test]
fn the_page_of_errors_is_as_generated() {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path).expect("the page is read");
    let (mut generated, mut rest) = (String::new(), page.as_str());
    while let Some((before, after)) = rest.split_once("<!-- generated: ") {
        let (name, inside) = after.split_once(" -->\n").expect("the end of a marker");
        let (_, behind) = inside.split_once("<!-- /generated -->").expect("the end of a table");
        generated += &format!("{before}<!-- generated: {name} -->\n{}<!-- /generated -->", table(name));
        rest = behind;
    }
    generated += rest;
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(&path, generated).expect("the page is written");
    } else {
        assert!(page == generated, "{PAGE} differs from the registry: run this test with {WRITE_VARIABLE}=1");
    }
}
