//! SQL is only in the `.sql` files of the store, where the databases are reviewed side by side.

use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::token::Token;

const STORE: &str = "crates/store/";
const BINARY_TESTS: &str = "crates/mainspring/tests/";

/// The first words of statements that could be in a string.
const STATEMENTS: [&[&str]; 5] =
    [&["SELECT"], &["INSERT"], &["DELETE", "FROM"], &["CREATE", "TABLE"], &["ALTER", "TABLE"]];

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let sql = repository.files.iter().filter(|file| file.extension() == "sql" && !file.path.starts_with(STORE));
    let mut findings: Vec<Finding> =
        sql.map(|file| Finding::of_file(&file.path, "SQL belongs to the store, in crates/store.")).collect();
    findings.extend(repository.rust().flat_map(texts));
    findings
}

fn texts(file: &File) -> Vec<Finding> {
    // Tests of the store and tests that tamper with a store may contain SQL.
    let may_look = file.path.starts_with(STORE) || file.path.starts_with(BINARY_TESTS);
    let allowed = |token: &Token| token.in_test && may_look;
    let found = file.tokens.iter().filter(|token| !allowed(token) && is_statement(&token.text));
    found.map(|token| Finding::at(&file.path, token.line, "SQL in a Rust text; put it into a .sql file.")).collect()
}

/// True if the text contains the keywords of a statement with further words after them.
fn is_statement(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|letter: char| letter.is_whitespace() || letter == '"' || letter == '(').collect();
    STATEMENTS.iter().any(|keywords| {
        let mut windows = words.windows(keywords.len() + 1);
        windows.any(|window| window.starts_with(keywords) && window.iter().all(|word| !word.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::{STATEMENTS, look};
    use crate::tidy::tests::{assert_found, repository};

    #[test]
    fn sql_in_string_literals_is_found() {
        for keywords in STATEMENTS {
            let statement = format!("{} x", keywords.join(" "));
            let source = format!(
                "fn a() {{\n    run(format!(\"{statement}\"));\n}}\n#[test]\nfn b() {{ run(r#\"{statement}\"#) }}\n"
            );
            assert_found(
                look(&repository(&[("crates/engine/src/a.rs", &source)])),
                &[("crates/engine/src/a.rs", 2, ".sql"), ("crates/engine/src/a.rs", 5, ".sql")],
            );
            assert_found(
                look(&repository(&[("crates/store/src/a.rs", &source)])),
                &[("crates/store/src/a.rs", 2, ".sql")],
            );
            assert_found(look(&repository(&[("crates/store/tests/a.rs", &source)])), &[]);
            assert_found(look(&repository(&[("crates/mainspring/tests/a.rs", &source)])), &[]);
        }
    }

    #[test]
    fn sql_keywords_alone_are_not_statements() {
        let source =
            format!("/// {} x\nconst A: &str = \"{}\";\nconst B: &str = \"SELECTED x\";\n", "SELECT", "INSERT");
        assert_found(look(&repository(&[("crates/engine/src/a.rs", &source)])), &[]);
    }

    #[test]
    fn sql_files_belong_to_the_store() {
        let files = [("crates/store/src/sqlite/sql/head.sql", ""), ("crates/engine/src/head.sql", "")];
        assert_found(look(&repository(&files)), &[("crates/engine/src/head.sql", 0, "crates/store")]);
    }
}
