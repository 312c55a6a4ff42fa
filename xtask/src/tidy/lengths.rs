//! The lengths of files and functions. A file has one subject, and a function fits on a screen.

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::token::{self, Token};

/// A longer file usually has a second subject; most files have half as many lines.
const FILE_LINES_MAX: usize = 800;

/// The lines of a screen.
const FUNCTION_LINES_MAX: usize = 70;

/// Measures every file and function that is too long, also in tests.
pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    repository
        .rust()
        .flat_map(|file| functions(file).into_iter().chain([whole(file)]))
        .filter(Measure::is_too_much)
        .collect()
}

fn whole(file: &File) -> Measure {
    Measure {
        key: format!("file {}", file.path),
        number: file.text.lines().count(),
        limit: FILE_LINES_MAX,
        unit: "lines of a file; split it by subject".to_owned(),
        places: vec![Finding::of_file(&file.path, "")],
    }
}

/// Returns the functions of a file with their lines, from `fn` to the closing brace.
fn functions(file: &File) -> Vec<Measure> {
    let tokens = &file.tokens;
    let with_body = (0..tokens.len()).filter_map(|start| Some((start, body(tokens, start)?)));
    let measured = with_body.map(|(start, open)| {
        let line = tokens[start].line;
        Measure {
            key: format!("function {}::{}", file.path, tokens[start + 1].text),
            number: tokens[token::closing(tokens, open)].line + 1 - line,
            limit: FUNCTION_LINES_MAX,
            unit: "lines of a function; branch in the parent, compute in the leaves".to_owned(),
            places: vec![Finding::at(&file.path, line, "")],
        }
    });
    measured.collect()
}

/// Returns the index of the opening brace of the function that starts here; `None` for the type `fn(u8)`, and for a
/// trait method without a body.
fn body(tokens: &[Token], start: usize) -> Option<usize> {
    let is_name = |token: &Token| token.text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    if tokens[start].text != "fn" || !is_name(tokens.get(start + 1)?) {
        return None;
    }
    let depth = tokens[start].depth;
    let rest = &tokens[start + 2..];
    let beside = rest.iter().take_while(|token| token.depth >= depth);
    let (index, end) =
        beside.enumerate().find(|(_, token)| token.depth == depth && ["{", ";"].contains(&token.text.as_str()))?;
    (end.text == "{").then_some(start + 2 + index)
}

#[cfg(test)]
mod tests {
    use super::{FILE_LINES_MAX, FUNCTION_LINES_MAX, measure};
    use crate::tidy::tests::repository;

    /// Checks the keys and numbers of the functions and files that are too long.
    #[track_caller]
    fn check(text: &str, expected: &[(&str, usize)]) {
        let measured = measure(&repository(&[("crates/a/src/a.rs", text)]));
        let found: Vec<(&str, usize)> = measured.iter().map(|measure| (measure.key.as_str(), measure.number)).collect();
        assert_eq!(found, expected);
    }

    fn function(signature: &str, lines: usize) -> String {
        format!("{signature} {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_fits_a_screen() {
        let name = "function crates/a/src/a.rs::long";
        check(&function("fn long()", FUNCTION_LINES_MAX), &[]);
        check(&function("fn long()", FUNCTION_LINES_MAX + 1), &[(name, FUNCTION_LINES_MAX + 1)]);
        check(
            &function("fn long(\n  a: [u8; { 3 }],\n) -> B", FUNCTION_LINES_MAX - 1),
            &[(name, FUNCTION_LINES_MAX + 1)],
        );
    }

    #[test]
    fn functions_in_tests_and_in_macros_count() {
        let long = function("fn long()", 90);
        let expected = [("function crates/a/src/a.rs::long", 90)];
        check(&format!("#[cfg(test)]\nmod tests {{\n{long}}}\n"), &expected);
        check(&format!("proptest! {{\n#[test]\n{long}}}\n"), &expected);
    }

    #[test]
    fn functions_without_a_body_are_not_counted() {
        check(&format!("trait A {{ fn long(); }}\nmod b {{\n{}}}\n", "use c;\n".repeat(90)), &[]);
        check(&format!("trait A {{\nfn long();\n{}const B: u8;\n}}\n", "\n".repeat(90)), &[]);
        check(&format!("type A = fn(u8);\nmod b {{\n{}}}\n", "use c;\n".repeat(90)), &[]);
    }

    #[test]
    fn long_files_are_found() {
        check(&"// a\n".repeat(FILE_LINES_MAX), &[]);
        check(&"// a\n".repeat(FILE_LINES_MAX + 1), &[("file crates/a/src/a.rs", FILE_LINES_MAX + 1)]);
    }
}
