//! No spaces at the end of a line, and a newline at the end of a file, since editors would change them in unrelated
//! diffs.

use crate::finding::Finding;
use crate::repository::{File, Repository};

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().filter(|file| !file.is_given()).flat_map(look_at).collect()
}

fn look_at(file: &File) -> Vec<Finding> {
    // `lines()` would hide the carriage returns of other systems.
    let lines = file.text.split('\n').zip(1..);
    let ends_in_space = lines.filter(|(line, _)| line.ends_with(char::is_whitespace));
    let mut findings: Vec<Finding> =
        ends_in_space.map(|(_, number)| Finding::at(&file.path, number, "The line ends in white space.")).collect();
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(Finding::at(&file.path, file.text.lines().count(), "The file does not end with a newline."));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::tidy::tests::{assert_found, repository};

    #[test]
    fn lines_and_files_end_cleanly() {
        let files = [
            ("a.md", "one\n\ntwo\n"),
            ("b.md", "one \ntwo\n"),
            ("c.md", "one\r\ntwo\n"),
            ("d.md", "one\ntwo"),
            ("empty.md", ""),
            ("conformance/given.json", "{ \n}"),
            ("conformance/uncovered.txt", "a \n"),
        ];
        assert_found(
            look(&repository(&files)),
            &[
                ("b.md", 1, "white space"),
                ("c.md", 1, "white space"),
                ("conformance/uncovered.txt", 1, "white space"),
                ("d.md", 2, "newline"),
            ],
        );
    }
}
