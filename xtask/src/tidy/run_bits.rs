//! Programs have their executable bit, without which a fresh checkout fails when they are started.

use crate::finding::Finding;
use crate::repository::Repository;

const CALLED: [&str; 1] = [".ci/run"];

/// Marks a file as a program in any folder.
const INTERPRETER: &str = "#!/";

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let missing = CALLED.iter().filter(|path| repository.file(path).is_none());
    let mut findings: Vec<Finding> =
        missing.map(|path| Finding::of_file(path, "This file is called and not there.")).collect();
    let programs = repository.files.iter().filter(|file| file.text.starts_with(INTERPRETER) && !file.may_be_run);
    findings.extend(programs.map(|file| Finding::of_file(&file.path, "Give it its run bit: chmod +x.")));
    findings
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::repository::{File, Repository};
    use crate::tidy::tests::assert_found;

    #[track_caller]
    fn check(may_be_run: bool, expected: &[(&str, usize, &str)]) {
        let file = File { may_be_run, ..File::of(".ci/run", "#!/usr/bin/env bash\n") };
        assert_found(look(&Repository::of(vec![file], Vec::new())), expected);
    }

    #[test]
    fn scripts_are_executable() {
        check(true, &[]);
        check(false, &[(".ci/run", 0, "chmod +x")]);
        assert_found(look(&Repository::default()), &[(".ci/run", 0, "not there")]);
    }
}
