//! Every page in `docs/decisions` is in the index, and the index names no missing page.

use crate::finding::Finding;
use crate::repository::Repository;
use std::collections::BTreeSet;

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let Some(index) = repository.file(INDEX) else {
        return vec![Finding::of_file(INDEX, "There is no index of decisions.")];
    };
    let named: BTreeSet<&str> =
        index.text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
    let is_page = |name: &&str| *name != "README.md" && !name.contains('/');
    let there: BTreeSet<&str> =
        repository.files.iter().filter_map(|file| file.path.strip_prefix(FOLDER)).filter(is_page).collect();
    let unlisted = there.difference(&named);
    let mut findings: Vec<Finding> = unlisted
        .map(|name| {
            Finding::of_file(&format!("{FOLDER}{name}"), format!("The index {INDEX} does not link to this page."))
        })
        .collect();
    let gone = named.difference(&there).filter(|name| !name.contains("://") && !name.starts_with(['#', '.']));
    findings
        .extend(gone.map(|name| Finding::of_file(INDEX, format!("The index links to {name}, which is not there."))));
    findings
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::tidy::tests::{assert_found, repository};

    #[test]
    fn the_index_and_the_folder_agree() {
        let page = ("docs/decisions/0001-one.md", "");
        let check = |index: &str, expected: &[(&str, usize, &str)]| {
            assert_found(look(&repository(&[page, ("docs/decisions/README.md", index)])), expected);
        };
        check("- [One](0001-one.md), see [there](https://example.com) and [up](../README.md)\n", &[]);
        check("nothing\n", &[("docs/decisions/0001-one.md", 0, "does not link")]);
        check("[One](0001-one.md) [Two](0002-two.md)\n", &[("docs/decisions/README.md", 0, "0002-two.md")]);
        assert_found(look(&repository(&[page])), &[("docs/decisions/README.md", 0, "no index")]);
    }
}
