//! Terms that this project coined although the field has one. Each use counts, by term and by crate or document.
//!
//! Terms count in names, strings and comments of Rust, in SQL and in Markdown. They do not count in stored or given
//! files: journals, migrations, scenarios and conformance cases keep their words.

mod table;

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::words;
use std::collections::{BTreeMap, HashMap};
use table::{KEPT, TERMS, Term};

const EXTENSIONS: [&str; 3] = ["md", "rs", "sql"];

/// Folders of files that must not change, and the table itself.
const LEFT_ALONE: [&str; 4] =
    ["/migrations/", "crates/store/tests/formats/", "/tests/journals/", "xtask/src/tidy/terms"];

/// Terms by the first words of their forms; `None` for an allowed compound.
type Index = HashMap<&'static str, Vec<(Option<&'static Term>, Vec<&'static str>)>>;

pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let mut index = Index::new();
    let banned = TERMS.iter().flat_map(|term| term.forms.iter().map(move |form| (Some(term), form)));
    for (term, form) in KEPT.iter().map(|form| (None, form)).chain(banned) {
        let words: Vec<&str> = form.split(' ').collect();
        index.entry(words[0]).or_default().push((term, words));
    }
    let mut found: BTreeMap<String, Measure> = BTreeMap::new();
    for file in repository.files.iter().filter(|file| counts(file)) {
        for (line, term, text) in uses(file, &index) {
            let key = format!("term {} {}", file.area(), term.name);
            let unit = "uses of a coined word; write the term of the field";
            let measure = found.entry(key.clone()).or_insert_with(|| Measure::count(key, unit));
            measure.add(Finding::at(&file.path, line, format!("{text}: write {}", term.instead)));
        }
    }
    found.into_values().collect()
}

fn counts(file: &File) -> bool {
    EXTENSIONS.contains(&file.extension())
        && !file.is_given()
        && !LEFT_ALONE.iter().any(|part| file.path.contains(part))
}

/// Returns each use of a term with its line and spelling.
fn uses<'a>(file: &'a File, index: &Index) -> Vec<(usize, &'static Term, &'a str)> {
    let mut found = Vec::new();
    if file.tokens.is_empty() && file.comments.is_empty() {
        uses_in(&file.path, &file.text, 1, index, &mut found);
    }
    for token in file.tokens.iter().filter(|token| token.text.len() > 2) {
        uses_in(&file.path, &token.text, token.line, index, &mut found);
    }
    for comment in &file.comments {
        uses_in(&file.path, &comment.text, comment.line, index, &mut found);
    }
    found
}

fn uses_in<'a>(
    path: &str,
    text: &'a str,
    first_line: usize,
    index: &Index,
    found: &mut Vec<(usize, &'static Term, &'a str)>,
) {
    let written: Vec<(usize, &str)> = words::of_text_with_places(text).collect();
    let small: Vec<String> = written.iter().map(|(_, word)| word.to_lowercase()).collect();
    let mut next = 0;
    for (at, word) in small.iter().enumerate() {
        let Some(forms) = index.get(word.as_str()).filter(|_| at >= next) else { continue };
        let is_here = |(term, form): &&(Option<&Term>, Vec<&str>)| {
            term.is_none_or(|term| term.paths.iter().any(|start| path.starts_with(start)))
                && small.get(at..at + form.len()).is_some_and(|words| words.iter().eq(form))
                && stand_together(text, &written[at..at + form.len()])
        };
        let Some((term, form)) = forms.iter().find(is_here) else { continue };
        next = at + form.len();
        if let Some(term) = term {
            let (last_start, last) = written[next - 1];
            let line = first_line + text[..written[at].0].matches('\n').count();
            found.push((line, *term, &text[written[at].0..last_start + last.len()]));
        }
    }
}

/// True if only spaces, underscores, hyphens and apostrophes separate these words.
fn stand_together(text: &str, words: &[(usize, &str)]) -> bool {
    let joins = |letter: char| letter.is_whitespace() || ['_', '-', '\'', '’'].contains(&letter);
    words.windows(2).all(|pair| text[pair[0].0 + pair[0].1.len()..pair[1].0].chars().all(joins))
}

#[cfg(test)]
mod tests {
    use super::{TERMS, measure};
    use crate::tidy::tests::{assert_found, counted, repository};

    /// Checks the uses in one file, as lines and spellings.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &[(usize, &str)]) {
        let found = measure(&repository(&[(path, text)]));
        let expected: Vec<(&str, usize, &str)> = expected.iter().map(|(line, word)| (path, *line, *word)).collect();
        assert_found(found.into_iter().flat_map(|measure| measure.places).collect(), &expected);
    }

    #[test]
    fn names_texts_and_comments_count() {
        let source = "//! The shelf\n//! of shelves.\nfn put_on_shelf(a: &ShelfLife) {\n    say(\"\n shelf\");\n}\n";
        let expected = [(1, "shelf"), (2, "shelves"), (3, "Shelf"), (3, "shelf"), (5, "shelf")];
        check("crates/a/src/a.rs", source, &expected);
        check("crates/a/src/a.sql", "-- shelf\nSELECT shelf_id FROM bookshelf;\n", &[(1, "shelf"), (2, "shelf")]);
        check("docs/a.md", "Shelves\n", &[(1, "Shelves")]);
    }

    #[test]
    fn terms_of_several_words_are_found() {
        check(
            "docs/a.md",
            "It is set\naside. It is set. Aside it is. set_aside, call-off\n",
            &[(1, "set\naside"), (2, "call-off"), (2, "set_aside")],
        );
        check("crates/a/src/a.rs", "fn set_aside() { let in_doubt = set(aside); }\n", &[(1, "set_aside")]);
    }

    #[test]
    fn some_terms_are_banned_in_some_paths_only() {
        check(
            "crates/engine/src/a.rs",
            "// A letter, a table, a flight in flight.\n",
            &[(1, "flight"), (1, "letter"), (1, "table")],
        );
        check("crates/kernel/src/a.rs", "// A letter, a table, a flight in flight.\n", &[]);
    }

    #[test]
    fn stored_and_given_files_do_not_count() {
        for path in [
            "conformance/a.md",
            "crates/store/src/sqlite/sql/migrations/1.sql",
            "crates/a/tests/journals/a.md",
            "a.yaml",
        ] {
            check(path, "shelf\n", &[]);
        }
    }

    #[test]
    fn uses_are_counted_by_word_and_area() {
        let files =
            [("crates/a/src/a.rs", "// Shelf."), ("crates/a/tests/a.rs", "// Shelf, rim."), ("docs/a.md", "Rim.\n")];
        let expected = [("term crates/a rim", 1), ("term crates/a shelf", 2), ("term docs rim", 1)];
        assert_eq!(counted(measure(&repository(&files))), expected.map(|(key, number)| (key.to_owned(), number)));
    }

    #[test]
    fn the_table_is_in_small_letters() {
        for form in TERMS.iter().flat_map(|term| term.forms) {
            assert_eq!(**form, form.to_lowercase());
        }
    }
}
