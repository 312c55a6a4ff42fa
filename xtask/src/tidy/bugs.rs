//! Every patch in `crates/sim/bugs` is in the table there, once, and the table names no missing patch.

use crate::bugs::{FOLDER, PATCH, TABLE, rows};
use crate::finding::Finding;
use crate::repository::Repository;
use std::collections::BTreeSet;

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let Some(table) = repository.file(TABLE) else {
        return vec![Finding::of_file(TABLE, "There is no table of the bugs that the simulator finds.")];
    };
    let patch = |path: &str| Some(path.strip_prefix(FOLDER)?.strip_suffix(PATCH)?.to_owned());
    let patches: BTreeSet<String> = repository.files.iter().filter_map(|file| patch(&file.path)).collect();
    let mut named = BTreeSet::new();
    let mut findings = Vec::new();
    for row in rows(&table.text) {
        if !patches.contains(&row.name) {
            findings.push(Finding::at(TABLE, row.line, format!("There is no patch {FOLDER}{}{PATCH}.", row.name)));
        }
        if !named.insert(row.name.clone()) {
            findings.push(Finding::at(TABLE, row.line, format!("The bug {} is there twice.", row.name)));
        }
    }
    let unlisted = patches.difference(&named).map(|name| format!("{FOLDER}{name}{PATCH}"));
    findings.extend(unlisted.map(|path| Finding::of_file(&path, format!("The table {TABLE} has no row for it."))));
    findings
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::tidy::tests::{assert_found, repository};

    #[test]
    fn the_table_and_the_folder_agree() {
        let (patch, table) = ("crates/sim/bugs/a.patch", "crates/sim/bugs/README.md");
        let check = |text: &str, expected: &[(&str, usize, &str)]| {
            assert_found(look(&repository(&[(patch, ""), (table, text)])), expected);
        };
        check("| `a` | what | 1 | rule |\n", &[]);
        check("nothing\n", &[(patch, 0, "no row")]);
        check("| `a` | what | 1 | rule |\n| `a` | what | 1 | rule |\n", &[(table, 2, "twice")]);
        check("| `a` | what | 1 | rule |\n| `b` | what | 1 | rule |\n", &[(table, 2, "b.patch")]);
        assert_found(look(&repository(&[])), &[(table, 0, "no table")]);
    }
}
