//! Every Rust file begins with a `//!` comment about its purpose.

use crate::finding::Finding;
use crate::repository::Repository;

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let silent = repository.rust().filter(|file| !begins_with_a_sentence(&file.text));
    silent
        .map(|file| Finding::at(&file.path, 1, "Start with a `//!` comment that states the purpose of this file."))
        .collect()
}

fn begins_with_a_sentence(text: &str) -> bool {
    text.lines().next().and_then(|line| line.strip_prefix("//!")).is_some_and(|comment| !comment.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::tidy::tests::{assert_found, repository};

    #[test]
    fn a_file_starts_with_its_purpose() {
        let files = [
            ("crates/a/src/good.rs", "//! One noun.\n\nuse b;\n"),
            ("crates/a/src/late.rs", "use b;\n//! One noun.\n"),
            ("crates/a/src/of_the_next.rs", "/// One noun.\nuse b;\n"),
            ("crates/a/src/silent.rs", "//!\nuse b;\n"),
            ("crates/a/src/void.rs", ""),
            ("web/other.rs", ""),
        ];
        let bad = ["late", "of_the_next", "silent", "void"].map(|name| format!("crates/a/src/{name}.rs"));
        let expected: Vec<(&str, usize, &str)> = bad.iter().map(|path| (path.as_str(), 1, "`//!`")).collect();
        assert_found(look(&repository(&files)), &expected);
    }
}
