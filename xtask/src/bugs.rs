//! Seeds bugs into a copy of the repository, one at a time, and searches for the first seed of the simulated cluster
//! that finds each.
//!
//! A simulator without findings may just be weak. The seeded bugs measure it: they are kept as patches, with a table
//! that states which seed finds which bug, and by which rule.

mod copy;
mod hunt;
mod table;

use crate::repository::Repository;
use copy::Copy;
use hunt::Found;
use std::path::Path;
pub(crate) use table::{FOLDER, PATCH, Row, TABLE, rows};

/// Every bug must be found by a seed below this number.
const SEEDS_MAX: u64 = 500;

/// Searches for the named bugs, or for all of them. The error lists the bugs that were not found and the wrong entries
/// of the table.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<String, String> {
    let repository = Repository::read(root)?;
    let text = repository.file(TABLE).map(|file| file.text.as_str()).ok_or(format!("There is no {TABLE}."))?;
    let table = rows(text);
    let known: Vec<&str> = table.iter().map(|row| row.name.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{TABLE} has no bug {unknown}. It has: {}.", known.join(", ")));
    }
    let copy = Copy::of(root)?;
    let chosen = table.iter().filter(|row| names.is_empty() || names.contains(&row.name));
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in chosen {
        count += 1;
        let found = look_for(&copy, row)?;
        println!("{}: {}", row.name, found.as_ref().map_or("NOT FOUND".to_owned(), Found::to_string));
        wrong.extend(verdict(row, found.as_ref()));
    }
    match wrong.len() {
        0 => Ok(format!("bugs: {count} found, as in {TABLE}.")),
        _ => Err(format!("{}\nbugs: {} of {count} differ from {TABLE}.", wrong.join("\n"), wrong.len())),
    }
}

fn look_for(copy: &Copy, row: &Row) -> Result<Option<Found>, String> {
    copy.renew()?;
    copy.apply(&row.name)?;
    let program = copy.build().map_err(|why| format!("{}: {why}", row.name))?;
    hunt::first(&program, 0..SEEDS_MAX)
}

/// Returns the remedy for a bug; `None` if it was found as the table states.
fn verdict(row: &Row, found: Option<&Found>) -> Option<String> {
    let name = &row.name;
    match found {
        None => Some(format!("{name}: no seed below {SEEDS_MAX} finds it. Make the simulator stronger, not the bug.")),
        Some(found) if found.seed != row.seed => {
            Some(format!("{name}: write seed {} in {TABLE}, and not {}; it says: {}", found.seed, row.seed, found.why))
        }
        Some(found) if !found.why.contains(&row.rule) => {
            Some(format!("{name}: seed {} fails with a message that {TABLE} does not have: {}", found.seed, found.why))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{FOLDER, Found, Row, run, verdict};
    use crate::repository_root;

    #[test]
    fn every_patch_still_applies() {
        let root = repository_root();
        let mut count = 0;
        for entry in std::fs::read_dir(root.join(FOLDER)).unwrap() {
            let patch = entry.unwrap().path();
            if patch.extension().is_some_and(|extension| extension == "patch") {
                count += 1;
                super::copy::apply(&root, &patch, true).unwrap();
            }
        }
        assert!(count >= 12, "{count} bugs are too few");
    }

    #[test]
    fn an_unknown_bug_is_an_error() {
        assert!(run(&repository_root(), &["no-such-bug".to_owned()]).unwrap_err().contains("has no bug no-such-bug"));
    }

    #[test]
    fn differences_from_the_table_are_reported() {
        let row = Row { name: "a".to_owned(), seed: 3, rule: "made before".to_owned(), line: 1 };
        let check = |found: Option<(u64, &str)>, expected: Option<&str>| {
            let found = found.map(|(seed, why)| Found { seed, why: why.to_owned() });
            match (verdict(&row, found.as_ref()), expected) {
                (None, None) => {}
                (Some(told), Some(words)) => assert!(told.contains(words), "{told}"),
                (told, _) => panic!("{found:?}: {told:?}"),
            }
        };
        check(Some((3, "at 5 ms: it was made before")), None);
        check(Some((4, "at 5 ms: it was made before")), Some("write seed 4"));
        check(Some((3, "at 5 ms: something else")), Some("something else"));
        check(None, Some("stronger"));
    }
}
