//! Compares `conformance/` with another copy of the cases, byte for byte.
//!
//! The cases were given and are never edited: the checked-in files must equal the given ones.

use crate::repository::UNCOVERED;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The folder of the checked-in copy.
const FOLDER: &str = "conformance";

/// File contents by path below a folder, with `/`.
type Contents = BTreeMap<String, Vec<u8>>;

/// Compares the checked-in cases with those in `other`. The error names every file that differs.
pub(crate) fn run(root: &Path, other: &Path) -> Result<String, String> {
    let ours = without_our_own(contents(&root.join(FOLDER))?);
    let given = contents(other)?;
    if given.is_empty() {
        return Err(format!("There are no cases in {}.", other.display()));
    }
    let differences = compare(&ours, &given);
    if differences.is_empty() {
        return Ok(format!("conformance: {} files, all as given.", given.len()));
    }
    let count = differences.len();
    Err(format!("{}\nconformance: {count} of the files in {FOLDER}/ are not as given.", differences.join("\n")))
}

fn compare(ours: &Contents, given: &Contents) -> Vec<String> {
    let missing = given.keys().filter(|path| !ours.contains_key(*path)).map(|path| format!("missing: {path}"));
    let unlike = ours.iter().filter_map(|(path, bytes)| match given.get(path) {
        None => Some(format!("extra:   {path}")),
        Some(other) => difference(bytes, other).map(|line| format!("differs: {path}, from line {line} on")),
    });
    let mut differences: Vec<String> = missing.chain(unlike).collect();
    differences.sort();
    differences
}

/// Returns the first line, counted from 1, in which two files differ.
fn difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    Some(one[..same].iter().filter(|byte| **byte == b'\n').count() + 1)
}

fn without_our_own(mut contents: Contents) -> Contents {
    contents.retain(|path, _| format!("{FOLDER}/{path}") != UNCOVERED);
    contents
}

fn contents(folder: &Path) -> Result<Contents, String> {
    let mut found = Contents::new();
    read_into(folder, "", &mut found)
        .map_err(|error| format!("The folder {} cannot be read: {error}.", folder.display()))?;
    Ok(found)
}

fn read_into(root: &Path, below: &str, found: &mut Contents) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_into(root, &format!("{path}/"), found)?;
        } else {
            found.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::run;
    use std::fs;
    use std::path::Path;

    const GIVEN: [(&str, &str); 2] = [("README.md", "cases\n"), ("graph/a.json", "{\n}\n")];

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Compares these files of `conformance/` with [`GIVEN`].
    #[track_caller]
    fn check(ours: &[(&str, &str)], expected: Result<&str, &[&str]>) {
        let temporary = tempfile::tempdir().unwrap();
        write(&temporary.path().join("given"), &GIVEN);
        write(&temporary.path().join("conformance"), ours);
        match (run(temporary.path(), &temporary.path().join("given")), expected) {
            (Ok(sentence), Ok(expected)) => assert_eq!(sentence, expected),
            (Err(report), Err(expected)) => {
                let lines: Vec<&str> = report.lines().collect();
                assert_eq!(&lines[..lines.len() - 1], expected);
            }
            (said, _) => panic!("{said:?} where {expected:?} was expected"),
        }
    }

    #[test]
    fn equal_folders_are_equal_and_the_own_list_is_ignored() {
        let list = ("uncovered.txt", "graph/a.json :: a\n");
        check(&[GIVEN[0], GIVEN[1], list], Ok("conformance: 2 files, all as given."));
    }

    #[test]
    fn differences_are_named() {
        check(&[GIVEN[0], ("graph/a.json", "{\n }\n")], Err(&["differs: graph/a.json, from line 2 on"]));
        check(&[GIVEN[0], ("graph/a.json", "{\n}")], Err(&["differs: graph/a.json, from line 2 on"]));
        check(&[GIVEN[0]], Err(&["missing: graph/a.json"]));
        check(&[GIVEN[0], GIVEN[1], ("graph/b.json", "")], Err(&["extra:   graph/b.json"]));
    }

    #[test]
    fn an_empty_folder_proves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        write(temporary.path(), &[("conformance/uncovered.txt", "")]);
        let empty = temporary.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert!(run(temporary.path(), &empty).unwrap_err().contains("no cases"));
        assert!(run(temporary.path(), &temporary.path().join("absent")).unwrap_err().contains("cannot be read"));
    }
}
